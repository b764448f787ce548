//! Command substitutions that print a number, whatever files and variables hold: what is counted with them runs nothing.
//!
//! Only text with a `[` in it makes arithmetic run something, and only what is known here to print none counts.

/// A word of a substitution.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// As the command gets it.
    Plain(String),
    /// A variable in quotes: one word.
    Quoted,
    /// Without them it may be several, and options.
    Open,
    /// One that only ever has numbers.
    Number,
    Pipe,
    Or,
    /// `< f`, `2>/dev/null`: what follows is no word of the command.
    Redirect,
}

/// Who prints a number here, or hands on what does.
const PROGRAMS: &[&str] = &[
    "date", "echo", "expr", "getconf", "git", "grep", "head", "id", "nproc", "seq", "sort", "stat", "sysctl", "tail",
    "tput", "tr", "true", "wc",
];

/// Of `date` and `stat`, what a number or nothing comes of.
const DATE: &[char] = &['s', 'N', 'Y', 'y', 'm', 'd', 'H', 'M', 'S', 'j', 'u', 'w'];
const STAT: &[char] = &['s', 'Y', 'X', 'Z', 'W', 'b', 'B', 'a', 'u', 'g', 'h', 'i'];

/// `$(wc -l < f)`, `$(date +%s)`, `$(stat -c %s f || echo 0)`, as written. `counts`: whether a variable only ever has numbers.
pub(super) fn prints_number(substitution: &str, counts: &dyn Fn(&str) -> bool) -> bool {
    let value = substitution.trim_matches('"');
    let Some(inside) = value.strip_prefix("$(").and_then(|it| it.strip_suffix(')')) else { return false };
    let Some(tokens) = tokens(inside, counts) else { return false };
    !tokens.is_empty() && tokens.split(|it| *it == Token::Or).all(pipeline)
}

/// The variable whose default is a number: `${PORT:-3000}` is that, or what the variable holds.
pub(super) fn with_default(expansion: &str) -> Option<&str> {
    let inside = expansion.trim_matches('"').strip_prefix("${")?.strip_suffix('}')?;
    let (name, default) = inside.split_once(":-").or_else(|| inside.split_once(":="))?;
    Some(name).filter(|it| is_name(it) && is_digits(default))
}

/// Whether a function of that name would be taken for a program that prints numbers.
pub(super) fn is_relied_on(name: &str) -> bool {
    PROGRAMS.contains(&name) || name == "false"
}

/// A command may not fail over to another kind of text: each of the pipelines ends in a number.
fn pipeline(tokens: &[Token]) -> bool {
    let stages: Vec<&[Token]> = tokens.split(|it| *it == Token::Pipe).collect();
    let Some(at) = stages.iter().rposition(|it| !passes_on(it)) else { return false };
    stages.get(at).is_some_and(|it| is_number(it))
}

/// Whether it only leaves out some of what it gets.
fn passes_on(stage: &[Token]) -> bool {
    let words = words(stage);
    // `<f` is not of the words.
    let plain = words.iter().all(|it| matches!(it, Token::Plain(_))) && words.len() == stage.len();
    let text = |at: usize| match words.get(at) {
        Some(Token::Plain(it)) => it.as_str(),
        _ => "",
    };
    let is_count = |it: &str| it.starts_with('-') && is_digits(it.trim_start_matches("-n").trim_start_matches('-'));
    plain
        && match text(0) {
            "tr" => text(1) == "-d" && words.len() == 3,
            "head" | "tail" => words.len() == 2 && is_count(text(1)) || words.len() == 1,
            "sort" => words.len() == 1 || words.len() == 2 && ["-n", "-nr", "-rn", "-r"].contains(&text(1)),
            _ => false,
        }
}

fn is_number(stage: &[Token]) -> bool {
    let words = words(stage);
    let reads_file = stage.len() > words.len();
    let Some(Token::Plain(name)) = words.first() else { return false };
    let args = words.get(1..).unwrap_or_default();
    let plain: Vec<&str> = args.iter().map(text).collect();
    let all_plain = args.iter().all(|it| matches!(it, Token::Plain(_)));
    match (name.as_str(), plain.as_slice()) {
        ("nproc", _) => all_plain,
        ("true" | "false", []) => true,
        ("echo", [number]) => is_digits(number),
        ("id", ["-u" | "-g"]) | ("tput", ["cols" | "lines"]) => true,
        ("getconf", ["_NPROCESSORS_ONLN"]) | ("sysctl", ["-n", "hw.ncpu"]) => true,
        // Of several files it prints the names, too.
        ("grep", ["-c" | "-ci" | "-ic" | "-cE", pattern, rest @ ..]) => {
            let is_plain = all_plain_at(args, 1) && !pattern.starts_with('-');
            is_plain && (rest.is_empty() || rest.len() == 1 && is_one(args.get(2)))
        }
        ("wc", ["-l" | "-c" | "-w" | "-m"]) => true,
        ("git", ["rev-list", "--count", rest @ ..]) => !rest.iter().any(|it| it.starts_with('-')) && all_plain,
        ("date", _) => date(args),
        ("stat", _) => !reads_file && stat(args),
        ("seq", [_, ..]) => seq(args),
        ("expr", [_, "+" | "-" | "*" | "/" | "%", _]) => args.iter().all(is_operand),
        _ => false,
    }
}

