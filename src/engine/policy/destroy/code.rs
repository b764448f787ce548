//! Code on a command line in another language: what clients of services and databases call to delete, names that are put
//! together where nobody reads them, and what the shell puts into it.

mod aliases;
mod calls;
mod glue;
mod libraries;
mod sent;

use super::{
    super::{
        pieces::{self, ANY},
        shell::{Command, SPAWNS, Script, Word, WordKind, base_name, is_language},
    },
    Place, Signs, UNSEEN, by_table, in_code,
};

/// What deletes by a word of its own, wherever that lies.
const DELETES: &[&str] = &[
    "collection.drop",
    "deleteMany",
    "deleteOne",
    "dropCollection",
    "dropDatabase",
    "dropTable",
    "drop_collection(",
    "drop_database(",
    "drop_table",
    "findOneAndDelete",
    "session.delete(",
    ".delete()",
    "->delete(",
    "->forceDelete(",
    "->truncate(",
    ".delete({",
    ".delete_all",
    ".destroy_all",
    ".destroy_by",
    ".destroy({",
    ".drop()",
    ".drop_all(",
    "\").delete",
    ").del()",
    ").remove({",
    ").truncate()",
    "&:delete)",
    "&:delete_all",
    "&:destroy!",
    "&:destroy)",
    "&:destroy_all",
    "&:purge)",
    "&:purge_later",
    "::destroy(",
    "File.truncate",
    "Schema::drop",
    "Storage::delete",
    "connection.truncate",
    "execute(delete(",
    "recursiveDelete",
    "truncate_tables",
    "wp_delete_",
    ".terminate_",
    "::truncate(",
    "FLUSHALL",
    "FLUSHDB",
    "TerminateInstances",
    "flushAll(",
    "flushDb(",
    "flushall(",
    "flushdb(",
];
/// What hands SQL to a database.
const QUERIES: &[&str] = &["execute", "query", "Query", "exec(", "connection", ".run(", "raw(", "Raw", "sql("];
const SQL: &[&str] = &[
    "drop table",
    "drop database",
    "drop schema",
    "drop view",
    "drop index",
    "drop column",
    "delete from",
    "truncate table",
    "\"truncate ",
    "'truncate ",
    "`truncate ",
];

/// Ways to call what has no name in the code.
const REFLECTS: &[&str] = &[
    "(0, eval)",
    "(0,eval)",
    "= eval;",
    "= exec;",
    "=eval;",
    "=exec;",
    "InteractiveConsole",
    "\\u006",
    "\\x6",
    "code.interact",
    "getfield(Base",
    "globalThis.eval",
    "pickle.loads(b",
    "pty.spawn",
    "strrev(",
    "&{\"",
    "&{'",
    "._load(",
    ".constructor(",
    "Code.eval_",
    "Eval.me(",
    "Meta.parse",
    "Reflect.apply(",
    "Reflect.get(",
    "[\"constructor\"]",
    "['constructor']",
    "__builtins__",
    "__dict__[",
    "__getattribute__",
    "__subclasses__",
    "builtins.eval",
    "builtins.exec",
    "call_user_func",
    "constructor.constructor",
    "create_function",
    "erl_eval",
    "eval(parse",
    "getattr(__import__",
    "getattr(builtins",
    "getattr(os",
    "getattr(shutil",
    "getattr(subprocess",
    "global[",
    "globalThis[",
    "globals().get(",
    "globals()[",
    "loadstring(",
    "locals()[",
    "mainModule",
    "marshal.loads",
    "methodcaller",
    "process.binding",
    "process[",
    "runInContext",
    "runInNewContext",
    "runInThisContext",
    "vars()[",
    "vars(os",
];
/// What makes text of what nobody can read; harmless where nothing is run.
const DECODES: &[&str] = &[
    "\"[::-1]",
    "\"\".join([",
    "\"base64\"",
    "\"hex\"",
    "'[::-1]",
    "''.join([",
    "'base64'",
    "'hex'",
    "\\u007",
    "\\x7",
    "atob(",
    "b32decode",
    "b64decode",
    "base64_decode",
    "decode64",
    "decode_base64",
    "fromCharCode",
    "fromCodePoint",
    "fromhex",
    "hex2bin",
    "rot13",
    "rot_13",
    "string.char(",
    "unhexlify",
    "unpack(",
];
/// Languages in which text is run without brackets, and those that join it by a dot.
const BARE: &[&str] = &["irb", "jruby", "perl", "pry", "rails", "raku", "ruby", "tclsh"];
const RUBY: &[&str] = &["irb", "jruby", "pry", "rails", "ruby"];
const DOTTED: &[&str] = &["perl", "php", "raku"];
const AWK: &[&str] = &["awk", "gawk", "goawk", "mawk", "nawk", "original-awk"];

