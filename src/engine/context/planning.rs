//! Plan mode instructions for the model. They come last, so that the bytes before them stay the same for caches.

use super::RequestMaterials;
use castor_base::{log::Mode, model::ModelRequest, path::AbsPath};

/// The folder of plans below the session's own.
pub const PLANS_FOLDER: &str = "plans";

pub fn add_plan_instructions(draft: &mut ModelRequest, materials: RequestMaterials<'_>) {
    if materials.record.mode == Mode::Plan {
        draft.system = format!("{}\n\n{}", draft.system, text(&materials.scratch.join(PLANS_FOLDER))).into();
    }
}

fn text(folder: &AbsPath) -> String {
    format!(
        "# Plan mode\n\
         This is plan mode: you look and plan, and change nothing. Tools that only look work as usual, and so do commands \
         that are known to only look. The one place to write is the folder of plans, {folder}: Markdown files there need \
         no question, and relative paths of write_file and replace lead there.\n\
         1. Read what the task touches. Ask with ask_user where the task can be understood in several ways.\n\
         2. Write the plan to one file in the folder of plans: what is to be reached, the files and what changes in each, \
         the order of steps, how it is checked.\n\
         3. Call exit_plan_mode with the file's name. The user accepts the plan, wants it changed, or rejects it. Do not \
         ask for that in your message, and do not begin the work before it is accepted."
    )
}
