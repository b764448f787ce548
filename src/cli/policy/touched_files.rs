//! Targets of a call in `castor policy check`, resolved by the tool itself as in a session.

use std::{io, sync::Arc};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::checked_call::CheckedCall;
use castor_base::{
    path::AbsPath,
    sandbox::ProtectedPaths,
    tool::{Access, TargetPath, Targets, ToolKind},
};
use castor_hands::{
    disk::{self, DiskFs},
    process::Groups,
    secrets::Env,
};
use castor_tools::builtin::{self as tools, Background, CallKnowledge, Terminals, ToolContext};

/// The targets, and what the tool has against the arguments: then they are guessed.
pub fn targets(
    asked: &CheckedCall,
    (cwd, env): (&AbsPath, &Env),
    roots: &[AbsPath],
    held: ProtectedPaths,
) -> io::Result<(Targets, Option<String>)> {
    let guessed = || guess(&asked.args, asked.kind, cwd, roots);
    let own = tools::builtins(Groups::default()).into_iter().find(|it| it.spec().name == asked.tool);
    let Some(tool) = own.filter(|_| asked.server.is_none()) else { return Ok((guessed(), None)) };
    let ctx = context(cwd, roots, env, CallKnowledge { protected: Arc::new(held), ..CallKnowledge::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(match runtime.block_on(tool.targets(&asked.args, &ctx)) {
        Ok(it) => (it, None),
        Err(error) => (guessed(), Some(error.message.to_string())),
    })
}

/// For looking at places only: nothing is run, written or told.
fn context(cwd: &AbsPath, roots: &[AbsPath], env: &Env, known: CallKnowledge) -> ToolContext {
    let named = |it: &str| env.get(it).map(|value| (it.to_owned(), value.to_owned()));
    let env_of_children = ["HOME", "PATH"].into_iter().filter_map(named).collect();
    ToolContext {
        cwd: cwd.clone(),
        roots: roots.to_vec(),
        scratch: cwd.clone(),
        known,
        fs: Arc::new(DiskFs),
        cancel: CancellationToken::new(),
        progress: Arc::new(|_| Box::pin(async {})),
        background: Background::default(),
        settings: Arc::default(),
        env: Arc::new(env_of_children),
        terminals: Terminals::default(),
        confined: None,
    }
}

/// As far as the arguments say.
fn guess(args: &Value, kind: ToolKind, cwd: &AbsPath, roots: &[AbsPath]) -> Targets {
    let names = ["file_path", "dir_path", "path"];
    let said = names.iter().filter_map(|it| args.get(it).and_then(Value::as_str));
    let access = if kind == ToolKind::Edit { Access::Write } else { Access::Read };
    let paths = said.map(|it| {
        let path = cwd.join(it);
        let real = disk::real_path(&path).unwrap_or_else(|_| path.clone());
        let in_roots = roots.iter().any(|it| real.is_within(it));
        TargetPath { real, in_roots, ..TargetPath::in_root(path, access) }
    });
    let command = args.get("command").and_then(Value::as_str).filter(|_| kind == ToolKind::Execute);
    Targets { paths: paths.collect(), command: command.map(str::to_owned), ..Targets::default() }
}
