//! Resources of MCP servers that a prompt names, `@server:uri`: they are read before the model is asked.

use crate::turn::{
    flow::{Flow, Phase},
    messages::{ModelNote, send_message, tell_model},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    record::{STEERING_META, Step},
    step::{Effect, Input, Server},
};
use castor_base::{
    content::Part,
    event::Speaker,
    ids::EffectId,
    server_offer::{ServerQuery, ServerQueryKind, strip_server},
    text,
};

/// Resources of one prompt; the rest stays text.
const MAX_MENTIONS: usize = 10;
/// What may stand behind an address in a sentence.
const PUNCTUATION: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '>'];

/// One after the other, in the order of the prompt.
#[derive(Debug)]
struct ReadingResources {
    effect: EffectId,
    query: ServerQuery,
    left: Vec<ServerQuery>,
}

pub(in crate::turn) fn read_mentioned(turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    // Agents read what they are told to read by themselves.
    if cx.spec.toolbox.task.is_some() {
        return Flow::Next;
    }
    let mut left = mentioned(&turn.transcript.typed_text, &cx.spec.toolbox.servers);
    left.reverse();
    read_next(left, turn, cx)
}

fn read_next(mut left: Vec<ServerQuery>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    match left.pop() {
        Some(query) => {
            let effect = turn.ask_server(cx.step, &query);
            Flow::wait(ReadingResources { effect, query, left })
        }
        None => Flow::Next,
    }
}

/// A name in front of `:` counts only where a server of that name has resources: all else that begins with `@` is text.
fn mentioned(prompt: &str, servers: &[Server]) -> Vec<ServerQuery> {
    let mut res: Vec<ServerQuery> = Vec::new();
    let having = || servers.iter().filter(|it| it.is_there() && it.offer.has_resources);
    for word in prompt.split_whitespace() {
        let Some(word) = word.trim_start_matches(['(', '[', '{', '"', '\'', '<']).strip_prefix('@') else { continue };
        let of_server = |it: &Server| {
            let whole = strip_server(word, &it.name)?;
            let is_listed = it.offer.resources.iter().any(|it| it.uri == whole);
            let uri = if is_listed { whole } else { whole.trim_end_matches(PUNCTUATION) };
            let what = ServerQueryKind::Resource { uri: uri.to_owned() };
            Some(ServerQuery { server: it.name.clone(), what }).filter(|_| !uri.is_empty())
        };
        res.extend(having().find_map(of_server).filter(|it| !res.contains(it)));
    }
    res.truncate(MAX_MENTIONS);
    res
}

impl Phase for ReadingResources {
    fn step(self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        let Input::ServerAnswered { effect, result } = input else { return Flow::Unrelated(self, input) };
        if effect != self.effect {
            return Flow::Unrelated(self, Input::ServerAnswered { effect, result });
        }
        turn.scheduler.end_query(cx.step, effect);
        let ServerQueryKind::Resource { uri } = &self.query.what else { return Flow::Next };
        let (server, uri) = (text::first_line(&self.query.server, 100), text::first_line(uri, 500));
        match result {
            Ok(parts) => {
                let head = Part::text(format!("The resource @{server}:{uri}:\n"));
                // A part of the prompt: the client shows what was typed.
                let content = [head].into_iter().chain(parts).collect();
                send_message(cx.step, Speaker::User, content, &[STEERING_META]);
            }
            Err(why) => {
                let note = ModelNote::from(format!("The resource @{server}:{uri} could not be read: "));
                tell_model(cx.step, note.and_quote(why));
            }
        }
        read_next(self.left, turn, cx)
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        step.start_effect(Effect::Abort { effect: self.effect });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::mentioned;
    use crate::step::{Server, ServerStatus};
    use castor_base::server_offer::{ServerOffer, ServerQueryKind, ServerResource};

    fn server(name: &str, has_resources: bool, status: ServerStatus) -> Server {
        let listed =
            ServerResource { uri: "x:why?".to_owned(), name: String::new(), description: String::new(), mime: None };
        let offer = ServerOffer { has_resources, resources: vec![listed], ..ServerOffer::default() };
        Server { offer: Arc::new(offer), ..Server::new(name, status) }
    }

    #[test]
    fn only_servers_with_resources_are_mentioned() {
        let servers = [
            server("a", true, ServerStatus::Ready),
            server("b", false, ServerStatus::Ready),
            server("c", true, ServerStatus::Lost("it ended".to_owned())),
        ];
        let said = |prompt: &str| {
            let all = mentioned(prompt, &servers).into_iter().map(|it| match it.what {
                ServerQueryKind::Resource { uri } => format!("{} {uri}", it.server),
                other => format!("{other:?}"),
            });
            all.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(said("See @a:file:///x, (@a:y) and @a:file:///x."), "a file:///x, a y");
        assert_eq!(said("@a:x:why? @a:x:who?"), "a x:why?, a x:who");
        assert_eq!(said("@b:x @c:x @d:x a@a:x @a: @a:, @a"), "");
        let many: String = (0..20).map(|n| format!("@a:{n} ")).collect();
        assert_eq!(mentioned(&many, &servers).len(), 10);
    }
}
