//! Folders of a sub-agent: those of its definition, which are a part of what the session above has.

use std::sync::Arc;

use super::session_resources::{ChildProcesses, SessionResources};
use castor_base::{path::AbsPath, sandbox::Confinement};
use castor_hands::disk;

/// The resources of a run that has these folders alone; all of them where there are none.
///
/// # Errors
/// For the model: one of them is no folder, or not a part of the workspace.
pub fn narrow(resources: SessionResources, folders: &[String]) -> Result<SessionResources, String> {
    let found = folders.iter().map(|it| folder(it, &resources)).collect::<Result<Vec<AbsPath>, String>>()?;
    let Some(cwd) = found.first().cloned() else { return Ok(resources) };
    let narrowed = |it: &Arc<Confinement>| Arc::new(Confinement { roots: found.clone(), ..(**it).clone() });
    let confined = resources.children.confined.as_ref().map(narrowed);
    let children = ChildProcesses { confined, ..resources.children };
    Ok(SessionResources { cwd, roots: found, children, ..resources })
}

/// Links are resolved first: one must not lead out of the workspace.
fn folder(named: &str, resources: &SessionResources) -> Result<AbsPath, String> {
    let fault = |what: &str| format!("workspace_directories: {named:?} {what}");
    let real = disk::resolve_path(&resources.cwd.as_path().join(named))
        .map_err(|it| fault(&format!("cannot be opened: {it}")))?;
    if !real.as_path().is_dir() {
        return Err(fault("is not a folder"));
    }
    match resources.roots.iter().any(|it| real.is_within(it)) {
        true => Ok(real),
        false => Err(fault("is not in the workspace")),
    }
}
