//! Saved memory: facts that castor keeps for later sessions, and the inbox of facts that agents propose.

use sha2::{Digest, Sha256};

use crate::{
    path::AbsPath,
    text::{self, strip_hidden},
};

/// Longest fact, in bytes.
pub const MAX_FACT: usize = 2_000;
/// Most facts that wait in an inbox.
pub const MAX_INBOX: usize = 100;
/// What a new file begins with.
const HEADING: &str = "# Saved memory\n\n";
/// The start of a fact's line.
const BULLET: &str = "- ";

/// Which sessions a fact is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryScope {
    /// All of the user's.
    Global,
    /// Those of the project.
    Project,
}

impl MemoryScope {
    pub const ALL: [Self; 2] = [Self::Global, Self::Project];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Project => "project",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

/// The files of a session's saved memory, all in castor's own folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedMemory {
    /// castor's own folder.
    pub home: AbsPath,
    pub global: AbsPath,
    pub project: AbsPath,
    /// Facts that nobody has accepted yet.
    pub inbox: AbsPath,
}

impl SavedMemory {
    /// `home`: castor's own folder; `project`: where the project really is.
    pub fn new(home: &AbsPath, project: &AbsPath) -> Self {
        let path = project.as_path().as_os_str().as_encoded_bytes();
        let digest: String = Sha256::digest(path).iter().take(6).map(|it| format!("{it:02x}")).collect();
        let name = project.as_path().file_name().unwrap_or_default().to_string_lossy();
        let name: String =
            name.chars().filter(|it| it.is_ascii_alphanumeric() || "-_.".contains(*it)).take(40).collect();
        let memory = home.join("memory");
        let own = memory.join("projects").join(format!("{name}-{digest}"));
        let (global, project, inbox) = (memory.join("MEMORY.md"), own.join("MEMORY.md"), own.join("INBOX.md"));
        Self { home: home.clone(), global, project, inbox }
    }

    pub fn file(&self, scope: MemoryScope) -> &AbsPath {
        match scope {
            MemoryScope::Global => &self.global,
            MemoryScope::Project => &self.project,
        }
    }
}

/// A fact on one line, as people see it.
///
/// # Errors
/// In words: there is nothing to keep, or too much.
pub fn fact(given: &str) -> Result<String, String> {
    let words: Vec<&str> = given.split_whitespace().collect();
    let res = strip_hidden(&words.join(" "));
    let res = res.trim_start_matches(['-', '*', '#', ' ']);
    match res.len() {
        0 => Err("the fact is empty; say what to remember".to_owned()),
        len if len > MAX_FACT => Err(format!("the fact has {len} bytes; at most {MAX_FACT} can be kept")),
        _ => Ok(res.to_owned()),
    }
}

/// A file's text with one fact more; `None`: it has that fact already.
pub fn with_fact(before: &str, fact: &str) -> Option<String> {
    if before.lines().any(|it| it.strip_prefix(BULLET) == Some(fact)) {
        return None;
    }
    let head = if before.trim().is_empty() { HEADING } else { before };
    let end = if head.ends_with('\n') { "" } else { "\n" };
    Some(format!("{head}{end}{BULLET}{fact}\n"))
}

/// A fact that waits in the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedFact {
    pub scope: MemoryScope,
    pub fact: String,
}

/// The facts of an inbox file; other lines are nothing.
pub fn read_inbox(text: &str) -> Vec<ProposedFact> {
    let read = |line: &str| {
        let (scope, fact) = line.strip_prefix("- [")?.split_once("] ")?;
        Some(ProposedFact { scope: MemoryScope::parse(scope)?, fact: self::fact(fact).ok()? })
    };
    text.lines().filter_map(read).take(MAX_INBOX).collect()
}

pub fn inbox_text(facts: &[ProposedFact]) -> String {
    facts.iter().map(|it| format!("- [{}] {}\n", it.scope.as_str(), it.fact)).collect()
}

/// What the user wants of saved memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryOrder {
    Add(ProposedFact),
    /// Shows what waits.
    Inbox,
    Accept(InboxChoice),
    Discard(InboxChoice),
}

/// Facts of the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxChoice {
    All,
    /// From 1 on.
    One(usize),
}

