//! The walk over a shell syntax tree, without recursion: lists commands and marks the line opaque where it must.

use std::sync::LazyLock;

use tree_sitter::{Language, Node, Parser, Tree};

use super::{
    grammar_gaps::{self, go_to_next},
    heredoc::{self, HeredocBody, MaskedText},
    line::{MAX_DEPTH, Redirect, Script, ShellCommand},
    opaque::is_obeyed_variable,
    words::{Opaque, ShellWord, WordKind},
};

/// A kind of nodes.
struct GrammarKind {
    name: &'static str,
    /// It means no more than the commands in it.
    is_known: bool,
}

/// By the grammar's numbers: to ask it for each node's name costs as much as to read the line.
static KINDS: LazyLock<Vec<GrammarKind>> = LazyLock::new(|| {
    let names = (0..=u16::MAX).map_while(|it| LANGUAGE.node_kind_for_id(it));
    names.map(|name| GrammarKind { name, is_known: KNOWN.contains(&name) }).collect()
});
static LANGUAGE: LazyLock<Language> = LazyLock::new(|| tree_sitter_bash::LANGUAGE.into());

impl GrammarKind {
    fn of(node: Node) -> &'static Self {
        KINDS.get(usize::from(node.kind_id())).unwrap_or(&Self { name: "ERROR", is_known: false })
    }
}

const ODD_BLANKS: Opaque = Opaque("its words cannot be told apart");
const NOT_SHELL: Opaque = Opaque("it is not valid shell");
const WORDS_FOLLOW: Opaque = Opaque("words follow a redirection");

/// Kinds of nodes that mean no more than the commands in them.
const KNOWN: &[&str] = &[
    "ansi_c_string",
    "binary_expression",
    "brace_expression",
    "command",
    "command_name",
    "command_substitution",
    "comment",
    "compound_statement",
    "concatenation",
    "do_group",
    "elif_clause",
    "else_clause",
    "expansion",
    "extglob_pattern",
    "file_descriptor",
    "file_redirect",
    "for_statement",
    "herestring_redirect",
    "if_statement",
    "list",
    "negated_command",
    "number",
    "pipeline",
    "process_substitution",
    "program",
    "raw_string",
    "redirected_statement",
    "simple_expansion",
    "special_variable_name",
    "string",
    "string_content",
    "subshell",
    "test_command",
    "test_operator",
    "unary_expression",
    "variable_assignment",
    "variable_name",
    "word",
    "declaration_command",
];

/// The commands of a text, and the reason if it is opaque.
#[derive(Debug)]
pub struct WalkResult {
    pub script: Script,
    pub why: Option<&'static str>,
}

/// Lists the commands of `source`.
///
/// # Errors
/// The grammar and bash may read it differently: nothing of it is believed.
pub fn walk(source: &str) -> Result<WalkResult, Opaque> {
    let MaskedText { text, bodies } = heredoc::mask(source)?;
    check_continuations(&text)?;
    let tree = parse(&text)?;
    grammar_gaps::check(&text, &tree)?;
    let expands = |it: &HeredocBody| ["$(", "`", "${", "$["].iter().any(|sign| it.text.contains(sign));
    let why = bodies.iter().any(|it| !it.literal && expands(it)).then_some("its here-document runs commands");
    let mut walker = Walker {
        text: &text,
        source,
        bodies,
        script: Script::default(),
        why,
        substitutions: Vec::new(),
        leaf_end: 0,
        quoted_until: 0,
    };
    let mut cursor = tree.walk();
    loop {
        walker.enter(cursor.node())?;
        if !go_to_next(&mut cursor) {
            walker.blank(walker.leaf_end, text.len())?;
            return Ok(WalkResult { script: walker.script, why: walker.why });
        }
    }
}

fn parse(text: &str) -> Result<Tree, Opaque> {
    // A fresh parser each time: making one costs little next to a parse, and there is nothing to share.
    let mut parser = Parser::new();
    parser.set_language(&LANGUAGE).map_err(|_| Opaque("the shell grammar does not load"))?;
    let tree = parser.parse(text, None).ok_or(Opaque("the shell grammar gave up"))?;
    if tree.root_node().has_error() { Err(NOT_SHELL) } else { Ok(tree) }
}

