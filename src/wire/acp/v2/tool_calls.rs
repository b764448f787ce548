//! Tool calls of version 2: one kind of update for their whole life, and terminals that belong to castor.

use std::num::NonZeroU32;

use agent_client_protocol_schema::{
    MaybeUndefined, v1,
    v2::{
        Content, Diff, DiffChange, DiffFileType, DiffPatch, SessionUpdate, Terminal, TerminalExitStatus,
        TerminalOutputChunk, TerminalUpdate, ToolCallContent, ToolCallLocation, ToolCallUpdate,
    },
};
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::Value;

use super::{same_json, text_block};
use crate::acp::git_patch::git_patch;
use castor_base::shown_text::show_text;

/// A call that is told of for the first time, or once more as a whole.
pub(super) fn begun(mut call: v1::ToolCall) -> Vec<SessionUpdate> {
    let command = command(&call);
    let terminal = call.meta.as_mut().and_then(|it| it.shift_remove("terminal_info"));
    let terminal = terminal.and_then(|it| opened_terminal(&it, command));
    let mut update = v1::ToolCallUpdate::from(call);
    update.fields.content = update.fields.content.filter(|it| !it.is_empty());
    update.fields.locations = update.fields.locations.filter(|it| !it.is_empty());
    terminal.into_iter().chain(changed(update)).collect()
}

/// What version 1 says of terminals in `_meta` is an update of its own here.
pub(super) fn changed(mut update: v1::ToolCallUpdate) -> Vec<SessionUpdate> {
    let mut meta = update.meta.take().unwrap_or_default();
    if let Some(output) = meta.shift_remove("terminal_output") {
        return terminal_output(&output).into_iter().collect();
    }
    // A command that goes on in the background has not ended.
    let goes_on = update.fields.raw_output.as_ref().is_some_and(|it| it["background"] == true);
    let exit = meta.shift_remove("terminal_exit").filter(|_| !goes_on);
    // `name` says it.
    meta.shift_remove("tool_name");
    let call = tool_call(update)
        .meta((!meta.is_empty()).then_some(meta).map_or(MaybeUndefined::Undefined, MaybeUndefined::Value));
    exit.as_ref().and_then(closed_terminal).into_iter().chain([SessionUpdate::ToolCallUpdate(call)]).collect()
}

/// What is left out stays as the client has it.
pub(super) fn tool_call(it: v1::ToolCallUpdate) -> ToolCallUpdate {
    let fields = it.fields;
    let mut res = ToolCallUpdate::new(it.tool_call_id.to_string());
    res.name = given(fields.name);
    res.title = given(fields.title);
    res.kind = given(fields.kind.as_ref().and_then(same_json));
    res.status = given(fields.status.as_ref().and_then(same_json));
    res.content = given(fields.content.map(|it| it.into_iter().filter_map(content).collect()));
    res.locations = given(fields.locations.map(|it| it.into_iter().map(location).collect()));
    res.raw_input = given(fields.raw_input);
    res.raw_output = given(fields.raw_output);
    res
}

fn given<T>(it: Option<T>) -> MaybeUndefined<T> {
    it.map_or(MaybeUndefined::Undefined, MaybeUndefined::Value)
}

fn location(it: v1::ToolCallLocation) -> ToolCallLocation {
    let mut res = ToolCallLocation::new(it.path);
    res.line = it.line.and_then(NonZeroU32::new);
    res
}

fn content(it: v1::ToolCallContent) -> Option<ToolCallContent> {
    match it {
        v1::ToolCallContent::Content(it) => {
            let block = match it.content {
                v1::ContentBlock::Text(it) => text_block(&it.text),
                other => same_json(&other)?,
            };
            Some(ToolCallContent::Content(Box::new(Content::new(block))))
        }
        v1::ToolCallContent::Diff(it) => Some(ToolCallContent::Diff(diff(it))),
        v1::ToolCallContent::Terminal(it) => Some(ToolCallContent::Terminal(Terminal::new(it.terminal_id.to_string()))),
        _ => None,
    }
}

/// Paths in the patch are absolute, without the sides that Git has before them.
fn diff(it: v1::Diff) -> Diff {
    let name = it.path.to_string_lossy().into_owned();
    let patch = git_patch((&name, &name), it.old_text.as_deref(), &it.new_text);
    let change = match it.old_text {
        Some(_) => DiffChange::modify(it.path),
        None => DiffChange::add(it.path),
    };
    let change = change.file_type(patch.as_ref().map(|_| DiffFileType::Text));
    Diff::new(vec![change]).with_patch(patch.map(DiffPatch::new))
}

fn command(call: &v1::ToolCall) -> String {
    let given = call.raw_input.as_ref().and_then(|it| it.get("command")).and_then(Value::as_str);
    show_text(given.unwrap_or(&call.title)).into_owned()
}

/// Begins empty, also for a client that had it before.
fn opened_terminal(info: &Value, command: String) -> Option<SessionUpdate> {
    let (id, cwd) = (info["terminal_id"].as_str()?.to_owned(), info["cwd"].as_str()?.to_owned());
    let update = TerminalUpdate::new(id).command(command).cwd(cwd);
    Some(SessionUpdate::TerminalUpdate(update.output(MaybeUndefined::Null).exit_status(MaybeUndefined::Null)))
}

fn terminal_output(output: &Value) -> Option<SessionUpdate> {
    let (id, data) = (output["terminal_id"].as_str()?.to_owned(), output["data"].as_str()?);
    Some(SessionUpdate::TerminalOutputChunk(TerminalOutputChunk::new(id, BASE64_STANDARD.encode(data))))
}

fn closed_terminal(exit: &Value) -> Option<SessionUpdate> {
    let mut status = TerminalExitStatus::new();
    status.exit_code = exit["exit_code"].as_i64();
    status.signal = exit["signal"].as_str().map(str::to_owned);
    let id = exit["terminal_id"].as_str()?.to_owned();
    Some(SessionUpdate::TerminalUpdate(TerminalUpdate::new(id).exit_status(status)))
}
