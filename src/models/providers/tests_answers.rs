//! One answer in every dialect, abused in every way that servers and gateways are known for: it is read all the same.

use serde_json::{Value, json};

use super::tests_spoken::{HALVES, PLAIN, Pieces, Said, all, check, expected, read, sse};
use castor_base::model::{FailureKind, Finish};

#[test]
fn bodies_of_every_form() {
    for spoken in all() {
        let events = (spoken.events)(PLAIN);
        let body = sse(&events);
        check(&spoken, "plain", &body);
        check(&spoken, "halves", sse(&(spoken.events)(HALVES)));
        check(&spoken, "CRLF", body.replace('\n', "\r\n"));
        check(&spoken, "CR", body.replace('\n', "\r"));
        check(&spoken, "no blank", body.replace("data: ", "data:"));
        check(&spoken, "more blanks", body.replace("data: ", "data:   "));
        check(&spoken, "lines of data", body.replace(r#"":[{"#, "\":\ndata: [\ndata: {"));
        check(&spoken, "a mark in front", format!("\u{feff}{body}"));
        check(&spoken, "no last blank line", body.trim_end());
        check(&spoken, "names, ids and retries", body.replace("data: ", "id: 1\nretry: 5\nevent: x\ndata: "));
        check(&spoken, "comments", body.replace("data: ", ": keep\n\n:\ndata: "));
        check(
            &spoken,
            "pings",
            body.replace("data: ", "event: ping\ndata: pong {\n\ndata: ping\n\ndata: null\n\ndata: "),
        );
        check(&spoken, "names without data, data without text", body.replace("data: ", "event: y\n\ndata:\n\ndata: "));
        check(&spoken, "a list of events", sse(&[format!("[{}]", events.join(","))]));
        check(&spoken, "plain lines", events.join("\n"));
        check(&spoken, "a plain list", format!("[{}\n]\n", events.join("\n,\n")));
        check(&spoken, "whole", spoken.whole);
        check(&spoken, "whole, in a list", format!("[{}]", spoken.whole));
        check(&spoken, "whole, as an event", sse(&[spoken.whole.to_owned()]));
        let pretty: Value = serde_json::from_str(spoken.whole).unwrap();
        check(&spoken, "whole, over lines", serde_json::to_string_pretty(&pretty).unwrap());
    }
}

#[test]
fn ends_count_once_and_what_follows_is_ignored() {
    for spoken in all() {
        let events = (spoken.events)(PLAIN);
        let body = sse(&events);
        for junk in [
            "data: [DONE]\n\n",
            "data: [DONE]\n\ndata: [DONE]\n\n",
            "data: [DONE]\n\ndata: {oops\n\ndata: {\"error\":{\"message\":\"late\"}}\n\n",
            "event: done\ndata: [DONE]\n\n",
            "data: {oops\n\n",
            "data: <html>\n\n",
            "data: \"text\"\n\n",
            "event: error\ndata: late\n\n",
            "{\"error\":{\"message\":\"late\"}}\n",
            "{\"half",
            "data: {\"error\":{\"message\":\"late\",\"code\":500}}\n\n",
        ] {
            check(&spoken, "junk behind the end", format!("{body}{junk}"));
        }
        check(&spoken, "the last event twice", format!("{body}{}", sse(&events[events.len() - 1..])));
        // Without what begins another answer.
        let late = sse(&events[1..events.len() / 2]);
        check(&spoken, "more text behind the end", format!("{body}{late}"));
        check(&spoken, "more text behind [DONE]", format!("{body}data: [DONE]\n\n{late}"));
    }
}

/// Without the model's word for its end; the server's counts.
#[test]
fn done_is_an_end_unless_a_call_is_cut() {
    for spoken in all() {
        let events = (spoken.events)(PLAIN);
        let is_end = |it: &&String| {
            ["tool_calls\"", "completed", "message_stop", "message_delta", "STOP"]
                .iter()
                .any(|end| it.contains(end) && !it.contains("index\":0,\"id"))
        };
        let open: Vec<String> =
            events.iter().filter(|it| !is_end(it) || it.contains("\"tool_calls\":[")).cloned().collect();
        let said = |body: &str, is_clean| read(&spoken, body.as_bytes(), 7, is_clean).unwrap();
        let got = said(&format!("{}data: [DONE]\n\n", sse(&open)), true);
        let counts = got.counts;
        assert_eq!(got, Said { counts, ..expected() }, "{}", spoken.name);
        let no_usage: Vec<String> = open.iter().filter(|it| !it.contains("usage\":{")).cloned().collect();
        for is_clean in [true, false] {
            assert_eq!(said(&sse(&no_usage), is_clean).finish, None, "{} has no end", spoken.name);
        }
        // Half a call must not run.
        let cut = no_usage
            .iter()
            .position(|it| it.contains("🎉") && it.contains('a') && it.contains("p\\\"") || it.contains("$.p"))
            .unwrap();
        let got = said(&format!("{}data: [DONE]\n\n", sse(&no_usage[..=cut])), true);
        assert_eq!((got.calls, got.finish), (vec![], None), "{}", spoken.name);
    }
    let chat = &all()[0];
    let body = sse(&(chat.events)(PLAIN)).replace(r#""finish_reason":"tool_calls""#, r#""finish_reason":null"#);
    assert_eq!(read(chat, body.as_bytes(), 7, true).unwrap(), expected(), "counts as the last word");
    assert_eq!(read(chat, body.as_bytes(), 7, false).unwrap().finish, None, "the connection broke");
}

#[test]
fn unknown_events_and_members_are_passed_over() {
    for spoken in all() {
        let events = (spoken.events)(PLAIN);
        let body = sse(&events);
        for odd in [
            r#"{"type":"response.shell_call_output_content.delta","delta":{"stdout":"x"},"output_index":0}"#,
            r#"{"type":"response.output_item.done","output_index":9,"item":{"type":"tool_search_call","arguments":{"q":[1]}}}"#,
            r#"{"type":"content_block_start","index":9,"content_block":{"type":"new","text":{"a":1},"input":[1]}}"#,
            r#"{"type":"content_block_delta","index":9,"delta":{"type":"new_delta","partial":[1]}}"#,
            r#"{"type":"content_block_delta","index":9,"delta":"text"}"#,
            r#"{"type":7,"index":"x","delta":7,"item":7,"response":7,"message":7,"usage":7,"choices":7,"candidates":7}"#,
            r#"{"choices":[null,7],"candidates":[null,7],"usage":"","usageMetadata":[],"error":null}"#,
            r#"{"choices":[{"delta":{"content":{"x":1},"tool_calls":{},"reasoning_details":[7]},"finish_reason":""}]}"#,
            r#"{"candidates":[{"content":{"parts":[7,{"executableCode":{}},{"text":null}]},"finishReason":null}]}"#,
            r#"{"error":""}"#,
            "{}",
        ] {
            let between = body.replacen("\n\n", &format!("\n\ndata: {odd}\n\n"), 3);
            check(&spoken, odd, format!("data: {odd}\n\n{between}"));
        }
    }
}

#[test]
fn counts_of_every_form() {
    for spoken in all() {
        let body = sse(&(spoken.events)(PLAIN));
        for (from, to) in [(":10,", ":\"10\","), (":10,", ":10.0,"), (":5", ":\"5\""), (":5", ":5.7")] {
            check(&spoken, "counts", body.replace(from, to));
        }
        for none in ["null", "-7", "\"many\"", "{}", "[1]", "true"] {
            let got = read(&spoken, body.replace(":10", &format!(":{none}")).as_bytes(), 7, true).unwrap();
            assert_eq!(got, Said { counts: (0, 5), ..expected() }, "{} {none}", spoken.name);
        }
    }
}

#[test]
fn errors_are_told_wherever_they_stand() {
    for spoken in all() {
        let begun = sse(&(spoken.events)(PLAIN)[..2]);
        for error in [
            r#"data: {"error":{"message":"busy","code":503}}"#,
            r#"data: {"type":"error","error":{"message":"busy","code":503}}"#,
            r#"data: [{"error":{"message":"busy","code":503}}]"#,
            "event: error\ndata: {\"message\":\"busy\",\"code\":503}",
            r#"{"error":{"message":"busy","code":503}}"#,
            "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"busy\"\n  }\n}",
        ] {
            for before in ["", &begun] {
                let failure = read(&spoken, format!("{before}{error}\n\n").as_bytes(), 7, true).unwrap_err();
                assert_eq!((failure.status, &*failure.message), (Some(503), "busy"), "{} {error}", spoken.name);
            }
        }
        let failure =
            read(&spoken, format!("{begun}event: error\ndata: all is lost\n\n").as_bytes(), 7, true).unwrap_err();
        assert_eq!((failure.kind, &*failure.message), (FailureKind::Status, "all is lost"));
        for garbage in ["data: {oops\n\n", "data: upstream connect error\n\n"] {
            let failure = read(&spoken, format!("{begun}{garbage}").as_bytes(), 7, true).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Garbage, "{} {garbage}", spoken.name);
        }
    }
}

/// Halves that nothing follows, and bytes that are no text.
#[test]
fn a_character_that_stays_half_is_replaced() {
    const LONE: Pieces = [r"h\ud83c", r"m\ud83c", r"\udf89 ", r"x\ud83c", r"a\ud83c", r"\ud83cb"];
    let said = Said {
        thoughts: "h\u{fffd}m\u{fffd}".to_owned(),
        text: "\u{fffd} x\u{fffd}".to_owned(),
        calls: vec![("c1".to_owned(), "read".to_owned(), json!({ "p": "a\u{fffd}\u{fffd}b" }))],
        ..expected()
    };
    for spoken in all() {
        for size in [1, usize::MAX] {
            let got = read(&spoken, sse(&(spoken.events)(LONE)).as_bytes(), size, true).unwrap();
            assert_eq!(got, said, "{}", spoken.name);
        }
        let mut body = sse(&(spoken.events)(PLAIN)).into_bytes();
        body.iter_mut().filter(|it| **it == 0xf0).for_each(|it| *it = 0xff);
        let got = read(&spoken, &body, 7, true).unwrap();
        assert!(got.text.starts_with("party \u{fffd}") && got.finish.is_some(), "{}: {got:?}", spoken.name);
    }
}

/// Servers that run tools of their own send several answers in one stream.
#[test]
fn another_answer_may_follow() {
    for spoken in all().into_iter().filter(|it| ["anthropic", "responses"].contains(&it.name)) {
        let body = sse(&(spoken.events)(PLAIN));
        let got = read(&spoken, format!("{body}{body}").as_bytes(), 7, true).unwrap();
        let once = expected();
        let twice = Said {
            thoughts: once.thoughts.repeat(2),
            text: once.text.repeat(2),
            calls: [&once.calls[..], &once.calls[..]].concat(),
            ..once
        };
        assert_eq!(got, twice, "{}", spoken.name);
    }
}

/// A server that tried once more: the call of the first try was cut off.
#[test]
fn a_call_of_a_try_that_failed_does_not_run() {
    let anthropic = &all()[2];
    let events = (anthropic.events)(PLAIN);
    let cut = events.iter().position(|it| it.contains("input_json_delta")).unwrap();
    let got = read(anthropic, sse(&[&events[..=cut], &events[..]].concat()).as_bytes(), 7, true).unwrap();
    assert_eq!((got.calls, got.finish), (expected().calls, expected().finish));
}

/// Calls as servers number, name and cut them.
#[test]
fn calls_of_every_form() {
    let chat = &all()[0];
    let cases: [(&str, &[&str]); 10] = [
        (
            "index",
            &[
                r#"{"index":0,"id":"c1","function":{"name":"read","arguments":"{\"p\":"}}"#,
                r#"{"index":0,"function":{"arguments":"\"a🎉b\"}"}}"#,
            ],
        ),
        (
            "no index",
            &[
                r#"{"id":"c1","function":{"name":"read","arguments":"{\"p\":"}}"#,
                r#"{"function":{"arguments":"\"a🎉b\"}"}}"#,
            ],
        ),
        (
            "index as text",
            &[
                r#"{"index":"0","id":"c1","function":{"name":"read","arguments":"{\"p\":"}}"#,
                r#"{"index":0.0,"function":{"arguments":"\"a🎉b\"}"}}"#,
            ],
        ),
        (
            "id repeated",
            &[
                r#"{"id":"c1","function":{"name":"read","arguments":"{\"p\":"}}"#,
                r#"{"id":"c1","function":{"name":"read","arguments":"\"a🎉b\"}"}}"#,
            ],
        ),
        (
            "id renewed",
            &[
                r#"{"index":0,"id":"c1","function":{"name":"read","arguments":"{\"p\":"}}"#,
                r#"{"index":0,"id":"c2","function":{"name":"","arguments":"\"a🎉b\"}"}}"#,
            ],
        ),
        (
            "name in pieces",
            &[
                r#"{"index":0,"id":"c1","function":{"name":"re"}}"#,
                r#"{"index":0,"function":{"name":"ad"}}"#,
                r#"{"index":0,"function":{"name":null,"arguments":"{\"p\":\"a🎉b\"}"}}"#,
            ],
        ),
        (
            "name grows",
            &[
                r#"{"index":0,"id":"c1","function":{"name":"re"}}"#,
                r#"{"index":0,"function":{"name":"read","arguments":"{\"p\":\"a🎉b\"}"}}"#,
            ],
        ),
        ("object", &[r#"{"index":0,"id":"c1","function":{"name":"read","arguments":{"p":"a🎉b"}}}"#]),
        (
            "object in front",
            &[
                r#"{"index":0,"id":"c1","function":{"name":"read","arguments":"{}"}}"#,
                r#"{"index":0,"function":{"arguments":"{\"p\":\"a🎉b\"}"}}"#,
            ],
        ),
        (
            "text in text",
            &[r#"{"index":0,"id":"c1","function":{"name":"read","arguments":"\"{\\\"p\\\":\\\"a🎉b\\\"}\""}}"#],
        ),
    ];
    for (what, deltas) in cases {
        let calls = deltas.iter().map(|it| format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{it}]}}}}]}}"#));
        let events: Vec<String> =
            calls.chain([r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned()]).collect();
        let got = read(chat, sse(&events).as_bytes(), 7, true).unwrap();
        assert_eq!((got.calls, got.finish), (expected().calls, expected().finish), "{what}");
    }
    for (delta, name) in [
        (r#"{"function_call":{"name":"read","arguments":"{\"p\":\"a🎉b\"}"}}"#, "an older server's"),
        (r#"{"tool_calls":{"id":"","function":{"name":"read","arguments":{"p":"a🎉b"}}}}"#, "no list"),
    ] {
        let event = format!(r#"{{"choices":[{{"delta":{delta},"finish_reason":"function_call"}}]}}"#);
        let got = read(chat, sse(&[event]).as_bytes(), 7, true).unwrap();
        assert_eq!(got.calls, [(String::new(), "read".to_owned(), json!({ "p": "a🎉b" }))], "{name}");
    }
    for arguments in ["\"null\"", "null", "\"\"", "\" \"", "\"{}\"", "{}"] {
        let call = format!(r#"{{"index":0,"id":"c1","function":{{"name":"read","arguments":{arguments}}}}}"#);
        let event = format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{call}]}},"finish_reason":"tool_calls"}}]}}"#);
        let got = read(chat, sse(&[event]).as_bytes(), 7, true).unwrap();
        assert_eq!(got.calls, [("c1".to_owned(), "read".to_owned(), json!({}))], "{arguments}");
    }
}

