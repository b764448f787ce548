//! Words on which it hangs whether a command destroys, and that only the shell knows: what they may come to.
//!
//! `git reset $(echo --hard)` is told by what the script itself says. What that does not say is weighed: a branch's name
//! or a commit's, which git, gh or a variable of the environment gives, is everyday and no option (git takes no name
//! that begins with a dash); the content of a file may be anything, and no name is commonly read from one, and so may be
//! what people wrote into a commit. So
//! `git checkout "$BRANCH"` and `git push origin "$(git branch --show-current)"` run in yolo, and
//! `git push origin $(cat x)` is asked about.

use super::{checks, prints};
use crate::engine::policy::{
    danger::git_words,
    pieces::{self, ANY, Index, TOO_MUCH},
    shell::{self, Command, Script, Value, Word, WordKind, base_name, changed},
};

/// Clients of databases.
#[rustfmt::skip]
pub(super) const SQL: &[&str] = &[
    "cbq", "clickhouse", "clickhouse-client", "clickhouse-local", "cqlsh", "cypher-shell", "db2", "duckdb", "hbase",
    "heroku", "impala-shell", "mariadb", "mongo", "mongosh", "mssql-cli", "mysql", "mysqlsh", "pgcli", "presto",
    "prisma", "psql", "rails", "rman", "snow", "sqlcipher", "sqlcmd", "sqlite3", "sqlplus", "trino", "tsql", "usql",
    "wp", "ysqlsh",
];
/// Sub-commands of git whose options throw away what was not kept elsewhere.
const HANG: &[&str] = &["branch", "checkout", "clean", "push", "reset", "switch"];
/// What prints names, numbers and times, or what a server says of them.
const NAMES: &[&str] =
    &["basename", "date", "dirname", "gh", "glab", "hostname", "id", "mktemp", "nproc", "pwd", "uname", "wc", "whoami"];
/// What passes on some of what it reads.
const FILTERS: &[&str] = &["awk", "cut", "fzf", "grep", "head", "jq", "sed", "sort", "tail", "tr", "uniq", "xargs"];

/// Databases whose clients read commands, beside those of SQL.
const STORES: &[&str] = &["nc", "ncat", "redis-cli", "valkey-cli"];

/// More commands in a script than are looked through for what a word of it prints: all of them are, for each word.
const MAX_COMMANDS: usize = 512;
/// More values of one command's words are too much as well.
const MAX_SOURCES: usize = 64;

/// What the script says of a command in other places: options that its substitutions print, and what a client of a
/// database reads.
pub(super) fn said_elsewhere(command: &Command, program: &str, script: &Script) -> Vec<Word> {
    let open = command.args().iter().filter(|it| may_be_option(it));
    let sources = open.flat_map(|it| sources(it, script)).filter(|it| shell::substitutes(it)).take(MAX_SOURCES);
    let sources: Vec<&str> = sources.collect();
    let mut res: Vec<Word> = match sources.len() == MAX_SOURCES || !sources.is_empty() && is_long(script) {
        true => vec![Word::unknown()],
        false => sources.into_iter().flat_map(|it| script.commands_in(it)).flat_map(options).collect(),
    };
    by_others(program, command, script, &mut res);
    // `echo -X DELETE x | xargs curl`
    if command.args().iter().any(Word::is_unknown) {
        let echoed = script.commands.iter().filter(|it| is_echo(it)).take(MAX_SOURCES).flat_map(Command::args);
        res.extend(echoed.flat_map(|it| it.text.split_whitespace()).map(Word::literally));
    }
    let shell = || command.args().iter().take(3).any(|it| it.text == "dbshell");
    if SQL.contains(&program) || STORES.contains(&program) || matches!(program, "python" | "manage.py") && shell() {
        let prints = |it: &&Command| matches!(it.name(), Some("echo" | "printf"));
        let filled = script.commands.iter().filter(|it| it.name() == Some("printf")).filter_map(filled);
        let printed = script.commands.iter().filter(prints).flat_map(Command::args).cloned().chain(filled);
        // A here-document may be another's, whom the client reads from or who runs it.
        let inputs = || script.commands.iter().filter_map(|it| it.input.as_ref());
        // `dr${x:-op} table`
        let put = inputs().filter(|it| !it.literal).flat_map(|it| pieces::spellings(&Word::expanded(&it.text), script));
        let put: Vec<Word> = put.map(|it| Word::literally(&it)).collect();
        let inputs = inputs().map(|it| Word::literally(&it.text)).chain(put);
        let strings = script.values.all.iter().filter(|it| it.name.is_none()).map(|it| it.word.clone());
        res.extend(inputs.chain(printed).chain(strings));
    }
    res
}

