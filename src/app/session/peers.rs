//! Generators for agents that are not castor's: they answer requests in a model's place.

use std::sync::Arc;

use super::{confinement::folder_of, session_resources::SessionResources};
use crate::{
    base::{
        path::AbsPath,
        peer_agent::{PeerAgent, ProgramAgent},
        sandbox::{Confinement, SandboxGrant},
    },
    world::{
        a2a::{KeyCommands, RemoteHands, RemotePeer},
        acp_agent::{AcpAgent, AgentLaunch},
        disk,
        http::Http,
        models::Generator,
        secrets::Env,
    },
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
    let confined = children.confined.as_deref().map(|it| confine(program, it)).transpose()?;
    Ok(AgentLaunch {
        program: program.clone(),
        cwd: resources.cwd.clone(),
        env: children.env.to_vec(),
        confined,
        groups: children.hooks.groups.clone(),
    })
}

/// As commands are, with its own network and its own credentials: what it gets of the workspace it may send away, so it
/// sees no secrets there.
fn confine(program: &ProgramAgent, commands: &Confinement) -> Result<Confinement, String> {
    let readable = program.readable.iter().map(|it| {
        let path = folder_of(it, commands.home.as_ref());
        path.map(real).ok_or_else(|| format!("readable: {it:?} should be an absolute path or begin with ~/"))
    });
    let credentials = readable.collect::<Result<Vec<AbsPath>, String>>()?;
    let (network, grant) = (program.network, SandboxGrant { credentials, ..SandboxGrant::default() });
    // That it has none is its definition's word, and no command of the session goes by it.
    let alone = Confinement { network: false, ..commands.clone() };
    alone.with_grant(&SandboxGrant { network, ..grant }).ok_or_else(|| "no sandbox holds it".to_owned())
}

fn real(it: AbsPath) -> AbsPath {
    disk::real_path(&it).unwrap_or(it)
}
