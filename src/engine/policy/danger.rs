//! Dangerous commands: the rows of `danger.toml`, whose effects neither checkpoint nor sandbox can undo.

use std::sync::LazyLock;

use serde_json::Value;

use super::{
    index::RuleIndex,
    load,
    patterns::{CommandSpelling, MatchCertainty},
    rule::{ArgsMatcher, Rule, Tier},
    shell::{ShellCommand, ShellWord},
};
use castor_base::log::Decision;

struct Table {
    rows: Vec<Rule>,
    index: RuleIndex,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    // A file that does not load asks about nothing; tests see to it that it does.
    let parsed = load::parse(include_str!("danger.toml"), Tier::Default, "default/danger.toml");
    let mut rows = parsed.map(|it| it.0.rules).unwrap_or_default();
    // Nobody can open the file: its lines say nothing.
    rows.iter_mut().for_each(|it| it.source.line = 0);
    Table { index: rows.iter().enumerate().collect(), rows }
});

/// The rows, for people.
pub fn rows() -> &'static [Rule] {
    &TABLE.rows
}

/// Databases that are files: in a root a checkpoint takes back what happens to them.
const OF_FILES: &[&str] = &["duckdb", "sqlite3"];

/// The row that speaks of a command, unless a rule of the user's, which allows it, names the same. `holds_files`: what the
/// command does to files is held and taken back.
pub fn find(spelling: &CommandSpelling, found: Option<&Rule>, holds_files: bool) -> Option<&'static Rule> {
    let program = spelling.command.program()?;
    if holds_files && OF_FILES.contains(&program) {
        return None;
    }
    let mut options = spelling.command.args().iter().map(|it| it.text.as_str()).take_while(|it| *it != "--");
    if options.any(|it| it == "--help" || it.starts_with("--dry-run")) {
        return None;
    }
    // What follows it is another command: of `rm -rf d && ls /` the one is held against a row without the other.
    let alone = spelling.without_line();
    let spelling = alone.as_ref().unwrap_or(spelling);
    let mut rows = TABLE.index.candidates(spelling).into_iter().filter_map(|at| TABLE.rows.get(at));
    rows.find(|row| {
        row.matches_command(spelling) == MatchCertainty::Yes && !found.is_some_and(|it| is_named_by(row, it))
    })
}

/// Tells whether a rule that allows has in it all that the row is about: taken for a command, it is one of the row.
fn is_named_by(row: &Rule, rule: &Rule) -> bool {
    if rule.decision != Decision::Allow || rule.tier < Tier::User {
        return false;
    }
    let is_hit = |words: Vec<&str>| {
        let command = ShellCommand::new(words.iter().map(|it| ShellWord::from_literal(it)).collect(), words.join(" "));
        row.matches_command(&CommandSpelling::new(&command, None, &Value::Null)) == MatchCertainty::Yes
    };
    match &rule.matcher {
        ArgsMatcher::Prefixes(list) => list.iter().any(|it| is_hit(it.iter().map(String::as_str).collect())),
        ArgsMatcher::Command(it) => {
            is_hit(it.as_str().trim_start_matches("^(?:").trim_end_matches(')').split(' ').collect())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{TABLE, find, load, rows};
    use crate::policy::{patterns::CommandSpelling, shell};

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
                let found = |it| find(&CommandSpelling::new(it, Some(text), &args), None, false).is_some();
                assert!(line.script().commands.iter().any(found), "{text}");
            }
        }
        let (line, args) = (shell::parse("other"), json!({}));
        let others = TABLE.index.candidates(&CommandSpelling::new(&line.script().commands[0], None, &args));
        assert!(others.len() < 5, "{others:?}");
    }
}
