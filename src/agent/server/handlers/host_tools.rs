//! Tools of hosts: whether a client may bring them, and what it brings with a prompt.

use jsonrpsee::types::ErrorObjectOwned;

use castor_base::{
    content::{HostAnswer, HostResult, Part},
    endings::CALL_INTERRUPTED,
    host_tools::{HostExecution, HostTools},
    tool::ToolCall,
};
use castor_engine::{scheduler::Toolbox, session::Session};
use castor_wire::{acp::initialize::Client, jsonrpc::error};

/// # Errors
/// For the client: it did not say that it runs tools.
pub fn check_capability(client: Option<&Client>, host: &HostTools) -> Result<(), ErrorObjectOwned> {
    let runs = client.and_then(|it| it.features.host_tools);
    let is_more =
        runs == Some(HostExecution::Declared) && host.execution.is_some_and(|it| it != HostExecution::Declared);
    if host.is_empty() || runs.is_some() && !is_more {
        return Ok(());
    }
    let why = "_meta.castor: tools and hostToolExecution are for clients that run tools";
    Err(error::invalid_params(&format!("{why}; send clientCapabilities._meta.castor.hostTools: true at initialize")))
}

/// The results of calls that another client's host still owes, for a client that runs no tools: else the session could not
/// continue.
pub fn interrupted_results(client: Option<&Client>, session: &Session) -> Vec<HostResult> {
    if session.is_busy() || client.is_some_and(|it| it.features.host_tools == Some(HostExecution::All)) {
        return Vec::new();
    }
    let interrupted = |it: ToolCall| {
        let content = vec![Part::text(CALL_INTERRUPTED)];
        HostResult { call: it.id, answer: HostAnswer { content, shown: None, is_error: true } }
    };
    session.record().pending_calls().into_iter().map(interrupted).collect()
}

/// # Errors
/// For the client: a tool has the name of another.
pub fn check_names(toolbox: &Toolbox, host: &HostTools) -> Result<(), ErrorObjectOwned> {
    toolbox.check_host(host).map_err(|it| error::invalid_params(&format!("_meta.castor: {it}")))
}
