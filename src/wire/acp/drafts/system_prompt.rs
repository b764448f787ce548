//! ACP `systemPrompt` of session/new, load, resume and fork, which is unstable.

use agent_client_protocol_schema::v1::{ContentBlock, SystemPrompt, SystemPromptMode};

use castor_base::client_settings::{ClientPrompt, ClientPromptMode, MAX_CLIENT_PROMPT};

/// Reads the system prompt of a client; `None`: it gives none.
///
/// # Errors
/// One line: a mode or a block that castor does not know, no text, too much text.
pub(in crate::acp) fn read_system_prompt(given: Option<SystemPrompt>) -> Result<Option<ClientPrompt>, String> {
    let Some(given) = given else { return Ok(None) };
    let mode = match given.mode {
        SystemPromptMode::Append => ClientPromptMode::Append,
        SystemPromptMode::Override => ClientPromptMode::Override,
        _ => return Err("systemPrompt.mode: send \"append\" or \"override\"".to_owned()),
    };
    let texts = given.content.iter().map(|it| match it {
        ContentBlock::Text(it) => Ok(it.text.as_str()),
        _ => Err("systemPrompt.content: send blocks of the type \"text\" only".to_owned()),
    });
    let text = texts.collect::<Result<Vec<&str>, String>>()?.join("\n\n");
    match text.len() {
        _ if text.trim().is_empty() => Err("systemPrompt.content is empty; send text, or leave it out".to_owned()),
        n if n > MAX_CLIENT_PROMPT => {
            Err(format!("systemPrompt.content has {n} bytes; send at most {MAX_CLIENT_PROMPT}"))
        }
        _ => Ok(Some(ClientPrompt { mode, text: text.into() })),
    }
}
