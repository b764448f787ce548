//! The user's own editor on a text: `$VISUAL` or `$EDITOR`, in the foreground of the terminal.

use std::io;

use crate::{
    base::path::AbsPath,
    world::{disk, process::foreground::run_in_front, secrets::Env},
};

/// What editors find their terminal and their language by.
const ALLOWED: &[&str] =
    &["TERM", "TERMINFO", "COLORTERM", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"];
const MAX_TEXT: u64 = 1 << 20;

/// The text as the editor left it. Blocks until the editor ends.
///
/// # Errors
/// In words: there is no editor, it failed, or it left what is no text.
pub fn edit_text(text: &str, env: &Env, cwd: &AbsPath) -> Result<String, String> {
    let named = ["VISUAL", "EDITOR"].iter().find_map(|it| env.get(it).filter(|it| !it.trim().is_empty()));
    let line = named.unwrap_or("vi");
    let words = shlex::split(line).filter(|it| !it.is_empty()).ok_or("EDITOR cannot be read as a command")?;
    let folder = tempfile::Builder::new().prefix("castor-").tempdir().map_err(|it| in_words(&it))?;
    let path = AbsPath::new(folder.path().join("message.md")).ok_or("the temporary folder has no absolute path")?;
    disk::write_private(&path, text.as_bytes()).map_err(|it| in_words(&it))?;
    let allowed: Vec<String> = ALLOWED.iter().map(|it| (*it).to_owned()).collect();
    let name = path.to_string();
    let argv: Vec<&str> = words.iter().map(String::as_str).chain([name.as_str()]).collect();
    let status = run_in_front(&argv, cwd, &env.child_env(&allowed, &[]))
        .map_err(|it| format!("{line} cannot be started: {it}"))?;
    if !status.success() {
        return Err(format!("{line} ended with {status}, so the text stays as it was"));
    }
    let bytes = disk::read_head(&path, MAX_TEXT).map_err(|it| in_words(&it))?;
    String::from_utf8(bytes).map_err(|_| "the editor left what is no UTF-8 text".to_owned())
}

fn in_words(error: &io::Error) -> String {
    format!("the text cannot be given to an editor: {error}")
}
