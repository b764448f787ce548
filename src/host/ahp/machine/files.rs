//! Requests of clients about files of this machine: what is in the roots, by orders to the server.

use ahp::ahp_types::{
    commands::{
        CompletionsResult, ContentEncoding, DirectoryEntry, ResourceListResult, ResourceReadResult,
        ResourceResolveResult, ResourceType, ResourceWriteMode, ResourceWriteParams,
    },
    errors::{ahp_error_codes as codes, json_rpc_error_codes as rpc},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use super::{HostMachine, orders::MachineOrder, path_begin::PathBegin};
use crate::ahp::sessions::{
    acts::time,
    catalog::SessionCatalog,
    messages::{path_of, uri_of},
};
use crate::ahp::{ClientRefusal, Clients, HostSettings, RequestOutcome, WaitingClient};
use castor_base::{
    path::AbsPath,
    root_files::{FileAct, FileAnswer, FileFacts, FileKind, FileOrder, FileTrouble, FileWrite, WritePlace},
};

/// Begins the URIs of customizations that are no files.
const OWN_URI: &str = "castor-";

/// A kind of request about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRequest {
    Read,
    List,
    Resolve,
    Write,
    MakeFolder,
    Delete,
    Move,
    Copy,
    /// A client asks for access, which is a matter of the roots and the principal alone.
    Grant,
}

const REQUESTS: &[(&str, FileRequest)] = &[
    ("resourceRead", FileRequest::Read),
    ("resourceList", FileRequest::List),
    ("resourceResolve", FileRequest::Resolve),
    ("resourceWrite", FileRequest::Write),
    ("resourceMkdir", FileRequest::MakeFolder),
    ("resourceDelete", FileRequest::Delete),
    ("resourceMove", FileRequest::Move),
    ("resourceCopy", FileRequest::Copy),
    ("resourceRequest", FileRequest::Grant),
];

/// The request of a method; `None`: the method is about no file.
pub fn request(method: &str) -> Option<FileRequest> {
    REQUESTS.iter().find(|it| it.0 == method).map(|it| it.1)
}

/// Params of all of them; each may be missing.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceParams {
    pub uri: String,
    source: String,
    destination: String,
    encoding: String,
    follow_symlinks: Option<bool>,
    recursive: bool,
    fail_if_exists: bool,
    write: bool,
}

impl FileRequest {
    /// The act that is wanted; a write has params of its own.
    pub fn act(self, params: &ResourceParams) -> Result<FileAct, ClientRefusal> {
        let replaces = !params.fail_if_exists;
        Ok(match self {
            Self::Read | Self::Write => FileAct::Read,
            Self::List => FileAct::List,
            Self::Resolve if params.uri.starts_with(OWN_URI) => {
                let why = "this is in no folder: castor has it of several places";
                return Err(ClientRefusal::new(codes::NOT_FOUND, why));
            }
            Self::Resolve => FileAct::Resolve { follows: params.follow_symlinks != Some(false) },
            Self::MakeFolder => FileAct::MakeFolder,
            Self::Delete => FileAct::Delete { recursive: params.recursive },
            Self::Move => FileAct::Move { to: local_path("destination", &params.destination)?, replaces },
            Self::Copy => FileAct::Copy { to: local_path("destination", &params.destination)?, replaces },
            Self::Grant => FileAct::Resolve { follows: true },
        })
    }

    /// What the order's outcome is for.
    pub fn job(self, params: &ResourceParams, asker: WaitingClient) -> FileJob {
        match self {
            Self::Grant => FileJob::Grant(asker),
            _ => FileJob::Answer { asker, wants_base64: params.encoding == "base64" },
        }
    }
}

/// The act of a write.
///
/// # Errors
/// What of the params cannot be.
pub fn write_act(params: ResourceWriteParams) -> Result<FileAct, ClientRefusal> {
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
    Ok(FileAct::Write(FileWrite { bytes, place, position, is_new, etag: params.if_match }))
}

/// The places of files that a principal may reach.
pub struct Places<'h> {
    pub settings: &'h HostSettings,
    pub catalog: &'h SessionCatalog,
}

