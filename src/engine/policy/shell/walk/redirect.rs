//! Redirections: where output goes and input comes from, here-documents, and the words that the grammar takes for more.

use tree_sitter::Node;

use super::{ODD_BLANKS, Walker};
use crate::engine::policy::shell::{Command, Input, Redirect, Unparsed, Word};

/// What is set behind these is noted by the grammar alone.
const DECLARES: &[&str] = &["declare", "export", "local", "readonly", "typeset", "unset"];
/// Of more `cd` the last count.
const MAX_BEHIND: usize = 16;
const WORDS_FOLLOW: Unparsed = Unparsed("words follow a redirection");

impl Walker<'_> {
    /// In `a2>f` the `2` belongs to the word before it.
    pub(super) fn descriptor(&self, node: Node) -> Result<(), Unparsed> {
        let before = node.start_byte().checked_sub(1).and_then(|it| self.text.as_bytes().get(it));
        let apart = before.is_none_or(|it| b" \t\n;&|()`".contains(it));
        match apart && self.slice(node).bytes().all(|it| it.is_ascii_digit()) {
            true => Ok(()),
            false => Err(ODD_BLANKS),
        }
    }

    /// `0<<<x` names a descriptor, whatever the grammar makes of the `0`, and `{fd}>x` a variable for one.
    pub(super) fn after_descriptor(&self, node: Node) -> bool {
        let before = self.text.get(..node.start_byte()).unwrap_or_default();
        let name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '[' | ']');
        let opened = before.strip_suffix('}').and_then(|it| it.trim_end_matches(name).strip_suffix('{'));
        let word = |it: &str| it.is_empty() || it.ends_with([' ', '\t', '\n', ';', '&', '|', '(', ')']);
        before.ends_with(|it: char| it.is_ascii_digit()) || opened.is_some_and(word)
    }

    pub(super) fn redirect(&mut self, node: Node) -> Result<(), Unparsed> {
        if self.bodies.iter().any(|it| it.at == node.start_byte()) {
            self.heredoc(node);
            // The mask is one target.
            return match node.named_child_count() {
                1 => Ok(()),
                _ => Err(WORDS_FOLLOW),
            };
        }
        let (mut targets, mut operator, mut end) = (Vec::new(), "", None);
        for child in node.children(&mut node.walk()) {
            match child.kind() {
                "file_descriptor" => (),
                kind if !child.is_named() => operator = kind,
                _ => {
                    self.apart(end, child)?;
                    end = Some(child.end_byte());
                    targets.push(self.word(child)?);
                }
            }
        }
        if targets.is_empty() {
            return Ok(());
        }
        // `>&-` closes: it has no target at all.
        let more = targets.split_off(usize::from(!operator.ends_with('-')));
        self.behind_target(more, node)?;
        let Some(target) = targets.pop() else { return Ok(()) };
        let text = target.literal().unwrap_or("?");
        let descriptor = operator.ends_with('&') && text.trim_end_matches('-').bytes().all(|it| it.is_ascii_digit());
        if !descriptor && text != "/dev/null" {
            let by = self.redirected(node);
            if let Some(it) = by.filter(|_| operator.starts_with('<')).and_then(|it| self.out.commands.get_mut(it)) {
                it.piped = true;
            }
            let at = node.start_byte();
            let own = self.went.iter().filter(|it| it.0 < at && at < it.1).map(|it| it.2);
            let all: Vec<usize> = self.out.going.went.iter().copied().chain(own).collect();
            let behind = all.get(all.len().saturating_sub(MAX_BEHIND)..).unwrap_or_default().to_vec();
            self.out.redirects.push(Redirect { target, writes: !operator.starts_with('<'), by, behind });
        }
        Ok(())
    }

    /// `cat 2>f x`: to the grammar all words behind the sign are targets, to bash the others are the command's.
    fn behind_target(&mut self, words: Vec<Word>, node: Node) -> Result<(), Unparsed> {
        if words.is_empty() {
            return Ok(());
        }
        let parent = node.parent().ok_or(WORDS_FOLLOW)?;
        self.sure.hear(&words, node.start_byte(), &mut self.out.unsure);
        let body = if parent.kind() == "command" { Some(parent) } else { parent.child_by_field_name("body") };
        let text = self.source.get(parent.byte_range()).unwrap_or_default().to_owned();
        // Of a chain, it is the last one.
        let is_it = |it: &&(usize, usize, usize), at: Node| it.0 == at.end_byte() && it.1 >= at.start_byte();
        let found = body.and_then(|at| self.last.iter().find(|it| is_it(it, at)));
        // `>f rm x >g y`: the words before made the command.
        let found =
            found.or_else(|| self.last.iter().find(|it| (it.0, it.1) == (parent.end_byte(), parent.start_byte())));
        let Some(command) = found.and_then(|it| self.out.commands.get_mut(it.2)) else {
            if body.is_some() {
                return Err(WORDS_FOLLOW);
            }
            self.push(words, parent);
            return Ok(());
        };
        if command.name().is_some_and(|it| DECLARES.contains(&it)) {
            return Err(WORDS_FOLLOW);
        }
        let all = command.words.drain(..).chain(words).collect();
        let (input, piped) = (command.input.take(), command.piped);
        *command = Command { input, piped, ..Command::new(all, text) };
        Ok(())
    }

    /// The command that a redirection belongs to.
    fn redirected(&self, node: Node) -> Option<usize> {
        let parent = node.parent()?;
        let mut command = if parent.kind() == "command" { parent } else { parent.child_by_field_name("body")? };
        // Of `a && b > c` the grammar makes one statement, with the whole chain redirected.
        while matches!(command.kind(), "list" | "pipeline") {
            command = command.named_child(u32::try_from(command.named_child_count().checked_sub(1)?).ok()?)?;
        }
        let same = |it: &&(usize, usize, usize)| it.0 == command.end_byte() && it.1 == command.start_byte();
        self.last.iter().rev().find(same).filter(|_| command.kind() == "command").map(|it| it.2)
    }

    /// The body goes to the command that stands before it, `cat <<x`, or around it, `cat <<x | y`.
    fn heredoc(&mut self, node: Node) {
        let Some(body) = self.bodies.iter().find(|it| it.at == node.start_byte()).cloned() else { return };
        // The one it stands in, else the one that ended last.
        let at = node.start_byte();
        let around = || self.last.iter().filter(|it| it.1 <= at && at < it.0).max_by_key(|it| it.1);
        let before = || self.last.iter().filter(|it| it.0 <= at).max_by_key(|it| (it.0, it.1));
        let nearest = self.redirected(node).or_else(|| around().or_else(before).map(|it| it.2));
        let nearest = nearest.and_then(|it| self.out.commands.get_mut(it));
        let Some(command) = nearest else { return };
        // bash hands on the last of several; which that is is not asked.
        let (text, literal) = match command.input.take() {
            Some(first) => (format!("{}\n{}", first.text, body.text), first.literal && body.literal),
            None => (body.text, body.literal),
        };
        command.input = Some(Input { text, literal });
    }
}
