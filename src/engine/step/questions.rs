//! Questions to the user: their topics, as the engine puts them and the client is shown them.

use std::sync::Arc;

use serde_json::Value;

use castor_base::{
    credential::Credential,
    event::Location,
    ids::{CallId, QuestionId},
    question::Form,
    tool::{Display, FileDiff, ToolKind},
};

/// A question to the user. Answered once, or withdrawn.
#[derive(Clone, Debug, PartialEq)]
pub struct UserQuestion {
    pub id: QuestionId,
    pub about: QuestionTopic,
}

#[derive(Clone, Debug, PartialEq)]
pub enum QuestionTopic {
    Confirmation(Confirmation),
    /// Is the folder trusted? A form whose options are [`TrustChoice`](castor_base::trust::TrustChoice)s.
    Trust {
        call: CallId,
        form: Arc<Form>,
        /// Instructions for the model that an agent wrote, or that changed since they were trusted.
        diffs: Arc<[FileDiff]>,
    },
    /// How to continue without this model? A form whose options are [`Intent`](castor_base::fallback::Intent)s.
    Fallback {
        call: CallId,
        form: Arc<Form>,
    },
    /// Fields to fill in, for a call or for the session.
    Form {
        call: Option<CallId>,
        form: Arc<Form>,
    },
    /// A page to visit, for what must not go through a form. The id names it until it is completed.
    Link {
        call: Option<CallId>,
        message: String,
        url: String,
        elicitation: String,
    },
    /// A credential was refused: a page to visit, or a command for a terminal. It is never typed in here.
    Credential {
        call: CallId,
        credential: Box<Credential>,
        message: String,
    },
}

/// What a trust question shows.
#[derive(Clone, Debug)]
pub struct TrustForm {
    pub form: Arc<Form>,
    pub diffs: Arc<[FileDiff]>,
}

impl QuestionTopic {
    /// The call that it is about.
    pub fn call(&self) -> Option<&CallId> {
        match self {
            Self::Confirmation(it) => Some(&it.call),
            Self::Trust { call, .. } | Self::Fallback { call, .. } | Self::Credential { call, .. } => Some(call),
            Self::Form { call, .. } | Self::Link { call, .. } => call.as_ref(),
        }
    }
}

/// May this call run?
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmation {
    pub call: CallId,
    /// By its name.
    pub tool: Box<str>,
    pub title: String,
    pub kind: ToolKind,
    pub args: Value,
    pub locations: Vec<Location>,
    /// What it would do.
    pub display: Option<Display>,
    /// Why it is asked, where that is more than the rules' default.
    pub reason: Option<String>,
    /// What "for this session" would allow, in words; `None`: not on offer.
    pub session_grant: Option<String>,
    /// The same for ever.
    pub persistent_grant: Option<String>,
    /// The mode `auto` is a choice.
    pub offers_auto: bool,
    /// A yes may have other arguments.
    pub is_editable: bool,
}
