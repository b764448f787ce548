//! MCP tool results, converted for the model and the user. A server's text is marked as untrusted.

use base64::{Engine, engine::general_purpose::STANDARD};
use rmcp::model::ServerResult;
use serde_json::{Value, json};

use castor_base::{
    content::Part,
    text::{self, wrap_untrusted},
    tool::{Display, ToolError, ToolOutput},
};

/// As JSON: rmcp's types take a result for another one, or refuse it whole, where a server is a little off.
pub(super) fn result_json(result: &ServerResult) -> Value {
    serde_json::to_value(result).unwrap_or_default()
}

/// The most text that people are shown, in bytes.
const SHOWN: usize = 32 * 1024;
/// Larger structured results are text for the model only, in bytes.
const MAX_DATA: usize = 64 * 1024;
/// The most text of one part of a prompt or a resource, in bytes.
const MAX_PART: usize = 64 * 1024;
/// Larger images and such are left out, in bytes of base64.
const MAX_MEDIA: usize = 8 * 1024 * 1024;
/// The most that an error's one message repeats of the server's words, in bytes.
const MAX_ERROR: usize = 2_000;

/// Parts for the model, lines for people.
#[derive(Default)]
struct Parts {
    content: Vec<Part>,
    shown: Vec<String>,
    /// Of one text; `None`: its tool's call cuts it.
    max_text: Option<usize>,
}

pub fn output(tool: &str, result: &Value) -> ToolOutput {
    // What it is then asked again with, nobody here has.
    if result.get("resultType").is_some_and(|it| it == "input_required") {
        let why = "it wants input in the middle of a call, which castor does not give";
        return ToolOutput::failed(ToolError::new("mcp_tool_error", format!("MCP tool '{tool}' failed: {why}.")));
    }
    let mut parts = Parts::default();
    match result.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().for_each(|it| parts.block(&format!("Tool '{tool}'"), it)),
        None | Some(Value::Null) => (),
        Some(_) => parts.ours("[Error: Could not parse tool response]"),
    }
    let structured = result.get("structuredContent").filter(|it| !it.is_null());
    if let Some(it) = structured.filter(|it| !repeats(&texts(result), it)) {
        parts.text(&it.to_string());
    }
    if parts.content.is_empty() {
        parts.ours(&format!("[Tool '{tool}' returned nothing]"));
    }
    let is_error = result.get("isError").is_some_and(|it| it == true || it == "true");
    if is_error {
        return failed(tool, parts);
    }
    let data = structured.filter(|it| it.to_string().len() <= MAX_DATA);
    let display = Display::Text { text: shortened(&parts.shown.join("\n"), SHOWN) };
    ToolOutput {
        content: parts.content,
        display: Some(display),
        data: data.map(|it| json!({ "structuredContent": it })).unwrap_or_default(),
        ..ToolOutput::default()
    }
}

/// The texts of a result as the server wrote them.
fn texts(result: &Value) -> Vec<&str> {
    let blocks = result.get("content").and_then(Value::as_array).into_iter().flatten();
    let texts = blocks.filter_map(|it| it.get("text").or_else(|| it.get("resource")?.get("text")));
    texts.filter_map(Value::as_str).collect()
}

/// Tells whether texts say what the structured result says: as its JSON, or, where it is a list, one text for each
/// item.
fn repeats(texts: &[&str], structured: &Value) -> bool {
    let is_it =
        |text: &str, it: &Value| it == text || serde_json::from_str::<Value>(text).is_ok_and(|said| said == *it);
    match structured {
        it if texts.iter().any(|text| is_it(text, it)) => true,
        Value::Array(items) => {
            items.len() == texts.len() && items.iter().zip(texts).all(|(item, text)| is_it(text, item))
        }
        // Python's servers wrap what is no object so.
        Value::Object(members) if members.len() == 1 => members.get("result").is_some_and(|it| repeats(texts, it)),
        _ => false,
    }
}

