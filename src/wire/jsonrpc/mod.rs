//! JSON-RPC 2.0, one message a line: framing, reading, writing and the two request queues. Knows no method.

pub mod error;
pub mod frame;
pub mod message;
pub mod queue;
pub mod write;

pub use frame::{Frame, Framer, MAX_LINE};
pub use message::{Bad, Message, RequestId, RpcError, parse};
pub use queue::{Incoming, Outgoing, Ticket};
