//! Which files the words of a line may mean: paths as they are written, and what is there for those that nobody knows
//! before the line runs.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Named, launchers,
    words::{ANY, Command, Line, Variables},
};
use crate::{base::path::AbsPath, world::disk};

/// Words that are looked at, with their meanings and parts.
const MAX_WORDS: usize = 4000;
/// Paths of all lines together that are looked for, with those that programs would look for.
pub const MAX_LOOKS: usize = 30_000;
/// Of a `package.json` that is asked what it names, in bytes.
const MAX_MANIFEST: u64 = 1 << 20;
/// Folders that a line may be in.
const MAX_FOLDERS: usize = 32;
/// Entries of folders that are looked at for words that stand for anything, and files that are found for them.
const MAX_ENTRIES: usize = 20_000;
const MAX_FOUND: usize = 200;
/// What stands between paths in a word, and around them.
const ENDS: &[char] = &[' ', '\t', '\n', '=', ',', ';', ':', '&', '|', '<', '>', '(', ')', '`', '\'', '"'];
/// Not looked into: the first is nobody's to check out; the other is filled by programs, which then run it anyway.
const PASSED_OVER: &[&str] = &[".git", "node_modules"];

/// What runs the file that it is told.
const RUNNERS: &[&str] = &[
    "sh", "bash", "dash", "ash", "ksh", "zsh", "fish", "node", "deno", "bun", "tsx", "ts-node", "python", "python2",
    "python3", "ruby", "perl", "php", "lua", "Rscript", "pwsh",
];
/// What stands in front of a program.
const CARRIERS: &[&str] = &[
    "if", "then", "elif", "else", "do", "while", "until", "!", "{", "time", "sudo", "env", "command", "builtin",
    "nohup", "nice", "timeout", "npx", "bunx", "uvx", "pnpm", "yarn", "dlx", "run", "uv", "poetry", "pipx", "xargs",
];
/// What looks at files, or writes them anew, and runs none: all that `*` stands for may change every day.
const READERS: &[&str] = &[
    "[",
    "[[",
    "biome",
    "black",
    "cargo",
    "clang-format",
    "eslint",
    "flake8",
    "gofmt",
    "goimports",
    "isort",
    "markdownlint",
    "mypy",
    "prettier",
    "pylint",
    "ruff",
    "rustfmt",
    "shellcheck",
    "shfmt",
    "stylelint",
    "test",
    "tsc",
    "wc",
];
const MANY: &str = "more words than are looked at";
const ANYTHING: &str = "words that may mean more files than are looked at";

/// Where a line may be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Folder {
    /// [`ANY`] in it.
    path: String,
    /// Written from the top of the disk: what is not the workspace's there is the machine's own.
    from_top: bool,
}

pub struct Places<'b> {
    base: &'b AbsPath,
    pub named: Named,
    /// Words that were looked for.
    patterns: BTreeSet<String>,
    /// What was looked for, and whether it is a file.
    seen: BTreeMap<AbsPath, bool>,
    n_looks: usize,
    /// Where programs and modules are looked for, whichever line it is.
    pub imports: Vec<String>,
    /// Whether what is taken would be run if it were there.
    would_run: bool,
    /// Files of the command that is being taken, which are there.
    found: Vec<AbsPath>,
    n_words: usize,
    n_entries: usize,
}

impl<'b> Places<'b> {
    pub fn new(base: &'b AbsPath) -> Self {
        Self {
            base,
            named: Named::default(),
            patterns: BTreeSet::new(),
            seen: BTreeMap::new(),
            n_looks: 0,
            imports: Vec::new(),
            would_run: false,
            found: Vec::new(),
            n_words: 0,
            n_entries: 0,
        }
    }

    /// A word by itself, and its parts.
    pub fn take_text(&mut self, text: &str, cwd: &AbsPath) {
        self.word(text, &Folder { path: cwd.to_string(), from_top: false });
    }

    /// Of programs that nobody knows only those are told that are written in the line: a variable may hold a secret. `else_`
    /// stands for the others.
    pub fn take_line(&mut self, text: &str, variables: Variables<'_>, cwd: &AbsPath, else_: Option<&str>) {
        let before = std::mem::take(&mut self.named.unseen);
        self.take(&Line::read(text, variables), cwd);
        let unseen = std::mem::replace(&mut self.named.unseen, before);
        let told = |it: String| if text.contains(&it) { Some(it) } else { else_.map(str::to_owned) };
        self.named.unseen.extend(unseen.into_iter().filter_map(told));
    }

    /// What is given to a variable: `BASH_ENV`, `NODE_OPTIONS` and their kind name files that run. Most name nothing.
    pub fn take_value(&mut self, text: &str, variables: Variables<'_>, cwd: &AbsPath) {
        self.take_text(text, cwd);
        if super::is_line(text) {
            let before = self.named.unseen.clone();
            self.take(&Line::read(text, variables), cwd);
            self.named.unseen = before;
        }
    }