fn all_plain_at(args: &[Token], at: usize) -> bool {
    matches!(args.get(at), Some(Token::Plain(_)))
}

/// In text between the digits it would be no number, and without `[` nothing runs either: but nobody needs it.
fn is_format(text: &str, kinds: &[char]) -> bool {
    let mut rest = text.chars().peekable();
    while let Some(it) = rest.next() {
        match it {
            '%' => {
                rest.next_if_eq(&'-');
                if !rest.next().is_some_and(|it| kinds.contains(&it)) {
                    return false;
                }
            }
            it if it.is_ascii_digit() => (),
            _ => return false,
        }
    }
    !text.is_empty()
}

/// `date -u -d "$x" +%s`: one format, and no variable that could be another.
fn date(args: &[Token]) -> bool {
    let (mut formats, mut at) = (0, 0);
    while let Some(it) = args.get(at) {
        at += 1;
        match text(it) {
            "-u" => (),
            "-d" | "-r" => {
                if !is_one(args.get(at)) {
                    return false;
                }
                at += 1;
            }
            it if it.strip_prefix('+').is_some_and(|it| is_format(it, DATE)) => formats += 1,
            _ => return false,
        }
    }
    formats == 1
}

/// One file: of two, one may be called like an option with another format.
fn stat(args: &[Token]) -> bool {
    let plain: Vec<&str> = args.iter().map(text).collect();
    let glued =
        |it: &str| ["-c", "--format=", "--printf="].iter().find_map(|start| it.strip_prefix(start)).map(str::to_owned);
    let format = match plain.as_slice() {
        ["-c", format, _] => Some((*format).to_owned()),
        ["-f%z", _] => return is_one(args.last()),
        [first, _] => glued(first),
        _ => None,
    };
    format.is_some_and(|it| is_format(&it, STAT)) && is_one(args.last())
}

/// `-f` and `-s` name text that is printed. Behind a number there are no options any more.
fn seq(args: &[Token]) -> bool {
    let is_number = |it: &Token| *it == Token::Number || is_digits(text(it).trim_start_matches('-'));
    match args {
        [first, rest @ ..] if is_number(first) => rest.iter().all(|it| is_number(it) || !matches!(it, Token::Plain(_))),
        // An option alone prints nothing.
        [it] => *it == Token::Quoted,
        _ => false,
    }
}

fn is_operand(it: &Token) -> bool {
    match it {
        Token::Plain(it) => is_digits(it) || ["+", "-", "*", "/", "%"].contains(&it.as_str()),
        it => matches!(it, Token::Number | Token::Quoted),
    }
}

fn is_one(it: Option<&Token>) -> bool {
    match it {
        Some(Token::Plain(it)) => !it.starts_with('-') && !it.contains(['*', '?', '[', '{', '~']),
        it => matches!(it, Some(Token::Number | Token::Quoted)),
    }
}

/// Without what is redirected.
fn words(stage: &[Token]) -> Vec<Token> {
    let mut res: Vec<Token> = Vec::new();
    let mut skips = false;
    for it in stage {
        match it {
            Token::Redirect => skips = true,
            _ if skips => skips = false,
            it => res.push(it.clone()),
        }
    }
    res
}

