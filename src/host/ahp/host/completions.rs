//! Completions of a message: slash commands, while the first word is typed, and paths after an `@`.

use ahp::ahp_types::{
    commands::{CompletionItem, CompletionsResult},
    common::JsonObject,
    state::{MessageAttachment, SimpleMessageAttachment},
};
use serde::Deserialize;

use super::host_call::HostCall;
use crate::ahp::machine::{
    files::FileJob,
    path_begin::{MAX_COMPLETIONS, PathBegin},
};
use crate::ahp::sessions::acts::number;
use crate::ahp::{AhpHost, Channel, ClientRefusal, RequestOutcome};
use castor_base::root_files::{FileAct, FileOrder};
use castor_wire::acp::client::OfferedCommand;

/// What is typed; without an offset all of the text counts.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TypedParams {
    text: String,
    offset: Option<usize>,
}

pub fn complete_message(host: &mut AhpHost, call: HostCall) -> RequestOutcome {
    let uri = call.channel_uri()?;
    let channel = Channel::read(uri);
    let hosted = channel.as_ref().and_then(Channel::session).and_then(|it| host.sessions.all.get(it));
    let hosted = hosted.ok_or_else(|| ClientRefusal::no_channel(uri))?;
    let params: TypedParams = call.read_known();
    let typed: Vec<u16> = params.text.encode_utf16().take(params.offset.unwrap_or(usize::MAX)).collect();
    let (n_typed, typed) = (typed.len(), String::from_utf16_lossy(&typed));
    let items = match typed.strip_prefix('/').filter(|it| !it.contains(char::is_whitespace)) {
        Some(begin) => {
            let commands = hosted.offer.commands.iter().filter(|it| it.name.starts_with(begin));
            commands.take(MAX_COMPLETIONS).map(|it| item(it, n_typed)).collect()
        }
        None => match PathBegin::of(&typed, &hosted.cwd) {
            Some(begin) => {
                let (roots, path) = (vec![begin.root.clone()], begin.folder.clone());
                let order = FileOrder { roots, path, act: FileAct::List };
                host.machine.order_file(&mut host.clients, order, FileJob::Complete { asker: call.asker, begin });
                return Ok(());
            }
            None => Vec::new(),
        },
    };
    host.clients.answer(&call.asker, &CompletionsResult { items });
    Ok(())
}

/// The item that replaces what was typed. An item has to bring an attachment, which says nothing to the model here.
/// Its meta says of the command what clients show beside the label.
fn item(it: &OfferedCommand, n_typed: usize) -> CompletionItem {
    let name = &it.name;
    let meta = [("command", name.as_str()), ("description", it.description.as_str())];
    let meta = meta.into_iter().chain(it.hint().map(|it| ("argumentHint", it)));
    let attachment = SimpleMessageAttachment {
        label: format!("/{name}"),
        range: None,
        display_kind: Some("command".to_owned()),
        meta: Some(JsonObject::from_iter(meta.map(|(name, it)| (name.to_owned(), it.into())))),
        model_representation: None,
    };
    CompletionItem {
        insert_text: format!("/{name} "),
        range_start: Some(0),
        range_end: Some(number(n_typed)),
        attachment: MessageAttachment::Simple(attachment),
    }
}
