//! Commands whose effect neither a checkpoint nor the sandbox takes back: the rows of `danger.toml`.

use std::{collections::HashMap, sync::LazyLock};

use serde_json::Value;

use super::{
    load,
    patterns::{Hit, Spelling},
    rule::{Matcher, Rule, Tier},
    shell::{Command, Word},
};
use crate::base::log::Decision;

struct Table {
    rows: Vec<Rule>,
    by_program: HashMap<String, Vec<usize>>,
    /// Rows of which the program's name is only begun.
    others: Vec<usize>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    // A file that does not load asks about nothing; tests see to it that it does.
    let parsed = load::parse(include_str!("danger.toml"), Tier::Default, "default/danger.toml");
    let mut rows = parsed.map(|it| it.0.rules).unwrap_or_default();
    let (mut by_program, mut others) = (HashMap::<String, Vec<usize>>::new(), Vec::new());
    for (at, row) in rows.iter_mut().enumerate() {
        // Nobody can open the file: its lines say nothing.
        row.source.line = 0;
        for program in programs(&row.matcher) {
            match program {
                Some(it) => by_program.entry(it).or_default().push(at),
                None => others.push(at),
            }
        }
    }
    Table { rows, by_program, others }
});

/// The rows, for people.
pub fn rows() -> &'static [Rule] {
    &TABLE.rows
}

/// The row that speaks of a command, unless a rule of the user's, which allows it, names the same.
pub fn find(spelling: &Spelling, found: Option<&Rule>) -> Option<&'static Rule> {
    let program = spelling.command.program()?.to_ascii_lowercase();
    let mut options = spelling.command.args().iter().map(|it| it.text.as_str()).take_while(|it| *it != "--");
    if options.any(|it| it == "--help" || it.starts_with("--dry-run")) {
        return None;
    }
    let own = TABLE.by_program.get(&program).into_iter().flatten();
    // What follows it is another command: of `rm -rf d && ls /` the one is held against a row without the other.
    let spelling = &spelling.alone();
    let mut rows = own.chain(&TABLE.others).filter_map(|at| TABLE.rows.get(*at));
    rows.find(|row| row.matches_command(spelling) == Hit::Yes && !found.is_some_and(|it| is_named_by(row, it)))
}

/// Whether a rule that allows has in it all that the row is about: taken for a command, it is one of the row.
fn is_named_by(row: &Rule, rule: &Rule) -> bool {
    if rule.decision != Decision::Allow || rule.tier < Tier::User {
        return false;
    }
    let is_hit = |words: Vec<&str>| {
        let command = Command::new(words.iter().map(|it| Word::literally(it)).collect(), words.join(" "));
        row.matches_command(&Spelling::new(&command, None, &Value::Null)) == Hit::Yes
    };
    match &rule.matcher {
        Matcher::Prefixes(list) => list.iter().any(|it| is_hit(it.iter().map(String::as_str).collect())),
        Matcher::Command(it) => {
            is_hit(it.as_str().trim_start_matches("^(?:").trim_end_matches(')').split(' ').collect())
        }
        _ => false,
    }
}

/// The programs that a row is about; `None`: only the beginning of a name is said.
fn programs(matcher: &Matcher) -> Vec<Option<String>> {
    let first = |it: &str| it.split(' ').next().unwrap_or_default().to_ascii_lowercase();
    match matcher {
        Matcher::Prefixes(list) => list.iter().map(|it| it.first().map(|it| first(it))).collect(),
        Matcher::Command(it) => {
            let pattern = it.as_str().trim_start_matches("^(?:").trim_start_matches("(?i)");
            let alternatives = match pattern.strip_prefix('(') {
                Some(it) => it.split(')').next().unwrap_or_default(),
                None => pattern.split(' ').next().unwrap_or_default(),
            };
            alternatives.split('|').flat_map(variants).collect()
        }
        _ => vec![None],
    }
}

/// `python3?` is both; what has more signs in it is only begun.
fn variants(name: &str) -> Vec<Option<String>> {
    let plain = |it: &str| it.chars().all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it));
    match name.strip_suffix('?') {
        Some(long) if plain(long) => {
            let short = long.get(..long.len() - 1).unwrap_or_default();
            vec![Some(long.to_owned()), Some(short.to_owned())]
        }
        None if plain(name) => vec![Some(name.to_owned())],
        _ => vec![None],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{TABLE, find, load, rows};
    use crate::engine::policy::{patterns::Spelling, shell};

    #[test]
    fn rows_are_held_to_their_examples() {
        let (_, warnings) = load::parse(include_str!("danger.toml"), super::Tier::Default, "danger.toml").unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        for row in rows() {
            load::check_examples(row).unwrap_or_else(|why| panic!("{}: {why}", row.name("x")));
            assert!(!row.examples.matches.is_empty() && !row.examples.not_matches.is_empty(), "{}", row.name("x"));
            // They are found by the names of their programs, too.
            for text in &row.examples.matches {
                let (line, args) = (shell::parse(text), json!({ "command": text }));
                let found = |it| find(&Spelling::new(it, Some(text), &args), None).is_some();
                assert!(line.script().commands.iter().any(found), "{text}");
            }
        }
        assert!(TABLE.others.len() < 5, "{:?}", TABLE.others);
    }
}
