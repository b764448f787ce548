//! Retirement notices: what the user should know of a model that its maker switches off.

use jiff::civil::Date;

use super::{aliases::Aliases, prices::Prices};
use castor_base::model_table::{AliasRow, AutoModels, row::ModelRow, service_life::ServiceState};

/// One sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetirementNotice {
    pub text: String,
    /// Said once a day, under this subject; `None`: once in a session.
    pub daily: Option<String>,
}

/// The notices on a model as the session calls it, on the day of `aliases`.
pub fn notices(name: &str, aliases: &Aliases, prices: &Prices) -> Vec<RetirementNotice> {
    match aliases.built_in(name) {
        Some(row) => of_alias(row, aliases),
        None => of_default(name, aliases).into_iter().chain(of_named(name, aliases, prices)).collect(),
    }
}

fn once(text: String) -> RetirementNotice {
    RetirementNotice { text, daily: None }
}

fn of_alias(row: &AliasRow, aliases: &Aliases) -> Vec<RetirementNotice> {
    let name = &row.name;
    let listed: Vec<&str> = match &row.auto {
        Some(AutoModels { pro, flash }) => vec![pro, flash],
        None => row.model.as_deref().into_iter().collect(),
    };
    let models = aliases.models();
    let listed: Vec<&str> =
        listed.into_iter().map(|it| models.alias(it).and_then(|it| it.model.as_deref()).unwrap_or(it)).collect();
    let served = |it: &str| models.served(it, aliases.day()).to_owned();
    let mut res = Vec::new();
    if !row.was.is_empty() {
        let was: Vec<String> = row.was.iter().map(|it| with_end(it, aliases)).collect();
        let now: Vec<String> = listed.iter().map(|it| served(it)).collect();
        let (was, now) = (was.join(" and "), now.join(" and "));
        res.push(once(format!(
            "{name} is an old name: it stood for {was}, and leads to {now} now. `/model auto` chooses castor's own pair."
        )));
    }
    for model in listed {
        let row = models.row(model);
        let now = served(model);
        if let Some(on) = row.and_then(|it| it.life.retires).filter(|_| now != model) {
            res.push(once(format!("{name} leads to {now} now: {model} was switched off on {on}.")));
        }
        if let Some((on, days, next)) = retiring(&now, aliases) {
            let then = next.map_or_else(String::new, |it| format!("; {name} leads to {it} from then on"));
            let text = format!("{now}, to which {name} leads, will be switched off on {on}, {}{then}.", in_days(days));
            res.push(RetirementNotice { text, daily: Some(subject(&now, aliases)) });
        }
    }
    res
}

/// `gemini-… (switched off on 2026-12-01)`.
fn with_end(model: &str, aliases: &Aliases) -> String {
    let life = aliases.models().row(model).map(|it| it.life.on(aliases.day()));
    match life {
        Some(ServiceState::Retired { on }) => format!("{model} (switched off on {on})"),
        Some(ServiceState::Retiring { on, .. }) => format!("{model} (to be switched off on {on})"),
        _ => model.to_owned(),
    }
}

/// The default moved, and nobody chose this one.
fn of_default(name: &str, aliases: &Aliases) -> Option<RetirementNotice> {
    let first = aliases.models().first_default();
    let on = aliases.models().row(first)?.life.retires?;
    let has_moved = name == aliases.default_model() && name != first;
    has_moved.then(|| once(format!("castor's default model is {name} now: {first} was switched off on {on}.")))
}

/// The notice on a model that the user names in full: it goes out as it is named.
fn of_named(name: &str, aliases: &Aliases, prices: &Prices) -> Option<RetirementNotice> {
    let model = aliases.model_of(name);
    let row = aliases.models().row(&model)?;
    // Others that serve the model have days of their own.
    if !prices.is_makers(&model, row, aliases.models()) {
        return None;
    }
    let next = row.life.successor.as_deref().map(|it| beside(&model, aliases.models().served(it, aliases.day())));
    match row.life.on(aliases.day()) {
        ServiceState::Served => None,
        ServiceState::Retiring { on, days } => {
            let next = next.map_or_else(String::new, |it| {
                format!(" Its successor is {it}: `/model {it}` chooses it, or `--model {it}`.")
            });
            let text = format!("{model} will be switched off on {on}, {}.{next}", in_days(days));
            Some(RetirementNotice { text, daily: Some(subject(&model, aliases)) })
        }
        ServiceState::Retired { on } => Some(once(retired_text(&model, row, &on.to_string(), next.as_deref()))),
    }
}

fn retired_text(model: &str, row: &ModelRow, on: &str, next: Option<&str>) -> String {
    let choose = next
        .map_or_else(String::new, |it| format!(" Its successor is {it}: `/model {it}` chooses it, or `--model {it}`."));
    let routed = match row.life.successor.as_deref().filter(|_| row.life.routed) {
        Some(it) => format!("; its maker answers with {it}, at the price of that one"),
        None => String::new(),
    };
    format!("{model} was switched off on {on}{routed}. castor asks for it all the same, as you named it.{choose}")
}