/// What deletes or hides in code that `program` runs.
pub(super) fn in_language(code: &str, program: &str) -> Option<&'static str> {
    if AWK.contains(&program) {
        return None;
    }
    let edited =
        edits(code).then(|| without_text(code, program)).filter(|it| has(it, OF_TEXT).is_none() && !spawns(it));
    let code = edited.as_deref().unwrap_or(code);
    deletes(code)
        .or_else(|| libraries::deletes(code, program))
        .or_else(|| aliases::deletes(code))
        .or_else(|| hides(code, program))
}

/// What a call in code does that is another program's command line, wherever that works.
pub(super) fn called(command: &Command, place: &Place) -> Option<Signs> {
    let code = command.code.as_deref()?;
    calls::find(code).iter().find_map(|(program, words)| by_table(program, words, &place.apart()))
}

/// Whether it puts one text in another's place in a file: what it names may be only such a text.
fn edits(code: &str) -> bool {
    let replaces = ["replace(", "re.sub("].iter().any(|it| code.contains(it));
    replaces && [".write(", "write_text(", "writeFileSync("].iter().any(|it| code.contains(it))
}

/// What means something by the text that it is given.
const OF_TEXT: &[&str] =
    &["eval", "exec", "fetch(", "request", "getattr", "query", "compile", "method", "[\"\"]", "['']"];

fn spawns(code: &str) -> bool {
    SPAWNS.iter().any(|it| code.contains(it))
}

/// The code with nothing between its quotes. Where a quote is none, as in a comment, it ends with the line.
fn without_text(code: &str, program: &str) -> String {
    let quotes: &[&str] = if program == "python" { &["\"\"\"", "'''", "\"", "'"] } else { &["`", "\"", "'"] };
    let (mut res, mut rest) = (String::new(), code);
    while let Some(at) = rest.find(['"', '\'', '`', '#']) {
        let (before, from) = rest.split_at(at);
        res.push_str(before);
        let Some(quote) = quotes.iter().find(|it| from.starts_with(**it)) else {
            let skipped = if from.starts_with('#') && program == "python" { from.find('\n') } else { Some(1) };
            let (kept, behind) = from.split_at(skipped.unwrap_or(from.len()));
            res.push_str(kept);
            rest = behind;
            continue;
        };
        let inside = from.get(quote.len()..).unwrap_or_default();
        let long = quote.len() > 1 || *quote == "`";
        res.push_str(quote);
        rest = behind_text(inside, quote, long);
        res.push_str(quote);
    }
    res + rest
}

/// What comes behind the quote that ends a text; from the line's end on, where a short one has none.
fn behind_text<'c>(inside: &'c str, quote: &str, long: bool) -> &'c str {
    let mut escaped = false;
    for (at, it) in inside.char_indices() {
        let from = inside.get(at..).unwrap_or_default();
        match it {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' if !long => return from,
            _ if from.starts_with(quote) => return from.get(quote.len()..).unwrap_or_default(),
            _ => (),
        }
    }
    ""
}

fn has(code: &str, list: &[&'static str]) -> Option<&'static str> {
    list.iter().find(|it| code.contains(**it)).copied()
}

fn deletes(code: &str) -> Option<&'static str> {
    // `client.delete_bucket(`, `s3.deleteObject(`
    let named = |rest: &str| rest.starts_with(|it: char| it == '_' || it.is_ascii_uppercase());
    let method = || code.split(".delete").skip(1).any(named).then_some(".delete_");
    // `new DeleteObjectCommand(`
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let command = |rest: &str| {
        let (name, behind) = rest.split_at(rest.find(|it| !is_name(it)).unwrap_or(rest.len()));
        name.ends_with("Command") && behind.starts_with('(')
    };
    let sdk = || code.split("Delete").skip(1).any(command).then_some("DeleteCommand");
    has(code, DELETES).or_else(method).or_else(sdk).or_else(|| sent::deletes(code)).or_else(|| queries(code))
}

fn queries(code: &str) -> Option<&'static str> {
    has(code, QUERIES)?;
    has(&code.to_ascii_lowercase(), SQL)
}

