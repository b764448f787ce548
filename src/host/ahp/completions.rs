//! Completions of a message: slash commands, while the first word is typed, and paths after an `@`.

use ahp::ahp_types::{
    commands::{CompletionItem, CompletionsResult},
    state::{MessageAttachment, SimpleMessageAttachment},
};
use serde_json::json;

use super::{
    AhpHost,
    channel::Channel,
    client_requests::{ClientRefusal, HostCall, RequestOutcome},
    file_requests::FileJob,
    hub_requests::WaitingClient,
    path_begin::PathBegin,
};
use castor_base::root_files::{FileAct, FileAnswer, FileOrder, FileTrouble};
use castor_wire::acp::client::OfferedCommand;

const MAX_ITEMS: usize = 50;

impl AhpHost {
    pub(super) fn complete_message(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let uri = call.text("channel")?;
        let channel = Channel::read(&uri);
        let hosted = channel.as_ref().and_then(Channel::session).and_then(|it| self.sessions.get(it));
        let hosted = hosted.ok_or_else(|| ClientRefusal::no_channel(&uri))?;
        let text = call.params["text"].as_str().unwrap_or_default();
        let offset = call.params["offset"].as_u64().and_then(|it| usize::try_from(it).ok()).unwrap_or(usize::MAX);
        let typed: Vec<u16> = text.encode_utf16().take(offset).collect();
        let typed = String::from_utf16_lossy(&typed);
        let items = match typed.strip_prefix('/').filter(|it| !it.contains(char::is_whitespace)) {
            Some(begin) => {
                let commands = hosted.offer.commands.iter().filter(|it| it.name.starts_with(begin));
                commands.take(MAX_ITEMS).map(|it| item(it, typed.encode_utf16().count())).collect()
            }
            None => match PathBegin::of(&typed, &hosted.cwd) {
                Some(it) => {
                    let order = FileOrder { roots: vec![it.root.clone()], path: it.folder.clone(), act: FileAct::List };
                    self.order_file(order, FileJob::Complete { asker: call.asker(), begin: it });
                    return Ok(());
                }
                None => Vec::new(),
            },
        };
        self.answer(&call.asker(), &CompletionsResult { items });
        Ok(())
    }

    /// A folder that cannot be listed has nothing to complete.
    pub(super) fn complete_path(&mut self, asker: &WaitingClient, begin: &PathBegin, outcome: FileOutcome) {
        let entries = if let Ok(FileAnswer::Entries(it)) = outcome { it } else { Vec::new() };
        let fitting = entries.iter().filter(|it| it.0.starts_with(&begin.name));
        // Hidden ones are meant where the dot is typed.
        let fitting = fitting.filter(|it| !it.0.starts_with('.') || begin.name.starts_with('.'));
        let items = fitting.take(MAX_ITEMS).map(|it| begin.item(it)).collect();
        self.answer(asker, &CompletionsResult { items });
    }
}

type FileOutcome = Result<FileAnswer, FileTrouble>;

/// The item that replaces what was typed. An item has to bring an attachment, which says nothing to the model here.
/// `_meta` says of the command what clients show beside the label.
fn item(it: &OfferedCommand, n_typed: usize) -> CompletionItem {
    let (OfferedCommand { name, description, .. }, hint) = (it, it.hint());
    let meta = [
        ("command", Some(json!(name))),
        ("description", Some(json!(description))),
        ("argumentHint", hint.as_ref().map(|it| json!(it))),
    ];
    let meta = meta.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?))).collect();
    let attachment = SimpleMessageAttachment {
        label: format!("/{name}"),
        range: None,
        display_kind: Some("command".to_owned()),
        meta: Some(meta),
        model_representation: None,
    };
    CompletionItem {
        insert_text: format!("/{name} "),
        range_start: Some(0),
        range_end: i64::try_from(n_typed).ok(),
        attachment: MessageAttachment::Simple(attachment),
    }
}
