//! ACP `available_commands_update`: what can be typed in a session.

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionNotification, SessionUpdate,
    UnstructuredCommandInput,
};

use super::{initialize::AcpVersion, session::wire_id, updates::notification, v2};
use castor_base::{ids::SessionId, shown_text::show_line};

/// A command's name, description, and hint of what may follow.
pub type CommandWords<'a> = (&'a str, &'a str, &'a str);

/// Appends the complete list of commands.
pub fn commands<'a>(
    session: &SessionId,
    version: AcpVersion,
    commands: impl Iterator<Item = CommandWords<'a>>,
    lines: &mut Vec<u8>,
) {
    let update = AvailableCommandsUpdate::new(wire_commands(commands));
    let update = SessionUpdate::AvailableCommandsUpdate(update);
    match version {
        AcpVersion::V1 => {
            notification("session/update", &SessionNotification::new(wire_id(session), update), lines);
        }
        AcpVersion::V2 => v2::updates::push(session, update, lines),
    }
}

pub(super) fn wire_commands<'a>(commands: impl Iterator<Item = CommandWords<'a>>) -> Vec<AvailableCommand> {
    let command = |(name, description, hint): CommandWords<'_>| {
        let input = UnstructuredCommandInput::new(show_line(hint));
        let input = (!hint.is_empty()).then_some(AvailableCommandInput::Unstructured(input));
        AvailableCommand::new(name, show_line(description)).input(input)
    };
    commands.map(command).collect()
}
