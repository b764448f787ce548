//! Files that a typed prompt names as `@path`: found, checked by the workspace's rules, and read.
//!
//! What the agent would read without a question is embedded. The rest goes as a link: if the model wants to read it,
//! the agent asks.

use std::{path::PathBuf, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};

use super::{
    media::{Contents, classify},
    prompt::Attachment,
};
use crate::cli::terminal_text::clean_line;
use castor_agent::{server::event_loop::unix_ms, session::place::load_ground, settings::options::Options};
use castor_base::{file_uri, guarded_names::SECRETS, path::AbsPath, path_text};
use castor_client::failure::Failure;
use castor_hands::{disk, secrets::Env};
use castor_tools::{
    builtin::walk::{self, IgnoreRules, Matcher},
    redaction::{Redactor, Secrets},
};

/// Longer texts go as links: the model reads what it needs of them.
const MAX_TEXT: usize = 256 << 10;
/// As on stdin.
const MAX_MEDIA: usize = 8 << 20;
/// Files of one prompt.
const MAX_FILES: usize = 50;
/// Names of a folder that are listed.
const MAX_NAMES: usize = 500;
/// Characters of a name in a message.
const MAX_SHOWN: usize = 300;
/// What ends a path in a sentence.
const PUNCTUATION: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}', '>', '\'', '"', '`'];
const SEPARATORS: &[char] = &[',', ';', '!', '?', '(', ')', '[', ']', '{', '}'];

/// The folder of a run and its rules about files.
pub struct AttachmentFolder {
    /// As it was named.
    pub cwd: AbsPath,
    /// Its real path.
    root: AbsPath,
    home: Option<AbsPath>,
    ignore: IgnoreRules,
    redactor: Arc<Redactor>,
}

/// The attachments of a prompt, and what to say of them.
#[derive(Debug, Default)]
pub struct PromptAttachments {
    pub attachments: Vec<Attachment>,
    pub notes: Vec<String>,
}

impl AttachmentFolder {
    /// Reads settings and secrets. `None`: the folder is gone.
    pub fn load(cwd: &AbsPath, env: &Env) -> Option<Self> {
        let root = disk::real_path(cwd).ok()?;
        let settings = load_ground(&Options::default(), env, cwd).1.tools;
        let ignore = IgnoreRules {
            git: settings.respect_git_ignore,
            gemini: settings.respect_gemini_ignore,
            custom: settings.ignore_files,
        };
        let home = env.get("HOME").and_then(AbsPath::new);
        let secrets = Secrets::new(vec![root.clone()], home.clone(), (unix_ms() / 1000).cast_signed());
        Some(Self { cwd: cwd.clone(), root, home, ignore, redactor: secrets.current_redactor(false) })
    }

    /// The files that `text` names.
    pub fn find_files(&self, text: &str) -> PromptAttachments {
        let (mut res, mut seen, mut attached) = (PromptAttachments::default(), Vec::new(), Vec::new());
        for reference in references(text) {
            let candidates = candidates(reference);
            let Some((path, real)) = candidates.iter().find_map(|it| self.locate(it)) else {
                res.notes.extend(candidates.last().and_then(|it| missing_note(it)));
                continue;
            };
            if seen.contains(&real) {
                continue;
            }
            if seen.len() == MAX_FILES {
                res.notes.push(format!("only the first {MAX_FILES} files are attached"));
                break;
            }
            let name = format!("@{}", path.relative_to(&self.cwd));
            let (attachment, note) = self.attach(&path, &real);
            res.attachments.extend(attachment);
            match note {
                None => attached.push(name),
                Some(note) => res.notes.push(format!("{name}: {note}")),
            }
            seen.push(real);
        }
        if !attached.is_empty() {
            res.notes.insert(0, format!("attached {}", attached.join(", ")));
        }
        res
    }

