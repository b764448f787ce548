//! ACP `available_commands_update`: what can be typed in a session.

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionNotification, SessionUpdate,
    UnstructuredCommandInput,
};

use super::{session::wire_id, updates::notification};
use crate::base::ids::SessionId;

/// Appends the complete list of commands: name, description, hint of what may follow.
pub fn commands<'a>(
    session: &SessionId,
    commands: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
    lines: &mut Vec<u8>,
) {
    let command = |(name, description, hint): (&str, &str, &str)| {
        let input = UnstructuredCommandInput::new(hint);
        let input = (!hint.is_empty()).then_some(AvailableCommandInput::Unstructured(input));
        AvailableCommand::new(name, description).input(input)
    };
    let update = AvailableCommandsUpdate::new(commands.map(command).collect());
    let update = SessionNotification::new(wire_id(session), SessionUpdate::AvailableCommandsUpdate(update));
    notification("session/update", &update, lines);
}
