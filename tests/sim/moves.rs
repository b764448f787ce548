//! What can happen, as lines of a conversation that a person can read, shorten and play again.

use std::fmt;

/// One thing that goes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Bytes of the client, cut anywhere.
    Bytes(Vec<u8>),
    /// The client takes so many bytes of what it was told.
    Reads(usize),
    /// The client ends.
    End(End),
    /// Time goes on, in milliseconds.
    Clock(u64),
    /// The world answers an effect, in the words of `world.rs`.
    Answer {
        session: String,
        effect: u64,
        words: String,
    },
    /// A task asks for the editor's hands.
    Editor {
        session: String,
        effect: u64,
        method: String,
    },
    /// An MCP server has news.
    Server {
        server: u64,
        words: String,
    },
    /// A session's folder is in doubt: the next prompt asks about it.
    Doubt(String),
    /// The oldest look for sessions is over.
    Listed,
    /// A chore is done.
    Chore,
    Disk(Disk),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Input,
    Output,
    Signal,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disk {
    /// The next write to a log stops after so many bytes.
    Full(usize),
    /// A crash had left half a line at the end of a log.
    Torn(String),
    /// Another process holds a session.
    Held(String),
    /// It lets go of all that it holds.
    Free,
}

/// A move, and whether it begins a turn of the loop or comes with the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub with_next: bool,
    pub what: Move,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.with_next { "& " } else { "" };
        write!(f, "{more}{}", self.what)
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "> {}", bytes.escape_ascii()),
            Self::Reads(n) => write!(f, "reads {n}"),
            Self::End(End::Input) => write!(f, "end input"),
            Self::End(End::Output) => write!(f, "end output"),
            Self::End(End::Signal) => write!(f, "end signal"),
            Self::Clock(ms) => write!(f, "clock {ms}"),
            Self::Answer { session, effect, words } => write!(f, "answer {session} {effect} {words}"),
            Self::Editor { session, effect, method } => write!(f, "editor {session} {effect} {method}"),
            Self::Server { server, words } => write!(f, "server {server} {words}"),
            Self::Doubt(session) => write!(f, "doubt {session}"),
            Self::Listed => write!(f, "listed"),
            Self::Chore => write!(f, "chore"),
            Self::Disk(Disk::Full(n)) => write!(f, "disk full {n}"),
            Self::Disk(Disk::Torn(session)) => write!(f, "disk torn {session}"),
            Self::Disk(Disk::Held(session)) => write!(f, "disk held {session}"),
            Self::Disk(Disk::Free) => write!(f, "disk free"),
        }
    }
}

impl Line {
    /// `None` for what is no move: what came out, comments, blank lines.
    pub fn read(text: &str) -> Result<Option<Self>, String> {
        let text = text.strip_prefix("  ").unwrap_or(text);
        if text.is_empty() || ["<", "#", "!"].iter().any(|it| text.starts_with(it)) {
            return Ok(None);
        }
        let (with_next, text) = text.strip_prefix("& ").map_or((false, text), |it| (true, it));
        let what = Move::read(text).ok_or_else(|| format!("not a move: {text}"))?;
        Ok(Some(Self { with_next, what }))
    }
}

impl Move {
    fn read(text: &str) -> Option<Self> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let number = |it: &str| it.parse::<u64>().ok();
        let three = || {
            let mut parts = rest.splitn(3, ' ');
            Some((parts.next()?.to_owned(), number(parts.next()?)?, parts.next()?.to_owned()))
        };
        Some(match word {
            ">" => Self::Bytes(unescape(rest)?),
            "reads" => Self::Reads(rest.parse().ok()?),
            "end" => Self::End(match rest {
                "input" => End::Input,
                "output" => End::Output,
                "signal" => End::Signal,
                _ => return None,
            }),
            "clock" => Self::Clock(number(rest)?),
            "answer" => three().map(|(session, effect, words)| Self::Answer { session, effect, words })?,
            "editor" => three().map(|(session, effect, method)| Self::Editor { session, effect, method })?,
            "server" => {
                let (server, words) = rest.split_once(' ')?;
                Self::Server { server: number(server)?, words: words.to_owned() }
            }
            "doubt" if !rest.is_empty() => Self::Doubt(rest.to_owned()),
            "listed" => Self::Listed,
            "chore" => Self::Chore,
            "disk" => Self::Disk(match rest.split_once(' ').unwrap_or((rest, "")) {
                ("full", n) => Disk::Full(n.parse().ok()?),
                ("torn", session) => Disk::Torn(session.to_owned()),
                ("held", session) => Disk::Held(session.to_owned()),
                ("free", "") => Disk::Free,
                _ => return None,
            }),
            _ => return None,
        })
    }
}

/// The reverse of `escape_ascii`.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut res = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let plain = match byte {
            b'\\' => match rest.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'x' => {
                    let digits = [rest.next()?, rest.next()?];
                    u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
                }
                other => other,
            },
            other => other,
        };
        res.push(plain);
    }
    Some(res)
}

#[test]
fn moves_are_read_as_they_are_written() {
    let answer = |words: &str| Move::Answer { session: "s".to_owned(), effect: 3, words: words.to_owned() };
    for what in [
        Move::Bytes((0..=255).collect()),
        Move::Bytes(Vec::new()),
        Move::Reads(7),
        Move::End(End::Input),
        Move::End(End::Output),
        Move::End(End::Signal),
        Move::Clock(5),
        answer("chunks text stop"),
        Move::Editor { session: "s".to_owned(), effect: 3, method: "fs/read_text_file".to_owned() },
        Move::Server { server: 2, words: "ready look".to_owned() },
        Move::Doubt("s".to_owned()),
        Move::Listed,
        Move::Chore,
        Move::Disk(Disk::Full(0)),
        Move::Disk(Disk::Torn("s".to_owned())),
        Move::Disk(Disk::Held("s".to_owned())),
        Move::Disk(Disk::Free),
    ] {
        for with_next in [true, false] {
            let line = Line { with_next, what: what.clone() };
            assert_eq!(Line::read(&line.to_string()), Ok(Some(line)));
        }
    }
    for text in ["", "# seed 3", "< {}", "! broken"] {
        assert_eq!(Line::read(text), Ok(None));
    }
    for text in ["clock", "answer s", "doubt", "disk", "shout", "> \\", "> \\xg0"] {
        Line::read(text).unwrap_err();
    }
}
