//! Substitutions that bash runs and the grammar misses: each possible start must be one in the syntax tree.

use tree_sitter::{Node, Tree, TreeCursor};

use super::{line::MAX_DEPTH, words::Opaque};

const UNSEEN: Opaque = Opaque("it hides a command where the grammar sees text");

/// What a stretch of text is to bash, as far as the tree says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextKind {
    /// Nothing in it is special: `'…'`, `$'…'`, comments.
    Literal,
    /// `"…"`
    Quoted,
    /// `${…}`: quotes in it mean what the quotes around it make of them.
    Expansion,
    /// `$(…)`, back-quotes, `<(…)`, `$((…))`: starts anew.
    Substitution,
}

#[derive(Clone, Copy)]
struct TextStretch {
    kind: TextKind,
    start: usize,
    end: usize,
}

/// Refuses a text in which a back-quote, a `$(`, a `<(` or a `>(` stands that no node of the tree begins with.
pub(super) fn check(text: &str, tree: &Tree) -> Result<(), Opaque> {
    // Most have nothing of the kind in them: the tree need not be walked again.
    if !(text.contains(['$', '`']) || text.contains("<(") || text.contains(">(")) {
        return Ok(());
    }
    let stretches = stretches(text, tree)?;
    let (mut next, mut around) = (stretches.iter().peekable(), Vec::<TextStretch>::new());
    let (mut at, bytes) = (0, text.as_bytes());
    while let Some(byte) = bytes.get(at) {
        while around.pop_if(|it| it.end <= at).is_some() {}
        while let Some(it) = next.next_if(|it| it.start <= at) {
            around.push(*it);
        }
        if around.len() > 2 * MAX_DEPTH {
            return Err(Opaque("it is nested too deep"));
        }
        let here = BytePlace { text, at, around: &around };
        let followed = |by: u8| bytes.get(at + 1) == Some(&by);
        match byte {
            _ if here.is_literal() => (),
            b'\\' => at += 1,
            b'`' if !here.is_edge() => return Err(UNSEEN),
            b'$' if followed(b'(') && !here.is_start() => return Err(UNSEEN),
            b'<' | b'>' if followed(b'(') && !here.is_start() && !here.is_quoted() => return Err(UNSEEN),
            b'\'' if here.is_quoted_expansion() => return Err(UNSEEN),
            _ => (),
        }
        at += 1;
    }
    Ok(())
}

/// In the order of their starts, the outer ones first.
fn stretches(text: &str, tree: &Tree) -> Result<Vec<TextStretch>, Opaque> {
    let (mut res, mut cursor) = (Vec::new(), tree.walk());
    loop {
        let node = cursor.node();
        if node.kind() == "ansi_c_string" && !ends_where_bash_ends_it(text.get(node.byte_range()).unwrap_or_default()) {
            return Err(UNSEEN);
        }
        res.extend(kind(node).map(|kind| TextStretch { kind, start: node.start_byte(), end: node.end_byte() }));
        if !go_to_next(&mut cursor) {
            return Ok(res);
        }
    }
}

/// To the next node of the tree, parents before their children; false behind the last.
pub(super) fn go_to_next(cursor: &mut TreeCursor) -> bool {
    if cursor.goto_first_child() {
        return true;
    }
    while !cursor.goto_next_sibling() {
        if !cursor.goto_parent() {
            return false;
        }
    }
    true
}

fn kind(node: Node) -> Option<TextKind> {
    match node.kind() {
        "raw_string" | "ansi_c_string" | "comment" => Some(TextKind::Literal),
        "string" => Some(TextKind::Quoted),
        "expansion" => Some(TextKind::Expansion),
        "command_substitution" | "process_substitution" | "arithmetic_expansion" => Some(TextKind::Substitution),
        _ => None,
    }
}

/// In `$'a\\'; rm x #'` bash sees the end behind the escaped backslash, the grammar at the last quote.
fn ends_where_bash_ends_it(text: &str) -> bool {
    let Some(inside) = text.strip_prefix("$'").and_then(|it| it.strip_suffix('\'')) else { return false };
    let mut escaped = false;
    for it in inside.chars() {
        match it {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\'' => return false,
            _ => (),
        }
    }
    !escaped
}

/// A byte, and what it stands in, the innermost last.
struct BytePlace<'a> {
    text: &'a str,
    at: usize,
    around: &'a [TextStretch],
}

impl BytePlace<'_> {
    fn inner(&self) -> impl Iterator<Item = &TextStretch> {
        self.around.iter().rev().take_while(|it| it.kind != TextKind::Substitution)
    }

    fn has(&self, kind: TextKind) -> bool {
        self.inner().any(|it| it.kind == kind)
    }

    /// Quotes within an expansion are not believed.
    fn is_literal(&self) -> bool {
        self.has(TextKind::Literal) && !self.has(TextKind::Expansion)
    }

    fn is_quoted(&self) -> bool {
        self.has(TextKind::Quoted)
    }

    fn is_quoted_expansion(&self) -> bool {
        self.has(TextKind::Expansion) && self.has(TextKind::Quoted)
    }

    /// In `"$a $(b)"` the grammar counts the blank to the substitution.
    fn is_start(&self) -> bool {
        let begins =
            |it: &TextStretch| self.text.get(it.start..self.at).is_some_and(|it| it.trim_start_matches(' ').is_empty());
        self.around.iter().any(|it| it.kind == TextKind::Substitution && begins(it))
    }

    /// The first or last byte of a substitution.
    fn is_edge(&self) -> bool {
        let ends = self.around.iter().any(|it| it.kind == TextKind::Substitution && it.end == self.at + 1);
        ends || self.is_start()
    }
}
