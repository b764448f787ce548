//! Masking of old tool outputs: a few lines replace the text. A masked output stays masked, so that prompts keep their
//! beginning.

use std::{fmt::Write, sync::Arc};

use sha2::{Digest, Sha256};

use super::tokens;
use castor_base::{
    content::joined_text,
    file_prompt::ACTIVATE_SKILL,
    history::{Role, Turn, TurnPart},
    log::Mask,
    path::AbsPath,
    text::{head, tail},
    tool::{CallResult, RUN_SHELL_COMMAND, ToolSpec, find_traits},
};

/// The newest outputs stay as they are, up to so many tokens.
const PROTECTED: u64 = 50_000;
/// Less than this is not worth a new prompt cache.
const LEAST: u64 = 30_000;
const MARK: &str = "<tool_output_masked>";
/// Bytes of beginning and end that stay.
const EDGE: usize = 250;
/// Lines of a command's beginning and end, which have at most so many bytes.
const EDGE_LINES: usize = 10;
const EDGE_OF_LINES: usize = 1_500;

/// The outputs that are to be masked now; those of the last turn of the history never are.
pub fn mask_due(turns: &[Arc<Turn>], scratch: &AbsPath, tools: &[ToolSpec]) -> Vec<Mask> {
    let of_tools = turns.iter().filter(|it| it.role() == Role::Tool);
    // Each is counted once in its life, so that this costs next to nothing while there is little.
    if of_tools.map(|it| tokens::of_turn(it)).sum::<u64>() <= PROTECTED + LEAST {
        return Vec::new();
    }
    let before_last = turns.split_last().map_or(turns, |(_, before)| before);
    let old = unprotected(before_last, tools);
    match old.iter().map(|it| tokens::of_parts(&it.content)).sum::<u64>() < LEAST {
        true => Vec::new(),
        false => old.into_iter().rev().filter_map(|it| mask(it, scratch)).collect(),
    }
}

/// All that is not protected, however little it is: where a conversation could not be compressed.
pub fn mask_all(turns: &[Arc<Turn>], scratch: &AbsPath, tools: &[ToolSpec]) -> Vec<Mask> {
    unprotected(turns, tools).into_iter().rev().filter_map(|it| mask(it, scratch)).collect()
}

/// The newest first.
fn unprotected<'t>(turns: &'t [Arc<Turn>], tools: &[ToolSpec]) -> Vec<&'t CallResult> {
    let mut seen = 0;
    let results = turns.iter().rev().flat_map(|it| it.parts().iter().rev()).filter_map(|it| maskable(it, tools));
    results
        .filter(|it| {
            seen += tokens::of_parts(&it.content);
            seen > PROTECTED
        })
        .collect()
}

/// The oldest outputs, until `excess` tokens are saved; in need those of the last turn, too.
pub fn mask_oldest(turns: &[Arc<Turn>], scratch: &AbsPath, tools: &[ToolSpec], excess: u64) -> Vec<Mask> {
    let (mut saved, mut res) = (0, Vec::new());
    for result in turns.iter().flat_map(|it| it.parts()).filter_map(|it| maskable(it, tools)) {
        if saved >= excess {
            break;
        }
        if let Some(mask) = mask(result, scratch) {
            saved += tokens::of_parts(&result.content).saturating_sub(tokens::of_text(&mask.text));
            res.push(mask);
        }
    }
    res
}

fn maskable<'t>(part: &'t TurnPart, tools: &[ToolSpec]) -> Option<&'t CallResult> {
    let TurnPart::Result(result) = part else { return None };
    let is_masked = result.content.iter().any(|it| it.as_text().is_some_and(|it| it.starts_with(MARK)));
    let is_kept = result.name == ACTIVATE_SKILL || find_traits(tools, &result.name).keeps_results;
    (!is_masked && !is_kept).then_some(result)
}

/// `None`: nothing would be saved.
fn mask(result: &CallResult, scratch: &AbsPath) -> Option<Mask> {
    let whole = joined_text(&result.content);
    let path = file_of(result, scratch);
    let preview = preview(&whole, result.name == RUN_SHELL_COMMAND);
    let text =
        format!("{MARK}\n{preview}\n\nOutput too large. Full output available at: {path}\n</tool_output_masked>");
    let call = result.id.clone();
    (tokens::of_text(&text) < tokens::of_text(&whole)).then_some(Mask { call, path, text })
}

/// Its name is known before it is there, and is the same each time.
fn file_of(result: &CallResult, scratch: &AbsPath) -> AbsPath {
    let mut name = "masked-".to_owned();
    Sha256::digest(result.id.as_str()).iter().take(8).for_each(|it| _ = write!(name, "{it:02x}"));
    scratch.join(format!("{name}.txt"))
}

fn preview(text: &str, of_command: bool) -> String {
    let (first, last) = match of_command {
        true => {
            let n = text.lines().count();
            let first: Vec<&str> = text.lines().take(EDGE_LINES).collect();
            let last: Vec<&str> = text.lines().skip(n.saturating_sub(EDGE_LINES).max(EDGE_LINES)).collect();
            let (first, last) = (first.join("\n"), last.join("\n"));
            (head(&first, EDGE_OF_LINES).to_owned(), tail(&last, EDGE_OF_LINES).to_owned())
        }
        false => (head(text, EDGE).to_owned(), tail(text, EDGE.min(text.len().saturating_sub(EDGE))).to_owned()),
    };
    format!("{first}\n... [TRUNCATED] ...\n{last}")
}