    fn take(&mut self, line: &Line, cwd: &AbsPath) {
        if line.cut {
            self.named.more = Some(MANY);
        }
        let folders = self.folders(line, cwd);
        let set = line.commands.iter().flatten().flatten().filter_map(|it| it.split_once('='));
        let imports: Vec<String> =
            self.imports.iter().cloned().chain(set.flat_map(|it| search_folders(it.0, it.1))).collect();
        for command in &line.commands {
            if self.is_full() {
                return;
            }
            self.found.clear();
            let is_read = is_read(command);
            for (at, word) in command.iter().enumerate().flat_map(|(at, it)| it.iter().map(move |it| (at, it))) {
                // What runs nothing is told of what `*` stands for.
                if word.contains(ANY) && (is_read || is_bare(word)) {
                    continue;
                }
                self.would_run = is_run(command, at);
                folders.iter().for_each(|it| self.word(word, it));
                self.would_run = false;
            }
            if runs_anything(command) {
                folders.iter().for_each(|it| self.word(&ANY.to_string(), it));
            }
            self.obeyed(command, &folders, &imports);
        }
    }

    /// The words of a program that no shell reads, and the folders where it looks for modules.
    pub fn take_words(&mut self, words: &[&str], cwd: &AbsPath, imports: &[String]) {
        let command: Command = words.iter().map(|it| vec![(*it).to_owned()]).collect();
        self.found.clear();
        words.iter().for_each(|it| self.take_text(it, cwd));
        self.obeyed(&command, &[Folder { path: cwd.to_string(), from_top: false }], imports);
    }

    /// What programs among the words obey that no word names.
    fn obeyed(&mut self, command: &Command, folders: &[Folder], imports: &[String]) {
        let words: Vec<&str> = command.iter().flatten().map(String::as_str).collect();
        let named = self.found.len();
        let mut is_known = false;
        self.would_run = true;
        let programs: BTreeSet<&str> = words.iter().map(|it| launchers::name(it)).collect();
        for program in programs {
            let endings = launchers::endings(program);
            for (folder, ending) in folders.iter().flat_map(|it| endings.iter().map(move |ending| (it, *ending))) {
                if self.is_full() {
                    return;
                }
                words.iter().for_each(|it| self.ending(it, ending, folder));
            }
            if launchers::imports(program) {
                let modules: BTreeSet<String> =
                    words.iter().flat_map(|it| launchers::modules(it.strip_prefix("-m").unwrap_or(it))).collect();
                self.modules(&modules, folders, imports);
            }
            let Some(files) = launchers::obeys(program, &words) else { continue };
            is_known = true;
            let before = self.found.len();
            for (folder, file) in folders.iter().flat_map(|it| files.iter().map(move |file| (it, *file))) {
                self.near(folder, file);
            }
            if self.found.len() == before {
                self.named.unseen.insert(program.to_owned());
            }
        }
        let lead = command.get(program(command)).and_then(|it| it.first()).map(String::as_str).unwrap_or_default();
        // `PATH=./bin`
        if !lead.contains(['/', ANY]) {
            for (folder, at) in folders.iter().flat_map(|it| imports.iter().map(move |at| (it, at))) {
                self.exact(&folder.join(at).join(lead));
            }
        }
        self.would_run = false;
        let is_open = !is_known && self.found.is_empty() && !lead.contains(['=', ANY, '/']) && !lead.starts_with('-');
        let is_script =
            RUNNERS.contains(&launchers::name(lead)) && launchers::endings(launchers::name(lead)).is_empty();
        if is_open && !lead.is_empty() && !is_script && !launchers::is_plain(lead) {
            self.named.unseen.insert(lead.to_owned());
        }
        // A folder or a module says by itself what comes first; what that loads nobody looks at.
        let more: Vec<String> = self.found.iter().skip(named).map(|it| it.shown_from(self.base)).collect();
        self.named.in_turn.extend(more);
    }

    /// `word` with what it leaves out.
    fn ending(&mut self, word: &str, ending: &str, folder: &Folder) {
        for it in std::iter::once(word).chain(word.split(ENDS).filter(|it| it.len() < word.len())) {
            let it = it.trim_end_matches('/');
            if self.is_full() || it.is_empty() || it.starts_with('-') || it.contains(ANY) || it.contains(ENDS) {
                continue;
            }
            // What is there under its whole name needs no ending.
            if AbsPath::new(folder.join(it).path).is_some_and(|it| self.seen.get(&it) == Some(&true)) {
                continue;
            }
            let place = folder.join(&format!("{it}{ending}"));
            self.exact(&place);
            let manifest = AbsPath::new(&place.path).filter(|it| ending == "/package.json" && self.found.contains(it));
            let main = manifest.and_then(|it| launchers::main_of(&disk::read_head(&it, MAX_MANIFEST).ok()?));
            if let Some(main) = main {
                let main = folder.join(&format!("{it}/{main}"));
                self.exact(&main);
                for ending in launchers::endings("node") {
                    self.exact(&Folder { path: format!("{}{ending}", main.path), from_top: main.from_top });
                }
            }
        }
    }

