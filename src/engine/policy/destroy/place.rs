//! Where the words of a script point to: below the roots, out of them, into folders that a build makes anew.

use super::{
    computed,
    table::{BUILD, MADE},
};
use crate::{
    base::path::AbsPath,
    engine::policy::{
        Query,
        checked_out::Named,
        danger::git_words,
        leads::{self, Leads},
        pieces, places,
        shell::{Command, FOUND, Script, Word, WordKind, base_name},
    },
};

/// Where the words of a script point to.
pub(in crate::engine::policy) struct Place<'a> {
    pub(super) roots: &'a [AbsPath],
    /// Where its words lead.
    pub leads: Leads<'a>,
    /// Relative paths stay below the roots: nothing in the script goes elsewhere first.
    pub(super) steady: bool,
    /// Its build folders hold what a build makes: nothing in the script puts something else there.
    made: bool,
    /// Something in the script runs in a container, where folders are other ones.
    pub(super) contains: bool,
    pub(super) script: &'a Script,
    undone: &'a [String],
}

impl<'a> Place<'a> {
    pub fn of(query: &Query<'a>, script: &'a Script) -> Self {
        let roots = query.roots;
        let inside = query.targets.paths.iter().all(|it| it.in_roots);
        let leads = Leads::of(query);
        let stays =
            |it: &Command| stays(it, roots) && !(places::is_cd(it) && it.args().iter().any(|it| leads.leave(it)));
        let all_stay = script.commands.iter().all(stays) || goes_and_returns(script, roots, &leads);
        // `ln -s ../other l && cd l`
        let calls = |names: &[&str]| {
            script.commands.iter().any(|it| it.name().is_some_and(|it| names.contains(&base_name(it))))
        };
        let led = calls(&["ln"]) && calls(&["cd", "pushd"]);
        let steady = inside && !places::set_elsewhere(script) && all_stay && !led;
        let contains = places::has_container(script);
        let undone = &query.targets.undone;
        let place = Self { roots, leads, steady, made: true, contains, script, undone };
        let made = !script.commands.iter().any(|it| place.fills_build(it));
        Self { made, ..place }
    }

    /// The same, where nobody knows in which folder.
    pub(super) fn apart(&self) -> Self {
        Self { steady: false, leads: self.leads.clone(), ..*self }
    }

    /// The same for another script in its words.
    pub(super) fn within(&self, script: &'a Script) -> Self {
        Self { script, contains: places::has_container(script), ..self.apart() }
    }

    /// Whether the word names something in a build folder, and leads to no other place.
    fn is_build(&self, word: &Word) -> bool {
        if word.text == FOUND || *word == Word::unknown() {
            return self.is_found_in_build(word.text != FOUND);
        }
        let told = || pieces::told(word, self.script).filter(|it| !it.is_empty());
        if let Some(told) = Some(word).filter(|it| it.kind == WordKind::Expanded).and_then(|_| told()) {
            return told.iter().all(|it| self.is_build(it));
        }
        if !self.made || self.leads.any(word, |it| !self.is_in_build(&it.real)) {
            return false;
        }
        if computed::is_temporary(word, self.script) {
            return true;
        }
        let text = word.text.as_str();
        if let Some(rest) = self.behind_here(text) {
            return self.is_build(&rest);
        }
        let rest = match text.strip_prefix('/') {
            None => self.steady.then_some(text),
            Some(_) => self.roots.iter().find_map(|it| below(text, it)),
        };
        let Some(rest) = rest.filter(|it| word.kind != WordKind::Expanded && !it.starts_with('~')) else {
            return false;
        };
        let hidden_pattern = |it: &str| it.starts_with('.') && it.contains(['*', '?', '[']);
        let mut parts = rest.split('/');
        let plain = !parts.clone().any(|it| it == ".." || hidden_pattern(it));
        plain
            && (parts.any(|it| BUILD.contains(&it) || it.starts_with("cmake-build-"))
                || is_made(rest.rsplit('/').next().unwrap_or_default()))
    }

    /// `"$PWD/dist"`, where no command of the script has gone elsewhere.
    fn behind_here(&self, text: &str) -> Option<Word> {
        let plain = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(text);
        let rest = ["$PWD/", "${PWD}/", "$(pwd)/"].iter().find_map(|it| plain.strip_prefix(it))?;
        // Without quotes the shell makes several words of a root with a blank in it.
        let whole =
            plain.len() < text.len() || !self.roots.iter().any(|it| it.to_string().contains(char::is_whitespace));
        let index = pieces::Index::of(self.script);
        let set = index.sets() || !self.script.functions.is_empty() || index.parts_oddly(self.script);
        let is_name = |it: char| it.is_alphanumeric() || "-_./".contains(it);
        let stays = self.steady && !self.script.commands.iter().any(places::is_cd);
        let own = stays && !self.script.assigned.iter().any(|it| it == "PWD") && rest.chars().all(is_name);
        (own && whole && !set).then(|| Word::literally(rest))
    }

