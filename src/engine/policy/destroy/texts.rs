//! Texts of any kind, looked through for what destroys: rows of the tables by their words, and calls.

use super::{
    Signs, checks, code, computed, option_matches,
    table::{CALLS, CODE, Row, When, rows},
};
use crate::engine::policy::shell::{Command, SPAWNS, Word, WordKind, base_name, is_language};

/// What starts a program in a language of which only a few words are enough for that.
const STARTS: &[&str] = &["`", "|", "%x", "cmd(", "ctypes", "exec", "getline", "run-program", "sh(", "system", "$("];
/// Programs that run what was written in a language, or a file, that is full of names: only what starts something counts.
#[rustfmt::skip]
const NAMING: &[&str] = &[
    "bundle", "cmake", "composer", "dart", "deno", "dotnet", "earthly", "go", "gradle", "gradlew", "hatch", "java", "kotlinc",
    "meson", "mvn", "mvnw", "nim", "pdm", "pip", "pip3", "pipenv", "pixi", "poe", "rake", "rust-script", "sbt", "scons",
    "snakemake", "swift", "tcc", "thor", "tox", "vagrant", "zig",
];
/// Programs that are called like variables, files and words of code: `import numpy as np`.
const NAMES: &[&str] = &["dd", "halt", "init", "mount", "np", "passwd", "reboot", "rm", "scrub", "service", "shutdown"];

/// What some programs call it in their code, where that says something else elsewhere.
const OWN: &[(&[&str], &[&str])] = &[
    (&["ant", "mvn", "mvnw"], &["<delete"]),
    (&["cmake"], &["file(REMOVE"]),
    (&["dart"], &[".delete(", ".deleteSync("]),
    (
        &["groovy", "java", "jbang", "jshell", "kotlin", "kotlinc", "scala", "scala-cli"],
        &[".delete()", ".deleteDir()", ".deleteOnExit()", ".deleteRecursively()"],
    ),
    (&["gradle", "gradlew"], &["<Delete>", "delete \"", "delete '", "delete(", "project.delete"]),
    (&["k6"], &["http.del(", "http.request('DELETE'", "http.request(\"DELETE\""]),
    (&["nim"], &["removeDir(", "removeFile("]),
    (&["sbt"], &["IO.delete("]),
    (&["tcc"], &["remove(", "remove_all(", "rmdir(", "unlink("]),
    (&["zig"], &["deleteDir(", "deleteFile(", "deleteTree("]),
];

/// Code in another language: what it deletes with, and the commands that it names.
pub(super) fn in_code(code: &str, program: &str, command: &Command) -> Option<Signs> {
    // What stands before a quote is no part of the name behind it: `system(b"rm x")`, `cmd(~c"rm x")`.
    let plain = code.replace("(b\"", "(\"").replace("(b'", "('").replace("~c\"", "\"");
    let code = plain.as_str();
    let called = called_in(code).map(str::to_owned);
    let spawns = SPAWNS.iter().chain(STARTS).any(|it| code.contains(it));
    // `ruby -run -e rm x`
    let spawns = spawns
        || !is_language(program) && !NAMING.contains(&program)
        || command.args().iter().any(|it| it.text == "-run");
    // In quotes, or called, it is no variable: `sh.rm("x")`.
    let said = |name: &str| {
        ["\"{}\"", "'{}'", "{}(", "\"{} ", "'{} ", "!{}", "%{}"].iter().any(|it| code.contains(&it.replace("{}", name)))
    };
    // Of one letter are variables: `delete a[k]`.
    let is_name = |it: &Row| {
        let name = it.sub.is_empty() && NAMES.contains(&it.program) && !spawns;
        let said = || if NAMING.contains(&program) { has_option(code, it.program) } else { said(it.program) };
        (name || it.program.len() == 1) && !said()
    };
    let named = || rows_that(code, |it| !is_name(it)).map(|it| it.program.to_owned());
    let language = || command.name().is_some_and(|it| is_language(base_name(it)));
    let by_language = || code::in_language(code, program).filter(|_| language()).map(str::to_owned);
    let own = || {
        OWN.iter().filter(|it| it.0.contains(&program)).find_map(|it| it.1.iter().find(|call| code.contains(**call)))
    };
    let called = called.or_else(|| own().map(|it| (*it).to_owned()));
    called.or_else(named).or_else(by_language).map(|it| Signs(vec![program.to_owned(), it]))
}

