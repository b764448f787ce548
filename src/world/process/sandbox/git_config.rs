//! The text of git's settings, read as git reads it: what it takes otherwise than git could hide a setting from us.

use std::{iter::Peekable, str::Chars};

/// Section and key in lower case, and the value without its quotes. Of `[diff "x"]` the section is `diff`.
pub(super) type Setting = (String, String, String);

/// A setting with what its section is of: `x` of `[diff "x"]`.
#[derive(Clone, Debug)]
pub struct Entry {
    pub section: String,
    pub name: String,
    pub key: String,
    pub value: String,
}

pub(super) fn settings(text: &str) -> Vec<Setting> {
    entries(text).into_iter().map(|it| (it.section, it.key, it.value)).collect()
}

/// Where git gives up on a text, it goes on with the next line.
pub(super) fn entries(text: &str) -> Vec<Entry> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut chars = text.chars().peekable();
    let (mut res, mut section, mut name) = (Vec::new(), String::new(), String::new());
    while let Some(it) = chars.next() {
        match it {
            '[' => (section, name) = header(&mut chars),
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
                let entry =
                    |value| Entry { section: section.clone(), name: name.clone(), key: key.to_lowercase(), value };
                res.extend(value.map(entry));
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

/// What stands between the brackets, up to the first blank, dot or quote, and what stands behind that.
fn header(chars: &mut Peekable<Chars<'_>>) -> (String, String) {
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
    let section = res.split(['"', '.', ' ', '\t']).next().unwrap_or_default();
    let name = res.get(section.len()..).unwrap_or_default().trim_matches(['"', '.', ' ', '\t']).replace('\\', "");
    (section.to_lowercase(), name)
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
    use super::{entries, settings};

    #[test]
    fn sections_have_names() {
        let text = "[Remote \"o/r\"] url = a\n[remote.up]\nurl = b\n[core] x = c\n[a \"b \\\"c\"] d = e";
        let found: Vec<_> =
            entries(text).into_iter().map(|it| format!("{} {} {} {}", it.section, it.name, it.key, it.value)).collect();
        assert_eq!(found, ["remote o/r url a", "remote up url b", "core  x c", "a b \"c d e"]);
    }

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