    /// A file that the user gives as an attachment, wherever it is; it must be media. Paths are seen from the folder.
    ///
    /// # Errors
    /// In words, with the path.
    pub fn read_media(&self, name: &str) -> Result<Attachment, String> {
        let shown = clean_line(name, MAX_SHOWN);
        let (path, real) = self.locate(name).ok_or_else(|| format!("{shown}: no such file"))?;
        let bytes = disk::read_real_head(&real, MAX_MEDIA as u64 + 1).map_err(|it| format!("{shown}: {it}"))?;
        match classify(&bytes, bytes.len() > MAX_MEDIA) {
            _ if bytes.len() > MAX_MEDIA => Err(format!("{shown} is larger than 8 MiB")),
            Contents::Media(mime) => {
                let data = BASE64_STANDARD.encode(&bytes);
                Ok(Attachment::Media { mime: mime.into(), data, uri: Some(file_uri::from_path(path.as_path())) })
            }
            Contents::Text(_) | Contents::Damaged(..) | Contents::Binary(_) => {
                Err(format!("{shown} is no image, no PDF and no audio"))
            }
        }
    }

    fn locate(&self, name: &str) -> Option<(AbsPath, AbsPath)> {
        let path = match (name.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.cwd.join(name),
        };
        let path = disk::existing_path(path);
        let real = disk::real_path(&path).ok()?;
        // The real path of what is not there is known, too.
        disk::metadata(&real).ok()?;
        Some((path, real))
    }

    /// What to send for a file, and what to say where that is not all of it.
    fn attach(&self, path: &AbsPath, real: &AbsPath) -> (Option<Attachment>, Option<String>) {
        let link = |why| {
            (
                Some(Attachment::Link { uri: file_uri::from_path(path.as_path()) }),
                Some(format!("{why}, so only its name is sent")),
            )
        };
        if !real.is_within(&self.root) {
            return link("it is outside the workspace");
        }
        if [path, real].iter().any(|it| SECRETS.find(it.as_path()).is_some()) {
            return link("it may hold secrets");
        }
        let Ok(meta) = disk::metadata(real) else { return link("it cannot be read") };
        if *real != self.root && walk::is_ignored(&self.root, real, meta.is_dir, &self.ignore) {
            return (None, Some("an ignore file hides it, so it is not attached".to_owned()));
        }
        if meta.is_dir {
            return match self.list(real) {
                Some(text) => (Some(Attachment::Text { uri: file_uri::from_path(path.as_path()) + "/", text }), None),
                None => link("it cannot be listed"),
            };
        }
        let Ok(bytes) = disk::read_real_head(real, MAX_MEDIA as u64 + 1) else { return link("it cannot be read") };
        let attached = |it| (Some(it), None);
        match classify(&bytes, bytes.len() > MAX_MEDIA) {
            Contents::Media(_) if bytes.len() > MAX_MEDIA => link("it is larger than 8 MiB"),
            Contents::Media(mime) => {
                let data = BASE64_STANDARD.encode(&bytes);
                attached(Attachment::Media { mime: mime.into(), data, uri: Some(file_uri::from_path(path.as_path())) })
            }
            Contents::Text(it) if it.len() > MAX_TEXT => link("it is larger than 256 KiB"),
            Contents::Text(it) => {
                let text = self.redactor.redact(&it, &[]).into_owned();
                attached(Attachment::Text { uri: file_uri::from_path(path.as_path()), text })
            }
            Contents::Damaged(..) => link("it is not UTF-8 throughout"),
            Contents::Binary(_) => link("it is neither text nor media"),
        }
    }

    fn list(&self, real: &AbsPath) -> Option<String> {
        let matcher = Matcher::new(&self.root, real, &self.ignore);
        let mut names: Vec<String> = disk::read_real_dir(real)
            .ok()?
            .into_iter()
            .filter(|it| !matcher.is_ignored(&real.join(path_text::from_text(&it.name)), it.is_dir))
            .map(|it| if it.is_dir { it.name + "/" } else { it.name })
            .collect();
        names.sort();
        let more = names.len().saturating_sub(MAX_NAMES);
        names.truncate(MAX_NAMES);
        names.extend((more > 0).then(|| format!("… and {more} more")));
        Some(names.iter().map(|it| format!("{it}\n")).collect())
    }
}

