//! Turns as data, in `tests/*.txt`: inputs on the `>` lines, the session's outputs below.
#![allow(clippy::disallowed_methods)]

use std::{fs, path::Path, sync::Arc};

use expect_test::expect_file;
use serde_json::{Value, json};

use super::{MemorySources, Spec, TurnBounds};
use crate::testing::own_tools;
use crate::{
    context::{Instructions, SessionEnvironment},
    policy::{RuleSet, Tier},
    record::SessionOrigin,
    routing::{
        Chain,
        fallback_policies::{FallbackAction, FallbackPolicies, FallbackPolicy},
    },
    scheduler::Toolbox,
    session::Session,
    session_tools,
    step::{
        Act, Effect, ForeignTool, Input, McpTools, OptionValue, QuestionTopic, RewindOrder, RewindTarget, Server,
        ServerStatus, StepOutput,
    },
};
use castor_base::{
    check::CheckFinding,
    checkpoint::{ChangeKind, Changes, CheckpointResult, Conflict, FileChange, OnConflict, RestoreResult, Rewinds},
    clock::Now,
    content::{Part, joined_text},
    elicitation::ElicitationRequest,
    event::{EventKind, ToolProgress},
    hook::{HookEnd, HookReport},
    ids::{EffectId, ElicitationId, MessageId, PromptId, QuestionId},
    limits::Limits,
    log::{Answer, Decision, Fact, Mode, Principal},
    memory::{MemoryFile, Tier as MemoryTier},
    model::{Chunk, Finish, Usage},
    path::AbsPath,
    question::Form,
    sampling::ServerAsk,
    terminal::CommandReport,
    tool::{Access, Preview, TailCall, TargetPath, Targets, ToolError, ToolKind, ToolOutput, ToolSpec},
};

/// The rules of the user.
pub(super) const RULES: &str = r#"
[[rule]]
toolName = "run_shell_command"
subagent = "helper"
commandPrefix = "make"
decision = "allow"
priority = 10

[[rule]]
toolName = "read_file"
subagent = "blind"
decision = "deny"
priority = 10
"#;

/// The rules of a session whose name says `checker`.
const CHECKERS: &str = r#"
[[rule]]
toolName = "run_shell_command"
commandPrefix = "deploy"
decision = "deny"
priority = 900

[[safety_checker]]
toolName = "run_shell_command"
priority = 20
checker = { type = "external", name = "/first", required_context = ["history"] }

[[safety_checker]]
toolName = ["run_shell_command", "read_file"]
modes = ["default"]
checker = { type = "external", name = "/second", timeout = 100, required_context = [] }
"#;

/// Every file of the folder `tests`; `UPDATE_EXPECT=1` rewrites what happens below the steps.
#[test]
fn turns() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("src/engine/turn/tests");
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    for file in files {
        expect_file![&file].assert_eq(&played(&fs::read_to_string(&file).unwrap()));
    }
}

/// The script with what happens as it is: `# …` is a comment, `== …` starts a session, `> …` is a step.
fn played(script: &str) -> String {
    let (mut actual, mut session, mut n) = (String::new(), None, 0);
    for line in script.lines() {
        match line.split_once(' ') {
            Some(("#", _)) => actual += &format!("{line}\n"),
            Some(("==", _)) => {
                actual += &format!("\n{line}\n");
                (session, n) = (Some(fresh_session(line)), 0);
            }
            Some((">", step)) => {
                let session = session.as_mut().expect("`== name` comes before the first step");
                actual += &format!("{line}\n");
                play(session, step, n, &mut actual);
                n += 1;
            }
            // What was expected.
            _ => assert!(line.is_empty() || line.starts_with("    "), "unknown line: {line}"),
        }
    }
    actual
}

pub(super) fn play(session: &mut Session, step: &str, n: u64, actual: &mut String) {
    let mut out = StepOutput::default();
    // `@5000 …`: at that time.
    let at = step.strip_prefix('@').and_then(|it| it.split_once(' '));
    let (unix_ms, step) = at.map_or((1_000, step), |(at, step)| (at.parse().unwrap(), step));
    session.step(input(step), Now { unix_ms, seed: n }, &mut out);
    out.acts.iter().filter_map(shown).for_each(|it| *actual += &format!("    {}\n", it.replace('\n', "\n      ")));
}

