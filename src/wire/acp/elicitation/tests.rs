//! Elicitations on the wire, checked against the official schema.

use serde_json::{Value, json, value::to_raw_value};

use super::{Scope, complete, form, form_answer, link, link_answer, option_answer, options};
use crate::jsonrpc::message::RequestId;
use castor_base::{
    ids::{CallId, SessionId},
    log::Answer,
    question::{Choice, Field, FieldKind, Form, TextFormat},
};

fn is_valid(definition: &str, value: &Value) {
    let document: Value = serde_json::from_str(include_str!("../../../../schema/v1.json")).unwrap();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": format!("#/$defs/{definition}"),
        "$defs": document["$defs"],
    });
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(value).map(|it| it.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?} in {value}");
}

fn field(name: &str, required: bool, kind: FieldKind) -> Field {
    let title = Some(name.to_uppercase());
    Field { name: name.to_owned(), title, description: None, required, kind, default: None }
}

fn choice(value: &str, description: Option<&str>) -> Choice {
    Choice { value: value.to_owned(), title: value.to_uppercase(), description: description.map(str::to_owned) }
}

fn all_kinds() -> Form {
    let offers = || vec![choice("a", Some("the first")), choice("b", None)];
    Form {
        message: "Well?".to_owned(),
        fields: vec![
            field("text", true, FieldKind::Text { min: Some(1), max: Some(9), format: Some(TextFormat::DateTime) }),
            field("choice", true, FieldKind::Choice { options: offers() }),
            field("choices", false, FieldKind::Choices { options: offers(), min: Some(1), max: Some(2) }),
            field("number", false, FieldKind::Number { min: Some(0.5), max: None }),
            field("integer", false, FieldKind::Integer { min: None, max: Some(3) }),
            field("bool", false, FieldKind::Bool),
        ],
    }
}

#[test]
fn every_kind_of_field() {
    let (session, call) = (SessionId::from("s"), CallId::from("c"));
    let params = form(Scope::Session { session: &session, call: Some(&call) }, &all_kinds());
    is_valid("CreateElicitationRequest", &params);
    let offers = json!([{ "const": "a", "title": "A", "description": "the first" }, { "const": "b", "title": "B" }]);
    let expected = json!({
        "sessionId": "s", "toolCallId": "c", "mode": "form", "message": "Well?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "text": { "type": "string", "title": "TEXT", "minLength": 1, "maxLength": 9, "format": "date-time" },
                "choice": { "type": "string", "title": "CHOICE", "oneOf": offers },
                "choices": {
                    "type": "array", "title": "CHOICES", "items": { "anyOf": offers }, "minItems": 1, "maxItems": 2,
                },
                "number": { "type": "number", "title": "NUMBER", "minimum": 0.5 },
                "integer": { "type": "integer", "title": "INTEGER", "maximum": 3 },
                "bool": { "type": "boolean", "title": "BOOL" },
            },
            "required": ["text", "choice"],
        },
    });
    assert_eq!(params.to_string(), expected.to_string(), "also the fields' order");
}

#[test]
fn every_scope() {
    let session = SessionId::from("s");
    let empty = Form { message: "Well?".to_owned(), fields: Vec::new() };
    let bare = json!({ "type": "object", "properties": {} });
    let params = form(Scope::Session { session: &session, call: None }, &empty);
    is_valid("CreateElicitationRequest", &params);
    assert_eq!(params, json!({ "sessionId": "s", "mode": "form", "message": "Well?", "requestedSchema": bare }));
    let params = form(Scope::Request(&RequestId::Number(7)), &empty);
    is_valid("CreateElicitationRequest", &params);
    assert_eq!(params, json!({ "requestId": 7, "mode": "form", "message": "Well?", "requestedSchema": bare }));
}

#[test]
fn pages_are_safe_ones() {
    let id = RequestId::Text("r".to_owned());
    let params = |url| link(Scope::Request(&id), "Log in", url, "e1");
    let expected = json!({ "requestId": "r", "mode": "url", "message": "Log in", "url": "https://a.b/c?d=e", "elicitationId": "e1" });
    let it = params("https://a.b/c?d=e").unwrap();
    is_valid("CreateElicitationRequest", &it);
    assert_eq!(it, expected);
    assert!(params("http://localhost:8080/").is_some() && params("http://[::1]/").is_some());
    for bad in ["http://a.b/", "https://me:secret@a.b/", "https://me@a.b/", "file:///etc/passwd", "javascript:1", "no"]
    {
        assert_eq!(params(bad), None, "{bad}");
    }
    is_valid("CompleteElicitationNotification", &complete("e1"));
    assert_eq!(complete("e1"), json!({ "elicitationId": "e1" }));
}

