//! Response decoder of chat completions: events to chunks. It joins fragments of tool calls.

pub mod reasoning;

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use self::reasoning::{Reasoning, ThoughtMember};
use crate::providers::{
    answer_state::AnswerState,
    chunks::{self, TokenDetails},
    error_body,
    legal_names::LegalNames,
    lenient::{Count, Items, MessageContent, Object, Str, owned},
    provider_limits::whole_arguments,
    remote::Decode,
};
use castor_base::model::{Chunk, Failure, Finish, Usage};

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

impl Fragments {
    /// A name comes whole, once or with each fragment, or in pieces.
    fn add_name(&mut self, more: String) {
        match more {
            it if it.starts_with(&self.name) => self.name = it,
            it if self.arguments.is_empty() => self.name += &it,
            _ => (),
        }
    }

    fn is_whole(&self) -> bool {
        !self.arguments.trim().is_empty() && whole_arguments(&self.arguments).is_some()
    }
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
        let mut came = members.into_iter().filter_map(|(member, it)| Some((member, it?))).peekable();
        // Servers that know the first one want it back beside calls, the empty one too; of others an empty one says nothing.
        if came.peek().is_some_and(|(member, _)| *member == ThoughtMember::ReasoningContent) {
            self.reasoning.member.get_or_insert(ThoughtMember::ReasoningContent);
        }
        let plain = came.find_map(|(member, it)| Some((member, it.said()?)));
        let plain = plain.map(|(member, it)| {
            self.reasoning.member.get_or_insert(member);
            it
        });
        let details = delta.reasoning_details.0.into_iter();
        let parts: Vec<String> = details.filter_map(|it| self.reasoning.take(it)).collect();
        match plain {
            Some(it) => out.extend(chunks::thought(it)),
            // Mostly they say the same once more.
            None => out.extend(parts.into_iter().filter_map(chunks::thought)),
        }
        match delta.content {
            MessageContent::None => (),
            MessageContent::Text(it) => out.extend(chunks::text(it.into_owned())),
            MessageContent::Parts(parts) => parts.iter().for_each(|it| part(it, out)),
        }
        out.extend(delta.refusal.and_then(Str::said).and_then(chunks::text));
        let lone = delta.function_call.0.map(|it| CallDelta { function: Object(Some(it)), ..CallDelta::default() });
        delta.tool_calls.0.into_iter().chain(lone).for_each(|it| self.fragment(it));
    }

    /// Most servers number their calls; some number all of them 0, some none.
    fn fragment(&mut self, it: CallDelta<'_>) {
        let (id, function) = (owned(it.id), it.function.0.unwrap_or_default());
        let name = owned(function.name);
        let Some(call) = self.call(it.index.map(|it| it.0), &id, &name) else { return };
        if call.id.is_empty() {
            call.id = id;
        }
        call.add_name(name);
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
            // Some servers give each fragment an id of its own.
            let is_more = name.is_empty() && index.is_some() && it.index == index;
            let same_id = id.is_empty() || it.id.is_empty() || it.id == id || is_more;
            // Without an id, a second name begins a second call.
            let is_second = id.is_empty() && !name.is_empty() && !it.name.is_empty();
            let is_other = is_second && (index.is_none() || it.is_whole());
            same_index && same_id && !is_other
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

    fn count(&mut self, counts: Option<Tokens>) {
        let counts = counts.map(Usage::from).filter(|it| *it != Usage::default());
        self.state.usage = counts.or(self.state.usage.take());
    }

    fn emit_calls(&mut self, out: &mut Vec<Chunk>) {
        out.extend(self.reasoning.mark());
        let is_call = |it: &Fragments| ![&it.id, &it.name, &it.arguments].iter().all(|it| it.is_empty());
        for it in std::mem::take(&mut self.calls).into_iter().filter(is_call) {
            out.push(chunks::call(&self.names, it.id, it.name, &it.arguments));
        }
    }
}

impl Decode for ChatDecoder {
    fn state(&mut self) -> &mut AnswerState {
        &mut self.state
    }

    fn read(&mut self, data: &str, out: &mut Vec<Chunk>) -> Result<(), Failure> {
        let event: Event<'_> = error_body::parse(data)?;
        error_body::check(event.error)?;
        if event.object.is_some_and(|it| it.0 == "error") {
            return Err(error_body::from_stream(data));
        }
        let choice = event.choices.0.into_iter().next();
        let mut counts = [event.usage.0, event.x_groq.0.and_then(|it| it.usage.0)].into_iter().flatten();
        let counts = counts.next();
        self.state.is_counted |= counts.is_some() && choice.is_none();
        let Some(Choice { delta, message, finish_reason, usage }) = choice else {
            self.count(counts);
            return Ok(());
        };
        let counts = counts.or(usage.0);
        let alone = (counts.is_none() && finish_reason.is_none()).then_some(data);
        self.count(counts);
        // An answer that came at once has a message, and no end but its own where nobody says why it stopped.
        self.state.is_over |= delta.0.is_none() && message.0.is_some();
        if let Some(delta) = delta.0.or(message.0) {
            match delta.only_text() {
                Some(text) => out.extend(self.state.text(alone, text, chunks::text)),
                None => self.delta(delta, out),
            }
        }
        if let Some(it) = finish_reason.and_then(Str::said) {
            self.emit_calls(out);
            self.state.finish(finish(&it), out);
        }
        Ok(())
    }