/// The day on which a model is switched off, where it is asked at its maker's own service.
pub fn end(model: &str, aliases: &Aliases, prices: &Prices) -> Option<Date> {
    let row = aliases.models().row(model)?;
    row.life.retires.filter(|_| prices.is_makers(model, row, aliases.models()))
}

/// The end of a served model that is near.
fn retiring(model: &str, aliases: &Aliases) -> Option<(String, i32, Option<String>)> {
    let row = aliases.models().row(model)?;
    let ServiceState::Retiring { on, days } = row.life.on(aliases.day()) else { return None };
    Some((on.to_string(), days, row.life.successor.clone()))
}

fn subject(model: &str, aliases: &Aliases) -> String {
    format!("{}: {model} retires", aliases.day())
}

fn in_days(days: i32) -> String {
    if days == 1 { "tomorrow".to_owned() } else { format!("in {days} days") }
}

/// The successor, reached as the model is.
fn beside(model: &str, successor: &str) -> String {
    match model.rsplit_once('/') {
        Some((before, _)) => format!("{before}/{successor}"),
        None => successor.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fmt::Write as _};

    use expect_test::expect_file;
    use jiff::civil::date;

    use super::{Aliases, Prices, notices};
    use castor_base::model_table::ModelTable;

    /// What castor says and asks for, by day: the default, each name of its own, and models that were named in full.
    #[test]
    fn the_right_sentence_on_each_day() {
        let hosts = [("anthropic", "api.anthropic.com"), ("openai", "api.openai.com")];
        let prices = Prices { hosts: hosts.map(|(a, b)| (a.to_owned(), b.to_owned())).into(), ..Prices::default() };
        let table = ModelTable::built_in();
        let own = table.aliases.iter().filter(|it| it.model.is_some() || it.auto.is_some()).map(|it| it.name.as_str());
        let named = [
            "gemini-2.5-pro",
            "gemini-2.5-flash",
            "gemini-2.5-flash-lite",
            "models/gemini-3-pro-preview",
            "gemini-3.1-flash-lite",
            "gemini-3.5-flash",
            "openai/gpt-5-2025-08-07",
            "openai/gpt-4.1",
            "anthropic/claude-sonnet-4-5",
            "openrouter/anthropic/claude-sonnet-4.5",
            "demo",
        ];
        let mut out = String::new();
        for day in [date(2026, 11, 28), date(2026, 12, 2), date(2027, 6, 1)] {
            let aliases = Aliases::new(BTreeMap::new(), Vec::new(), table.clone()).0.on(day);
            let default = aliases.default_model().to_owned();
            writeln!(out, "{day}, default {default}").unwrap();
            let names: Vec<&str> = own.clone().chain(named).collect();
            for name in [default.as_str()].into_iter().chain(names) {
                let flash = aliases.auto(name).map(|it| format!(" or {}", aliases.model_of(&it.flash)));
                writeln!(out, "  {name} -> {}{}", aliases.model_of(name), flash.unwrap_or_default()).unwrap();
                for it in notices(name, &aliases, &prices) {
                    writeln!(out, "    {}{}", if it.daily.is_some() { "daily: " } else { "" }, it.text).unwrap();
                }
            }
        }
        expect_file!["retirement/days.txt"].assert_eq(&out);
    }

    /// A file whose default has an end, and a name that leads there.
    #[test]
    fn the_default_and_names_move_on_their_day() {
        let text = r#"
            date = "2026-11-28"
            default = "a-1"
            offered = ["a-1", "a-2"]
            [family.a]
            [[alias]]
            name = "small"
            model = "a-1"
            [[model]]
            id = "a-1"
            family = "a"
            retires = "2027-01-31"
            successor = "a-2"
            [[model]]
            id = "a-2"
            family = "a"
        "#;
        let table = std::sync::Arc::new(ModelTable::parse(text).unwrap());
        let said = |day, name: Option<&str>| {
            let aliases = Aliases::new(BTreeMap::new(), Vec::new(), table.clone()).0.on(day);
            let name = name.unwrap_or(aliases.default_model());
            let said: Vec<String> = notices(name, &aliases, &Prices::default()).into_iter().map(|it| it.text).collect();
            format!("{}: {}", aliases.model_of(name), said.join(" "))
        };
        let (before, soon, after) = (date(2026, 12, 31), date(2027, 1, 30), date(2027, 1, 31));
        assert_eq!([None, Some("small")].map(|it| said(before, it)), ["a-1: ", "a-1: "]);
        assert_eq!(
            said(soon, None),
            "a-1: a-1 will be switched off on 2027-01-31, tomorrow. Its successor is a-2: `/model a-2` chooses it, or \
             `--model a-2`."
        );
        assert_eq!(
            said(soon, Some("small")),
            "a-1: a-1, to which small leads, will be switched off on 2027-01-31, tomorrow; small leads to a-2 from then on."
        );
        assert_eq!(said(after, None), "a-2: castor's default model is a-2 now: a-1 was switched off on 2027-01-31.");
        assert_eq!(said(after, Some("small")), "a-2: small leads to a-2 now: a-1 was switched off on 2027-01-31.");
        let offered: Vec<String> = table.offered(after).into_iter().map(|(id, _)| id).collect();
        assert_eq!(offered, ["a-2"]);
    }
}
