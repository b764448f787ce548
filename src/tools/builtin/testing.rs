//! Test fixture of tools: a folder with files, and a tool context in it.
#![allow(clippy::disallowed_methods)]

use std::{fs, future::Future, sync::Arc};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::builtin::{Background, Builtin, CallKnowledge, Terminals, ToolContext, ToolSettings};
use castor_base::{content::joined_text, path::AbsPath, saved_memory::SavedMemory, tool::ToolOutput};
use castor_hands::disk::DiskFs;

/// A session's folder `work` with `outside` and `scratch` next to it.
pub struct ToolFixture {
    runtime: tokio::runtime::Runtime,
    _dir: tempfile::TempDir,
    pub cwd: AbsPath,
    pub settings: ToolSettings,
    pub cancel: CancellationToken,
}

impl ToolFixture {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cwd = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap().join("work");
        fs::create_dir_all(&cwd).unwrap();
        fs::create_dir_all(cwd.join("../scratch")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let saved_memory = Some(SavedMemory::new(&cwd.join("../home"), &cwd));
        let settings = ToolSettings { saved_memory, ..ToolSettings::default() };
        let cancel = CancellationToken::new();
        let res = Self { runtime, _dir: dir, cwd, settings, cancel };
        for (path, text) in files {
            res.write(path, text.as_bytes());
        }
        res
    }

    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.cwd.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.cwd.join(path)).unwrap()
    }

    pub fn link(&self, to: &str, at: &str) {
        std::os::unix::fs::symlink(self.cwd.join(to), self.cwd.join(at)).unwrap();
    }

    pub fn ctx(&self) -> ToolContext {
        ToolContext {
            cwd: self.cwd.clone(),
            roots: vec![self.cwd.clone()],
            scratch: self.cwd.join("../scratch"),
            known: CallKnowledge::default(),
            fs: Arc::new(DiskFs),
            cancel: self.cancel.clone(),
            progress: Arc::new(|_| Box::pin(async {})),
            background: Background::default(),
            settings: Arc::new(self.settings.clone()),
            env: Arc::new(Vec::new()),
            terminals: Terminals::default(),
            confined: None,
        }
    }

    /// A context in which policy has decided about what the call names now.
    pub fn decided_ctx(&self, tool: &dyn Builtin, args: &Value) -> ToolContext {
        let ctx = self.ctx();
        let places = self.block_on(tool.targets(args, &ctx)).unwrap().paths.into();
        ToolContext { known: CallKnowledge { decided_targets: places, ..CallKnowledge::default() }, ..ctx }
    }

    pub fn block_on<T>(&self, it: impl Future<Output = T>) -> T {
        self.runtime.block_on(it)
    }

    pub fn run(&self, tool: &dyn Builtin, args: &Value) -> ToolOutput {
        let ctx = self.ctx();
        self.block_on(tool.run(args, None, &ctx)).unwrap_or_else(ToolOutput::failed)
    }

    /// The text that the model gets, behind the kind of an error; the folder is shown as `$W`.
    pub fn result_text(&self, tool: &dyn Builtin, args: &Value) -> String {
        let output = self.run(tool, args);
        let text = match &output.error {
            Some(it) if output.content.is_empty() => format!("{}: {}", it.kind, it.message),
            Some(it) => format!("{}: {}", it.kind, joined_text(&output.content)),
            None => joined_text(&output.content),
        };
        text.replace(&self.cwd.to_string(), "$W")
    }

    pub fn title(&self, tool: &dyn Builtin, args: &Value) -> String {
        let ctx = self.ctx();
        self.block_on(tool.targets(args, &ctx)).map_or_else(|it| format!("{}: {}", it.kind, it.message), |it| it.title)
    }
}
