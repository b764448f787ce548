//! Answers of the demo model, made from tool results alone.

use std::fmt::Write;

use castor_base::{content::joined_text, text, tool::CallResult};

pub const REAL_MODEL: &str = "I am castor's built-in demo model: I follow a few fixed rules. For real work run \
    `castor auth login` and start a new session.";

/// Files that tell what kind of project this is, and their kinds.
const MANIFESTS: &[(&str, &str)] = &[
    ("Cargo.toml", "a Rust project"),
    ("package.json", "a JavaScript or TypeScript project"),
    ("pyproject.toml", "a Python project"),
    ("go.mod", "a Go project"),
    ("pom.xml", "a Java project"),
    ("CMakeLists.txt", "a C or C++ project"),
    ("Makefile", "a project with a Makefile"),
];
/// How many of those can be read for a name.
const READABLE: usize = 3;
/// Longest text that is repeated from a result, in bytes.
const MAX_QUOTE: usize = 2_000;
/// Longest title or sentence that is repeated from a file, in bytes.
const MAX_SENTENCE: usize = 240;

/// A directory listing, as the tool printed it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entries<'a> {
    pub folders: Vec<&'a str>,
    pub files: Vec<&'a str>,
}

impl<'a> Entries<'a> {
    pub fn parse(listing: &'a str) -> Self {
        let mut res = Self::default();
        for line in listing.lines().map(str::trim).filter(|it| !it.is_empty()) {
            if let Some(folder) = line.strip_prefix("[DIR] ") {
                res.folders.push(folder);
            } else if !is_remark(line) {
                res.files.push(without_size(line));
            }
        }
        res
    }

    /// The README and the first manifest, where there are any.
    pub fn worth_reading(&self) -> Vec<&'a str> {
        let readme = self.files.iter().copied().find(|it| it.to_lowercase().starts_with("readme"));
        let known = MANIFESTS.iter().take(READABLE);
        let manifest = known.filter_map(|(name, _)| self.files.iter().copied().find(|it| it == name)).next();
        readme.into_iter().chain(manifest).collect()
    }

    fn kind(&self) -> Option<(&'static str, &'static str)> {
        MANIFESTS.iter().copied().find(|(name, _)| self.files.contains(name))
    }

    fn counts(&self) -> String {
        let many = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        format!("{} and {}", many(self.files.len(), "file"), many(self.folders.len(), "folder"))
    }
}

/// The tool's own words around the listing.
fn is_remark(line: &str) -> bool {
    line.starts_with("Directory ") || (line.starts_with('(') && line.ends_with(')')) || line.starts_with("...")
}

fn without_size(line: &str) -> &str {
    match line.rsplit_once(" (") {
        Some((name, size)) if size.ends_with(')') && size.starts_with(|it: char| it.is_ascii_digit()) => name,
        _ => line,
    }
}

/// The answer about a workspace. `files` are those that were read, with what they hold or why they could not be read.
pub fn workspace(entries: &Entries<'_>, files: &[(&str, &CallResult)]) -> String {
    let mut out = String::new();
    let counts = entries.counts();
    let _ = match entries.kind() {
        Some((manifest, kind)) => write!(out, "This looks like {kind} (there is a `{manifest}`)"),
        None => write!(out, "I cannot tell what kind of project this is"),
    };
    let _ = writeln!(out, "; at the top I see {counts}.\n");
    for (name, read) in files {
        let said = joined_text(&read.content);
        let _ = match read.is_error {
            true => writeln!(out, "- I could not read `{name}`: {}", text::first_line(&said, MAX_SENTENCE)),
            false => writeln!(out, "- `{name}`: {}", about(name, body(&said))),
        };
    }
    if !files.is_empty() {
        out.push('\n');
    }
    out.push_str(REAL_MODEL);
    out
}

/// The answer where the workspace could not be listed.
pub fn unreadable(why: &str) -> String {
    format!("I could not look at the workspace: {}\n\n{REAL_MODEL}", text::first_line(why, MAX_SENTENCE))
}

/// The content of a file that the demo writes; `listing` is what it knows of the workspace.
pub fn note(listing: Option<&str>) -> String {
    let known = match listing.map(Entries::parse) {
        Some(it) => format!("When this was written, the top of the workspace held {}.", it.counts()),
        None => "The workspace could not be listed when this was written.".to_owned(),
    };
    format!("# castor demo\n\nThis file was written by castor's built-in demo model, on request.\n\n{known}\n")
}

/// A result's text as a block, cut where it is long.
pub fn quoted(result: &str) -> String {
    // The mark is for models.
    let inner = result.trim().strip_prefix("<untrusted_context>");
    let result = inner.and_then(|it| it.strip_suffix("</untrusted_context>")).unwrap_or(result).trim();
    if result.is_empty() {
        return "(nothing)".to_owned();
    }
    let shown = text::head(result, MAX_QUOTE);
    let more = if shown.len() < result.len() { "\n…" } else { "" };
    // A fence longer than any in the text.
    let longest = shown.split(|it| it != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{shown}{more}\n{fence}")
}

/// A file's content without the tool's words before it.
fn body(content: &str) -> &str {
    let marker = "--- FILE CONTENT (truncated) ---";
    content.split_once(marker).map_or(content, |(_, it)| it)
}

fn about(name: &str, content: &str) -> String {
    if content.trim().is_empty() {
        return "empty.".to_owned();
    }
    if name.to_lowercase().starts_with("readme") {
        return about_readme(content);
    }
    match manifest_name(name, content) {
        Some(it) => format!("the package is called {it}."),
        None => format!("{} lines, and no package name that I could find.", content.lines().count()),
    }
}

fn about_readme(content: &str) -> String {
    let lines = || content.lines().map(str::trim).filter(|it| !it.is_empty());
    let heading = lines().find(|it| it.starts_with('#')).map(|it| it.trim_matches(['#', ' ']));
    let sentence = lines().find(|it| it.starts_with(char::is_alphanumeric)).map(first_sentence);
    match (heading, sentence) {
        (Some(heading), Some(sentence)) => format!("“{}” — {sentence}", text::first_line(heading, MAX_SENTENCE)),
        (Some(heading), None) => format!("“{}”", text::first_line(heading, MAX_SENTENCE)),
        (None, Some(sentence)) => sentence,
        (None, None) => "no heading and no sentence that I could find.".to_owned(),
    }
}

fn first_sentence(line: &str) -> String {
    let end = line.find(". ").map_or(line.len(), |at| at + 1);
    text::first_line(line.get(..end).unwrap_or(line), MAX_SENTENCE)
}

fn manifest_name(file: &str, content: &str) -> Option<String> {
    let name = match file {
        "package.json" => serde_json::from_str::<serde_json::Value>(content).ok()?.get("name")?.as_str()?.to_owned(),
        _ => {
            let lines = content.lines().map(str::trim);
            let value = lines.filter_map(|it| it.strip_prefix("name")?.trim_start().strip_prefix('=')).next()?;
            value.trim().trim_matches(['"', '\'']).to_owned()
        }
    };
    Some(format!("`{}`", text::first_line(&name, MAX_SENTENCE)))
}
