//! What programs are handed that run it: words behind their own, a line in one word, input, another system's commands.

use super::{Place, Signs, by_table, fed, known, named};
use crate::engine::policy::shell::{Command, Script, Word, base_name, is_shell};

/// Programs that destroy by themselves, whoever starts them.
const ACTORS: &[&str] = &[
    "chmod",
    "chown",
    "dd",
    "docker",
    "dropdb",
    "dropuser",
    "find",
    "git",
    "kubectl",
    "npm",
    "pnpm",
    "psql",
    "rm",
    "rsync",
    "shred",
    "terraform",
    "truncate",
    "unlink",
    "wipefs",
];
/// Of these no option is needed to tell them from other programs' sub-commands: `brew rm x`.
const CLEAR: &[&str] = &["dd", "dropdb", "dropuser", "shred", "wipefs"];
/// A longer word is no command line.
const MAX_LINE: usize = 4_096;
/// Programs whose words are only text, or that are known well enough otherwise.
const TEXT: &[&str] = &[
    "[",
    "[[",
    "ack",
    "ag",
    "alias",
    "apropos",
    "awk",
    "cat",
    "cmake",
    "command",
    "curl",
    "docker",
    "docker-compose",
    "echo",
    "egrep",
    "export",
    "fgrep",
    "gawk",
    "gh",
    "git",
    "glab",
    "grep",
    "gsed",
    "hash",
    "help",
    "http",
    "hub",
    "jq",
    "local",
    "logger",
    "ls",
    "man",
    "nerdctl",
    "podman",
    "printf",
    "read",
    "rg",
    "say",
    "sed",
    "set",
    "tee",
    "test",
    "tldr",
    "type",
    "wget",
    "whatis",
    "whereis",
    "which",
    "xh",
    "yq",
];
/// More words are not looked at one by one.
const MAX_WORDS: usize = 100;

/// Programs that run commands which they read, beside shells and interpreters.
const READERS: &[&str] = &[
    "bc", "ed", "ex", "ftp", "gdb", "lftp", "lldb", "mariadb", "mongosh", "mysql", "nc", "nvim", "psql", "sftp",
    "sqlite3", "telnet", "vi", "vim",
];
/// Programs whose words are a line for a shell, wherever that is.
const HANDS_LINES: &[&str] = &["runuser", "screen", "ssh", "su", "tmux", "watch"];
/// What clients of FTP call to delete.
const FTP: &[&str] = &["delete", "mdelete", "mrm"];

/// Shells of another system, and their words for deleting, which they read in any case.
const OTHERS: &[&str] = &["cmd", "cmd.exe", "powershell", "powershell.exe", "pwsh", "pwsh.exe"];
const DELETE: &[&str] = &[
    "clc",
    "clear-content",
    "clear-disk",
    "clear-item",
    "clear-recyclebin",
    "del",
    "delete",
    "diskpart",
    "erase",
    "format-volume",
    "rd",
    "remove-item",
    "ri",
    "rimraf",
    "rm",
    "rmdir",
    "stop-computer",
];

