//! JSON-RPC 2.0, one message a line: framing, parsing, writing and the two request queues. It knows no method.

pub mod error;
pub mod frame;
pub mod message;
pub mod open_requests;
pub mod write;

pub use frame::{Frame, Framer, MAX_LINE};
pub use message::{InvalidMessage, Message, RequestId, RpcError, parse};
pub use open_requests::{IncomingRequests, OutgoingRequests, Ticket};
