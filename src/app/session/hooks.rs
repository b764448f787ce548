//! Hooks of a session: loads them, with their folder and the data that each one gets.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    app::{
        session::session_resources::SessionResources,
        settings::{self, Sources},
    },
    base::{
        hook::{Hook, HookRun},
        path::AbsPath,
        sandbox::Confinement,
    },
    engine::hooks::Hooks,
    wire::acp::session::iso_time,
    world::{hooks::HookPlace, process::Groups, workspace::folder_config::FolderConfig},
};

/// Names that Gemini CLI, Claude Code and castor have for the same folder.
const PROJECT: &[&str] = &["CASTOR_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "GEMINI_CWD"];

/// What all hooks of a session share.
#[derive(Clone)]
pub struct HookResources {
    pub groups: Groups,
    /// Where the user's hooks run: in a folder that nobody trusts it is the home folder.
    pub cwd: AbsPath,
    /// As the user's hooks are confined.
    pub confined: Option<Arc<Confinement>>,
    /// The session's log.
    pub transcript: String,
}

/// The hooks of a folder. Those of a workspace are there only if it is trusted, with what they would run; they run it
/// only as it is now.
pub fn load_hooks(ground: &FolderConfig) -> Hooks {
    let layers = ground.layers();
    let sources = Sources { layers: &layers, env: &ground.env, flags: &[] };
    // Their form was checked with all other settings.
    let (found, _) = settings::hooks(sources);
    let bound = |hook: Hook| match hook.of_project {
        true => ground.bind_hook(hook),
        false => hook,
    };
    Hooks::new(found.hooks.into_iter().map(bound).collect(), found.disabled)
}

/// The run with what belongs to the session, and where it happens.
pub fn complete(run: HookRun, desk: &SessionResources, unix_ms: u64) -> (HookRun, HookPlace) {
    let HookResources { cwd, confined, transcript, .. } = &desk.children.hooks;
    let mut input = Map::from_iter([
        ("session_id".to_owned(), Value::from(desk.session.as_str())),
        ("transcript_path".to_owned(), transcript.as_str().into()),
        ("cwd".to_owned(), desk.cwd.to_string().into()),
        ("hook_event_name".to_owned(), run.hook.event.as_str().into()),
        ("timestamp".to_owned(), iso_time(unix_ms).into()),
    ]);
    input.extend(run.input);
    let folder = desk.cwd.to_string();
    let mut env = desk.children.env.to_vec();
    env.extend(PROJECT.iter().map(|name| ((*name).to_owned(), folder.clone())));
    env.extend(["CASTOR_SESSION_ID", "GEMINI_SESSION_ID"].map(|it| (it.to_owned(), desk.session.to_string())));
    env.extend(["CASTOR", "GEMINI_CLI"].map(|it| (it.to_owned(), "1".to_owned())));
    let (cwd, confined) = match run.hook.of_project {
        true => (&desk.cwd, &desk.children.confined),
        false => (cwd, confined),
    };
    let place = HookPlace { cwd: cwd.clone(), env, confinement: confined.as_deref().cloned() };
    (HookRun { input, ..run }, place)
}
