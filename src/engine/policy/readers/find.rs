//! Whether `find` comes to a file with its tests, as far as its words tell.

use super::{is_like, may_match, name_of};
use crate::{base::path::AbsPath, engine::policy::shell::Word};

/// Tests and options without a value.
const PLAIN: &[&str] = &[
    "-daystart",
    "-depth",
    "-empty",
    "-executable",
    "-follow",
    "-mount",
    "-nouser",
    "-nogroup",
    "-noleaf",
    "-prune",
    "-readable",
    "-true",
    "-writable",
    "-xdev",
];
/// The same with one.
const VALUED: &[&str] = &[
    "-amin",
    "-anewer",
    "-atime",
    "-cmin",
    "-cnewer",
    "-ctime",
    "-group",
    "-inum",
    "-ipath",
    "-iregex",
    "-iwholename",
    "-links",
    "-maxdepth",
    "-mindepth",
    "-mmin",
    "-mtime",
    "-newer",
    "-path",
    "-perm",
    "-regex",
    "-regextype",
    "-size",
    "-type",
    "-user",
    "-wholename",
];
const ACTS: &[&str] = &["-print", "-print0", "-ls", "-exec", "-execdir", "-ok", "-okdir", "-printf", "-fprint", "-fls"];
/// Parentheses within each other.
const DEEP: usize = 16;

/// Whether find does anything with that file: prints it where no word says what, too.
pub(super) fn may_find(args: &[Word], file: &AbsPath) -> bool {
    let leads = |it: &Word| matches!(it.text.as_str(), "-H" | "-L" | "-P") || !it.text.starts_with(['-', '(', '!']);
    let from = args.iter().position(|it| !leads(it)).unwrap_or(args.len());
    let words = args.get(from..).unwrap_or_default();
    let name = name_of(file);
    let mut reader = Reader { words, file: file.to_string(), name, acts: false, reached: false };
    let Some(all) = reader.any(DEEP, true) else { return true };
    // What is left over nobody read.
    !reader.words.is_empty() || if reader.acts { reader.reached } else { all.yes }
}

/// What a test may say of the file.
#[derive(Clone, Copy)]
struct Says {
    yes: bool,
    no: bool,
}

const EITHER: Says = Says { yes: true, no: true };

struct Reader<'w> {
    words: &'w [Word],
    file: String,
    name: String,
    /// Whether something is done by its words.
    acts: bool,
    /// Whether that may be done with the file.
    reached: bool,
}

impl<'w> Reader<'w> {
    fn peek(&self) -> Option<&'w str> {
        self.words.first().map(|it| it.text.as_str())
    }

    fn next(&mut self) -> Option<&'w Word> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    /// Tests between which an "or" stands. `reached`: whether the file comes to them. `None`: not to be read.
    fn any(&mut self, deep: usize, reached: bool) -> Option<Says> {
        let mut res = self.all(deep, reached)?;
        while let Some(it @ ("-o" | "-or" | ",")) = self.peek() {
            self.next();
            let comes = reached && (it == "," || res.no);
            let more = self.all(deep, comes)?;
            res = match it {
                "," => more,
                _ => Says { yes: res.yes || res.no && more.yes, no: res.no && more.no },
            };
        }
        Some(res)
    }

    /// Tests that must all hold.
    fn all(&mut self, deep: usize, reached: bool) -> Option<Says> {
        let mut res = Says { yes: true, no: false };
        while !matches!(self.peek(), None | Some("-o" | "-or" | "," | ")")) {
            if matches!(self.peek(), Some("-a" | "-and")) {
                self.next();
                continue;
            }
            let one = self.one(deep, reached && res.yes)?;
            res = Says { yes: res.yes && one.yes, no: res.no || one.no };
        }
        Some(res)
    }

    fn one(&mut self, deep: usize, reached: bool) -> Option<Says> {
        let word = self.next()?;
        match word.literal()? {
            "!" | "-not" => self.one(deep.checked_sub(1)?, reached).map(|it| Says { yes: it.no, no: it.yes }),
            "(" => {
                let res = self.any(deep.checked_sub(1)?, reached)?;
                (self.next()?.text == ")").then_some(res)
            }
            "-name" => {
                let name = self.name.clone();
                self.by(|it| may_match(it, &name))
            }
            "-iname" => {
                let name = self.name.to_lowercase();
                self.by(|it| may_match(&it.to_lowercase(), &name))
            }
            "-path" | "-wholename" => {
                // The folder that it begins in stands in front.
                let file = self.file.clone();
                let odd = |it: &str| it.contains(['[', '\\']);
                self.by(|it| odd(it) || is_like(format!("*{}", it.trim_start_matches('.')).as_bytes(), file.as_bytes()))
            }
            "-false" => Some(Says { yes: false, no: true }),
            it if ACTS.contains(&it) => self.act(it, reached),
            it if PLAIN.contains(&it) => {
                Some(if it == "-prune" || it == "-true" { Says { yes: true, no: false } } else { EITHER })
            }
            it if VALUED.contains(&it) => self.next().map(|_| EITHER),
            _ => None,
        }
    }

    fn by(&mut self, may: impl Fn(&str) -> bool) -> Option<Says> {
        let pattern = self.next()?;
        Some(match pattern.literal() {
            Some(it) if !may(it) => Says { yes: false, no: true },
            // That it fits may be a mistake of ours.
            _ => EITHER,
        })
    }

    fn act(&mut self, name: &str, reached: bool) -> Option<Says> {
        (self.acts, self.reached) = (true, self.reached || reached);
        if name.starts_with("-exec") || name.starts_with("-ok") {
            let end = self.words.iter().position(|it| matches!(it.text.as_str(), ";" | "+"))?;
            self.words = self.words.get(end + 1..)?;
            return Some(EITHER);
        }
        let valued = usize::from(name.ends_with('f')) + usize::from(name.starts_with("-f"));
        for _ in 0..valued {
            self.next()?;
        }
        Some(Says { yes: true, no: false })
    }
}
