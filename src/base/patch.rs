//! Patches: one text that adds, updates, moves and deletes files; and what it does to each, as a call of another tool.

use serde_json::{Value, json};

use crate::tool::{REPLACE, WRITE_FILE};

/// The name of the tool that takes one.
pub const APPLY_PATCH: &str = "apply_patch";
/// The name under which a provider's own operation on one file is in the history.
pub const PATCH_OPERATION: &str = "apply_patch_call";
/// The tools by whose names rules, hooks and lists speak of what a patch does.
pub const PATCH_TOOLS: [&str; 3] = [APPLY_PATCH, WRITE_FILE, REPLACE];
/// The format for providers that hold a model to it, in Lark.
pub const GRAMMAR: &str = include_str!("patch/grammar.lark");

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const AT_END: &str = "*** End of File";

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// As the patch spells it.
    pub path: String,
    pub action: PatchAction,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchAction {
    /// Each line of the content has its end.
    Add {
        content: String,
    },
    Delete,
    Update {
        move_to: Option<String>,
        hunks: Vec<Hunk>,
    },
}

/// One change within a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Where it stands in the patch, from 1.
    pub line: usize,
    /// Lines of the file that come before it, each after the one before.
    pub anchors: Vec<String>,
    pub lines: Vec<HunkLine>,
    /// Its last line is the file's last.
    pub at_end: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkLine {
    pub kind: LineKind,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    Keep,
    Remove,
    Add,
}

/// Why a text is no patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Line {line} of the patch: {what}")]
pub struct PatchError {
    line: usize,
    what: String,
}

/// The files of a patch, in its order.
///
/// # Errors
/// The first line that has no meaning. What was cut off is no patch.
pub fn parse(text: &str) -> Result<Vec<FilePatch>, PatchError> {
    let mut reader = PatchReader::new(text)?;
    let mut res = Vec::new();
    while let Some(header) = reader.next_header() {
        res.push(reader.file(header)?);
    }
    match res.is_empty() {
        true => Err(reader
            .error("it names no file; write '*** Add File: PATH', '*** Update File: PATH' or '*** Delete File: PATH'")),
        false => Ok(res),
    }
}

/// The lines between the first and the last one.
struct PatchReader<'a> {
    lines: Vec<&'a str>,
    /// Of the next line.
    at: usize,
    /// How many lines of the text come before them.
    offset: usize,
}

impl<'a> PatchReader<'a> {
    fn new(text: &'a str) -> Result<Self, PatchError> {
        let all: Vec<&str> = text.trim().lines().collect();
        let offset = text.len() - text.trim_start().len();
        let mut offset = text.get(..offset).unwrap_or_default().matches('\n').count();
        let mut lines = all.as_slice();
        // What a shell would have taken away.
        if let [first, inner @ .., last] = lines
            && is_heredoc(first, last)
        {
            (lines, offset) = (inner, offset + 1);
        }
        let error = |line: usize, what: &str| PatchError { line: offset + line, what: what.to_owned() };
        match lines {
            [first, ..] if first.trim() != BEGIN => Err(error(1, "the first line has to be '*** Begin Patch'")),
            [_, inner @ .., last] if last.trim() == END => {
                Ok(Self { lines: inner.to_vec(), at: 0, offset: offset + 1 })
            }
            [] => Err(error(1, "it is empty")),
            _ => Err(error(lines.len(), "the last line has to be '*** End Patch'")),
        }
    }

    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// About the line before the next one.
    fn error(&self, what: impl Into<String>) -> PatchError {
        PatchError { line: self.offset + self.at.max(1), what: what.into() }
    }

