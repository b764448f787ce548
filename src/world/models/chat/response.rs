//! Response decoder of chat completions: events to chunks. It joins fragments of tool calls.

pub mod reasoning;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use self::reasoning::{Reasoning, ThoughtMember};
use crate::{
    base::model::{Chunk, Failure, Finish, Usage},
    world::models::{
        chunks::{self, AnswerState, TokenDetails},
        error_body,
        legal_names::LegalNames,
        lenient::{Count, Str},
        remote::Decode,
    },
};

/// Calls of one answer, at most: a server that counts wildly must not fill the memory.
const MAX_CALLS: usize = 256;

#[derive(Default)]
pub struct ChatDecoder {
    names: LegalNames,
    calls: Vec<Fragments>,
    reasoning: Reasoning,
    state: AnswerState,
}

/// A call as far as it came.
#[derive(Default)]
struct Fragments {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl ChatDecoder {
    /// `signer` marks the thoughts that are to come back.
    pub fn new(names: LegalNames, signer: String) -> Self {
        Self { names, reasoning: Reasoning::new(signer), ..Self::default() }
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut Vec<Chunk>) {
        let members = [
            (ThoughtMember::ReasoningContent, delta.reasoning_content),
            (ThoughtMember::Reasoning, delta.reasoning),
            (ThoughtMember::ReasoningText, delta.reasoning_text),
        ];
        let mut came = members.into_iter().filter_map(|(member, it)| Some((member, it?)));
        // Servers that know the first one want it back beside calls, the empty one too; of others an empty one says nothing.
        let plain = came.find(|(member, it)| *member == ThoughtMember::ReasoningContent || !it.0.is_empty());
        let plain = plain.and_then(|(member, it)| {
            self.reasoning.member.get_or_insert(member);
            Some(it).filter(|it| !it.0.is_empty())
        });
        let details = delta.reasoning_details.into_iter().flatten();
        let parts: Vec<String> = details.filter_map(|it| self.reasoning.take(it)).collect();
        match plain {
            Some(it) => out.extend(chunks::thought(it.0.into_owned())),
            // Mostly they say the same once more.
            None => out.extend(parts.into_iter().filter_map(chunks::thought)),
        }
        match delta.content {
            None => (),
            Some(Content::Text(it)) => out.extend(chunks::text(it.0.into_owned())),
            Some(Content::Parts(parts)) => parts.iter().for_each(|it| part(it, out)),
        }
        if let Some(it) = delta.refusal {
            out.extend(chunks::text(it.0.into_owned()));
        }
        for it in delta.tool_calls.into_iter().flatten() {
            self.fragment(it);
        }
    }

    /// Most servers number their calls; some number all of them 0, some none.
    fn fragment(&mut self, it: CallDelta) {
        let id = it.id.unwrap_or_default();
        let function = it.function.unwrap_or_default();
        let Some(call) = self.call(it.index, &id, function.name.as_deref().unwrap_or_default()) else { return };
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = function.name.unwrap_or_default();
        }
        match function.arguments {
            None | Some(Value::Null) => (),
            Some(Value::String(more)) => call.arguments.push_str(&more),
            // Sent as what it is, not as text.
            Some(whole) => call.arguments = whole.to_string(),
        }
    }

    /// The call that a fragment belongs to, begun if it is new; `None` if there are too many.
    fn call(&mut self, index: Option<u64>, id: &str, name: &str) -> Option<&mut Fragments> {
        let open = self.calls.iter().rposition(|it| {
            let same_index = index.is_none() || it.index.is_none() || it.index == index;
            let same_id = id.is_empty() || it.id.is_empty() || it.id == id;
            // Without index and id, a second name begins a second call.
            let is_second = id.is_empty() && index.is_none() && !name.is_empty() && !it.name.is_empty();
            same_index && same_id && !is_second
        });
        let at = match open {
            Some(it) => it,
            None if self.calls.len() >= MAX_CALLS => return None,
            None => {
                self.calls.push(Fragments { index, ..Fragments::default() });
                self.calls.len() - 1
            }
        };
        self.calls.get_mut(at)
    }

