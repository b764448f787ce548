//! Paths of tool calls: real targets, the check against the session's folders, and error messages.

use std::io::{self, ErrorKind};

use crate::builtin::{ToolContext, aliases::Aliases};
use castor_base::{
    fs::FsError,
    path::AbsPath,
    path_text,
    tool::{Access, TargetPath, ToolError},
};
use castor_hands::{
    disk::{self, FileId},
    process::sandbox::{self, git_config_paths},
};

/// Behind the name of a file that is not there.
const OWN_TMP: &str = " This folder is the session's own, for commands and file tools. A file that others left in the \
                       machine's is seen once the user names its path.";
/// Links from one shared folder to another that are followed.
const MAX_LINKS: usize = 16;

/// Runs blocking work where it does not hold up the loop.
pub async fn run_blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(act).await.map_err(|it| ToolError::new("unhandled_exception", it.to_string()))
}

/// A path as policy sees it. A path that cannot be resolved is an error, since policy could not judge it.
pub async fn resolve_target(
    ctx: &ToolContext,
    path: &AbsPath,
    access: Access,
    line: Option<u32>,
) -> Result<TargetPath, ToolError> {
    let (path, ctx) = (path.clone(), ctx.clone());
    run_blocking(move || resolve_target_now(&ctx, path, access, line)).await?
}

fn resolve_target_now(
    ctx: &ToolContext,
    path: AbsPath,
    access: Access,
    line: Option<u32>,
) -> Result<TargetPath, ToolError> {
    let real = real_path(ctx, &path).map_err(|it| io_error(&path, &it))?;
    let scratch = disk::real_path(&ctx.scratch).unwrap_or_else(|_| ctx.scratch.clone());
    let in_roots = ctx.roots.iter().any(|it| real.is_within(it)) || real.is_within(&scratch);
    let home = ctx.home();
    // Where nobody knows what git's settings name, it may be this.
    let home = home.as_ref().map(AbsPath::as_path);
    let named = || git_config_paths::named_by_config(real.as_path(), &ctx.roots, home).map_or(true, |it| it.is_some());
    let named = access == Access::Write && named();
    let writes = access == Access::Write;
    // What a call's long output went to lies in castor's folder.
    let held = ctx.known.protected.is_masked(&real, &ctx.roots)
        || writes && ctx.known.protected.is_never_written(&real, &ctx.roots);
    let held = held && !real.is_within(&scratch);
    let temporary = is_temporary(ctx, &real);
    let hidden = ctx.known.protected.is_hidden(&real, &ctx.roots) && !real.is_within(&scratch);
    Ok(TargetPath { path, real, access, line, in_roots, temporary, hidden, named, held })
}

/// Tells whether it lies in the session's own folder for temporary files. Blocks.
pub fn is_temporary(ctx: &ToolContext, real: &AbsPath) -> bool {
    let own = ctx.confined.as_ref().map(|it| &it.own_folders.tmp);
    own.is_some_and(|it| real.is_within(&disk::real_path(it).unwrap_or_else(|_| it.clone())))
}

/// Where a path really is. In the folders for temporary files that all programs share it is the session's, as to its
/// commands: wherever links of theirs lead, they lead there as seen by them. Blocks.
pub fn real_path(ctx: &ToolContext, path: &AbsPath) -> io::Result<AbsPath> {
    // In the client's terminals nothing stands in place of them.
    let confined = ctx.confined.as_deref().filter(|_| ctx.terminals.client.is_none());
    let own = |path: &AbsPath| confined.and_then(|it| sandbox::own_tmp_path(it, path));
    let mut at = own(path).unwrap_or_else(|| path.clone());
    for _ in 0..MAX_LINKS {
        let real = disk::real_path(&at)?;
        match own(&real) {
            None => return Ok(real),
            Some(it) => at = it,
        }
    }
    Err(io::Error::other("too many links"))
}

/// As [`resolve_target`], for a file's content: a secret file that is the same under another name is a target, too.
pub async fn content_targets(
    ctx: &ToolContext,
    path: &AbsPath,
    access: Access,
    line: Option<u32>,
) -> Result<Vec<TargetPath>, ToolError> {
    let (path, ctx) = (path.clone(), ctx.clone());
    run_blocking(move || content_targets_now(&ctx, path, access, line)).await?
}

/// As [`content_targets`]; blocks.
pub fn content_targets_now(
    ctx: &ToolContext,
    path: AbsPath,
    access: Access,
    line: Option<u32>,
) -> Result<Vec<TargetPath>, ToolError> {
    let mut res = vec![resolve_target_now(ctx, path, access, line)?];
    let shared = res.first().map(|it| it.real.clone()).filter(|it| disk::hard_link_id(it).is_some());
    if let Some(secret) = shared.and_then(|it| Aliases::scan(&ctx.roots).secret_of(&it).cloned()) {
        res.push(resolve_target_now(ctx, secret, access, None)?);
    }
    Ok(res)
}