/// What its name says: `checker` for [`CHECKERS`], `(agent NAME)` for a sub-agent's, `(n …)` where `n` may take over,
/// silently or not, `headless` where nobody is there to ask, `compresses` where that happens from 104 tokens on,
/// `discovers` where memory of sub-folders is looked for, `undoes` where checkpoints are taken, `renews` where the user
/// can be asked for another credential.
pub(super) fn fresh_session(name: &str) -> Session {
    let cwd = AbsPath::new("/w").unwrap();
    let agent = name.split_once("(agent ").and_then(|(_, it)| it.split_once(')')).map(|it| it.0.to_owned());
    let principal = agent.map_or(Principal::Root, Principal::Agent);
    let (mode, model, child_of, thread) = (Mode::Default, "m".to_owned(), None, None);
    let (session, roots) = ("x".into(), vec![cwd.clone()]);
    let origin = SessionOrigin { session, cwd, roots, mode, model, principal, child_of, thread, user: None };
    let spec = super::tests_agents::spec(name, &origin, super::tests_hooks::spec(name, spec(name)));
    Session::create(origin, Arc::new(spec), Now { unix_ms: 1_000, seed: 0 }, &mut StepOutput::default())
}

pub(super) fn spec(name: &str) -> Spec {
    let rules = if name.contains("checker") { CHECKERS } else { RULES };
    let tool = |name: &'static str| ToolSpec {
        title: name.into(),
        description: "".into(),
        parameters: json!({}).into(),
        ..own_tools().iter().find(|it| it.name == name).unwrap().clone()
    };
    let tools = session_tools::own_tools(["read_file", "write_file", "run_shell_command"].map(tool));
    let cwd = AbsPath::new("/w").unwrap();
    let around = SessionEnvironment {
        cwd: cwd.clone(),
        roots: vec![cwd],
        platform: "linux",
        made_on: "2026-01-31".to_owned(),
        interactive: true,
        tree: None,
    };
    let rules = RuleSet::shipped(own_tools()).with(RuleSet::parse(rules, Tier::User, "f.toml").unwrap().0);
    let toolbox = Toolbox::new(tools, rules, !name.contains("headless")).with_checkpoints(name.contains("undoes"));
    let toolbox = toolbox.with_renewals(name.contains("renews"), false);
    let compress_above = if name.contains("compresses") { 0.000_1 } else { 0.5 };
    let models = if name.contains("(n ") { vec!["n".to_owned()] } else { Vec::new() };
    let action = if name.contains("silent") { FallbackAction::Silent } else { FallbackAction::Ask };
    let policies = FallbackPolicies { otherwise: FallbackPolicy::always(action), ..FallbackPolicies::default() };
    let chain = Chain { models, for_all: true, policies };
    Spec {
        toolbox,
        instructions: Instructions::new(&around),
        scratch: AbsPath::new("/scratch").unwrap(),
        memory_sources: MemorySources { at_start: false, just_in_time: name.contains("discovers") },
        bounds: TurnBounds {
            limits: Limits::parse("requests=3").unwrap(),
            asks_next_speaker: name.contains("next speaker"),
            compress_above,
            ..TurnBounds::default()
        },
        chain,
        windows: Default::default(),
        prices: Default::default(),
        aliases: Default::default(),
        helpers: Default::default(),
        choices: Default::default(),
        role: None,
    }
}

