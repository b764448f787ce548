//! The session's own part of its state: what its log says of it, without what other sessions share.

use castor_base::state::{DEFAULT_USER, StateDelta, StateMap, is_shared, is_temp};

/// A run keeps all that it changed, with what it took away: its changes go to the session above at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SessionState {
    /// `None`: the default one.
    pub user: Option<String>,
    pub is_run: bool,
    pub values: StateMap,
}

impl SessionState {
    pub fn user(&self) -> &str {
        self.user.as_deref().unwrap_or(DEFAULT_USER)
    }

    pub fn apply(&mut self, delta: &StateDelta) {
        match self.is_run {
            true => self.values.extend(delta.part(|it| !is_temp(it)).0),
            false => delta.part(|it| !is_temp(it) && !is_shared(it)).apply(&mut self.values),
        }
    }
}
