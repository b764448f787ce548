//! tools act for an agent: those that castor brings, MCP servers, hooks and checkers; and a workspace's own files.

pub mod builtin;
pub mod checkers;
pub mod hooks;
pub mod mcp;
pub mod redaction;
pub mod workspace;
