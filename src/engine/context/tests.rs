//! Request building over records that grow: processors, masks and budgets.

use std::sync::Arc;

use serde_json::json;

use super::{
    Instructions, PROCESSORS, RequestMaterials, RequestNeed, RetryAdvice, SessionEnvironment, build, compression,
    distillation, tokens,
};
use crate::testing::own_tools;
use crate::{
    record::{Record, SessionOrigin},
    routing::model_limits::USUAL_BODY,
};
use castor_base::{
    content::Part,
    event::{AgentEvent, EventKind, Speaker, ToolDisplay},
    history::{Role, Turn, TurnPart},
    ids::{CallId, MessageId, SessionId, StreamId},
    left_out::LeftOut,
    log::{Entry, Fact, Mode, Principal},
    model::ModelRequest,
    model_table::ModelTable,
    path::AbsPath,
    tool::{CallResult, ToolKind},
    tool_offer::ToolOffer,
};

#[test]
fn the_order_of_processors_is_this() {
    let names: Vec<&str> = PROCESSORS.iter().map(|(name, _)| *name).collect();
    let want = [
        "instructions",
        "memory",
        "planning",
        "again",
        "distillation",
        "compression",
        "masking",
        "bytes",
        "budget",
        "history",
        "hardening",
        "parameters",
    ];
    assert_eq!(names, want);
}

pub(super) struct Talk {
    pub record: Record,
    pub(super) n: u64,
    pub compress_at: Option<u64>,
    pub distill: Option<distillation::DistillationLimits>,
    pub body_limit: u64,
}

impl Talk {
    pub(super) fn new() -> Self {
        let cwd = AbsPath::new("/w").unwrap();
        let (session, roots) = (SessionId::from("s"), vec![cwd.clone()]);
        let origin = SessionOrigin {
            session,
            cwd,
            roots,
            mode: Mode::Default,
            model: "m".into(),
            principal: Principal::Root,
            child_of: None,
            thread: None,
            user: None,
        };
        Self { record: Record::new(origin), n: 0, compress_at: None, distill: None, body_limit: USUAL_BODY }
    }

    pub(super) fn log(&mut self, fact: Fact) {
        self.record.apply(&Entry { at: 0, fact });
    }

    pub(super) fn event(&mut self, kind: EventKind) {
        self.n += 1;
        let (id, stream_id) = (self.n.to_string(), StreamId::from("s"));
        self.log(Fact::Event { event: AgentEvent::of_main(id, stream_id, 0, kind) });
    }

    pub(super) fn says(&mut self, role: Speaker, text: &str) {
        let content = vec![Part::text(text)];
        self.event(EventKind::Message { role, message_id: MessageId::from("m"), content, cuts: Vec::new() });
    }

    /// A prompt, a call with that result, an answer.
    pub(super) fn round(&mut self, tool: &str, result: &str) {
        self.says(Speaker::User, "prompt");
        self.called(tool, result);
        self.log(Fact::Attempt { model: "m".to_owned(), attempt: 1, tokens: 0, why: String::new() });
        self.says(Speaker::Agent, "answer");
    }

    pub(super) fn called(&mut self, tool: &str, result: &str) {
        self.gave(tool, vec![Part::text(result)]);
    }

    pub(super) fn gave(&mut self, tool: &str, content: Vec<Part>) {
        self.log(Fact::Attempt { model: "m".to_owned(), attempt: 1, tokens: 0, why: String::new() });
        let (request_id, name) = (CallId::from(format!("c{}", self.n)), tool.to_owned());
        let display = ToolDisplay { title: String::new(), kind: ToolKind::Other, locations: Vec::new() };
        let args = json!({});
        self.event(EventKind::ToolRequest {
            request_id: request_id.clone(),
            name: name.clone(),
            args,
            display,
            signature: None,
        });
        self.event(EventKind::ToolResponse {
            request_id,
            name,
            content,
            display: None,
            summary: None,
            error: None,
            data: serde_json::Value::Null,
            seen: None,
        });
    }

    fn build(&self, window: u64) -> Result<ModelRequest, RequestNeed> {
        let around = SessionEnvironment {
            cwd: AbsPath::new("/w").unwrap(),
            roots: Vec::new(),
            platform: "linux",
            made_on: "2026-01-31".to_owned(),
            interactive: true,
            tree: None,
        };
        let (instructions, tools) = (Instructions::new(&around), ToolOffer::default());
        let scratch = &AbsPath::new("/scratch").unwrap();
        let (record, again, instructions, tools) = (&self.record, None::<RetryAdvice>, &instructions, &tools);
        let (compress_at, distill) = (self.compress_at, self.distill);
        build(
            Arc::from("m"),
            RequestMaterials {
                record,
                instructions,
                tools,
                known_tools: own_tools(),
                retry_advice: again,
                models: &ModelTable::built_in(),
                window,
                body_limit: self.body_limit,
                scratch,
                compress_at,
                distill,
            },
        )
    }

