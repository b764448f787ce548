//! Prompt caches: the next request begins with the same bytes, in every dialect, over random conversations.

use std::sync::Arc;

use serde_json::json;

use super::{
    anthropic::Anthropic,
    chat::Chat,
    gemini::{Gemini, Publisher, conversation},
    remote::Dialect,
    responses::Responses,
};
use castor_base::{
    history::Turn,
    model::{ModelParams, ModelRequest, Thinking},
    tool::{ToolKind, ToolSpec},
};

/// How the contents of a body end: nothing in front of it may change.
fn dialects() -> [(Box<dyn Dialect>, &'static str, &'static str); 7] {
    let gemini = || Box::new(Gemini { api_version: "v1beta".to_owned(), bearer: false, vertex: None });
    [
        (gemini(), "gemini-2.5-pro", "]}]}"),
        (gemini(), "gemini-3-pro-preview", "]}]}"),
        (Box::new(Gemini { vertex: Some(Publisher::Express), ..*gemini() }), "gemini-2.5-pro", "]}]}"),
        (Box::new(Chat::default()), "m", "]}"),
        (Box::new(Chat { newest: true, provider: "one".to_owned() }), "m", "]}"),
        (Box::new(Responses), "m", "]}"),
        (Box::new(Anthropic), "claude-opus-4-6", "]}]}"),
    ]
}

struct Dice(u64);

impl Dice {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        from[(self.0 % from.len() as u64) as usize]
    }
}

const PROMPTS: &[&str] = &[
    "user text hi",
    "user text \"]}\\",
    "user media\nuser text look",
    "user embed file:///a.rs fn x\nuser text explain",
    "user text one\n\nuser text two",
    "user blob mem:1 QQ",
];
const ANSWERS: &[&str] = &[
    "model text done",
    "model text done ^c2ln",
    "model thought hm\nmodel text done\nmodel text ^c2ln",
    "model thought hm ^anthropic:abc\nmodel text done",
    "model thought ^anthropic-hidden:xyz\nmodel text done",
    "model thought hm\nmodel thought ^openai:enc\nmodel text done",
    // The answer was empty, or it was cancelled.
    "model thought only",
    "",
];
const CALLS: &[&str] = &[
    "model call c1 read {\"a\":1} ^c2ln\ntool result c1 read one|two",
    "model thought hm ^anthropic:abc\nmodel call c1 read {}\nmodel call c2 odd [1]\ntool error c1 read no\ntool result c2 odd x",
    "model thought ^openai:enc\nmodel call c1 mcp.look {}\ntool result c1 mcp.look [image]",
    "model thought hm ^chat/one:\nmodel call c1 read {}\ntool result c1 read ok",
    "model thought ^chat/one:[{\"type\":\"reasoning.encrypted\",\"data\":\"x\"}]\nmodel call c1 read {}\ntool result c1 read ok",
    "model text I will.\nmodel call read__c1 read {}\ntool result read__c1 read ok",
    "",
];

fn request(model: &str, contents: &[Arc<Turn>]) -> ModelRequest {
    let tool = |name: &str| ToolSpec {
        name: name.to_owned().into(),
        title: "".into(),
        description: "does".into(),
        kind: ToolKind::Other,
        traits: Default::default(),
        parameters: json!({ "type": "object", "properties": { "a": { "type": "integer" } } }).into(),
    };
    ModelRequest {
        model: model.into(),
        system: "Be kind.".into(),
        contents: contents.to_vec(),
        tools: [tool("read"), tool("mcp.look")].into(),
        params: ModelParams {
            include_thoughts: true,
            thinking: Some(Thinking::Level("low".to_owned())),
            ..ModelParams::default()
        },
        traits: castor_base::model_table::ModelTable::built_in().traits(model),
    }
}

/// A conversation, and how many of its turns each of its requests had.
fn random(dice: &mut Dice) -> (Vec<Arc<Turn>>, Vec<usize>) {
    let (mut turns, mut asked) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        turns.extend(conversation(dice.pick(PROMPTS)));
        asked.push(turns.len());
        for _ in 0..2 {
            turns.extend(Some(dice.pick(CALLS)).filter(|it| !it.is_empty()).map(conversation).into_iter().flatten());
            asked.push(turns.len());
        }
        turns.extend(Some(dice.pick(ANSWERS)).filter(|it| !it.is_empty()).map(conversation).into_iter().flatten());
    }
    (turns, asked)
}

#[test]
fn the_next_request_begins_as_this_one() {
    let mut dice = Dice(7);
    for round in 0..100 {
        let (turns, asked) = random(&mut dice);
        // All of them over the same turns: bytes that one has kept are none of the others'.
        for (dialect, model, end) in dialects() {
            let bodies: Vec<String> = asked
                .iter()
                .map(|it| String::from_utf8(dialect.body(&request(model, &turns[..*it]))).unwrap())
                .collect();
            for (body, next) in bodies.iter().zip(bodies.iter().skip(1)) {
                let kept = body.strip_suffix(end).unwrap();
                assert!(next.starts_with(kept), "{round} {dialect:?} {model}:\n{body}\n{next}");
            }
        }
    }
}

/// The same with turns that nobody has encoded yet, as after a restart.
#[test]
fn a_conversation_that_was_loaded_has_the_same_bytes() {
    let text = [PROMPTS[0], CALLS[1], ANSWERS[2], PROMPTS[4]].join("\n");
    for (dialect, model, _) in dialects() {
        let turns = conversation(&text);
        let first = dialect.body(&request(model, &turns));
        assert_eq!(first, dialect.body(&request(model, &turns)));
        assert_eq!(first, dialect.body(&request(model, &conversation(&text))));
    }
}