/// What `printf 'dro%s table x' p` prints.
fn filled(command: &Command) -> Option<Word> {
    let mut words = command.args().iter().map(|it| it.text.as_str());
    let mut pieces = words.find(|it| *it != "--")?.split("%s");
    let first = pieces.next()?.to_owned();
    let text = pieces.fold(first, |text, piece| text + words.next().unwrap_or_default() + piece);
    Some(Word::literally(&text))
}

/// What variables say for a program's words, and a `yes` that answers before anybody is asked.
fn by_others(program: &str, command: &Command, script: &Script, res: &mut Vec<Word>) {
    let args = |it: &Command, words: &[&str]| it.args().iter().any(|it| words.contains(&it.text.as_str()));
    let runs = |names: &[&str], words: &[&str]| {
        let named = |it: &Command| it.name().is_some_and(|it| names.contains(&base_name(it)));
        script.commands.iter().any(|it| named(it) && (words.is_empty() || args(it, words)))
    };
    match program {
        "terraform" | "tofu" | "terragrunt" => {
            let planned = args(command, &["apply"]) && runs(&[program], &["-destroy", "--destroy"]);
            let yes = says_yes(script).then_some("-auto-approve");
            let words = yes.into_iter().chain(planned.then_some("-destroy")).map(Word::literally);
            res.extend(words.chain(assigned(script, "TF_CLI_ARGS").flat_map(|it| it.split_whitespace().map(bare))));
        }
        "pulumi" if says_yes(script) => res.push(Word::literally("--yes")),
        "cdk" if says_yes(script) => res.push(Word::literally("never")),
        "cargo" if args(command, &["clean"]) => {
            let folders = assigned(script, "CARGO_TARGET_DIR").chain(assigned(script, "CARGO_BUILD_TARGET_DIR"));
            res.extend(folders.map(|it| Word::literally(&format!("--target-dir={it}"))));
        }
        "zip" => res.extend(assigned(script, "ZIPOPT").flat_map(|it| it.split_whitespace().map(bare))),
        // What it writes begins by dropping all that is there.
        "psql" if runs(&["pg_dump", "pg_dumpall"], &["-c", "--clean"]) => res.push(Word::literally("drop")),
        // Its dumps begin by dropping each table.
        "mariadb" | "mysql" if runs(&["mariadb-dump", "mysqldump"], &[]) => res.push(Word::literally("drop")),
        "manage.py" | "python"
            if args(command, &["dbshell"]) && runs(&["manage.py", "python", "python3"], &["sqlflush"]) =>
        {
            res.push(Word::literally("delete"));
        }
        _ => (),
    }
}

fn bare(text: &str) -> Word {
    Word::literally(text.trim_matches(['"', '\'']))
}

/// `yes | terraform apply`, `echo yes | terraform apply`
fn says_yes(script: &Script) -> bool {
    let yes = |it: &Command| match it.name().map(base_name) {
        Some("yes") => true,
        Some("echo" | "printf") => it.args().iter().any(|it| matches!(it.text.trim_end_matches("\\n"), "yes" | "y")),
        _ => false,
    };
    let strings = || script.values.all.iter().filter(|it| it.name.is_none());
    script.commands.iter().any(yes) || strings().any(|it| matches!(it.word.text.as_str(), "yes" | "y"))
}

/// What the script sets variables to whose names begin so.
fn assigned<'s>(script: &'s Script, start: &'s str) -> impl Iterator<Item = &'s str> {
    let named = move |it: &&Value| it.name.as_ref().is_some_and(|it| it.starts_with(start));
    script.values.all.iter().filter(named).map(|it| it.word.text.as_str())
}

