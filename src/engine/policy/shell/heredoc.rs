//! Here-documents: masked before the grammar reads a script, by bash's own rule for where a body ends. Unusual shapes
//! count as unparsed.

use super::words::Opaque;

const ODD: Opaque = Opaque("its here-document is unusual");

/// A text without its here-documents. Every byte keeps its place: `<<'EOF'` became `<______`, bodies became blanks.
#[derive(Debug)]
pub(super) struct MaskedText {
    pub text: String,
    pub bodies: Vec<HeredocBody>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeredocBody {
    /// Where its `<<` stands.
    pub at: usize,
    pub text: String,
    /// bash expands nothing in it.
    pub literal: bool,
}

/// What the reader is inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeredocContext {
    /// `$(`, `<(`, `(`.
    Paren,
    Double,
    /// `${`.
    Brace,
}

struct PendingHeredoc {
    at: usize,
    delimiter: String,
    literal: bool,
    dash: bool,
    /// How deep it was opened: its body follows the next newline there.
    depth: usize,
}

struct HeredocReader<'a> {
    text: &'a str,
    out: Vec<u8>,
    at: usize,
    inside: Vec<HeredocContext>,
    pending: Vec<PendingHeredoc>,
    bodies: Vec<HeredocBody>,
}

/// Takes the here-documents out.
pub(super) fn mask(text: &str) -> Result<MaskedText, Opaque> {
    if !text.contains("<<") {
        return Ok(MaskedText { text: text.to_owned(), bodies: Vec::new() });
    }
    let (inside, pending, bodies) = (Vec::new(), Vec::new(), Vec::new());
    let mut reader = HeredocReader { text, out: text.as_bytes().to_vec(), at: 0, inside, pending, bodies };
    while let Some(byte) = reader.peek(0) {
        reader.step(byte)?;
    }
    if !reader.pending.is_empty() {
        return Err(ODD);
    }
    let text = String::from_utf8(reader.out).map_err(|_| ODD)?;
    Ok(MaskedText { text, bodies: reader.bodies })
}