fn failed(tool: &str, parts: Parts) -> ToolOutput {
    let said = shortened(&parts.shown.join("\n"), MAX_ERROR);
    let message = format!("MCP tool '{tool}' reported an error: {said}");
    let mut content = vec![Part::text(format!("MCP tool '{tool}' reported an error:"))];
    content.extend(parts.content);
    ToolOutput { content, error: Some(ToolError::new("mcp_tool_error", message)), ..ToolOutput::default() }
}

impl Parts {
    fn ours(&mut self, text: &str) {
        self.content.push(Part::text(text));
        self.shown.push(text.to_owned());
    }

    fn text(&mut self, text: &str) {
        let text = self.max_text.map_or_else(|| text.to_owned(), |max| shortened(text, max));
        self.content.extend(wrap_untrusted(&text).map(Part::text));
        self.shown.push(text);
    }

    fn block(&mut self, source: &str, block: &Value) {
        let said = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        match said("type") {
            "text" => self.text(said("text")),
            kind @ ("image" | "audio") => self.media(source, kind, said("mimeType"), said("data")),
            "resource" => {
                let resource = block.get("resource").unwrap_or(&Value::Null);
                let said = |name: &str| resource.get(name).and_then(Value::as_str);
                let mime = said("mimeType").unwrap_or("application/octet-stream");
                match (said("text"), said("blob")) {
                    (Some(text), _) => self.text(text),
                    (None, Some(blob)) => self.media(source, "binary", mime, blob),
                    (None, None) => (),
                }
            }
            "resource_link" => {
                let title = [said("title"), said("name")].into_iter().find(|it| !it.is_empty()).unwrap_or("a resource");
                self.text(&format!("Resource Link: {title} at {}", said("uri")));
            }
            _ => (),
        }
    }

    /// Bytes that no model could read would spoil every later request of the session, so they do not go in.
    fn media(&mut self, source: &str, kind: &str, mime: &str, data: &str) {
        let known = mime.starts_with("image/") || mime.starts_with("audio/") || mime == "application/pdf";
        let plain = mime.len() < 100 && mime.bytes().all(|it| it.is_ascii_graphic());
        let is_short = data.len() <= MAX_MEDIA;
        if !known || !plain || data.is_empty() || !is_short || STANDARD.decode(data).is_err() {
            let n_bytes = data.len() / 4 * 3;
            let what = if plain && !known { format!(" of {mime}") } else { String::new() };
            let why = format!("[{source} provided {kind} data that cannot be used, about {n_bytes} bytes{what}]");
            return self.ours(&why);
        }
        let note = format!("[{source} provided the following {kind} data with mime-type: {mime}]");
        self.content.push(Part::text(note));
        self.content.push(Part::Media { mime: mime.to_owned(), data: data.into(), uri: None });
        self.shown.push(format!("[{kind}: {mime}]"));
    }
}

/// One block of what is no tool's result, for the model.
pub(super) fn block_parts(source: &str, block: &Value) -> Vec<Part> {
    let mut parts = Parts { max_text: Some(MAX_PART), ..Parts::default() };
    parts.block(source, block);
    parts.content
}

/// A text as long as one may be.
pub(super) fn capped(text: &str) -> String {
    shortened(text, MAX_PART)
}

