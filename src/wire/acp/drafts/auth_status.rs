//! ACP `auth/status` and `auth/status_update`, which are unstable: whether sessions can begin, and with whose credentials.

use agent_client_protocol_schema::v1::{
    AuthAccount, AuthState, AuthStatusRequest, AuthStatusResponse, AuthStatusUpdateNotification,
};
use serde_json::value::RawValue;

use crate::acp::updates::notification;

/// Whether sessions can begin without a sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthStatus {
    pub state: SignIn,
    /// In the order in which they are told.
    pub accounts: Vec<Account>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignIn {
    Done,
    Missing,
    /// The model wants no credentials.
    NotRequired,
}

/// Credentials that are there. Nothing of their value is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The way to sign in, or the provider.
    pub label: String,
    /// New sessions use it.
    pub is_active: bool,
}

/// Reads auth/status.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_status(params: Option<&RawValue>) -> Result<(), String> {
    params.map_or(Ok(()), |it| crate::acp::params::<AuthStatusRequest>(Some(it)).map(|_| ()))
}

pub fn response(it: &AuthStatus) -> AuthStatusResponse {
    AuthStatusResponse::new(state(it)).accounts(accounts(it))
}

/// Appends what the client is told when it changed.
pub fn push_update(it: &AuthStatus, lines: &mut Vec<u8>) {
    let update = AuthStatusUpdateNotification::new(state(it)).accounts(accounts(it));
    notification("auth/status_update", &update, lines);
}

fn state(it: &AuthStatus) -> AuthState {
    match it.state {
        SignIn::Done => AuthState::Authenticated,
        SignIn::Missing => AuthState::Unauthenticated,
        SignIn::NotRequired => AuthState::NotRequired,
    }
}

fn accounts(it: &AuthStatus) -> Vec<AuthAccount> {
    it.accounts.iter().map(|it| AuthAccount::new(it.label.clone()).active(it.is_active)).collect()
}
