//! The syntax tree, walked once without recursion: fills a `Script`, refuses what bash may read differently.

mod redirect;

use tree_sitter::{Node, Parser};

use super::{
    Command, Input, MAX_DEPTH, Script, Unparsed, Value, Word, changed,
    heredoc::{self, Body, Masked},
    unseen,
    variables::{Obeyed, obeyed},
    wrap,
};

const ODD_BLANKS: Unparsed = Unparsed("its words cannot be told apart");

/// Appends what `text` would run to `out`; returns the scripts in its here-documents' substitutions.
pub(super) fn walk(source: &str, out: &mut Script) -> Result<Vec<String>, Unparsed> {
    let first = out.commands.is_empty();
    let Masked { text, bodies } = heredoc::mask(source)?;
    let text = text.as_str();
    super::check_continuations(text)?;
    let mut inner = Vec::new();
    for body in bodies.iter().filter(|it| !it.literal) {
        inner.extend(substitutions_in(&body.text)?);
    }
    out.has_heredoc |= !bodies.is_empty();
    out.has_substitution |= !inner.is_empty();
    let mut parser = Parser::new();
    // A fresh parser each time: making one costs little next to a parse, and there is nothing to share.
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).map_err(|_| Unparsed("the shell grammar does not load"))?;
    let tree = parser.parse(text, None).ok_or(Unparsed("the shell grammar gave up"))?;
    if tree.root_node().has_error() {
        return Err(Unparsed("it is not valid shell"));
    }
    unseen::check(text, &tree)?;
    let mut walker = Walker {
        text,
        source,
        bodies,
        last: Vec::new(),
        out,
        substitutions: Vec::new(),
        sure: changed::Sure::default(),
        went: Vec::new(),
        leaf_end: 0,
        quoted_until: 0,
        scripts: inner,
    };
    let mut cursor = tree.walk();
    loop {
        walker.enter(cursor.node())?;
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                walker.finish()?;
                let own = walker.went.iter().filter(|it| first && it.1 == usize::MAX).map(|it| it.2);
                walker.out.going.went.extend(own);
                return Ok(walker.scripts);
            }
        }
    }
}

struct Walker<'a> {
    /// With its here-documents masked; `source` is as written.
    text: &'a str,
    source: &'a str,
    bodies: Vec<Body>,
    /// Where commands end and start, with their places in the list.
    last: Vec<(usize, usize, usize)>,
    out: &'a mut Script,
    /// Ends of the substitutions around the current node.
    substitutions: Vec<usize>,
    sure: changed::Sure,
    /// Where a `cd` stands, up to where it goes, and its place in the list.
    went: Vec<(usize, usize, usize)>,
    /// End of the last leaf: between leaves there may be blanks only.
    leaf_end: usize,
    /// End of the quoted text around the current node, where blanks are not the grammar's.
    quoted_until: usize,
    /// Those that it hands on as text.
    scripts: Vec<String>,
}

