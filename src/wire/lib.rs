//! wire speaks: bytes to values and back, without I/O.

pub mod acp;
pub mod elicitation;
pub mod json_text;
pub mod jsonrpc;
pub mod sse;
