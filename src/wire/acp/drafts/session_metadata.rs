//! ACP methods about sessions that need not be open: set_title, archive, unarchive and status; all are unstable.

use agent_client_protocol_schema::v1::{
    ArchiveSessionRequest, SessionInfoUpdate, SessionStatus, SessionStatusRequest, SessionStatusResponse,
    SetSessionTitleRequest, SetSessionTitleResponse, UnarchiveSessionRequest,
};
use serde_json::value::RawValue;

use crate::acp::session::session_id;
use castor_base::{ids::SessionId, shown_text::show_line, text};

/// Longest title, in characters; the rest is cut off.
const MAX_TITLE: usize = 200;

/// The title that a client gives a session.
pub struct TitleParams {
    pub session: SessionId,
    /// One line that is not empty.
    pub title: String,
}

/// A title as the client shows it; `None`: there is none any more.
pub(in crate::acp) fn title_info(title: Option<&str>) -> SessionInfoUpdate {
    SessionInfoUpdate::new().title(title.map(|it| show_line(it).into_owned()))
}

/// Reads session/set_title.
///
/// # Errors
/// See [`crate::acp::params`]; also for a title without a visible character.
pub fn read_set_title(params: Option<&RawValue>) -> Result<TitleParams, String> {
    let it: SetSessionTitleRequest = crate::acp::params(params)?;
    let words = text::strip_hidden(&it.title);
    let words: Vec<&str> = words.split(|it: char| it.is_whitespace() || it.is_control()).collect();
    let line = words.iter().filter(|it| !it.is_empty()).copied().collect::<Vec<_>>().join(" ");
    match line.is_empty() {
        true => Err("title is empty; send a line of text".to_owned()),
        false => Ok(TitleParams { session: session_id(&it.session_id), title: text::first_line(&line, MAX_TITLE) }),
    }
}

pub fn title_response(title: &str) -> SetSessionTitleResponse {
    SetSessionTitleResponse::new(title)
}

/// Reads session/archive.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_archive(params: Option<&RawValue>) -> Result<SessionId, String> {
    let it: ArchiveSessionRequest = crate::acp::params(params)?;
    Ok(session_id(&it.session_id))
}

/// Reads session/unarchive.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_unarchive(params: Option<&RawValue>) -> Result<SessionId, String> {
    let it: UnarchiveSessionRequest = crate::acp::params(params)?;
    Ok(session_id(&it.session_id))
}

/// Reads session/status.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_status(params: Option<&RawValue>) -> Result<SessionId, String> {
    let it: SessionStatusRequest = crate::acp::params(params)?;
    Ok(session_id(&it.session_id))
}

pub fn status_response(is_open: bool) -> SessionStatusResponse {
    SessionStatusResponse::new(if is_open { SessionStatus::Open } else { SessionStatus::Saved })
}