/// The files of `--image`.
///
/// # Errors
/// For the first that cannot be attached.
pub fn read_images(files: &[PathBuf], cwd: &AbsPath) -> Result<Vec<Attachment>, Failure> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let folder = AttachmentFolder::load(cwd, &Env::from_process());
    let folder = folder.ok_or_else(|| Failure::input("the working folder is gone"))?;
    let read = |it: &PathBuf| {
        folder.read_media(&path_text::to_text(it)).map_err(|it| Failure::input(format!("--image: {it}")))
    };
    files.iter().map(read).collect()
}

/// Whether a typed prompt is a slash command, which names no files.
fn is_command(text: &str) -> bool {
    let name = text.strip_prefix('/').and_then(|it| it.split_whitespace().next()).unwrap_or_default();
    !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric() || "-_:".contains(it))
}

/// Whether a typed prompt may name files.
pub fn names_files(text: &str) -> bool {
    !is_command(text) && references(text).next().is_some()
}

/// What follows each `@` at the beginning of a word, up to a space that is not escaped, or in quotes.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('@').filter_map(move |(at, _)| {
        let before = text.get(..at)?.chars().next_back();
        if before.is_some_and(|it| !it.is_whitespace() && !"([{<\"'`".contains(it)) {
            return None;
        }
        let rest = text.get(at + 1..)?;
        if let Some(quoted) = rest.strip_prefix('"') {
            return Some(quoted.split('"').next()?).filter(|it| !it.is_empty());
        }
        let mut is_escaped = false;
        let end = rest.find(|it: char| {
            let ends = it.is_whitespace() && !is_escaped;
            is_escaped = it == '\\' && !is_escaped;
            ends
        });
        rest.get(..end.unwrap_or(rest.len())).filter(|it| !it.is_empty())
    })
}

/// The paths that a reference may mean, the longest first: a sentence may go on behind it.
fn candidates(reference: &str) -> Vec<String> {
    let mut res = vec![unescape(reference)];
    let mut rest = reference;
    while let Some(it) = rest.strip_suffix(PUNCTUATION) {
        rest = it;
        res.push(unescape(rest));
    }
    if let Some((start, _)) = rest.split_once(SEPARATORS) {
        res.push(unescape(start));
    }
    res.retain(|it| !it.is_empty());
    res.dedup();
    res
}

/// `\ ` is a space, as in a shell.
fn unescape(text: &str) -> String {
    let mut chars = text.chars();
    let mut res = String::new();
    while let Some(it) = chars.next() {
        res.extend(if it == '\\' { chars.next() } else { Some(it) });
    }
    res
}

/// A name without a slash or an extension is a person's, or a decorator.
fn missing_note(name: &str) -> Option<String> {
    let has_extension = name.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && !end.is_empty());
    (name.contains('/') || has_extension).then(|| format!("@{name}: no such file, so it stays text"))
}

#[cfg(test)]
mod tests {
    use super::{Attachment, AttachmentFolder, candidates, names_files, references};
    use crate::cli::testing::Ground;