    fn end_calls(&mut self, out: &mut Vec<Chunk>) -> bool {
        let are_whole = self.calls.iter().all(|it| whole_arguments(&it.arguments).is_some());
        if are_whole {
            self.emit_calls(out);
        }
        are_whole
    }
}

fn finish(word: &str) -> Finish {
    const STOP: &[&str] = &[
        "stop",
        "tool_calls",
        "tool_call",
        "tool_use",
        "function_call",
        "eos",
        "eos_token",
        "end_turn",
        "stop_sequence",
    ];
    const MAX_TOKENS: &[&str] = &["length", "max_tokens", "model_length"];
    const SAFETY: &[&str] = &["content_filter", "safety", "refusal", "sensitive"];
    chunks::finish(&word.to_ascii_lowercase(), STOP, MAX_TOKENS, SAFETY)
}

/// `{"type":"text","text":…}`, or `{"type":"thinking","thinking":[…]}`.
fn part(part: &Value, out: &mut Vec<Chunk>) {
    let text = |it: &Value, key: &str| it.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match part.get("thinking") {
        Some(Value::Array(parts)) => out.extend(parts.iter().filter_map(|it| chunks::thought(text(it, "text")))),
        Some(Value::String(it)) => out.extend(chunks::thought(it.clone())),
        _ => {
            let bare = part.as_str().unwrap_or_default().to_owned();
            let said = [bare, text(part, "text"), text(part, "refusal")];
            out.extend(said.into_iter().filter_map(chunks::text));
        }
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    choices: Items<Choice<'a>>,
    #[serde(default)]
    usage: Object<Tokens>,
    /// Groq's place for counts.
    #[serde(default)]
    x_groq: Object<Counted>,
    #[serde(borrow)]
    object: Option<Str<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Counted {
    #[serde(default)]
    usage: Object<Tokens>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    delta: Object<Delta<'a>>,
    #[serde(borrow, default)]
    message: Object<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Str<'a>>,
    /// Moonshot's place for counts.
    #[serde(default)]
    usage: Object<Tokens>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: MessageContent<'a>,
    #[serde(borrow)]
    reasoning_content: Option<Str<'a>>,
    #[serde(borrow)]
    reasoning: Option<Str<'a>>,
    #[serde(borrow)]
    reasoning_text: Option<Str<'a>>,
    #[serde(default)]
    reasoning_details: Items<Map<String, Value>>,
    #[serde(borrow)]
    refusal: Option<Str<'a>>,
    #[serde(borrow, default)]
    tool_calls: Items<CallDelta<'a>>,
    /// The one call of older servers.
    #[serde(borrow, default)]
    function_call: Object<FunctionDelta<'a>>,
}

impl Delta<'_> {
    /// The text of a delta that has nothing else.
    fn only_text(&self) -> Option<&str> {
        match self {
            Self {
                content: MessageContent::Text(it),
                reasoning_content: None,
                reasoning: None,
                reasoning_text: None,
                reasoning_details: Items(details),
                refusal: None,
                tool_calls: Items(calls),
                function_call: Object(None),
            } if details.is_empty() && calls.is_empty() => Some(it),
            _ => None,
        }
    }
}

#[derive(Default, Deserialize)]
struct CallDelta<'a> {
    index: Option<Count>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow, default)]
    function: Object<FunctionDelta<'a>>,
}

#[derive(Default, Deserialize)]
struct FunctionDelta<'a> {
    #[serde(borrow)]
    name: Option<Str<'a>>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Tokens {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Object<TokenDetails>,
    completion_tokens_details: Object<TokenDetails>,
    /// DeepSeek's word.
    prompt_cache_hit_tokens: Count,
}

impl From<Tokens> for Usage {
    fn from(it: Tokens) -> Self {
        let cached = it.prompt_tokens_details.0.unwrap_or_default().cached_tokens.0;
        let thought = it.completion_tokens_details.0.unwrap_or_default().reasoning_tokens.0;
        let counts = [it.prompt_tokens, it.completion_tokens, it.total_tokens];
        chunks::usage(counts, cached.max(it.prompt_cache_hit_tokens.0), thought)
    }
}