    /// As a turn does it; the needs that were met, in words.
    pub(super) fn settle(&mut self, window: u64) -> (Vec<String>, Result<ModelRequest, RequestNeed>) {
        let mut met = Vec::new();
        loop {
            match self.build(window) {
                Err(RequestNeed::Mask(masks)) => {
                    met.push(format!("masks {}", masks.len()));
                    self.log(Fact::Masked { masks });
                }
                Err(RequestNeed::LeaveOutMedia(media)) => {
                    met.push(format!("leaves out {}", media.len()));
                    self.log(Fact::LeftOut { model: "m".to_owned(), part: LeftOut::Media(media) });
                }
                Err(RequestNeed::Distill(call)) => {
                    met.push("distills".to_owned());
                    let results = self.record.turns().iter().flat_map(|it| it.parts()).filter_map(|it| match it {
                        TurnPart::Result(it) => Some(it),
                        _ => None,
                    });
                    let result = results.into_iter().find(|it| it.id == call).unwrap();
                    let scratch = AbsPath::new("/scratch").unwrap();
                    let mask =
                        distillation::distill_result(result, self.distill.unwrap(), &scratch, Some("- a fact\n"));
                    self.log(Fact::Masked { masks: vec![mask] });
                }
                Err(RequestNeed::Compress { n_turns, size }) => {
                    met.push(format!("compresses {n_turns}"));
                    let summary = compression::replacement_text(self.record.turns(), n_turns, "<state_snapshot/>");
                    let tokens = size - compression::tokens_saved(self.record.turns(), n_turns, &summary);
                    self.log(Fact::Compressed { turns: n_turns as u64, summary, tokens });
                }
                Err(RequestNeed::Replace { n_turns, summary }) => {
                    met.push(format!("replaces {n_turns}"));
                    self.log(Fact::Compressed { turns: n_turns as u64, summary, tokens: 0 });
                }
                other => return (met, other),
            }
            assert!(met.len() < 100, "{met:?}");
        }
    }

    fn text(&self) -> String {
        format!("{:?}", self.record.turns())
    }

    /// Without the data of media.
    pub(super) fn texts(&self) -> String {
        let contents = self.record.turns().iter().flat_map(|it| it.parts()).flat_map(|it| match it {
            TurnPart::Content(it) => vec![it],
            TurnPart::Result(it) => it.content.iter().collect(),
            TurnPart::Call { .. } => Vec::new(),
        });
        contents.filter_map(Part::as_text).collect::<Vec<_>>().join("\n")
    }
}

/// Ten thousand tokens.
pub(super) fn long() -> String {
    "line of output\n".repeat(2_700)
}

const WIDE: u64 = 1_000_000;

#[test]
fn old_outputs_are_masked_at_once_and_for_good() {
    let mut talk = Talk::new();
    (0..8).for_each(|_| talk.round("read_file", &long()));
    // The sizes are a little above: five are protected, the sixth crosses the line; two and the one that crosses are
    // just over the least that is worth it.
    let before: Vec<Arc<Turn>> = talk.record.turns().to_vec();
    assert_eq!(talk.settle(WIDE).0, ["masks 4"]);
    assert_eq!(talk.settle(WIDE).0, Vec::<String>::new(), "it is done");
    let changed = before.iter().zip(talk.record.turns()).filter(|(old, new)| !Arc::ptr_eq(old, new)).count();
    assert_eq!(changed, 4, "all other turns are the very same");
    let text = talk.text();
    assert_eq!(text.matches("Full output available at: /scratch/masked-").count(), 4);
    let masked: Vec<Arc<Turn>> = talk.record.turns().to_vec();
    talk.round("read_file", &long());
    assert_eq!(talk.settle(WIDE).0, Vec::<String>::new(), "what is masked does not count, and nothing comes back");
    assert!(masked.iter().zip(talk.record.turns()).all(|(old, new)| Arc::ptr_eq(old, new)));
}

#[test]
fn user_answers_and_small_outputs_stay_unmasked() {
    let mut talk = Talk::new();
    (0..12).for_each(|_| talk.round("ask_user", &long()));
    assert_eq!(talk.settle(WIDE).0, Vec::<String>::new(), "answers of the user");
    let mut talk = Talk::new();
    (0..7).for_each(|_| talk.round("read_file", &long()));
    assert_eq!(talk.settle(WIDE).0, Vec::<String>::new(), "too little");
    let mut talk = Talk::new();
    (0..40).for_each(|_| talk.round("read_file", "short"));
    (0..8).for_each(|_| talk.round("run_shell_command", &long()));
    assert_eq!(talk.settle(WIDE).0, ["masks 4"], "where nothing is saved nothing is done");
    assert_eq!(talk.text().matches("\"short\"").count(), 40);
}