    /// `find . -name __pycache__ -exec rm -rf {} +`, `find . -name '*.pyc' | xargs rm`: only such things come from it, and from
    /// nowhere else.
    fn is_found_in_build(&self, piped: bool) -> bool {
        const FROM_ELSEWHERE: &[&str] = &["-a", "--a", "-I", "-i", "-J", "--r"];
        let names: Vec<&str> =
            self.script.commands.iter().map(|it| it.name().map(base_name).unwrap_or_default()).collect();
        let order: &[&str] = if piped { &["find", "xargs", "rm"] } else { &["find", "rm"] };
        let alone = self.script.redirects.iter().all(|it| it.writes) && !self.script.has_heredoc;
        let own = alone && self.script.functions.is_empty() && names == order;
        let reads_list =
            |it: &Command| it.args().iter().any(|it| FROM_ELSEWHERE.iter().any(|start| it.text.starts_with(start)));
        let mut commands = self.script.commands.iter();
        let finds = commands.next().is_some_and(|it| self.finds_build(it.args(), piped));
        own && finds && !(piped && commands.next().is_some_and(reads_list))
    }

    /// Whether find's tests let only such names pass, below the roots. `prints`: to somebody else, nothing but names.
    pub(super) fn finds_build(&self, args: &[Word], prints: bool) -> bool {
        let (folders, mut rest) =
            args.split_at(args.iter().position(|it| it.text.starts_with(['-', '(', '!'])).unwrap_or(args.len()));
        let mut named = false;
        while let [test, more @ ..] = rest {
            rest = match (test.text.as_str(), more) {
                ("-prune" | "-empty" | "-depth" | "-xdev", _) => more,
                ("-name", [name, more @ ..]) => {
                    named |= name.literal().is_some_and(|it| BUILD.contains(&it) || is_made(it));
                    more
                }
                ("-type" | "-maxdepth" | "-mindepth", [value, more @ ..]) if value.literal().is_some() => more,
                _ => break,
            };
        }
        // What comes before the test happens to all.
        let acts = match rest {
            [] => prints,
            [act] => {
                if prints {
                    matches!(act.text.as_str(), "-print" | "-print0")
                } else {
                    act.text == "-delete"
                }
            }
            [act, ..] => !prints && act.text == "-exec",
        };
        named && acts && !folders.iter().any(|it| self.is_outside(it) || it.kind != WordKind::Literal)
    }

    fn is_in_build(&self, real: &AbsPath) -> bool {
        let rest = self.roots.iter().find_map(|it| real.as_path().strip_prefix(it.as_path()).ok());
        rest.is_some_and(|it| it.iter().any(|it| BUILD.iter().any(|name| it == *name)))
    }

    /// `mv src build`, `ln -s src target`: from then on the name stands for something else.
    fn fills_build(&self, command: &Command) -> bool {
        let name = command.name().map(base_name).unwrap_or_default();
        const MOVES: &[&str] = &["rename", "move(", "symlink", ".mv", "ln_s", "link("];
        if command.code.as_deref().is_some_and(|it| MOVES.iter().any(|call| it.contains(call))) {
            return true;
        }
        let words = match name {
            "git" => git_words(command.args()),
            "cmake" | "hg" | "rclone" | "sl" | "svn" => {
                let option = |it: &&Word| it.text.starts_with('-');
                command.args().get(command.args().iter().take_while(option).count()..).unwrap_or_default()
            }
            _ => &command.words,
        };
        let Some((verb, args)) = words.split_first() else { return false };
        let from_elsewhere = |it: &&Word| !it.text.starts_with('-') && !self.is_build(it);
        let moves = match base_name(&verb.text) {
            "worktree" => args.first().is_some_and(|it| it.text == "move"),
            it => MOVES_IN.contains(&it),
        };
        // `mv src buil[d]`, `cd build && mv ../src .`
        let open = |it: &Word| match it.kind {
            WordKind::Literal => false,
            WordKind::Pattern => true,
            WordKind::Expanded => pieces::told(it, self.script).is_none(),
        };
        let comes_in = |it: &Word| it.text.contains("..") || it.text.starts_with(['/', '~', '$', '"']);
        let inside = || {
            let cds = self.script.commands.iter().filter(|it| places::is_cd(it));
            args.iter().any(comes_in) && cds.filter_map(places::target).any(|it| self.is_build(it))
        };
        moves
            && (args.iter().any(|it| self.is_build(it)) || args.last().is_some_and(open) || inside())
            && args.iter().any(|it| from_elsewhere(&it))
    }

