//! Events of a session for its clients: logs, windows and followers.

pub mod event_log;
pub mod event_window;
pub mod followers;
