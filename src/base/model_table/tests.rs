//! Tests of the model table: the file that castor brings, looking models up in it, and files that are none.

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::{
    ModelTable,
    edit_tool::EditTool,
    parameter::Parameter,
    row::{CallIds, StructuredOutput},
    service_life::{NOTICE_DAYS, ServiceState},
    thinking::ThinkingKind,
};
use crate::model::{ModelParams, Thinking, Usage};

#[test]
fn the_file_is_whole() {
    let table = ModelTable::parse(include_str!("models.toml")).unwrap();
    assert_eq!(*ModelTable::built_in(), table);
    assert!(table.rows.len() > 100);
    for row in table.rows.iter() {
        let id = row.id.as_str();
        assert!(!row.source.source.is_empty(), "{id}");
        if let Some(price) = row.price {
            let family = table.family(row).unwrap();
            assert!(family.host.is_none() || family.page.as_ref().is_some_and(|it| it.starts_with("https://")), "{id}");
            assert!(price.read <= table.date(), "{id}");
            for price in [Date::MIN, Date::MAX].map(|it| price.on(it)) {
                let one = Usage { input: 1_000_000, output: 1_000_000, ..Usage::default() };
                assert!((0.0..500.0).contains(&price.cost(&one).as_dollars()), "{id}");
                assert!(price.rates.cached <= price.rates.input, "{id}");
                assert!(price.above.is_none_or(|it| it.1.input > price.rates.input), "{id}");
            }
        }
        if let Some(next) = &row.life.successor {
            assert!(table.row(next).is_some(), "{id}: {next}");
            let last = table.served(next, Date::MAX);
            assert!(!table.row(last).unwrap().life.is_over(Date::MAX), "{id} leads to {last} in the end");
        }
        // The pattern finds its own row, unless one has just that name.
        let bare = id.replace('*', "");
        let found = table.row(&bare).unwrap().id.as_str();
        assert!(found == id || found == bare, "{id}: {found}");
    }
    for model in targets(&table) {
        let row = table.row(&model).unwrap();
        assert!(row.price.is_some() && row.source.confirmed, "{model}");
    }
}

/// Models that castor itself leads to.
fn targets(table: &ModelTable) -> Vec<String> {
    let auto =
        |it: &super::AliasRow| it.auto.iter().flat_map(|it| [it.pro.clone(), it.flash.clone()]).collect::<Vec<_>>();
    let of_aliases = table.aliases.iter().flat_map(|it| it.model.clone().into_iter().chain(auto(it)));
    let all = table.offered.iter().cloned().chain([table.default.clone()]).chain(of_aliases);
    all.filter(|it| table.alias(it).is_none()).collect()
}

/// Says it a month ahead; only a build for release fails, so that nothing turns red by itself.
#[test]
fn castor_leads_to_models_that_are_served_today() {
    let (table, today) = (ModelTable::built_in(), Timestamp::now().to_zoned(TimeZone::UTC).date());
    let mut late = Vec::new();
    for model in targets(&table) {
        match table.row(&model).unwrap().life.on(today) {
            ServiceState::Served => (),
            ServiceState::Retiring { on, .. } => {
                eprintln!(
                    "warning: {model} is switched off on {on}, within {NOTICE_DAYS} days: write a newer models.toml"
                );
            }
            ServiceState::Retired { on } => late.push(format!("{model} was switched off on {on}")),
        }
    }
    late.iter().for_each(|it| eprintln!("warning: {it}: write a newer models.toml"));
    assert!(cfg!(debug_assertions) || late.is_empty(), "{late:?}");
}

#[test]
fn successors_are_served_on_the_tables_own_date() {
    let table = |default: &str, more: &str| {
        let rows =
            "[[model]]\nid = \"a\"\nfamily = \"f\"\nretires = \"2026-12-01\"\n[[model]]\nid = \"b\"\nfamily = \"f\"";
        ModelTable::parse(&format!("date = \"2026-12-01\"\ndefault = \"{default}\"\n{more}\n[family.f]\n{rows}"))
    };
    assert!(table("b", "").is_ok());
    let late = "it leads to a, which is switched off on 2026-12-01, before its own date 2026-12-01";
    assert_eq!(table("a", "").unwrap_err().to_string(), late);
    assert_eq!(table("b", "offered = [\"a\"]").unwrap_err().to_string(), late);
    let alias = "[[alias]]\nname = \"x\"\nmodel = \"a\"";
    assert_eq!(table("b", alias).unwrap_err().to_string(), late);
    let alias = "[[alias]]\nname = \"x\"\nauto = { pro = \"b\", flash = \"c\" }";
    assert_eq!(table("x", alias).unwrap_err().to_string(), "it leads to \"c\", which no row knows");
}

