//! Router decisions: how long one holds, and that a classifier's question leaves nothing open.

use std::{collections::BTreeMap, sync::Arc};

use super::{SessionScratch, Turn, TurnContext, endings::Cause, tests::spec};
use crate::{
    record::{Record, SerialNumbers, SessionOrigin, Step},
    routing::aliases::Aliases,
    step::{Act, Effect, Input, StepOutput},
    turn::Spec,
};
use castor_base::{
    clock::Now,
    content::Part,
    ids::{EffectId, PromptId, SessionId},
    limits::Limits,
    log::{Fact, Mode, Principal},
    model::{Chunk, Finish},
    model_table::ModelTable,
    path::AbsPath,
};

const PRO: &str = "gemini-4-argon";
const FLASH: &str = "gemini-3.8-flash";
const JUDGE: &str = "gemini-3.5-flash-lite";

struct Talk {
    record: Record,
    serial: SerialNumbers,
    spec: Spec,
    kept: SessionScratch,
    turn: Option<Turn>,
    /// Requests that are open: the model and the effect, and timers.
    open: Vec<(String, EffectId)>,
}

impl Talk {
    fn begin() -> Self {
        let cwd = AbsPath::new("/w").unwrap();
        let (session, roots, model) = (SessionId::from("s"), vec![cwd.clone()], "auto".to_owned());
        let origin = SessionOrigin {
            session,
            cwd,
            roots,
            mode: Mode::Default,
            model,
            principal: Principal::Root,
            child_of: None,
            thread: None,
            user: None,
        };
        let mut spec = spec("");
        spec.aliases = Arc::new(Aliases::new(BTreeMap::new(), Vec::new(), ModelTable::built_in()).0);
        spec.bounds.limits = Limits::parse("requests=100").unwrap();
        let record = Record::new(origin);
        let (serial, kept) = (SerialNumbers::default(), SessionScratch::default());
        Self { record, serial, spec, kept, turn: None, open: Vec::new() }
    }

    /// The models that are asked by what happens, and `abort` for what is not waited for any more.
    fn step(&mut self, act: impl FnOnce(&mut Option<Turn>, &mut TurnContext<'_, '_>)) -> Vec<String> {
        let mut out = StepOutput::default();
        let mut step = Step::new(&mut self.record, &mut self.serial, Now { unix_ms: 1_000, seed: 0 }, &mut out);
        act(&mut self.turn, &mut TurnContext { step: &mut step, spec: &self.spec, scratch: &mut self.kept });
        let mut said = Vec::new();
        for act in out.acts {
            match act {
                Act::Do(id, Effect::Generate { request, .. }) => {
                    said.push(request.model.to_string());
                    self.open.push((request.model.to_string(), id));
                }
                Act::Do(_, Effect::Abort { effect }) => {
                    self.open.retain(|(_, it)| *it != effect);
                    said.push("abort".to_owned());
                }
                _ => (),
            }
        }
        said
    }

    fn prompt(&mut self) -> Vec<String> {
        self.step(|turn, cx| {
            *turn = Some(Turn::begin(cx, PromptId(1), vec![Part::text("go")].into(), None));
        })
    }

    /// The request that is open is answered with this.
    fn answer(&mut self, chunk: Chunk) -> Vec<String> {
        let (_, effect) = self.open.pop().unwrap();
        self.step(|turn, cx| {
            let turn = turn.as_mut().unwrap();
            let chunks = vec![chunk, Chunk::Finish(Finish::Stop)];
            turn.step(cx, Input::Chunks { effect, chunks });
            turn.step(cx, Input::Generated { effect, result: Ok(()) });
        })
    }

    fn score(&mut self, it: u32) -> Vec<String> {
        let mut said = self.answer(text(&format!(r#"{{"complexity_score": {it}}}"#)));
        // The judge's timer.
        said.retain(|it| it != "abort");
        said
    }

    /// The model calls a tool that there is not: it is asked again with that.
    fn call(&mut self) -> Vec<String> {
        let args = serde_json::json!({});
        self.answer(Chunk::Call { id: None, name: "no_such_tool".to_owned(), args, signature: None })
    }

    fn log(&mut self, fact: Fact) {
        self.step(|_, cx| cx.step.log(fact));
    }
}

fn text(it: &str) -> Chunk {
    Chunk::Text { text: it.to_owned(), signature: None }
}

#[test]
fn it_holds_until_a_named_point() {
    let mut talk = Talk::begin();
    assert_eq!(talk.prompt(), [JUDGE]);
    assert_eq!(talk.score(10), [FLASH]);
    assert_eq!(talk.call(), [FLASH], "for the calls that follow");
    talk.log(Fact::Mode { mode: Mode::AutoEdit });
    assert_eq!(talk.call(), [FLASH], "edits without questions are the same work");
    // Results of tools are nothing to judge: the default has its say.
    talk.log(Fact::Mode { mode: Mode::Yolo });
    assert_eq!(talk.call(), [PRO], "another kind of mode");
    talk.log(Fact::Model { model: "auto-gemini-2.5".to_owned(), window: 0 });
    assert_eq!(talk.call(), ["gemini-3.8-flash"], "another model was chosen");
    assert_eq!(talk.answer(text("Done.")), [""; 0]);
    assert_eq!(talk.prompt(), [JUDGE], "a new prompt");
}

#[test]
fn cancelled_turn_aborts_its_classifier() {
    let mut talk = Talk::begin();
    talk.prompt();
    let said = talk.step(|turn, cx| turn.as_mut().unwrap().end(cx.step, Cause::Cancelled));
    assert_eq!((said, talk.open.len()), (vec!["abort".to_owned(), "abort".to_owned()], 0));
    assert!(talk.turn.unwrap().is_finished());
}