impl Walker<'_> {
    fn enter(&mut self, node: Node) -> Result<(), Unparsed> {
        if node.is_error() || node.is_missing() {
            return Err(Unparsed("it is not valid shell"));
        }
        self.check_gap(node)?;
        // The scanner's `<<` can swallow the word before it.
        if !node.is_named() && self.slice(node).trim() != node.kind().trim() {
            return Err(ODD_BLANKS);
        }
        while self.substitutions.last().is_some_and(|it| *it <= node.start_byte() && node.end_byte() > *it) {
            self.substitutions.pop();
        }
        let text = self.text.get(node.byte_range()).unwrap_or_default();
        self.out.evaluated.enter(node, text);
        self.sure.enter(node, text);
        match node.kind() {
            "command" => self.command(node),
            "declaration_command" | "unset_command" => self.declaration(node),
            "test_command" => self.test(node),
            "negated_command" | "compound_statement" if !self.opens_apart(node) => Err(ODD_BLANKS),
            "variable_assignment" if !wrap::names_variable(self.slice(node)) => {
                Err(Unparsed("it assigns to no variable"))
            }
            "variable_assignment" if !self.value_is_word(node) => Err(ODD_BLANKS),
            "file_descriptor" => self.descriptor(node),
            "file_redirect" | "herestring_redirect" | "heredoc_redirect" if self.after_descriptor(node) => {
                Err(ODD_BLANKS)
            }
            "variable_assignment"
            | "function_definition"
            | "for_statement"
            | "c_style_for_statement"
            | "arithmetic_expansion" => {
                self.defines(node.kind() != "for_statement");
                self.assigned(node);
                self.obeyed(node);
                Ok(())
            }
            "compound_statement" if self.slice(node).starts_with("((") => {
                self.defines(true);
                Ok(())
            }
            "command_substitution" | "process_substitution" => self.substitution(node),
            "expansion" => changed::by_expansion(self.slice(node).to_owned().as_str(), self.out),
            "comment" => self.comment(node),
            "file_redirect" => self.redirect(node),
            // All were taken out before.
            "heredoc_redirect" => Err(Unparsed("its here-document is unusual")),
            "herestring_redirect" => {
                self.out.has_heredoc = true;
                let words: Result<Vec<Word>, Unparsed> =
                    node.named_children(&mut node.walk()).map(|it| self.word(it)).collect();
                let value = |word| Value { name: None, word, appends: false };
                words.map(|it| self.out.values.all.extend(it.into_iter().map(value)))
            }
            "``" => Err(ODD_BLANKS),
            _ => Ok(()),
        }
    }

    /// Notes which variable the node sets, or which function it defines, if it does.
    fn assigned(&mut self, node: Node) {
        if let ("function_definition", Some(name)) = (node.kind(), node.child_by_field_name("name")) {
            let name = self.slice(name).to_owned();
            self.out.functions.push(name);
        }
        let name = match node.kind() {
            "variable_assignment" => Some(self.slice(node).split(['=', '[', '+']).next().unwrap_or_default()),
            "for_statement" => node.child_by_field_name("variable").map(|it| self.slice(it)),
            _ => None,
        };
        let name = name.map(str::to_owned);
        self.out.assigned.extend(name.clone());
        let values: Vec<&str> = match node.kind() {
            // `a=(b c)`
            "variable_assignment" => {
                let value = self.slice(node).split_once('=').map_or("", |it| it.1);
                let items = value.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
                // `([0]=b [k]=c)`
                items.map_or(vec![value], |it| it.split_whitespace().map(element).collect())
            }
            "for_statement" => {
                node.children_by_field_name("value", &mut node.walk()).map(|it| self.slice(it)).collect()
            }
            _ => Vec::new(),
        };
        // One more of an array is one by itself.
        let appends = self.slice(node).split_once('=').is_some_and(|it| it.0.ends_with('+') && !it.1.starts_with('('));
        let count = values.len();
        let mut words: Vec<Word> = values.iter().filter_map(|it| Word::read(it).ok()).collect();
        if words.len() < count {
            words.push(Word::expanded(&values.join(" ")));
        }
        self.out.loops.beside |= words.len() < count;
        self.out.values.all.extend(words.into_iter().map(|word| Value { name: name.clone(), word, appends }));
    }

    /// `PAGER='rm x' git log`: what programs run because a variable says so is listed.
    fn obeyed(&mut self, node: Node) {
        let text = self.slice(node).to_owned();
        let Some((name, value)) = text.split_once('=').filter(|_| node.kind() == "variable_assignment") else { return };
        // A prompt is text, but for the commands in it.
        let prompt = matches!(name, "PS0" | "PS1" | "PS2" | "PS4");
        let word = Word::read(value).ok();
        let literal = word.as_ref().and_then(Word::literal);
        let how = match literal {
            Some(it) if prompt && !it.contains("$(") && !it.contains('`') => Obeyed::No,
            _ if prompt => Obeyed::Unknown,
            it => obeyed(name.trim_end_matches('+'), it),
        };
        match (how, literal) {
            (Obeyed::No, _) => (),
            (Obeyed::Command, Some(it)) => self.scripts.push(it.trim_start_matches(['|', '-', ' ']).to_owned()),
            _ => self.out.commands.push(Command::new(vec![Word::expanded(value)], text.clone())),
        }
    }

    fn defines(&mut self, more: bool) {
        self.out.has_definitions = true;
        self.out.loops.beside |= more;
    }

    fn finish(&self) -> Result<(), Unparsed> {
        self.blank(self.leaf_end, self.text.len())
    }

    fn slice(&self, node: Node) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// In `a=$ b` the grammar takes `$ b` for the value.
    fn value_is_word(&self, node: Node) -> bool {
        let value = self.slice(node).split_once('=').map_or("", |it| it.1);
        value.starts_with('(') || Word::read(value).is_ok()
    }

    /// `!` and `{` are words of their own only when a blank follows.
    fn opens_apart(&self, node: Node) -> bool {
        let text = self.slice(node);
        text.starts_with("((") || blank_at(text, 1)
    }

    /// Nothing may lie between two leaves but blanks: the grammar also skips `\ `, which is part of a word.
    fn check_gap(&mut self, node: Node) -> Result<(), Unparsed> {
        let (start, end) = (node.start_byte(), node.end_byte());
        if start >= self.quoted_until && start > self.leaf_end {
            self.blank(self.leaf_end, start)?;
            self.leaf_end = start;
        }
        if matches!(node.kind(), "string" | "raw_string" | "ansi_c_string" | "heredoc_body" | "expansion" | "regex") {
            self.quoted_until = self.quoted_until.max(end);
            self.leaf_end = self.leaf_end.max(end);
        }
        if node.child_count() == 0 {
            self.leaf_end = self.leaf_end.max(end);
        }
        Ok(())
    }

    fn blank(&self, from: usize, to: usize) -> Result<(), Unparsed> {
        let gap = self.text.get(from..to).unwrap_or("?");
        let blank = |gap: &str| gap.bytes().all(|it| matches!(it, b' ' | b'\t' | b'\n'));
        match blank(gap) || blank(&gap.replace("\\\n", " ")) {
            true => Ok(()),
            false => Err(ODD_BLANKS),
        }
    }

    fn command(&mut self, node: Node) -> Result<(), Unparsed> {
        let (mut words, mut end, mut input, mut strung) = (Vec::new(), None, None, false);
        for child in node.children(&mut node.walk()) {
            self.apart(end, child)?;
            end = Some(child.end_byte());
            match child.kind() {
                // Noted by the walk itself.
                "variable_assignment" | "file_redirect" => (),
                // Its commands are met by the walk: `time (make; make install)`.
                "subshell" if is_time(&words) => (),
                "herestring_redirect" => (input, strung) = (self.herestring(child)?, true),
                // In `a =~ $x; b` the grammar takes `$x;` for a pattern, as if it stood in a test.
                "comment" | "subshell" | "regex" => return Err(ODD_BLANKS),
                _ => words.push(self.word(child)?),
            }
        }
        self.push(words, node);
        if let Some(it) = self.out.commands.last_mut() {
            it.input = input;
            it.piped |= strung;
        }
        Ok(())
    }

    /// `<<< 'x'`, when it is written out.
    fn herestring(&self, node: Node) -> Result<Option<Input>, Unparsed> {
        let word = node.named_children(&mut node.walk()).last().map(|it| self.word(it)).transpose()?;
        let text = word.as_ref().and_then(Word::said);
        Ok(text.map(|text| Input { text, literal: true }))
    }

    /// `export A=b`: assignments among its words are noted by the walk.
    fn declaration(&mut self, node: Node) -> Result<(), Unparsed> {
        let mut words = Vec::new();
        for child in node.children(&mut node.walk()) {
            words.push(match child.kind() {
                "variable_assignment" => Word::expanded(self.slice(child)),
                _ => self.word(child)?,
            });
        }
        self.defines(true);
        self.push(words, node);
        Ok(())
    }

    fn test(&mut self, node: Node) -> Result<(), Unparsed> {
        let text = self.slice(node).to_owned();
        let (name, close) = if text.starts_with("[[") { ("[[", "]]") } else { ("[", "]") };
        // `[]`, `[!` and `a[[` are programs' names to bash.
        let before_close = text.len().saturating_sub(close.len() + 1);
        let before = node.start_byte().checked_sub(1).and_then(|it| self.text.as_bytes().get(it));
        let apart = before.is_none_or(|it| b" \t\n;&|()`".contains(it));
        if !apart || !blank_at(&text, name.len()) || !blank_at(&text, before_close) {
            return Err(ODD_BLANKS);
        }
        let inside = text.get(name.len()..before_close).unwrap_or_default();
        let mut words = vec![Word::literally(name)];
        match plain_test(name, inside) {
            Some(it) => words.extend(it),
            // Subscripts in here are evaluated: `[[ -v a[$(x)] ]]`.
            None => {
                self.defines(true);
                words.push(Word::expanded(text.trim_start_matches('[')));
            }
        }
        self.out.commands.push(Command { opaque: false, ..Command::new(words, text) });
        Ok(())
    }

    fn push(&mut self, mut words: Vec<Word>, node: Node) {
        if let Some(name) = words.first_mut() {
            name.name_as_said(&self.out.assigned);
        }
        let text = self.source.get(node.byte_range()).unwrap_or_default().to_owned();
        self.last.push((node.end_byte(), node.start_byte(), self.out.commands.len()));
        self.sure.hear(&words, node.start_byte(), &mut self.out.unsure);
        if matches!(words.first().and_then(Word::literal), Some("cd" | "popd" | "pushd")) {
            self.went.push((node.start_byte(), own_shell(node), self.out.commands.len()));
        }
        let piped = self.text.get(..node.start_byte()).is_some_and(is_pipe);
        self.out.commands.push(Command { piped, ..Command::new(words, text) });
    }

    fn word(&self, node: Node) -> Result<Word, Unparsed> {
        Word::read(self.slice(node))
    }

    /// Neighbours within one command are parted by blanks on one line.
    fn apart(&self, end: Option<usize>, next: Node) -> Result<(), Unparsed> {
        let Some(end) = end else { return Ok(()) };
        let gap = self.text.get(end..next.start_byte()).unwrap_or_default();
        // `<f` may stick to the word before it.
        let redirect = matches!(next.kind(), "file_redirect" | "herestring_redirect");
        match (!gap.is_empty() || redirect) && !gap.replace("\\\n", " ").contains('\n') {
            true => Ok(()),
            false => Err(ODD_BLANKS),
        }
    }

    fn substitution(&mut self, node: Node) -> Result<(), Unparsed> {
        self.out.has_substitution = true;
        self.substitutions.push(node.end_byte());
        let text = self.slice(node);
        if text.contains("\\") && text.starts_with(['`', '$']) && text.contains('`') {
            return Err(Unparsed("it has escapes within back-quotes"));
        }
        match self.substitutions.len() > MAX_DEPTH {
            true => Err(Unparsed("substitutions are nested too deep")),
            false => Ok(()),
        }
    }

    /// To bash `"x"#; rm y` is a word and a command; to the grammar all after `#` is a comment. And a back-quote
    /// ends a comment.
    fn comment(&self, node: Node) -> Result<(), Unparsed> {
        let before = node.start_byte().checked_sub(1).and_then(|it| self.text.as_bytes().get(it));
        let starts_word = before.is_none_or(|it| b" \t\n;&|()".contains(it));
        match starts_word && self.substitutions.is_empty() && node.start_byte() >= self.quoted_until {
            true => Ok(()),
            false => Err(Unparsed("it has a comment in an unusual place")),
        }
    }
}

