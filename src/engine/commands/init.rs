//! `/init`: the model looks at the workspace and writes its memory file.

use crate::turn::{
    flow::{Flow, Station},
    state::TurnState,
};
use castor_base::content::{Part, PromptContent};

/// Approvals, the sandbox and plan mode hold for it as for any prompt.
const TASK: &str = "Write the memory file GEMINI.md at the top of this workspace, for somebody who works here for the \
first time.\n\n1. Look around first: the list of files, the README, the files that say how it is built and tested, and \
some of the source. About ten files are enough.\n2. If GEMINI.md is there already, keep what is still true of it and change \
what is not. If AGENTS.md or CLAUDE.md is there, do not repeat it: say in one line that it counts too.\n3. Say what the \
project is for, how it is laid out, which commands build, run and test it, and which rules its code follows. Name only \
commands that its files name.\n4. Leave out what you have not seen. Stay below 150 lines.\n5. Tell me in two sentences \
what you wrote.";

pub(super) fn begin(turn: &mut TurnState) -> Flow {
    TASK.clone_into(&mut turn.transcript.prompt_text);
    turn.transcript.unheard = Some(Box::new(PromptContent::from(vec![Part::text(TASK)])));
    Flow::Go(Station::FIRST)
}
