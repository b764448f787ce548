//! The demo model: needs no key and no network, and explores the workspace with the real tools.

mod agents;
mod intent;
mod report;

use serde_json::{Value, json};

use super::{Generator, Sink};
use castor_base::{
    content::{Part, joined_text},
    fs::BoxFuture,
    history::{NOTICE, Role, Turn, TurnPart},
    model::{Chunk, Failure, Finish, ModelRequest, Usage},
    tool::CallResult,
};
use intent::Intent;

/// Pieces of an answer are about this long, in bytes: people should see it stream.
const PIECE_LEN: usize = 24;

/// A pure function of the request's contents.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demo;

impl Generator for Demo {
    fn generate<'a>(&'a self, request: ModelRequest, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            for chunks in answer(&request) {
                sink.send(chunks).await;
            }
            Ok(())
        })
    }
}

/// What the model does next: says something, or calls tools.
enum DemoStep {
    Say(String),
    Call(Vec<(&'static str, Value)>),
}

/// The answer to `request`, one list of chunks for each piece that is sent.
fn answer(request: &ModelRequest) -> Vec<Vec<Chunk>> {
    let (thought, step) = next_step(request);
    let mut output = thought.len();
    let mut res = vec![vec![Chunk::Thought { text: thought, signature: None }]];
    match step {
        DemoStep::Say(text) => {
            output += text.len();
            res.extend(pieces(&text).map(|it| vec![Chunk::Text { text: it.to_owned(), signature: None }]));
        }
        DemoStep::Call(calls) => res.extend(calls.into_iter().map(|(name, args)| {
            output += name.len() + args.to_string().len();
            vec![Chunk::Call { id: None, name: name.to_owned(), args, signature: None }]
        })),
    }
    res.push(vec![Chunk::Usage(usage(request, output)), Chunk::Finish(Finish::Stop)]);
    res
}

fn next_step(request: &ModelRequest) -> (String, DemoStep) {
    let (prompt, results) = last_prompt(&request.contents);
    let (thought, step) = agents::step(request, &prompt, &results).unwrap_or_else(|| match intent::of(&prompt) {
        Intent::Run(command) => run(request, &results, command),
        Intent::Write(file) => write(request, &results, file),
        Intent::Describe => describe(request, &results),
    });
    (thought, agents::hand_in(request, step))
}

fn run(request: &ModelRequest, results: &[&CallResult], command: String) -> (String, DemoStep) {
    if let Some(it) = result_of(results, "run_shell_command") {
        let said = report::quoted(&joined_text(&it.content));
        let text = match it.is_error {
            true => format!("The command `{command}` did not run. What came back:\n\n{said}"),
            false => format!("I ran `{command}`. What came back:\n\n{said}"),
        };
        return ("**Reading the result**\nThe command is over.".to_owned(), DemoStep::Say(text));
    }
    let thought = format!("**Running a command**\nYou want to see what `{command}` does.");
    (thought, call(request, "run_shell_command", json!({ "command": command })))
}

fn write(request: &ModelRequest, results: &[&CallResult], file: String) -> (String, DemoStep) {
    if let Some(it) = result_of(results, "write_file") {
        let said = report::quoted(&joined_text(&it.content));
        let text = match it.is_error {
            true => format!("I did not write `{file}`. What came back:\n\n{said}"),
            false => format!("I wrote `{file}`. What came back:\n\n{said}"),
        };
        return ("**Checking**\nThe write was answered.".to_owned(), DemoStep::Say(text));
    }
    let Some(listing) = result_of(results, "list_directory") else {
        let thought = "**Looking around**\nWhat I write should be true, so I look first.".to_owned();
        return match offers(request, "list_directory") {
            true => (thought, call(request, "list_directory", json!({ "dir_path": "." }))),
            false => (thought, write_call(request, &file, None)),
        };
    };
    (format!("**Writing a file**\nNow I can write `{file}`."), write_call(request, &file, Some(listing)))
}

fn write_call(request: &ModelRequest, file: &str, listing: Option<&CallResult>) -> DemoStep {
    let content = report::note(listing.filter(|it| !it.is_error).map(|it| joined_text(&it.content)).as_deref());
    call(request, "write_file", json!({ "file_path": file, "content": content }))
}

fn describe(request: &ModelRequest, results: &[&CallResult]) -> (String, DemoStep) {
    let Some(listing) = result_of(results, "list_directory") else {
        let thought = "**Looking around**\nI list the workspace before I say anything about it.".to_owned();
        return (thought, call(request, "list_directory", json!({ "dir_path": "." })));
    };
    let text = joined_text(&listing.content);
    let thought = || "**Summing up**\nI have seen enough.".to_owned();
    if listing.is_error {
        return (thought(), DemoStep::Say(report::unreadable(&text)));
    }
    let entries = report::Entries::parse(&text);
    let wanted = entries.worth_reading();
    let read: Vec<&CallResult> = results.iter().copied().filter(|it| it.name == "read_file").collect();
    if read.is_empty() && !wanted.is_empty() && offers(request, "read_file") {
        let thought = format!("**Reading**\n{} should tell what this is.", wanted.join(" and "));
        let calls = wanted.iter().map(|it| ("read_file", json!({ "file_path": it })));
        return (thought, DemoStep::Call(calls.collect()));
    }
    // Results come in the order of their calls.
    let files: Vec<(&str, &CallResult)> = wanted.iter().copied().zip(read).collect();
    (thought(), DemoStep::Say(report::workspace(&entries, &files)))
}

fn call(request: &ModelRequest, name: &'static str, args: Value) -> DemoStep {
    match offers(request, name) {
        true => DemoStep::Call(vec![(name, args)]),
        false => DemoStep::Say(format!("I would call `{name}`, but I was not given that tool. {}", report::REAL_MODEL)),
    }
}

fn offers(request: &ModelRequest, name: &str) -> bool {
    request.tools.iter().any(|it| it.name == name)
}

/// The text of the last prompt, and the results that came since.
fn last_prompt(contents: &[std::sync::Arc<Turn>]) -> (String, Vec<&CallResult>) {
    let said = |it: &Turn| it.role() == Role::User && it.parts().iter().any(|it| text_of(it).is_some());
    let at = contents.iter().rposition(|it| said(it)).unwrap_or_default();
    let since = contents.get(at..).unwrap_or_default();
    let prompt = since.first().map(|it| it.parts().iter().filter_map(text_of).collect()).unwrap_or_default();
    let parts = since.iter().flat_map(|it| it.parts());
    let results = parts.filter_map(|it| match it {
        TurnPart::Result(it) => Some(it),
        _ => None,
    });
    (prompt, results.collect())
}

/// What the user wrote: castor's own notices stand beside it, and ask for nothing.
fn text_of(part: &TurnPart) -> Option<&str> {
    match part {
        TurnPart::Content(it) => it.as_text().filter(|it| !it.starts_with(NOTICE)),
        _ => None,
    }
}

fn result_of<'a>(results: &[&'a CallResult], name: &str) -> Option<&'a CallResult> {
    results.iter().copied().find(|it| it.name == name)
}

/// Pieces that end after a space, so that words stay whole; together they are `text`.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .char_indices()
            .map(|(at, it)| at + it.len_utf8())
            .find(|end| *end >= PIECE_LEN && rest.get(..*end).is_some_and(|it| it.ends_with(char::is_whitespace)));
        let (piece, after) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
        rest = after;
        Some(piece)
    })
}

/// Estimated as four bytes a token, which is what people expect of English.
fn usage(request: &ModelRequest, output: usize) -> Usage {
    let parts = request.contents.iter().flat_map(|it| it.parts());
    let input: usize = request.system.len() + parts.map(part_len).sum::<usize>();
    let (input, output) = ((input / 4) as u64, (output / 4) as u64);
    Usage { input, output, total: input + output, ..Usage::default() }
}

fn part_len(part: &TurnPart) -> usize {
    let len = |it: &Part| it.as_text().map_or(0, str::len);
    match part {
        TurnPart::Content(it) => len(it),
        TurnPart::Call { call, .. } => call.name.len() + call.args.to_string().len(),
        TurnPart::Result(it) => it.content.iter().map(len).sum(),
    }
}

#[cfg(test)]
mod tests;
