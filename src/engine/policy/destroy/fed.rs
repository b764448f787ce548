//! What programs read that run it, beside shells and interpreters: a pipe, a here-document, or a file that the line writes.
//! A text that can be seen is judged; one that cannot is anything to a shell, and everyday to a database.

use super::{Place, Signs, UNSEEN, checks, computed, in_own_words, named, rows_in, verbs};
use crate::engine::policy::{
    danger::git_words,
    shell::{Command, Script, Word, base_name, ends_in_shell, is_language, said},
};

/// Programs that start a shell: behind these words, unless an option or more operands than so many say what it runs.
struct Login {
    program: &'static str,
    sub: &'static [&'static str],
    told: &'static [&'static str],
    operands: usize,
}

const fn login(program: &'static str, sub: &'static [&'static str], told: &'static [&'static str]) -> Login {
    Login { program, sub, told, operands: 1 }
}

const TOLD: &[&str] = &["-c", "--command", "-C"];

const LOGINS: &[Login] = &[
    login("adb", &["shell"], TOLD),
    login("distrobox", &["enter"], &["--", "-e"]),
    login("distrobox-enter", &[], &["--", "-e"]),
    login("eb", &["ssh"], TOLD),
    login("fly", &["ssh", "console"], TOLD),
    login("flyctl", &["ssh", "console"], TOLD),
    login("gcloud", &["compute", "ssh"], &["--command", "--"]),
    login("guix", &["environment"], &["--"]),
    login("guix", &["shell"], &["--"]),
    login("limactl", &["shell"], TOLD),
    login("minikube", &["ssh"], TOLD),
    login("multipass", &["shell"], TOLD),
    login("newgrp", &[], TOLD),
    login("nix", &["develop"], TOLD),
    login("nix", &["shell"], TOLD),
    login("nix-shell", &[], &["--run", "--command"]),
    login("pipenv", &["shell"], TOLD),
    login("poetry", &["shell"], TOLD),
    login("rsh", &[], TOLD),
    login("script", &[], &["-c", "--command", "--"]),
    login("sg", &[], TOLD),
    login("ssh", &[], &["-N", "-L", "-R", "-D", "-W", "-O"]),
    login("su", &[], TOLD),
    login("toolbox", &["enter"], TOLD),
    login("vagrant", &["ssh"], TOLD),
    login("wsl", &[], &["-e", "--exec", "--"]),
    login("wsl.exe", &[], &["-e", "--exec", "--"]),
];

/// Images that start a shell.
const SYSTEMS: &[&str] =
    &["alpine", "archlinux", "bash", "busybox", "centos", "debian", "fedora", "opensuse", "rockylinux", "ubuntu"];

/// Behind which words of a program's input a command stands; none: any may be one.
const TEXTS: &[(&str, &[&str])] = &[
    ("ansible-console", &[]),
    ("ansible-playbook", &[]),
    ("c++", C),
    ("cabal", &[":!"]),
    ("cc", C),
    ("clang", C),
    ("clang++", C),
    ("cmake", &["execute_process(", "file("]),
    ("csharp", DOTNET),
    ("csi", DOTNET),
    ("dc", &["!"]),
    ("dotnet", DOTNET),
    ("ed", &["!"]),
    ("ex", EDITS),
    ("fsharpi", DOTNET),
    ("ftp", &[]),
    ("g++", C),
    ("gcc", C),
    ("gdb", &["shell", "!", "python", "pipe"]),
    ("gnuplot", &["!", "system"]),
    ("gp", &["system("]),
    ("lftp", &[]),
    ("lldb", &["shell", "script"]),
    ("m4", &["syscmd"]),
    ("mariadb", &["\\!", "system "]),
    ("mysql", &["\\!", "system "]),
    ("nc", &[]),
    ("ncat", &[]),
    ("netcat", &[]),
    ("nvim", EDITS),
    ("psql", &["\\!", "PROGRAM", "program"]),
    ("red", &["!"]),
    ("sftp", &[]),
    ("sqlcipher", DOTS),
    ("sqlite3", DOTS),
    ("stack", &[":!"]),
    ("task", &[]),
    ("tcc", C),
    ("telnet", &[]),
    ("tmux", &[]),
    ("vi", EDITS),
    ("view", EDITS),
    ("vim", EDITS),
];
const EDITS: &[&str] = &["!", "call ", "system(", "lua ", "py", "perl ", "ruby "];
const DOTS: &[&str] = &[".shell", ".system", ".load", ".excel"];
/// Of a program that is compiled, and then run.
const C: &[&str] = &["exec", "popen(", "remove(", "rmdir(", "system(", "unlink("];
const DOTNET: &[&str] = &["Delete(", "Start("];

/// Clients of databases that no table asks what they read.
const CLIENTS: &[&str] = &[
    "beeline",
    "cockroach",
    "hbase",
    "isql",
    "pscale",
    "rman",
    "snowsql",
    "sql",
    "sqlcipher",
    "sqlplus",
    "trino",
    "tsql",
    "ysqlsh",
];
/// And what hands its input to one.
const CONSOLES: &[&str] = &["connect", "db", "dbconsole", "dbshell", "execute", "pg:psql", "redis:cli"];
const FRAMEWORKS: &[&str] =
    &["django-admin", "fly", "flyctl", "heroku", "manage.py", "php", "prisma", "python", "railway", "rails", "wp"];
/// What others are told in words of their own, in lower case.
const PHRASES: &[(&str, &[&str])] = &[
    ("ant", &["<delete"]),
    ("arangosh", &["._drop", ".remove(", ".truncate("]),
    ("edgedb", &["delete ", "drop "]),
    ("etcdctl", &["del "]),
    ("gel", &["delete ", "drop "]),
    ("hurl", &["delete http"]),
    ("k6", &["http.del(", "http.request('delete'", "http.request(\"delete\""]),
    ("ldapmodify", &["changetype: delete", "changetype:delete"]),
    ("pyspark", &["drop table", "drop database", "delete from", "truncate table"]),
    ("spark-shell", &["drop table", "drop database", "delete from", "truncate table"]),
    ("surreal", &["delete ", "remove "]),
    ("vegeta", &["delete http"]),
    ("zkcli.sh", &["delete ", "deleteall ", "rmr "]),
];
const STORES: &[&str] = &["flushall", "flushdb", "flush_all"];
/// Options and words behind which a file with commands stands.
const FILES: &[&str] = &["-S", "-b", "-f", "-init", "-s", "-x", "--command", "source", "source-file", "--source"];

/// What a program does with what it reads.
pub(super) fn signs(command: &Command, program: &str, place: &Place) -> Option<Signs> {
    if let Some(it) = takes_back(command, program, place.script) {
        return Some(it);
    }
    let fed = command.piped || command.input.is_some();
    let reads = |it: &Word| FILES.contains(&it.text.as_str()) || it.text.starts_with(".read ");
    if !fed && !command.args().iter().any(reads) {
        return None;
    }
    let script = place.script;
    if command.piped && starts_shell(command, program) {
        return from_pipe(command, place);
    }
    let client = CLIENTS.contains(&program)
        || command.args().iter().any(|it| it.text.starts_with(".read "))
        || FRAMEWORKS.contains(&program) && command.args().iter().any(|it| CONSOLES.contains(&it.text.as_str()));
    let queried = command.piped && (client || computed::SQL.contains(&program));
    if let Some(it) = queried.then(|| before(command, script)).flatten().filter(|it| decodes(it)) {
        return Some(named(program, it.name().map(base_name).unwrap_or_default()));
    }
    let starts = TEXTS.binary_search_by_key(&program, |it| it.0).ok().and_then(|at| TEXTS.get(at)).map(|it| it.1);
    let wire = speaks_raw(command, program);
    let texts = || script.commands.iter().filter_map(text_of);
    if let Some(it) = in_phrases(program, texts()).or_else(|| to_forge(command, program, texts())) {
        return Some(it);
    }
    if !client && !wire && starts.is_none() {
        return None;
    }
    let queries = |text: &str| words(text).find(|it| checks::is_sql(it)).map(|it| named(program, it));
    let flushes = |text: &str| {
        words(text).find(|it| STORES.iter().any(|word| it.eq_ignore_ascii_case(word))).map(|it| named(program, it))
    };
    let runs = |text: &str| starts.and_then(|it| text.lines().find_map(|line| in_line(program, line, it)));
    texts().find_map(|it| {
        let it = it.as_str();
        let asks = if client { queries(it) } else { None };
        let stored = if client || wire { flushes(it) } else { None };
        asks.or(stored).or_else(|| runs(it))
    })
}

/// Behind which words of its input a program starts others, where it does not take all of that for something else.
pub(in crate::engine::policy) fn starts_from_input(program: &str) -> Option<&'static [&'static str]> {
    // Of a compiler's input it is only known what it may come to.
    let signs = TEXTS.binary_search_by_key(&program, |it| it.0).ok().and_then(|at| TEXTS.get(at))?.1;
    (signs != C && signs != DOTNET).then_some(signs)
}

/// What hands on what it reads as it is.
fn speaks_raw(command: &Command, program: &str) -> bool {
    const WIRES: &[&str] = &["nc", "ncat", "netcat", "socat", "telnet"];
    let first = || command.args().first().is_some_and(|it| WIRES.contains(&it.text.as_str()));
    match program {
        "busybox" | "toybox" => first(),
        "curl" => command.args().iter().any(|it| it.text.starts_with("telnet://")),
        _ => WIRES.contains(&program),
    }
}

fn in_phrases(program: &str, mut texts: impl Iterator<Item = String>) -> Option<Signs> {
    let at = PHRASES.binary_search_by_key(&program, |it| it.0).ok()?;
    let (_, phrases) = PHRASES.get(at)?;
    texts.find_map(|text| {
        let text = text.to_ascii_lowercase();
        let here = |it: &str| ["http://localhost", "http://127.0.0.1"].iter().any(|host| it.contains(host));
        let mut lines = text.lines().filter(|it| !here(it));
        lines.find_map(|line| phrases.iter().find(|it| line.contains(**it))).map(|it| named(program, it.trim_end()))
    })
}

/// `gh api graphql --input -`: what is asked of a forge.
fn to_forge(command: &Command, program: &str, mut texts: impl Iterator<Item = String>) -> Option<Signs> {
    let has = |text: &str| command.args().iter().any(|it| it.text.contains(text));
    if !matches!(program, "gh" | "glab") || !has("api") || !has("--input") {
        return None;
    }
    let refs = has("git/refs/");
    let forces = |text: &str| refs && text.contains("\"force\"") && text.contains("true");
    texts.find(|it| checks::mutates(it) || forces(it)).map(|_| named(program, "--input"))
}

/// What a command prints or hands on, as far as the line says it.
fn text_of(command: &Command) -> Option<String> {
    match command.name() {
        // Quotes are the shell's.
        Some("echo" | "printf") => said(command).map(|_| plain(command).replace("\\n", "\n")),
        _ => command.input.as_ref().map(|it| it.text.clone()),
    }
}

/// The words that `echo` prints.
fn plain(command: &Command) -> String {
    let words = command.args().iter().filter(|it| !matches!(it.text.as_str(), "-e" | "-n" | "-en" | "-ne"));
    words.map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !(it.is_ascii_alphanumeric() || it == '_'))
}

