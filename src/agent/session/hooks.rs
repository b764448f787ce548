//! Hooks of a session: loads them, with their folder and the data that each one gets.

use serde_json::{Map, Value};

use super::{
    confinement,
    session_resources::{HookResources, SessionResources},
};
use crate::settings::{self, Sources};
use castor_base::{
    held_program::ProgramName,
    hook::{Hook, HookRun, HookSource},
    path::AbsPath,
    sandbox::Confinement,
};
use castor_engine::hooks::Hooks;
use castor_hands::{
    disk,
    process::{outside::OutsideGate, reach::ProgramLine},
};
use castor_tools::{hooks::HookPlace, workspace::folder_config::FolderConfig};
use castor_wire::acp::session::iso_time;

/// Names that Gemini CLI, Claude Code and castor have for the same folder.
const PROJECT: &[&str] = &["CASTOR_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "GEMINI_CWD"];

/// The hooks of a folder. Those of a workspace are there only if it is trusted, with what they would run; they run it
/// only as it is now.
pub fn load_hooks(ground: &FolderConfig) -> Hooks {
    let layers = ground.layers();
    let sources = Sources { layers, env: &ground.env, flags: &[] };
    // Their form was checked with all other settings.
    let (found, _) = settings::hooks(sources);
    Hooks::new(found.hooks.into_iter().map(|it: Hook| ground.bind_hook(it)).collect(), found.disabled)
}

/// The run with what belongs to the session, and where it happens.
pub fn complete(run: HookRun, resources: &SessionResources, unix_ms: u64) -> (HookRun, HookPlace) {
    let HookResources { project, cwd, confined, transcript, rights, .. } = &resources.children.hooks;
    let mut input = Map::from_iter([
        ("session_id".to_owned(), Value::from(resources.session.as_str())),
        ("transcript_path".to_owned(), transcript.as_str().into()),
        ("cwd".to_owned(), project.to_string().into()),
        ("hook_event_name".to_owned(), run.hook.event.as_str().into()),
        ("timestamp".to_owned(), iso_time(unix_ms).into()),
    ]);
    input.extend(run.input);
    let folder = project.to_string();
    let mut env = resources.children.env.to_vec();
    env.extend(PROJECT.iter().map(|name| ((*name).to_owned(), folder.clone())));
    env.extend(["CASTOR_SESSION_ID", "GEMINI_SESSION_ID"].map(|it| (it.to_owned(), resources.session.to_string())));
    env.extend(["CASTOR", "GEMINI_CLI"].map(|it| (it.to_owned(), "1".to_owned())));
    let (cwd, confined) = match run.hook.source == HookSource::Project {
        true => (project, &resources.children.confined),
        false => (cwd, confined),
    };
    let args = [run.hook.command.clone()];
    let line = ProgramLine { program: "bash", args: &args, own_env: &run.hook.env, folder: cwd, env: &env };
    let name = ProgramName::Hook(run.hook.key().to_owned());
    let confinement = confined.as_deref().map(|it| rights.widened(&name, hold(it, &run.hook, &line, transcript)));
    let is_let_out = run.hook.sandbox.is_off && run.hook.source == HookSource::User;
    let gate = confinement.as_ref().filter(|_| is_let_out).and_then(|it| OutsideGate::of_line(it, &line));
    let place = HookPlace { cwd: cwd.clone(), env, confinement, gate, rights: rights.clone() };
    (HookRun { input, ..run }, place)
}

/// As commands are held, with what the user's settings say of the hook. The user's own see the session's log.
fn hold(commands: &Confinement, hook: &Hook, line: &ProgramLine<'_>, transcript: &str) -> Confinement {
    if hook.source == HookSource::Project {
        return confinement::for_program(commands, &hook.sandbox, None);
    }
    let mut res = confinement::for_program(commands, &hook.sandbox, Some(line));
    res.grant.seen.extend(AbsPath::new(transcript).and_then(|it| disk::real_path(&it).ok()));
    res
}