fn input(line: &str) -> Input {
    let mut words = line.splitn(3, ' ');
    let (verb, id, rest) = (words.next().unwrap(), words.next().unwrap_or("0"), words.next().unwrap_or(""));
    let n = id.parse().unwrap_or(0);
    let effect = EffectId(n);
    let json = || serde_json::from_str::<Value>(rest).unwrap_or_default();
    match verb {
        "prompt" => Input::Prompt { prompt: PromptId(n), content: vec![Part::text(rest)].into() },
        "steer" => Input::Steer { prompt: PromptId(n), content: vec![Part::text(rest)], starts_turn: false },
        "completed" => Input::BackgroundResult(CommandReport { how: rest.to_owned(), ..CommandReport::default() }),
        "emptied" => Input::BackgroundExited(id.parse().unwrap()),
        "cancel" => Input::Cancel,
        "cancel-prompt" => Input::CancelPrompt(PromptId(n)),
        "text" => Input::Chunks { effect, chunks: rest.split('|').map(text).collect() },
        "thought" => Input::Chunks { effect, chunks: vec![Chunk::Thought { text: rest.to_owned(), signature: None }] },
        "call" => Input::Chunks { effect, chunks: rest.split(" & ").map(call).collect() },
        "usage" => {
            let usage = Usage { input: 9, output: 1, total: 10, ..Usage::default() };
            Input::Chunks { effect, chunks: vec![Chunk::Usage(usage)] }
        }
        "finish" => {
            let finish = match rest {
                "MAX_TOKENS" => Finish::MaxTokens,
                "STOP" => Finish::Stop,
                "OTHER" => Finish::Other(rest.to_owned()),
                "MALFORMED" => Finish::MalformedCall,
                word => Finish::Safety(word.to_owned()),
            };
            Input::Chunks { effect, chunks: vec![Chunk::Finish(finish)] }
        }
        "ended" => Input::Generated { effect, result: Ok(()) },
        "failed" | "renewed" | "refused" => super::tests_credentials::input(verb, effect, rest),
        "woke" => Input::TimerFired { effect },
        "tools" => Input::ToolsChanged(kit(rest)),
        // Places, or a command.
        "resolved" => {
            let place = |it: &Value| {
                let path = AbsPath::new(it.as_str()?)?;
                let in_roots = path.as_path().starts_with("/w");
                Some(TargetPath { in_roots, ..TargetPath::in_root(path, Access::Read) })
            };
            let paths = json().get("paths").and_then(Value::as_array).map(|it| it.iter().filter_map(place).collect());
            let command = json().get("command").and_then(Value::as_str).map(str::to_owned);
            let targets =
                Targets { title: format!("t{n}"), command, paths: paths.unwrap_or_default(), ..Targets::default() };
            Input::Resolved { effect, result: Ok(targets) }
        }
        "checked" => {
            let (word, reason) = rest.split_once(' ').unwrap_or((rest, ""));
            let decision = match word {
                "deny" => Decision::Deny,
                "ask" => Decision::Ask,
                _ => Decision::Allow,
            };
            let finding = CheckFinding { decision, reason: reason.to_owned() };
            Input::Checked { effect, finding: if word == "failed" { Err(reason.to_owned()) } else { Ok(finding) } }
        }
        "limits" => Input::SetOption(OptionValue::Limits(Some(Limits::parse(id).unwrap()))),
        "mode" => Input::SetOption(OptionValue::Mode(Mode::parse(id).unwrap())),
        "invalid" => Input::Resolved { effect, result: Err(ToolError::new("invalid_tool_params", rest)) },
        "previewed" => Input::Previewed { effect, result: Ok(Preview::default()) },
        "allow" => Input::Answered { question: QuestionId(n), answer: Answer::AllowOnce },
        "for-ever" => Input::Answered { question: QuestionId(n), answer: Answer::AllowAlways },
        "always" => Input::Answered { question: QuestionId(n), answer: Answer::AllowSession },
        "reject" => Input::Answered { question: QuestionId(n), answer: Answer::Reject },
        "withdrawn" => Input::Answered { question: QuestionId(n), answer: Answer::Cancelled },
        "unable" => Input::Answered { question: QuestionId(n), answer: Answer::Unable },
        "accept" => {
            let content = json().as_object().cloned().unwrap_or_default();
            Input::Answered { question: QuestionId(n), answer: Answer::Accepted { content } }
        }
        "decline" => Input::Answered { question: QuestionId(n), answer: Answer::Declined },
        "dismiss" => Input::Answered { question: QuestionId(n), answer: Answer::Dismissed },
        "unfit" => Input::Answered { question: QuestionId(n), answer: Answer::Unfit { why: rest.to_owned() } },
        "in-text" => Input::Answered { question: QuestionId(n), answer: Answer::InText },
        "hung" => Input::HookFinished { effect, report: Box::new(HookReport::from_end(HookEnd::TimedOut)) },
        "hooked" => {
            let end = HookEnd::Exit(if rest.starts_with('{') { 0 } else { 2 });
            let report = HookReport { stdout: rest.to_owned(), ..HookReport::from_end(end) };
            Input::HookFinished { effect, report: Box::new(report) }
        }
        // `path=text`, or why not.
        "remembered" => {
            let file = |it: &str| {
                let (path, text) = it.split_once('=')?;
                let path = AbsPath::new(path)?;
                Some(MemoryFile { path, tier: MemoryTier::Project, text: text.to_owned() })
            };
            let files = rest.split_whitespace().map(file).collect::<Option<Arc<[_]>>>();
            Input::MemoryRead { effect, files: files.ok_or_else(|| rest.to_owned()), faults: Vec::new() }
        }
        "kept" => Input::MemoryChanged { effect, report: Ok(rest.to_owned()) },
        "not-kept" => Input::MemoryChanged { effect, report: Err(rest.to_owned()) },
        "printed" => Input::OutputPrinted { effect, text: rest.to_owned() },
        "ran" => ran(effect, ToolOutput::text(rest), None),
        "changed" => {
            let (files, text) = rest.split_once(' ').unwrap_or((rest, ""));
            ran(effect, ToolOutput::text(text), Some(files))
        }
        "left" | "behind" => {
            let how = if verb == "left" { json!(null) } else { json!([8, 9]) };
            let data = json!({ "background": verb == "left", "backgroundPids": how, "pid": 7 });
            ran(effect, ToolOutput { data, ..ToolOutput::text("") }, Some(rest))
        }
        "held" => {
            let result = if rest.is_empty() { Ok(CheckpointResult::default()) } else { Err(rest.to_owned()) };
            Input::Checkpointed { effect, result }
        }
        "compared" => Input::Compared { effect, changes: Ok(changes(rest)) },
        "incomparable" => Input::Compared { effect, changes: Err(rest.to_owned()) },
        "restored" => {
            let (conflicts, restored): (Vec<&str>, Vec<&str>) =
                rest.split_whitespace().partition(|it| it.starts_with('!'));
            let conflict = |it: &&str| Conflict { path: it[1..].into(), reason: "you changed it".to_owned() };
            let conflicts = conflicts.iter().map(conflict).collect();
            let removed = restored.iter().filter_map(|it| it.strip_prefix('-')).map(Into::into).collect();
            let restored = restored.into_iter().map(|it| it.trim_start_matches('-').into()).collect();
            let result = RestoreResult { restored, removed, conflicts, ..RestoreResult::default() };
            Input::Restored { effect, result: Ok((result, Vec::new())) }
        }
        "diffed" => Input::Diffed { effect, result: Ok(rest.to_owned()) },
        "go-back" => {
            let (to, what) = rest.split_once(' ').unwrap_or((rest, "files"));
            let to = if to == "redo" { RewindTarget::Redo } else { RewindTarget::Message(MessageId::from(to)) };
            let what = Rewinds::parse(what).unwrap();
            let (prompt, on_conflict) = (PromptId(n), OnConflict::Fail);
            Input::ClientRewind(Box::new(RewindOrder { prompt, to, what, on_conflict, paths: None }))
        }
        "broke" => ran(effect, ToolOutput::failed(ToolError::new("execution_failed", rest)), None),
        // Calls, then a message or an address.
        "elicited" | "visit" => {
            let (calls, text) = rest.split_once(' ').unwrap_or((rest, "Well?"));
            let calls = calls.split(',').map(|it| EffectId(it.parse().unwrap())).collect();
            let (message, url, id) = ("Log in".to_owned(), text.to_owned(), "theirs".to_owned());
            let wanted = match verb {
                "visit" => ElicitationRequest::Page { message, url, id },
                _ => ElicitationRequest::Form(Form { message: text.to_owned(), fields: Vec::new() }),
            };
            Input::ElicitationRequested { elicitation: ElicitationId(n), calls, request: ServerAsk::User(wanted) }
        }
        "taken-back" => Input::ElicitationWithdrawn { elicitation: ElicitationId(n) },
        "tail" => {
            let tail = Some(TailCall { name: rest.to_owned(), args: json!({}) });
            ran(effect, ToolOutput { tail_call: tail, ..ToolOutput::default() }, None)
        }
        _ => super::tests_agents::input(verb, effect, rest),
    }
}

