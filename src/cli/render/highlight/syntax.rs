//! The syntax of a language, as far as its colours need it: comments, strings, words, and a few habits.

/// How a language is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxForm {
    Code,
    Diff,
    Markdown,
    Markup,
    Yaml,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxTrait {
    /// A name that begins with a capital is a type, and one of capitals a constant.
    Capitals,
    /// `color: red`.
    ColonKeys,
    /// `@name` is an annotation.
    Decorators,
    /// `name = "x"`.
    EqualKeys,
    /// `#fff`.
    HashWords,
    Heredocs,
    IgnoresCase,
    /// Elements of HTML may stand in place of a value.
    Jsx,
    /// Only the first word of a line is a keyword.
    LineKeywords,
    /// Block comments stand within each other.
    NestedComments,
    /// `#include`.
    Preprocessor,
    /// `"name": "x"`.
    QuotedKeys,
    Regexes,
    /// `[name]` on a line of its own.
    Sections,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringKind {
    Usual,
    /// One character: elsewhere the quote is of a lifetime, or belongs to a name.
    Char,
    /// A comment where nothing stands before it.
    Doc,
}

#[derive(Debug)]
pub struct StringRule {
    pub open: &'static str,
    pub close: &'static str,
    pub kind: StringKind,
    /// A backslash takes the meaning from what comes behind it.
    pub has_escapes: bool,
    pub spans_lines: bool,
    /// Code begins with it, up to its bracket's partner. Empty: none does.
    pub inner: &'static str,
}

/// Lists of words are parted by blanks.
#[derive(Debug)]
pub struct Syntax {
    /// Fences, extensions and file names, in lower case.
    pub names: &'static str,
    pub form: SyntaxForm,
    pub line_comments: &'static [&'static str],
    pub block_comments: &'static [(&'static str, &'static str)],
    /// The longer before the shorter.
    pub strings: &'static [StringRule],
    pub keywords: &'static str,
    pub types: &'static str,
    pub constants: &'static str,
    /// Beside letters, digits and `_`.
    pub word_chars: &'static str,
    pub traits: &'static [SyntaxTrait],
}

impl Syntax {
    pub fn has(&self, it: SyntaxTrait) -> bool {
        self.traits.contains(&it)
    }

    pub fn is_in_word(&self, it: char) -> bool {
        it.is_alphanumeric() || it == '_' || self.word_chars.contains(it)
    }
}

pub const fn string(open: &'static str, close: &'static str) -> StringRule {
    let kind = StringKind::Usual;
    StringRule { open, close, kind, has_escapes: true, spans_lines: false, inner: "" }
}

/// As it is written, over lines.
pub const fn raw(open: &'static str, close: &'static str) -> StringRule {
    StringRule { has_escapes: false, spans_lines: true, ..string(open, close) }
}

pub const fn long(open: &'static str, close: &'static str) -> StringRule {
    StringRule { spans_lines: true, ..string(open, close) }
}

pub const fn doc(quotes: &'static str) -> StringRule {
    StringRule { kind: StringKind::Doc, ..long(quotes, quotes) }
}

/// With code in it.
pub const fn template(open: &'static str, close: &'static str, inner: &'static str) -> StringRule {
    StringRule { inner, ..long(open, close) }
}

/// With values in braces, on one line.
pub const fn format(open: &'static str, close: &'static str) -> StringRule {
    StringRule { inner: "{", ..string(open, close) }
}

pub const DOUBLE: StringRule = string("\"", "\"");
pub const SINGLE: StringRule = string("'", "'");
pub const CHAR: StringRule = StringRule { kind: StringKind::Char, ..SINGLE };

pub const CODE: Syntax = Syntax {
    names: "",
    form: SyntaxForm::Code,
    line_comments: &[],
    block_comments: &[],
    strings: &[DOUBLE, SINGLE],
    keywords: "",
    types: "",
    constants: "true false",
    word_chars: "",
    traits: &[],
};
/// Comments of C.
pub const C_LIKE: Syntax = Syntax {
    line_comments: &["//"],
    block_comments: &[("/*", "*/")],
    constants: "true false null",
    traits: &[SyntaxTrait::Capitals],
    ..CODE
};
/// Comments of a shell.
pub const HASH: Syntax = Syntax { line_comments: &["#"], ..CODE };
