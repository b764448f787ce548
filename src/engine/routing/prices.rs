//! Model prices of a session: what the user says, else what makers ask for their models on services of their own.

use std::collections::BTreeMap;

use super::aliases::Aliases;
use castor_base::{
    model_table::{ModelTable, name_pattern::undated, row::ModelRow},
    price::Price,
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// Prices by model, as the user says.
    pub configured: BTreeMap<String, Price>,
    /// The hosts of providers. Who serves another's models has prices of its own.
    pub hosts: BTreeMap<String, String>,
}

impl Prices {
    pub fn of(&self, model: &str, aliases: &Aliases) -> Option<Price> {
        let name = model.trim_start_matches("models/");
        let said = [model, name, undated(name)].into_iter().find_map(|it| self.configured.get(it));
        said.copied().or_else(|| self.listed(name, aliases))
    }

    fn listed(&self, name: &str, aliases: &Aliases) -> Option<Price> {
        let (models, day) = (aliases.models(), aliases.day());
        let row = models.row(name).filter(|it| self.is_makers(name, it, models))?;
        models.answering(row, day).price.map(|it| it.on(day))
    }

    /// Tells whether the model is asked at its maker's own service.
    pub fn is_makers(&self, model: &str, row: &ModelRow, models: &ModelTable) -> bool {
        let makers = models.family(row).and_then(|it| it.host.as_ref());
        match model.trim_start_matches("models/").split_once('/') {
            Some((provider, _)) => makers.is_some() && self.hosts.get(provider) == makers,
            None => makers.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::civil::{Date, date};

    use super::{Aliases, Prices};
    use castor_base::{model_table::ModelTable, money::Money};

    fn on(day: Date) -> Aliases {
        Aliases::new(BTreeMap::new(), Vec::new(), ModelTable::built_in()).0.on(day)
    }

    #[test]
    fn prices_hold_for_the_makers_own_service() {
        let hosts = [("mine", "api.anthropic.com"), ("gateway", "example.com")];
        let prices = Prices { hosts: hosts.map(|(a, b)| (a.to_owned(), b.to_owned())).into(), ..Prices::default() };
        for (model, is_known) in [
            ("gemini-3.8-flash", true),
            ("models/gemini-3.8-flash", true),
            ("gemini-x", false),
            ("mine/claude-opus-5", true),
            ("mine/claude-opus-4-20250514", true),
            ("mine/gemini-3.8-flash", false),
            ("gateway/claude-opus-5", false),
            ("nobody/claude-opus-5", false),
            ("claude-opus-5", false),
        ] {
            assert_eq!(prices.of(model, &on(date(2026, 11, 28))).is_some(), is_known, "{model}");
        }
    }

    #[test]
    fn a_price_changes_on_its_day_and_the_user_knows_better() {
        let input = |prices: &Prices, day| prices.of("gemini-4-argon", &on(day)).unwrap().rates.input;
        let none = Prices::default();
        assert_eq!([date(2026, 11, 30), date(2026, 12, 1)].map(|it| input(&none, it)), [2.0, 4.0].map(Money::dollars));
        let mut own = none.of("gemini-4-argon", &on(date(2026, 11, 30))).unwrap();
        own.rates.input = Money::dollars(9.0);
        let own = Prices { configured: [("gemini-4-argon".to_owned(), own)].into(), ..none };
        assert_eq!(input(&own, date(2026, 12, 1)), Money::dollars(9.0));
    }

    #[test]
    fn the_successor_that_answers_sets_the_price() {
        let price = |model: &str, day| Prices::default().of(model, &on(day)).unwrap();
        let (last, first) = (date(2026, 10, 7), date(2026, 10, 8));
        let [old, new] = ["gemini-3.5-flash", "gemini-3.6-flash"];
        assert_ne!(price(old, last), price(new, last));
        assert_eq!(price(old, first), price(new, first));
        // What is switched off without that keeps its own.
        let gone = "gemini-2.0-flash";
        assert_eq!(price(gone, Date::MIN), price(gone, Date::MAX));
    }
}