fn in_line(program: &str, line: &str, starts: &[&str]) -> Option<Signs> {
    const DELETE: &[&str] = &["del", "delete", "mdel", "mdelete", "mrm", "rm", "rmdir"];
    let first = line.split_whitespace().next().unwrap_or_default().trim_start_matches(['-', '@']);
    if matches!(program, "ftp" | "lftp" | "sftp") {
        return DELETE.iter().find(|it| **it == first).map(|it| named(program, it)).or_else(|| local(program, line));
    }
    let code = starts.is_empty() || starts.iter().any(|it| line.contains(it));
    code.then(|| in_own_words(line)).flatten().map(|it| named(program, &it))
}

/// `!rm x`: here, not there.
fn local(program: &str, line: &str) -> Option<Signs> {
    line.split_once('!').and_then(|it| rows_in(it.1)).map(|it| named(program, it.program))
}

/// The line that such a program is told: `gcloud compute ssh x --command 'foo delete'`.
pub(super) fn line_of<'w>(args: &'w [Word], program: &str) -> Option<&'w str> {
    let row = LOGINS.iter().find(|it| it.program == program)?;
    args.iter().zip(args.iter().skip(1).map(Some).chain([None])).find_map(|(option, next)| {
        let (name, value) = option.text.split_once('=').map_or((option.text.as_str(), None), |it| (it.0, Some(it.1)));
        let named = row.told.contains(&name) && name != "--";
        value.or_else(|| next.map(|it| it.text.as_str())).filter(|_| named)
    })
}