    #[test]
    fn references_begin_words() {
        let all = |text: &'static str| references(text).collect::<Vec<_>>().join("|");
        for (text, expected) in [
            ("look at @calc.py, please", "calc.py,"),
            (r"@my\ file.txt and (@b/c)", r"my\ file.txt|b/c)"),
            (r#"see @"my file.txt" now"#, "my file.txt"),
            ("mail me@example.com, a @ b, @", ""),
            (r"\@calc.py", ""),
        ] {
            assert_eq!(all(text), expected, "{text}");
        }
        assert_eq!(candidates("b/c)."), ["b/c).", "b/c)", "b/c"]);
        assert_eq!(candidates("a.rs,@b.rs"), ["a.rs,@b.rs", "a.rs"]);
        assert_eq!(candidates(r"my\ file.txt:"), ["my file.txt:", "my file.txt"]);
        assert!(names_files("see @a") && names_files("/etc/hosts and @a") && !names_files("/undo @a"));
    }

    /// The ways of `text`'s files to the agent, and the notes.
    fn found(ground: &Ground, text: &str) -> String {
        let folder = AttachmentFolder::load(&ground.root.join("w"), &ground.env("true")).unwrap();
        let found = folder.find_files(text);
        let place = format!("file://{}/", ground.root);
        let line = |it: &Attachment| match it {
            Attachment::Text { uri, text } => format!("text {uri} {text:?}"),
            Attachment::Media { mime, uri, .. } => format!("{mime} {}", uri.as_deref().unwrap()),
            Attachment::Link { uri } => format!("link {uri}"),
        };
        let lines: Vec<String> = found.attachments.iter().map(line).chain(found.notes).collect();
        lines.join("\n").replace(&place, "").replace(&ground.root.to_string(), "$ROOT")
    }

    #[test]
    fn files_are_embedded_and_folders_listed() {
        let ground = Ground::new();
        ground.write("w/calc.py", "print(1)\n");
        ground.write("w/my file.txt", "two");
        ground.write("w/src/b.rs", "");
        ground.write("w/src/a/x", "");
        ground.write("w/page.pdf", "%PDF-1.4");
        assert_eq!(
            found(&ground, r#"look at @calc.py, @my\ file.txt, @"my file.txt" (@src) and @page.pdf?"#),
            "text w/calc.py \"print(1)\\n\"\ntext w/my%20file.txt \"two\"\ntext w/src/ \"a/\\nb.rs\\n\"\n\
             application/pdf w/page.pdf\nattached @calc.py, @my file.txt, @src, @page.pdf"
        );
        assert_eq!(
            found(&ground, "ask @ana, not @gone.py or @src/gone"),
            concat!("@gone.py: no such file, so it stays text\n", "@src/gone: no such file, so it stays text")
        );
    }

    /// As for an editor's links: what is not plainly of the workspace is read by the agent or not at all.
    #[test]
    fn guarded_files_are_not_embedded() {
        let ground = Ground::new();
        ground.write("outside.txt", "x");
        ground.write("w/.env", "TOKEN=hunter2hunter2hunter2\n");
        ground.write("w/notes.txt", "it is hunter2hunter2hunter2.\n");
        ground.write("w/.gitignore", "*.log\n");
        ground.write("w/.geminiignore", "private/\n");
        ground.write("w/a.log", "x");
        ground.write("w/private/a", "x");
        ground.write("w/large.txt", &"x".repeat(300 << 10));
        ground.write("w/odd.bin", "a\0b");
        std::os::unix::fs::symlink(ground.root.join(".."), ground.root.join("w/up")).unwrap();
        assert_eq!(
            found(&ground, "@.env @../outside.txt @up @a.log @private/a @large.txt @odd.bin"),
            "link w/.env\nlink outside.txt\nlink w/up\nlink w/large.txt\nlink w/odd.bin\n\
             @.env: it may hold secrets, so only its name is sent\n\
             @$ROOT/outside.txt: it is outside the workspace, so only its name is sent\n\
             @up: it is outside the workspace, so only its name is sent\n\
             @a.log: an ignore file hides it, so it is not attached\n\
             @private/a: an ignore file hides it, so it is not attached\n\
             @large.txt: it is larger than 256 KiB, so only its name is sent\n\
             @odd.bin: it is neither text nor media, so only its name is sent"
        );
        let masked = found(&ground, "@notes.txt");
        assert!(masked.contains("w/notes.txt") && !masked.contains("hunter2"), "{masked}");
    }
}