#[test]
fn turns_without_content_are_not_sent() {
    let mut talk = Talk::new();
    let thought = Part::Thought { thought: "Hm.".to_owned(), signature: None };
    for (content, is_sent) in [(vec![thought.clone()], false), (vec![thought, Part::text("Yes.")], true)] {
        talk.says(Speaker::User, "prompt");
        talk.log(Fact::Attempt { model: "m".to_owned(), attempt: 1, tokens: 0, why: String::new() });
        let (role, message_id) = (Speaker::Agent, MessageId::from("m"));
        talk.event(EventKind::Message { role, message_id, content, cuts: Vec::new() });
        let answers = |turns: &[Arc<Turn>]| turns.iter().filter(|it| it.role() == Role::Model).count();
        let request = talk.build(WIDE).unwrap();
        assert_eq!(answers(&request.contents), usize::from(is_sent));
    }
    assert_eq!(talk.record.turns().len(), 4, "the record keeps it");
}

#[test]
fn masked_output_keeps_a_preview() {
    let mut talk = Talk::new();
    let lines: String = (0..8_000).map(|n| format!("line {n}\n")).collect();
    let image = Part::Media { mime: "image/png".to_owned(), data: "AAAA".into(), uri: None };
    talk.says(Speaker::User, "prompt");
    talk.gave("run_shell_command", vec![Part::text(lines.clone()), image.clone()]);
    talk.gave("read_file", vec![Part::text(lines)]);
    (0..8).for_each(|_| talk.round("read_file", &long()));
    assert_eq!(talk.settle(WIDE).0, ["masks 6"]);
    let results: Vec<&CallResult> = (talk.record.turns().iter().flat_map(|it| it.parts()))
        .filter_map(|it| if let TurnPart::Result(it) = it { Some(it) } else { None })
        .collect();
    let [command, file] = [0, 1].map(|it| results[it].content[0].as_text().unwrap());
    let ten = |from: usize| (from..from + 10).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
    let edges = format!("<tool_output_masked>\n{}\n... [TRUNCATED] ...\n{}\n\n", ten(0), ten(7_990));
    assert!(command.starts_with(&edges), "of a command whole lines: {command}");
    assert_eq!(results[0].content[1..], [image], "what is no text stays");
    assert!(file.starts_with("<tool_output_masked>\nline 0\n") && file.len() < 700, "of the others the edges: {file}");
}

#[test]
fn no_request_is_larger_than_what_the_model_reads() {
    let mut talk = Talk::new();
    talk.round("read_file", &long());
    talk.round("read_file", &long());
    let (met, request) = talk.settle(20_000);
    assert_eq!(met, ["masks 1"], "the oldest only");
    assert!(size(&request.unwrap()) <= 18_000);

    talk.says(Speaker::User, &"words ".repeat(8_000));
    talk.log(Fact::Attempt { model: "m".to_owned(), attempt: 1, tokens: 0, why: String::new() });
    talk.says(Speaker::Agent, "answer");
    talk.says(Speaker::User, &"words ".repeat(8_000));
    let (met, request) = talk.settle(20_000);
    assert_eq!(met, ["masks 1", "replaces 10"], "then the turns before the last prompt");
    let request = request.unwrap();
    assert!(size(&request) <= 18_000 && request.contents.len() == 3);

    talk.says(Speaker::User, &"words ".repeat(16_000));
    let (met, request) = talk.settle(20_000);
    assert!(
        matches!(request, Err(RequestNeed::TooLarge { size, window: 20_000 }) if size > 20_000),
        "{met:?} {request:?}"
    );
    // What did not fit is not in the way of what does.
    talk.says(Speaker::User, "a word");
    let (met, request) = talk.settle(20_000);
    assert!(request.is_ok_and(|it| size(&it) < 2_000), "{met:?}");
}

#[test]
fn a_result_that_does_not_fit_is_masked_in_its_own_turn() {
    let mut talk = Talk::new();
    talk.says(Speaker::User, "prompt");
    talk.called("read_file", &long());
    let (met, request) = talk.settle(8_000);
    assert_eq!(met, ["masks 1"]);
    assert!(size(&request.unwrap()) < 2_000);
}

pub(super) fn size(request: &ModelRequest) -> u64 {
    tokens::of_frame(request) + request.contents.iter().map(|it| tokens::of_turn(it)).sum::<u64>()
}