fn hides(code: &str, program: &str) -> Option<&'static str> {
    let decoded = || {
        let runs = spawns(code) || code.contains("getattr(");
        let many = code.matches("chr(").count() > 1;
        if runs { has(code, DECODES).or(many.then_some("chr(")) } else { None }
    };
    let text = || ["eval", "exec", "execfile", "Function"].into_iter().find(|it| runs_text(code, it, program));
    let by_itself = || match program {
        "perl" => {
            let takes = |it: &str| it.trim_start().starts_with(['"', '\'', '\\', '$', '@']);
            let removes = || calls(code, "remove").any(takes).then_some("remove");
            code.contains("/ee").then_some("/ee").or_else(removes)
        }
        "osascript" => {
            ["delete", "empty trash", "empty the trash", "shut down"].into_iter().find(|it| code.contains(it))
        }
        "lua" | "luajit" => {
            let element = |it: &&str| calls(code, it).any(|rest| rest.starts_with('['));
            let loads = ["load", "dostring"].into_iter().find(|it| runs_text(code, it, program));
            loads.or_else(|| ["_G", "io", "os"].into_iter().find(element))
        }
        _ => None,
    };
    has(code, REFLECTS)
        .or_else(|| (glue::reaches(code, program) && is_glued(code, program)).then_some("+"))
        .or_else(text)
        .or_else(by_itself)
        .or_else(|| gets(code).then_some("getattr("))
        .or_else(|| imports(code))
        .or_else(|| RUBY.contains(&program).then(|| sends_name(code)).flatten())
        .or_else(decoded)
}

/// `'sys'+'tem'`: a word in two pieces that nobody needs to part.
fn is_glued(code: &str, program: &str) -> bool {
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let signs: &[char] = match DOTTED.contains(&program) || program.starts_with("lua") {
        true => &['.', '+'],
        false => &['+'],
    };
    // Python joins what stands side by side.
    let beside = program == "python" && spawns(code);
    code.match_indices(['\'', '"', '`']).any(|(at, _)| {
        let before = code.get(..at).and_then(|it| it.chars().next_back());
        let behind = code.get(at + 1..).unwrap_or_default().trim_start();
        let next = behind.trim_start_matches(signs);
        let joined = beside || next.len() < behind.len();
        let mut next = next.trim_start().chars();
        let opens = next.next().is_some_and(|it| matches!(it, '\'' | '"' | '`'));
        joined && before.is_some_and(is_word) && opens && next.next().is_some_and(is_word)
    })
}

/// What stands behind each call of `name`, which is no method's.
fn calls<'c>(code: &'c str, name: &'c str) -> impl Iterator<Item = &'c str> {
    code.match_indices(name).filter_map(move |(at, _)| {
        let before = code.get(..at)?.chars().next_back();
        let own = before.is_none_or(|it| !it.is_alphanumeric() && !matches!(it, '_' | '.' | '>' | ':' | '-'));
        own.then(|| code.get(at + name.len()..)).flatten()
    })
}

/// Whether text is run that does not stand there.
fn runs_text(code: &str, name: &str, program: &str) -> bool {
    calls(code, name).any(|rest| match rest.strip_prefix('(') {
        Some(inside) => !is_literal(inside),
        // `eval { … }` is code as any other.
        None => {
            let blank = rest.starts_with(' ') && BARE.contains(&program);
            blank && rest.trim_start().starts_with(['$', '@', 'p', 'u', 'j']) && name == "eval"
        }
    })
}

/// Whether the first word of a call is text, as it stands.
fn is_literal(inside: &str) -> bool {
    let inside = inside.trim_start();
    let inside = inside.strip_prefix(['b', 'r']).filter(|it| it.starts_with(['\'', '"'])).unwrap_or(inside);
    let quotes = ["\"\"\"", "'''", "\"", "'", "`"];
    let Some(quote) = quotes.iter().find(|it| inside.starts_with(**it)) else { return false };
    let Some((text, rest)) = inside.get(quote.len()..).and_then(|it| it.split_once(quote)) else { return false };
    let coded = text.contains("${") || text.contains("\\x") || text.contains("\\u");
    !coded && rest.trim_start().starts_with([')', ','])
}

/// `getattr(x, "sys" + y)(…)`: by a name that is put together, or called at once.
fn gets(code: &str) -> bool {
    calls(code, "getattr").filter_map(|it| it.strip_prefix('(')).any(|inside| {
        let name = inside.split_once(',').map_or("", |it| it.1).trim_start();
        let made = || name.split(')').next().is_some_and(|it| it.contains(['+', '%', '(', '\'', '"']));
        let called = || name.split_once(')').is_some_and(|it| it.1.starts_with('('));
        // `getattr(self, f"visit_{x}")(x)` is what a class does.
        !is_literal(name) && !inside.starts_with("self") && (made() || called())
    })
}

/// `require('child' + x)`; a path to a file is none.
fn imports(code: &str) -> Option<&'static str> {
    const CALLS: &[&str] = &["__import__", "import_module", "require", "import"];
    const PATHS: &[&str] = &["path.", "'.", "\".", "`.", "'/", "\"/", "`/", "require.resolve("];
    let made = |inside: &str| {
        let inside = inside.trim_start();
        let quoted = inside.split(')').next().is_some_and(|it| it.contains(['\'', '"', '`']));
        quoted && !is_literal(inside) && !PATHS.iter().any(|it| inside.starts_with(it)) && !glue::is_within(inside)
    };
    let of = |name: &str| code.split(name).skip(1).filter_map(|it| it.strip_prefix('(')).any(made);
    CALLS.iter().find(|it| of(it)).copied()
}

