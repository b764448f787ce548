//! Session import: exported sessions and transcripts of other programs become logs with stable ids.

mod convert;
mod transcript;

use std::io::Read as _;

use serde_json::Value;

use crate::sessions::{SessionStore, StoreError, io_error, read};
use castor_base::{
    ids::SessionId,
    log::{self, Entry, Fact, VERSION},
    path::AbsPath,
};

/// The word by which an export of castor's own is known.
pub const EXPORT_FORMAT: &str = "castor-session";

/// A conversation that can become a log.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedConversation {
    pub id: SessionId,
    pub entries: Vec<Entry>,
    /// Lines of the file that could not be read.
    pub n_bad: usize,
    /// The folder could not be told from the file: it is the one that was suggested.
    pub is_folder_guessed: bool,
}

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("neither a transcript of Gemini CLI nor a session of castor{0}")]
    Unknown(String),
    #[error("an export of castor, but {0}")]
    Damaged(String),
    #[error("a session of a newer castor (version {0}); this one knows {VERSION}")]
    Newer(u32),
    #[error("the transcript of a sub-agent, which is no conversation; import the session it worked for")]
    SubAgent,
    #[error("a transcript of Gemini CLI without messages: there is nothing to import")]
    Empty,
}

/// Where a conversation belongs that does not say it, and which model it goes on with.
#[derive(Clone, Copy, Debug)]
pub struct ImportDefaults<'a> {
    pub cwd: &'a AbsPath,
    pub model: &'a str,
}

/// What became of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportOutcome {
    New,
    /// The log is there already, with these facts and perhaps more.
    Exists,
    /// A log of this id is there that does not begin with these facts.
    Conflict,
}

/// Reads a file of one of the kinds that can be imported.
///
/// # Errors
/// Why it is none of them, in one line.
pub fn parse(bytes: &[u8], defaults: ImportDefaults<'_>) -> Result<ImportedConversation, ImportError> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let whole: Option<Value> = serde_json::from_slice(bytes).ok();
    if whole.as_ref().and_then(|it| it.get("format")).is_some_and(|it| it == EXPORT_FORMAT) {
        return parse_export(whole.unwrap_or_default());
    }
    let mut facts = Vec::new();
    // Its last line may have no end.
    let end = read::fold_lines(bytes.chain(&b"\n"[..]), |it| facts.push(it));
    if !facts.is_empty() {
        let n_bad = end.map_or(0, |it| it.damage.n);
        return Ok(ImportedConversation { n_bad, ..check_export(facts)? });
    }
    let transcript = match whole {
        Some(it) if it.get("messages").is_some() => transcript::parse_legacy(it)?,
        _ => transcript::parse_lines(bytes)?,
    };
    Ok(convert::convert(&transcript, defaults))
}

fn parse_export(mut value: Value) -> Result<ImportedConversation, ImportError> {
    let entries = value.get_mut("entries").map(Value::take).unwrap_or_default();
    check_export(serde_json::from_value(entries).map_err(|it| ImportError::Damaged(format!("damaged: {it}")))?)
}

fn check_export(mut entries: Vec<Entry>) -> Result<ImportedConversation, ImportError> {
    let newest = log::newest_version(&entries);
    if newest > VERSION {
        return Err(ImportError::Newer(newest));
    }
    let id = match entries.first_mut().map(|it| &mut it.fact) {
        Some(Fact::Created { session, version, .. }) if session.is_safe() => {
            // That of the log to write.
            *version = VERSION;
            session.clone()
        }
        _ => return Err(ImportError::Damaged("its first entry does not say what session it is".to_owned())),
    };
    Ok(ImportedConversation { id, entries, n_bad: 0, is_folder_guessed: false })
}

impl SessionStore {
    /// Makes a log of facts, unless it is there.
    ///
    /// # Errors
    /// When the disk does not take it: then nothing of it stays.
    pub fn import(&self, it: &ImportedConversation) -> Result<ImportOutcome, StoreError> {
        match self.read(&it.id) {
            Ok(known) => return Ok(compare(&known, &it.entries)),
            Err(StoreError::NotFound { .. }) => (),
            Err(other) => return Err(other),
        }
        let mut log = self.create(&it.id)?;
        let written = log.append(&it.entries).and_then(|()| log.sync());
        if let Err(why) = written {
            drop(log);
            // Half of a conversation would pass for all of it.
            _ = self.delete(&it.id);
            return Err(io_error(&it.id, why));
        }
        Ok(ImportOutcome::New)
    }
}

fn compare(known: &[Entry], imported: &[Entry]) -> ImportOutcome {
    // The first fact also says which castor wrote it, which may have been another one.
    let is_same = |(n, (a, b)): (usize, (&Entry, &Entry))| n == 0 || a == b;
    let same = known.len() >= imported.len() && known.iter().zip(imported).enumerate().all(is_same);
    if same { ImportOutcome::Exists } else { ImportOutcome::Conflict }
}

#[cfg(test)]
mod tests;
