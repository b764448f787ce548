//! Redaction of streamed output: holds back what may be the start of a secret.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{Redactor, Secrets};

/// The output of one call.
pub struct Stream {
    secrets: Arc<Secrets>,
    /// As it is when the first piece comes.
    redactor: OnceLock<Arc<Redactor>>,
    held: Mutex<String>,
}

impl Stream {
    pub fn new(secrets: Arc<Secrets>) -> Self {
        Self { secrets, redactor: OnceLock::new(), held: Mutex::default() }
    }

    fn redactor(&self) -> &Redactor {
        self.redactor.get_or_init(|| self.secrets.current_redactor(false))
    }

    /// What can be shown by now.
    pub fn push(&self, text: String) -> String {
        if self.redactor().is_idle() {
            return text;
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let text = std::mem::take(&mut *held) + &text;
        let (shown, len) = self.redactor().redact_prefix(&text);
        text.get(len..).unwrap_or_default().clone_into(&mut held);
        shown
    }

    /// What was held back: it was no secret.
    pub fn end(&self) -> String {
        let rest = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        if rest.is_empty() { rest } else { self.redactor().redact(&rest, &[]).into_owned() }
    }
}

#[cfg(test)]
impl Stream {
    pub fn of(redactor: Arc<Redactor>) -> Self {
        let secrets = Arc::new(Secrets::new(Vec::new(), None, 0));
        Self { redactor: OnceLock::from(redactor), ..Self::new(secrets) }
    }
}
