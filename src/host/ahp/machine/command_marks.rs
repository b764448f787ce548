//! Marks that a shell prints around its commands (OSC 633), taken out of what a terminal shows.

const START: &str = "\x1b]633;";
/// A mark that is longer is none.
const MAX_MARK: usize = 16 << 10;

#[derive(Debug, PartialEq, Eq)]
pub enum TerminalPart {
    Text(String),
    /// The shell says what it runs, from now on.
    Available,
    Executed(String),
    Finished(Option<i64>),
    Folder(String),
}

/// What is not whole yet of the output so far.
#[derive(Debug, Default)]
pub struct CommandMarks {
    rest: String,
    command: String,
    runs: bool,
}

impl CommandMarks {
    pub fn push(&mut self, text: &str) -> Vec<TerminalPart> {
        let all = std::mem::take(&mut self.rest) + text;
        let (mut res, mut rest) = (Vec::new(), all.as_str());
        while let Some((before, mark)) = rest.split_once(START) {
            push_text(&mut res, before);
            let Some((body, after)) = split_mark(mark) else {
                if mark.len() <= MAX_MARK {
                    self.rest = format!("{START}{mark}");
                    return res;
                }
                push_text(&mut res, START);
                rest = mark;
                continue;
            };
            res.extend(self.take(body));
            rest = after;
        }
        let held = (1..START.len()).rev().find(|n| START.get(..*n).is_some_and(|it| rest.ends_with(it))).unwrap_or(0);
        let (shown, held) = rest.split_at(rest.len() - held);
        push_text(&mut res, shown);
        self.rest = held.to_owned();
        res
    }

    fn take(&mut self, mark: &str) -> Option<TerminalPart> {
        match mark.split_once(';').unwrap_or((mark, "")) {
            ("A", _) => Some(TerminalPart::Available),
            ("E", command) => {
                self.command = unescape(command);
                None
            }
            ("C", _) => {
                self.runs = true;
                Some(TerminalPart::Executed(std::mem::take(&mut self.command)))
            }
            ("D", code) if std::mem::take(&mut self.runs) => Some(TerminalPart::Finished(code.parse().ok())),
            ("P", property) => property.strip_prefix("Cwd=").map(|it| TerminalPart::Folder(unescape(it))),
            _ => None,
        }
    }
}

fn push_text(to: &mut Vec<TerminalPart>, text: &str) {
    if !text.is_empty() {
        to.push(TerminalPart::Text(text.to_owned()));
    }
}

/// A mark ends with BEL or ST.
fn split_mark(text: &str) -> Option<(&str, &str)> {
    let ends = ["\x07", "\x1b\\"].into_iter().filter_map(|end| Some((text.find(end)?, end.len())));
    let (at, len) = ends.min()?;
    Some((text.get(..at)?, text.get(at + len..)?))
}

/// `\xAB` is a byte, `\\` a backslash.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend(before.as_bytes());
        let code = after.strip_prefix('x').and_then(|it| u8::from_str_radix(it.get(..2)?, 16).ok());
        rest = match (code, after.strip_prefix('\\')) {
            (Some(code), _) => {
                bytes.push(code);
                after.get(3..).unwrap_or_default()
            }
            (None, Some(after)) => {
                bytes.push(b'\\');
                after
            }
            (None, None) => {
                bytes.push(b'\\');
                after
            }
        };
    }
    bytes.extend(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{CommandMarks, TerminalPart::*};

    #[test]
    fn marks_are_taken_out_wherever_the_output_is_cut() {
        let all = "\x1b]633;A\x07$ ls\r\n\x1b]633;E;ls \\x3b a\\\\b\x07\x1b]633;C\x07\x1b[1ma\x1b[0m\r\n\
                   \x1b]633;D;0\x1b\\\x1b]633;P;Cwd=/w\x07\x1b]633;D;1\x07$ ";
        let whole = CommandMarks::default().push(all);
        let expected = [
            Available,
            Text("$ ls\r\n".into()),
            Executed("ls ; a\\b".into()),
            Text("\x1b[1ma\x1b[0m\r\n".into()),
            Finished(Some(0)),
            Folder("/w".into()),
            Text("$ ".into()),
        ];
        assert_eq!(whole, expected);
        let mut marks = CommandMarks::default();
        let (mut text, mut others) = (String::new(), Vec::new());
        for it in all.chars().flat_map(|it| marks.push(&it.to_string())) {
            match it {
                Text(it) => text += &it,
                it => others.push(it),
            }
        }
        assert_eq!(text, "$ ls\r\n\x1b[1ma\x1b[0m\r\n$ ");
        assert_eq!(others.len(), 4);
    }
}
