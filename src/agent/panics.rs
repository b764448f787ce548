//! Panics: their messages, and deliberate ones for tests in debug builds.

use std::{any::Any, sync::Arc};

use castor_base::{
    history::TurnPart,
    model::{Chunk, ModelRequest},
    tool::ToolCall,
};
use castor_engine::step::Input;
use castor_hands::secrets::Env;

/// Names the word that breaks: a step that takes text with it, of the model or a command; a request to the model that
/// ends with it; a call that has it in an argument.
const VARIABLE: &str = "CASTOR_DEBUG_PANIC";

/// A place to panic on purpose. Release builds do not read the variable, so it is empty there.
#[derive(Clone, Debug, Default)]
pub struct FaultPoint {
    word: Option<Arc<str>>,
}

impl FaultPoint {
    pub fn read(env: &Env) -> Self {
        let word = env.get(VARIABLE).filter(|it| cfg!(debug_assertions) && !it.is_empty());
        Self { word: word.map(Arc::from) }
    }

    pub fn is_in_input(&self, input: &Input) -> bool {
        match input {
            Input::Chunks { chunks, .. } => {
                chunks.iter().any(|it| matches!(it, Chunk::Text { text, .. } if self.is_in(text)))
            }
            Input::OutputPrinted { text, .. } => self.is_in(text),
            _ => false,
        }
    }

    /// Only at its end: what was said once is in every later request, too.
    pub fn is_in_request(&self, request: &ModelRequest) -> bool {
        let last = request.contents.last().into_iter().flat_map(|it| it.parts());
        let mut texts = last.filter_map(|it| if let TurnPart::Content(part) = it { part.as_text() } else { None });
        texts.any(|it| self.is_in(it))
    }

    pub fn is_in_call(&self, call: &ToolCall) -> bool {
        let mut args = call.args.as_object().into_iter().flatten();
        args.any(|(_, it)| it.as_str().is_some_and(|it| self.is_in(it)))
    }

    fn is_in(&self, text: &str) -> bool {
        self.word.as_ref().is_some_and(|it| text.contains(&**it))
    }
}

/// What a caught panic said.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("castor's own code panicked: {}", text.unwrap_or_default())
}

/// Breaks, if it should.
pub fn panic_if(breaks: bool) {
    assert!(!breaks, "{VARIABLE} wants it so");
}