/// Whether one word more or less makes the command destroy.
pub(super) fn hangs_on_a_word(program: &str, args: &[Word]) -> bool {
    program == "git" && git_words(args).first().is_some_and(|it| HANG.contains(&it.text.as_str()))
}

/// The words with what those may come to that only the shell knows: each reading stands in one of them at least.
/// `hangs`: what nobody can guess may be an option.
pub(super) fn variants(args: &[Word], script: &Script, hangs: bool) -> Vec<Vec<Word>> {
    let is_open = |it: &Word| it.kind == WordKind::Expanded && !it.is_unknown();
    let readings: Vec<Vec<String>> =
        args.iter().map(|it| if is_open(it) { pieces::spellings(it, script) } else { Vec::new() }).collect();
    let count = readings.iter().map(Vec::len).max().unwrap_or_default();
    let asked = |word: &Word| hangs && may_be_option(word);
    let read_as = |(word, readings): (&Word, &Vec<String>), at: usize, split: bool| -> Vec<Word> {
        match readings.get(at).or(readings.last()) {
            Some(it) if it.starts_with(TOO_MUCH) => vec![Word::unknown()],
            Some(it) if !it.contains(ANY) && split => apart(it).map(Word::literally).collect(),
            Some(it) if !it.contains(ANY) => it.split_whitespace().map(Word::literally).collect(),
            Some(_) if asked(word) && comes_from_anywhere(word, script) => vec![Word::unknown()],
            _ => vec![word.clone()],
        }
    };
    let ways = if Index::of(script).parts_oddly(script) { [false, true].as_slice() } else { &[false] };
    let each = (0..count).flat_map(|at| ways.iter().map(move |split| (at, *split)));
    each.map(|(at, split)| args.iter().zip(&readings).flat_map(|it| read_as(it, at, split)).collect()).collect()
}

/// The pieces of a value that may be words where a script says what parts them: `IFS=:`.
fn apart(value: &str) -> impl Iterator<Item = &str> {
    value.split(|it: char| !(it.is_alphanumeric() || matches!(it, '-' | '_'))).filter(|it| !it.is_empty())
}

/// Programs that a word more makes destroy or run something, and options behind which one word does.
const OPEN: &[(&str, &[&str])] = &[
    ("curl", &["-X", "--request"]),
    ("find", &[]),
    ("gfind", &[]),
    ("rsync", &[]),
    ("wget", &["--method"]),
    ("xh", &[]),
];
/// Of these only the first word may be one.
const OPEN_FIRST: &[&str] = &["bsdtar", "gtar", "sed", "tar"];
/// What prints what is in a file, or what a server says.
const TELLS: &[&str] = &["awk", "base64", "cat", "curl", "cut", "grep", "head", "jq", "sed", "tail", "wget"];

/// The word of a file that such a program is handed as an option: `find . $(cat x)`. In quotes it is one word, and mostly
/// a value.
pub(super) fn handed_by_file<'a>(program: &str, args: &'a [Word], script: &Script) -> Option<&'a Word> {
    let (count, options) = match OPEN.iter().find(|it| it.0 == program) {
        Some((_, options)) => (args.len(), *options),
        None if OPEN_FIRST.contains(&program) => (1, [].as_slice()),
        None => return None,
    };
    let before = std::iter::once(None).chain(args.iter().map(Some));
    let asked = |it: Option<&Word>| it.is_some_and(|it| options.contains(&it.text.as_str()));
    let open = |it: &&(&Word, Option<&Word>)| {
        may_be_option(it.0)
            && (asked(it.1) || !it.0.text.starts_with('"'))
            && sources(it.0, script).any(|it| is_of_file(it, script))
    };
    let words: Vec<(&'a Word, Option<&Word>)> = args.iter().zip(before).take(count).collect();
    words.iter().find(open).map(|it| it.0)
}

