//! Requests of Gemini's API. Turns and tools are encoded once and their bytes are copied.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::providers::{
    json::{encode_tools, push_item, push_member, push_messages, push_written},
    legal_answer,
    legal_schema::{GEMINI, legalize},
    message_pieces::{Blob, MessagePiece, blob, pieces, split_output},
    provider_limits,
};
use castor_base::{
    history::{Role, Turn, TurnPart},
    model::{ModelParams, ModelRequest, Thinking},
    tool::{CallResult, ToolCall, ToolSpec},
};

/// Tells the service not to look for a signature on a call that another model made.
const SKIP_SIGNATURE: &str = "skip_thought_signature_validator";
/// As much as the first requests of most sessions take, so that a body grows seldom.
const USUAL_BYTES: usize = 32 << 10;

/// The whole body of a request. The contents come last: the next request begins as this one did, and what the service
/// keeps of it can be used again.
pub fn body(request: &ModelRequest, knows_ids: bool) -> Vec<u8> {
    let form = Form { knows_ids, nests_media: request.traits.nests_media };
    let turns: Vec<(&'static str, Bytes)> = request
        .contents
        .iter()
        .map(|it| (role(it.role()), it.encoded(form.dialect(it), |it| parts(it, form))))
        .filter(|(_, parts)| !parts.is_empty())
        .collect();
    let mut out = head(request);
    let contents = if out.len() > 1 { &br#","contents":"#[..] } else { br#""contents":"# };
    out.extend_from_slice(contents);
    push_messages(&mut out, &turns, "parts");
    out
}

/// What comes before the contents: system instruction, tools, parameters; each only where there is one. Nothing here
/// changes from turn to turn.
fn head(request: &ModelRequest) -> Vec<u8> {
    let mut out = Vec::with_capacity(USUAL_BYTES);
    out.push(b'{');
    if !request.system.is_empty() {
        let parts = [Text { text: &request.system, thought_signature: None }];
        push_member(&mut out, "systemInstruction", &Content { role: "user", parts: &parts });
    }
    // The service takes either.
    if !request.tools.is_empty() && !request.params.searches_web {
        let declarations = encode_tools(&request.tools, "gemini", |out, it| push_item(out, &Declaration::from(it)));
        push_written(&mut out, "tools", &[br#"[{"functionDeclarations":["#, &declarations, b"]}]"]);
    }
    if request.params.searches_web {
        push_member(&mut out, "tools", &json!([{ "googleSearch": {} }]));
    }
    if request.params != ModelParams::default() {
        push_member(&mut out, "generationConfig", &config(&request.params));
    }
    out
}

fn config(params: &ModelParams) -> Value {
    let shown = params.include_thoughts;
    let unset = || shown.then(|| json!({ "includeThoughts": true }));
    let thinking = params.thinking.as_ref().map_or_else(unset, |it| match it {
        Thinking::Budget(tokens) => Some(json!({ "includeThoughts": shown, "thinkingBudget": tokens })),
        Thinking::Level(level) => Some(json!({ "includeThoughts": shown, "thinkingLevel": level })),
    });
    let fields = [
        ("temperature", params.temperature.map(Value::from)),
        ("topP", params.top_p.map(Value::from)),
        ("topK", params.top_k.map(Value::from)),
        ("maxOutputTokens", params.max_output_tokens.map(Value::from)),
        ("stopSequences", (!params.stop.is_empty()).then(|| Value::from(params.stop.clone()))),
        ("thinkingConfig", thinking),
        ("responseMimeType", params.schema.as_ref().map(|_| "application/json".into())),
        ("responseJsonSchema", params.schema.as_deref().map(legal_answer::of_gemini)),
    ];
    let set: Map<String, Value> = fields.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?))).collect();
    Value::Object(set)
}

/// Results are the user's here. Turns of one role in a row become one content: the service wants them to alternate.
fn role(role: Role) -> &'static str {
    match role {
        Role::User | Role::Tool => "user",
        Role::Model => "model",
    }
}

/// What services and models want differently. All else is encoded alike, so that the kept bytes serve whatever model
/// comes next.
#[derive(Clone, Copy)]
struct Form {
    /// Vertex AI refuses calls and results that carry an id.
    knows_ids: bool,
    /// Media stands within results, not beside them.
    nests_media: bool,
}