/// The scripts of `$( )` and back-quotes in a body that bash expands.
fn substitutions_in(body: &str) -> Result<Vec<String>, Unparsed> {
    const ODD: Unparsed = Unparsed("its here-document runs commands in an unusual way");
    let mut res = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.find(['$', '`', '\\']) {
        let from = rest.get(at..).unwrap_or_default();
        let len = match from.as_bytes() {
            [b'\\', ..] => 1 + from.chars().nth(1).map_or(0, char::len_utf8),
            // `$((2 * 3))`; names in it might be anything.
            [b'$', b'(', b'(', ..] => {
                let end = from.find("))").ok_or(ODD)?;
                let counts = |it: char| it.is_ascii_digit() || "+-*/%() ".contains(it);
                if !from.get(3..end).unwrap_or_default().chars().all(counts) {
                    return Err(ODD);
                }
                end + 1
            }
            [b'`', ..] | [b'$', b'[', ..] => return Err(ODD),
            [b'$', b'(', ..] => {
                let end = from.find(')').ok_or(ODD)?;
                let inner = from.get(2..end).unwrap_or_default();
                // Brackets in it would move its end, and so would quotes that are open there.
                if inner.contains(['(', '`', '\\', '#', '<']) || inner.contains("case") || !closes_quotes(inner) {
                    return Err(ODD);
                }
                res.push(inner.to_owned());
                end
            }
            // `${x:-$(y)}`
            [b'$', b'{', ..] => {
                let end = from.find('}').ok_or(ODD)?;
                if !expands_plainly(from.get(2..end).unwrap_or_default()) {
                    return Err(ODD);
                }
                end
            }
            _ => 1,
        };
        rest = from.get(len..).unwrap_or_default();
    }
    Ok(res)
}

