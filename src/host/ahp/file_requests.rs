//! Requests of clients about files of this machine, and watches of them: what is in the roots, by orders to the machine.

use std::collections::BTreeMap;

use ahp::ahp_types::{
    actions::{ResourceWatchChangedAction, StateAction},
    commands::{
        ContentEncoding, CreateResourceWatchParams, CreateResourceWatchResult, DirectoryEntry, ResourceListResult,
        ResourceReadResult, ResourceResolveResult, ResourceType, ResourceWriteMode, ResourceWriteParams,
    },
    errors::{ahp_error_codes as codes, json_rpc_error_codes as rpc},
    state::ResourceWatchState,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    AhpHost, AhpOutput,
    channel::Channel,
    client_requests::{ClientRefusal, HostCall, RequestOutcome},
    hub_requests::WaitingClient,
    machine::MachineOrder,
    messages::{file_uri, path_of},
    path_begin::PathBegin,
    time,
};
use castor_base::{
    path::AbsPath,
    root_files::{FileAct, FileAnswer, FileFacts, FileKind, FileOrder, FileTrouble, FileWrite, ScanFilter, WritePlace},
};

/// Begins the URIs of customizations that are no files.
const OWN_URI: &str = "castor-";
const MAX_WATCHES: usize = 64;
/// How long a watch waits for its first subscriber.
const UNWATCHED_MS: u64 = 60_000;

/// What an order about a file is for.
pub enum FileJob {
    Answer {
        asker: WaitingClient,
        wants_base64: bool,
    },
    /// A client asks whether it may; that a file is missing is no refusal.
    Grant(WaitingClient),
    /// A client types a path.
    Complete {
        asker: WaitingClient,
        begin: PathBegin,
    },
    /// The first scan answers the client that wants the watch.
    Scan {
        watch: String,
        asker: Option<WaitingClient>,
    },
}

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

impl AhpHost {
    pub(super) fn read_resource(&mut self, call: HostCall<'_>) -> RequestOutcome {
        match call.params["uri"].as_str().is_some_and(|it| it.starts_with("file:")) {
            true => self.ask_file(&call, FileAct::Read),
            false => self.read_content(call),
        }
    }

    pub(super) fn list_resource(&mut self, call: HostCall<'_>) -> RequestOutcome {
        self.ask_file(&call, FileAct::List)
    }

    pub(super) fn resolve_resource(&mut self, call: HostCall<'_>) -> RequestOutcome {
        if call.params["uri"].as_str().is_some_and(|it| it.starts_with(OWN_URI)) {
            return Err(ClientRefusal::new(codes::NOT_FOUND, "this is in no folder: castor has it of several places"));
        }
        let follows = call.params["followSymlinks"] != Value::Bool(false);
        self.ask_file(&call, FileAct::Resolve { follows })
    }

    pub(super) fn write_resource(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let params: ResourceWriteParams = call.read()?;
        let bytes = match params.encoding {
            ContentEncoding::Utf8 => params.data.into_bytes(),
            ContentEncoding::Base64 => {
                BASE64_STANDARD.decode(params.data).map_err(|_| ClientRefusal::params("data is no base64"))?
            }
        };
        let place = match params.mode {
            None | Some(ResourceWriteMode::Truncate) => WritePlace::Truncate,
            Some(ResourceWriteMode::Append) => WritePlace::Append,
            Some(ResourceWriteMode::Insert) => WritePlace::Insert,
        };
        let position = usize::try_from(params.position.unwrap_or_default());
        let position = position.map_err(|_| ClientRefusal::params("position is not negative"))?;
        let is_new = params.create_only == Some(true);
        self.ask_file(&call, FileAct::Write(FileWrite { bytes, place, position, is_new, etag: params.if_match }))
    }

    pub(super) fn make_resource_folder(&mut self, call: HostCall<'_>) -> RequestOutcome {
        self.ask_file(&call, FileAct::MakeFolder)
    }

    pub(super) fn delete_resource(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let recursive = call.params["recursive"] == Value::Bool(true);
        self.ask_file(&call, FileAct::Delete { recursive })
    }

    pub(super) fn move_resource(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let (to, replaces) = destination(&call)?;
        self.ask_file(&call, FileAct::Move { to, replaces })
    }

    pub(super) fn copy_resource(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let (to, replaces) = destination(&call)?;
        self.ask_file(&call, FileAct::Copy { to, replaces })
    }

    /// Access is a matter of the roots and the principal: nobody is asked.
    pub(super) fn request_resource(&mut self, call: HostCall<'_>) -> RequestOutcome {
        if call.params["write"] == Value::Bool(true) {
            self.check_writes()?;
        }
        let roots = self.roots(&FileAct::Read);
        let order = FileOrder { roots, path: path(&call)?, act: FileAct::Resolve { follows: true } };
        self.order_file(order, FileJob::Grant(call.asker()));
        Ok(())
    }