/// `$(cat x)`, `$(<x)`: the first that runs in it reads, or another.
fn is_of_file(text: &str, script: &Script) -> bool {
    let reads =
        |it: &Command| matches!(it.name().map(base_name), Some("cat" | "curl" | "wget")) && !it.args().is_empty();
    if !is_long(script) && script.commands_in(text).any(reads) {
        return true;
    }
    let text = text.trim_matches('"');
    let Some(inside) = text.strip_prefix("$(").or_else(|| text.strip_prefix('`')).map(str::trim_start) else {
        return false;
    };
    let name = inside.split(|it: char| it.is_whitespace() || it == '<').next().unwrap_or_default();
    name.is_empty() || TELLS.contains(&base_name(name))
}

/// Whether a word may be whatever a file says.
fn comes_from_anywhere(word: &Word, script: &Script) -> bool {
    sources(word, script).any(|it| prints_anything(it, script)) || is_read_from_anywhere(word, script)
}

/// `while read a; do git push origin $a; done < x`: names that git lists are no options, those in a file may be.
fn is_read_from_anywhere(word: &Word, script: &Script) -> bool {
    const READERS: &[&str] = &["mapfile", "read", "readarray"];
    let names = || changed::names_in(&word.text).filter(|it| !it.is_empty());
    let reads = |it: &Command| {
        it.name().is_some_and(|it| READERS.contains(&it))
            && it.args().iter().any(|it| names().any(|name| it.text.split('[').next() == Some(name)))
    };
    let tells = |it: &Command| {
        let name = it.name().map(base_name).unwrap_or_default();
        // What comes behind `done < <(git tag)` is listed in front of it.
        let called = || hangs_on_a_word(name, it.args()) && !git_words(it.args()).iter().any(|it| it.text == "branch");
        is_echo(it) || READERS.contains(&name) || prints_names(it) || filters(it) || called()
    };
    let Some(at) = script.commands.iter().position(reads) else { return false };
    let mut inputs = script.redirects.iter().filter(|it| !it.writes).peekable();
    let (from_file, piped) = match inputs.peek() {
        // `done < <(git branch)`: its commands are listed behind.
        Some(_) => (!inputs.all(|it| it.target.text.starts_with("<(")), script.commands.as_slice()),
        None => (false, script.commands.get(..at).unwrap_or_default()),
    };
    let first = piped.iter().any(prints::takes_first_word);
    from_file || !piped.iter().all(|it| tells(it) || first && prints::begins_with_hash(it))
}

/// `"$T"` behind `T=$(mktemp)`: what the script made for itself, whatever it is called.
pub(super) fn is_temporary(word: &Word, script: &Script) -> bool {
    let Some(name) = variable(word.text.trim_matches('"')) else { return false };
    let index = Index::of(script);
    let shadowed = script.functions.iter().any(|it| it == "mktemp") || script.assigned.iter().any(|it| it == "PATH");
    let is_made = |text: &str| {
        let inside = text.trim_matches('"').strip_prefix("$(").and_then(|it| it.strip_suffix(')'));
        let made = |it: &Command| it.name() == Some("mktemp") && it.args().iter().all(|it| it.literal().is_some());
        inside.and_then(|it| index.command(it, script)).is_some_and(made)
    };
    let mut set = script.values.all.iter().filter(|it| it.name.as_deref() == Some(name)).peekable();
    let known = word.kind == WordKind::Expanded && !shadowed && !index.sets();
    known && set.peek().is_some() && set.all(|it| !it.appends && is_made(&it.word.text))
}

/// The name in `$T` and `${T}`, when that is all of it.
fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let name = name.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(name);
    let plain = !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    plain.then_some(name)
}

/// Who hands `kill` every process, or all of somebody: `pgrep . | xargs kill`, `kill $(ps -eo pid=)`.
pub(super) fn lists_all_processes(script: &Script) -> Option<&str> {
    const FILTERS: &[&str] = &["awk", "egrep", "grep", "perl", "rg", "sed"];
    let filtered = || script.commands.iter().any(|it| it.name().is_some_and(|it| FILTERS.contains(&base_name(it))));
    let all = |it: &&Command| {
        let text = |list: &[&str]| it.args().iter().any(|it| list.iter().any(|start| it.text.starts_with(start)));
        match it.name().map(base_name) {
            Some("pgrep") => checks::pkill(it.args()).is_some(),
            Some("ps") => text(&["-e", "-A", "a", "-a", "ax", "-x"]) && !text(&["-p", "-C", "--pid"]) && !filtered(),
            _ => false,
        }
    };
    script.commands.iter().find(all).and_then(Command::name)
}

