//! The recorder: passes a model's answers on, and appends them to a file for the scripted model.

use std::{fs::File, io::Write, sync::Arc};

use serde_json::{Map, Value, json};

use super::{Generator, Sink, gemini::finish_word, script::STREAM};
use castor_base::{
    fs::BoxFuture,
    model::{Chunk, Failure, ModelRequest, Usage},
};

/// Wraps a model. Only answers that came to their end are recorded.
pub struct Recording {
    inner: Arc<dyn Generator>,
    file: File,
}

impl Recording {
    /// `file` is open for appending, and readable by its owner alone: it will hold what the model said.
    pub fn new(inner: Arc<dyn Generator>, file: File) -> Self {
        Self { inner, file }
    }

    /// A file that cannot be written is no reason to lose the answer.
    fn append(&self, chunks: &[Chunk]) {
        let mut line = line(chunks).into_bytes();
        line.push(b'\n');
        // One write a line: answers of several sessions must not mix.
        if let Err(error) = (&self.file).write_all(&line) {
            tracing::warn!(%error, "the answer of a model could not be recorded");
        }
    }
}

impl Generator for Recording {
    fn generate<'a>(&'a self, request: ModelRequest, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let mut tee = Tee { sink, seen: Vec::new() };
            self.inner.generate(request, &mut tee).await?;
            self.append(&tee.seen);
            Ok(())
        })
    }

    fn credential_hash(&self, model: &str) -> Option<String> {
        self.inner.credential_hash(model)
    }

    fn address(&self, model: &str) -> Option<String> {
        self.inner.address(model)
    }
}

struct Tee<'a> {
    sink: &'a mut dyn Sink,
    seen: Vec<Chunk>,
}

impl Sink for Tee<'_> {
    fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, ()> {
        self.seen.extend(chunks.iter().cloned());
        self.sink.send(chunks)
    }
}

/// One line of the file, without its end. Read again, it gives the same chunks.
fn line(chunks: &[Chunk]) -> String {
    let mut usage: Option<&Usage> = None;
    let mut response = Vec::new();
    for chunk in chunks {
        match chunk {
            Chunk::Usage(it) => usage = Some(it),
            // No model says such things.
            Chunk::Report(_) => (),
            Chunk::Finish(it) => {
                let finished = json!({ "finishReason": finish_word(it), "index": 0 });
                response.push(event(Some(finished), usage.take()));
            }
            Chunk::Text { text, signature } => response.push(part(json!({ "text": text }), signature.as_deref())),
            Chunk::Thought { text, signature } => {
                response.push(part(json!({ "text": text, "thought": true }), signature.as_deref()));
            }
            Chunk::Call { id, name, args, signature } => {
                let mut call = json!({ "name": name, "args": args });
                set(&mut call, "id", id.as_deref());
                response.push(part(json!({ "functionCall": call }), signature.as_deref()));
            }
            Chunk::Media { mime, data } => {
                response.push(part(json!({ "inlineData": { "mimeType": mime, "data": data } }), None));
            }
        }
    }
    response.extend(usage.map(|it| event(None, Some(it))));
    json!({ "method": STREAM, "response": response }).to_string()
}

fn part(mut part: Value, signature: Option<&str>) -> Value {
    set(&mut part, "thoughtSignature", signature);
    event(Some(json!({ "content": { "parts": [part], "role": "model" }, "index": 0 })), None)
}

fn event(candidate: Option<Value>, usage: Option<&Usage>) -> Value {
    let usage = usage.map(|it| {
        json!({
            "promptTokenCount": it.input,
            "candidatesTokenCount": it.output,
            "cachedContentTokenCount": it.cached,
            "thoughtsTokenCount": it.thought,
            "totalTokenCount": it.total,
        })
    });
    let fields = [("candidates", candidate.map(|it| json!([it]))), ("usageMetadata", usage)];
    let set: Map<String, Value> = fields.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?))).collect();
    Value::Object(set)
}

fn set(object: &mut Value, name: &str, value: Option<&str>) {
    if let (Some(map), Some(value)) = (object.as_object_mut(), value) {
        map.insert(name.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, io::Seek, sync::Arc};

    use serde_json::json;

    use super::{Recording, line};
    use crate::providers::{
        Generator, Sink,
        gemini::conversation,
        script::{STREAM, Script},
    };
    use castor_base::{
        fs::BoxFuture,
        model::{Chunk, Failure, Finish, ModelParams, ModelRequest, Usage},
    };

    #[derive(Default)]
    struct Got(Vec<Chunk>);

    impl Sink for Got {
        fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, ()> {
            self.0.extend(chunks);
            Box::pin(async {})
        }
    }

    fn request() -> ModelRequest {
        let (model, system) = ("m".into(), "".into());
        let contents = conversation("user text hi");
        ModelRequest {
            model,
            system,
            contents,
            tools: [].into(),
            params: ModelParams::default(),
            traits: Default::default(),
        }
    }

    async fn play(model: &dyn Generator) -> Result<Vec<Chunk>, Failure> {
        let mut got = Got::default();
        model.generate(request(), &mut got).await?;
        Ok(got.0)
    }

    /// `--record-responses` writes what `--fake-responses` reads.
    #[tokio::test]
    async fn what_is_recorded_plays_again() {
        let signature = Some("s".into());
        let chunks = vec![
            Chunk::Thought { text: "t".to_owned(), signature: None },
            Chunk::Text { text: "a\n".to_owned(), signature: None },
            Chunk::Text { text: String::new(), signature: signature.clone() },
            Chunk::Call { id: Some("1".to_owned()), name: "ls".to_owned(), args: json!({ "a": 1 }), signature },
            Chunk::Call { id: None, name: "ls".to_owned(), args: json!([]), signature: None },
            Chunk::Media { mime: "image/png".to_owned(), data: "QQ==".into() },
            Chunk::Usage(Usage { input: 1, output: 2, cached: 3, thought: 4, total: 5, ..Usage::default() }),
            Chunk::Finish(Finish::Safety("SPII".to_owned())),
        ];
        let script = Arc::new(Script::parse(&line(&chunks), true).unwrap());
        let mut file = tempfile::tempfile().unwrap();
        let recording = Recording::new(script, file.try_clone().unwrap());
        assert_eq!(play(&recording).await.unwrap(), chunks);
        // The script is used up: a call that failed leaves no line.
        play(&recording).await.unwrap_err();
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, line(&chunks) + "\n");
        assert!(text.contains(STREAM));
        let again = Script::parse(&text, true).unwrap();
        assert_eq!(play(&again).await.unwrap(), chunks);
    }
}