/// Whether it is a shell, here or elsewhere, and nothing among its words is what it runs.
fn starts_shell(command: &Command, program: &str) -> bool {
    let args = command.args();
    let begins = |it: &&Login| {
        let mut names = args.iter().filter(|it| !it.text.starts_with('-'));
        it.program == program && it.sub.iter().all(|sub| names.next().is_some_and(|it| it.text == *sub))
    };
    let Some(row) = LOGINS.iter().find(begins) else {
        let image = || args.last().and_then(|it| it.text.rsplit('/').next()?.split([':', '@']).next());
        return match program {
            "distrobox" | "incus" | "lxc" | "toolbox" => ends_in_shell(args),
            // Of most images nobody knows what they start.
            "docker" | "nerdctl" | "podman" => {
                args.iter().any(|it| it.text == "run") && image().is_some_and(|it| SYSTEMS.contains(&it))
            }
            _ => false,
        };
    };
    if ends_in_shell(args) {
        return true;
    }
    if program == "ssh" {
        let behind = args.get(verbs::behind_host(args)..).unwrap_or_default();
        let language = |it: &Word| it.literal().is_some_and(|it| is_language(base_name(it)));
        return match behind {
            [] => !args.iter().any(|it| row.told.contains(&it.text.as_str())),
            [only] => language(only),
            _ => false,
        };
    }
    let told = |it: &Word| row.told.iter().any(|told| it.text == *told || it.text.split('=').next() == Some(told));
    // What stands behind an option may be its value.
    let values = args.iter().zip(args.iter().skip(1)).filter(|it| it.0.text.starts_with('-') && it.0.text.len() > 1);
    let values = values.filter(|it| !it.1.text.starts_with('-')).count();
    let operands = args.iter().filter(|it| !it.text.starts_with('-')).count();
    let at_most = row.sub.len() + row.operands + values;
    !args.iter().any(told) && operands <= at_most
}