    fn emit_calls(&mut self, out: &mut Vec<Chunk>) {
        out.extend(self.reasoning.mark());
        for it in std::mem::take(&mut self.calls) {
            out.push(chunks::call(&self.names, it.id, it.name, &it.arguments));
        }
    }
}

impl Decode for ChatDecoder {
    fn state(&mut self) -> &mut AnswerState {
        &mut self.state
    }

    fn read(&mut self, data: &[u8], out: &mut Vec<Chunk>) -> Result<(), Failure> {
        if data == b"[DONE]" {
            self.state.finished = true;
            return Ok(());
        }
        let event: Event<'_> = error_body::parse(data)?;
        error_body::check(event.error)?;
        let is_counted = event.usage.is_some();
        if let Some(it) = event.usage {
            self.state.usage = Some(it.into());
        }
        let Some(choice) = event.choices.into_iter().flatten().next() else { return Ok(()) };
        if let Some(delta) = choice.delta {
            let alone = (!is_counted && choice.finish_reason.is_none()).then_some(data);
            match delta.only_text() {
                Some(text) => out.extend(self.state.text(alone, text, chunks::text)),
                None => self.delta(delta, out),
            }
        }
        if let Some(it) = choice.finish_reason.filter(|it| !it.0.is_empty()) {
            self.state.finished = true;
            self.emit_calls(out);
            out.push(Chunk::Finish(finish(&it.0)));
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Chunk>) {
        // Half a call of an answer that broke off must not run.
        if self.state.finished {
            self.emit_calls(out);
        }
        out.extend(self.state.usage.take().map(Chunk::Usage));
    }
}

fn finish(word: &str) -> Finish {
    let stop = ["stop", "tool_calls", "function_call", "eos", "end_turn"];
    chunks::finish(word, &stop, &["length", "max_tokens"], &["content_filter"])
}

/// `{"type":"text","text":…}`, or `{"type":"thinking","thinking":[…]}`.
fn part(part: &Value, out: &mut Vec<Chunk>) {
    let text = |it: &Value| it.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
    match part.get("thinking") {
        Some(Value::Array(parts)) => out.extend(parts.iter().filter_map(|it| chunks::thought(text(it)))),
        Some(Value::String(it)) => out.extend(chunks::thought(it.clone())),
        _ => out.extend(chunks::text(text(part))),
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Tokens>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Str<'a>>,
    #[serde(borrow)]
    reasoning: Option<Str<'a>>,
    #[serde(borrow)]
    reasoning_text: Option<Str<'a>>,
    reasoning_details: Option<Vec<Value>>,
    #[serde(borrow)]
    refusal: Option<Str<'a>>,
    tool_calls: Option<Vec<CallDelta>>,
}

impl Delta<'_> {
    /// The text of a delta that has nothing else.
    fn only_text(&self) -> Option<&str> {
        match self {
            Self {
                content: Some(Content::Text(it)),
                reasoning_content: None,
                reasoning: None,
                reasoning_text: None,
                reasoning_details: None,
                refusal: None,
                tool_calls: None,
            } => Some(&it.0),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content<'a> {
    #[serde(borrow)]
    Text(Str<'a>),
    Parts(Vec<Value>),
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Default, Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Tokens {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Option<TokenDetails>,
    completion_tokens_details: Option<TokenDetails>,
    /// DeepSeek's word.
    prompt_cache_hit_tokens: Count,
}

impl From<Tokens> for Usage {
    fn from(it: Tokens) -> Self {
        let cached = it.prompt_tokens_details.unwrap_or_default().cached_tokens.0;
        let thought = it.completion_tokens_details.unwrap_or_default().reasoning_tokens.0;
        let counts = [it.prompt_tokens, it.completion_tokens, it.total_tokens];
        chunks::usage(counts, cached.max(it.prompt_cache_hit_tokens.0), thought)
    }
}
