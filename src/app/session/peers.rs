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
        acp_agent::{AcpAgent, AgentLaunch},
        disk,
        models::Generator,
    },
};

/// What answers the requests of a peer's session.
///
/// # Errors
/// For the model: why the peer cannot be driven.
pub fn peer_generator(peer: &PeerAgent, resources: &SessionResources) -> Result<Arc<dyn Generator>, String> {
    match peer {
        PeerAgent::Remote(_) => Err("remote agents cannot be driven".to_owned()),
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