pub(super) fn ran(effect: EffectId, output: ToolOutput, changed: Option<&str>) -> Input {
    Input::RunEnded { effect, output: Box::new(output), changes: changed.map(|it| Ok(changes(it))) }
}

fn changes(files: &str) -> Changes {
    let file = |it: &str| FileChange { path: it.into(), change: ChangeKind::Changed, added: 2, removed: 1 };
    let files: Vec<FileChange> = files.split(',').filter(|it| !it.is_empty()).map(file).collect();
    let n_files = files.len() as u64;
    Changes { n_files, added: 2 * n_files, removed: n_files, files, ..Changes::default() }
}

/// Words: `+tool`, `!tool` (granted), `name@ms` (starting until then), `notice:text`.
fn kit(text: &str) -> McpTools {
    let mut res = McpTools::default();
    for word in text.split_whitespace() {
        match (word.split_at(1), word.split_once('@'), word.split_once(':')) {
            ((mark @ ("+" | "!"), name), ..) => {
                let (description, kind, title) = ("".into(), ToolKind::Other, format!("{name} (s MCP)").into());
                let (name, parameters, traits) = (name.to_owned().into(), json!({}).into(), Default::default());
                let spec = ToolSpec { name, title, description, kind, parameters, traits };
                let (server, annotations) = ("s".to_owned(), json!({"readOnlyHint": true}));
                res.tools.push(ForeignTool { spec, server, annotations, agent: None, trusted: mark == "!" });
            }
            (_, Some((name, ms)), _) => {
                let standing = ServerStatus::Starting { until_ms: ms.parse().unwrap() };
                res.servers.push(Server::new(name, standing));
            }
            (.., Some((_, text))) => res.notices.push(text.to_owned()),
            _ => panic!("unknown word: {word}"),
        }
    }
    res
}