/// As [`disk::hard_link_id`].
pub async fn hard_link_id(real: &AbsPath) -> Result<Option<FileId>, ToolError> {
    let real = real.clone();
    run_blocking(move || disk::hard_link_id(&real)).await
}

/// Where a path of the call really is: as policy saw it, if it did already.
pub async fn call_real_path(ctx: &ToolContext, path: &AbsPath) -> Result<AbsPath, ToolError> {
    match ctx.known.decided_targets.is_empty() {
        true => {
            let (ctx, path) = (ctx.clone(), path.clone());
            run_blocking(move || call_real_path_now(&ctx, &path)).await?
        }
        false => call_real_path_now(ctx, path),
    }
}

/// As [`call_real_path`]; blocks while nothing was decided.
pub fn call_real_path_now(ctx: &ToolContext, path: &AbsPath) -> Result<AbsPath, ToolError> {
    let places = &ctx.known.decided_targets;
    if places.is_empty() {
        return real_path(ctx, path).map_err(|it| io_error(path, &it));
    }
    let decided = places.iter().find(|it| it.path == *path).map(|it| it.real.clone());
    decided.ok_or_else(|| ToolError::new("policy_violation", format!("Nothing was decided about {path}.")))
}

/// What a search says of files that it did not look into.
pub fn omitted_secrets_note(secrets: usize) -> String {
    match secrets {
        0 => String::new(),
        count => format!("\n({count} file(s) left out: they may hold secrets. To look into one, name it.)"),
    }
}

/// `FsError` in the words of tool errors; `other` is the kind for what has no name.
pub fn fs_error(error: &FsError, other: &str) -> ToolError {
    let kind = match error {
        FsError::NotFound(_) => "file_not_found",
        FsError::IsDirectory(_) => "target_is_directory",
        FsError::Denied(_) => "permission_denied",
        FsError::NoSpace(_) => "no_space_left",
        FsError::Other { .. } => other,
    };
    ToolError::new(kind, error.to_string())
}

/// An `io::Error` about `path` in the words of tool errors.
pub fn io_error(path: &AbsPath, error: &io::Error) -> ToolError {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            ToolError::new("file_not_found", format!("File not found: {path}"))
        }
        ErrorKind::PermissionDenied => ToolError::new("permission_denied", format!("Permission denied: {path}")),
        _ => ToolError::new("execution_failed", format!("{path}: {error}")),
    }
}

/// "File not found", with the entry of the same folder that was probably meant. Blocks.
pub fn not_found_error(path: &AbsPath, ctx: &ToolContext) -> ToolError {
    let own = real_path(ctx, path).is_ok_and(|it| it != *path && is_temporary(ctx, &it));
    let near = || nearest_sibling(path).map(|it| format!(" Did you mean {}?", it.relative_to(&ctx.cwd)));
    let hint = if own { Some(OWN_TMP.to_owned()) } else { near() };
    ToolError::new("file_not_found", format!("File not found: {path}.{}", hint.unwrap_or_default()))
}

fn nearest_sibling(path: &AbsPath) -> Option<AbsPath> {
    let parent = path.parent()?;
    let Ok(entries) = disk::read_dir(&parent) else {
        // The folder itself may be what is misspelt.
        let right = nearest_sibling(&parent)?.join(path.as_path().file_name()?);
        return disk::metadata(&right).is_ok().then_some(right);
    };
    let wanted = path.as_path().file_name()?.to_string_lossy().to_lowercase();
    let scored = entries.into_iter().map(|it| (similarity(&wanted, &it.name.to_lowercase()), it.name));
    let best = scored.filter(|it| it.0 >= 0.6).max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1)))?;
    Some(parent.join(path_text::from_text(&best.1)))
}

/// How alike two names are, 0 to 1: pairs of neighbouring characters that both have.
fn similarity(a: &str, b: &str) -> f64 {
    let pairs = |it: &str| it.chars().zip(it.chars().skip(1)).collect::<Vec<_>>();
    let (a, mut b) = (pairs(a), pairs(b));
    let total = a.len() + b.len();
    let mut shared = 0;
    for pair in a {
        if let Some(at) = b.iter().position(|it| *it == pair) {
            b.swap_remove(at);
            shared += 1;
        }
    }
    if total == 0 { 0.0 } else { f64::from(shared) * 2.0 / total as f64 }
}

#[cfg(test)]
mod tests;
