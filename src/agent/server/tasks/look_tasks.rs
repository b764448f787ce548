//! Tasks of the question whether the user looked at what an agent wrote: reads the files, and writes the answer down.

use super::effect_task::EffectTask;
use crate::session::shown_unseen::{all_unseen, looked};
use castor_base::{path::AbsPath, unseen_files::SeenBytes};
use castor_engine::step::Input;

/// Reads what nobody looked at in these places.
pub async fn show_unseen(task: EffectTask, roots: Vec<AbsPath>) {
    let provenance = task.resources.files.provenance.clone();
    let read = move || all_unseen(&provenance, &roots);
    let shown = tokio::task::spawn_blocking(read).await.ok().flatten();
    task.send_answer(Input::UnseenShown { effect: task.id, shown }).await;
}

/// A person looked at exactly these bytes. Servers that were kept inside for them start anew, which lets them out.
pub async fn look_at(task: EffectTask, bytes: Vec<SeenBytes>) {
    let provenance = task.resources.files.provenance.clone();
    let look = move || provenance.look(&looked(&bytes)).map_err(|it| it.to_string());
    let result = tokio::task::spawn_blocking(look).await.unwrap_or_else(|it| Err(it.to_string()));
    if result.is_ok() {
        task.resources.mcp.servers.iter().for_each(|it| it.connection.leave_sandbox());
    }
    task.send_answer(Input::Diffed { effect: task.id, result: result.map(|()| String::new()) }).await;
}