fn text(it: &str) -> Chunk {
    Chunk::Text { text: it.to_owned(), signature: None }
}

fn call(it: &str) -> Chunk {
    let (name, args) = it.split_once(' ').unwrap_or((it, "{}"));
    let (name, id) = name.split_once('#').map_or((name, None), |(name, id)| (name, Some(id.to_owned())));
    Chunk::Call { id, name: name.to_owned(), args: serde_json::from_str(args).unwrap_or_default(), signature: None }
}

fn shown(act: &Act) -> Option<String> {
    match act {
        Act::BeginStream { .. } => None,
        Act::Log(entry) => match &entry.fact {
            Fact::Event { event } => event_line(&event.kind),
            Fact::Attempt { model, attempt, .. } => Some(format!("attempt {attempt} of {model}")),
            Fact::AttemptFailed { abandoned, class, decision, .. } => {
                Some(format!("attempt failed ({class}: {decision}), abandoned: {abandoned}"))
            }
            Fact::Decision { decision, rule, .. } => Some(format!("{decision:?} by {rule}")),
            Fact::Answered { answer, .. } => Some(format!("answered {answer:?}")),
            Fact::Granted { grant, .. } => Some(format!("granted {grant:?}")),
            Fact::Discovered { files } => {
                let files = files.iter().map(|it| format!("{} = {}", it.path, it.text));
                Some(format!("discovered {}", files.collect::<Vec<_>>().join(", ")))
            }
            Fact::Checkpoint { call, changes, .. } => {
                Some(format!("checkpoint of {call:?}: {:?}", changes.as_ref().map(|it| it.n_files)))
            }
            Fact::Restored { undone, partial, files, .. } => {
                Some(format!("restored, {} undone, partial: {partial}: {:?}", undone.len(), files.restored))
            }
            other => Some(format!("{other:?}")),
        },
        Act::Do(id, effect) => Some(match effect {
            Effect::Generate { purpose, request } => {
                let what = if purpose.is_agent() { "" } else { purpose.as_str() };
                format!("#{} Generate {what} from {} turns", id.0, request.contents.len()).replace("  ", " ")
            }
            Effect::Resolve { call, .. } => format!("#{} Resolve {}", id.0, call.id),
            Effect::Check(it) => {
                let history = it.history.as_ref().map_or_else(String::new, |it| format!(" after {it}"));
                format!("#{} Check {} by {}{history}", id.0, it.call.id, it.checker.name)
            }
            Effect::Preview { call, .. } => format!("#{} Preview {}", id.0, call.id),
            Effect::Run { call, durable, hold, .. } => {
                format!("#{} Run {} durable: {durable}{}", id.0, call.id, hold.as_ref().map_or("", |_| ", held"))
            }
            Effect::OpenCheckpoints => format!("#{} OpenCheckpoints", id.0),
            Effect::Checkpoint { scope, .. } => format!("#{} Checkpoint of {scope:?}", id.0),
            Effect::CompareCheckpoint { .. } => format!("#{} Compare", id.0),
            Effect::Restore(it) => {
                let n = it.undo.len();
                format!("#{} Restore {n} checkpoint(s), on conflict {:?}, of {:?}", id.0, it.on_conflict, it.paths)
            }
            Effect::Diff { of, paths } => format!("#{} Diff of {} checkpoint(s), {paths:?}", id.0, of.len()),
            Effect::RewindConversation { .. } => "Rewind".to_owned(),
            Effect::AnswerRewind { prompt, result } => format!("Rewound {} {result:?}", prompt.0),
            Effect::ApplyTrust(choice) => format!("trust {}", choice.as_str()),
            Effect::AskUser(it) => match &it.about {
                QuestionTopic::Trust { form, .. } => format!("ask {}", form.in_words()),
                QuestionTopic::Fallback { form, .. } => format!("Ask {}: {}", it.id.0, form.in_words()),
                QuestionTopic::Confirmation(asked) => {
                    let why = asked.reason.as_ref().map_or_else(String::new, |it| format!(": {it}"));
                    format!("Ask {} about {} ({}){why}", it.id.0, asked.call, asked.title)
                }
                QuestionTopic::Form { call, form } => {
                    // Whose question it is matters where it is a server's.
                    let of = if form.fields.is_empty() { format!(" of {call:?}") } else { String::new() };
                    format!("Ask {}{of}: {}", it.id.0, form.message)
                }
                it @ QuestionTopic::Credential { .. } => super::tests_credentials::question_line(it),
                QuestionTopic::Link { message, url, elicitation, .. } => {
                    format!("Ask {} at {url} ({elicitation}): {message}", it.id.0)
                }
            },
            Effect::AnswerElicitation { elicitation, reply } => format!("Reply {elicitation} {reply:?}"),
            Effect::RenewCredential(it) => super::tests_credentials::order_line(*id, it),
            Effect::UpdateHealth { model, outage } => format!("health of {model}: {outage:?}"),
            Effect::WithdrawQuestion { question } => format!("Withdraw {}", question.0),
            Effect::HintAgents { content } => format!("Hint {}", joined_text(content)),
            Effect::SetTimer { at_ms } => format!("#{} Wake at {}", id.0, at_ms > &1_000),
            Effect::Abort { effect } => format!("Abort #{}", effect.0),
            Effect::ChooseAgent { agent } => format!("#{} ChooseAgent {agent}", id.0),
            Effect::ReadDefinitions => format!("#{} Agents", id.0),
            Effect::ChangeMemory(order) => format!("#{} {order:?}", id.0),
            Effect::ReadMemory => format!("#{} Remember", id.0),
            Effect::DiscoverMemory { places } => {
                format!("#{} Discover {}", id.0, places.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
            }
            Effect::WriteScratch { file, text } => format!("Stash {file}: {} bytes", text.len()),
            Effect::SaveGrant(it) => format!("Save {} {:?} {:?}", it.tool, it.prefixes, it.args_pattern),
            Effect::UpdateGrant { grant, holds } => format!("Keep {grant:?} {holds}"),
            Effect::AnswerPrompt { prompt, outcome, .. } => format!("Settle {} {outcome:?}", prompt.0),
            other => super::tests_hooks::shown(id.0, other),
        }),
    }
}

fn event_line(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::Message { role, content, cuts, .. } => {
            let said = |it: &Part| match it {
                Part::Thought { thought, .. } => thought.clone(),
                it => it.as_text().unwrap_or("?").to_owned(),
            };
            let text: Vec<String> = content.iter().map(said).collect();
            format!("{role:?}: {} {cuts:?}", text.join("+"))
        }
        EventKind::AgentStart {} => "start".to_owned(),
        EventKind::AgentEnd { reason, .. } => format!("end {reason:?}"),
        EventKind::ToolRequest { request_id, display, .. } => format!("call {request_id} ({})", display.title),
        EventKind::ToolUpdate { request_id, update } => match update {
            ToolProgress::Printed { text } => format!("{request_id} printed {text}"),
            ToolProgress::Attached { .. } => format!("{request_id} attached"),
            ToolProgress::Started { .. } => format!("{request_id} started"),
            ToolProgress::Activity { activity: it } => format!("{request_id} {:?} {}", it.kind, json!(it.data)),
            ToolProgress::Described { .. } => format!("{request_id} described"),
            ToolProgress::Proposed { .. } => format!("{request_id} proposed"),
            _ => format!("{request_id} {update:?}"),
        },
        EventKind::ToolResponse { request_id, content, error, .. } => {
            format!("{request_id} {}: {}", error.as_ref().map_or("done", |it| &it.kind), joined_text(content))
        }
        EventKind::Error { status, message, .. } => format!("error {status:?} {message}"),
        EventKind::Usage { usage, .. } => format!("usage {}", usage.total),
        EventKind::SessionUpdate { .. } => return None,
        other => format!("{other:?}"),
    })
}
