//! Ids of calls in requests: as they came in the dialect that they came in, made legal elsewhere.

use std::borrow::Cow;

use super::provider_limits::{fit_name, sign, tool_name, unsign};
use castor_base::history::{Role, Turn, TurnPart};

/// Longest id that every provider takes, in bytes.
const MAX_ID: usize = 40;
/// What is signed to say that a call came with its id from this signer.
const MARK: &str = "id";

/// The id as every provider takes it. One id always becomes the same other one.
fn fit(id: &str) -> Cow<'_, str> {
    fit_name(id, MAX_ID, "_-")
}

/// The mark of a call whose id nobody but its maker takes; `None`: there is nothing to remember.
pub fn mark(signer: &str, id: &str) -> Option<String> {
    matches!(fit(id), Cow::Owned(_)).then(|| sign(signer, MARK))
}

/// Which ids a request has for calls and their results: one kind for each turn.
#[derive(Clone, Copy, Debug)]
pub struct SentIds<'a> {
    /// Whose ids go back as they came.
    pub signer: &'a str,
    /// The turn of the calls: the one that is written, or that its results answer.
    pub calls: Option<&'a Turn>,
    /// For models that know ids by the call's name and number alone: the number of calls before that turn.
    pub native: Option<usize>,
}

impl<'a> SentIds<'a> {
    /// One for each turn.
    pub fn of_turns(
        turns: impl Iterator<Item = &'a Turn>,
        signer: &'a str,
        is_native: bool,
    ) -> impl Iterator<Item = (&'a Turn, Self)> {
        let (mut calls, mut before, mut n_calls) = (None, 0, 0);
        turns.map(move |turn| {
            if turn.role() == Role::Model {
                (calls, before) = (Some(turn), n_calls);
                n_calls += if is_native { calls_of(turn).count() } else { 0 };
            }
            (turn, Self { signer, calls, native: is_native.then_some(before) })
        })
    }

    /// Tells whether a call of the turn has an id that goes back as it came.
    pub fn has_own(&self) -> bool {
        self.calls.into_iter().flat_map(calls_of).any(|(_, _, signature)| self.is_own(signature))
    }

    fn is_own(&self, signature: Option<&str>) -> bool {
        signature.and_then(|it| unsign(self.signer, it)) == Some(MARK)
    }

    /// The id of a call or of its result.
    pub fn sent<'b>(&self, id: &'b str) -> Cow<'b, str> {
        let mut calls = self.calls.into_iter().flat_map(calls_of).enumerate();
        let Some((at, (_, name, signature))) = calls.find(|(_, it)| it.0 == id) else { return fit(id) };
        match self.native {
            Some(_) if is_native(id) => id.into(),
            Some(before) => format!("functions.{}:{}", tool_name(name), before + at).into(),
            // A second call of one id has another one of ours, under the mark of the first.
            None if self.is_own(signature) && !id.strip_prefix(name).is_some_and(|it| it.starts_with('-')) => id.into(),
            None => fit(id),
        }
    }
}

/// Id, name and signature of each call.
fn calls_of(turn: &Turn) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
    turn.parts().iter().filter_map(|it| match it {
        TurnPart::Call { call, signature } => Some((call.id.as_str(), &*call.name, signature.as_deref())),
        TurnPart::Content(_) | TurnPart::Result(_) => None,
    })
}

/// `functions.NAME:NUMBER`
fn is_native(id: &str) -> bool {
    let parts = id.strip_prefix("functions.").and_then(|it| it.rsplit_once(':'));
    parts.is_some_and(|(name, number)| {
        !name.is_empty() && !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::{SentIds, fit, is_native, mark};
    use crate::providers::gemini::conversation;
    use castor_base::history::TurnPart;

    /// The ids of all calls and results, as they are sent.
    fn sent(text: &str, signer: &str, is_native: bool) -> Vec<String> {
        let turns = conversation(text);
        let ids = SentIds::of_turns(turns.iter().map(|it| &**it), signer, is_native);
        let mut res = Vec::new();
        for (turn, ids) in ids {
            res.extend(turn.parts().iter().filter_map(|it| match it {
                TurnPart::Call { call, .. } => Some(ids.sent(call.id.as_str()).into_owned()),
                TurnPart::Result(it) => Some(ids.sent(it.id.as_str()).into_owned()),
                TurnPart::Content(_) => None,
            }));
        }
        res
    }

    #[test]
    fn ids_go_back_as_they_came_where_they_came_from() {
        let (odd, long) = ("functions.add:0", "call_abc__thought__QUJD+/=".repeat(9));
        for id in [odd, &long] {
            let (chat, other) = (mark("chat/one", id).unwrap(), mark("anthropic", id).unwrap());
            for (mark, own) in [(chat, true), (other, false)] {
                let text = format!("model call {id} add {{}} ^{mark}\ntool result {id} add 1\nuser text go");
                let got = sent(&text, "chat/one", false);
                let expected = if own { id.to_owned() } else { fit(id).into_owned() };
                assert_eq!(got, [expected.clone(), expected], "{mark}");
            }
        }
        assert_eq!(mark("chat/one", "call_1"), None);
        assert_eq!(sent("model call call_1 add {}\ntool result call_1 add 1", "x", false), ["call_1", "call_1"]);
        // castor's own id, as the provider's was used before.
        let own = "a.b-0123";
        let text = format!("model call {own} a.b {{}} ^chat/one:id\ntool result {own} a.b 1");
        assert_eq!(sent(&text, "chat/one", false)[0], fit(own));
    }

    #[test]
    fn foreign_ids_become_native_ones() {
        let text = "model call toolu_1 read {}\nmodel call toolu_2 mcp.x {}\ntool result toolu_2 mcp.x 1\n\
                    tool result toolu_1 read 1\nuser text go\nmodel call functions.read:2 read {}\n\
                    tool result functions.read:2 read 1\nmodel call call_9 read {}\ntool result call_9 read 1";
        let got = sent(text, "chat/kimi", true);
        assert_eq!((&*got[0], &*got[3]), ("functions.read:0", "functions.read:0"));
        assert!(got[1].starts_with("functions.mcp_x_") && got[1].ends_with(":1") && got[1] == got[2], "{got:?}");
        assert_eq!(got[4..], ["functions.read:2", "functions.read:2", "functions.read:3", "functions.read:3"]);
        for (id, expected) in [
            ("functions.a:0", true),
            ("functions.a.b:12", true),
            ("functions.:0", false),
            ("functions.a:", false),
            ("a:0", false),
        ] {
            assert_eq!(is_native(id), expected, "{id}");
        }
    }
}