/// What destroys among what a command hands on, if anything does.
pub(super) fn signs(command: &Command, program: &str, place: &Place) -> Option<Signs> {
    if OTHERS.contains(&program) {
        return by_other_shell(&command.text).or_else(|| by_other_shell(command.code.as_deref()?));
    }
    if let Some(it) = command.input.as_ref().filter(|_| READERS.contains(&program)) {
        let ftp = |line: &str| FTP.iter().find(|it| line.split_whitespace().next() == Some(it)).copied();
        return in_input(&it.text).or_else(|| it.text.lines().find_map(ftp).map(|it| named(program, it)));
    }
    if command.wrapper || TEXT.contains(&program) || command.args().len() > MAX_WORDS {
        return None;
    }
    // Where it works nobody knows.
    let apart = place.apart();
    let starts = (1..command.words.len()).filter_map(|at| command.words.get(at..)?.split_first());
    let by_words = |(first, rest): (&Word, &[Word])| {
        let dashed = || behind_dashes(first, &command.words);
        let acts = |it: &&str| ACTORS.contains(it) || it.starts_with("mkfs") || dashed();
        let actor = first.literal().map(base_name).filter(acts)?;
        // Listed on its own, and judged by where it works.
        let is_it = |it: &Command| it.carried && it.words.split_first() == Some((first, rest));
        if place.script.commands.iter().any(is_it) {
            return None;
        }
        if actor.starts_with("mkfs") {
            return Some(named(actor, ""));
        }
        by_table(actor, rest, &apart).filter(|it| it.0.len() > 1 || CLEAR.contains(&actor))
    };
    let lines = command.args().iter().filter_map(Word::literal).filter(|it| it.contains(' ') && it.len() <= MAX_LINE);
    let told = fed::line_of(command.args(), program);
    let by_line = |it: &str| {
        let logs_in = command.opaque && HANDS_LINES.contains(&program);
        let hands = command.opaque && !known::is_known(program) || told == Some(it);
        let Ok(script) = Script::parse(it) else { return logs_in.then(|| Signs(vec![super::UNSEEN.to_owned()])) };
        let inner = apart.within(&script);
        let device = script.redirects.iter().find(|it| it.writes && super::is_device(&it.target.text));
        // `ssh h '> log'` empties it.
        let only = || script.commands.iter().all(|it| it.name() == Some(":"));
        let emptied = || script.redirects.iter().find(|it| logs_in && it.writes && only());
        let device = device.or_else(emptied).map(|it| named(">", &it.target.text));
        // What cannot be told of it is told of the command itself.
        // `/bin/r? -rf x`, `r{m,} -rf x`: what is called so only the other shell knows.
        let blind = |it: &Command| it.name().is_none_or(|it| is_shell(base_name(it)));
        let again = |it: &Command| it.opaque && it.name().is_some_and(|it| HANDS_LINES.contains(&base_name(it)));
        let read = |it: &Command| command.opaque && (it.unseen || blind(it) || again(it));
        let looks = |it: &Command| super::looks(it, &script).filter(|_| hands);
        let sure = |it: &Command| super::signs(it, &inner).filter(|signs| signs.0 != [super::UNSEEN] || read(it));
        let sure = |it: &Command| sure(it).or_else(|| looks(it));
        script.commands.iter().find_map(sure).or(device)
    };
    let mut lines = lines.flat_map(|it| [Some(behind_option(it)), behind_name(it)]).flatten();
    starts.into_iter().find_map(by_words).or_else(|| lines.find_map(by_line))
}

/// `saml2aws exec -- aws s3 rb x`
fn behind_dashes(first: &Word, words: &[Word]) -> bool {
    let at = words.iter().position(|it| it.text == "--");
    at.and_then(|at| words.get(at + 1)).is_some_and(|it| std::ptr::eq(it, first))
}

/// `--command=rm -rf x`
fn behind_option(text: &str) -> &str {
    text.strip_prefix("--").and_then(|it| it.split_once('=')).map_or(text, |it| it.1)
}

/// make's `RM=rm -rf x`, which is no command to the shell.
fn behind_name(text: &str) -> Option<&str> {
    let is_name = |it: &str| it.bytes().all(|it| it.is_ascii_uppercase() || it == b'_');
    text.split_once('=').filter(|it| is_name(it.0)).map(|it| it.1)
}

fn by_other_shell(text: &str) -> Option<Signs> {
    let pairs = || text.split_whitespace().zip(text.split_whitespace().skip(1));
    let drive = |it: &str| matches!(it.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    if pairs().any(|it| it.0.eq_ignore_ascii_case("format") && drive(it.1)) {
        return Some(named("format", ""));
    }
    // `pwsh -enc …`: of code in base64 nobody sees what it is.
    let coded = |it: &str| {
        it.len() > 1 && ["-ec", "-encodedcommand"].iter().any(|full| full.starts_with(&it.to_ascii_lowercase()))
    };
    if text.split_whitespace().any(|it| it.starts_with("-") && coded(it)) {
        return Some(named("-EncodedCommand", ""));
    }
    let mut words = text.split(|it: char| !(it.is_alphanumeric() || it == '-'));
    words.find_map(|it| DELETE.iter().find(|name| it.eq_ignore_ascii_case(name))).map(|it| named(it, ""))
}

/// What a program that runs what it reads is handed: `ssh host <<E`.
pub(super) fn in_input(text: &str) -> Option<Signs> {
    text.lines().find_map(super::in_own_words).map(|it| named(&it, ""))
}
