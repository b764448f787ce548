//! The session simulator: random inputs against a simulated world. One seed names a whole run.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Map, Value, json};

use super::{
    Session,
    tests_given::{finding, held_program, origin, refused_key, spec, unseen_shown},
};
use crate::{
    record::Record,
    step::{Act, Effect, Input, OptionValue, StepOutput, TrustForm, TrustPrompt},
};
use castor_base::{
    checkpoint::CheckpointResult,
    clock::Now,
    content::Part,
    elicitation::ElicitationRequest,
    event::EventKind,
    fallback::{Intent, Outage, OutageCause},
    hook::{HookEnd, HookReport},
    ids::{CallId, EffectId, ElicitationId, MessageId, PromptId, QuestionId},
    limits::{Caps, Limits},
    log::{Answer, Entry, Fact, Mode, ThoughtLevel, Tuning},
    memory::{MemoryFile, Tier as MemoryTier},
    model::{Chunk, Failure, FailureKind, Finish, Usage},
    path::AbsPath,
    question::Form,
    rewind,
    sampling::ServerAsk,
    terminal::{CommandReport, Screen},
    tool::{Access, BaseHash, Preview, TailCall, TargetPath, Targets, ToolError, ToolOutput},
    trust::TrustChoice,
};

const RUNS: u64 = 400;
const STEPS: u64 = 150;
const COMMANDS: &str = "/help|/clear|/permissions revoke all|/model nope|/mode autoEdit|/usr/bin|/memory|/compress|\
                        /undo|/redo|/rewind 1|/rewind 2 conversation|/diff|/checkpoints";

/// Replay equals the session after every step, also across rewinds.
#[test]
fn random_lives_keep_every_promise() {
    let (mut n_compressed, mut n_back) = (0, 0);
    for seed in 0..RUNS {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.something_happens());
        world.end();
        n_back += rewind::rewinds(&world.log).len();
        n_compressed += world.log.iter().filter(|it| matches!(it.fact, Fact::Compressed { .. })).count();
    }
    assert!(n_compressed > 2 && n_back > 100, "{n_compressed}, {n_back}: that is part of lives, too");
}

/// The same seed is the same life: that is what makes a failure worth reporting.
#[test]
fn a_seed_names_a_life() {
    let life = |seed| {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.something_happens());
        world.end();
        serde_json::to_string(&world.log).unwrap()
    };
    assert_eq!(life(7), life(7));
    assert_ne!(life(7), life(8));
}

