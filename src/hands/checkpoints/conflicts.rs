//! Conflicts of a restore: whether a path still has the state that the call left.

use super::{Call, Cause, CheckpointId, Delta, SessionId};

/// The author of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// Only calls that are undone.
    Undone,
    /// Calls that are to be taken back, while something else ran.
    Shared,
    /// Calls that are to be taken back; castor was stopped meanwhile.
    Stopped,
    /// Another call of this session.
    Later,
    /// Another session.
    Other,
    User,
}

impl Author {
    /// `None`: no change of a file; only what is recorded was decided anew.
    pub fn of(delta: &Delta, session: &SessionId, is_undone: impl Fn(&CheckpointId) -> bool) -> Option<Self> {
        let calls = delta.calls();
        let own = |it: &&Call| it.session == *session;
        let undone = calls.iter().filter(own).any(|it| is_undone(&it.id));
        Some(match &delta.cause {
            Cause::Rules => return None,
            Cause::User => Self::User,
            Cause::Stopped(_) if undone => Self::Stopped,
            Cause::Calls(_) if undone && calls.iter().all(|it| it.session == *session) => Self::Undone,
            Cause::Calls(_) if undone => Self::Shared,
            _ if calls.iter().any(|it| own(&it)) => Self::Later,
            _ => Self::Other,
        })
    }

    pub fn is_undone(self) -> bool {
        matches!(self, Self::Undone | Self::Shared | Self::Stopped)
    }

    /// Why this state stands in the way; `between`: the calls went on after it.
    fn reason(self, between: bool) -> Option<&'static str> {
        Some(match (self, between) {
            (Self::Undone, _) => return None,
            (Self::Shared, _) => "another session ran at the same time and may have changed it",
            (Self::Stopped, _) => "castor was stopped while the call ran, so the change may be yours",
            (Self::Later, false) => "a later call changed it too",
            (Self::Later, true) => "another call changed it in between",
            (Self::Other, _) => "another session changed it too",
            (Self::User, false) => SINCE,
            (Self::User, true) => "you changed it between two calls",
        })
    }
}

/// One state after another.
#[derive(Clone, Debug)]
pub struct StateChange<T> {
    pub old: T,
    pub new: T,
    pub who: Author,
}

/// The verdict on a path.
#[derive(Clone, Debug)]
pub struct Verdict<T> {
    pub target: T,
    /// As the last of the calls left it.
    pub left: T,
    pub conflict: Option<&'static str>,
}

pub const SINCE: &str = "it was changed since";

/// Follows a chain. States that lead back to where they began count for nothing. `None`: no call changed it.
pub fn judge<T: Clone>(links: &[StateChange<T>], now: &T, is_same: &dyn Fn(&T, &T) -> bool) -> Option<Verdict<T>> {
    let first = links.iter().position(|it| it.who.is_undone())?;
    let last = links.iter().rposition(|it| it.who.is_undone())?;
    let target = links.get(first)?.old.clone();
    let (mut state, mut left, mut conflict) = (target.clone(), target.clone(), None);
    let mut before: Option<(T, Option<&'static str>)> = None;
    for (idx, link) in links.iter().enumerate().skip(first) {
        if !is_same(&state, &link.old) {
            conflict = conflict.or(Some(SINCE));
        }
        match link.who.is_undone() {
            true => before = None,
            false if before.is_none() => before = Some((state, conflict)),
            false => (),
        }
        conflict = conflict.or(link.who.reason(idx < last));
        state = link.new.clone();
        if link.who.is_undone() {
            left = state.clone();
        }
        if let Some((_, then)) = before.as_ref().filter(|it| is_same(&it.0, &state)) {
            conflict = *then;
        }
        if is_same(&state, &target) {
            conflict = None;
        }
    }
    if !is_same(&state, now) {
        conflict = conflict.or(Some(SINCE));
    }
    Some(Verdict { target, left, conflict })
}

#[cfg(test)]
mod tests {
    use super::{Author, StateChange, judge};

    /// A chain is written as `a>b` with a letter for who: `c`all, `u`ser, `o`ther session, `l`ater call, `s`hared.
    fn check(chain: &str, now: &str, expected: &str) {
        let who = |it: &str| match it {
            "c" => Author::Undone,
            "u" => Author::User,
            "o" => Author::Other,
            "l" => Author::Later,
            _ => Author::Shared,
        };
        let links: Vec<StateChange<String>> = chain
            .split_whitespace()
            .map(|it| {
                let (by, states) = it.split_once(':').unwrap();
                let (old, new) = states.split_once('>').unwrap();
                StateChange { old: old.to_owned(), new: new.to_owned(), who: who(by) }
            })
            .collect();
        let found = judge(&links, &now.to_owned(), &|a, b| a == b);
        let said = found.map_or("nothing".to_owned(), |it| match it.conflict {
            Some(why) => format!("{}: {why}", it.target),
            None => it.target,
        });
        assert_eq!(said, expected, "{chain} now {now}");
    }

    #[test]
    fn chains_of_states() {
        check("c:a>b", "b", "a");
        check("c:a>b c:b>c", "c", "a");
        check("u:x>a c:a>b", "b", "a");
        check("u:x>a", "a", "nothing");
        check("c:a>b", "z", "a: it was changed since");
        check("c:a>b u:b>z", "z", "a: it was changed since");
        check("c:a>b u:b>z u:z>b", "b", "a");
        check("c:a>b u:b>z c:z>c", "c", "a: you changed it between two calls");
        check("c:a>b u:b>a c:a>c", "c", "a");
        check("c:a>b l:b>a c:a>c", "c", "a");
        check("c:a>b l:b>c", "c", "a: a later call changed it too");
        check("c:a>b o:b>c", "c", "a: another session changed it too");
        check("s:a>b", "b", "a: another session ran at the same time and may have changed it");
        check("s:a>b u:b>a", "a", "a");
        check("c:a>b c:q>c", "c", "a: it was changed since");
        check("c:a>b u:b>z o:z>b c:b>d u:d>e", "e", "a: it was changed since");
    }
}