struct Walker<'a> {
    /// With its here-documents masked; `source` is as written.
    text: &'a str,
    source: &'a str,
    bodies: Vec<HeredocBody>,
    script: Script,
    /// The first reason why it is opaque.
    why: Option<&'static str>,
    /// Ends of the substitutions around the current node.
    substitutions: Vec<usize>,
    /// End of the last leaf: between leaves there may be blanks only.
    leaf_end: usize,
    /// End of the quoted text around the current node, where blanks are not the grammar's.
    quoted_until: usize,
}

impl Walker<'_> {
    fn enter(&mut self, node: Node) -> Result<(), Opaque> {
        if node.is_error() || node.is_missing() {
            return Err(NOT_SHELL);
        }
        let kind = GrammarKind::of(node);
        self.check_gap(node, kind.name)?;
        // The scanner's `<<` can swallow the word before it.
        if !node.is_named() && self.slice(node).trim() != kind.name.trim() {
            return Err(ODD_BLANKS);
        }
        self.substitutions.retain(|it| *it > node.start_byte());
        if node.is_named() && !kind.is_known {
            self.note("it has more in it than commands and words");
        }
        match kind.name {
            "command" => self.command(node)?,
            "declaration_command" => self.declaration(node),
            "test_command" => self.test(node)?,
            "negated_command" | "compound_statement" if !self.opens_apart(node) => return Err(ODD_BLANKS),
            "compound_statement" if self.slice(node).starts_with("((") => self.note("it computes"),
            "variable_assignment" => self.assignment(node)?,
            "for_statement" => self.loops(node),
            "expansion" => self.expansion(node),
            "file_descriptor" => self.descriptor(node)?,
            "file_redirect" | "herestring_redirect" if self.is_after_descriptor(node) => return Err(ODD_BLANKS),
            "file_redirect" => self.redirect(node)?,
            "command_substitution" | "process_substitution" => self.substitution(node)?,
            "comment" => self.comment(node)?,
            // All were taken out before; and what stands in a test is no pattern elsewhere.
            "heredoc_redirect" | "``" => return Err(ODD_BLANKS),
            _ => (),
        }
        Ok(())
    }

    fn note(&mut self, why: &'static str) {
        self.why = self.why.or(Some(why));
    }

    fn slice(&self, node: Node) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn starts_word(&self, node: Node) -> bool {
        let before = node.start_byte().checked_sub(1).and_then(|it| self.text.as_bytes().get(it));
        before.is_none_or(|it| b" \t\n;&|()`".contains(it))
    }

    fn word(&self, node: Node) -> Result<ShellWord, Opaque> {
        ShellWord::read(self.slice(node))
    }

    fn command(&mut self, node: Node) -> Result<(), Opaque> {
        let (mut words, mut end) = (Vec::new(), None);
        for child in node.children(&mut node.walk()) {
            self.check_apart(end, child)?;
            end = Some(child.end_byte());
            match GrammarKind::of(child).name {
                // Noted by the walk itself.
                "variable_assignment" | "file_redirect" | "herestring_redirect" => (),
                // In `a =~ $x; b` the grammar takes `$x;` for a pattern, as if it stood in a test.
                "comment" | "subshell" | "regex" => return Err(ODD_BLANKS),
                _ => words.push(self.word(child)?),
            }
        }
        self.push(words, node);
        Ok(())
    }

    fn push(&mut self, words: Vec<ShellWord>, node: Node) {
        let text = self.source.get(node.byte_range()).unwrap_or_default().to_owned();
        self.script.commands.push(ShellCommand::new(words, text));
    }

    /// `export A=b` is an assignment; other declarations may compute.
    fn declaration(&mut self, node: Node) {
        let mut children = node.walk();
        let plain = node.children(&mut children).all(|it| matches!(it.kind(), "export" | "variable_assignment"));
        match plain {
            true => self.script.assigns = true,
            false => self.note("it declares variables"),
        }
    }

    fn assignment(&mut self, node: Node) -> Result<(), Opaque> {
        self.script.assigns = true;
        let (name, value) = self.slice(node).split_once('=').unwrap_or_default();
        if value.starts_with('(') || !is_variable(name.trim_end_matches('+')) {
            self.note("it has arrays in it");
            return Ok(());
        }
        let obeyed = is_obeyed_variable(name.trim_end_matches('+'));
        // In `a=$ b` the grammar takes `$ b` for the value.
        ShellWord::read(value).map_err(|_| ODD_BLANKS)?;
        if obeyed {
            self.note("it sets a variable that programs obey");
        }
        Ok(())
    }

    fn loops(&mut self, node: Node) {
        self.script.assigns = true;
        let name = node.child_by_field_name("variable").map_or("", |it| self.slice(it));
        if is_obeyed_variable(name) || !self.slice(node).starts_with("for") {
            self.note("it sets a variable that programs obey");
        }
    }

    /// `${NAME}` is `$NAME`; what more such signs may say is not evaluated.
    fn expansion(&mut self, node: Node) {
        let name = self.slice(node).strip_prefix("${").and_then(|it| it.strip_suffix('}')).unwrap_or_default();
        if !is_variable(name) {
            self.note("it computes with variables");
        }
    }

    fn test(&mut self, node: Node) -> Result<(), Opaque> {
        let text = self.slice(node).to_owned();
        let (name, close) = if text.starts_with("[[") { ("[[", "]]") } else { ("[", "]") };
        if !text.starts_with('[') {
            self.note("it computes");
            return Ok(());
        }
        // `[]`, `[!` and `a[[` are programs' names to bash.
        let before_close = text.len().saturating_sub(close.len() + 1);
        if !self.starts_word(node) || !blank_at(&text, name.len()) || !blank_at(&text, before_close) {
            return Err(ODD_BLANKS);
        }
        let inside = text.get(name.len()..before_close).unwrap_or_default();
        // Subscripts and numbers in here are evaluated: `[[ -v a[$(x)] ]]`, `[[ x -eq 'a[$(y)]' ]]`.
        let operators = ["-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "=~"];
        let evaluates = |it: &str| operators.contains(&it);
        let names = inside.split_whitespace().any(|it| matches!(it, "-v" | "-R"));
        // To bash the sign in `[ a > b ]` is a redirection.
        let redirects = name == "[" && inside.contains(['<', '>']);
        if names || redirects || name == "[[" && (inside.contains('[') || inside.split_whitespace().any(evaluates)) {
            self.note("it has a test that evaluates its words");
        }
        let read = |it: &str| ShellWord::read(it).unwrap_or_else(|_| ShellWord::from_expansion(it));
        let words = [ShellWord::from_literal(name)].into_iter().chain(inside.split_whitespace().map(read));
        let words = words.chain([ShellWord::from_literal(close)]).collect();
        self.script.commands.push(ShellCommand::new(words, text));
        Ok(())
    }

    fn redirect(&mut self, node: Node) -> Result<(), Opaque> {
        // The mask is one target.
        if self.bodies.iter().any(|it| it.at == node.start_byte()) {
            return if node.named_child_count() == 1 { Ok(()) } else { Err(WORDS_FOLLOW) };
        }
        let (mut targets, mut operator) = (Vec::new(), "");
        for child in node.children(&mut node.walk()) {
            match GrammarKind::of(child).name {
                "file_descriptor" => (),
                kind if !child.is_named() => operator = kind,
                _ => targets.push(self.word(child)?),
            }
        }
        // `>&-` closes: it has no target at all. To the grammar all words behind the sign are targets, to bash the
        // others are the command's.
        if targets.len() > usize::from(!operator.ends_with('-')) {
            return Err(WORDS_FOLLOW);
        }
        let Some(target) = targets.pop() else { return Ok(()) };
        let text = target.literal().unwrap_or("?");
        let descriptor = operator.ends_with('&') && text.trim_end_matches('-').bytes().all(|it| it.is_ascii_digit());
        // bash opens connections by such names.
        if target.kind != WordKind::Literal && target.text.contains("/dev/") || text.starts_with("/dev/tcp") {
            self.note("it opens a connection");
        }
        if !descriptor && text != "/dev/null" {
            let (writes, behind) = (!operator.starts_with('<') || operator == "<>", self.script.commands.len());
            self.script.redirects.push(Redirect { target, writes, commands_before: behind });
        }
        Ok(())
    }

    /// In `a2>f` the `2` belongs to the word before it.
    fn descriptor(&self, node: Node) -> Result<(), Opaque> {
        match self.starts_word(node) && self.slice(node).bytes().all(|it| it.is_ascii_digit()) {
            true => Ok(()),
            false => Err(ODD_BLANKS),
        }
    }

    /// `0<<<x` names a descriptor, whatever the grammar makes of the `0`, and `{fd}>x` a variable for one.
    fn is_after_descriptor(&self, node: Node) -> bool {
        let before = self.text.get(..node.start_byte()).unwrap_or_default();
        let name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '[' | ']');
        let opened = before.strip_suffix('}').and_then(|it| it.trim_end_matches(name).strip_suffix('{'));
        let word = |it: &str| it.is_empty() || it.ends_with([' ', '\t', '\n', ';', '&', '|', '(', ')']);
        before.ends_with(|it: char| it.is_ascii_digit()) || opened.is_some_and(word)
    }

    fn substitution(&mut self, node: Node) -> Result<(), Opaque> {
        self.script.substitutes = true;
        self.substitutions.push(node.end_byte());
        let text = self.slice(node);
        if text.contains('\\') && text.starts_with(['`', '$']) && text.contains('`') {
            return Err(Opaque("it has escapes within back-quotes"));
        }
        if text.starts_with(">(") {
            self.note("its output goes to a command within a word");
        }
        match self.substitutions.len() > MAX_DEPTH {
            true => Err(Opaque("substitutions are nested too deep")),
            false => Ok(()),
        }
    }

    /// To bash `"x"#; rm y` is a word and a command; to the grammar all after `#` is a comment. And a back-quote
    /// ends a comment.
    fn comment(&self, node: Node) -> Result<(), Opaque> {
        let before = node.start_byte().checked_sub(1).and_then(|it| self.text.as_bytes().get(it));
        let starts_word = before.is_none_or(|it| b" \t\n;&|()".contains(it));
        match starts_word && self.substitutions.is_empty() && node.start_byte() >= self.quoted_until {
            true => Ok(()),
            false => Err(Opaque("it has a comment in an unusual place")),
        }
    }

    /// `!` and `{` are words of their own only when a blank follows.
    fn opens_apart(&self, node: Node) -> bool {
        let text = self.slice(node);
        text.starts_with("((") || blank_at(text, 1)
    }

    /// Nothing may lie between two leaves but blanks: the grammar also skips `\ `, which is part of a word.
    fn check_gap(&mut self, node: Node, kind: &str) -> Result<(), Opaque> {
        let (start, end) = (node.start_byte(), node.end_byte());
        if start >= self.quoted_until && start > self.leaf_end {
            self.blank(self.leaf_end, start)?;
            self.leaf_end = start;
        }
        if matches!(kind, "string" | "raw_string" | "ansi_c_string" | "heredoc_body" | "expansion" | "regex") {
            self.quoted_until = self.quoted_until.max(end);
            self.leaf_end = self.leaf_end.max(end);
        }
        if node.child_count() == 0 {
            self.leaf_end = self.leaf_end.max(end);
        }
        Ok(())
    }

    fn blank(&self, from: usize, to: usize) -> Result<(), Opaque> {
        let gap = self.text.get(from..to).unwrap_or("?");
        let blank = |gap: &str| gap.bytes().all(|it| matches!(it, b' ' | b'\t' | b'\n'));
        match blank(gap) || blank(&gap.replace("\\\n", " ")) {
            true => Ok(()),
            false => Err(ODD_BLANKS),
        }
    }

    /// Neighbours within one command are parted by blanks on one line.
    fn check_apart(&self, end: Option<usize>, next: Node) -> Result<(), Opaque> {
        let Some(end) = end else { return Ok(()) };
        let gap = self.text.get(end..next.start_byte()).unwrap_or_default();
        // `<f` may stick to the word before it.
        let redirect = || matches!(GrammarKind::of(next).name, "file_redirect" | "herestring_redirect");
        match (!gap.is_empty() || redirect()) && (!gap.contains('\n') || !gap.replace("\\\n", " ").contains('\n')) {
            true => Ok(()),
            false => Err(ODD_BLANKS),
        }
    }
}

fn is_variable(name: &str) -> bool {
    let letter = |it: char| it.is_ascii_alphanumeric() || it == '_';
    name.chars().all(letter) && name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
}

fn blank_at(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(|it| matches!(it, b' ' | b'\t' | b'\n'))
}

/// `r\⏎m` is `rm` to bash and two words to the grammar.
fn check_continuations(text: &str) -> Result<(), Opaque> {
    let blank = |it: Option<&u8>| it.is_none_or(|it| matches!(it, b' ' | b'\t' | b'\n'));
    let bytes = text.as_bytes();
    for (at, pair) in bytes.windows(2).enumerate() {
        let before = at.checked_sub(1).and_then(|it| bytes.get(it));
        // An escaped blank belongs to its word.
        let escaped = at.checked_sub(2).and_then(|it| bytes.get(it)) == Some(&b'\\');
        if pair == b"\\\n" && (!blank(before) || escaped) && !blank(bytes.get(at + 2)) {
            return Err(Opaque("a line is continued within a word"));
        }
    }
    Ok(())
}