    fn modules(&mut self, modules: &BTreeSet<String>, folders: &[Folder], imports: &[String]) {
        let beside = folders.iter().flat_map(|it| imports.iter().map(|at| it.join(at)));
        let places: Vec<Folder> = folders.iter().cloned().chain(beside).collect();
        for (place, module) in places.iter().flat_map(|it| modules.iter().map(move |module| (it, module))) {
            if self.is_full() {
                return;
            }
            for ending in launchers::endings("python") {
                self.exact(&place.join(&format!("{module}{ending}")));
            }
        }
    }

    /// A file in the folder, or in one above it.
    fn near(&mut self, folder: &Folder, file: &str) {
        let place = folder.join(file);
        if place.path.contains(ANY) {
            return self.search(&place.path);
        }
        self.exact(&place);
        let mut above = AbsPath::new(&folder.path).and_then(|it| it.parent());
        while let Some(it) = above.filter(|it| it.is_within(self.base)) {
            self.exact(&Folder { path: it.join(file).to_string(), from_top: true });
            above = it.parent();
        }
    }

    fn folders(&mut self, line: &Line, cwd: &AbsPath) -> Vec<Folder> {
        let mut res = vec![Folder { path: cwd.to_string(), from_top: false }];
        for to in line.folders.iter().flatten() {
            let more: Vec<Folder> = res.iter().map(|it| it.join(to)).collect();
            for it in more {
                if !res.contains(&it) {
                    res.push(it);
                }
            }
            if res.len() > MAX_FOLDERS {
                self.named.more = Some(MANY);
                break;
            }
        }
        res
    }

    fn word(&mut self, word: &str, folder: &Folder) {
        let parts = word.split(ENDS).filter(|it| it.len() < word.len());
        for it in std::iter::once(word).chain(parts) {
            // `-r./x.js`
            let it = if it.starts_with('-') && !it.starts_with("--") { it.get(2..).unwrap_or_default() } else { it };
            if it.is_empty() || it.starts_with('-') || it != word && is_bare(it) {
                continue;
            }
            self.n_words += 1;
            if self.n_words > MAX_WORDS {
                self.named.more = Some(MANY);
                return;
            }
            let place = folder.join(it);
            match place.path.contains(ANY) {
                true => self.search(&place.path),
                false => self.exact(&place),
            }
        }
    }

    fn exact(&mut self, place: &Folder) {
        let Some(path) = AbsPath::new(&place.path).filter(|it| !place.from_top || it.is_within(self.base)) else {
            return;
        };
        self.n_looks += 1;
        if self.is_full() {
            self.named.more = Some(MANY);
            return;
        }
        if self.would_run {
            self.named.would_run.insert(path.clone());
        }
        let known = self.seen.get(&path).copied();
        let is_file = known.unwrap_or_else(|| disk::metadata(&path).is_ok_and(|it| !it.is_dir));
        if is_file && !self.found.contains(&path) {
            self.found.push(path.clone());
        }
        if known.is_none() {
            self.seen.insert(path.clone(), is_file);
            self.named.files.push(path);
        }
    }

    /// A repository that names more is not looked at to its end: its settings do not count.
    fn is_full(&self) -> bool {
        self.n_looks > MAX_LOOKS
    }

    /// Every file that the pattern may mean.
    fn search(&mut self, pattern: &str) {
        let (folder, rest) = split(pattern);
        let Some(folder) = AbsPath::new(&folder) else { return };
        // Anything may be in the workspace, and what lies elsewhere is the machine's own.
        let (top, rest) = match (folder.is_within(self.base), self.base.is_within(&folder)) {
            (true, _) => (folder, rest),
            (_, true) => (self.base.clone(), format!("{ANY}{}", rest.rsplit(ANY).next().unwrap_or_default())),
            _ => return,
        };
        if !self.patterns.insert(format!("{top}\n{rest}")) {
            return;
        }
        let (mut waiting, mut n_found) = (vec![(top, String::new())], 0);
        while let Some((folder, below)) = waiting.pop() {
            for it in disk::read_dir(&folder).unwrap_or_default() {
                self.n_entries += 1;
                let (path, name) = (folder.join(&it.name), format!("{below}{}", it.name));
                if self.n_entries > MAX_ENTRIES || n_found > MAX_FOUND {
                    self.named.more = Some(ANYTHING);
                    return;
                }
                match it.is_dir {
                    true if PASSED_OVER.contains(&it.name.as_str()) => (),
                    // A link to a folder is found where that is.
                    true if disk::real_path(&path).is_ok_and(|it| it == path) => waiting.push((path, name + "/")),
                    false if fits(&rest, &name) => {
                        n_found += 1;
                        self.found.push(path.clone());
                        if self.seen.insert(path.clone(), true).is_none() {
                            self.named.files.push(path);
                        }
                    }
                    _ => (),
                }
            }
        }
    }
}