impl InboxChoice {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "all" => Some(Self::All),
            _ => word.parse().ok().filter(|it| *it > 0).map(Self::One),
        }
    }

    pub fn includes(self, number: usize) -> bool {
        match self {
            Self::All => true,
            Self::One(it) => it == number,
        }
    }
}

impl MemoryOrder {
    /// Reads `add [global] FACT`, `inbox`, `inbox accept NUMBER|all` and `inbox discard NUMBER|all`.
    pub fn parse(args: &str) -> Option<Self> {
        let (verb, rest) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
        let rest = rest.trim();
        if verb == "add" {
            let (first, more) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let scope = MemoryScope::parse(first).filter(|_| !more.is_empty());
            let fact = if scope.is_some() { more } else { rest };
            return Some(Self::Add(ProposedFact {
                scope: scope.unwrap_or(MemoryScope::Project),
                fact: fact.to_owned(),
            }));
        }
        match (verb, rest.split_once(char::is_whitespace)) {
            ("inbox", None) if rest.is_empty() => Some(Self::Inbox),
            ("inbox", Some(("accept", which))) => InboxChoice::parse(which.trim()).map(Self::Accept),
            ("inbox", Some(("discard", which))) => InboxChoice::parse(which.trim()).map(Self::Discard),
            _ => None,
        }
    }
}

/// A fact as a list shows it.
pub fn shown_fact(number: usize, it: &ProposedFact) -> String {
    format!("{number}. ({}) {}\n", it.scope.as_str(), text::first_line(&it.fact, 400))
}

#[cfg(test)]
mod tests {
    use super::{
        InboxChoice, MemoryOrder, MemoryScope, ProposedFact, SavedMemory, fact, inbox_text, read_inbox, with_fact,
    };
    use crate::path::AbsPath;

    #[test]
    fn a_fact_is_one_line_and_kept_once() {
        let kept = fact(" - The tests\n  run with `make check`.\u{200b} ").unwrap();
        assert_eq!(kept, "The tests run with `make check`.");
        assert!(fact(" \n- ").unwrap_err().contains("empty"));
        assert!(fact(&"x".repeat(2_001)).unwrap_err().contains("at most 2000"));
        let once = with_fact("", &kept).unwrap();
        assert_eq!(once, "# Saved memory\n\n- The tests run with `make check`.\n");
        assert_eq!(with_fact(&once, &kept), None);
        assert_eq!(with_fact("mine", "b").unwrap(), "mine\n- b\n");
    }

    #[test]
    fn an_inbox_survives_its_text() {
        let facts = [(MemoryScope::Global, "a"), (MemoryScope::Project, "b] c")]
            .map(|(scope, it)| ProposedFact { scope, fact: it.to_owned() });
        assert_eq!(read_inbox(&format!("# head\n- [else] x\n{}", inbox_text(&facts))), facts);
    }

    #[test]
    fn orders_are_read() {
        let add = |scope, fact: &str| Some(MemoryOrder::Add(ProposedFact { scope, fact: fact.to_owned() }));
        for (args, order) in [
            ("add use tabs", add(MemoryScope::Project, "use tabs")),
            ("add global use tabs", add(MemoryScope::Global, "use tabs")),
            ("add global", add(MemoryScope::Project, "global")),
            ("inbox", Some(MemoryOrder::Inbox)),
            ("inbox accept 2", Some(MemoryOrder::Accept(InboxChoice::One(2)))),
            ("inbox discard all", Some(MemoryOrder::Discard(InboxChoice::All))),
            ("inbox accept 0", None),
            ("inbox accept", None),
            ("inboxes", None),
        ] {
            assert_eq!(MemoryOrder::parse(args), order, "{args}");
        }
    }

    #[test]
    fn projects_of_one_name_have_files_of_their_own() {
        let home = AbsPath::new("/h/.castor").unwrap();
        let of = |it: &str| SavedMemory::new(&home, &AbsPath::new(it).unwrap());
        assert_ne!(of("/a/x").project, of("/b/x").project);
        assert!(of("/a/x y").project.to_string().starts_with("/h/.castor/memory/projects/xy-"));
    }
}
