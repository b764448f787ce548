//! Turns of slash commands that need the world first. The model is not asked, and sees nothing of them but of `/shell`.

use super::{
    agents, file_prompts, init, saved_memory, server_orders,
    server_prompt::{self, ServerPromptOrder},
    shell,
    undo::{self, UndoRequest},
};
use crate::turn::{Turn, TurnContext, flow::Flow, model::compressing, prompt::memory_reading, state::TurnState};
use castor_base::{content::Part, ids::PromptId, saved_memory::MemoryOrder, server_order::ServerOrder};

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
    /// Begins a turn for the command.
    pub fn start(self, cx: &mut TurnContext<'_, '_>, prompt: PromptId, typed: Vec<Part>) -> Turn {
        // The model learns of a line for the shell, as of a prompt.
        let joins_history = matches!(self, Self::Shell(_));
        Turn::begin_command(cx, prompt, (typed, joins_history), |turn, cx| self.begin(turn, cx))
    }

    fn begin(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
        match self {
            Self::Memory { whole } => memory_reading::show_memory(cx.step, whole),
            Self::SavedMemory(order) => saved_memory::begin(cx.step, order),
            Self::Init => init::begin(turn),
            Self::Agents(args) => agents::run(cx, &args),
            Self::FileCommands(args) => file_prompts::commands(cx, &args),
            Self::Skills(args) => file_prompts::skills(cx, &args),
            Self::Extensions(args) => file_prompts::extensions(cx, &args),
            Self::Undo(wish) => undo::begin_undo(cx, wish),
            Self::Server(order) => server_orders::begin(cx, order),
            Self::ServerPrompt(order) => server_prompt::begin(order, turn, cx),
            Self::Shell(command) => shell::begin(turn, cx, command),
            Self::Compress { keep } => compressing::compress_now(turn, cx, keep),
        }
    }
}
