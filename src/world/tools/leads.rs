//! Where the names in a command lead: links are followed, patterns are read as the shell reads them, and a hard link to
//! a file of secrets is told.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use globset::{ErrorKind, Glob};

use crate::{
    base::{
        guarded::SECRETS,
        path::AbsPath,
        tool::{Lead, Output, Tracked, Words},
    },
    world::{
        disk,
        tools::{
            kept::{self, Aliases, Kept},
            tracked, undone,
        },
    },
};

/// Look-ups of one command, each some microseconds: a command that names more is none that is known to be safe.
const MAX_LOOKUPS: usize = 2_000;
/// Entries of one folder that a pattern is held against.
const MAX_ENTRIES: usize = 4_000;
/// Folders that the names may count from.
const MAX_BASES: usize = 16;

/// What was found out about a command's names.
#[derive(Debug, Default)]
pub struct Found {
    pub leads: Vec<Lead>,
    /// Files of secrets below the roots.
    pub secrets: Vec<AbsPath>,
    /// Those of them that git may show, where the command has it show or name something.
    pub tracked: Option<Vec<Tracked>>,
    /// Names that git checks out, and something is lost.
    pub undone: Box<[String]>,
    /// Not all could be looked up.
    pub unseen: bool,
}

/// What the session's ground is.
pub struct Places<'a> {
    /// Its folders, canonical.
    pub roots: &'a [AbsPath],
    /// Its own one.
    pub scratch: Option<&'a AbsPath>,
    /// What a command takes for `~`.
    pub home: Option<&'a AbsPath>,
}

/// Looks up the names of a command that runs in `dir`. Blocks.
pub fn look(words: &Words, dir: &AbsPath, places: &Places<'_>) -> Found {
    let scratch = places.scratch.and_then(|it| disk::real_path(it).ok());
    let mut looker = Looker {
        kept: kept::look(places.roots),
        roots: places.roots.iter().chain(&scratch).collect(),
        home: places.home,
        aliases: None,
        seen: BTreeSet::new(),
        leads: Vec::new(),
        left: MAX_LOOKUPS,
        unseen: words.more,
    };
    let bases = looker.bases(dir, &words.dirs);
    let undone = undone::all(&words.checked_out, &bases);
    for base in &bases {
        looker.look_into(base);
    }
    for name in &words.names {
        looker.name(dir, name);
        looker.name_at_home(name);
    }
    let of_dir = looker.leads.len();
    for (base, name) in bases.iter().skip(1).flat_map(|base| words.names.iter().map(move |name| (base, name))) {
        looker.name(base, name);
    }
    // Behind a `cd` only what there is: most of the names are meant from somewhere else.
    let is_there = |it: &Lead| disk::metadata(&it.real).is_ok();
    let behind = looker.leads.split_off(of_dir);
    looker.leads.extend(behind.into_iter().filter(is_there));
    // Beyond what the names may cost.
    let links = std::mem::take(&mut looker.kept.links);
    looker.left += links.len();
    for link in &links {
        looker.follow("", link.as_path());
    }
    let Looker { kept, mut leads, unseen, .. } = looker;
    // Most links of a project lead from one place of it to another.
    leads.retain(|it| !it.name.is_empty() || !it.in_roots || SECRETS.find(it.real.as_path()).is_some());
    let tracked = words.shows.then(|| tracked::tracked(&kept.secrets, dir));
    Found { leads, unseen, tracked, undone, secrets: kept.secrets }
}

/// Where output really goes, as far as that is outside. Blocks.
pub fn outputs(words: &Words, dir: &AbsPath, places: &Places<'_>) -> Vec<Output> {
    let scratch = places.scratch.and_then(|it| disk::real_path(it).ok());
    let is_inside = |real: &AbsPath| places.roots.iter().chain(&scratch).any(|it| real.is_within(it));
    let place = |name: &str| match name.strip_prefix('~') {
        Some(rest) => disk::real_place(&places.home?.as_path().join(rest.strip_prefix('/')?)).ok(),
        None => disk::real_place(&dir.as_path().join(name)).ok(),
    };
    let all = words.outputs.iter().filter_map(|name| Some(Output { name: name.clone(), real: place(name)? }));
    all.filter(|it| !is_inside(&it.real)).collect()
}

struct Looker<'a> {
    roots: Vec<&'a AbsPath>,
    kept: Kept,
    home: Option<&'a AbsPath>,
    /// Looked for with the first file that has two names.
    aliases: Option<Aliases>,
    seen: BTreeSet<(String, PathBuf)>,
    leads: Vec<Lead>,
    left: usize,
    unseen: bool,
}