/// What stands before a pipe to a shell is what that runs.
fn from_pipe(command: &Command, place: &Place) -> Option<Signs> {
    let unseen = || Some(Signs(vec![UNSEEN.to_owned()]));
    let at = place.script.commands.iter().position(|it| std::ptr::eq(it, command));
    let before = before(command, place.script);
    // `ssh host < c`
    let read = place.script.redirects.iter().any(|it| !it.writes && it.by == at);
    let Some(before) = before.filter(|it| !read && !it.piped) else { return unseen() };
    let open = before.args().iter().any(|it| it.literal().is_none())
        || before.input.as_ref().is_some_and(|it| !it.literal)
        || said(before).is_none();
    match text_of(before).filter(|_| !open) {
        Some(text) => in_script(&text, place),
        None => unseen(),
    }
}

/// The command whose output this one reads.
fn before<'s>(command: &Command, script: &'s Script) -> Option<&'s Command> {
    let at = script.commands.iter().position(|it| std::ptr::eq(it, command))?;
    script.commands.get(at.checked_sub(1)?)
}

/// What makes text of what nobody can read; dumps that are only packed are everyday.
fn decodes(command: &Command) -> bool {
    let has = |options: &[&str]| command.args().iter().any(|it| options.contains(&it.text.as_str()));
    match command.name().map(base_name).unwrap_or_default() {
        "base32" | "base64" | "basenc" | "gbase64" => has(&["-D", "-d", "--decode"]),
        "openssl" => has(&["-d"]),
        "rev" | "uudecode" => true,
        "xxd" => command.args().iter().any(|it| it.text.starts_with('-') && it.text.contains('r')),
        _ => false,
    }
}

fn in_script(text: &str, place: &Place) -> Option<Signs> {
    let unseen = || Signs(vec![UNSEEN.to_owned()]);
    let Ok(script) = Script::parse(text) else { return Some(unseen()) };
    let apart = place.apart();
    let inner = apart.within(&script);
    script.commands.iter().find_map(|it| super::signs(it, &inner))
}

/// `git diff -R | git apply`, `git archive HEAD | tar x`: what is there is written over.
fn takes_back(command: &Command, program: &str, script: &Script) -> Option<Signs> {
    let by_git = |sub: &[&str], option: Option<&str>| {
        script.commands.iter().filter(|it| it.name().map(base_name) == Some("git")).any(|it| {
            let words = git_words(it.args());
            let told = |name: &str| words.iter().any(|it| it.text == name);
            words.first().is_some_and(|it| sub.contains(&it.text.as_str())) && option.is_none_or(told)
        })
    };
    let args = command.args();
    let first = git_words(args).first().map_or("", |it| it.text.as_str());
    let applies = program == "patch" || program == "git" && matches!(first, "am" | "apply");
    if applies && by_git(&["diff", "diff-index", "diff-tree", "log", "show"], Some("-R")) {
        return Some(Signs(vec![program.to_owned(), "-R".to_owned()]));
    }
    let extracts =
        args.first().is_some_and(|it| it.text.trim_start_matches('-').contains('x') || it.text == "--extract");
    let here = |it: &str| matches!(it.trim_matches('"').trim_end_matches('/'), "." | "$PWD" | "${PWD}");
    let behind = args.iter().zip(args.iter().skip(1)).filter(|it| matches!(it.0.text.as_str(), "-C" | "--directory"));
    let stuck =
        args.iter().filter_map(|it| it.text.strip_prefix("-C").or_else(|| it.text.strip_prefix("--directory=")));
    let mut folders = behind.map(|it| it.1.text.as_str()).chain(stuck.filter(|it| !it.is_empty()));
    let onto = matches!(program, "bsdtar" | "tar") && extracts && folders.all(here);
    (onto && by_git(&["archive"], None)).then(|| named(program, "x"))
}

#[cfg(test)]
mod tests {
    use super::{PHRASES, TEXTS};

    #[test]
    fn the_texts_are_sorted() {
        assert!(TEXTS.is_sorted_by_key(|it| it.0) && PHRASES.is_sorted_by_key(|it| it.0));
    }
}