#[test]
fn results_become_answers() {
    let sure = Form { message: "Sure?".to_owned(), fields: vec![field("0", true, FieldKind::Bool)] };
    let answer = |it: Value| form_answer(&sure, &to_raw_value(&it).unwrap());
    let accepted = |it: Value| Answer::Accepted { content: it.as_object().unwrap().clone() };
    let unfit = |it: &str| Answer::Unfit { why: it.to_owned() };
    let yes = json!({ "action": "accept", "content": { "0": true, "more": 1 } });
    is_valid("CreateElicitationResponse", &yes);
    assert_eq!(answer(yes), accepted(json!({ "0": true })));
    assert_eq!(answer(json!({ "action": "accept", "content": { "0": "yes" } })), unfit("`0` is not true or false"));
    assert_eq!(answer(json!({ "action": "accept", "content": null })), unfit("`0` is missing"));
    assert_eq!(answer(json!({ "action": "accept" })), unfit("`0` is missing"));
    assert_eq!(answer(json!({ "action": "accept", "content": [1] })), unfit("the content is not an object"));
    assert_eq!(answer(json!({ "action": "decline" })), Answer::Declined);
    assert_eq!(answer(json!({ "action": "cancel" })), Answer::Dismissed);
    for odd in [json!({ "action": "_later" }), json!({}), json!(null), json!("accept"), json!({ "action": 1 })] {
        assert_eq!(answer(odd.clone()), Answer::Unable, "{odd}");
    }
    let visited = |it: Value| link_answer(&to_raw_value(&it).unwrap());
    assert_eq!(visited(json!({ "action": "accept" })), accepted(json!({})));
    assert_eq!(visited(json!({ "action": "decline" })), Answer::Declined);
}

#[test]
fn few_choices_are_options() {
    let (session, call) = (SessionId::from("s"), CallId::from("c"));
    let one = |kind| Form { message: "Which?".to_owned(), fields: vec![field("0", true, kind)] };
    let offer = |n: u32| FieldKind::Choice { options: (0..n).map(|it| choice(&format!("v{it}"), None)).collect() };
    let shown = |form: &Form| options(&session, Some(&call), form).map(|it| serde_json::to_value(it).unwrap());
    let chosen = |form: &Form, id: &str| {
        let result = json!({ "outcome": { "outcome": "selected", "optionId": id } });
        option_answer(form, &to_raw_value(&result).unwrap())
    };
    let accepted = |it: Value| Answer::Accepted { content: json!({ "0": it }).as_object().unwrap().clone() };

    let which = one(FieldKind::Choice { options: vec![choice("a", Some("the first")), choice("b", None)] });
    let params = shown(&which).unwrap();
    is_valid("RequestPermissionRequest", &params);
    let expected = json!([
        { "optionId": "0", "name": "A: the first", "kind": "allow_once" },
        { "optionId": "1", "name": "B", "kind": "allow_once" },
        { "optionId": "decline", "name": "Do not answer", "kind": "reject_once" },
    ]);
    assert_eq!(params["options"], expected);
    assert_eq!(chosen(&which, "1"), accepted(json!("b")));
    assert_eq!(chosen(&which, "decline"), Answer::Declined);
    assert_eq!(chosen(&which, "2"), Answer::Unable);
    assert_eq!(chosen(&which, "a"), Answer::Unable);
    let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
    assert_eq!(option_answer(&which, &to_raw_value(&cancelled).unwrap()), Answer::Cancelled);
    assert_eq!(option_answer(&which, &to_raw_value(&json!(1)).unwrap()), Answer::Unable);

    let sure = one(FieldKind::Bool);
    assert_eq!(shown(&sure).unwrap()["options"].as_array().unwrap().len(), 2);
    assert_eq!(chosen(&sure, "0"), accepted(json!(true)));
    assert_eq!(chosen(&sure, "1"), accepted(json!(false)));
    assert_eq!(chosen(&sure, "2"), Answer::Unable);

    assert!(shown(&one(offer(8))).is_some());
    assert!(shown(&one(offer(9))).is_none(), "too many");
    assert!(shown(&all_kinds()).is_none(), "more than one field");
    assert!(shown(&one(FieldKind::Text { min: None, max: None, format: None })).is_none(), "no choice");
    assert!(options(&session, None, &sure).is_none(), "a permission is about a call");
}
