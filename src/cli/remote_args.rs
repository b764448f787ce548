//! Flags about another castor in this one's place, and about what an agent may do for others.

use std::path::PathBuf;

use clap::Args;

use super::approval_mode::ApprovalMode;
use castor_agent::settings::options::SessionRights;
use castor_base::path::AbsPath;

/// Another castor in this one's place, and what an agent is held to that serves somebody else.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteArgs {
    /// Use the `castor serve` there; its token is in CASTOR_TOKEN
    #[arg(long, value_name = "URL", conflicts_with_all = ["fake_responses", "fake_responses_non_strict", "record_responses"])]
    pub connect: Option<String>,
    /// Sessions have no other modes than these
    #[arg(long, value_name = "MODE", value_enum, hide = true)]
    pub only_mode: Vec<ApprovalMode>,
    /// Sessions have no other models than these
    #[arg(long, value_name = "MODEL", hide = true)]
    pub only_model: Vec<String>,
    /// Sessions work in no other folders than these
    #[arg(long, value_name = "DIR", hide = true)]
    pub only_root: Vec<PathBuf>,
}

impl RemoteArgs {
    /// The command line of an agent that is a bridge to the server.
    pub fn bridge(&self) -> Option<String> {
        let program = std::env::current_exe().ok()?;
        let quoted = |it: &str| format!("\"{}\"", it.replace('\\', "\\\\").replace('"', "\\\""));
        let url = self.connect.as_ref()?;
        Some(format!("{} acp {}", quoted(program.to_str()?), quoted(&format!("--connect={url}"))))
    }

    pub fn rights(&self) -> SessionRights {
        SessionRights {
            modes: self.only_mode.iter().map(|it| it.mode()).collect(),
            models: self.only_model.clone(),
            roots: self.only_root.iter().filter_map(AbsPath::new).collect(),
        }
    }
}