/// Whether only the shell knows how the word begins.
fn may_be_option(word: &Word) -> bool {
    word.kind == WordKind::Expanded && word.text.trim_start_matches('"').starts_with(['$', '`'])
}

/// The word, and what a variable is set to that it is.
fn sources<'a>(word: &'a Word, script: &'a Script) -> impl Iterator<Item = &'a str> {
    let text = word.text.trim_matches('"');
    let name = text.strip_prefix('$').map(|it| it.trim_matches(['{', '}'])).map(|it| it.trim_end_matches("[@]"));
    let set = script.values.all.iter().filter(move |it| it.name.is_some() && it.name.as_deref() == name);
    [text].into_iter().chain(set.map(|it| it.word.text.as_str()))
}

fn is_long(script: &Script) -> bool {
    script.commands.len() > MAX_COMMANDS
}

fn is_echo(command: &Command) -> bool {
    matches!(command.name(), Some("echo" | "printf"))
}

/// What of a command's words may be an option in what it prints. Those of others than `echo` are mostly its own.
fn options(command: &Command) -> Vec<Word> {
    let echo = is_echo(command);
    let signs: &[char] = if echo { &['-', '+', ':'] } else { &['-'] };
    let is_piece = |it: char| it.is_alphanumeric() || "-_.=+:/".contains(it);
    let words = command.args().iter().flat_map(|it| it.text.split(move |it| !is_piece(it)));
    let long = |it: &&str| it.starts_with("--") && it.len() > 3;
    words.filter(|it| it.starts_with(signs) && (echo || long(it))).map(Word::literally).collect()
}

fn prints_anything(text: &str, script: &Script) -> bool {
    if shell::substitutes(text) && is_long(script) {
        return true;
    }
    let first = !text.contains([';', '&', '\n']) && script.commands_in(text).any(prints::takes_first_word);
    let names = |it: &Command| prints_names(it) || first && prints::begins_with_hash(it);
    let from_git = script.commands_in(text).any(names);
    let filters = |it: &Command| from_git && filters(it);
    let coded = |it: &Command| it.text.replace("\\n", "").contains('\\');
    // `$(<f)` has no command in it.
    text.contains("$(<") || script.commands_in(text).any(|it| !(is_echo(it) && !coded(it) || names(it) || filters(it)))
}

fn filters(command: &Command) -> bool {
    command.name().is_some_and(|it| FILTERS.contains(&base_name(it))) && !may_make_option(command.args())
}

/// Whether what a command prints may begin with a dash because its words say so: `basename x/--hard`, `date +--hard`.
fn may_make_option(args: &[Word]) -> bool {
    let begins = |it: &str| {
        let after = |sign: &str| it.split(sign).skip(1).any(|it| it.starts_with(|it: char| it.is_alphanumeric()));
        it.contains("--") || after("/-") || after("+-") || after("\"-") || after("'-")
    };
    let ended = args.iter().skip_while(|it| it.text != "--").skip(1).any(|it| it.text.starts_with('-'));
    let parent = |it: &Word| it.text.starts_with('-') && it.text.contains('/') && !it.text.contains('=');
    ended || args.iter().any(|it| begins(it.text.trim_start_matches('-')) || parent(it))
}

fn prints_names(command: &Command) -> bool {
    let Some(name) = command.name().map(base_name).filter(|_| !may_make_option(command.args())) else { return false };
    // What people write there, an attacker may write.
    const WRITTEN: &[&str] = &["api", "body", "comment", "message", "title"];
    let written = || command.args().iter().any(|it| WRITTEN.iter().any(|field| it.text.contains(field)));
    let forge = matches!(name, "gh" | "glab");
    NAMES.contains(&name) && !(forge && written()) || name == "git" && prints::names(command)
}