impl<'a> Looker<'a> {
    /// A `cd` may be undone, or never come to pass: names count from each folder on the way. The shell goes by names there,
    /// not by what they lead to.
    fn bases(&mut self, dir: &AbsPath, dirs: &[String]) -> Vec<AbsPath> {
        let mut res = vec![dir.clone()];
        for to in dirs {
            let here: Vec<AbsPath> = res.iter().flat_map(|it| self.folders(it, to)).collect();
            let home = self.at_home(to).map(|(home, rest)| self.folders(home, rest));
            let mut more: Vec<AbsPath> = here.into_iter().chain(home.into_iter().flatten()).collect();
            more.retain(|it| !res.contains(it));
            self.unseen |= res.len() + more.len() > MAX_BASES;
            res.extend(more);
            res.truncate(MAX_BASES);
        }
        res
    }

    fn folders(&mut self, base: &AbsPath, to: &str) -> Vec<AbsPath> {
        let mut res = vec![base.join(to)];
        let found = if is_pattern(to) { self.found(base, to) } else { Vec::new() };
        let folders = found.into_iter().filter_map(AbsPath::new);
        res.extend(folders.filter(|it| disk::metadata(it).is_ok_and(|it| it.is_dir)));
        res
    }

    fn name(&mut self, base: &AbsPath, name: &str) {
        self.name_below(name, base, name);
    }

    /// The same from home. Quoted, it would be a folder of that name: nobody knows here.
    fn name_at_home(&mut self, name: &str) {
        if let Some((home, rest)) = self.at_home(name) {
            self.name_below(name, home, rest);
        }
    }

    fn at_home<'n>(&self, name: &'n str) -> Option<(&'a AbsPath, &'n str)> {
        let rest = name.strip_prefix('~').filter(|it| it.is_empty() || it.starts_with('/'))?;
        Some((self.home?, rest.trim_start_matches('/')))
    }

    /// Follows all that a name, or a pattern, finds.
    fn name_below(&mut self, name: &str, base: &AbsPath, rest: &str) {
        self.follow(name, &base.as_path().join(rest));
        if is_pattern(rest) {
            for path in self.found(base, rest) {
                self.follow(name, &path);
            }
        }
    }

    /// What a pattern finds, folder by folder.
    fn found(&mut self, base: &AbsPath, pattern: &str) -> Vec<PathBuf> {
        let start = if pattern.starts_with('/') { PathBuf::from("/") } else { base.as_path().to_path_buf() };
        let mut found = vec![start];
        for part in pattern.split('/').filter(|it| !it.is_empty()) {
            found = match is_pattern(part) {
                true => found.iter().flat_map(|it| self.matching(it, part)).collect(),
                false => found.into_iter().map(|it| it.join(part)).collect(),
            };
            self.unseen |= found.len() > self.left;
            found.truncate(self.left);
        }
        found
    }

    fn matching(&mut self, folder: &Path, pattern: &str) -> Vec<PathBuf> {
        if !self.spend() {
            return Vec::new();
        }
        // No folder, or none that can be read: bash finds nothing there, either.
        let Ok(listed) = disk::names(folder, MAX_ENTRIES) else { return Vec::new() };
        self.unseen |= listed.is_none();
        let glob = glob(pattern);
        // What cannot be read finds everything.
        let matcher = glob.map(|it| it.compile_matcher());
        let fits = |it: &String| matcher.as_ref().is_none_or(|matcher| matcher.is_match(it));
        listed.unwrap_or_default().into_iter().filter(fits).map(|it| folder.join(it)).collect()
    }

    /// Looks for secrets in a folder that is named and of which only its name is known.
    fn look_into(&mut self, real: &AbsPath) {
        match self.roots.iter().any(|it| real.is_within(it)) {
            true => self.kept.look_into(real, &self.roots),
            false if disk::metadata(real).is_ok_and(|it| it.is_dir) => self.kept.look_outside(real),
            false => (),
        }
    }

    /// Whether one more may be looked up.
    fn spend(&mut self) -> bool {
        self.unseen |= self.left == 0;
        let res = self.left > 0;
        self.left = self.left.saturating_sub(1);
        res
    }

    /// Notes where `path` is, if it is elsewhere, or one of secrets though the name does not say so. What cannot be
    /// resolved cannot be opened.
    fn follow(&mut self, name: &str, path: &Path) {
        let Some(said) = AbsPath::new(path) else { return };
        if !self.seen.insert((name.to_owned(), path.to_path_buf())) || !self.spend() {
            return;
        }
        let Ok(real) = disk::real_place(path) else { return };
        if !name.is_empty() {
            self.look_into(&real);
        }
        let real = self.secret_of(&real).unwrap_or(real);
        if real != said || is_secret_unsaid(name, &real) {
            let in_roots = self.roots.iter().any(|it| real.is_within(it));
            self.leads.push(Lead { name: name.to_owned(), path: said, real, in_roots });
        }
    }

    /// The file of secrets that `real` is another name of.
    fn secret_of(&mut self, real: &AbsPath) -> Option<AbsPath> {
        disk::shared_id(real)?;
        self.aliases.get_or_insert_with(|| Aliases::of(&self.kept)).secret_of(real).cloned()
    }
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// A pattern as bash reads it, also where it is none: most of them are code, such as `awk '{ print a[k] }'`.
fn glob(pattern: &str) -> Option<Glob> {
    let mut text = Cow::Borrowed(pattern);
    // One thing that is mended may uncover another.
    for _ in 0..3 {
        let why = match Glob::new(&text) {
            Ok(it) => return Some(it),
            Err(it) => it,
        };
        let mended = match why.kind() {
            // A bracket that is not closed is one: `jq '.items[]'`.
            ErrorKind::UnclosedClass => lone_brackets(&text),
            ErrorKind::UnopenedAlternates | ErrorKind::UnclosedAlternates => lone_braces(&text),
            // `x[::-1]`: one letter at most.
            ErrorKind::InvalidRange(..) => any_letters(&text),
            _ => return None,
        };
        text = Cow::Owned(mended);
    }
    None
}

