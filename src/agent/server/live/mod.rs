//! Live sessions between requests: children, sleep, states, renewals, and followers.

pub(super) mod children;
pub(super) mod foreground;
pub(super) mod offered_commands;
pub(super) mod reconnect;
pub(super) mod renewals;
pub(super) mod session_state;
pub(super) mod sleep;
pub(super) mod watching;
