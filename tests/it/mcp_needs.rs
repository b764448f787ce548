//! What the test server needs before it answers a call, a prompt or a resource: it says so, or asks meanwhile.

use serde_json::{Value, json};

use crate::mcp_server::{Server, print_line};

/// The result of a request; `None`: it comes later, or is an error.
pub fn answer(server: &mut Server, method: &str, message: &Value) -> Option<Value> {
    let params = &message["params"];
    match method {
        "prompts/list" => Some(json!({"prompts": [{"name": "trip", "description": "Plans a trip"}]})),
        "resources/list" => Some(json!({"resources": []})),
        "resources/templates/list" => Some(json!({"resourceTemplates": []})),
        "prompts/get" | "resources/read" | "tools/call" if server.is("modern") => Some(match given(params) {
            Some(it) => result(method, &it),
            None => wanted(&params["arguments"]),
        }),
        "prompts/get" | "resources/read" => {
            let question = json!({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": where_to()});
            print_line(&question.to_string());
            server.asking = Some(message.clone());
            None
        }
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            print_line(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string());
            None
        }
    }
}

fn where_to() -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    json!({"message": "Where to?", "requestedSchema": schema})
}

/// What the client gave; a server that wants it `again` is never content.
fn given(params: &Value) -> Option<String> {
    let is_given = params.get("inputResponses").is_some() || params.get("requestState").is_some();
    let wants_more = params["arguments"]["again"] == true;
    (is_given && !wants_more).then(|| format!("{} {}", params["requestState"], params["inputResponses"]))
}

/// What the arguments say, or a city.
fn wanted(args: &Value) -> Value {
    let city = json!({"city": {"method": "elicitation/create", "params": where_to()}});
    let requests = args.get("needs").unwrap_or(&city);
    let mut res = json!({"resultType": "input_required", "inputRequests": requests});
    if args["stateless"] != true {
        res["requestState"] = json!("mine");
    }
    res
}

/// A text, as the method has it.
pub fn result(method: &str, text: &str) -> Value {
    let block = json!({"type": "text", "text": text});
    match method {
        "prompts/get" => json!({"messages": [{"role": "user", "content": block}]}),
        "resources/read" => json!({"contents": [{"uri": "note://trip", "text": text}]}),
        _ => json!({"content": [block]}),
    }
}
