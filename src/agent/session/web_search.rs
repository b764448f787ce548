//! A search of the web by a model that can: one question, outside the conversation.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use castor_base::{
    content::Part,
    fs::BoxFuture,
    history::{Role, Turn, TurnPart},
    model::{Chunk, ModelParams, ModelRequest},
    model_table::ModelTraits,
};
use castor_models::providers::{Generator, Sink};
use castor_tools::builtin::{WebFindings, WebSearch};

const PATIENCE: Duration = Duration::from_secs(60);
/// Longer answers are cut.
const MAX_TEXT: usize = 64 << 10;

pub fn by(generator: Arc<dyn Generator>, model: &str, traits: ModelTraits) -> WebSearch {
    let model: Arc<str> = model.into();
    WebSearch(Arc::new(move |query| Box::pin(search(generator.clone(), model.clone(), traits, query))))
}

async fn search(
    generator: Arc<dyn Generator>,
    model: Arc<str>,
    traits: ModelTraits,
    query: String,
) -> Result<WebFindings, String> {
    let mut question = Turn::new(Role::User);
    question.parts_mut().push(TurnPart::Content(Part::text(query)));
    let request = ModelRequest {
        model: model.clone(),
        system: "".into(),
        contents: vec![Arc::new(question)],
        tools: [].into(),
        params: ModelParams { searches_web: true, ..ModelParams::default() },
        traits,
    };
    let mut answer = Answer::default();
    match timeout(PATIENCE, generator.generate(request, &mut answer)).await {
        Err(_) => Err(format!("{model} did not answer within {} s", PATIENCE.as_secs())),
        Ok(Err(it)) => Err(format!("{model}: {}", it.message)),
        Ok(Ok(())) => Ok(WebFindings { text: answer.text, model: model.to_string(), tokens: answer.tokens }),
    }
}

#[derive(Default)]
struct Answer {
    text: String,
    tokens: u64,
}

impl Sink for Answer {
    fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, ()> {
        for it in chunks {
            match it {
                Chunk::Text { text, .. } if self.text.len() < MAX_TEXT => self.text.push_str(&text),
                Chunk::Usage(it) => self.tokens = it.total,
                _ => (),
            }
        }
        Box::pin(async {})
    }
}
