//! Runs safety checkers, castor's own and the user's programs. Every failure is an error, which denies the call.

mod allowed_path;
mod external;

use std::io;

use serde_json::Value;
use tokio::task::JoinError;

use castor_base::{
    check::{Check, CheckFinding, CheckerAction},
    path::AbsPath,
    sandbox::Confinement,
};
use castor_hands::process::Groups;

/// Why a checker said nothing that counts: each denies.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error("there is no home folder to look for it")]
    NoHome,
    #[error("it could not be started: {0}")]
    Start(#[from] io::Error),
    /// The agent could change what judges it.
    #[error("{0} lies in the workspace, where the agent could change it")]
    Refused(AbsPath),
    #[error("it {0}")]
    Ended(String),
    #[error("its answer could not be read: {0}")]
    Unreadable(io::Error),
    /// What it said is no verdict.
    #[error("{0}")]
    BadAnswer(String),
    #[error(transparent)]
    Thread(#[from] JoinError),
}

/// Where the calls happen that are looked at.
#[derive(Clone, Debug)]
pub struct CheckSite {
    pub cwd: AbsPath,
    /// Canonical.
    pub roots: Vec<AbsPath>,
    /// Variables of children, already filtered.
    pub env: Vec<(String, String)>,
    /// What commands may do; a checker writes nothing in the workspace even where they may.
    pub confined: Option<Confinement>,
}

impl CheckSite {
    fn home(&self) -> Option<AbsPath> {
        self.env.iter().rev().find(|(name, _)| name == "HOME").and_then(|(_, it)| AbsPath::new(it))
    }
}

/// What the checker says of the call. Takes as long as it likes: dropping the future ends a program with its children.
///
/// # Errors
/// Why nothing was said, or nothing that can be understood.
pub async fn ask(check: Check, site: CheckSite, groups: &Groups) -> Result<CheckFinding, CheckError> {
    match &check.checker.action {
        CheckerAction::AllowedPath => {
            let judge = move || allowed_path::judge(&check.call.args, &check.checker.config, &site);
            Ok(tokio::task::spawn_blocking(judge).await?)
        }
        CheckerAction::External { program, args, .. } => external::ask(&check, program, args, &site, groups).await,
    }
}

/// The texts of a list in a checker's own settings.
fn texts<'a>(config: &'a Value, key: &str) -> Vec<&'a str> {
    config.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}
