//! Commands that the chat itself carries out.

use crate::cli::chat::lower::SlashCommand;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalCommand {
    Sessions,
    Options,
    Rewind,
    Keys,
    Vi,
    Quit,
}

const LOCAL: &[(&str, LocalCommand, &str)] = &[
    ("sessions", LocalCommand::Sessions, "open another session"),
    ("options", LocalCommand::Options, "choose the model, the mode and other options"),
    ("rewind", LocalCommand::Rewind, "go back to before a message"),
    ("keys", LocalCommand::Keys, "show the keys"),
    ("vi", LocalCommand::Vi, "switch the keys of vi on or off"),
    ("quit", LocalCommand::Quit, "leave the chat"),
];
/// Other names that people know.
const ALIASES: &[(&str, LocalCommand)] =
    &[("resume", LocalCommand::Sessions), ("exit", LocalCommand::Quit), ("vim", LocalCommand::Vi)];

impl LocalCommand {
    /// The command that a text is, if it stands alone. A command of the agent with this name comes first, but for a
    /// rewind: without its words it would only list.
    pub fn find(text: &str, agents: &[SlashCommand]) -> Option<Self> {
        let name = text.strip_prefix('/')?.trim_end();
        let names = LOCAL.iter().map(|it| (it.0, it.1)).chain(ALIASES.iter().copied());
        let (_, command) = names.into_iter().find(|it| it.0 == name)?;
        let is_agents = agents.iter().any(|it| it.name == name) && command != Self::Rewind;
        (!is_agents).then_some(command)
    }
}

/// The agent's commands, and those of the chat that it has not.
pub fn with_local(agents: &[SlashCommand]) -> Vec<SlashCommand> {
    let own = LOCAL.iter().filter(|own| !agents.iter().any(|it| it.name == own.0));
    let own = own.map(|(name, _, what)| SlashCommand {
        name: (*name).to_owned(),
        description: (*what).to_owned(),
        hint: None,
    });
    agents.iter().cloned().chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::{LocalCommand, SlashCommand, with_local};

    #[test]
    fn commands_of_the_agent_come_first() {
        let agents = [SlashCommand { name: "options".to_owned(), ..SlashCommand::default() }];
        assert_eq!(LocalCommand::find("/quit ", &agents), Some(LocalCommand::Quit));
        assert_eq!(LocalCommand::find("/resume", &agents), Some(LocalCommand::Sessions));
        assert_eq!(LocalCommand::find("/options", &agents), None);
        assert_eq!(LocalCommand::find("/rewind 3", &agents), None);
        assert_eq!(with_local(&agents).iter().filter(|it| it.name == "options").count(), 1);
    }
}
