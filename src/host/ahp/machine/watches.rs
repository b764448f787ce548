//! Watches of files and folders: each is scanned again and again while a client follows it.

use std::collections::BTreeMap;

use ahp::ahp_types::{
    actions::{ResourceWatchChangedAction, StateAction},
    commands::{CreateResourceWatchParams, CreateResourceWatchResult},
    errors::json_rpc_error_codes as rpc,
    state::{ResourceChange, ResourceChangeType, ResourceWatchState},
};
use serde::{Deserialize, Serialize};

use super::{
    HostMachine,
    files::{FileJob, Places, local_path, refusal},
};
use crate::ahp::sessions::messages::uri_of;
use crate::ahp::{Channel, ClientRefusal, Clients, RequestOutcome, WaitingClient};
use castor_base::root_files::{FileAct, FileAnswer, FileOrder, FileTrouble, ScanFilter};

const MAX_WATCHES: usize = 64;
/// Time that a watch waits for its first subscriber.
const UNWATCHED_MS: u64 = 60_000;

/// A folder or file that clients watch.
pub struct ResourceWatch {
    pub state: ResourceWatchState,
    order: FileOrder,
    /// Versions by path, as the last scan found them.
    known: BTreeMap<String, String>,
    is_scanning: bool,
    has_subscribers: bool,
    since_ms: u64,
}

/// A list as the protocol wraps it.
#[derive(Serialize, Deserialize)]
struct Items<T> {
    items: Vec<T>,
}

impl HostMachine {
    pub fn create_watch(
        &mut self,
        clients: &mut Clients,
        places: &Places<'_>,
        params: CreateResourceWatchParams,
        asker: WaitingClient,
    ) -> RequestOutcome {
        if self.watches.len() >= MAX_WATCHES {
            return Err(ClientRefusal::new(rpc::INVALID_REQUEST, "too many watches are open"));
        }
        let CreateResourceWatchParams { uri: root, recursive, excludes, includes, .. } = params;
        let recursive = recursive.unwrap_or_default();
        let state = ResourceWatchState { root, recursive, excludes, includes };
        let includes = state.includes.as_ref().and_then(|it| Items::deserialize(it).ok()).map(|it| it.items);
        let excludes = state.excludes.as_ref().and_then(|it| Items::deserialize(it).ok()).map(|it| it.items);
        let act = FileAct::Scan(ScanFilter { recursive, includes, excludes: excludes.unwrap_or_default() });
        let order = FileOrder { roots: places.roots(&act), path: local_path("uri", &state.root)?, act };
        self.n_watches += 1;
        let watch = format!("w{}", self.n_watches);
        let it = ResourceWatch {
            state,
            order: order.clone(),
            known: BTreeMap::new(),
            is_scanning: true,
            has_subscribers: false,
            since_ms: clients.now_ms,
        };
        self.watches.insert(watch.clone(), it);
        self.order_file(clients, order, FileJob::Scan { watch, asker: Some(asker) });
        Ok(())
    }

    /// The first scan is there: the watch begins, or cannot.
    pub fn begin_watch(
        &mut self,
        clients: &mut Clients,
        watch: String,
        asker: &WaitingClient,
        outcome: Result<FileAnswer, FileTrouble>,
    ) {
        let found = match outcome {
            Ok(FileAnswer::Scan(found)) => found,
            other => {
                self.watches.remove(&watch);
                return clients.refuse(asker, refusal(other.err().unwrap_or(FileTrouble::Missing)));
            }
        };
        let Some(it) = self.watches.get_mut(&watch) else { return };
        it.known = found;
        it.is_scanning = false;
        clients.answer(asker, &CreateResourceWatchResult { channel: Channel::Watch(watch).uri() });
    }

    /// Watches look again; those that nobody follows end.
    pub fn scan_watches(&mut self, clients: &mut Clients) {
        let mut due = Vec::new();
        self.watches.retain(|id, it| {
            let channel = Channel::Watch(id.clone());
            let is_followed = clients.follow(|it| *it == channel);
            let was_followed = std::mem::replace(&mut it.has_subscribers, is_followed);
            if is_followed && !std::mem::replace(&mut it.is_scanning, true) {
                due.push((id.clone(), it.order.clone()));
            }
            is_followed || !was_followed && clients.now_ms.saturating_sub(it.since_ms) < UNWATCHED_MS
        });
        for (watch, order) in due {
            self.order_file(clients, order, FileJob::Scan { watch, asker: None });
        }
    }

    pub fn compare_scan(&mut self, clients: &mut Clients, watch: &str, outcome: Result<FileAnswer, FileTrouble>) {
        let Some(it) = self.watches.get_mut(watch) else { return };
        it.is_scanning = false;
        // A folder that cannot be read now may be back for the next look.
        let Ok(FileAnswer::Scan(found)) = outcome else { return };
        let before = std::mem::replace(&mut it.known, found);
        let change = |path: &str, kind| ResourceChange { uri: uri_of(path), r#type: kind };
        let mut items = Vec::new();
        for (path, version) in &it.known {
            match before.get(path) {
                None => items.push(change(path, ResourceChangeType::Added)),
                Some(it) if it != version => items.push(change(path, ResourceChangeType::Updated)),
                Some(_) => (),
            }
        }
        let gone = before.keys().filter(|path| !it.known.contains_key(*path));
        items.extend(gone.map(|it| change(it, ResourceChangeType::Deleted)));
        if items.is_empty() {
            return;
        }
        let changes = serde_json::to_value(Items { items }).unwrap_or_default();
        let action = StateAction::ResourceWatchChanged(ResourceWatchChangedAction { changes });
        clients.send_action(Channel::Watch(watch.to_owned()), action, None);
    }
}