/// `rm -rf`, `dd if=x`: no variable looks so.
fn has_option(code: &str, name: &str) -> bool {
    let behind = |it: &str| it.starts_with(" -") || it.starts_with(" if=") || it.starts_with(" of=");
    code.match_indices(name).any(|it| code.get(it.0 + name.len()..).is_some_and(behind))
}

/// What destroys by the words of a line, or by what it calls.
pub(super) fn in_own_words(line: &str) -> Option<String> {
    rows_in(line).map(|it| it.program.to_owned()).or_else(|| called_in(line).map(str::to_owned))
}

/// What a code calls to delete.
pub(super) fn called_in(code: &str) -> Option<&'static str> {
    let own = |name: &&&str| {
        code.match_indices(**name).any(|(at, _)| {
            let before = code.get(..at).and_then(|it| it.chars().next_back());
            before.is_none_or(|it| !it.is_alphanumeric() && !matches!(it, '.' | '_'))
        })
    };
    CODE.iter().find(|it| code.contains(**it)).or_else(|| CALLS.iter().find(own)).copied()
}

/// The first row of which all words stand in the text, in whatever order and quoting.
pub(super) fn rows_in(text: &str) -> Option<&'static Row> {
    rows_that(text, |_| true)
}

/// The same of those rows that fit.
fn rows_that(text: &str, fits: impl Fn(&Row) -> bool) -> Option<&'static Row> {
    let joined = text.replace("\\\n", "");
    let clean: String = joined.chars().filter(|it| !matches!(it, '\'' | '"' | '\\')).collect();
    let mut words: Vec<&str> =
        clean.split(|it: char| !(it.is_alphanumeric() || "_-.:+".contains(it))).filter(|it| !it.is_empty()).collect();
    // `-Srm x`, `ext::rm x`
    let stuck = words.iter().filter_map(|it| it.strip_prefix('-').filter(|it| !it.starts_with('-'))?.get(1..));
    let after = words.iter().flat_map(|it| it.split(':').skip(1));
    let more: Vec<&str> = stuck.chain(after).filter(|it| !it.is_empty()).collect();
    words.extend(more);
    words.sort_unstable();
    let has = |word: &str| words.binary_search(&word).is_ok();
    // `git pull && clear`
    let apart = |row: &Row| matches!(row.sub, ["clear" | "sync"]) && !clean.contains(&format!("git {}", row.sub[0]));
    let optional = |row: &Row| match &row.when {
        When::Options(short, long) => words
            .iter()
            .any(|it| option_matches(&Word { text: (*it).to_owned(), kind: WordKind::Literal }, short, long)),
        When::Words(list) => list.iter().any(|it| has(it)),
        When::Begins(list) => list.iter().any(|start| words.iter().any(|it| it.starts_with(start))),
        When::Unless(list) => !list.iter().any(|it| has(it)),
        When::Holds(_) if matches!(row.program, "curl" | "wget" | "http" | "https" | "xh" | "gh" | "glab") => {
            ["DELETE", "archive", "delete"].iter().any(|it| has(it))
        }
        When::Holds(_) if row.sub == ["config"] => words.iter().any(|it| checks::loosens(it, "+")),
        When::Holds(_) if computed::SQL.contains(&row.program) => words.iter().any(|it| checks::is_sql(it)),
        When::Holds(_) if row.program == "kill" => has("1") || has("-1"),
        When::Holds(_) | When::HoldsOutside(_) if matches!(row.program, "find" | "gfind" | "tee" | "cp") => {
            has("-delete") || text.contains("/dev/")
        }
        When::Permits => words.iter().any(|it| it.starts_with('-') && !it.starts_with("--") && it.contains('R')),
        When::Clears(..) => false,
        When::Holds(holds) => {
            let words: Vec<Word> = words.iter().map(|it| Word::literally(it)).collect();
            holds(&words).is_some()
        }
        _ => true,
    };
    rows().find(|row| has(row.program) && row.sub.iter().all(|it| has(it)) && optional(row) && !apart(row) && fits(row))
}