/// Items of the Responses API that come in pieces alone, or only with the whole answer.
#[test]
fn items_without_an_end_of_their_own() {
    let responses = &all()[1];
    let events = (responses.events)(PLAIN);
    let pieces: Vec<String> = events.iter().filter(|it| !it.contains("item.done")).cloned().collect();
    check(responses, "no ends", sse(&pieces));
    let end = events.last().unwrap().replace(
        r#""status":"completed""#,
        r#""status":"completed","output":[{"type":"reasoning","summary":[{"text":"h🎉m"}]},{"type":"message","content":[{"type":"output_text","text":"party 🎉."}]},{"type":"function_call","call_id":"c1","name":"read","arguments":"{\"p\":\"a🎉b\"}"}]"#,
    );
    check(responses, "only the end", sse(std::slice::from_ref(&end)));
    for skipped in 1..events.len() {
        let known: Vec<String> = events[..skipped].iter().chain([&end]).cloned().collect();
        let got = read(responses, sse(&known).as_bytes(), 7, true).unwrap();
        assert_eq!((got.calls, got.finish), (expected().calls, expected().finish), "{skipped}");
    }
    let all: Vec<String> = events[..events.len() - 1].iter().chain([&end]).cloned().collect();
    check(responses, "nothing twice", sse(&all));
    for (status, finish) in [("incomplete", Finish::MaxTokens), ("cancelled", Finish::Other("cancelled".to_owned()))] {
        let got = read(
            responses,
            sse(&[end.replace("completed\",\"output", &format!("{status}\",\"output"))]).as_bytes(),
            7,
            true,
        );
        assert_eq!(got.unwrap().finish, Some(finish));
    }
}

#[test]
fn thoughts_stand_beside_the_output_or_within() {
    let chat = &all()[0];
    for (usage, counts) in [
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":2}}"#,
            (10, 3),
        ),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":17,"completion_tokens_details":{"reasoning_tokens":2}}"#,
            (10, 5),
        ),
        (r#"{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":7}}"#, (10, 5)),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":"16","completion_tokens_details":{"reasoning_tokens":2}}"#,
            (10, 3),
        ),
        (r#"{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":null}"#, (10, 5)),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":5}}"#,
            (10, 0),
        ),
    ] {
        let event = format!(r#"{{"choices":[{{"delta":{{"content":"x"}},"finish_reason":"stop"}}],"usage":{usage}}}"#);
        assert_eq!(read(chat, sse(&[event]).as_bytes(), 7, true).unwrap().counts, counts, "{usage}");
    }
}