impl HeredocReader<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn step(&mut self, byte: u8) -> Result<(), Opaque> {
        let double = self.inside.last() == Some(&HeredocContext::Double);
        if self.inside.last() == Some(&HeredocContext::Brace) {
            return self.in_braces(byte);
        }
        match byte {
            b'\\' => self.at += 2,
            b'"' if double => self.leave(),
            b'"' => self.enter(HeredocContext::Double, 1),
            b'$' if self.peek(1) == Some(b'(') && self.peek(2) == Some(b'(') => return self.skip_arithmetic(3),
            b'$' if self.peek(1) == Some(b'(') => self.enter(HeredocContext::Paren, 2),
            b'$' if self.peek(1) == Some(b'{') => self.enter(HeredocContext::Brace, 2),
            b'`' => return self.skip_backquotes(),
            b'\n' if double && !self.pending.is_empty() => return Err(ODD),
            _ if double => self.at += 1,
            b'$' if self.peek(1) == Some(b'\'') => return self.skip_ansi(),
            b'\'' => return self.skip_to('\''),
            b'(' if self.peek(1) == Some(b'(') => return self.skip_arithmetic(2),
            b'(' => self.enter(HeredocContext::Paren, 1),
            b')' if self.inside.last() == Some(&HeredocContext::Paren) => self.leave(),
            b'#' if self.starts_word() => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
            b'<' if self.peek(1) == Some(b'<') => return self.operator(),
            b'\n' => return self.newline(),
            // The `)` of a pattern would be taken for the end of a substitution.
            b'c' if !self.inside.is_empty() && self.starts_word() && self.rest().starts_with("case ") => {
                return Err(ODD);
            }
            _ => self.at += 1,
        }
        Ok(())
    }

    /// What quotes mean in `${ }` depends on what is around it.
    fn in_braces(&mut self, byte: u8) -> Result<(), Opaque> {
        match byte {
            b'}' => self.leave(),
            b'$' if self.peek(1) == Some(b'{') => self.enter(HeredocContext::Brace, 2),
            b'$' if self.peek(1) == Some(b'(') => return Err(ODD),
            b'"' | b'\'' | b'`' | b'\\' | b'\n' | b'<' => return Err(ODD),
            _ => self.at += 1,
        }
        Ok(())
    }

    fn enter(&mut self, what: HeredocContext, len: usize) {
        self.inside.push(what);
        self.at += len;
    }

    fn leave(&mut self) {
        self.inside.pop();
        self.at += 1;
    }

    fn starts_word(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|it| self.text.as_bytes().get(it));
        before.is_none_or(|it| b" \t\n;&|()".contains(it))
    }

    /// Over what nothing is looked for in; a `<<` in there would mean something else.
    fn skip(&mut self, len: usize) -> Result<(), Opaque> {
        let over = self.text.get(self.at..self.at + len).ok_or(ODD)?;
        // A body starts at a newline that is the line's end.
        let hides = over.contains('\n') && !self.pending.is_empty();
        self.at += len;
        if hides { Err(ODD) } else { Ok(()) }
    }

    fn skip_to(&mut self, end: char) -> Result<(), Opaque> {
        let len = self.rest().get(1..).and_then(|it| it.find(end)).ok_or(ODD)?;
        self.skip(len + 2)
    }

    fn skip_ansi(&mut self) -> Result<(), Opaque> {
        let (mut len, mut escaped) = (2, false);
        for byte in self.rest().bytes().skip(2) {
            len += 1;
            if byte == b'\'' && !escaped {
                return self.skip(len);
            }
            escaped = byte == b'\\' && !escaped;
        }
        Err(ODD)
    }

    fn skip_backquotes(&mut self) -> Result<(), Opaque> {
        let len = self.rest().get(1..).and_then(|it| it.find('`')).ok_or(ODD)?;
        let over = self.rest().get(..len + 2).ok_or(ODD)?;
        match over.contains("<<") || over.contains('\\') {
            true => Err(ODD),
            false => self.skip(len + 2),
        }
    }

    /// `<<` in arithmetic shifts.
    fn skip_arithmetic(&mut self, open: usize) -> Result<(), Opaque> {
        let len = self.rest().get(open..).and_then(|it| it.find("))")).ok_or(ODD)?;
        let over = self.rest().get(..open + len + 2).ok_or(ODD)?;
        match over.contains("<<")
            || over.contains(['\'', '"', '`', '\n'])
            || over.get(open..).is_some_and(|it| it.contains("$("))
        {
            true => Err(ODD),
            false => self.skip(open + len + 2),
        }
    }

    fn operator(&mut self) -> Result<(), Opaque> {
        if self.peek(2) == Some(b'<') {
            self.at += 3;
            return Ok(());
        }
        let start = self.at;
        // `2<<x` names a descriptor, `a<<<` is another operator.
        let before = start.checked_sub(1).and_then(|it| self.text.as_bytes().get(it));
        if before.is_some_and(|it| it.is_ascii_digit() || matches!(it, b'<' | b'&' | b'>')) {
            return Err(ODD);
        }
        let dash = self.peek(2) == Some(b'-');
        let from = start + 2 + usize::from(dash);
        let blanks = self.text.get(from..).map_or(0, |it| it.len() - it.trim_start_matches([' ', '\t']).len());
        let (delimiter, len) = delimiter(self.text.get(from + blanks..).unwrap_or_default()).ok_or(ODD)?;
        let literal = len > delimiter.len();
        let end = from + blanks + len;
        // The whole becomes one word behind one `<`: a name that nobody else writes.
        for (at, byte) in self.out.iter_mut().enumerate().take(end).skip(start) {
            *byte = if at == start { b'<' } else { b'_' };
        }
        let after = self.text.as_bytes().get(end);
        if after.is_some_and(|it| !b" \t\n;&|)<>".contains(it)) {
            return Err(ODD);
        }
        self.pending.push(PendingHeredoc { at: start, delimiter, literal, dash, depth: self.inside.len() });
        self.at = end;
        Ok(())
    }

    /// The bodies follow, in the order of their operators.
    fn newline(&mut self) -> Result<(), Opaque> {
        self.at += 1;
        for pending in std::mem::take(&mut self.pending) {
            if pending.depth != self.inside.len() {
                return Err(ODD);
            }
            let from = self.at;
            let line_len = |at: usize| self.text.get(at..).and_then(|it| it.find('\n'));
            let mut at = from;
            loop {
                let len = line_len(at);
                let line = self.text.get(at..len.map_or(self.text.len(), |it| at + it)).ok_or(ODD)?;
                let next = at + line.len() + usize::from(len.is_some());
                let bare = if pending.dash { line.trim_start_matches('\t') } else { line };
                if bare == pending.delimiter {
                    self.take_body(&pending, from, at, next)?;
                    break;
                }
                // bash takes all to the end with a warning; within a substitution readers differ.
                if len.is_none() {
                    return Err(ODD);
                }
                at = next;
            }
        }
        Ok(())
    }

    fn take_body(&mut self, pending: &PendingHeredoc, from: usize, to: usize, next: usize) -> Result<(), Opaque> {
        let text = self.text.get(from..to).ok_or(ODD)?.to_owned();
        // A delimiter that ends with the closing bracket on its line ends the body for some readers only.
        let near = text.lines().any(|it| it.trim_start().starts_with(&pending.delimiter));
        if near || (!pending.literal && text.contains("\\\n")) {
            return Err(ODD);
        }
        for byte in self.out.iter_mut().take(next).skip(from).filter(|it| **it != b'\n') {
            *byte = b' ';
        }
        self.bodies.push(HeredocBody { at: pending.at, text, literal: pending.literal });
        self.at = next;
        Ok(())
    }
}

/// The delimiter at the start of `text` without its quotes, and its length with them.
fn delimiter(text: &str) -> Option<(String, usize)> {
    let quote = text.chars().next().filter(|it| matches!(it, '\'' | '"'));
    let inner = if quote.is_some() { text.get(1..)? } else { text };
    let len = inner.find(|it: char| !(it.is_ascii_alphanumeric() || it == '_')).unwrap_or(inner.len());
    let word = inner.get(..len).filter(|it| !it.is_empty())?.to_owned();
    match quote {
        None => Some((word, len)),
        Some(it) => inner.get(len..)?.starts_with(it).then_some((word, len + 2)),
    }
}
