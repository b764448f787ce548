//! Intents of the demo model: what a prompt asks for, by its words alone.

/// The file that is written where the prompt names none.
const NOTE_FILE: &str = "CASTOR-DEMO.md";
const WRITE_WORDS: &[&str] = &["write", "create", "save", "make"];
/// What one also does with notes. "Note that …" asks for none.
const NOTE_WORDS: &[&str] = &["leave", "take", "add"];

#[derive(Debug, PartialEq, Eq)]
pub enum Intent {
    /// A shell command, verbatim.
    Run(String),
    /// A path within the workspace.
    Write(String),
    Describe,
}

pub fn of(prompt: &str) -> Intent {
    if let Some(command) = command(prompt) {
        return Intent::Run(command);
    }
    let words: Vec<&str> = prompt.split_whitespace().map(bare).collect();
    let says = |wanted: &[&str]| words.iter().any(|word| wanted.iter().any(|it| word.eq_ignore_ascii_case(it)));
    match words.iter().find(|it| is_file_name(it)) {
        Some(file) if says(WRITE_WORDS) => Intent::Write((*file).to_owned()),
        _ if says(&["note"]) && (says(WRITE_WORDS) || says(NOTE_WORDS)) => Intent::Write(NOTE_FILE.to_owned()),
        _ => Intent::Describe,
    }
}

/// What stands in backticks after the word "run".
fn command(prompt: &str) -> Option<String> {
    let (before, rest) = prompt.split_once('`')?;
    let (command, _) = rest.split_once('`')?;
    let asked = before.split(|it: char| !it.is_alphanumeric()).any(|it| it.eq_ignore_ascii_case("run"));
    let command = command.trim();
    (asked && !command.is_empty()).then(|| command.to_owned())
}

/// A word without what surrounds it in a sentence.
fn bare(word: &str) -> &str {
    let word = word.trim_start_matches(|it: char| !it.is_alphanumeric() && !"./_".contains(it));
    word.trim_end_matches(|it: char| !it.is_alphanumeric())
}

/// `notes.md`, `src/main.rs`; not `e.g`, and nothing outside the workspace.
fn is_file_name(word: &str) -> bool {
    let Some((stem, extension)) = word.rsplit_once('.') else { return false };
    let name = stem.rsplit('/').next().unwrap_or_default();
    let inside = !word.starts_with('/') && !word.split('/').any(|it| it == "..");
    let plain = word.chars().all(|it| it.is_alphanumeric() || "._-/".contains(it));
    inside && plain && name.len() > 1 && (1..=8).contains(&extension.len()) && !extension.contains('/')
}

#[cfg(test)]
mod tests {
    use super::{Intent, of};

    #[test]
    fn intents() {
        let run = |it: &str| Intent::Run(it.to_owned());
        let write = |it: &str| Intent::Write(it.to_owned());
        for (prompt, intent) in [
            ("hello", Intent::Describe),
            ("What is this project?", Intent::Describe),
            ("Please run `cargo test --all`.", run("cargo test --all")),
            ("what does `x` do when you run it", Intent::Describe),
            ("prune `x`", Intent::Describe),
            ("Create a file `notes.md`, please", write("notes.md")),
            ("make me src/a_b.rs.", write("src/a_b.rs")),
            ("Write \"hello.txt\"", write("hello.txt")),
            ("Leave a note!", write("CASTOR-DEMO.md")),
            ("Write a note", write("CASTOR-DEMO.md")),
            ("Note that I am new here", Intent::Describe),
            ("write a poem, e.g. a haiku", Intent::Describe),
            ("write ../../x.txt or /etc/x.txt", Intent::Describe),
            ("read README.md", Intent::Describe),
            ("", Intent::Describe),
            ("`` run `", Intent::Describe),
        ] {
            assert_eq!(of(prompt), intent, "{prompt}");
        }
    }
}
