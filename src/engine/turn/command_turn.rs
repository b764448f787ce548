//! Turns of slash commands that need the world first. The model is not asked, and sees nothing of them but of `/shell`.

use super::{
    agents_command, compressing,
    flow::Flow,
    init_command, memory_changing, memory_reading, prompts_command, server_orders,
    server_prompt::{self, ServerPromptOrder},
    shell_command,
    spec::TurnContext,
    state::TurnState,
    undo::{self, UndoRequest},
};
use crate::base::{saved_memory::MemoryOrder, server_order::ServerOrder};

/// What the turn is for.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandTurn {
    /// The memory files, as they are now; whole, or only named.
    Memory {
        whole: bool,
    },
    /// What is kept for later sessions changes, or what waits for it is shown.
    SavedMemory(MemoryOrder),
    /// The conversation is compressed; what is to be kept above all.
    Compress {
        keep: String,
    },
    /// The model writes the workspace's memory file.
    Init,
    /// The agents: what is typed behind the command.
    Agents(String),
    /// The commands of files, and the skills: what is typed behind the command.
    FileCommands(String),
    Skills(String),
    /// The extensions: what is typed behind the command.
    Extensions(String),
    /// Files are taken back, or only compared.
    Undo(UndoRequest),
    /// What an MCP server makes of it is the prompt.
    ServerPrompt(ServerPromptOrder),
    /// An MCP server is switched, or logged in at.
    Server(ServerOrder),
    /// A line for the shell, which the model learns of.
    Shell(String),
}

impl CommandTurn {
    /// Whether what was typed is part of the conversation, as a prompt is.
    pub(super) fn joins_history(&self) -> bool {
        matches!(self, Self::Shell(_))
    }

    pub(super) fn begin(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
        match self {
            Self::Memory { whole } => memory_reading::show_memory(cx.step, whole),
            Self::SavedMemory(order) => memory_changing::begin(cx.step, order),
            Self::Init => init_command::begin(turn),
            Self::Agents(args) => agents_command::run(cx, &args),
            Self::FileCommands(args) => prompts_command::commands(cx, &args),
            Self::Skills(args) => prompts_command::skills(cx, &args),
            Self::Extensions(args) => prompts_command::extensions(cx, &args),
            Self::Undo(wish) => undo::begin_undo(cx, wish),
            Self::Server(order) => server_orders::begin(cx, order),
            Self::ServerPrompt(order) => server_prompt::begin(order, turn, cx),
            Self::Shell(command) => shell_command::begin(turn, cx, command),
            Self::Compress { keep } => compressing::compress_now(turn, cx, keep),
        }
    }
}
