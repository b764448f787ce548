//! Memory files that an agent wrote: they do not count until a person looked at them.

use super::read_text;
use castor_base::path::AbsPath;
use castor_hands::provenance::Provenance;

/// What people looked at, as castor's home says.
#[derive(Default)]
pub(super) struct Looks(Option<Provenance>);

impl Looks {
    pub fn new(home: Option<AbsPath>) -> Self {
        Self(home.map(|home| Provenance::new(&home, &[])))
    }

    /// Tells whether a text that was just read may be an agent's. What cannot be known is.
    pub fn is_unseen(&self, real: &AbsPath, text: &str) -> bool {
        let Some(provenance) = &self.0 else { return false };
        // The answer is about the bytes of now, which may not be those that were read.
        provenance.first_unseen(real).map_or(true, |it| it.is_some()) || read_text(real).ok().as_deref() != Some(text)
    }
}

/// For the user.
pub(super) fn unseen_text(path: &AbsPath) -> String {
    format!(
        "castor does not read {path}: an agent wrote it, and you have not looked at it. To use it: castor looked {path}, \
         then /memory refresh."
    )
}