    fn ask_file(&mut self, call: &HostCall<'_>, act: FileAct) -> RequestOutcome {
        if !matches!(act, FileAct::Read | FileAct::List | FileAct::Resolve { .. }) {
            self.check_writes()?;
        }
        let wants_base64 = call.params["encoding"] == "base64";
        let order = FileOrder { roots: self.roots(&act), path: path(call)?, act };
        self.order_file(order, FileJob::Answer { asker: call.asker(), wants_base64 });
        Ok(())
    }

    /// The agents of other principals are held by a sandbox, and this host is not: it changes nothing for them.
    fn check_writes(&self) -> RequestOutcome {
        match self.settings.is_user {
            true => Ok(()),
            false => Err(ClientRefusal::new(codes::PERMISSION_DENIED, "only the user changes files; ask the agent")),
        }
    }

    /// Folders that an order may go to. The user chooses folders, and may look around for that.
    fn roots(&self, act: &FileAct) -> Vec<AbsPath> {
        let of_user = || self.catalog.all_folders().chain([&self.settings.folder]).filter_map(AbsPath::new).collect();
        match (self.settings.is_user, act) {
            (false, _) => self.settings.roots.iter().filter_map(AbsPath::new).collect(),
            (true, FileAct::List | FileAct::Resolve { .. }) => AbsPath::new("/").into_iter().collect(),
            (true, _) => of_user(),
        }
    }

    pub(super) fn order_file(&mut self, order: FileOrder, job: FileJob) {
        self.work.n_jobs += 1;
        self.work.jobs.insert(self.work.n_jobs, job);
        self.out.push(AhpOutput::Machine(MachineOrder::File { job: self.work.n_jobs, order }));
    }

    pub(super) fn take_file_outcome(&mut self, job: u64, outcome: Result<FileAnswer, FileTrouble>) {
        match (self.work.jobs.remove(&job), outcome) {
            (None, _) => (),
            (Some(FileJob::Answer { asker, wants_base64 }), Ok(it)) => self.answer(&asker, &result(it, wants_base64)),
            (Some(FileJob::Answer { asker, .. }), Err(it)) => self.refuse(&asker, &refusal(it)),
            (Some(FileJob::Complete { asker, begin }), outcome) => self.complete_path(&asker, &begin, outcome),
            (Some(FileJob::Grant(asker)), Ok(_) | Err(FileTrouble::Missing)) => self.answer(&asker, &json!({})),
            (Some(FileJob::Grant(asker)), Err(it)) => self.refuse(&asker, &refusal(it)),
            (Some(FileJob::Scan { watch, asker: Some(asker) }), Ok(FileAnswer::Scan(found))) => {
                let Some(it) = self.work.watches.get_mut(&watch) else { return };
                (it.known, it.is_scanning) = (found, false);
                self.answer(&asker, &CreateResourceWatchResult { channel: Channel::Watch(watch).uri() });
            }
            (Some(FileJob::Scan { watch, asker: Some(asker) }), outcome) => {
                self.work.watches.remove(&watch);
                self.refuse(&asker, &refusal(outcome.err().unwrap_or(FileTrouble::Missing)));
            }
            (Some(FileJob::Scan { watch, asker: None }), outcome) => self.compare_scan(&watch, outcome),
        }
    }

    pub(super) fn create_watch(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let params: CreateResourceWatchParams = call.read()?;
        if self.work.watches.len() >= MAX_WATCHES {
            return Err(ClientRefusal::new(rpc::INVALID_REQUEST, "too many watches are open"));
        }
        let recursive = params.recursive.unwrap_or_default();
        let patterns = |it: &Option<Value>| Vec::<String>::deserialize(it.as_ref()?.get("items")?).ok();
        let (includes, excludes) = (patterns(&params.includes), patterns(&params.excludes).unwrap_or_default());
        let act = FileAct::Scan(ScanFilter { recursive, includes, excludes });
        let order = FileOrder { roots: self.roots(&act), path: path(&call)?, act };
        self.work.n_watches += 1;
        let watch = format!("w{}", self.work.n_watches);
        let CreateResourceWatchParams { uri: root, excludes, includes, .. } = params;
        let state = ResourceWatchState { root, recursive, excludes, includes };
        let (known, since_ms) = (BTreeMap::new(), self.now_ms);
        let it =
            ResourceWatch { state, order: order.clone(), known, is_scanning: true, has_subscribers: false, since_ms };
        self.work.watches.insert(watch.clone(), it);
        self.order_file(order, FileJob::Scan { watch, asker: Some(call.asker()) });
        Ok(())
    }

