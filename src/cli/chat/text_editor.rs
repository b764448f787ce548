//! The user's own editor or pager on a text: `$VISUAL`, `$EDITOR` or `$PAGER`, in the foreground of the terminal.

use std::{io, path::Path};

use tempfile::TempDir;

use castor_base::path::AbsPath;
use castor_hands::{disk, process::foreground::run_in_front, secrets::Env};

/// What editors find their terminal and their language by.
const ALLOWED: &[&str] =
    &["TERM", "TERMINFO", "COLORTERM", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"];
const MAX_TEXT: u64 = 1 << 20;

/// What `less` needs to show colours.
const COLOR_FLAG: &str = "-R";

/// The text as the editor left it; `name` is what the editor knows it by. Blocks until the editor ends.
///
/// # Errors
/// In words: there is no editor, it failed, or it left what is no text.
pub fn edit_text(text: &str, name: &str, env: &Env, cwd: &AbsPath) -> Result<String, String> {
    let line = chosen_program(env, &["VISUAL", "EDITOR"]).unwrap_or("vi");
    let file = TextFile::new(name, text)?;
    file.open_with(line, &[], env, cwd)?;
    let bytes = disk::read_head(&file.path, MAX_TEXT).map_err(|it| in_words(&it))?;
    String::from_utf8(bytes).map_err(|_| "the editor left what is no UTF-8 text".to_owned())
}

/// Shows a text in the user's pager. Blocks until it ends.
///
/// # Errors
/// In words: there is no pager, or it failed.
pub fn page_text(colored: &str, plain: &str, env: &Env, cwd: &AbsPath) -> Result<(), String> {
    let line = chosen_program(env, &["PAGER"]).unwrap_or("less");
    let program = line.split_whitespace().next().and_then(|it| it.rsplit('/').next());
    match program == Some("less") {
        true => TextFile::new("proposal.txt", colored)?.open_with(line, &[COLOR_FLAG], env, cwd),
        false => TextFile::new("proposal.txt", plain)?.open_with(line, &[], env, cwd),
    }
}

fn chosen_program<'a>(env: &'a Env, variables: &[&str]) -> Option<&'a str> {
    variables.iter().find_map(|it| env.get(it).filter(|it| !it.trim().is_empty()))
}

/// A text that a program opens; gone when this is dropped.
struct TextFile {
    path: AbsPath,
    _folder: TempDir,
}

impl TextFile {
    fn new(name: &str, text: &str) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("castor-").tempdir().map_err(|it| in_words(&it))?;
        let name = Path::new(name).file_name().unwrap_or("text".as_ref());
        let path = AbsPath::new(folder.path().join(name)).ok_or("the temporary folder has no absolute path")?;
        disk::write_private(&path, text.as_bytes()).map_err(|it| in_words(&it))?;
        Ok(Self { path, _folder: folder })
    }

    fn open_with(&self, line: &str, args: &[&str], env: &Env, cwd: &AbsPath) -> Result<(), String> {
        let words = shlex::split(line).filter(|it| !it.is_empty());
        let words = words.ok_or_else(|| format!("{line} cannot be read as a command"))?;
        let allowed: Vec<String> = ALLOWED.iter().map(|it| (*it).to_owned()).collect();
        let path = self.path.to_string();
        let argv: Vec<&str> =
            words.iter().map(String::as_str).chain(args.iter().copied()).chain([path.as_str()]).collect();
        let status = run_in_front(&argv, cwd, &env.child_env(&allowed, &[]))
            .map_err(|it| format!("{line} cannot be started: {it}"))?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("{line} ended with {status}, so the text stays as it was")),
        }
    }
}

fn in_words(error: &io::Error) -> String {
    format!("the text cannot be given to a program: {error}")
}
