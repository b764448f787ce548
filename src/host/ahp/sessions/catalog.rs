//! Sessions that the host knows of: what the agent's list said, and what the host itself keeps over restarts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ahp::ahp_types::state::SessionStatus;
use serde::{Deserialize, Serialize};

use castor_wire::acp::client::{AgentSession, OpenParams};

/// Most sessions of which the host keeps something. The oldest are forgotten, as ids begin with the time.
const MAX_KEPT: usize = 10_000;

const MAX_CLIENTS: usize = 100;
const MAX_CLIENT_ID: usize = 100;

#[derive(Default)]
pub struct SessionCatalog {
    /// The first folder of each.
    pub folders: BTreeMap<String, String>,
    archived: BTreeSet<String>,
    memory: HostMemory,
    /// The memory is another one than was kept last.
    is_changed: bool,
}

/// Facts that no agent keeps for the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HostMemory {
    /// Sessions that changed since a user looked.
    unread: BTreeSet<String>,
    /// Folders beside the first.
    more_folders: BTreeMap<String, Vec<String>>,
    /// Clients of protocol versions below 1.0, the last ones: who reconnects says no version.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    older_clients: VecDeque<String>,
}

impl SessionCatalog {
    pub fn new(memory: HostMemory) -> Self {
        Self { memory, ..Self::default() }
    }

    /// Takes rows of the agent's list.
    pub fn note_rows(&mut self, rows: &[AgentSession]) {
        for it in rows {
            let Some(cwd) = &it.cwd else { continue };
            self.folders.insert(it.session_id.clone(), cwd.clone());
            self.set_archived(&it.session_id, it.archived);
        }
    }

    /// The params by which a session is opened.
    pub fn opening_params<'a>(&'a self, session: &'a str) -> OpenParams<'a> {
        let cwd = self.folders.get(session).map(String::as_str).unwrap_or_default();
        OpenParams::of(session, cwd, self.more_folders(session))
    }

    pub fn set_archived(&mut self, session: &str, is_archived: bool) {
        match is_archived {
            true => _ = self.archived.insert(session.to_owned()),
            false => _ = self.archived.remove(session),
        }
    }

    pub fn is_archived(&self, session: &str) -> bool {
        self.archived.contains(session)
    }

    pub fn is_read(&self, session: &str) -> bool {
        !self.memory.unread.contains(session)
    }

    pub fn set_read(&mut self, session: &str, is_read: bool) {
        self.is_changed |= match is_read {
            true => self.memory.unread.remove(session),
            false => self.memory.unread.insert(session.to_owned()),
        };
        if self.memory.unread.len() > MAX_KEPT {
            self.memory.unread.pop_first();
        }
    }

    /// The status of a session that is not open.
    pub fn status(&self, session: &str) -> u32 {
        let flag = |is_so: bool, flag: SessionStatus| if is_so { flag.bits() } else { 0 };
        SessionStatus::Idle.bits()
            | flag(self.is_read(session), SessionStatus::IsRead)
            | flag(self.is_archived(session), SessionStatus::IsArchived)
    }

    pub fn more_folders(&self, session: &str) -> &[String] {
        self.memory.more_folders.get(session).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn set_more_folders(&mut self, session: &str, folders: &[String]) {
        if self.more_folders(session) == folders {
            return;
        }
        self.is_changed = true;
        match folders.is_empty() {
            true => _ = self.memory.more_folders.remove(session),
            false => _ = self.memory.more_folders.insert(session.to_owned(), folders.to_vec()),
        }
        if self.memory.more_folders.len() > MAX_KEPT {
            self.memory.more_folders.pop_first();
        }
    }

    pub fn note_version(&mut self, client: &str, is_older: bool) {
        if self.is_older_client(client) == is_older {
            return;
        }
        self.is_changed = true;
        self.memory.older_clients.retain(|it| it != client);
        if is_older && client.len() <= MAX_CLIENT_ID {
            self.memory.older_clients.push_back(client.to_owned());
        }
        if self.memory.older_clients.len() > MAX_CLIENTS {
            self.memory.older_clients.pop_front();
        }
    }

    pub fn is_older_client(&self, client: &str) -> bool {
        self.memory.older_clients.iter().any(|it| it == client)
    }

    /// A session that is no more.
    pub fn forget(&mut self, session: &str) {
        self.folders.remove(session);
        self.archived.remove(session);
        self.set_read(session, true);
        self.set_more_folders(session, &[]);
    }

    /// All folders that sessions work in.
    pub fn all_folders(&self) -> impl Iterator<Item = &String> {
        self.folders.values().chain(self.memory.more_folders.values().flatten())
    }

    /// The memory, if something changed.
    pub fn take_changed(&mut self) -> Option<Vec<u8>> {
        let is_changed = std::mem::take(&mut self.is_changed);
        is_changed.then(|| serde_json::to_vec(&self.memory).unwrap_or_default())
    }
}