impl Folder {
    fn join(&self, word: &str) -> Self {
        match word.starts_with('/') || word.starts_with(ANY) && word.len() > 1 {
            // What comes first is not known: it may be from the top.
            true => Self { path: word.to_owned(), from_top: true },
            false => Self { path: format!("{}/{word}", self.path), from_top: self.from_top },
        }
    }
}

/// The folder in front of the first part that nobody knows, and the rest, without `.` and `..` in it.
fn split(pattern: &str) -> (String, String) {
    let parts: Vec<&str> = pattern.split('/').filter(|it| !it.is_empty() && *it != ".").collect();
    let known = parts.iter().take_while(|it| !it.contains(ANY)).count();
    let (mut folder, rest) = parts.split_at(known);
    let mut rest = rest.to_vec();
    let any = ANY.to_string();
    if let Some(at) = rest.iter().rposition(|it| *it == "..") {
        // Wherever that leads.
        rest.drain(..=at);
        rest.insert(0, any.as_str());
        folder = &[];
    }
    (format!("/{}", folder.join("/")), rest.join("/"))
}

/// Whether `name` has the known parts of `pattern`, in their order.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split(ANY).peekable();
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    while let Some(part) = parts.next() {
        // Anything may be nothing.
        let part = part.trim_start_matches('/');
        match (parts.peek(), rest.find(part)) {
            (None, _) => return rest.ends_with(part),
            (Some(_), Some(at)) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            (Some(_), None) => return false,
        }
    }
    rest.is_empty()
}

/// `PYTHONPATH=a:b`
pub fn search_folders(name: &str, value: &str) -> Vec<String> {
    let is_list = launchers::SEARCH.contains(&name);
    value.split(':').filter(|it| is_list && !it.is_empty()).map(str::to_owned).collect()
}

/// Whether what a word names is run: the program itself, and what a runner is told.
fn is_run(command: &Command, at: usize) -> bool {
    let program = program(command);
    let tells = |it: &String| RUNNERS.contains(&launchers::name(it)) || it == "." || it == "source";
    let has = |at: usize, is: &dyn Fn(&String) -> bool| command.get(at).is_some_and(|it| it.iter().any(is));
    at == program && has(at, &|it| it.contains('/')) || at > program && has(program, &tells)
}

/// Whether a word says nothing at all of what it means.
fn is_bare(word: &str) -> bool {
    word.contains(ANY) && word.chars().all(|it| matches!(it, ANY | '/' | '.'))
}

fn program(command: &Command) -> usize {
    let in_front = |it: &String| {
        CARRIERS.contains(&it.as_str())
            || it.starts_with(|it: char| it == '-' || it.is_ascii_digit())
            || it.contains('=')
    };
    command.iter().position(|it| !it.iter().all(in_front)).unwrap_or_default()
}

fn is_read(command: &Command) -> bool {
    let mut words = command.get(program(command)).into_iter().flatten().peekable();
    words.peek().is_some() && words.all(|it| READERS.contains(&it.as_str()))
}

/// Whether it runs a file of which it says nothing: `"$x"`, `bash "$x"`, `… | xargs bash`.
fn runs_anything(command: &Command) -> bool {
    let at = program(command);
    let says = |idx: usize, names: &[&str]| {
        let name = |it: &String| names.contains(&it.rsplit('/').next().unwrap_or_default());
        command.get(idx).is_some_and(|it| it.iter().any(name))
    };
    let bare = |it: &Vec<String>| it.iter().any(|it| is_bare(it));
    let through_pipe = (0..at).any(|it| says(it, &["xargs"])) || says(at, &["find", "fd"]);
    let runs = |idx: usize| {
        let mut operands = command.iter().skip(idx + 1).filter(|it| !it.iter().all(|it| it.starts_with('-')));
        operands.next().map_or(through_pipe, |it| bare(it) || it.iter().any(|it| it == "{}"))
    };
    let runner = |idx: usize| says(idx, RUNNERS) || idx == at && says(idx, &[".", "source", "eval", "exec"]);
    command.get(at).is_some_and(bare) || (0..command.len()).any(|idx| runner(idx) && runs(idx))
}