/// With brackets that nothing closes as letters; one directly behind them is a letter in them.
fn lone_brackets(pattern: &str) -> String {
    let (mut res, mut rest) = (String::new(), pattern);
    while let Some(at) = rest.find('[') {
        let (before, from) = rest.split_at(at);
        let inside = 1 + usize::from(from.get(1..).is_some_and(|it| it.starts_with(['!', '^'])));
        let closed = from.char_indices().skip(inside + 1).find(|it| it.1 == ']').map(|it| it.0 + 1);
        res += before;
        res += closed.and_then(|it| from.get(..it)).unwrap_or("[[]");
        rest = from.get(closed.unwrap_or(1)..).unwrap_or_default();
    }
    res + rest
}

/// With braces that have no other one as letters.
fn lone_braces(pattern: &str) -> String {
    let (mut open, mut lone) = (Vec::new(), BTreeSet::new());
    for (at, it) in pattern.char_indices() {
        match it {
            '{' => open.push(at),
            '}' if open.pop().is_none() => _ = lone.insert(at),
            _ => (),
        }
    }
    lone.extend(open);
    let letter = |(at, it): (usize, char)| if lone.contains(&at) { format!("[{it}]") } else { it.to_string() };
    pattern.char_indices().map(letter).collect()
}

/// With `?` in place of each class.
fn any_letters(pattern: &str) -> String {
    let mut pieces = pattern.split('[');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |all, it| all + "?" + it.split_once(']').map_or(it, |it| it.1))
}