    pub(super) fn all_build<'w>(&self, mut words: impl Iterator<Item = &'w Word>) -> bool {
        let first = words.next();
        first.is_some_and(|it| self.is_build(it)) && words.all(|it| self.is_build(it))
    }

    /// Whether all that git is to throw away lies in build folders: its paths, not what an option takes.
    pub(super) fn has_only_build(&self, args: &[Word]) -> bool {
        // `-e`, `-s`, and checkout's `-B`, behind which a branch stands, also among others.
        let valued = |it: &Word| match it.text.strip_prefix('-') {
            Some(long) if long.starts_with('-') => ["-e", "-s", "-pathspec"].iter().any(|it| long.starts_with(it)),
            Some(short) => short.contains(['e', 's', 'B']),
            None => false,
        };
        let paths = args.iter().position(|it| it.text == "--").and_then(|at| args.get(at + 1..)).unwrap_or(args);
        // `:!build` is all but that.
        let all = paths.iter().filter(|it| !it.text.starts_with('-'));
        !args.iter().any(valued) && !all.clone().any(|it| it.text.starts_with(':')) && self.all_build(all)
    }

    /// Whether git throws something away as it checks that out.
    pub(super) fn undoes(&self, named: &Named) -> bool {
        let lost = |it: &String| self.undone.contains(it);
        !self.undone.is_empty()
            && (named.moves || !self.is_build(&named.name))
            && leads::spelt(&named.name, self.script).iter().any(lost)
    }

    /// Whether the word may name something outside of the roots.
    pub fn is_outside(&self, word: &Word) -> bool {
        let text = word.text.as_str();
        match word.kind {
            WordKind::Expanded => match pieces::told(word, self.script) {
                Some(told) => told.is_empty() || told.iter().any(|it| self.is_outside(it)),
                None => true,
            },
            _ if self.leads.leave(word) => true,
            _ if text.starts_with('~') || text.split('/').any(|it| it == "..") => true,
            _ if text.starts_with('/') => {
                !self.roots.iter().any(|it| text == it.to_string() || below(text, it).is_some())
            }
            _ => !self.steady,
        }
    }
}

/// Sub-commands and programs behind which a name stands for something else.
const MOVES_IN: &[&str] = &[
    "bindfs",
    "create_symlink",
    "curlftpfs",
    "encfs",
    "exch",
    "fuse-overlayfs",
    "gcsfuse",
    "gocryptfs",
    "goofys",
    "ln",
    "mergerfs",
    "mmv",
    "mount",
    "move",
    "moveto",
    "mv",
    "ren",
    "rename",
    "s3fs",
    "sshfs",
    "unionfs",
];

/// What a build makes wherever its sources are: `*.pyc`.
fn is_made(name: &str) -> bool {
    MADE.iter().any(|it| name.ends_with(it))
}

fn below<'t>(text: &'t str, root: &AbsPath) -> Option<&'t str> {
    text.strip_prefix(&root.to_string())?.strip_prefix('/')
}

/// `cd a && make && cd .. && rm -rf build`: never above where it began.
fn goes_and_returns(script: &Script, roots: &[AbsPath], leads: &Leads) -> bool {
    // `cd -P` and `set -P` go by where links lead.
    let plain = |it: &&Word| !it.text.is_empty() && !it.text.starts_with(['/', '-', '~']) && !leads.leave(it);
    let folder =
        |it: &Command| it.args().first().filter(|to| it.args().len() == 1 && plain(to))?.literal().map(str::to_owned);
    let mut depth = 0;
    script.going.chained
        && script.functions.is_empty()
        && script.commands.iter().all(|it| match it.name().map(base_name) {
            Some("cd") if it.name() == Some("cd") => folder(it).is_some_and(|it| follow(&it, &mut depth)),
            Some("cd" | "ln" | "mv" | "set" | "shopt") => false,
            _ => !it.wrapper && !it.transparent && stays(it, roots),
        })
}

/// Counts how far below its beginning a way leads; false: above it.
fn follow(folder: &str, depth: &mut usize) -> bool {
    folder.split('/').all(|name| match name {
        "" | "." => true,
        ".." => depth.checked_sub(1).map(|it| *depth = it).is_some(),
        _ => {
            *depth += 1;
            true
        }
    })
}

/// Whether relative words mean the same behind this command as before it.
fn stays(command: &Command, roots: &[AbsPath]) -> bool {
    match command.name().map(base_name) {
        Some("cd" | "pushd") => places::target(command).is_some_and(|it| is_below(it, roots)),
        Some("popd") => false,
        _ => {
            let own = places::folders_of_found(command);
            own.chain(&places::folders_of_others(command)).all(|it| is_below(it, roots))
        }
    }
}

/// Whether a folder lies below the roots by its name.
fn is_below(folder: &Word, roots: &[AbsPath]) -> bool {
    folder.literal().is_some_and(|it| {
        let inside =
            it.starts_with('/') && roots.iter().any(|root| it == root.to_string() || below(it, root).is_some());
        (inside || !it.starts_with(['/', '-', '~'])) && !it.split('/').any(|it| it == "..")
    })
}

/// Whether its options lead it out of the roots: `make -C ../b`.
pub(in crate::engine::policy) fn works_elsewhere(command: &Command, place: &Place) -> bool {
    places::folders(command).iter().any(|it| !is_below(it, place.roots) || place.leads.leave(it))
}
