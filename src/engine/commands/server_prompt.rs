//! A prompt of an MCP server as a slash command: `/server:prompt --name="value" more words`. What the server makes of it
//! becomes the user's message.

use std::collections::BTreeMap;

use crate::{
    record::Step,
    step::{Effect, Input, Server, ServerStatus},
    turn::{
        flow::{Flow, Phase, Station},
        spec::TurnContext,
        state::TurnState,
    },
};
use castor_base::{
    content::{Part, PromptContent, joined_text},
    ids::EffectId,
    server_offer::{CompletedOffer, CompletionQuery, ServerPrompt, ServerQuery, ServerQueryKind, command_word},
    text,
};

/// Longest value of an argument that is repeated to the model, in characters.
const MAX_REPEATED: usize = 200;
/// Values that are named for a missing argument.
const MAX_SUGGESTED: usize = 20;

/// What was typed.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerPromptOrder {
    /// Without the slash.
    pub command: String,
    pub args: String,
    /// What else the prompt had.
    pub rest: Vec<Part>,
}

/// It may be a prompt of a server that is still starting.
#[derive(Debug)]
struct AwaitingServer {
    /// Wakes the turn when it has waited long enough.
    timer: EffectId,
    order: ServerPromptOrder,
}

#[derive(Debug)]
struct AskingServer {
    effect: EffectId,
    order: ServerPromptOrder,
    query: ServerQuery,
}

/// The prompts that can be typed now, with the servers they are of. Of two with one name the first counts.
pub fn server_prompts(servers: &[Server]) -> Vec<(String, &Server, &ServerPrompt)> {
    let mut res: Vec<(String, &Server, &ServerPrompt)> = Vec::new();
    for server in servers.iter().filter(|it| it.is_there()) {
        for prompt in &server.offer.prompts {
            let command = prompt.command(&server.name);
            if res.iter().all(|it| it.0 != command) {
                res.push((command, server, prompt));
            }
        }
    }
    res
}

/// Tells whether `command` is one of a server, or may be one of a server that is still starting.
pub fn is_server_prompt(servers: &[Server], command: &str) -> bool {
    let Some((server, _)) = command.split_once(':') else { return false };
    let may_have = |it: &Server| {
        command_word(&it.name) == server
            && match it.status {
                ServerStatus::Starting { .. } => true,
                _ => it.is_there() && it.offer.prompts.iter().any(|prompt| prompt.command(&it.name) == command),
            }
    };
    servers.iter().any(may_have)
}

pub(super) fn begin(order: ServerPromptOrder, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    match cx.scratch.preamble.wait_until(cx.step.now.unix_ms) {
        Some(at_ms) => Flow::wait(AwaitingServer { timer: cx.step.start_effect(Effect::SetTimer { at_ms }), order }),
        None => ask(order, turn, cx),
    }
}

impl Phase for AwaitingServer {
    fn step(mut self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::TimerFired { effect } if effect == self.timer => ask(self.order, turn, cx),
            Input::ToolsChanged(_) if cx.scratch.preamble.wait_until(cx.step.now.unix_ms).is_none() => {
                self.leave(cx.step);
                ask(self.order, turn, cx)
            }
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.timer });
    }
}

/// Once the servers are there.
fn ask(order: ServerPromptOrder, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let servers = cx.spec.toolbox.servers.clone();
    let all = server_prompts(&servers);
    let Some((_, server, prompt)) = all.iter().find(|it| it.0 == order.command) else {
        return Flow::report(format!("No MCP server has the prompt `/{}`.", text::head(&order.command, 100)));
    };
    let args = match read_arguments(prompt, &order.args) {
        Ok(it) => it,
        Err(wrong) => return suggest(cx, &order.command, (&server.name, prompt), wrong),
    };
    let what = ServerQueryKind::Prompt { name: prompt.name.clone(), args };
    let query = ServerQuery { server: server.name.clone(), what };
    let effect = turn.ask_server(cx.step, &query);
    Flow::wait(AskingServer { effect, order, query })
}

/// An argument is missing: the server may know what could stand for it.
#[derive(Debug)]
struct AskingForValues {
    effect: EffectId,
    argument: String,
    /// What is said in any case.
    report: String,
}

