//! Requests that a provider refuses for one part of them, from the editor's side: the part is left out, said and
//! remembered; and requests that have too many bytes.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{Asked, ModelServer, answers, says, stream},
};

fn chat(text: &str) -> String {
    let chunk = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]});
    stream(&format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

/// A provider `p` of chats that refuses what `refuses` says.
fn serve(refuses: impl Fn(&Asked) -> Option<Value> + Send + 'static) -> (ModelServer, Sandbox) {
    let server = ModelServer::answering(move |asked| {
        let refused = refuses(asked).map(|error| answers("400 Bad Request", &json!({"error": error}).to_string()));
        Some(refused.unwrap_or_else(|| chat("Fine.")))
    });
    let mut sandbox = Sandbox::new();
    let provider = json!({"type": "openai", "baseUrl": format!("{}/v1", server.url)});
    let settings = json!({"general": {"maxAttempts": 1}, "providers": {"p": provider}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.args.extend(["--model", "p/m1"].map(Into::into));
    (server, sandbox)
}

fn open(sandbox: &Sandbox) -> (Client, String) {
    let mut client = Client::start(sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (client, session)
}

/// What the prompt ended with, and all that was said of it.
fn prompt(client: &mut Client, session: &str, content: Value) -> (Value, String) {
    let (answer, updates) = client.call("session/prompt", json!({"sessionId": session, "prompt": content})).unwrap();
    (answer["result"]["stopReason"].clone(), updates.iter().map(Value::to_string).collect())
}

fn say(client: &mut Client, session: &str) -> (Value, String) {
    prompt(client, session, json!([{"type": "text", "text": "go"}]))
}

fn image(n_bytes: usize) -> Value {
    json!({"type": "image", "mimeType": "image/png", "data": "iVBO".repeat(n_bytes / 4)})
}

/// What another command of the same home writes.
fn castor(sandbox: &mut Sandbox, args: &[&str]) -> String {
    let own = std::mem::replace(&mut sandbox.args, args.iter().map(Into::into).collect());
    let output = sandbox.command().stdin(Stdio::null()).output().unwrap();
    sandbox.args = own;
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// For this session, for later ones, and until `castor models forget` or a week ends it.
#[test]
fn refused_parameter_is_left_out_and_remembered() {
    let (server, mut sandbox) = serve(|asked| {
        let error = json!({"message": "Unknown parameter: 'stream_options'.", "type": "invalid_request_error",
            "param": "stream_options", "code": "unknown_parameter"});
        asked.body.contains("stream_options").then_some(error)
    });
    let count = || server.asked().len();
    let (mut client, session) = open(&sandbox);
    let (end, told) = say(&mut client, &session);
    assert_eq!((end, count()), (json!("end_turn"), 2), "{told}");
    assert!(told.contains("asked again without `stream_options`") && told.contains("models forget p/m1"), "{told}");
    let (_, told) = say(&mut client, &session);
    assert!(count() == 3 && !told.contains("stream_options"), "{told}");
    client.end().unwrap();
    let (mut client, session) = open(&sandbox);
    let (_, told) = say(&mut client, &session);
    assert!(count() == 4 && !told.contains("stream_options"), "later sessions know it: {told}");
    client.end().unwrap();
    let listed = castor(&mut sandbox, &["models", "p"]);
    assert!(listed.contains("p/m1") && listed.contains("is asked without `stream_options` until"), "{listed}");
    let said = castor(&mut sandbox, &["models", "forget", "p/m1"]);
    assert!(said.contains("1 refused parameter of p/m1 is forgotten"), "{said}");
    let before = count();
    let (mut client, session) = open(&sandbox);
    let (end, _) = say(&mut client, &session);
    assert_eq!((end, count()), (json!("end_turn"), before + 2), "it is tried again");
    client.end().unwrap();
}

/// One bad tool costs one attempt, not each request; all of them at once are never left out.
#[test]
fn refused_tools_are_left_out_each_once() {
    let (server, sandbox) = serve(|asked| {
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        let at = |name: &str| body["tools"].as_array()?.iter().position(|it| it["function"]["name"] == name);
        let by_index = |n: usize| {
            json!({"message": format!("Invalid schema for function: array schema missing items at tools[{n}]."),
                "param": format!("tools[{n}].function.parameters"), "code": "invalid_function_parameters"})
        };
        let by_name = json!({"message": "Invalid schema for function 'read_file': unknown format."});
        at("glob").map(by_index).or_else(|| at("read_file").map(|_| by_name))
    });
    let (mut client, session) = open(&sandbox);
    let (end, told) = say(&mut client, &session);
    assert_eq!((end, server.asked().len()), (json!("end_turn"), 3), "{told}");
    assert!(told.contains("without the tool glob") && told.contains("without the tool read_file"), "{told}");
    let (end, _) = say(&mut client, &session);
    assert_eq!((end, server.asked().len()), (json!("end_turn"), 4), "they stay out");
    let last = server.asked().pop().unwrap().body;
    assert!(last.contains("\"name\":\"write_file\"") && !last.contains("\"name\":\"glob\""), "{last}");
    client.end().unwrap();

    let (server, sandbox) = serve(|_| Some(json!({"message": "This model does not support tools.", "param": "tools"})));
    let (mut client, session) = open(&sandbox);
    let (answer, _) = client
        .call("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}))
        .unwrap();
    let why = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("does not support tools") && !why.contains("Shorten"), "{answer}");
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn refused_images_become_a_line_of_text() {
    let (server, sandbox) = serve(|asked| {
        let error = json!({"message": "Invalid content type. image_url is only supported by certain models.",
            "param": "messages[1].content[1].image_url"});
        asked.body.contains("image_url").then_some(error)
    });
    let (mut client, session) = open(&sandbox);
    let (end, told) = prompt(&mut client, &session, json!([{"type": "text", "text": "Look"}, image(40)]));
    assert_eq!((end, server.asked().len()), (json!("end_turn"), 2), "{told}");
    assert!(told.contains("a line of text in place of one attachment"), "{told}");
    let last = server.asked().pop().unwrap().body;
    assert!(last.contains("[image of message 1 left out: the model does not take it]"), "{last}");
    let (_, _) = say(&mut client, &session);
    assert_eq!(server.asked().len(), 3, "it stays out");
    client.end().unwrap();
}

/// What is refused in another way ends the turn as ever, with advice that fits.
#[test]
fn what_names_no_part_is_not_asked_again() {
    let (server, sandbox) = serve(|_| Some(json!({"message": "Conversation roles must alternate."})));
    let (mut client, session) = open(&sandbox);
    let (answer, _) = client
        .call("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}))
        .unwrap();
    assert!(
        answer["error"]["message"].as_str().unwrap_or_default().contains("Change what the message names"),
        "{answer}"
    );
    assert_eq!(server.asked().len(), 1);
}

/// A server says how much it takes; images give way, the oldest first, and it is known from then on.
#[test]
fn images_give_way_where_a_body_is_too_large() {
    const TAKES: usize = 3_000_000;
    let server = ModelServer::answering(|asked| {
        let error = format!("Request payload size exceeds the limit: {TAKES} bytes.");
        let error = json!({"error": {"code": 400, "message": error, "status": "INVALID_ARGUMENT"}}).to_string();
        Some(if asked.body.len() > TAKES { answers("400 Bad Request", &error) } else { says("Seen.") })
    });
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    let (mut client, session) = open(&sandbox);
    let mut told = String::new();
    for n in 1..=6 {
        let text = format!("Picture {n}");
        let (end, said) = prompt(&mut client, &session, json!([{"type": "text", "text": text}, image(800_000)]));
        assert_eq!(end, "end_turn", "{n}: {said}");
        told += &said;
    }
    let sizes: Vec<usize> = server.asked().iter().map(|it| it.body.len()).collect();
    assert_eq!(sizes.iter().filter(|it| **it > TAKES).count(), 1, "one refusal is enough: {sizes:?}");
    assert!(told.contains("the oldest first"), "{told}");
    let last = server.asked().pop().unwrap().body;
    assert!(last.contains("[image of message 1 left out") && last.contains("Picture 1"), "the text stays");
    assert!(last.matches("iVBOiVBO").count() > 0 && !last.contains("[image of message 6"), "the newest stays");
    let (end, _) = prompt(&mut client, &session, json!([{"type": "text", "text": "All"}, image(3_200_000)]));
    assert_eq!(end, Value::Null, "a prompt that is too large alone is not sent");
    assert_eq!(server.asked().len(), sizes.len());
    let (end, _) = say(&mut client, &session);
    assert_eq!(end, "end_turn", "and is not in the way of the next one");
    client.end().unwrap();
}
