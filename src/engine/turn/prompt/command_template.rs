//! Prompts of command files: their text, and what a command or a file is to fill in. A file is read once: what arguments,
//! commands and files bring is text, whatever stands in it.

use castor_base::file_prompt::{CommandFormat, FileCommand};

/// More commands and files in one prompt are an error.
const MAX_PIECES: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::turn) enum Piece {
    Text(String),
    /// The output of this line.
    Shell(String),
    /// What is in there; `written` is how the prompt names it.
    File {
        path: String,
        written: String,
    },
}

/// # Errors
/// For the user: something in the file that is never closed, arguments in a place where they cannot be quoted.
pub(in crate::turn) fn pieces(command: &FileCommand, args: &str) -> Result<Vec<Piece>, String> {
    let (mut res, takes_args) = match command.format {
        CommandFormat::Toml => toml_pieces(&command.prompt, args)?,
        CommandFormat::Markdown => markdown_pieces(&command.prompt, args)?,
    };
    if !takes_args && !args.is_empty() {
        res.push(Piece::Text(format!("\n\n/{} {args}", command.name)));
    }
    let n = res.iter().filter(|it| !matches!(it, Piece::Text(_))).count();
    match n > MAX_PIECES {
        true => Err(format!("it names {n} commands and files, and {MAX_PIECES} is the most")),
        false => Ok(res),
    }
}

/// Adds text; neighbours are joined.
fn push_text(res: &mut Vec<Piece>, text: &str) {
    match res.last_mut() {
        Some(Piece::Text(it)) => it.push_str(text),
        _ => res.push(Piece::Text(text.to_owned())),
    }
}

const ARGS: &str = "{{args}}";

fn toml_pieces(prompt: &str, args: &str) -> Result<(Vec<Piece>, bool), String> {
    let mut res = Vec::new();
    let mut rest = prompt;
    while let Some(at) = rest.find(['!', '@', '{']) {
        let (before, from) = rest.split_at(at);
        push_text(&mut res, before);
        if let Some(after) = from.strip_prefix(ARGS) {
            push_text(&mut res, args);
            rest = after;
        } else if let Some(inner) = from.strip_prefix("!{").or_else(|| from.strip_prefix("@{")) {
            let line = prompt.get(..prompt.len() - from.len()).unwrap_or_default().matches('\n').count() + 1;
            let end = closing(inner).ok_or_else(|| {
                format!("line {line} of its prompt opens {:?} and never closes it", from.get(..2).unwrap_or_default())
            })?;
            let (inside, after) =
                (inner.get(..end).unwrap_or_default().trim(), inner.get(end + 1..).unwrap_or_default());
            match from.starts_with('!') {
                // Nothing is to be run.
                true if inside.is_empty() => (),
                true => res.push(Piece::Shell(fill_line(inside, &[(ARGS.to_owned(), args.to_owned())])?)),
                false => {
                    let path = inside.replace(ARGS, args).trim().to_owned();
                    let written = from.get(..end + 3).unwrap_or_default().to_owned();
                    res.push(Piece::File { path, written });
                }
            }
            rest = after;
        } else {
            push_text(&mut res, from.get(..1).unwrap_or_default());
            rest = from.get(1..).unwrap_or_default();
        }
    }
    push_text(&mut res, rest);
    Ok((res, prompt.contains(ARGS)))
}