fn suggest(
    cx: &mut TurnContext<'_, '_>,
    command: &str,
    (server, prompt): (&str, &ServerPrompt),
    wrong: WrongArguments,
) -> Flow {
    let report = format!("`/{command}`: {}", wrong.why);
    let Some(argument) = wrong.missing else { return Flow::report(report) };
    let of = CompletedOffer::Prompt(prompt.name.clone());
    let query = CompletionQuery { of, argument: argument.clone(), value: String::new(), known: wrong.known };
    let query = ServerQuery { server: server.to_owned(), what: ServerQueryKind::Completion(query) };
    let effect = cx.step.start_effect(Effect::AskServer(Box::new(query)));
    Flow::wait(AskingForValues { effect, argument, report })
}

impl Phase for AskingForValues {
    fn step(self: Box<Self>, _: &mut TurnState, _: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        let Input::ServerAnswered { effect, result } = input else { return Flow::Unrelated(self, input) };
        if effect != self.effect {
            return Flow::Unrelated(self, Input::ServerAnswered { effect, result });
        }
        // Most servers know none.
        let values: Vec<String> = result.unwrap_or_default().iter().filter_map(Part::as_text).map(quoted).collect();
        if values.is_empty() {
            return Flow::report(self.report);
        }
        let more = if values.len() > MAX_SUGGESTED { ", …" } else { "" };
        let shown: Vec<String> = values.into_iter().take(MAX_SUGGESTED).collect();
        Flow::report(format!(
            "{}. For --{} the server suggests: {}{more}",
            self.report,
            self.argument,
            shown.join(", ")
        ))
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.effect });
    }
}

fn quoted(value: &str) -> String {
    format!("`{}`", text::first_line(value, MAX_REPEATED).replace('`', "'"))
}

impl Phase for AskingServer {
    fn step(self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        let Input::ServerAnswered { effect, result } = input else { return Flow::Unrelated(self, input) };
        if effect != self.effect {
            return Flow::Unrelated(self, Input::ServerAnswered { effect, result });
        }
        turn.scheduler.end_query(cx.step, effect);
        let server = &self.query.server;
        match result {
            Ok(parts) => {
                let content: Vec<Part> =
                    [Part::text(self.introduction())].into_iter().chain(parts).chain(self.order.rest).collect();
                turn.transcript.prompt_text = joined_text(&content);
                turn.transcript.unheard = Some(Box::new(PromptContent::from(content)));
                Flow::Go(Station::FIRST)
            }
            Err(why) => Flow::report(format!("MCP server {server:?} does not give this prompt: {why}")),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.effect });
    }
}

impl AskingServer {
    /// Whose words follow: the model is to know that they are a template's.
    fn introduction(&self) -> String {
        let ServerQueryKind::Prompt { name, args } = &self.query.what else { return String::new() };
        let args = args.iter().map(|(name, value)| format!(" {name}={:?}", text::first_line(value, MAX_REPEATED)));
        let (name, args) = (text::first_line(name, 100), args.collect::<String>());
        format!(
            "I choose the prompt {name:?} of the MCP server {:?}{args}:\n",
            text::first_line(&self.query.server, 100)
        )
    }
}

/// What is wrong with what was typed.
struct WrongArguments {
    why: String,
    /// The first argument that has to be there and is not.
    missing: Option<String>,
    known: BTreeMap<String, String>,
}

impl From<String> for WrongArguments {
    fn from(why: String) -> Self {
        Self { why, missing: None, known: BTreeMap::new() }
    }
}

/// `--name=value`, `--name="some words"`; what stands alone goes to the arguments that are left, required ones first. If
/// one is left, it takes all of it.
fn read_arguments(prompt: &ServerPrompt, typed: &str) -> Result<BTreeMap<String, String>, WrongArguments> {
    let (mut res, mut alone) = (BTreeMap::new(), Vec::new());
    for word in words(typed)? {
        let Word { name: Some(name), text } = word else {
            alone.push(word.text);
            continue;
        };
        if !prompt.arguments.iter().any(|it| it.name == name) {
            let why = format!("it has no argument `--{}`. It takes: {}", text::head(&name, 100), takes(prompt));
            return Err(why.into());
        }
        res.insert(name, text);
    }
    let open = |required: bool| prompt.arguments.iter().filter(move |it| it.required == required);
    let left: Vec<&str> =
        open(true).chain(open(false)).map(|it| it.name.as_str()).filter(|it| !res.contains_key(*it)).collect();
    let n_required = open(true).filter(|it| !res.contains_key(&it.name)).count();
    match left.first() {
        Some(first) if !alone.is_empty() && (n_required == 1 || left.len() == 1) => {
            res.insert((*first).to_owned(), alone.join(" "));
        }
        _ if alone.len() > left.len() => {
            let why = format!("it takes fewer words; quote those that belong together. It takes: {}", takes(prompt));
            return Err(why.into());
        }
        _ => res.extend(left.iter().map(|it| (*it).to_owned()).zip(alone)),
    }
    let missing: Vec<&str> = open(true).map(|it| it.name.as_str()).filter(|it| !res.contains_key(*it)).collect();
    let Some(first) = missing.first().map(|it| (*it).to_owned()) else { return Ok(res) };
    let names: Vec<String> = missing.iter().map(|it| format!("--{it}")).collect();
    let why = format!("Missing required argument(s): {}", names.join(", "));
    Err(WrongArguments { why, missing: Some(first), known: res })
}