/// A variable has no text of its own.
fn text(it: &Token) -> &str {
    match it {
        Token::Plain(it) => it,
        _ => "",
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

fn is_name(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

/// `None`: there is more in it than plain words, whole variables, pipes and redirections.
fn tokens(inside: &str, counts: &dyn Fn(&str) -> bool) -> Option<Vec<Token>> {
    let (mut res, mut rest) = (Vec::new(), inside.trim());
    while let Some(first) = rest.chars().next() {
        let len = match first {
            it if it.is_whitespace() && it != '\n' => it.len_utf8(),
            '|' if rest.starts_with("||") => {
                res.push(Token::Or);
                2
            }
            '|' => {
                res.push(Token::Pipe);
                1
            }
            '<' if !rest.starts_with("<<") && !rest.starts_with("<(") => {
                res.push(Token::Redirect);
                1
            }
            '2' if rest.starts_with("2>/dev/null") => "2>/dev/null".len(),
            _ => {
                let end = word_end(rest)?;
                res.push(word(rest.get(..end)?, counts)?);
                end
            }
        };
        rest = rest.get(len..)?;
    }
    Some(res)
}

/// Where a word ends that has at most one kind of quotes around it; none is empty.
fn word_end(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|it| ['"', '\''].contains(it));
    match quote {
        Some(it) => text.get(1..)?.find(it).map(|at| at + 2),
        None => Some(text.find([' ', '\t', '|', '<', '>']).unwrap_or(text.len())).filter(|it| *it > 0),
    }
}

fn word(text: &str, counts: &dyn Fn(&str) -> bool) -> Option<Token> {
    let quote = text.chars().next().filter(|it| ['"', '\''].contains(it));
    let inner = match quote {
        Some(it) => text.strip_prefix(it)?.strip_suffix(it)?,
        None => text,
    };
    if let Some(name) = inner.strip_prefix('$').filter(|_| quote != Some('\'')) {
        let name = name.strip_prefix('{').map_or(Some(name), |it| it.strip_suffix('}'))?;
        let kind = if quote.is_some() { Token::Quoted } else { Token::Open };
        return is_name(name).then(|| if counts(name) { Token::Number } else { kind });
    }
    // In quotes blanks and stars are themselves.
    let is_plain =
        |it: char| it.is_ascii_alphanumeric() || "_%+-./:,=@^~{}".contains(it) || quote.is_some() && " *?".contains(it);
    let escaped = if inner == "\\*" { "*" } else { inner };
    (escaped == "*" && escaped != inner || inner.chars().all(is_plain)).then(|| Token::Plain(escaped.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{prints_number, with_default};

    #[test]
    fn what_prints_a_number_is_told_from_what_may_print_anything() {
        let prints = |it: &str| prints_number(&format!("$({it})"), &|name| name == "n");
        for yes in [
            "nproc",
            "wc -l < f",
            "wc -l <f",
            "cat a b | sort | wc -l | tr -d ' '",
            "ls -1 | wc -l",
            "date +%s",
            "date '+%Y%m%d'",
            "date -u -d \"$x\" +%s",
            "date +%-d",
            "stat -c %s f",
            "stat -c%s \"$f\" 2>/dev/null || stat -f%z \"$f\"",
            "stat --format=%Y f || echo 0",
            "seq 5",
            "seq 1 $n",
            "seq 1 \"${n}\" 10",
            "seq $n",
            "id -u",
            "expr \"$a\" + 1",
            "expr $n + 1",
            "expr 2 \\* 3",
            "grep -c x f",
            "grep -c 'a b' \"$f\" || true",
            "seq 3 $x",
            "git rev-list --count HEAD",
            "getconf _NPROCESSORS_ONLN || sysctl -n hw.ncpu",
        ] {
            assert!(prints(yes), "{yes}");
        }
        for no in [
            "",
            "cat f",
            "cat f | head -1",
            "head -1",
            "wc -l f",
            "nproc; cat f",
            "nproc && cat f",
            "cat f || nproc",
            "nproc | cat f",
            "echo \"$x | nproc \"",
            "printf '%s' \"$x | wc -l <\"",
            "echo 'x|nproc'",
            "echo x",
            "echo $x",
            "date",
            "date +%A",
            "date $x +%s",
            "date +%s +%A",
            "date -d $x +%s",
            "stat -c %n f",
            "stat -c %s $f",
            "stat -c %s *",
            "stat -c %s a b",
            "stat -c %s \"$f\" \"$g\"",
            "stat -c '%s[' f",
            "seq -f x 5",
            "seq -s x 5",
            "seq \"-f$x\" 1",
            "seq $a $b",
            "expr substr \"$x\" 1 2",
            "expr $a + 1",
            "expr $((1)) + 1",
            "seq $x",
            "grep -c \"$x\" f",
            "expr match x y",
            "grep -c x *",
            "grep -c x a b",
            "grep -c x $f",
            "grep -rc x",
            "wc -l < $(cat f)",
            "wc -l < f > g",
            "git rev-list --count --format=x HEAD",
            "id",
            "`nproc`",
        ] {
            assert!(!prints(no), "{no}");
        }
    }

    #[test]
    fn defaults() {
        assert_eq!((with_default("${PORT:-3000}"), with_default("\"${n:=1}\"")), (Some("PORT"), Some("n")));
        for no in ["${PORT:-x}", "${PORT:-$x}", "${PORT:-}", "${!PORT:-1}", "${PORT}", "$PORT", "${a[0]:-1}", "${1:-2}"]
        {
            assert_eq!(with_default(no), None, "{no}");
        }
    }
}
