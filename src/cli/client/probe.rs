//! castor's own agent, started to be asked a few things without a user: by `castor doctor` and `castor mcp`.

use std::{io, path::Path};

use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    child::{self, Agent, AgentCommand},
    link::request_failure,
};
use castor_client::{failure::RequestFailure, incoming::Incoming, peer::Refusal};
use castor_models::acp_agent::{answer_line, connection::Peer};
use castor_wire::acp::client::{ClientEvent, SessionEvent};

/// Events that are kept until they are looked at. A probe looks at those of its last prompt.
const QUEUE: usize = 64;

/// A running agent on the demo model.
pub struct Probe {
    agent: Agent,
    peer: Peer,
    events: mpsc::Receiver<ClientEvent>,
    stderr: mpsc::Receiver<String>,
}

impl Probe {
    /// Starts the agent; `keeps`: the events that the probe looks at. All is read: the agent waits for who does not.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(program: &Path, keeps: fn(&ClientEvent) -> bool) -> io::Result<Self> {
        let args = ["acp", "--model", "demo"].map(Into::into).to_vec();
        let (agent, pipes) = child::spawn(&AgentCommand { program: program.into(), args, env: Vec::new() })?;
        let (peer, mut incoming) = Peer::connect(pipes.stdout, pipes.stdin);
        let (outbox, (to, events)) = (peer.outbox(), mpsc::channel(QUEUE));
        tokio::spawn(async move {
            while let Some(message) = incoming.recv().await {
                match message {
                    Incoming::Request { id, .. } => {
                        let refusal = Refusal::new(-32601, "nobody is asked");
                        _ = outbox.send(answer_line(&id, &Err(refusal))).await;
                    }
                    Incoming::Notification { method, params } if method == "session/update" => {
                        let SessionEvent { event, .. } = SessionEvent::read(&params);
                        if keeps(&event) {
                            _ = to.try_send(event);
                        }
                    }
                    Incoming::Notification { .. } | Incoming::Noise(_) => (),
                }
            }
        });
        Ok(Self { agent, peer, events, stderr: pipes.stderr })
    }

    pub async fn ask(&self, method: &'static str, params: Value) -> Result<Value, RequestFailure> {
        self.peer.request(method, params).await.map_err(request_failure)
    }

    /// The events that came since this was asked.
    pub fn take_events(&mut self) -> Vec<ClientEvent> {
        std::iter::from_fn(|| self.events.try_recv().ok()).collect()
    }

    /// Lets go of the agent. Gives the lines of its stderr.
    pub async fn end(self) -> mpsc::Receiver<String> {
        self.peer.close();
        self.agent.wait_or_kill().await;
        self.stderr
    }
}