impl Places<'_> {
    pub fn order(&self, kind: FileRequest, params: &ResourceParams, act: FileAct) -> Result<FileOrder, ClientRefusal> {
        let (changes, roots) = match kind {
            FileRequest::Grant => (params.write, self.roots(&FileAct::Read)),
            _ => (!matches!(act, FileAct::Read | FileAct::List | FileAct::Resolve { .. }), self.roots(&act)),
        };
        if changes {
            self.check_writes()?;
        }
        let path = match params.source.as_str() {
            "" => local_path("uri", &params.uri)?,
            source => local_path("source", source)?,
        };
        Ok(FileOrder { roots, path, act })
    }

    /// The agents of other principals are held by a sandbox, and this host is not: so they change nothing here.
    fn check_writes(&self) -> RequestOutcome {
        match self.settings.is_user {
            true => Ok(()),
            false => Err(ClientRefusal::new(codes::PERMISSION_DENIED, "only the user changes files; ask the agent")),
        }
    }

    /// Folders that an order may go to. The user chooses folders, and may look around for that.
    pub fn roots(&self, act: &FileAct) -> Vec<AbsPath> {
        match (self.settings.is_user, act) {
            (false, _) => self.settings.roots.iter().filter_map(AbsPath::new).collect(),
            (true, FileAct::List | FileAct::Resolve { .. }) => AbsPath::new("/").into_iter().collect(),
            (true, _) => self.catalog.all_folders().chain([&self.settings.folder]).filter_map(AbsPath::new).collect(),
        }
    }
}

/// The purpose of an order about a file.
pub enum FileJob {
    Answer {
        asker: WaitingClient,
        wants_base64: bool,
    },
    /// A client asks for access; that a file is missing is no refusal.
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

/// The answer to a request about a file.
#[derive(Serialize)]
#[serde(untagged)]
enum FileResult {
    Read(ResourceReadResult),
    List(ResourceListResult),
    Facts(ResourceResolveResult),
    Done {},
}

impl HostMachine {
    pub fn order_file(&mut self, clients: &mut Clients, order: FileOrder, job: FileJob) {
        self.n_jobs += 1;
        self.jobs.insert(self.n_jobs, job);
        clients.order(MachineOrder::File { job: self.n_jobs, order });
    }

    pub fn take_file_outcome(&mut self, clients: &mut Clients, job: u64, outcome: Result<FileAnswer, FileTrouble>) {
        match self.jobs.remove(&job) {
            None => (),
            Some(FileJob::Answer { asker, wants_base64 }) => {
                let outcome = outcome.map(|it| result(it, wants_base64)).map_err(refusal);
                clients.settle_client(&asker, outcome);
            }
            Some(FileJob::Complete { asker, begin }) => {
                // A folder that cannot be listed has nothing to complete.
                let entries = if let Ok(FileAnswer::Entries(it)) = outcome { it } else { Vec::new() };
                clients.answer(&asker, &CompletionsResult { items: begin.items(&entries) });
            }
            Some(FileJob::Grant(asker)) => {
                let outcome = match outcome {
                    Ok(_) | Err(FileTrouble::Missing) => Ok(FileResult::Done {}),
                    Err(it) => Err(refusal(it)),
                };
                clients.settle_client(&asker, outcome);
            }
            Some(FileJob::Scan { watch, asker: Some(asker) }) => self.begin_watch(clients, watch, &asker, outcome),
            Some(FileJob::Scan { watch, asker: None }) => self.compare_scan(clients, &watch, outcome),
        }
    }
}

/// A path that has to be there, of a `file:` URI.
pub fn local_path(name: &str, uri: &str) -> Result<AbsPath, ClientRefusal> {
    if uri.is_empty() {
        return Err(ClientRefusal::missing(name));
    }
    let path = path_of(uri).and_then(AbsPath::new);
    path.ok_or_else(|| ClientRefusal::params("a file: URI of this machine is wanted"))
}

fn result(answer: FileAnswer, wants_base64: bool) -> FileResult {
    match answer {
        FileAnswer::Bytes(bytes) => FileResult::Read(content(bytes, wants_base64)),
        FileAnswer::Entries(all) => {
            let entry = |(name, kind)| {
                let is_folder = kind == FileKind::Folder;
                DirectoryEntry { name, r#type: if is_folder { "directory" } else { "file" }.to_owned() }
            };
            FileResult::List(ResourceListResult { entries: all.into_iter().map(entry).collect() })
        }
        FileAnswer::Facts(it) => FileResult::Facts(resolved(it)),
        FileAnswer::Done | FileAnswer::Scan(_) => FileResult::Done {},
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
        uri: uri_of(&it.path.to_string()),
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

pub fn refusal(it: FileTrouble) -> ClientRefusal {
    match it {
        FileTrouble::Missing => ClientRefusal::new(codes::NOT_FOUND, "there is no such file"),
        FileTrouble::Denied(why) => ClientRefusal::new(codes::PERMISSION_DENIED, why),
        FileTrouble::Exists => ClientRefusal::new(codes::ALREADY_EXISTS, "there is such a file"),
        FileTrouble::Conflict => ClientRefusal::new(codes::CONFLICT, "the file was changed meanwhile"),
        FileTrouble::Failed(why) => ClientRefusal::new(rpc::INVALID_REQUEST, why),
    }
}
