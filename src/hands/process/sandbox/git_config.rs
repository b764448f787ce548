//! Parser for git configuration files, exact as git: a difference could hide a setting.

use std::{iter::Peekable, str::Chars};

/// Section and key in lower case, and the value without its quotes. Of `[diff "x"]` the section is `diff`.
pub(super) type Setting = (String, String, String);

/// Where git gives up on a text, it goes on with the next line.
pub(super) fn settings(text: &str) -> Vec<Setting> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut chars = text.chars().peekable();
    let (mut res, mut section) = (Vec::new(), String::new());
    while let Some(it) = chars.next() {
        match it {
            '[' => section = header(&mut chars),
            '#' | ';' => skip_line(&mut chars),
            it if it.is_alphanumeric() => {
                let key = it.to_string() + &take(&mut chars, |it| it.is_alphanumeric() || it == '-');
                take(&mut chars, |it| it != '\n' && it.is_whitespace());
                let value = match chars.next_if(|it| *it == '=') {
                    Some(_) => Some(value(&mut chars)),
                    None if matches!(chars.peek(), None | Some('\n')) => Some("true".to_owned()),
                    None => {
                        skip_line(&mut chars);
                        None
                    }
                };
                res.extend(value.map(|value| (section.clone(), key.to_lowercase(), value)));
            }
            _ => (),
        }
    }
    res
}

fn take(chars: &mut Peekable<Chars<'_>>, wants: impl Fn(char) -> bool) -> String {
    std::iter::from_fn(|| chars.next_if(|it| wants(*it))).collect()
}

/// No backslash makes a comment longer.
fn skip_line(chars: &mut Peekable<Chars<'_>>) {
    take(chars, |it| it != '\n');
}

/// What stands between the brackets, up to the first blank, dot or quote.
fn header(chars: &mut Peekable<Chars<'_>>) -> String {
    let (mut res, mut quoted, mut escaped) = (String::new(), false, false);
    while let Some(it) = chars.next_if(|it| *it != '\n') {
        match it {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => break,
            _ => (),
        }
        res.push(it);
    }
    res.split(['"', '.', ' ', '\t']).next().unwrap_or_default().to_lowercase()
}

fn value(chars: &mut Peekable<Chars<'_>>) -> String {
    let (mut res, mut quoted) = (String::new(), false);
    while let Some(it) = chars.next() {
        match it {
            '\n' => break,
            '#' | ';' if !quoted => {
                skip_line(chars);
                break;
            }
            '"' => quoted = !quoted,
            '\\' => match chars.next() {
                Some('\n') | None => (),
                Some('n') => res.push('\n'),
                Some('t') => res.push('\t'),
                Some(it) => res.push(it),
            },
            it => res.push(it),
        }
    }
    res.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::settings;

    #[test]
    fn every_setting_is_seen_that_git_sees() {
        for (text, want) in [
            ("[core]\n\tfsmonitor = x", "core.fsmonitor=x"),
            ("\u{feff}[Core]fsMonitor=x y # z", "core.fsmonitor=x y"),
            ("[a][core] fsmonitor = x", "core.fsmonitor=x"),
            ("[a] b = c\n[core]\n# no more \\\nfsmonitor = x", "a.b=c core.fsmonitor=x"),
            ("[core]\nb = c ; no more \\\nfsmonitor = x", "core.b=c core.fsmonitor=x"),
            ("[core]\nb = \"c ; \\\"d\" \\\n e\nfsmonitor = x\r\n", "core.b=c ; \"d  e core.fsmonitor=x"),
            ("[core] b\nfsmonitor\r= x", "core.b=true core.fsmonitor=x"),
            ("[diff \"a]b\\\"]\"] textconv = x", "diff.textconv=x"),
            ("[diff.x] textconv = x", "diff.textconv=x"),
            ("[core]\n!\nb c\nfsmonitor = x", "core.fsmonitor=x"),
            ("", ""),
        ] {
            let found: Vec<_> = settings(text).iter().map(|(a, b, c)| format!("{a}.{b}={c}")).collect();
            assert_eq!(found.join(" "), want, "{text}");
        }
    }
}
