//! Flags of the agent itself, which every command takes that starts one.

use std::{ffi::OsString, path::PathBuf};

use clap::Args;

use super::{approval_mode::ApprovalMode, gemini_flags::GeminiAgentFlags, remote_args::RemoteArgs};
use castor_agent::settings::{self, Flag};
use castor_base::{limits::LimitKind, sandbox::SandboxLevel};

/// What the agent itself takes; `run` passes it through.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentArgs {
    /// The model to use; `demo` needs no key
    #[arg(short, long, value_name = "MODEL")]
    pub model: Option<String>,
    /// plan, default, auto_edit, auto, yolo
    #[arg(long, value_name = "MODE", value_enum, hide_possible_values = true)]
    pub approval_mode: Option<ApprovalMode>,
    /// What commands may write: workspace-write, read-only, off
    #[arg(short, long, value_name = "LEVEL", value_parser = clap::builder::PossibleValuesParser::new(SandboxLevel::NAMES), hide_possible_values = true)]
    pub sandbox: Option<String>,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub script: ScriptArgs,
    #[command(flatten)]
    pub gemini: GeminiAgentFlags,
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// For each prompt, or with `/session` behind the number for the whole session.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitArgs {
    /// Model calls at most
    #[arg(long, value_name = "N[/session]", value_parser = |it: &str| limit(LimitKind::Requests, it))]
    pub max_turns: Vec<String>,
    /// Tokens at most, in and out
    #[arg(long, value_name = "N[/session]", value_parser = |it: &str| limit(LimitKind::Tokens, it))]
    pub max_tokens: Vec<String>,
    /// US dollars at most
    #[arg(long, value_name = "N[/session]", value_parser = |it: &str| limit(LimitKind::Cost, it))]
    pub max_cost: Vec<String>,
    /// Seconds of work at most
    #[arg(long, value_name = "N[/session]", value_parser = |it: &str| limit(LimitKind::Time, it))]
    pub timeout: Vec<String>,
}

fn limit(what: LimitKind, text: &str) -> Result<String, String> {
    settings::limit_flag(what, text).map(|_| text.to_owned())
}

/// Scripted models and recordings, in Gemini CLI's format.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptArgs {
    /// Answer from this file instead of a model
    #[arg(long, value_name = "FILE", conflicts_with = "fake_responses_non_strict")]
    pub fake_responses: Option<PathBuf>,
    /// The same, by kind and not in strict order
    #[arg(long, value_name = "FILE", hide = true)]
    pub fake_responses_non_strict: Option<PathBuf>,
    /// Write the model's answers to this file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    #[arg(conflicts_with_all = ["fake_responses", "fake_responses_non_strict"])]
    pub record_responses: Option<PathBuf>,
}

impl AgentArgs {
    /// The mode, in either way to write it.
    pub fn mode(&self) -> Option<ApprovalMode> {
        if self.gemini.yolo { Some(ApprovalMode::Yolo) } else { self.approval_mode }
    }

    /// The flags that make `castor acp` parse to these arguments again.
    pub fn to_flags(&self) -> Vec<OsString> {
        let mut res = Vec::new();
        let mut push = |flag: &str, value: Option<OsString>| {
            if let Some(value) = value {
                // One word: a value may start with a dash.
                let mut word = OsString::from(flag);
                word.push("=");
                word.push(value);
                res.push(word);
            }
        };
        let script = &self.script;
        push("--model", self.model.as_deref().map(OsString::from));
        push("--approval-mode", self.mode().map(|it| it.mode().flag().into()));
        push("--sandbox", self.sandbox.as_deref().map(OsString::from));
        for (what, text) in self.limits.all() {
            push(what.flag(), Some(text.into()));
        }
        for (flag, text) in self.gemini.pairs() {
            push(flag, Some(text.into()));
        }
        push("--fake-responses", script.fake_responses.clone().map(OsString::from));
        push("--fake-responses-non-strict", script.fake_responses_non_strict.clone().map(OsString::from));
        push("--record-responses", script.record_responses.clone().map(OsString::from));
        res
    }
}

impl LimitArgs {
    fn all(&self) -> impl Iterator<Item = (LimitKind, &String)> {
        LimitKind::ALL.into_iter().flat_map(|what| {
            let given = match what {
                LimitKind::Requests => &self.max_turns,
                LimitKind::Tokens => &self.max_tokens,
                LimitKind::Time => &self.timeout,
                LimitKind::Cost => &self.max_cost,
            };
            given.iter().map(move |it| (what, it))
        })
    }

    /// As settings.
    pub fn flags(&self) -> Vec<Flag> {
        self.all().filter_map(|(what, text)| settings::limit_flag(what, text).ok()).collect()
    }
}

impl ScriptArgs {
    /// Whether a file answers instead of a model.
    pub fn is_fake(&self) -> bool {
        self.fake_responses.is_some() || self.fake_responses_non_strict.is_some()
    }
}
