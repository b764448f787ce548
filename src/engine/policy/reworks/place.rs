//! Where a git command of a script works: behind which `cd`, and behind which options of its own.

use crate::engine::policy::{
    places,
    reworks::globals,
    shell::{Command, Script, Word, WordKind},
};

/// Words for where the shell is already.
const HERE: &[&str] = &["$PWD", "${PWD}", "$(pwd)"];
/// For the top of the work tree, in which git does the same.
const TOP: &str = "$(git rev-parse --show-toplevel)";

/// A folder, from where the call runs.
pub struct Place {
    /// From home where it begins with `~`.
    pub dir: String,
    /// It is the top of the work tree around that.
    pub is_top: bool,
}

/// `None`: nobody knows.
pub fn of(command: &Command, script: &Script) -> Option<Place> {
    if places::set_elsewhere(script) || !options_are_here(globals(command)) {
        return None;
    }
    let mut way = Way::default();
    script.commands.iter().take_while(|it| !std::ptr::eq(*it, command)).try_for_each(|it| way.follow(it))?;
    let is_folder = |it: &Word| !matches!(it.text.as_str(), "." | "./" | ".git" | "./.git");
    places::folders(command).iter().filter(|it| is_folder(it)).try_for_each(|it| way.go(it))?;
    Some(Place { dir: way.here, is_top: way.is_top })
}

/// `--git-dir=.git --work-tree=.` is what git would find.
fn options_are_here(options: &[Word]) -> bool {
    let is_one = |it: &str| it.starts_with("--git-dir") || it.starts_with("--work-tree");
    let is_here = |it: &str| matches!(it, "." | "./" | ".git" | "./.git");
    let mut words = options.iter().map(|it| it.text.as_str());
    while let Some(word) = words.next() {
        let value = match word.split_once('=') {
            Some((_, it)) => Some(it),
            None if is_one(word) => words.next(),
            None => None,
        };
        if is_one(word) && !value.is_some_and(is_here) {
            return false;
        }
    }
    true
}

/// Where a script is, as far as it went.
#[derive(Default)]
struct Way {
    here: String,
    is_top: bool,
    before: Option<String>,
    pushed: Vec<String>,
}

impl Way {
    fn follow(&mut self, command: &Command) -> Option<()> {
        let was = self.here.clone();
        match command.name() {
            Some("cd") if command.args().is_empty() => "~".clone_into(&mut self.here),
            Some("cd") => self.go(places::target(command)?)?,
            Some("pushd") => {
                self.go(places::target(command)?)?;
                self.pushed.push(was.clone());
            }
            Some("popd") if command.args().is_empty() => self.here = self.pushed.pop()?,
            Some("popd") => return None,
            _ => return Some(()),
        }
        self.before = Some(was);
        Some(())
    }

    fn go(&mut self, word: &Word) -> Option<()> {
        let text = word.text.trim_matches('"');
        let to = match word.kind {
            WordKind::Literal if text == "-" => self.before.clone()?,
            WordKind::Literal => text.to_owned(),
            WordKind::Pattern if text == "~" || text.starts_with("~/") => text.to_owned(),
            WordKind::Expanded if HERE.contains(&text) => return Some(()),
            WordKind::Expanded if text == TOP => {
                self.is_top = true;
                return Some(());
            }
            WordKind::Expanded => {
                let rest = ["$HOME", "${HOME}"].iter().find_map(|it| text.strip_prefix(it))?;
                format!("~{rest}")
            }
            WordKind::Pattern => return None,
        };
        if to.contains(['*', '?', '[', '$', '`', '{']) {
            return None;
        }
        let is_beside = self.here.is_empty() || to.starts_with(['/', '~']) || text == "-";
        self.here = if is_beside { to } else { format!("{}/{to}", self.here) };
        Some(())
    }
}
