//! Sessions of a host: which there are, each with its state trees, and the desk at which one is worked on.

pub mod acts;
pub mod annotations;
mod calls;
pub mod catalog;
pub mod changes;
pub mod client_tools;
pub mod config;
pub mod content;
pub mod customizations;
pub mod desk;
pub mod folders;
mod forms;
pub mod hosted_session;
pub mod messages;
mod open_requests;
pub mod questions;
mod steering;
mod trees;
pub mod truncation;
pub mod turn_end;
mod turn_progress;
pub mod turns;
mod updates;

use std::collections::BTreeMap;

use ahp::ahp_types::state::SessionSummary;

use super::clients::Clients;
pub use acts::{Tree, TreeAction};
use castor_wire::acp::client::AgentSession;
use catalog::{HostMemory, SessionCatalog};
pub use desk::SessionDesk;
pub use hosted_session::{HostedSession, SessionStage};
use trees::Trees;

/// All sessions that are here, and what is known of the others.
pub struct Sessions {
    pub all: BTreeMap<String, HostedSession>,
    pub catalog: SessionCatalog,
}

impl Sessions {
    pub fn new(memory: HostMemory) -> Self {
        Self { all: BTreeMap::new(), catalog: SessionCatalog::new(memory) }
    }

    pub fn ids(&self) -> Vec<String> {
        self.all.keys().cloned().collect()
    }

    /// A session that clients see.
    pub fn open(&self, session: &str) -> Option<&HostedSession> {
        self.all.get(session).filter(|it| !it.is_opening())
    }

    pub fn desk<'h>(&'h mut self, clients: &'h mut Clients, session: &str) -> Option<SessionDesk<'h>> {
        let hosted = self.all.get_mut(session)?;
        Some(SessionDesk { hosted, catalog: &mut self.catalog, clients })
    }

    /// A session begins to be here.
    pub fn add(&mut self, session: &str, clients: &Clients) -> &mut HostedSession {
        let mut hosted = HostedSession::new(session, (clients.now_ms, clients.last_action()));
        if let Some(cwd) = self.catalog.folders.get(session) {
            hosted.set_folders(cwd, self.catalog.more_folders(session));
        }
        self.all.remove(session);
        self.all.entry(session.to_owned()).or_insert(hosted)
    }

    /// Clients begin sessions before their users type anything, and take many of them back.
    pub fn is_listed(&self, session: &str) -> bool {
        self.all.get(session).is_none_or(|it| it.is_opening() || it.announced.is_some())
    }

    /// A row of the agent's list; of a session that is open here the host knows more.
    pub fn summary_of_row(&self, row: &AgentSession) -> SessionSummary {
        let id = row.session_id.as_str();
        if let Some(it) = self.open(id) {
            return it.summary();
        }
        let status = self.catalog.status(id);
        let title = row.title.as_deref().unwrap_or_default();
        let updated_at = row.updated_at.clone().unwrap_or_default();
        let folders = row.cwd.iter().chain(self.catalog.more_folders(id));
        SessionSummary {
            title: title.to_owned(),
            status,
            working_directories: Some(folders.map(|it| messages::uri_of(it)).collect()),
            // The list has no other time.
            created_at: updated_at.clone(),
            modified_at: updated_at,
            ..hosted_session::new_summary(id, vec![hosted_session::chat_summary(id, title, status)])
        }
    }
}