fn takes(prompt: &ServerPrompt) -> String {
    if prompt.arguments.is_empty() { "no arguments".to_owned() } else { format!("`{}`", prompt.hint()) }
}

struct Word {
    name: Option<String>,
    text: String,
}

/// Words between blanks; quotes hold them together, a backslash in them keeps the next character as it is.
fn words(typed: &str) -> Result<Vec<Word>, String> {
    let (mut res, mut chars) = (Vec::new(), typed.chars().peekable());
    loop {
        while chars.next_if(|it| it.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(res);
        }
        let (mut name, mut text) = (None, String::new());
        let mut quote = None;
        while let Some(next) = chars.next_if(|it| quote.is_some() || !it.is_whitespace()) {
            match (next, quote) {
                ('\\', Some(_)) => text.extend(chars.next()),
                (it, Some(open)) if it == open => quote = None,
                ('"' | '\'', None) if text.is_empty() => quote = Some(next),
                ('=', None) if name.is_none() && text.len() > 2 && text.starts_with("--") => {
                    name = text.get(2..).map(str::to_owned);
                    text.clear();
                }
                (it, _) => text.push(it),
            }
        }
        if quote.is_some() {
            return Err("a quote has no end".to_owned());
        }
        res.push(Word { name, text });
    }
}

#[cfg(test)]
mod tests {
    use super::read_arguments;
    use castor_base::server_offer::{PromptArgument, ServerPrompt};

    /// `arguments`: names; `?` behind one: it need not be there.
    fn check(arguments: &[&str], typed: &str, expected: &str) {
        let argument =
            |it: &&str| PromptArgument { name: it.trim_end_matches('?').to_owned(), required: !it.ends_with('?') };
        let arguments = arguments.iter().map(argument).collect();
        let prompt = ServerPrompt { name: "p".to_owned(), description: String::new(), arguments };
        let said = match read_arguments(&prompt, typed) {
            Ok(args) => args.iter().map(|(name, it)| format!("{name}=<{it}>")).collect::<Vec<_>>().join(" "),
            Err(wrong) => wrong.why,
        };
        assert_eq!(said, expected, "{typed}");
    }

    #[test]
    fn arguments_go_by_name_and_by_place() {
        check(&["a", "b"], "--a=\"x y\" --b=z", "a=<x y> b=<z>");
        check(&["a", "b"], "--b='it \\'is\\'' one", "a=<one> b=<it 'is'>");
        check(&["a", "b"], "one \"two three\"", "a=<one> b=<two three>");
        check(&["a"], "all of this", "a=<all of this>");
        check(&["a", "b?"], "all of this", "a=<all of this>");
        check(&["a?", "b"], "--b=1 all of this", "a=<all of this> b=<1>");
        check(&["a?"], "", "");
        check(&["a"], "--a=x=\"y\"", "a=<x=\"y\">");
        check(&["a"], "it's", "a=<it's>");
    }

    #[test]
    fn wrong_arguments_of_a_server_prompt_are_named() {
        check(&["a", "b"], "", "Missing required argument(s): --a, --b");
        check(&["a", "b"], "one", "Missing required argument(s): --b");
        check(&[], "one", "it takes fewer words; quote those that belong together. It takes: no arguments");
        check(&["a"], "--c=1", "it has no argument `--c`. It takes: `--a=\"…\"`");
        check(&["a"], "\"one", "a quote has no end");
    }
}
