//! What the sandbox found under commands that went on after their call: told with the session's next result, or by a notice
//! when they end.

use std::sync::{Arc, Mutex, PoisonError};

use crate::base::{
    path::AbsPath,
    terminal::{Findings, Later},
};

/// Commands of all sessions that go on, each with the folder by which its session is known.
#[derive(Clone, Default)]
pub struct Untold(Arc<Mutex<Vec<Going>>>);

struct Going {
    number: u64,
    session: AbsPath,
    look: Later,
}

const WHO: &str = "a command in the background";

impl Untold {
    /// It goes on; the number by which it is known.
    pub fn add(&self, session: &AbsPath, look: Later) -> u64 {
        self.with(|all| {
            let number = all.iter().map(|it| it.number + 1).max().unwrap_or_default();
            all.push(Going { number, session: session.clone(), look });
            number
        })
    }

    /// What is other by now under the commands of a session, and was not told yet.
    pub fn look(&self, session: &AbsPath) -> Option<String> {
        self.with(|all| joined(all.iter_mut().filter(|it| it.session == *session).map(|it| (it.look)())))
    }

    /// It ended: what is left to tell.
    pub fn end(&self, number: u64) -> Option<String> {
        self.with(|all| {
            let at = all.iter().position(|it| it.number == number)?;
            (all.swap_remove(at).look)().in_words(WHO)
        })
    }

    fn with<T>(&self, then: impl FnOnce(&mut Vec<Going>) -> T) -> T {
        then(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What several found is told once.
fn joined(all: impl Iterator<Item = Findings>) -> Option<String> {
    let mut said: Vec<String> = Vec::new();
    for it in all.filter_map(|it| it.in_words(WHO)) {
        said.extend(Some(it).filter(|it| !said.contains(it)));
    }
    (!said.is_empty()).then(|| said.join("\n"))
}

impl std::fmt::Debug for Untold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Untold").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Untold;
    use crate::base::{path::AbsPath, terminal::Findings};

    #[test]
    fn each_session_hears_of_its_own_once() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let finds = |name: &str| {
            let mut replaced = vec![path(name)];
            Box::new(move || Findings { replaced: std::mem::take(&mut replaced), ..Findings::default() })
        };
        let all = Untold::default();
        let (one, two) = (all.add(&path("/s1"), finds("/w/a")), all.add(&path("/s1"), finds("/w/b")));
        let other = all.add(&path("/s2"), finds("/w/c"));
        let said = all.look(&path("/s1")).unwrap();
        assert!(said.contains("/w/a") && said.contains("/w/b") && !said.contains("/w/c"), "{said}");
        assert_eq!((all.look(&path("/s1")), all.end(one), all.end(two)), (None, None, None));
        assert!(all.end(other).unwrap().contains("/w/c"));
        assert_eq!((all.end(other), all.look(&path("/s2"))), (None, None));
        (0..3).for_each(|_| _ = all.add(&path("/s3"), finds("/w/d")));
        assert_eq!(all.look(&path("/s3")).unwrap().matches("/w/d").count(), 1);
    }
}