/// Where the brace is closed that stands before it.
fn closing(inner: &str) -> Option<usize> {
    let mut depth = 1;
    for (at, it) in inner.char_indices() {
        match it {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => (),
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn markdown_pieces(prompt: &str, args: &str) -> Result<(Vec<Piece>, bool), String> {
    let words = split_words(args);
    let mut values = vec![("$ARGUMENTS".to_owned(), args.to_owned())];
    values.extend((1..=9).map(|n| (format!("${n}"), words.get(n - 1).cloned().unwrap_or_default())));
    let mut res = Vec::new();
    let (mut rest, mut takes_args) = (prompt, false);
    while let Some(at) = rest.find(['!', '@', '$']) {
        let (before, from) = rest.split_at(at);
        push_text(&mut res, before);
        let named = values.iter().find(|(name, _)| is_name(from, name));
        let starts = before.chars().next_back().or_else(|| last_char(&res)).is_none_or(char::is_whitespace);
        rest = if let Some((name, value)) = named {
            takes_args = true;
            push_text(&mut res, value);
            from.get(name.len()..).unwrap_or_default()
        } else if let Some((line, after)) = from.strip_prefix("!`").and_then(|it| it.split_once('`')) {
            takes_args |= line.contains('$') && values.iter().any(|(name, _)| line.contains(name));
            res.push(Piece::Shell(fill_line(line.trim(), &values)?));
            after
        } else if let Some(path) = from.strip_prefix('@').filter(|_| starts).and_then(path_at) {
            let written = format!("@{path}");
            let mut filled = path.to_owned();
            values.iter().for_each(|(name, value)| filled = filled.replace(name, value));
            takes_args |= filled != path;
            res.push(Piece::File { path: filled, written });
            from.get(path.len() + 1..).unwrap_or_default()
        } else {
            push_text(&mut res, from.get(..1).unwrap_or_default());
            from.get(1..).unwrap_or_default()
        };
    }
    push_text(&mut res, rest);
    Ok((res, takes_args))
}

fn last_char(pieces: &[Piece]) -> Option<char> {
    match pieces.last() {
        Some(Piece::Text(it)) => it.chars().next_back(),
        Some(_) => Some('`'),
        None => None,
    }
}

/// `$1` of `$1,`, and not of `$12`.
fn is_name(from: &str, name: &str) -> bool {
    from.strip_prefix(name).is_some_and(|it| !it.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}

/// The path behind an `@`: what looks like one. A name alone may be a person's.
fn path_at(text: &str) -> Option<&str> {
    let end = text.find(|it: char| it.is_whitespace() || "`\"'()<>|;,".contains(it)).unwrap_or(text.len());
    let path = text.get(..end)?.trim_end_matches(['.', ':', '!', '?']);
    (path.contains(['/', '.']) || path.starts_with('$')).then_some(path)
}

/// Words of the arguments; quotes hold some together.
fn split_words(args: &str) -> Vec<String> {
    let (mut res, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for it in args.chars() {
        match (quote, it) {
            (Some(open), _) if it == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(it);
                word.get_or_insert_default();
            }
            (None, _) if it.is_whitespace() => res.extend(word.take()),
            _ => word.get_or_insert_default().push(it),
        }
    }
    res.extend(word);
    res
}

/// A shell line with values in the places of their names, each quoted as its place needs it: a value stays one word, or a
/// part of one, and never becomes a command.
fn fill_line(line: &str, values: &[(String, String)]) -> Result<String, String> {
    let names = |from: &str| {
        values.iter().find(|(name, _)| match name.starts_with('$') {
            true => is_name(from, name),
            false => from.starts_with(name.as_str()),
        })
    };
    // What a shell reads anew, or not as the line it stands in, has quotes of its own.
    let is_nested = ["$(", "`", "<<", "$'", "$\"", "\\\n"].iter().any(|it| line.contains(it))
        || line.split(|it: char| !it.is_ascii_alphanumeric()).any(|it| it == "eval");
    let (mut res, mut quote, mut rest) = (String::new(), None, line);
    while let Some(first) = rest.chars().next() {
        if let Some((name, value)) = names(rest) {
            let plain = |it: char| it.is_ascii_alphanumeric() || "_./:@%+=,-".contains(it);
            let is_plain = !value.is_empty() && value.chars().all(plain) && !value.starts_with('-');
            if is_nested && !is_plain {
                return Err(format!(
                    "it puts arguments into `{line}`, where they cannot be quoted; put them outside of substitutions"
                ));
            }
            res += &quoted(value, quote);
            rest = rest.get(name.len()..).unwrap_or_default();
            continue;
        }
        match (quote, first) {
            (None, '\'' | '"') => quote = Some(first),
            (Some(open), _) if first == open => quote = None,
            (None | Some('"'), '\\') => {
                res.push(first);
                rest = rest.get(1..).unwrap_or_default();
                let Some(next) = rest.chars().next() else { break };
                res.push(next);
                rest = rest.get(next.len_utf8()..).unwrap_or_default();
                continue;
            }
            _ => (),
        }
        res.push(first);
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    Ok(res)
}

fn quoted(value: &str, quote: Option<char>) -> String {
    let single = value.replace('\'', "'\\''");
    match quote {
        Some('\'') => single,
        // Out of the double quotes, and into them again.
        Some(_) => format!("\"'{single}'\""),
        None => format!("'{single}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece, pieces};
    use castor_base::{
        agent::AgentOrigin,
        file_prompt::{CommandFormat, FileCommand},
        path::AbsPath,
    };

    /// Text as it is, commands as `<line>`, files as `[path]`.
    fn check(format: CommandFormat, prompt: &str, args: &str) -> String {
        let command = FileCommand {
            name: "c".to_owned(),
            description: String::new(),
            hint: String::new(),
            origin: AgentOrigin::User(AbsPath::new("/c.toml").unwrap()),
            format,
            model: None,
            prompt: prompt.into(),
        };
        let shown = |it: Piece| match it {
            Piece::Text(it) => it,
            Piece::Shell(it) => format!("<{it}>"),
            Piece::File { path, .. } => format!("[{path}]"),
        };
        pieces(&command, args).map_or_else(|it| format!("error: {it}"), |it| it.into_iter().map(shown).collect())
    }

    #[test]
    fn prompts_of_gemini_cli() {
        for (prompt, args, want) in [
            ("Do it.", "", "Do it."),
            ("Do it.", "x y", "Do it.\n\n/c x y"),
            ("Fix {{args}}!", "a 'b'", "Fix a 'b'!"),
            ("A {{args}} b {{args}}", "", "A  b "),
            ("Diff: !{git diff --staged}.", "", "Diff: <git diff --staged>."),
            ("!{awk '{print $1}' f} end", "", "<awk '{print $1}' f> end"),
            ("!{} !{  }x", "", " x"),
            ("See @{src/a b.rs} and @{ {{args}} }", "c.rs", "See [src/a b.rs] and [c.rs]"),
            ("!{grep {{args}} f}", "it's; rm -rf ~", "<grep 'it'\\''s; rm -rf ~' f>"),
            ("!{grep \"{{args}}\" f}", "\"; rm -rf ~; \"", "<grep \"\"'\"; rm -rf ~; \"'\"\" f>"),
            ("!{grep '{{args}}' f}", "'; rm -rf ~; '", "<grep ''\\''; rm -rf ~; '\\''' f>"),
            ("!{grep \\\"{{args}} f}", "a b", "<grep \\\"'a b' f>"),
            ("!{git log $(git branch) {{args}}}", "main", "<git log $(git branch) 'main'>"),
            ("!{echo {{args}}}", "", "<echo ''>"),
            // What arguments bring is text.
            ("Say {{args}}", "!{rm -rf ~} @{/etc/passwd} {{args}}", "Say !{rm -rf ~} @{/etc/passwd} {{args}}"),
            ("ü {x} ! @ {{arg}}", "", "ü {x} ! @ {{arg}}"),
        ] {
            assert_eq!(check(CommandFormat::Toml, prompt, args), want, "{prompt}");
        }
        for (prompt, args, want) in [
            ("a\n!{ls {x}", "", "line 2 of its prompt opens \"!{\" and never closes it"),
            ("@{a", "", "line 1 of its prompt opens \"@{\" and never closes it"),
            ("!{echo \"$(echo {{args}})\"}", "a; rm", "cannot be quoted"),
            ("!{cat <<X\n{{args}}\nX}", "X\nrm", "cannot be quoted"),
            ("!{eval \"echo {{args}}\"}", "a;b", "cannot be quoted"),
        ] {
            let got = check(CommandFormat::Toml, prompt, args);
            assert!(got.starts_with("error: ") && got.contains(want), "{prompt}: {got}");
        }
        assert!(check(CommandFormat::Toml, &"!{ls}".repeat(21), "").contains("20 is the most"));
    }

    #[test]
    fn prompts_of_claude_code() {
        for (prompt, args, want) in [
            ("Fix #$ARGUMENTS.", "12 now", "Fix #12 now."),
            ("$1 to $2, $12 $$ $3", "\"a b\" c", "a b to c, $12 $$ "),
            ("No place.", "x", "No place.\n\n/c x"),
            ("Status: !`git status -s` ok", "", "Status: <git status -s> ok"),
            ("!`grep $1 f`", "a;b", "<grep 'a;b' f>"),
            ("Look at @src/main.rs, and @README.md.", "", "Look at [src/main.rs], and [README.md]."),
            ("Ask @alice or me@x.org", "", "Ask @alice or me@x.org"),
            ("Read @$1", "a/b.rs", "Read [a/b.rs]"),
            ("{{args}} !{ls} costs $5.00!", "", "{{args}} !{ls} costs .00!"),
        ] {
            assert_eq!(check(CommandFormat::Markdown, prompt, args), want, "{prompt}");
        }
    }
}
