//! Shell words with resolved quotes: literal text, glob patterns and expansions.

/// The reason why a line is opaque.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opaque(pub &'static str);

/// The kind of a word: how much of it is literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WordKind {
    /// Exactly `text`.
    Literal,
    /// Unquoted `*`, `?`, `[` or a leading `~`: one or more file names that look like `text`.
    Pattern,
    /// Variables, substitutions, braces: anything, any number of words.
    Expanded,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShellWord {
    /// Quotes removed; as written when it is expanded.
    pub text: String,
    pub kind: WordKind,
}

impl ShellWord {
    pub fn literal(&self) -> Option<&str> {
        (self.kind == WordKind::Literal).then_some(self.text.as_str())
    }

    pub fn from_literal(text: &str) -> Self {
        Self { text: text.to_owned(), kind: WordKind::Literal }
    }

    pub fn from_expansion(text: &str) -> Self {
        Self { text: text.to_owned(), kind: WordKind::Expanded }
    }

    /// Words that only come with the input of a command: any, and any number of them.
    pub fn unknown() -> Self {
        Self::from_expansion("$@")
    }

    /// Reads one word as bash would. The source must be one word by bash's rules, whatever the grammar said of it.
    pub fn read(source: &str) -> Result<Self, Opaque> {
        let mut reader = WordReader { rest: source, text: String::new(), kind: WordKind::Literal, brace: false };
        if source.starts_with('~') {
            reader.kind = WordKind::Pattern;
        }
        while reader.kind != WordKind::Expanded && !reader.rest.is_empty() {
            reader.step()?;
        }
        Ok(match reader.kind {
            WordKind::Expanded => Self::from_expansion(source),
            kind => Self { text: reader.text, kind },
        })
    }
}

const NOT_ONE_WORD: Opaque = Opaque("its words cannot be told apart");

struct WordReader<'a> {
    rest: &'a str,
    text: String,
    kind: WordKind,
    /// An unquoted `{` was seen: a comma or `..` after it makes several words.
    brace: bool,
}

impl WordReader<'_> {
    fn step(&mut self) -> Result<(), Opaque> {
        let mut chars = self.rest.chars();
        let Some(first) = chars.next() else { return Ok(()) };
        self.rest = chars.as_str();
        match first {
            '\'' => self.single(),
            '"' => self.double(),
            '\\' => self.escape(),
            '$' => self.dollar(),
            '`' => self.expand(),
            '<' | '>' if self.rest.starts_with('(') => self.expand(),
            ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' | '<' | '>' => Err(NOT_ONE_WORD),
            _ => self.plain(first),
        }
    }

    fn expand(&mut self) -> Result<(), Opaque> {
        self.kind = WordKind::Expanded;
        Ok(())
    }

    fn plain(&mut self, it: char) -> Result<(), Opaque> {
        match it {
            '*' | '?' | '[' => self.kind = WordKind::Pattern,
            '{' => self.brace = true,
            ',' if self.brace => return self.expand(),
            '.' if self.brace && self.rest.starts_with('.') => return self.expand(),
            // `a=~/b` and `PATH=x:~/y` expand as well.
            '~' if self.text.ends_with(['=', ':']) => self.kind = WordKind::Pattern,
            _ => (),
        }
        self.text.push(it);
        Ok(())
    }

    fn single(&mut self) -> Result<(), Opaque> {
        let (inside, rest) = self.rest.split_once('\'').ok_or(NOT_ONE_WORD)?;
        self.text.push_str(inside);
        self.rest = rest;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Opaque> {
        let mut chars = self.rest.chars();
        let next = chars.next().ok_or(NOT_ONE_WORD)?;
        if next != '\n' {
            self.text.push(next);
        }
        self.rest = chars.as_str();
        Ok(())
    }

    /// `$'…'` is literal while nothing in it is escaped; `$"…"` depends on the locale.
    fn dollar(&mut self) -> Result<(), Opaque> {
        if let Some(inside) = self.rest.strip_prefix('\'') {
            let (text, rest) = inside.split_once('\'').ok_or(NOT_ONE_WORD)?;
            if text.contains('\\') {
                return self.expand();
            }
            self.text.push_str(text);
            self.rest = rest;
            return Ok(());
        }
        match self.rest.starts_with('"') || starts_expansion(self.rest) {
            true => self.expand(),
            false => {
                self.text.push('$');
                Ok(())
            }
        }
    }

    fn double(&mut self) -> Result<(), Opaque> {
        let mut chars = self.rest.chars();
        while let Some(it) = chars.next() {
            match it {
                '"' => {
                    self.rest = chars.as_str();
                    return Ok(());
                }
                '`' => return self.expand(),
                '$' if starts_expansion(chars.as_str()) => return self.expand(),
                '\\' => match chars.next().ok_or(NOT_ONE_WORD)? {
                    '\n' => (),
                    next @ ('"' | '\\' | '$' | '`') => self.text.push(next),
                    next => self.text.extend(['\\', next]),
                },
                _ => self.text.push(it),
            }
        }
        Err(NOT_ONE_WORD)
    }
}

fn starts_expansion(after_dollar: &str) -> bool {
    after_dollar.chars().next().is_some_and(|it| it.is_alphanumeric() || "_{([*@#?$!-".contains(it))
}