    /// The next line that is not blank.
    fn next_header(&mut self) -> Option<&'a str> {
        while let Some(line) = self.peek() {
            self.at += 1;
            if !line.trim().is_empty() {
                return Some(line.trim());
            }
        }
        None
    }

    fn file(&mut self, header: &str) -> Result<FilePatch, PatchError> {
        if let Some(path) = header.strip_prefix(ADD) {
            let path = self.path(path)?;
            return Ok(FilePatch { path, action: PatchAction::Add { content: self.content() } });
        }
        if let Some(path) = header.strip_prefix(DELETE) {
            return Ok(FilePatch { path: self.path(path)?, action: PatchAction::Delete });
        }
        if let Some(path) = header.strip_prefix(UPDATE) {
            let path = self.path(path)?;
            let action = self.update(&path)?;
            return Ok(FilePatch { path, action });
        }
        let what = "expected '*** Add File: PATH', '*** Update File: PATH' or '*** Delete File: PATH', got";
        Err(self.error(format!("{what} '{header}'")))
    }

    fn path(&self, text: &str) -> Result<String, PatchError> {
        match text.trim() {
            "" => Err(self.error("the path is missing")),
            it => Ok(it.to_owned()),
        }
    }

    fn content(&mut self) -> String {
        let mut res = String::new();
        while let Some(line) = self.peek() {
            let more = self.lines.get(self.at..).unwrap_or_default();
            // A line without its sign between two that have it.
            let is_inner = || more.iter().find(|it| !it.trim().is_empty()).is_some_and(|it| it.starts_with('+'));
            match line.strip_prefix('+') {
                Some(it) => res.push_str(it),
                None if line.trim().is_empty() && is_inner() => (),
                None => break,
            }
            res.push('\n');
            self.at += 1;
        }
        res
    }

    fn update(&mut self, path: &str) -> Result<PatchAction, PatchError> {
        let mut move_to = None;
        if let Some(it) = self.peek().and_then(|it| it.trim().strip_prefix(MOVE)) {
            self.at += 1;
            move_to = Some(self.path(it)?);
        }
        let mut hunks = Vec::new();
        while let Some(line) = self.peek() {
            if line.starts_with("***") || line.trim().is_empty() && self.ends_section() {
                break;
            }
            hunks.push(self.hunk(hunks.is_empty())?);
        }
        match hunks.is_empty() && move_to.is_none() {
            true => Err(self.error(format!("the update of {path} has no hunks"))),
            false => Ok(PatchAction::Update { move_to, hunks }),
        }
    }

    /// Tells whether nothing but blank lines comes before the next header.
    fn ends_section(&self) -> bool {
        let mut more = self.lines.iter().skip(self.at).filter(|it| !it.trim().is_empty());
        more.next().is_none_or(|it| it.trim_start().starts_with("***"))
    }

    fn hunk(&mut self, is_first: bool) -> Result<Hunk, PatchError> {
        // Blank lines may part hunks.
        while self.peek().is_some_and(|it| it.trim().is_empty()) {
            self.at += 1;
        }
        let mut res = Hunk { line: self.offset + self.at + 1, anchors: Vec::new(), lines: Vec::new(), at_end: false };
        let mut is_marked = false;
        while let Some(anchor) = self.peek().and_then(anchor) {
            res.anchors.extend(anchor.map(str::to_owned));
            (self.at, is_marked) = (self.at + 1, true);
        }
        if !is_marked && !is_first {
            self.at += 1;
            return Err(self.error(format!("expected '@@', got '{}'", self.last())));
        }
        while let Some(line) = self.peek().filter(|it| anchor(it).is_none()) {
            if line.trim_end() == AT_END {
                self.at += 1;
                res.at_end = true;
                break;
            }
            if line.starts_with("***") {
                break;
            }
            self.at += 1;
            res.lines.push(hunk_line(line).ok_or_else(|| {
                let what = "a line of a hunk begins with ' ' (stays), '-' (goes) or '+' (comes)";
                self.error(format!("{what}, got '{line}'"))
            })?);
        }
        match res.lines.is_empty() {
            true => Err(self.error("the hunk has no lines")),
            false => Ok(res),
        }
    }

    fn last(&self) -> &'a str {
        self.at.checked_sub(1).and_then(|it| self.lines.get(it)).copied().unwrap_or_default()
    }
}

fn is_heredoc(first: &str, last: &str) -> bool {
    let first = first.trim();
    let first = first.strip_prefix("apply_patch").map_or(first, str::trim_start);
    let word = first.strip_prefix("<<").map(|it| it.trim_start_matches('-').trim().trim_matches(['\'', '"']));
    word.is_some_and(|it| !it.is_empty() && last.trim() == it)
}

