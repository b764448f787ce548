//! world acts: linear async leaves. Rooms use the hands (disk, process, http, secrets) and never each other.

pub mod http;
pub mod models;
pub mod process;
pub mod tools;
