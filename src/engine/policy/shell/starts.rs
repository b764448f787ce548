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
        return line(args).map(Start::Line);
    };
    let mut words = Vec::new();
    loop {
        let (word, behind) = literal(rest.trim_start())?;
        words.push(if word.contains(PUT_IN) { Word::expanded(&word) } else { Word::literally(&word) });
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

/// A line, with all that is joined to it: what is no text is anything.
fn line(args: &str) -> Option<String> {
    let (mut res, mut rest) = literal(args)?;
    loop {
        rest = rest.trim_start();
        // `"rm %s" % x`, `"rm {}".format(x)`
        if rest.starts_with('%') || rest.starts_with(".format(") {
            res = res.replace("%s", PUT_IN).replace("{}", PUT_IN);
            return Some(res);
        }
        let Some(more) = rest.strip_prefix('+') else { break };
        let more = more.trim_start();
        match literal(more) {
            Some((text, behind)) => {
                res += &text;
                rest = behind;
            }
            None => {
                res += PUT_IN;
                rest = more.trim_start_matches(|it: char| it.is_alphanumeric() || "_.[]'\"".contains(it));
            }
        }
    }
    // `"a b".split()`
    (rest.is_empty() || rest.starts_with([')', ',', ';', '.', '+', '('])).then_some(res)
}

/// Stands for what code puts into a text: a variable that nobody knows.
const PUT_IN: &str = "${PUT_IN}";

/// A text between quotes, and what stands behind it.
fn literal(code: &str) -> Option<(String, &str)> {
    let is_prefix = |it: &str| it.chars().all(|it| "bfruBFRU".contains(it)) && it.len() < 3;
    let (prefix, code) = code.split_at(code.find(['\'', '"', '`'])?);
    let quote = ["\"\"\"", "'''", "\"", "'", "`"].into_iter().find(|it| code.starts_with(it))?;
    let inside = code.get(quote.len()..).filter(|_| is_prefix(prefix))?;
    let opens: &[&str] = match (prefix.contains(['f', 'F']), quote) {
        (true, _) => &["{"],
        (_, "`") => &["${"],
        (_, "\"") => &["#{"],
        _ => &[],
    };
    let (mut res, mut rest) = (String::new(), inside);
    while let Some(it) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix(quote) {
            return Some((res, behind));
        }
        if let Some(behind) = opens.iter().find_map(|it| rest.strip_prefix(it)).filter(|it| !it.starts_with('{')) {
            res += PUT_IN;
            rest = behind.split_once('}')?.1;
            continue;
        }
        let doubled = !opens.is_empty() && (rest.starts_with("{{") || rest.starts_with("}}"));
        let raw = prefix.contains(['r', 'R']);
        let len = match it {
            '\\' if !raw => escape(rest.get(1..)?, &mut res)?,
            _ => {
                res.push(it);
                it.len_utf8() + usize::from(doubled)
            }
        };
        rest = rest.get(len..)?;
    }
    None
}

/// How long it is, behind the sign that it begins with.
fn escape(behind: &str, res: &mut String) -> Option<usize> {
    let it = behind.chars().next()?;
    match it {
        'n' => res.push('\n'),
        't' => res.push('\t'),
        '\\' | '\'' | '"' | '`' => res.push(it),
        // `\x72m`: what is written otherwise is looked for elsewhere.
        'x' | 'u' | 'U' | 'N' | '0'..='7' => return None,
        // To a shell in it, it says what it says in the shell.
        _ => res.extend(['\\', it]),
    }
    Some(1 + it.len_utf8())
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
        assert_eq!(find("os.system('git ' + x + ' y')"), line("git ${PUT_IN} y"));
        assert_eq!(find("os.system(rf'git {x[1]}\\d {{y}}')"), line("git ${PUT_IN}\\d {y}"));
        assert_eq!(find("execSync(`git ${x}`)"), line("git ${PUT_IN}"));
        assert_eq!(find("os.system('git %s' % x)"), line("git ${PUT_IN}"));
        assert_eq!(find("subprocess.run(f'rm {x}'.split())"), line("rm ${PUT_IN}"));
        for other in
            ["app.run('git push')", "subprocess.run(['git', x])", r"os.system('\x67it push')", "os.system('git push"]
        {
            assert_eq!(find(other), [], "{other}");
        }
    }
}