    /// Watches look again; those that nobody follows end.
    pub(super) fn scan_watches(&mut self) {
        let now = self.now_ms;
        let clients = &self.clients;
        let mut due = Vec::new();
        self.work.watches.retain(|id, it| {
            let channel = Channel::Watch(id.clone());
            let is_followed = clients.values().any(|it| it.subscriptions.contains(&channel));
            let was_followed = std::mem::replace(&mut it.has_subscribers, is_followed);
            if is_followed && !std::mem::replace(&mut it.is_scanning, true) {
                due.push((id.clone(), it.order.clone()));
            }
            is_followed || !was_followed && now.saturating_sub(it.since_ms) < UNWATCHED_MS
        });
        for (watch, order) in due {
            self.order_file(order, FileJob::Scan { watch, asker: None });
        }
    }

    fn compare_scan(&mut self, watch: &str, outcome: Result<FileAnswer, FileTrouble>) {
        let Some(it) = self.work.watches.get_mut(watch) else { return };
        it.is_scanning = false;
        // A folder that cannot be read now may be back for the next look.
        let Ok(FileAnswer::Scan(found)) = outcome else { return };
        let before = std::mem::replace(&mut it.known, found);
        let change = |path: &str, kind: &str| json!({ "uri": file_uri(path), "type": kind });
        let mut items: Vec<Value> = Vec::new();
        for (path, version) in &it.known {
            match before.get(path) {
                None => items.push(change(path, "added")),
                Some(it) if it != version => items.push(change(path, "updated")),
                Some(_) => (),
            }
        }
        items.extend(before.keys().filter(|path| !it.known.contains_key(*path)).map(|it| change(it, "deleted")));
        if items.is_empty() {
            return;
        }
        let changes = json!({ "items": items });
        let action = StateAction::ResourceWatchChanged(ResourceWatchChangedAction { changes });
        self.send_action(Channel::Watch(watch.to_owned()), action, None);
    }
}

fn path(call: &HostCall<'_>) -> Result<AbsPath, ClientRefusal> {
    let name = if call.params.get("source").is_some() { "source" } else { "uri" };
    local_path(&call.text(name)?)
}

fn destination(call: &HostCall<'_>) -> Result<(AbsPath, bool), ClientRefusal> {
    Ok((local_path(&call.text("destination")?)?, call.params["failIfExists"] != Value::Bool(true)))
}

fn local_path(uri: &str) -> Result<AbsPath, ClientRefusal> {
    let path = path_of(uri).and_then(AbsPath::new);
    path.ok_or_else(|| ClientRefusal::params("a file: URI of this machine is wanted"))
}

fn result(answer: FileAnswer, wants_base64: bool) -> Value {
    match answer {
        FileAnswer::Bytes(bytes) => json!(content(bytes, wants_base64)),
        FileAnswer::Entries(all) => {
            let entry = |(name, kind)| {
                let is_folder = kind == FileKind::Folder;
                DirectoryEntry { name, r#type: if is_folder { "directory" } else { "file" }.to_owned() }
            };
            json!(ResourceListResult { entries: all.into_iter().map(entry).collect() })
        }
        FileAnswer::Facts(it) => json!(resolved(it)),
        FileAnswer::Done | FileAnswer::Scan(_) => json!({}),
    }
}

fn content(bytes: Vec<u8>, wants_base64: bool) -> ResourceReadResult {
    match String::from_utf8(bytes) {
        Ok(data) if !wants_base64 => {
            ResourceReadResult { data, encoding: ContentEncoding::Utf8, content_type: Some("text/plain".to_owned()) }
        }
        it => {
            let bytes = it.map_or_else(|it| it.into_bytes(), String::into_bytes);
            let data = BASE64_STANDARD.encode(bytes);
            ResourceReadResult { data, encoding: ContentEncoding::Base64, content_type: None }
        }
    }
}

fn resolved(it: FileFacts) -> ResourceResolveResult {
    ResourceResolveResult {
        uri: file_uri(&it.path.to_string()),
        r#type: match it.kind {
            FileKind::File => ResourceType::File,
            FileKind::Folder => ResourceType::Directory,
            FileKind::Link => ResourceType::Symlink,
        },
        size: i64::try_from(it.len).ok(),
        mtime: Some(time(it.modified_ms)),
        ctime: None,
        content_type: None,
        etag: Some(it.etag),
    }
}

fn refusal(it: FileTrouble) -> ClientRefusal {
    match it {
        FileTrouble::Missing => ClientRefusal::new(codes::NOT_FOUND, "there is no such file"),
        FileTrouble::Denied(why) => ClientRefusal::new(codes::PERMISSION_DENIED, why),
        FileTrouble::Exists => ClientRefusal::new(codes::ALREADY_EXISTS, "there is such a file"),
        FileTrouble::Conflict => ClientRefusal::new(codes::CONFLICT, "the file was changed meanwhile"),
        FileTrouble::Failed(why) => ClientRefusal::new(rpc::INVALID_REQUEST, why),
    }
}
