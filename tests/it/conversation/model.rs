//! The scripted model: `model` lines as Gemini's fake responses.

use serde_json::{Deserializer, Value, json};

use super::file::{parse_json, split};

/// One answer of the model, as a line of a fake-responses file: `thought "hm" + text "a" + call NAME {…} + usage 10 5`.
/// `for "text"` before it: only for requests whose system text has that; `wants "text"`: the request must have it;
/// `lacks "text"`: it must not.
pub fn response(text: &str) -> Result<Value, String> {
    let (word, more) = split(text);
    if ["for", "wants", "lacks"].contains(&word) {
        let mut values = Deserializer::from_str(more).into_iter::<Value>();
        let value = values.next().ok_or("a text is missing")?.map_err(|it| it.to_string())?;
        let mut line = response(&more[values.byte_offset()..])?;
        match word {
            "for" => line["system"] = value,
            _ => match line[word].as_array_mut() {
                Some(it) => it.push(value),
                None => line[word] = json!([value]),
            },
        }
        return Ok(line);
    }
    if word == "raw" {
        return Ok(stream(parse_json(more)?));
    }
    let mut answer = Answer { chunks: Vec::new(), finish: "STOP".to_owned(), usage: (10, 5) };
    let mut rest = text.trim();
    while !rest.is_empty() {
        rest = answer.part(rest)?.trim_start();
        rest = rest.strip_prefix('+').unwrap_or(rest).trim_start();
    }
    Ok(stream(answer.finished()))
}

fn stream(chunks: Value) -> Value {
    json!({"method": "generateContentStream", "response": chunks})
}

struct Answer {
    chunks: Vec<Value>,
    finish: String,
    usage: (u64, u64),
}

impl Answer {
    /// Takes one part off the front of `text`.
    fn part<'a>(&mut self, text: &'a str) -> Result<&'a str, String> {
        let (word, more) = split(text);
        match word {
            "text" => self.spoken(more, |it| json!({"text": it})),
            "thought" => self.spoken(more, |it| json!({"text": it, "thought": true})),
            "call" => {
                let (name, more) = split(more);
                self.spoken(more, |it| json!({"functionCall": {"name": name, "args": it}}))
            }
            "finish" => {
                let (finish, more) = split(more);
                self.finish = finish.to_owned();
                Ok(more)
            }
            "usage" => {
                let (input, more) = split(more);
                let (output, more) = split(more);
                self.usage = (number(input)?, number(output)?);
                Ok(more)
            }
            _ => Err(format!("`{word}` is no part of an answer")),
        }
    }

    fn spoken<'a>(&mut self, text: &'a str, part: impl FnOnce(Value) -> Value) -> Result<&'a str, String> {
        let mut values = Deserializer::from_str(text).into_iter::<Value>();
        let value = values.next().ok_or("a value is missing")?.map_err(|it| format!("{it} in `{text}`"))?;
        self.chunks.push(json!({"candidates": [{"content": {"role": "model", "parts": [part(value)]}}]}));
        Ok(&text[values.byte_offset()..])
    }

    fn finished(mut self) -> Value {
        if self.chunks.is_empty() {
            self.chunks.push(json!({"candidates": [{"content": {"role": "model", "parts": []}}]}));
        }
        let (input, output) = self.usage;
        if let Some(last) = self.chunks.last_mut() {
            if self.finish != "none" {
                last["candidates"][0]["finishReason"] = json!(self.finish);
            }
            let total = input + output;
            last["usageMetadata"] =
                json!({"promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": total});
        }
        Value::Array(self.chunks)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

#[test]
fn parts_become_chunks() {
    let line = response(r#"thought "hm" + call a {"b":"+"} + text "c" + finish MAX_TOKENS + usage 3 4"#).unwrap();
    let chunks = line["response"].as_array().unwrap();
    assert_eq!(chunks.len(), 3);
    assert_eq!(chunks[0]["candidates"][0]["content"]["parts"][0]["thought"], true);
    assert_eq!(chunks[1]["candidates"][0]["content"]["parts"][0]["functionCall"]["args"]["b"], "+");
    assert_eq!(chunks[2]["candidates"][0]["finishReason"], "MAX_TOKENS");
    assert_eq!(chunks[2]["usageMetadata"]["totalTokenCount"], 7);
    assert!(response("shout \"x\"").is_err());
}