/// The line of the file that a marker of a hunk names; `Some(None)`: a marker that names none. Numbers of lines, as other
/// formats have them, count for nothing.
fn anchor(line: &str) -> Option<Option<&str>> {
    let rest = line.strip_prefix("@@")?;
    if rest.trim().is_empty() {
        return Some(None);
    }
    let text = rest.strip_prefix(' ')?;
    let is_range = |it: &str| {
        let digits = it.strip_prefix(['-', '+']).unwrap_or_default();
        digits.starts_with(|it: char| it.is_ascii_digit()) && digits.chars().all(|it| it.is_ascii_digit() || it == ',')
    };
    let mut words = text.split_whitespace();
    match (words.next(), words.next()) {
        (Some(a), Some(b)) if is_range(a) && is_range(b) => Some(None),
        _ => Some(Some(text)),
    }
}

fn hunk_line(line: &str) -> Option<HunkLine> {
    let mut chars = line.chars();
    let kind = match chars.next() {
        Some('+') => LineKind::Add,
        Some('-') => LineKind::Remove,
        // An empty line that lost its blank.
        Some(' ') | None => LineKind::Keep,
        Some(_) => return None,
    };
    Some(HunkLine { kind, text: chars.as_str().to_owned() })
}

/// What a patch does to one file, as the call of a tool for single files: rules, hooks and checkers speak of those.
#[derive(Clone, Debug, PartialEq)]
pub struct FileCall {
    pub tool: &'static str,
    /// As the patch spells it.
    pub path: String,
    pub args: Value,
}

/// The text of a patch in the arguments of a call.
pub fn text_of(args: &Value) -> Option<&str> {
    ["input", "patch"].iter().find_map(|it| args.get(it)?.as_str())
}

/// The calls for single files that a patch stands for, one for each name that it touches; none, where it is no patch.
pub fn file_calls(args: &Value) -> Vec<FileCall> {
    let files = text_of(args).and_then(|it| parse(it).ok()).unwrap_or_default();
    files.iter().flat_map(FilePatch::calls).collect()
}

impl FilePatch {
    pub fn calls(&self) -> Vec<FileCall> {
        let write = |path: &str, what: &str, content: &str| FileCall {
            tool: WRITE_FILE,
            path: path.to_owned(),
            args: json!({ "file_path": path, "content": content, "operation": what }),
        };
        match &self.action {
            PatchAction::Add { content } => vec![write(&self.path, "add", content)],
            PatchAction::Delete => vec![write(&self.path, "delete", "")],
            PatchAction::Update { move_to: Some(to), hunks } => {
                vec![write(&self.path, "delete", ""), write(to, "move", &joined_lines(hunks, LineKind::Remove))]
            }
            PatchAction::Update { move_to: None, hunks } => {
                let (old, new) = (joined_lines(hunks, LineKind::Add), joined_lines(hunks, LineKind::Remove));
                let args =
                    json!({ "file_path": self.path, "old_string": old, "new_string": new, "operation": "update" });
                vec![FileCall { tool: REPLACE, path: self.path.clone(), args }]
            }
        }
    }
}

/// The lines of all hunks but those of one kind.
fn joined_lines(hunks: &[Hunk], without: LineKind) -> String {
    let lines = hunks.iter().flat_map(|it| &it.lines).filter(|it| it.kind != without);
    lines.flat_map(|it| [it.text.as_str(), "\n"]).collect()
}

/// The patch of a provider's own operation on one file.
pub fn from_operation(operation: &Value) -> Option<String> {
    let text = |it: &str| operation.get(it).and_then(Value::as_str);
    let (path, diff) = (text("path")?, text("diff").unwrap_or_default());
    let header = match text("type")? {
        "create_file" => ADD,
        "update_file" => UPDATE,
        "delete_file" => DELETE,
        _ => return None,
    };
    let diff = diff.strip_suffix('\n').unwrap_or(diff);
    let body = if diff.is_empty() { String::new() } else { format!("{diff}\n") };
    Some(format!("{BEGIN}\n{header} {path}\n{body}{END}\n"))
}

#[cfg(test)]
mod tests;