pub(super) struct World {
    seed: u64,
    pub(super) n: u64,
    pub(super) session: Session,
    log: Vec<Entry>,
    /// Effects whose answer is still to come, wanted or not.
    pub(super) pending: Vec<(EffectId, Effect)>,
    questions: Vec<QuestionId>,
    /// Of servers, without an answer.
    elicitations: BTreeSet<ElicitationId>,
    n_elicitations: u64,
    pub(super) n_prompts: u64,
    pub(super) open_prompts: BTreeSet<PromptId>,
    open_calls: BTreeMap<CallId, ()>,
    seen_calls: BTreeSet<CallId>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut out = StepOutput::default();
        let session = Session::create(origin(), Arc::new(spec(seed)), Now { unix_ms: 1, seed }, &mut out);
        let mut res = Self {
            seed,
            n: 0,
            session,
            log: Vec::new(),
            pending: Vec::new(),
            questions: Vec::new(),
            elicitations: BTreeSet::new(),
            n_elicitations: 0,
            n_prompts: 0,
            open_prompts: BTreeSet::new(),
            open_calls: BTreeMap::new(),
            seen_calls: BTreeSet::new(),
        };
        res.take(out);
        res
    }

    pub(super) fn dice(&mut self, sides: u64) -> u64 {
        self.n += 1;
        Now { unix_ms: 0, seed: self.seed ^ 0x5eed }.random(self.n) % sides
    }

    fn something_happens(&mut self) {
        let input = match self.dice(20) {
            0..3 => {
                self.n_prompts += 1;
                let prompt = PromptId(self.n_prompts);
                self.open_prompts.insert(prompt);
                Input::Prompt { prompt, content: vec![Part::text(self.prompt_text(prompt))].into() }
            }
            3 if self.dice(3) == 0 => self.go_back(),
            3 => Input::Cancel,
            4 => Input::CancelPrompt(PromptId(self.dice(self.n_prompts + 1))),
            9 => self.server(),
            5 if self.dice(4) == 0 => self.rewind(),
            5 if self.dice(3) == 0 => self.doubt(),
            5 if self.dice(3) == 0 => self.state_order(),
            5 if self.dice(3) == 0 => {
                let outage = Outage { cause: OutageCause::Quota, until_ms: Some(1_000 + self.dice(STEPS)) };
                Input::Outages(BTreeMap::from([(["a", "b"][self.dice(2) as usize].to_owned(), outage)]))
            }
            5 if self.dice(3) == 0 => Input::BackgroundResult(CommandReport::default()),
            5 => self.choice(),
            6..9 if !self.questions.is_empty() => {
                let at = self.dice(self.questions.len() as u64) as usize;
                let answer = self.user();
                Input::Answered { question: self.questions[at], answer }
            }
            _ if !self.pending.is_empty() => {
                let at = self.dice(self.pending.len() as u64) as usize;
                // What has a limit in time mostly keeps it.
                if self.dice(8) > 0 && matches!(self.pending[at].1, Effect::SetTimer { .. }) {
                    return;
                }
                self.answer(at)
            }
            _ => return,
        };
        self.step(input);
    }

    /// To any message of the user, also one that was taken away before, and while a turn runs.
    fn rewind(&mut self) -> Input {
        if let Some(at) = self.log_to_read() {
            return self.answer(at);
        }
        let prompts: Vec<&MessageId> = self.log.iter().filter_map(rewind::user_message).collect();
        let Some(last) = prompts.len().checked_sub(1) else { return Input::Cancel };
        let prompts: Vec<MessageId> = prompts.into_iter().cloned().collect();
        // Mostly not far.
        let back = self.dice(prompts.len() as u64).min(self.dice(6)) as usize;
        Input::RewindConversation { to: prompts[last - back].clone(), log: self.log.as_slice().into() }
    }

    /// Until it is read, the conversation has not gone back.
    fn log_to_read(&self) -> Option<usize> {
        self.pending.iter().position(|(_, it)| matches!(it, Effect::RewindConversation { .. }))
    }

    fn choice(&mut self) -> Input {
        let tuning = Tuning { thinking: ThoughtLevel::ALL[self.dice(4) as usize], thoughts: self.dice(2) == 0 };
        Input::SetOption(match self.dice(4) {
            0 => OptionValue::Mode(Mode::OFFERED[self.dice(4) as usize]),
            1 => OptionValue::Model(["a", "b"][self.dice(2) as usize].to_owned()),
            2 => OptionValue::Limits(Some(Limits {
                turn: Caps { seconds: Some(1 + self.dice(2)), ..Caps::default() },
                ..Limits::default()
            })),
            _ => OptionValue::Tuning(tuning),
        })
    }

    /// A server asks, for a call that may be over by now; or takes its question back.
    fn server(&mut self) -> Input {
        if let Some(id) = self.elicitations.first().copied().filter(|_| self.dice(4) == 0) {
            self.elicitations.remove(&id);
            return Input::ElicitationWithdrawn { elicitation: id };
        }
        self.n_elicitations += 1;
        let id = ElicitationId(self.n_elicitations);
        self.elicitations.insert(id);
        let runs = self.pending.iter().filter(|(_, it)| matches!(it, Effect::Run { .. })).map(|(id, _)| *id);
        let calls: Vec<EffectId> = runs.take(2).collect();
        let (message, fields) = ("Well?".to_owned(), Vec::new());
        let page =
            ElicitationRequest::Page { message: String::new(), url: "https://a.b".to_owned(), id: "p".to_owned() };
        let wanted = if self.dice(2) == 0 { page } else { ElicitationRequest::Form(Form { message, fields }) };
        Input::ElicitationRequested { elicitation: id, calls, request: ServerAsk::User(wanted) }
    }

    fn doubt(&mut self) -> Input {
        let form = Form { message: "Trust it?".to_owned(), fields: Vec::new() };
        Input::TrustPrompt(if self.dice(3) == 0 {
            TrustPrompt::Tell("no".to_owned())
        } else {
            TrustPrompt::Ask(TrustForm { form: Arc::new(form), diffs: Arc::default() })
        })
    }

    fn prompt_text(&mut self, prompt: PromptId) -> String {
        match self.dice(4) {
            0 => COMMANDS.split('|').nth(self.dice(14) as usize).unwrap().to_owned(),
            1 => format!("prompt {prompt:?} {}", "and so on ".repeat(100)),
            _ => format!("prompt {prompt:?}"),
        }
    }

    /// Whatever the question was: clients may say anything.
    fn user(&mut self) -> Answer {
        let field = |name: &str, value: &str| Map::from_iter([(name.to_owned(), json!(value))]);
        match self.dice(17) {
            16 => Answer::AllowEdited { args: field("file_path", "other.txt") },
            12.. => Answer::Accepted { content: field(Intent::FIELD, Intent::ALL[self.dice(5) as usize].as_str()) },
            10 => Answer::Accepted { content: field(TrustChoice::FIELD, TrustChoice::Folder.as_str()) },
            11 => Answer::Accepted { content: field(TrustChoice::FIELD, TrustChoice::Never.as_str()) },
            0 => Answer::AllowOnce,
            1 => Answer::AllowSession,
            2 => Answer::Reject,
            3 => Answer::Unable,
            4 => Answer::Cancelled,
            5 => Answer::Declined,
            6 => Answer::Dismissed,
            7 => Answer::Unfit { why: "odd".to_owned() },
            8 => Answer::InText,
            _ => Answer::Accepted { content: Map::from_iter([("0".to_owned(), json!(true))]) },
        }
    }

    /// An answer to a pending effect: often good, sometimes not, sometimes only a part of it.
    pub(super) fn answer(&mut self, at: usize) -> Input {
        let (effect, what) = self.pending[at].clone();
        let partial = matches!(what, Effect::Generate { .. } | Effect::Run { .. }) && self.dice(3) > 0;
        if !partial {
            self.pending.swap_remove(at);
        }
        match what {
            Effect::Generate { purpose, .. } if partial => {
                let whole = vec![text("text "), Chunk::Finish(Finish::Stop)];
                Input::Chunks { effect, chunks: if purpose.is_agent() { self.chunks() } else { whole } }
            }
            Effect::Generate { request, .. } => {
                assert!(!request.contents.is_empty(), "a request without contents");
                Input::Generated { effect, result: self.model_end() }
            }
            Effect::Resolve { .. } => Input::Resolved { effect, result: self.targets() },
            Effect::Check(_) | Effect::CheckByClient(_) => Input::Checked { effect, finding: finding(self.dice(4)) },
            Effect::Preview { .. } => {
                let (base, failed) = (Some(BaseHash(None)), ToolError::new("file_not_found", "gone"));
                let result = if self.dice(5) == 0 { Err(failed) } else { Ok(Preview { display: None, base }) };
                Input::Previewed { effect, result }
            }
            Effect::Run { .. } if partial && self.dice(4) == 0 => {
                let screen = Screen::Drawn { cwd: AbsPath::new("/w").unwrap() };
                Input::TerminalAttached { effect, screen }
            }
            Effect::Run { .. } if partial => Input::OutputPrinted { effect, text: "printed\n".to_owned() },
            Effect::Run { hold, .. } => {
                let changes = hold.map(|_| self.changes());
                Input::RunEnded { effect, output: Box::new(self.output()), changes }
            }
            Effect::OpenCheckpoints | Effect::Checkpoint { .. } => {
                let result =
                    if self.dice(5) == 0 { Err("disk full".to_owned()) } else { Ok(CheckpointResult::default()) };
                Input::Checkpointed { effect, result }
            }
            Effect::CompareCheckpoint { .. } => Input::Compared { effect, changes: self.changes() },
            Effect::Restore(order) => Input::Restored { effect, result: self.restored(&order) },
            Effect::ShowUnseen { roots } => unseen_shown(effect, roots, self.dice(3)),
            Effect::LookAt { .. } | Effect::Diff { .. } => Input::Diffed { effect, result: Ok("-a\n+b".to_owned()) },
            Effect::RewindConversation { to } => Input::RewindConversation { to, log: self.log.clone().into() },
            Effect::SetTimer { .. } => Input::TimerFired { effect },
            Effect::ApplyTrust(_) => {
                let result = if self.dice(4) == 0 { Err("disk full".to_owned()) } else { Ok(()) };
                Input::TrustApplied { effect, result }
            }
            Effect::ReadMemory | Effect::DiscoverMemory { .. } => {
                let name = if matches!(what, Effect::ReadMemory) { "/w/GEMINI.md" } else { "/w/a/GEMINI.md" };
                let (path, tier) = (AbsPath::new(name).unwrap(), MemoryTier::Project);
                let file = |text: &str| MemoryFile { path: path.clone(), tier, text: text.to_owned() };
                let files: [Result<Vec<MemoryFile>, String>; 4] =
                    [Ok(vec![]), Ok(vec![file("a")]), Ok(vec![file("b")]), Err("no".to_owned())];
                let files = files[self.dice(4) as usize].clone().map(Into::into);
                Input::MemoryRead { effect, files, faults: vec!["wrong".to_owned(); self.dice(2) as usize] }
            }
            Effect::ChooseAgent { .. } => Input::AgentChosen { effect },
            Effect::RenewCredential(_) => Input::CredentialRenewed { effect, changed: self.dice(2) == 0 },
            Effect::ManageServer(order) => {
                Input::ServerManaged { effect, order: order.clone(), result: Ok("Done".to_owned()) }
            }
            Effect::ChangeMemory(_) => {
                let report = if self.dice(2) == 0 { Ok("Kept.".to_owned()) } else { Err("no".to_owned()) };
                Input::MemoryChanged { effect, report }
            }
            Effect::ReadDefinitions => {
                Input::DefinitionsRead { effect: Some(effect), agents: Default::default(), prompts: Default::default() }
            }
            Effect::RunHook(_) => Input::HookFinished { effect, report: Box::new(self.hook()) },
            Effect::SaveState { delta, .. } => self.saved(effect, &delta),
            other => unreachable!("{other:?}"),
        }
    }

    fn hook(&mut self) -> HookReport {
        let specific = |it: Value| json!({ "hookSpecificOutput": it });
        let answer = json!({"llm_response": {"candidates": [{"content": {"parts": ["other"]}}]}});
        let said = match self.dice(16) {
            0 => json!({"decision": "block", "reason": "r"}),
            1 => json!({"decision": "ask", "reason": "r"}),
            2 => json!({"continue": false, "stopReason": "r"}),
            3 => specific(json!({"additionalContext": "more"})),
            4 => specific(json!({"tool_input": {"a": 1}})),
            5 => specific(json!({"llm_request": {"model": "b", "messages": [{"role": "user", "content": "other"}]}})),
            6 => json!({"decision": "block", "hookSpecificOutput": answer}),
            7 => specific(answer),
            8 => specific(json!({"toolConfig": {"mode": "NONE"}})),
            9 => specific(json!({"clearContext": true})),
            10 => specific(json!({"tailToolCallRequest": {"name": "read"}})),
            13 => specific(json!({"stateDelta": {"a": 1, "user:b": null}})),
            11 => return HookReport::from_end(HookEnd::TimedOut),
            12 => return HookReport::from_end(HookEnd::Exit(2)),
            _ => json!({}),
        };
        let held = (self.dice(8) == 0).then(|| held_program(self.dice(20)));
        HookReport { stdout: said.to_string(), held, ..HookReport::from_end(HookEnd::Exit(0)) }
    }

    fn chunks(&mut self) -> Vec<Chunk> {
        let n = 1 + self.dice(4);
        (0..n).map(|_| self.chunk()).collect()
    }

    fn chunk(&mut self) -> Chunk {
        match self.dice(8) {
            0 => Chunk::Thought { text: "hm ".to_owned(), signature: None },
            1 => Chunk::Text { text: "signed".to_owned(), signature: Some("sig".into()) },
            2 => Chunk::Usage(Usage { input: 5, output: 2, total: 7, ..Usage::default() }),
            3 => Chunk::Finish(
                [Finish::Stop, Finish::MaxTokens, Finish::Safety("SAFETY".to_owned())]
                    [self.dice(6).saturating_sub(3) as usize]
                    .clone(),
            ),
            4 | 5 => {
                let names = ["read", "write", "write_todos", "no_such_tool", "", "ask_user", "ask_user"];
                let question = json!({"questions": [{"question": "Sure?", "type": "yesno"}], "todos": []});
                let args =
                    [json!({}), json!({"wait_for_previous": true}), json!("not an object"), question.clone(), question];
                let id = (self.dice(2) == 0).then(|| format!("c{}", self.dice(5)));
                let name = names[self.dice(7) as usize].to_owned();
                Chunk::Call { id, name, args: args[self.dice(5) as usize].clone(), signature: None }
            }
            _ => text("text "),
        }
    }

    fn model_end(&mut self) -> Result<(), Failure> {
        let limit =
            |ms| Failure { status: Some(429), retry_after_ms: Some(ms), ..Failure::new(FailureKind::Status, "limit") };
        let long = "prompt is too long: 9000 tokens > 8000 maximum";
        match self.dice(10) {
            9 => Err(Failure { status: Some(400), ..Failure::new(FailureKind::Status, long) }),
            6 => Err(limit(10)),
            7 => Err(limit(400_000)),
            8 => Err(Failure { status: Some(404), ..Failure::new(FailureKind::Status, "gone") }),
            0 => Err(Failure { status: Some(503), ..Failure::new(FailureKind::Status, "busy") }),
            1 => Err(Failure::new(FailureKind::Stream, "reset")),
            2 => Err(refused_key()),
            _ => Ok(()),
        }
    }

    fn targets(&mut self) -> Result<Targets, ToolError> {
        if self.dice(6) == 0 {
            return Err(ToolError::new("invalid_tool_params", "bad"));
        }
        let path = AbsPath::new("/w/file").unwrap();
        let (in_roots, temporary, hidden) = (self.dice(3) > 0, self.dice(5) == 0, self.dice(5) == 0);
        let target = TargetPath { in_roots, temporary, hidden, ..TargetPath::in_root(path, Access::Write) };
        Ok(Targets { title: "title".to_owned(), paths: vec![target], ..Targets::default() })
    }

    fn output(&mut self) -> ToolOutput {
        match self.dice(8) {
            0 => ToolOutput::failed(ToolError::new("no_space_left", "disk full")),
            1 => ToolOutput::failed(ToolError::new("execution_failed", "no")),
            2 => ToolOutput {
                tail_call: Some(TailCall { name: "read".to_owned(), args: json!({}) }),
                ..ToolOutput::default()
            },
            _ => ToolOutput::text("output"),
        }
    }

    pub(super) fn step(&mut self, input: Input) {
        self.n += 1;
        let now = Now { unix_ms: 1_000 + self.n, seed: self.seed.wrapping_mul(31).wrapping_add(self.n) };
        let mut out = StepOutput::default();
        self.session.step(input, now, &mut out);
        self.take(out);
    }

    /// What the loop does with acts, and what it may rely on.
    fn take(&mut self, out: StepOutput) {
        for act in out.acts {
            match act {
                Act::Log(entry) => self.fact(entry),
                Act::Do(
                    _,
                    Effect::AnswerPrompt { prompt, .. }
                    | Effect::AnswerRewind { prompt, .. }
                    | Effect::AnswerState { prompt, .. },
                ) => {
                    assert!(self.open_prompts.remove(&prompt), "{prompt:?} was answered twice, or never asked");
                }
                Act::Do(_, Effect::AnswerElicitation { elicitation: it, .. }) => {
                    assert!(self.elicitations.remove(&it), "{it} was answered twice, or taken back before");
                }
                Act::Do(_, Effect::AskUser(question)) => self.questions.push(question.id),
                Act::Do(_, Effect::WithdrawQuestion { question }) => self.questions.retain(|it| *it != question),
                Act::Do(_, Effect::Abort { effect }) => {
                    assert!(self.pending.iter().any(|(id, _)| *id == effect), "{effect:?} aborted after its end");
                }
                Act::Do(
                    _,
                    Effect::UpdateHealth { .. }
                    | Effect::RememberRefusal { .. }
                    | Effect::TellHook(_)
                    | Effect::WidenProgram { .. },
                ) => (),
                Act::Do(id, effect) => self.pending.push((id, effect)),
                Act::BeginStream { prompt, .. } => assert!(self.open_prompts.contains(&prompt), "{prompt:?} is over"),
            }
        }
        let replayed = Record::replay(&self.log).unwrap();
        assert_eq!(&replayed, self.session.record(), "seed {}: replay differs from the session", self.seed);
    }

    fn fact(&mut self, entry: Entry) {
        if let Fact::Event { event } = &entry.fact {
            match &event.kind {
                EventKind::AgentStart {} => {
                    assert!(self.log_to_read().is_none(), "seed {}: a prompt went ahead of a rewind", self.seed);
                }
                EventKind::ToolRequest { request_id, .. } => {
                    assert!(self.seen_calls.insert(request_id.clone()), "a call id was used twice");
                    self.open_calls.insert(request_id.clone(), ());
                }
                EventKind::ToolUpdate { request_id, .. } => {
                    assert!(self.open_calls.contains_key(request_id), "an update after the end of a call");
                }
                EventKind::ToolResponse { request_id, .. } => {
                    assert!(self.open_calls.remove(request_id).is_some(), "a call ended twice");
                }
                EventKind::AgentEnd { .. } => assert!(self.open_calls.is_empty(), "a turn ended before its calls"),
                _ => (),
            }
        }
        self.log.push(entry);
    }

    fn end(&mut self) {
        while let Some(at) = self.log_to_read() {
            let log = self.answer(at);
            self.step(log);
        }
        self.save_all();
        self.step(Input::Cancel);
        assert!(self.open_prompts.is_empty(), "seed {}: {:?} were never answered", self.seed, self.open_prompts);
        assert!(self.open_calls.is_empty() && !self.session.is_busy());
        assert!(self.elicitations.is_empty(), "seed {}: {:?} were never answered", self.seed, self.elicitations);
        let remaining: Vec<Entry> = rewind::remaining_entries(&self.log).cloned().collect();
        let remaining = Record::replay(&remaining).unwrap();
        assert_eq!(remaining.turns(), self.session.record().turns(), "seed {}: as if it had not been said", self.seed);
        let mut ids = BTreeSet::new();
        for entry in &self.log {
            if let Fact::Event { event } = &entry.fact {
                assert!(ids.insert(event.id.clone()), "seed {}: event id {} twice", self.seed, event.id);
            }
        }
    }
}

fn text(it: &str) -> Chunk {
    Chunk::Text { text: it.to_owned(), signature: None }
}