#[test]
fn models_are_found_by_their_own_name() {
    let table = ModelTable::built_in();
    for (model, row) in [
        ("gemini-3.8-flash", "gemini-3.8-flash*"),
        ("models/gemini-3.8-flash", "gemini-3.8-flash*"),
        ("openrouter/google/gemini-3.8-flash:free", "gemini-3.8-flash*"),
        ("gemini-3.9-flash", "gemini-3*"),
        ("gemini-2.5-flash-lite-preview-09-2025", "gemini-2.5-flash-lite*"),
        ("anthropic/claude-opus-4-20250514", "claude-opus-4-20*"),
        ("bedrock/us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5*"),
        ("openrouter/anthropic/claude-opus-4.5", "claude-opus-4-5*"),
        ("vertex/claude-opus-4-5@20251101", "claude-opus-4-5*"),
        ("openai/gpt-5-2025-08-07", "gpt-5-20*"),
        ("openai/gpt-6.2-sol", "gpt-6.2-sol*"),
        ("minimax/MiniMax-M3", "minimax-m3*"),
        ("moonshotai/kimi-k2-0905-preview", "kimi-k2*"),
    ] {
        assert_eq!(table.row(model).map(|it| it.id.as_str()), Some(row), "{model}");
    }
    for model in ["demo", "script", "", "ollama/unheard-of", "claudette/x"] {
        assert!(table.row(model).is_none(), "{model}");
    }
}

#[test]
fn traits_of_families() {
    let table = ModelTable::built_in();
    let of = |model: &str| table.traits(model);
    assert_eq!(of("openai/gpt-6.2-sol").edit, EditTool::ApplyPatch);
    assert_eq!(of("anthropic/claude-opus-5-5").edit, EditTool::Replace);
    assert_eq!(of("anthropic/claude-opus-5-5").thinking, ThinkingKind::Adaptive);
    assert_eq!(of("anthropic/claude-opus-4-5").thinking, ThinkingKind::Budget);
    assert_eq!(of("gemini-2.5-pro").structured, StructuredOutput::WithoutTools);
    assert_eq!([of("gemini-2.5-pro"), of("gemini-4-argon")].map(|it| it.nests_media), [false, true]);
    assert_eq!(of("openrouter/moonshotai/kimi-k2").call_ids, CallIds::Counted);
    assert!(of("openai/gpt-6.2-sol").refused.has(Parameter::ChatTools));
    assert_eq!(of("nobody"), super::ModelTraits::default());
}

#[test]
fn requests_have_nothing_that_a_model_refuses() {
    let table = ModelTable::built_in();
    let fitted = |model: &str, thinking: Thinking| {
        let mut it = ModelParams {
            temperature: Some(0.0),
            top_k: Some(64),
            max_output_tokens: Some(u32::MAX),
            thinking: Some(thinking),
            include_thoughts: true,
            ..ModelParams::default()
        };
        table.fit(model, &mut it);
        (it.temperature.is_some(), it.thinking, it.include_thoughts)
    };
    let level = |it: &str| Thinking::Level(it.to_owned());
    for (model, wanted, expected) in [
        ("gemini-3.8-flash", level("minimal"), (false, Some(level("low")), true)),
        ("gemini-4-argon", Thinking::Budget(0), (false, Some(level("low")), true)),
        ("gemini-3.5-flash-lite", Thinking::Budget(512), (false, Some(level("minimal")), true)),
        ("gemini-2.5-pro", Thinking::Budget(0), (true, Some(Thinking::Budget(128)), true)),
        ("gemini-2.5-flash-lite", Thinking::Budget(0), (true, Some(Thinking::Budget(0)), true)),
        ("openai/gpt-4.1", level("high"), (true, None, false)),
        ("openai/gpt-6.2-sol", level("minimal"), (false, Some(level("low")), true)),
        ("nobody", level("odd"), (true, Some(level("odd")), true)),
    ] {
        assert_eq!(fitted(model, wanted.clone()), expected, "{model} {wanted:?}");
    }
}

#[test]
fn files_that_are_no_table() {
    for (text, why) in [
        ("", "missing field `date`"),
        ("date = \"soon\"\n", "is no day as in 2026-01-31"),
        ("date = \"2026-01-31\"\n", "there is no [[model]] in it"),
        ("<html>", "TOML parse error"),
        ("date = \"2026-01-31\"\n[[model]]\nid = \"a\"\nfamly = \"x\"", "model a: `famly` is none of"),
        ("date = \"2026-01-31\"\n[[model]]\nid = \"a\"\nfamily = \"x\"", "model a: there is no family \"x\""),
        (
            "date = \"2026-01-31\"\n[family.x]\n[[model]]\nid = \"a\"\nfamily = \"x\"\nprice = { input = 1 }",
            "`price` should name `read`",
        ),
        (
            "date = \"2026-01-31\"\n[family.x]\n[[model]]\nid = \"a\"\nfamily = \"x\"\nrefused = [\"messages\"]",
            "unknown variant `messages`",
        ),
    ] {
        let got = ModelTable::parse(text).unwrap_err().to_string();
        assert!(got.contains(why), "{text:?}: {got}");
    }
}
