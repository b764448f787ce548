//! The prompts of a run, one after the other, and answers that have to fit a schema.

use serde_json::{Value, json};

use super::{input_events::EventPrompts, json_answer::AnswerSchema, turn::Driver};
use crate::cli::{client::prompt::Prompt, terminal_text::clean_line};
use castor_client::failure::{Exit, Failure};
use castor_wire::acp::client::PromptAbilities;

/// Characters of the faults of an answer that are said.
const MAX_FAULTS: usize = 500;

/// What a run asks.
pub struct RunPrompts {
    pub first: Prompt,
    /// Events on stdin may have more.
    pub more: Option<EventPrompts>,
    pub schema: Option<AnswerSchema>,
}

impl From<Prompt> for RunPrompts {
    fn from(first: Prompt) -> Self {
        Self { first, more: None, schema: None }
    }
}

/// Sends them, each when the turn before it has ended; gives the last stop reason. `None`: the agent is gone.
///
/// # Errors
/// When a turn fails, a line is no event, or an answer does not fit.
pub async fn send_all(
    driver: &mut Driver,
    prompts: RunPrompts,
    can: PromptAbilities,
) -> Result<Option<String>, Failure> {
    let RunPrompts { first: mut prompt, mut more, schema } = prompts;
    loop {
        driver.screen.note_prompt(&prompt.in_words());
        let mut blocks = prompt.into_blocks(can)?;
        blocks.extend(schema.as_ref().map(|it| text_block(&it.instruction())));
        let options = schema.as_ref().and_then(|it| it.options(false));
        let mut reason = driver.prompt(blocks, options).await?;
        if let Some(schema) = &schema {
            reason = check_answer(driver, schema, reason).await?;
        }
        let Some(events) = more.as_mut().filter(|_| reason.is_some()) else { return Ok(reason) };
        match driver.wait_idle(events.next()).await?? {
            Some(it) => prompt = it,
            None => return Ok(reason),
        }
    }
}

/// Lets an answer out that fits. The model may correct one that does not, once.
async fn check_answer(
    driver: &mut Driver,
    schema: &AnswerSchema,
    mut reason: Option<String>,
) -> Result<Option<String>, Failure> {
    let mut is_retry = false;
    while reason.as_deref() == Some("end_turn") {
        let answer = driver.screen.take_held();
        let faults = match schema.check(&answer) {
            Ok(json) => {
                driver.screen.set_answer(&json);
                break;
            }
            Err(faults) => faults,
        };
        let words = clean_line(&faults.join("; "), MAX_FAULTS);
        if is_retry {
            return Err(Failure::new(Exit::Misfit, format!("the answer does not fit the schema: {words}")));
        }
        driver.screen.note(&format!("the answer does not fit the schema, so castor asks once more: {words}"));
        reason = driver.prompt(vec![text_block(&schema.retry(&faults))], schema.options(true)).await?;
        is_retry = true;
    }
    Ok(reason)
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
