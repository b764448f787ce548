//! What the editor does for us: the trait `Fs` over fs/read_text_file and fs/write_text_file.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{mpsc::Sender, oneshot};

use crate::{
    app::event::{EditorRequest, Event},
    base::{
        fs::{BoxFuture, Fs, FsError},
        ids::{EffectId, SessionId},
        path::AbsPath,
    },
    wire::jsonrpc::message::RpcError,
};

/// The client does not know the file, or does not do this at all: the disk answers instead.
const NOT_FOUND: i32 = -32002;
const METHOD_NOT_FOUND: i32 = -32601;

/// Files as the editor has them. Holds a sender only: the loop owns the requests.
pub struct EditorFs {
    pub session: SessionId,
    pub effect: EffectId,
    pub events: Sender<Event>,
    pub disk: Arc<dyn Fs>,
    /// Folders that the editor knows; other files are the disk's.
    pub roots: Vec<AbsPath>,
    pub reads: bool,
    pub writes: bool,
}

impl EditorFs {
    fn is_editors(&self, path: &AbsPath) -> bool {
        self.roots.iter().any(|it| path.is_within(it))
    }

    /// `None`: the loop or the client is gone.
    async fn ask(&self, method: &'static str, params: Value) -> Option<Result<Value, RpcError>> {
        let (reply, answer) = oneshot::channel();
        let (session, effect) = (self.session.clone(), self.effect);
        let request = EditorRequest { session, effect, method, params, reply };
        self.events.send(Event::Editor(request)).await.ok()?;
        answer.await.ok()
    }

    async fn read_buffer(&self, path: &AbsPath) -> Result<Vec<u8>, FsError> {
        let params = json!({ "sessionId": self.session, "path": path });
        match self.ask("fs/read_text_file", params).await {
            Some(Ok(result)) => match result.get("content").and_then(Value::as_str) {
                Some(text) => Ok(text.as_bytes().to_vec()),
                None => self.disk.read(path).await,
            },
            // Whatever keeps the editor from showing a file (binary, too large, outside its project): the disk has it.
            Some(Err(_)) => self.disk.read(path).await,
            None => Err(gone(path)),
        }
    }

    async fn write_buffer(&self, path: &AbsPath, bytes: Vec<u8>) -> Result<(), FsError> {
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(it) => return self.disk.write(path, it.into_bytes()).await,
        };
        let params = json!({ "sessionId": self.session, "path": path, "content": text });
        match self.ask("fs/write_text_file", params).await {
            Some(Ok(_)) => Ok(()),
            Some(Err(it)) if it.code == NOT_FOUND || it.code == METHOD_NOT_FOUND => {
                self.disk.write(path, text.into_bytes()).await
            }
            // Writing past an editor that refuses would make buffer and disk disagree.
            Some(Err(it)) => {
                let message = format!("the editor could not write the file: {}", it.message);
                Err(FsError::Other { path: path.clone(), message })
            }
            None => Err(gone(path)),
        }
    }
}

impl Fs for EditorFs {
    fn read<'a>(&'a self, path: &'a AbsPath) -> BoxFuture<'a, Result<Vec<u8>, FsError>> {
        match self.reads && self.is_editors(path) {
            true => Box::pin(self.read_buffer(path)),
            false => self.disk.read(path),
        }
    }

    fn write<'a>(&'a self, path: &'a AbsPath, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), FsError>> {
        match self.writes && self.is_editors(path) {
            true => Box::pin(self.write_buffer(path, bytes)),
            false => self.disk.write(path, bytes),
        }
    }
}

fn gone(path: &AbsPath) -> FsError {
    FsError::Other { path: path.clone(), message: "the editor is gone".to_owned() }
}
