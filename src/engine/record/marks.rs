//! Marks in events that say what they are for: members of `_meta`, and kinds of custom events.

/// In `_meta` of messages that belong to a slash command, and of calls that are a question of castor's own.
pub const COMMAND_META: &str = "command";

/// In `_meta` of the start of a stream that goes on with another one's prompt.
pub const TRANSFER_META: &str = "transfer";

/// In `_meta` of what the user said while a turn ran.
pub const STEERING_META: &str = "steering";

/// In `_meta` of castor's own words to the model: the places of the parts that quote somebody else.
pub const QUOTES_META: &str = "quotes";

/// The kind of the custom event that carries the plan.
pub const PLAN_EVENT: &str = "plan";
