//! Notices of rights that confined programs lack, one for each line of configuration.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use super::sandbox::denial::recognise_denial;
use crate::base::sandbox::{Confinement, Denial};

/// What the user was told of rights that programs lack: one notice for each line of configuration. Cheap to clone: all of
/// a session hold the same.
#[derive(Clone, Debug, Default)]
pub struct LackNotices(Arc<Mutex<BTreeSet<String>>>);

impl LackNotices {
    /// Whether nothing was said of this line before. It is now.
    pub fn is_new(&self, line: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(line.to_owned())
    }

    /// What is to be said of a refusal, if nothing was said of this line before.
    pub fn in_words(&self, line: &str, denial: &Denial) -> Option<String> {
        let is_new = self.is_new(line);
        is_new.then(|| format!("{}.", with_key(denial)))
    }
}

/// What a confined program was denied, most likely, as far as it said so: for the user, with the key to set.
pub fn lack_in_words(confined: &Confinement, said: &str) -> Option<String> {
    let denial = recognise_denial(confined, confined.roots.first()?, "", None, said)?;
    // Of what else it said nobody knows whether the sandbox was the cause.
    (!matches!(denial, Denial::Other | Denial::Looks)).then(|| with_key(&denial))
}

fn with_key(denial: &Denial) -> String {
    let (why, key) = (denial.in_words(), denial.settings_key());
    format!("It runs in the sandbox of commands. {why} If it needs that, add {key} to it in your settings")
}
