//! Draft of workspace trust (RFD workspace-trust): the state in answers that open a session, and `trust/apply`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use castor_base::{ids::SessionId, path::AbsPath};

/// Most paths that are told.
const MAX_PATHS: usize = 1024;

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
#[schemars(rename = "TrustApply")]
pub(in crate::acp) struct ApplyMethod {
    params: Option<ApplyParams>,
    result: Option<Applied>,
}

/// A decision of the user about a folder.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "TrustApplyParams")]
pub struct ApplyParams {
    /// Absolute.
    #[schemars(with = "String")]
    pub cwd: PathBuf,
    pub decision: TrustDecision,
    /// The open session that goes on with it.
    pub session_id: Option<SessionId>,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrustDecision {
    /// castor offers it nowhere: a yes is about the files of the folder that the user was shown.
    TrustRepo,
    TrustCwd,
    /// Until the session is closed; nothing is saved.
    TrustSession,
    Decline,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TrustApplied")]
pub struct Applied {
    pub workspace_trust: TrustState,
}

/// Whether what a folder brings may count.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrustState {
    pub status: TrustStatus,
    /// Where there is something to decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<TrustDetails>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrustStatus {
    Trusted,
    Session,
    Untrusted,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustDetails {
    cwd: AbsPath,
    /// Files that do not count; the first 1024.
    ignored_paths: Vec<AbsPath>,
    available_decisions: Vec<TrustDecision>,
}

impl TrustState {
    pub fn new(status: TrustStatus) -> Self {
        Self { status, details: None }
    }

    /// With something to decide about. `has_session`: for as long as a session, too.
    #[must_use]
    pub fn with_details(self, cwd: AbsPath, mut ignored_paths: Vec<AbsPath>, has_session: bool) -> Self {
        ignored_paths.truncate(MAX_PATHS);
        let all = [TrustDecision::TrustCwd, TrustDecision::TrustSession, TrustDecision::Decline];
        let available = all.into_iter().filter(|it| has_session || *it != TrustDecision::TrustSession);
        let details = TrustDetails { cwd, ignored_paths, available_decisions: available.collect() };
        Self { details: Some(details), ..self }
    }
}

/// Reads trust/apply: the folder beside the rest.
///
/// # Errors
/// See [`crate::acp::params`]; also for a folder that is not absolute.
pub fn read_apply(params: Option<&RawValue>) -> Result<(ApplyParams, AbsPath), String> {
    let it: ApplyParams = crate::acp::params(params)?;
    let cwd = AbsPath::from_text(&it.cwd.to_string_lossy())
        .ok_or_else(|| format!("cwd must be an absolute path, not {:?}.", it.cwd.display()))?;
    Ok((it, cwd))
}
