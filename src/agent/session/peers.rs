//! Generators for agents that are not castor's: they answer requests in a model's place.

use std::sync::Arc;

use super::{
    confinement::{folder_of, for_program},
    session_resources::SessionResources,
};
use castor_base::{
    peer_agent::{PeerAgent, ProgramAgent},
    sandbox::Confinement,
};
use castor_hands::{
    http::Http,
    process::{outside::OutsideGate, reach::ProgramLine},
    secrets::Env,
};
use castor_models::{
    a2a::{KeyCommands, RemoteHands, RemotePeer},
    acp_agent::{AcpAgent, AgentLaunch},
    providers::Generator,
};

/// The hands that peers are reached with.
pub struct PeerHands {
    pub http: Arc<Http>,
    /// With what the folder's `.env` files say.
    pub env: Env,
}

/// What answers the requests of a peer's session. `memory`: what its last run left.
///
/// # Errors
/// For the model: why the peer cannot be driven.
pub fn peer_generator(
    peer: &PeerAgent,
    memory: Option<&str>,
    resources: &SessionResources,
    hands: PeerHands,
) -> Result<Arc<dyn Generator>, String> {
    match peer {
        PeerAgent::Remote(it) => {
            let (children, PeerHands { http, env }) = (&resources.children, hands);
            let hooks = &children.hooks;
            let (groups, cwd, confined) = (hooks.groups.clone(), hooks.cwd.clone(), hooks.confined.clone());
            let commands = KeyCommands { groups, cwd, env: children.env.clone(), confined };
            Ok(Arc::new(RemotePeer::new(it.clone(), RemoteHands { http, env, commands }, memory)))
        }
        PeerAgent::Program(it) => Ok(Arc::new(AcpAgent::new(launch(it, resources)?))),
    }
}

fn launch(program: &ProgramAgent, resources: &SessionResources) -> Result<AgentLaunch, String> {
    let children = &resources.children;
    let (own_env, env, folder) = (&program.env, &children.env, &resources.cwd);
    let line = ProgramLine { program: &program.command, args: &program.args, own_env, folder, env };
    let confined = children.confined.as_deref().map(|it| confine(program, &line, it)).transpose()?;
    let let_out = confined.as_ref().filter(|_| program.sandbox.is_off);
    Ok(AgentLaunch {
        program: program.clone(),
        cwd: resources.cwd.clone(),
        env: children.env.to_vec(),
        gate: let_out.and_then(|it| OutsideGate::of_line(it, &line)),
        confined,
        rights: children.hooks.rights.clone(),
        groups: children.hooks.groups.clone(),
    })
}

/// As commands are, with its own network and its own credentials: what it gets of the workspace it may send away, so it
/// sees no secrets there.
fn confine(program: &ProgramAgent, line: &ProgramLine<'_>, commands: &Confinement) -> Result<Confinement, String> {
    let own = &program.sandbox;
    for (key, all) in [("readable", &own.readable), ("writable", &own.writable), ("sockets", &own.sockets)] {
        if let Some(odd) = all.iter().find(|it| folder_of(it, commands.home.as_ref()).is_none()) {
            return Err(format!("{key}: {odd:?} should be an absolute path or begin with ~/"));
        }
    }
    // That it has none is its definition's word, and no command of the session goes by it.
    Ok(for_program(&Confinement { network: false, ..commands.clone() }, own, Some(line)))
}
