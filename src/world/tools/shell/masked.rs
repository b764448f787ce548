//! Whether exit code 0 says nothing of what a command is about: `cargo build 2>&1 | tail -5`, `make || true`. A guess: it
//! only leads to a question, and is never made where the command shows what others printed.

/// What ends well whatever comes in, and whatever became of those before it.
const FILTERS: &[&str] = &[
    "awk", "cat", "column", "cut", "egrep", "fgrep", "fmt", "fold", "grep", "head", "jq", "less", "more", "nl", "rg",
    "sed", "sort", "tac", "tail", "tee", "tr", "ts", "uniq", "wc",
];
/// What shows files, logs and its own arguments beside [`FILTERS`]: words in there are nobody's failure.
const SHOWS: &[&str] = &[
    "ack",
    "ag",
    "bat",
    "bzcat",
    "cd",
    "diff",
    "dmesg",
    "du",
    "echo",
    "env",
    "fd",
    "find",
    "gawk",
    "hexdump",
    "history",
    "journalctl",
    "ls",
    "man",
    "od",
    "printenv",
    "printf",
    "ps",
    "stat",
    "strings",
    "test",
    "tree",
    "type",
    "which",
    "xargs",
    "xxd",
    "xzcat",
    "yq",
    "zcat",
    "zgrep",
];
/// Words behind a program's name by which it shows something.
const SHOWING: &[&str] = &["blame", "diff", "grep", "help", "log", "logs", "reflog", "show", "status", "view"];
/// What stands before a program's name, and ends of what is made of several commands.
const BEFORE: &[&str] = &["command", "exec", "nice", "nohup", "stdbuf", "sudo", "time"];
const ENDS: &[&str] = &["do", "done", "esac", "fi", "if", "for", "while", "until", "case", "then"];

/// Whether the last part of a command is one whose exit code is another's.
pub fn hides_failure(command: &str) -> bool {
    // Those say it themselves, and what is in a document is no command.
    if ["pipefail", "<<"].iter().any(|it| command.contains(it)) {
        return false;
    }
    let mut parts = parts(command);
    while parts.last().is_some_and(|it| it.text.trim().is_empty()) {
        parts.pop();
    }
    let first = parts.iter().rposition(|it| !matches!(it.after, Operator::Pipe | Operator::Or)).unwrap_or(0);
    let last = parts.get(first..).unwrap_or_default();
    let (stages, or_else) = match last.split_last() {
        Some((end, stages)) if end.after == Operator::Or => (stages, Some(end)),
        _ => (last, None),
    };
    let Some((about, filters)) = stages.split_first() else { return false };
    let ends_well = |it: &Part| matches!(it.text.trim(), "true" | ":" | "exit 0") || it.name() == Some("echo");
    let is_hidden = or_else.map_or(!filters.is_empty(), ends_well);
    let is_filter = |it: &Part| it.after == Operator::Pipe && it.name().is_some_and(|it| FILTERS.contains(&it));
    is_hidden && about.acts() && filters.iter().all(is_filter)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// The beginning, `;`, `&`, `&&` and the end of a line.
    Then,
    Or,
    Pipe,
}

struct Part {
    after: Operator,
    text: String,
}

impl Part {
    /// The words from the program's name on.
    fn words(&self) -> impl Iterator<Item = &str> {
        let is_before = |it: &&str| it.contains('=') || BEFORE.contains(it);
        self.text.split_whitespace().skip_while(is_before)
    }

    fn name(&self) -> Option<&str> {
        self.words().next()?.rsplit('/').next()
    }

    /// Whether it does more than to show something, as far as its name tells.
    fn acts(&self) -> bool {
        let Some(name) = self.name() else { return false };
        let is_known = [FILTERS, SHOWS, ENDS].iter().any(|it| it.contains(&name));
        let shows = self.words().skip(1).take(2).any(|it| SHOWING.contains(&it));
        !is_known && !shows && name.starts_with(|it: char| it.is_ascii_alphanumeric() || "._~$".contains(it))
    }
}

/// The commands of a line, as far as quotes and brackets can be told apart without reading it as bash does.
fn parts(command: &str) -> Vec<Part> {
    let mut res = vec![Part { after: Operator::Then, text: String::new() }];
    let (mut quote, mut depth, mut before) = (None, 0_usize, ' ');
    let mut chars = command.chars().peekable();
    while let Some(it) = chars.next() {
        let next = chars.peek().copied();
        let is_redirect = before == '>' || it == '&' && next == Some('>');
        let operator = match it {
            _ if quote.is_some() || depth > 0 || is_redirect => None,
            '|' if next == Some('|') => Some((Operator::Or, true)),
            '|' => Some((Operator::Pipe, next == Some('&'))),
            '&' => Some((Operator::Then, next == Some('&'))),
            ';' | '\n' => Some((Operator::Then, false)),
            _ => None,
        };
        match (it, quote) {
            ('\\', None | Some('"')) => _ = chars.next(),
            ('\'' | '"' | '`', None) => quote = Some(it),
            (_, Some(open)) if open == it => quote = None,
            ('(', None) => depth += 1,
            (')', None) => depth = depth.saturating_sub(1),
            _ => (),
        }
        before = it;
        let Some((after, is_long)) = operator else {
            res.last_mut().into_iter().for_each(|part| part.text.push(it));
            continue;
        };
        if is_long {
            _ = chars.next();
        }
        res.push(Part { after, text: String::new() });
    }
    res
}

#[cfg(test)]
mod tests {
    use super::hides_failure;

    #[test]
    fn what_hides_a_failure_is_told_from_what_shows_text() {
        for yes in [
            "cargo build 2>&1 | tail -5",
            "cd sub && npm install 2>&1 | tail -20",
            "npm ci |& tee log.txt | grep -i err;",
            "RUST_LOG=1 ./build.sh 2>&1 | sed 's/a|b/c/' | head -3",
            "make || true",
            "pip install x || echo 'did not work; go on'",
            "touch /opt/x 2>&1 | cat",
            "git push 2>&1 | tail -1\n",
            "git fetch &>/dev/null || :",
        ] {
            assert!(hides_failure(yes), "{yes}");
        }
        for no in [
            "",
            "|",
            "cargo build",
            "cargo build; echo done",
            "cargo build && ls | head",
            "set -o pipefail; cargo build | tail",
            "cat build.log | tail -5",
            "grep -r denied . | head",
            "/usr/bin/grep denied log || true",
            "git log | head",
            "docker logs web 2>&1 | tail",
            "echo 'make | tail'",
            "for it in *; do cat $it; done | tail",
            "{ cat log; } | tail",
            "(cat log) | tail",
            "make | python3 summary.py",
            "make || make install",
            "cat <<END | tail\nx\nEND",
            "find / -name x 2>&1 | head",
        ] {
            assert!(!hides_failure(no), "{no}");
        }
    }
}
