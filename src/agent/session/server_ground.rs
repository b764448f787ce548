//! The ground of an MCP server: the folder, variables and sandbox of its process, by what its settings name.

use std::sync::Arc;

use super::confinement;
use castor_base::{
    mcp::{McpLink, McpServerConfig},
    path::AbsPath,
    sandbox::Confinement,
};
use castor_hands::process::{
    outside::OutsideGate,
    reach::{self, ProgramLine},
};

/// Where a server's process works, and what holds it there.
pub struct ServerGround {
    pub cwd: AbsPath,
    pub env: Arc<Vec<(String, String)>>,
    pub confined: Option<Arc<Confinement>>,
    pub gate: Option<OutsideGate>,
}

/// One that names nothing of the workspace starts away from it, as the user would start it. Any other runs what an agent
/// may have written: it is confined, unless the user says otherwise and the gate is open.
pub fn ground(
    config: &McpServerConfig,
    roots: &[AbsPath],
    session: &AbsPath,
    env: &Arc<Vec<(String, String)>>,
    confined: Option<&Confinement>,
) -> ServerGround {
    let McpLink::Stdio { command, args, env: own_env, cwd } = &config.link else {
        // Folder and environment make no difference to a server that somebody else runs.
        let cwd = AbsPath::new("/").unwrap_or_else(|| session.clone());
        return ServerGround { cwd, env: Arc::default(), confined: None, gate: None };
    };
    let (own_cwd, env) = (session.clone(), env.clone());
    let Some(commands) = confined else {
        return ServerGround { cwd: own_cwd, env, confined: None, gate: None };
    };
    let folder = cwd.as_ref().map_or_else(|| own_cwd.clone(), |it| own_cwd.join(it));
    let line = ProgramLine { program: command, args, own_env, folder: &folder, env: &env };
    let works_in_root = || roots.iter().any(|root| folder.is_within(root));
    let reaches = !line.named_roots(roots).is_empty() || (config.of_project || cwd.is_some()) && works_in_root();
    if let Some(castor) = commands.own_folders.records.parent().filter(|_| !reaches) {
        let away = if cwd.is_some() { folder.clone() } else { reach::away(&castor, roots) };
        let env = Arc::new(line.env_away(roots));
        return ServerGround { cwd: away, env, confined: None, gate: None };
    }
    let own = Some(&line).filter(|_| !config.of_project);
    let confined = Some(Arc::new(confinement::for_program(commands, &config.sandbox, own)));
    let gate = OutsideGate::of_line(commands, &line).filter(|_| config.sandbox.is_off);
    ServerGround { cwd: own_cwd, env, confined, gate }
}