impl Form {
    fn dialect(self, turn: &Turn) -> &'static str {
        match (self.knows_ids, self.nests_media && turn.parts().iter().any(has_media_result)) {
            (true, false) => "gemini",
            (true, true) => "gemini-nested",
            (false, false) => "vertex",
            (false, true) => "vertex-nested",
        }
    }

    /// The id without the `<name>__` that marks it as this tool's; `None` where there is none.
    fn id<'a>(self, id: &'a str, name: &str) -> Option<&'a str> {
        let bare = id.strip_prefix(name).and_then(|it| it.strip_prefix("__")).unwrap_or(id);
        (self.knows_ids && !bare.is_empty()).then_some(bare)
    }
}

fn has_media_result(part: &TurnPart) -> bool {
    matches!(part, TurnPart::Result(it) if it.content.iter().any(|it| blob(it).is_some()))
}

/// The parts of `turn`, with commas between; empty where nothing of it goes to the model.
fn parts(turn: &Turn, form: Form) -> Bytes {
    let mut out = Vec::new();
    let mut first_call = true;
    for piece in pieces(turn) {
        match piece {
            MessagePiece::Text { text, signature } => {
                let thought_signature = signature.filter(|it| provider_limits::is_signed_by(it, None));
                push_item(&mut out, &Text { text: &text, thought_signature });
            }
            // Thoughts are not sent back; what must be kept of them is in the signatures of the other parts.
            MessagePiece::Thought { .. } => (),
            MessagePiece::Blob(it) => push_item(&mut out, &InlineData::from(it)),
            MessagePiece::Call { call, signature } => {
                // Only the first call of a turn is ever signed. The placeholder is not needed in turns before the last
                // prompt, but harms nothing there, and so bytes once made stay valid.
                let signature = signature
                    .filter(|it| provider_limits::is_signed_by(it, None))
                    .or(first_call.then_some(SKIP_SIGNATURE));
                function_call(&mut out, call, signature, form);
                first_call = false;
            }
            MessagePiece::Result(it) => function_response(&mut out, it, form),
        }
    }
    out.into()
}

fn function_call(out: &mut Vec<u8>, call: &ToolCall, signature: Option<&str>, form: Form) {
    let id = form.id(call.id.as_str(), &call.name);
    // The service refuses anything but an object; the result that follows tells the model of its mistake.
    let empty = Value::Object(Map::new());
    let args = if call.args.is_object() { &call.args } else { &empty };
    let function_call = Call { id, name: &call.name, args };
    push_item(out, &CallPart { function_call, thought_signature: signature });
}

fn function_response(out: &mut Vec<u8>, result: &CallResult, form: Form) {
    let (blobs, output) = split_output(&result.content);
    let blobs: Vec<InlineData<'_>> = blobs.into_iter().map(InlineData::from).collect();
    let response = match result.is_error {
        true => Outcome { output: None, error: Some(&output) },
        false => Outcome { output: Some(&output), error: None },
    };
    let id = form.id(result.id.as_str(), &result.name);
    let (inside, beside) = if form.nests_media { (blobs, Vec::new()) } else { (Vec::new(), blobs) };
    push_item(out, &ResponsePart { function_response: Response { id, name: &result.name, response, parts: inside } });
    beside.iter().for_each(|it| push_item(out, it));
}

#[derive(Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: &'a [Text<'a>],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Text<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallPart<'a> {
    function_call: Call<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponsePart<'a> {
    function_response: Response<'a>,
}

#[derive(Serialize)]
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Outcome<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<InlineData<'a>>,
}

#[derive(Serialize)]
struct Outcome<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    inline_data: Data<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    mime_type: &'a str,
    data: &'a str,
}

impl<'a> From<Blob<'a>> for InlineData<'a> {
    fn from(Blob { mime, data }: Blob<'a>) -> Self {
        Self { inline_data: Data { mime_type: mime, data } }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: Value,
}

impl<'a> From<&'a ToolSpec> for Declaration<'a> {
    fn from(it: &'a ToolSpec) -> Self {
        Self {
            name: &it.name,
            description: &it.description,
            parameters_json_schema: legalize(&it.parameters, &GEMINI).value,
        }
    }
}
