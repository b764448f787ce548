//! Commands that code in another language starts, where it says them: `os.system("git push")`, `run(["git", "push"])`.

use super::{Word, interpreters::SPAWNS};

/// What such code calls them by, in front of the bracket.
const CALLS: &[&str] = &[
    "call(",
    "check_call(",
    "check_output(",
    "cmd(",
    "create_subprocess_shell(",
    "exec(",
    "execSync(",
    "getoutput(",
    "getstatusoutput(",
    "passthru(",
    "popen(",
    "Popen(",
    "proc_open(",
    "run(",
    "shell_exec(",
    "system(",
];
/// More of them are not listed.
const MAX: usize = 32;

/// A command that is handed to a shell, or its words.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Start {
    Line(String),
    Words(Vec<Word>),
}

/// Those that the code starts, as far as they stand in it.
pub(super) fn find(code: &str) -> Vec<Start> {
    if !SPAWNS.iter().any(|it| code.contains(it)) {
        return Vec::new();
    }
    let behind = |call: &&'static str| {
        let len = call.len();
        code.match_indices(*call).filter_map(move |it| code.get(it.0 + len..))
    };
    CALLS.iter().flat_map(behind).filter_map(read).take(MAX).collect()
}

fn read(args: &str) -> Option<Start> {
    let args = args.trim_start();
    let Some(mut rest) = args.strip_prefix('[').or_else(|| args.strip_prefix('(')) else {
        let (line, rest) = literal(args)?;
        // `"a" + b` is not all of it.
        return rest.trim_start().starts_with([')', ',', ';']).then_some(Start::Line(line));
    };
    let mut words = Vec::new();
    loop {
        let (word, behind) = literal(rest.trim_start())?;
        words.push(Word::literally(&word));
        rest = behind.trim_start();
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None if rest.starts_with([']', ')']) => return Some(Start::Words(words)),
            None => return None,
        }
        if rest.starts_with([']', ')']) {
            return Some(Start::Words(words));
        }
    }
}

/// A text between quotes in which nothing is put, and what stands behind it.
fn literal(code: &str) -> Option<(String, &str)> {
    let code = code.strip_prefix(['b', 'r', 'u']).filter(|it| it.starts_with(['\'', '"'])).unwrap_or(code);
    let quote = ["\"\"\"", "'''", "\"", "'", "`"].into_iter().find(|it| code.starts_with(it))?;
    let inside = code.get(quote.len()..)?;
    let (mut res, mut escaped) = (String::new(), false);
    for (at, it) in inside.char_indices() {
        match it {
            _ if escaped => {
                escaped = false;
                match it {
                    'n' => res.push('\n'),
                    't' => res.push('\t'),
                    '\\' | '\'' | '"' | '`' => res.push(it),
                    // `\x72m`: what is written otherwise is looked for elsewhere.
                    'x' | 'u' | 'U' | 'N' | '0'..='7' => return None,
                    // To a shell in it, it says what it says in the shell.
                    _ => res.extend(['\\', it]),
                }
            }
            '\\' => escaped = true,
            _ if inside.get(at..).is_some_and(|it| it.starts_with(quote)) => {
                let put_in = quote == "`" && res.contains("${");
                return (!put_in).then_some((res, inside.get(at + quote.len()..)?));
            }
            it => res.push(it),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_there_is_found() {
        let line = |it: &str| vec![Start::Line(it.to_owned())];
        let words = |it: &str| vec![Start::Words(it.split(' ').map(Word::literally).collect())];
        assert_eq!(find(r#"import os; os.system("git push")"#), line("git push"));
        assert_eq!(find(r"os.system('''a 'b' c''')"), line("a 'b' c"));
        assert_eq!(find(r#"subprocess.run("a \"b\" \n c", shell=True)"#), line("a \"b\" \n c"));
        assert_eq!(find("require('child_process').execSync(`git push`)"), line("git push"));
        assert_eq!(find(r#"subprocess.check_output([ "git", "push" ], text=True)"#), words("git push"));
        assert_eq!(find(r#"subprocess.run(("git", "push",))"#), words("git push"));
        for other in [
            "app.run('git push')",
            "os.system('git ' + x)",
            "os.system(f'git {x}')",
            "execSync(`git ${x}`)",
            "subprocess.run(['git', x])",
            r"os.system('\x67it push')",
            "os.system('git push",
        ] {
            assert_eq!(find(other), [], "{other}");
        }
    }
}