/// Ruby's `send(:system, x)`, `method(:exec)`, `Object.const_get(x)`.
fn sends_name(code: &str) -> Option<&'static str> {
    const RUN: &[&str] = &["`", "eval", "exec", "instance_eval", "spawn", "system", "rm", "delete", "unlink"];
    let runs = |rest: &str| {
        let Some(inside) = rest.strip_prefix('(') else { return false };
        let name = inside.trim_start_matches([':', '"', '\'']);
        let word = name.split(|it: char| !(it.is_ascii_alphanumeric() || it == '_')).next().unwrap_or_default();
        // What is no symbol and no text is computed.
        name.len() == inside.len() || RUN.iter().any(|it| word.starts_with(it) || *it == "`" && name.starts_with('`'))
    };
    ["send", "__send__", "const_get", "method"].into_iter().find(|it| code.split(it).skip(1).any(runs))
}

/// What the shell puts into code: where that starts programs, or is all of a statement, nobody knows what runs.
pub(super) fn put_in(command: &Command, program: &str, script: &Script) -> Option<Signs> {
    let code = command.code.as_deref()?;
    if AWK.contains(&program) || !is_language(base_name(command.name()?)) {
        return None;
    }
    let is_code = |it: &&Word| {
        it.kind == WordKind::Expanded && !it.is_unknown() && (it.text.contains(['(', ';', '=']) || spawns(&it.text))
    };
    let words = command
        .args()
        .iter()
        .filter(is_code)
        .filter(|it| !lists_files(&it.text, script))
        .map(|it| (it.text.trim_matches('"'), it.clone()));
    let input = command.input.as_ref().filter(|it| !it.literal && it.text == code);
    let input = input.map(|it| (it.text.as_str(), quoted(&it.text)));
    words.chain(input).find_map(|(text, word)| {
        let open: Vec<&str> = expansions(text).map(|it| it.1).collect();
        let starts = || expansions(text).any(|it| begins(it.0) && !is_set(it.1, script));
        if open.is_empty() {
            return None;
        }
        let readings = pieces::spellings(&word, script);
        let told = || open.iter().all(|it| is_set(it, script)) && !readings.iter().any(|it| it.contains(ANY));
        if spawns(code) && !told() || starts() {
            return Some(Signs(vec![UNSEEN.to_owned()]));
        }
        readings.iter().find_map(|it| in_code(&it.replace(ANY, "?"), program, command))
    })
}

/// `perl -pi -e 's/a/b/' $(rg -l foo src)`: names of files behind the code.
fn lists_files(text: &str, script: &Script) -> bool {
    const LISTS: &[&str] = &["fd", "find", "git", "grep", "ls", "rg"];
    let lists = |it: &Command| {
        let names = |it: &Word| matches!(it.text.as_str(), "-l" | "-rl" | "-lr" | "-rIl" | "ls-files" | "--name-only");
        it.name().is_some_and(|it| LISTS.contains(&it))
            && (it.args().iter().any(names) || matches!(it.name(), Some("fd" | "find" | "ls")))
    };
    let whole = text.strip_prefix("$(").and_then(|it| it.strip_suffix(')'));
    let one = whole.is_some_and(|it| !it.contains(['(', ')', '`', ';', '|', '&', '$', '\n']));
    one && script.commands_in(text).next().is_some() && script.commands_in(text).all(lists)
}

/// A here-document as the shell reads it: quotes in it are text.
fn quoted(text: &str) -> Word {
    Word::expanded(&format!("\"{}\"", text.replace('"', "\\\"")))
}

/// Where the shell puts something into a text: what stands before, and what is put in.
fn expansions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices(['$', '`']).filter_map(move |(at, sign)| {
        let (before, behind) = (text.get(..at)?, text.get(at + 1..)?);
        let names = behind.starts_with(|it: char| it.is_ascii_alphabetic() || matches!(it, '_' | '{' | '('));
        (!before.ends_with('\\') && (sign == "`" || names)).then_some((before, text.get(at..)?))
    })
}

/// Whether a statement begins behind that, or the name of what is called.
fn begins(before: &str) -> bool {
    before.trim_end_matches([' ', '\t']).chars().next_back().is_none_or(|it| matches!(it, '\n' | ';' | '{'))
        || before.ends_with(").")
}

/// Whether the script says what a variable is.
fn is_set(expansion: &str, script: &Script) -> bool {
    let name = expansion.trim_start_matches(['$', '{']);
    let name = name.split(|it: char| !(it.is_ascii_alphanumeric() || it == '_')).next().unwrap_or_default();
    script.assigned.iter().any(|it| it == name)
}