fn closes_quotes(text: &str) -> bool {
    let mut open = None;
    for it in text.chars().filter(|it| matches!(it, '\'' | '"')) {
        match open {
            None => open = Some(it),
            Some(quote) if quote == it => open = None,
            Some(_) => (),
        }
    }
    open.is_none()
}

/// `x`, `x:-y`, `x%.rs`: nothing in it is run, counted with or set.
fn expands_plainly(inside: &str) -> bool {
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let rest = inside.trim_start_matches(is_name);
    let forms = [":-", ":+", ":?", "-", "+", "?", "%", "#", "/"];
    let text = forms.iter().find_map(|it| rest.strip_prefix(it));
    let plain = |it: char| is_name(it) || "-./,: ".contains(it);
    rest.is_empty() || rest.len() < inside.len() && text.is_some_and(|it| it.chars().all(plain))
}

/// The words of a test in which nothing is evaluated: `-f x`, of `[` also `a = b`.
fn plain_test(name: &str, inside: &str) -> Option<Vec<Word>> {
    const OF_FILES: &[&str] = &["-d", "-e", "-f", "-L", "-n", "-r", "-s", "-w", "-x", "-z"];
    if inside.contains('\n') {
        return None;
    }
    let read = |it: &str| Word::read(it).ok().filter(|it| it.literal().is_some_and(|it| !it.contains(['[', '$', '`'])));
    let words = inside.split([' ', '\t']).filter(|it| !it.is_empty()).map(read).collect::<Option<Vec<Word>>>()?;
    let texts: Vec<&str> = words.iter().map(|it| it.text.as_str()).collect();
    let plain = match texts.as_slice() {
        _ if name == "[" => true,
        ["!", test, _] | [test, _] => OF_FILES.contains(test),
        _ => false,
    };
    plain.then_some(words)
}

/// Whether what stands behind reads what stands before.
fn is_pipe(before: &str) -> bool {
    let before = before.trim_end();
    let pipe = before.strip_suffix('|').or_else(|| before.strip_suffix("|&"));
    pipe.is_some_and(|it| !it.ends_with('|'))
}

/// What an array's element is set to: `b` in `[0]=b`.
fn element(item: &str) -> &str {
    item.strip_prefix('[').and_then(|it| it.split_once("]=")).map_or(item, |it| it.1)
}

/// Where the shell ends that runs the node, if that is not the script's own.
fn own_shell(node: Node) -> usize {
    const OWN: &[&str] = &["command_substitution", "pipeline", "process_substitution", "subshell"];
    let around = std::iter::successors(node.parent(), Node::parent).find(|it| OWN.contains(&it.kind()));
    around.map_or(usize::MAX, |it| it.end_byte())
}

fn blank_at(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(|it| matches!(it, b' ' | b'\t' | b'\n'))
}

/// The word of the grammar that times whatever stands behind it.
fn is_time(words: &[Word]) -> bool {
    matches!(words, [only] if only.literal() == Some("time"))
}