/// Whether only its place tells that a file is one of secrets: `deploy` in `.ssh`, what a pattern finds.
fn is_secret_unsaid(name: &str, real: &AbsPath) -> bool {
    !name.is_empty() && SECRETS.find(real.as_path()).is_some() && SECRETS.find(Path::new(name)).is_none() && {
        // A star at the start leaves out what begins with a dot.
        let mut parts = name.rsplit('/').filter(|it| !it.is_empty()).zip(real.as_path().iter().rev());
        !parts.any(|(part, it)| part.starts_with(['*', '?', '[']) && it.as_encoded_bytes().starts_with(b"."))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Found, MAX_ENTRIES, Places};
    use crate::{base::tool::Words, world::tools::testing::Ground};

    fn look(words: &Words, ground: &Ground) -> Found {
        let (roots, home) = (ground.ctx().roots, ground.cwd.join("../home"));
        super::look(words, &ground.cwd, &Places { roots: &roots, scratch: None, home: Some(&home) })
    }

    #[test]
    #[allow(clippy::disallowed_methods)]
    fn names_are_followed_to_where_they_are() {
        let ground = Ground::new(&[
            ("docs/a.md", "x"),
            ("docs/b.md", "x"),
            ("build/c.md", "x"),
            (".env", "x"),
            (".ssh/deploy", "x"),
            ("keys/.env", "x"),
            ("keys/a.pem", "x"),
            ("../home/.config/gh/hosts.yml", "x"),
            ("../home/.config/other.yml", "x"),
            ("../out/.ssh/id_rsa", "x"),
            ("../out/notes", "x"),
        ]);
        ground.link("../out/.ssh/id_rsa", "docs/key.md");
        ground.link("../out/.ssh/id_rsa", "build/key.md");
        ground.link("../out/.ssh", "lnk");
        ground.link("docs/a.md", "guide.md");
        ground.link("../out/not-yet", "dangling");
        ground.link("loop", "loop");
        fs::hard_link(ground.cwd.join(".env"), ground.cwd.join("hard")).unwrap();
        let check = |dirs: &[&str], name: &str, want: &[&str]| {
            let words = Words {
                names: vec![name.to_owned()],
                dirs: dirs.iter().map(|it| (*it).to_owned()).collect(),
                ..Words::default()
            };
            let found = look(&words, &ground);
            let named = found.leads.iter().filter(|it| !it.name.is_empty());
            let mut got: Vec<String> = named
                .map(|it| format!("{}{}", it.real.shown_from(&ground.cwd), if it.in_roots { "" } else { " out" }))
                .collect();
            got.iter_mut().for_each(|it| *it = it.replace(&ground.cwd.join("..").to_string(), ".."));
            got.sort();
            assert_eq!(got, want, "{name} in {dirs:?}");
            assert!(!found.unseen, "{name}");
        };
        check(&[], "docs/a.md", &[]);
        check(&[], "none", &[]);
        check(&[], "guide.md", &["docs/a.md"]);
        check(&[], "docs/key.md", &["../out/.ssh/id_rsa out"]);
        check(&[], "lnk/id_rsa", &["../out/.ssh/id_rsa out"]);
        check(&[], "lnk/../notes", &["../out/notes out"]);
        check(&[], "dangling", &["../out/not-yet out"]);
        check(&[], "loop", &[]);
        check(&[], "hard", &[".env"]);
        check(&[], ".env", &[]);
        check(&[], "keys/*", &["keys/a.pem"]);
        check(&[], "keys/a.pem", &[]);
        check(&[".ssh"], "deploy", &[".ssh/deploy"]);
        check(&[".s*"], "deploy", &[".ssh/deploy"]);
        check(&[], "~/.config/gh/*", &["../home/.config/gh/hosts.yml out"]);
        check(&[], "~/.config/gh/none", &[]);
        check(&["~/.config"], "*/h*.yml", &["../home/.config/gh/hosts.yml out"]);
        check(&["~", ".config/gh"], "hosts.yml", &["../home/.config/gh/hosts.yml out"]);
        check(&["lnk"], "id_rsa", &["../out/.ssh/id_rsa out"]);
        check(&["docs", "../lnk"], "id_rsa", &["../out/.ssh/id_rsa out"]);
        check(&[], "*/k*.md", &["../out/.ssh/id_rsa out", "../out/.ssh/id_rsa out"]);
        check(&[], "build/[k]ey.m?", &["../out/.ssh/id_rsa out"]);
        check(&[], "docs/[ab].md", &[]);
        // Code is no pattern that finds all there is; braces and classes as bash has them.
        check(&[], " print k, a[k]}", &[]);
        check(&[], "x[::-1]", &[]);
        check(&[], ".items[0]}]", &[]);
        check(&[], ":1}; print(d[", &[]);
        check(&[], "a}[]b[", &[]);
        check(&[], "key[s/*", &[]);
        check(&[], "keys/{a*", &[]);
        check(&[], "k[e]ys/*}", &[]);
        check(&[], "key[z-a]/*", &["keys/a.pem"]);
        check(&[], "keys/{a,b}.*", &["keys/a.pem"]);
        // What nobody names is told where it leads out, or to secrets.
        let found = look(&Words::default(), &ground);
        assert_eq!(found.leads.len(), 3, "{:?}", found.leads);
        let secrets = [".env", ".ssh/deploy", "keys/.env", "keys/a.pem"];
        assert_eq!(found.secrets, secrets.map(|it| ground.cwd.join(it)));
    }

    /// Nobody looks all through it.
    #[test]
    fn a_folder_outside_is_known_by_its_name() {
        let ground = Ground::new(&[("../home/.config/gh/hosts.yml", "x"), ("../home/.config/deep/.env", "x")]);
        let words = Words { names: vec!["~/.config".to_owned()], ..Words::default() };
        assert_eq!(look(&words, &ground).secrets, [ground.cwd.join("../home/.config/gh/hosts.yml")]);
    }

    #[test]
    fn what_is_too_much_is_said() {
        let ground = Ground::new(&[]);
        for n in 0..=MAX_ENTRIES {
            ground.write(&format!("many/{n}"), b"");
        }
        let words = Words { names: vec!["many/*".to_owned()], ..Words::default() };
        let look = |words: &Words| look(words, &ground).unseen;
        assert!(look(&words));
        assert!(!look(&Words { names: vec!["many/1".to_owned()], ..Words::default() }));
        assert!(look(&Words { more: true, ..Words::default() }));
    }
}