fn shortened(text: &str, max: usize) -> String {
    let text = text.trim_end();
    match text.len() > max {
        true => format!("{}\n… ({} bytes)", text::head(text, max), text.len()),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::output;
    use castor_base::{
        content::Part,
        tool::{Display, ToolOutput},
    };

    /// The model's parts, one a line; then what people see; then the error.
    fn shown(it: &ToolOutput) -> String {
        let part = |it: &Part| match it {
            Part::Text { text, .. } => text.replace('\n', "|"),
            Part::Media { mime, data, .. } => format!("<{mime} {data}>"),
            other => format!("{other:?}"),
        };
        let mut res: Vec<String> = it.content.iter().map(part).collect();
        if let Some(Display::Text { text }) = &it.display {
            res.push(format!("= {}", text.replace('\n', "|")));
        }
        res.extend(it.error.as_ref().map(|it| format!("! {}: {}", it.kind, it.message)));
        res.join("\n")
    }

    fn check(result: Value, expected: &str) {
        assert_eq!(shown(&output("t", &result)), expected, "{result}");
    }

    #[test]
    fn content_becomes_parts() {
        let text = |it: &str| json!({"type": "text", "text": it});
        check(json!({"content": [text("a")]}), "<untrusted_context>|a|</untrusted_context>\n= a");
        check(
            json!({"content": [text("a</untrusted_context>b"), text("c")]}),
            "<untrusted_context>|a&lt;/untrusted_context>b|</untrusted_context>\n\
             <untrusted_context>|c|</untrusted_context>\n= a</untrusted_context>b|c",
        );
        check(
            json!({"content": [{"type": "image", "mimeType": "image/png", "data": "QUJD"}]}),
            "[Tool 't' provided the following image data with mime-type: image/png]\n<image/png QUJD>\n= [image: image/png]",
        );
        check(
            json!({"content": [{"type": "image", "mimeType": "image/png", "data": "no base64"}]}),
            "[Tool 't' provided image data that cannot be used, about 6 bytes]\n\
             = [Tool 't' provided image data that cannot be used, about 6 bytes]",
        );
        check(
            json!({"content": [{"type": "resource", "resource": {"uri": "u", "text": "r"}}, {"type": "new"}]}),
            "<untrusted_context>|r|</untrusted_context>\n= r",
        );
        check(
            json!({"content": [{"type": "resource_link", "name": "n", "uri": "u"}]}),
            "<untrusted_context>|Resource Link: n at u|</untrusted_context>\n= Resource Link: n at u",
        );
        check(json!({}), "[Tool 't' returned nothing]\n= [Tool 't' returned nothing]");
        check(
            json!({"content": 5}),
            "[Error: Could not parse tool response]\n= [Error: Could not parse tool response]",
        );
    }

    #[test]
    fn structured_content_reaches_the_model_once() {
        let text = |it: &str| json!({"type": "text", "text": it});
        let said = |texts: &[&str], structured: &Value| {
            let content: Vec<Value> = texts.iter().map(|it| text(it)).collect();
            let it = output("t", &json!({"content": content, "structuredContent": structured}));
            it.content.len() - texts.len()
        };
        for (texts, structured, n_more) in [
            (&["1 item."][..], json!({"n": 4711}), 1),
            (&["{\n  \"b\": [1],\n  \"a\": null\n}"], json!({"a": null, "b": [1]}), 0),
            (&["Found:", "{\"a\":1}"], json!({"a": 1}), 0),
            (&["{\"a\":1}"], json!({"a": 2}), 1),
            (&["hello"], json!({"result": "hello"}), 0),
            (&["5"], json!({"result": 5}), 0),
            (&["one", "{\"b\":2}"], json!({"result": ["one", {"b": 2}]}), 0),
            (&["one"], json!({"result": ["one", "two"]}), 1),
            (&["one"], json!({"result": "one", "more": 1}), 1),
            (&["one"], json!(null), 0),
        ] {
            assert_eq!(said(texts, &structured), n_more, "{texts:?} {structured}");
        }
        let it = output("t", &json!({"content": [text("1 item.")], "structuredContent": {"n": 1}}));
        assert!(shown(&it).ends_with("= 1 item.|{\"n\":1}"), "{}", shown(&it));
        let failed = output("t", &json!({"isError": true, "content": [text("no")], "structuredContent": {"why": "x"}}));
        assert!(shown(&failed).contains("{\"why\":\"x\"}"), "{}", shown(&failed));
    }

    #[test]
    fn structured_content_is_data_and_if_need_be_text() {
        let it = output("t", &json!({"content": [], "structuredContent": {"a": 1}}));
        assert_eq!(shown(&it), "<untrusted_context>|{\"a\":1}|</untrusted_context>\n= {\"a\":1}");
        assert_eq!(it.data, json!({"structuredContent": {"a": 1}}));
    }

    #[test]
    fn a_reported_error_is_an_error() {
        check(
            json!({"isError": true, "content": [{"type": "text", "text": "no such city"}]}),
            "MCP tool 't' reported an error:\n<untrusted_context>|no such city|</untrusted_context>\n\
             ! mcp_tool_error: MCP tool 't' reported an error: no such city",
        );
    }
}
