//! What of that which a sandbox holds a command would have git change: git is asked, in a sandbox in which nothing is
//! written and nobody reached, and not at all where the repository names what it would run as it looks: nobody said yes yet.

use std::{borrow::Cow, collections::BTreeSet, io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::{Instant, timeout_at},
};

use crate::{
    base::{
        guarded,
        path::AbsPath,
        sandbox::Confinement,
        tool::{Change, Rework, Reworked},
    },
    world::{
        disk,
        process::{
            Exit, Groups, Piped, Spawn, Stdin,
            sandbox::{denied::piece, named, repository},
        },
        tools::{ToolContext, tracked},
    },
};

/// For all that is asked about one command. Who needs longer is not waited for: then nobody knows what changes.
const LONGEST: Duration = Duration::from_secs(5);
/// The same of who says more.
const MAX_SAID: u64 = 32 << 20;
const ENV: &[(&str, &str)] =
    &[("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

/// Of `git status`: only what git knows.
const TRACKED: &str = "-uno";

/// In what an alias stands for: it may change files.
const REWORKS: &[&str] = &[
    "am",
    "apply",
    "bisect",
    "checkout",
    "cherry-pick",
    "merge",
    "mv",
    "pull",
    "rebase",
    "reset",
    "restore",
    "revert",
    "rm",
    "stash",
    "switch",
    "worktree",
];

/// git could not be asked, or its answer is not to be understood.
#[derive(Debug)]
struct Unknown;

/// `None`: nothing. `dir`: where the command runs; `runs`: git would run something of the repository's.
pub async fn look(dir: &AbsPath, runs: bool, ctx: &ToolContext, groups: &Groups) -> Option<Reworked> {
    // Of a folder that nobody trusts nothing is asked.
    let confined = ctx.confined.as_deref().filter(|it| !it.untrusted && !it.read_only)?;
    let until = Instant::now() + LONGEST;
    let mut res = Reworked::default();
    let mut places = BTreeSet::new();
    for work in &ctx.known.words.reworks {
        let Some(looker) = Looker::new(work, dir, confined, ctx, groups) else { continue };
        let looker = Looker { runs, until, ..looker };
        let Some(work) = looker.meant(work).await else { continue };
        res.perhaps |= looker.find(&work, &mut places).await;
        res.folder = res.folder.or_else(|| looker.folder(&work));
    }
    res.places = places.into_iter().collect();
    (!res.places.is_empty() || res.folder.is_some()).then_some(res)
}

struct Looker<'a> {
    /// Where git works, and the top of the work tree around that.
    dir: AbsPath,
    top: AbsPath,
    /// What the repository's settings name.
    named: Vec<AbsPath>,
    confined: &'a Confinement,
    closed: Confinement,
    env: Vec<(String, String)>,
    groups: &'a Groups,
    runs: bool,
    until: Instant,
}

impl<'a> Looker<'a> {
    /// `None`: there is no repository that commands write.
    fn new(
        work: &Rework,
        dir: &AbsPath,
        confined: &'a Confinement,
        ctx: &ToolContext,
        groups: &'a Groups,
    ) -> Option<Self> {
        let home = ctx.env.iter().rev().find(|(name, _)| name == "HOME").map(|it| it.1.clone());
        let dir = match work.dir.strip_prefix('~') {
            Some(rest) => AbsPath::new(home.as_deref()?)?.join(rest.trim_start_matches('/')),
            None => dir.join(&work.dir),
        };
        let dir = disk::real_path(&dir).ok()?;
        let git = repository::held_around(confined, &dir)?;
        let mut above = std::iter::successors(Some(dir.clone()), AbsPath::parent);
        let top = above.find(|it| disk::metadata(&it.join(".git")).is_ok())?;
        let named = named::places(top.as_path(), git.as_path(), home.as_deref().map(AsRef::as_ref));
        let closed = Confinement { read_only: true, network: false, ..confined.clone() };
        let closed = Confinement { writable: Vec::new(), granted: Vec::new(), gits: Vec::new(), ..closed };
        let own = ENV.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env = ctx.env.iter().cloned().chain(own).collect();
        let named = named.into_iter().filter_map(AbsPath::new).collect();
        Some(Self { dir, top, named, confined, closed, env, groups, runs: true, until: Instant::now() })
    }

    /// Adds what is held of what changes, and says whether that is only perhaps so.
    async fn find(&self, work: &Rework, places: &mut BTreeSet<AbsPath>) -> bool {
        let mut paths = work.paths.clone();
        let (mut names, mut is_known) = (Vec::new(), true);
        for change in &work.changes {
            match self.names(change, &mut paths).await {
                Ok(it) => names.extend(it),
                Err(Unknown) => is_known = false,
            }
        }
        let about: Vec<AbsPath> = paths.iter().map(|it| self.dir.join(it)).collect();
        let is_meant = |it: &AbsPath| about.is_empty() || about.iter().any(|path| it.is_within(path));
        let pieces = |names: Vec<String>| {
            let files = names.into_iter().map(|it| self.top.join(it)).filter(is_meant);
            files.filter_map(|it| self.held(&it)).collect::<Vec<_>>()
        };
        let before = places.len();
        places.extend(pieces(names));
        if work.changes.contains(&Change::Moved) {
            places.extend(self.submodules(&about));
        }
        let is_sure = places.len() > before;
        if is_known {
            return false;
        }
        let known = match tracked::all(&self.top) {
            Some(it) => it,
            None => self.names_in(&["ls-files", "-z"]).await.unwrap_or_default(),
        };
        places.extend(pieces(known));
        !is_sure && places.len() > before
    }

    /// The paths that a change touches, from the top.
    async fn names(&self, change: &Change, paths: &mut Vec<String>) -> Result<Vec<String>, Unknown> {
        match change {
            Change::To(rev) => match self.commit(rev).await? {
                Some(it) => self.between("HEAD", &it).await,
                None => Ok(Vec::new()),
            },
            Change::ToOrPath(word) => match self.commit(word).await? {
                Some(it) => self.between("HEAD", &it).await,
                None => {
                    paths.push(word.clone());
                    self.status(TRACKED).await
                }
            },
            Change::Merged(rev) => {
                let Some(it) = self.commit(rev).await? else { return Ok(Vec::new()) };
                let base = self.said(&["merge-base", "HEAD", &it]).await?;
                let base = base.map_or_else(|| "HEAD".to_owned(), |it| it.trim().to_owned());
                self.between(&base, &it).await
            }
            Change::Commits(words) => self.in_commits(words).await,
            Change::Stash(rev) => match self.commit(rev).await? {
                Some(it) => {
                    let show = ["stash", "show", "--include-untracked", "--name-only", "--no-renames", "-z", &it];
                    self.names_in(&show).await
                }
                None => Ok(Vec::new()),
            },
            Change::Patch(file) => {
                let file = self.dir.join(file).to_string();
                let lines = self.names_in(&["apply", "--numstat", "-z", &file]).await?;
                Ok(lines.iter().filter_map(|it| it.rsplit('\t').next()).map(str::to_owned).collect())
            }
            Change::Dirty => self.status(TRACKED).await,
            Change::DirtyIf(setting) => match self.asked(&["config", "--type=bool", "--get", setting]).await? {
                Some(it) if it.trim() == "true" => self.status(TRACKED).await,
                _ => Ok(Vec::new()),
            },
            Change::Untracked => self.status("-uall").await,
            Change::Moved => tracked::all(&self.top).ok_or(Unknown),
            Change::Tree(_) | Change::Alias { .. } => Ok(Vec::new()),
            Change::Unknown => Err(Unknown),
        }
    }

    async fn between(&self, one: &str, other: &str) -> Result<Vec<String>, Unknown> {
        self.names_in(&["diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other]).await
    }

    async fn in_commits(&self, words: &[String]) -> Result<Vec<String>, Unknown> {
        let log = ["log", "--format=", "--name-only", "-z", "--no-renames", "-m", "--no-show-signature"];
        let is_range = words.iter().any(|it| it.contains("..") || it.starts_with('^'));
        let walk = (!is_range).then_some("--no-walk");
        let words = words.iter().map(String::as_str);
        let args: Vec<&str> = log.into_iter().chain(walk).chain(words).chain(["--"]).collect();
        // What names no commits comes to nothing.
        let said = self.said(&args).await?.unwrap_or_default();
        Ok(lines(&said).map(|it| it.trim_start_matches('\n').to_owned()).filter(|it| !it.is_empty()).collect())
    }

    async fn status(&self, untracked: &str) -> Result<Vec<String>, Unknown> {
        let is_held = |it: &String| self.held(&self.top.join(it)).is_some();
        // Most repositories have none, and so nobody is started.
        if untracked == TRACKED && tracked::all(&self.top).is_some_and(|it| !it.iter().any(is_held)) {
            return Ok(Vec::new());
        }
        let status = ["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all", untracked];
        let lines = self.names_in(&status).await?;
        // Two letters and a blank stand before each.
        Ok(lines.iter().filter_map(|it| it.get(3..)).map(str::to_owned).collect())
    }

    /// `None`: there is no such commit. A branch that only a remote has is made of that by the command.
    async fn commit(&self, rev: &str) -> Result<Option<String>, Unknown> {
        if rev.starts_with('-') {
            return Err(Unknown);
        }
        let commit = format!("{rev}^{{commit}}");
        if let Some(it) = self.said(&["rev-parse", "--verify", "--quiet", &commit]).await? {
            return Ok(Some(it.trim().to_owned()));
        }
        let remote = format!("refs/remotes/*/{rev}");
        let found = self.said(&["for-each-ref", "--count=1", "--format=%(objectname)", &remote]).await?;
        Ok(found.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()))
    }

    async fn names_in(&self, args: &[&str]) -> Result<Vec<String>, Unknown> {
        let said = self.said(args).await?.ok_or(Unknown)?;
        Ok(lines(&said).map(str::to_owned).collect())
    }

    /// What a word of the repository's, or of the user's, comes to. `None`: nothing that is looked at.
    async fn meant<'w>(&self, work: &'w Rework) -> Option<Cow<'w, Rework>> {
        let [Change::Alias { name, means }] = work.changes.as_slice() else { return Some(Cow::Borrowed(work)) };
        let unknown = || Rework { dir: work.dir.clone(), changes: vec![Change::Unknown], ..Rework::default() };
        // git knows none with such a name.
        if !name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-') {
            return None;
        }
        let Ok(said) = self.asked(&["config", "--get", &format!("alias.{name}")]).await else {
            return Some(Cow::Owned(unknown()));
        };
        let said = said?;
        let (said, is_meant) = (said.trim(), |it: &&(&str, Rework)| it.0 == said);
        if let Some((_, it)) = means.iter().find(is_meant) {
            return Some(Cow::Owned(Rework { dir: work.dir.clone(), ..it.clone() }));
        }
        let may = said.starts_with('!') || said.split_whitespace().any(|it| REWORKS.contains(&it));
        may.then(|| Cow::Owned(unknown()))
    }

    /// What git says; `None`: it ended with an error.
    async fn said(&self, args: &[&str]) -> Result<Option<String>, Unknown> {
        if self.runs { Err(Unknown) } else { self.asked(args).await }
    }

    /// The same of what runs nothing, whatever the repository names.
    async fn asked(&self, args: &[&str]) -> Result<Option<String>, Unknown> {
        let own = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"];
        let args: Vec<&str> = own.into_iter().chain(args.iter().copied()).collect();
        let program = self.program().ok_or(Unknown)?.to_string();
        let (cwd, env, stdin) = (&self.top, self.env.as_slice(), Stdin::Null);
        let spawn = Spawn { program: &program, args: &args, cwd, env, stdin, confined: Some(&self.closed) };
        let Piped { mut life, stdin, stdout, stderr } = spawn.start_piped(self.groups).map_err(unknown)?;
        drop(stdin);
        let work = async {
            let (said, _) = tokio::join!(read(stdout), read(stderr));
            Ok::<_, io::Error>((said?, life.wait().await))
        };
        let (said, exit) = timeout_at(self.until, work).await.map_err(unknown)?.map_err(unknown)?;
        match exit {
            Exit { code: Some(0), .. } => Ok(Some(String::from_utf8_lossy(&said).into_owned())),
            Exit { code: Some(1..=128), .. } if exit.code != Some(FAILED) => Ok(None),
            Exit { code: Some(129), .. } => Ok(None),
            _ => Err(Unknown),
        }
    }

    /// The user's git: what lies in a folder that commands write may be anybody's.
    fn program(&self) -> Option<AbsPath> {
        let path = self.env.iter().rev().find(|(name, _)| name == "PATH").map(|it| it.1.as_str())?;
        let places = path.split(':').filter_map(AbsPath::new).filter_map(|it| disk::real_path(&it.join("git")).ok());
        places.filter(|it| disk::metadata(it).is_ok()).find(|it| !self.confined.writes(it))
    }

    /// The piece of configuration that a file belongs to and a sandbox holds.
    fn held(&self, path: &AbsPath) -> Option<AbsPath> {
        // Of a large change most are not, which is told sooner.
        let is_guarded = [guarded::CONFIG, guarded::TOOLS].iter().any(|it| it.find(path.as_path()).is_some());
        let named = || self.named.iter().find(|it| path.is_within(it)).filter(|it| self.confined.writes(it)).cloned();
        is_guarded.then(|| piece(self.confined, path)).flatten().or_else(named)
    }

    /// What notes down where submodules are, if one of those paths is one, or holds one.
    fn submodules(&self, about: &[AbsPath]) -> Vec<AbsPath> {
        let file = self.top.join(".gitmodules");
        let Ok(text) = disk::read_head(&file, MAX_SAID) else { return Vec::new() };
        let text = String::from_utf8_lossy(&text).into_owned();
        let values = text.lines().filter_map(|it| it.trim().strip_prefix("path")?.trim_start().strip_prefix('='));
        let modules = values.map(|it| self.top.join(it.trim().trim_matches('"')));
        let is_meant = |it: &AbsPath| about.is_empty() || about.iter().any(|path| it.is_within(path));
        // Each says in a file where its repository is, which goes with it.
        let links: Vec<AbsPath> = modules.filter(is_meant).map(|it| it.join(".git")).collect();
        if links.is_empty() {
            return links;
        }
        let git = repository::held_around(self.confined, &self.dir).map(|it| it.join("modules"));
        [file].into_iter().chain(git).chain(links.into_iter().filter(|it| disk::metadata(it).is_ok())).collect()
    }

    /// The folder to be written that a new work tree needs outside: it, or the first on the way that is not there.
    fn folder(&self, work: &Rework) -> Option<AbsPath> {
        let path = work.changes.iter().find_map(|it| match it {
            Change::Tree(it) => disk::real_path(&self.dir.join(it)).ok(),
            _ => None,
        })?;
        let is_there = |it: &AbsPath| disk::metadata(it).is_ok();
        let is_full = is_there(&path) && !disk::entries(&path, 1).is_empty();
        if self.confined.writes(&path) || is_full {
            return None;
        }
        let missing = std::iter::successors(Some(path.clone()), AbsPath::parent).take_while(|it| !is_there(it)).last();
        let folder = missing.unwrap_or(path);
        let is_guarded = [guarded::CONFIG, guarded::SECRETS].iter().any(|it| it.find(folder.as_path()).is_some());
        let in_root = self.confined.folders().any(|it| folder.is_within(it) || it.is_within(&folder));
        (!is_guarded && !in_root && !self.confined.is_too_wide(&folder)).then_some(folder)
    }
}

/// Of the helper, which could not confine.
const FAILED: i32 = crate::world::process::sandbox::FAILED;

fn lines(said: &str) -> impl Iterator<Item = &str> {
    said.split('\0').filter(|it| !it.is_empty())
}

fn unknown(why: impl std::fmt::Display) -> Unknown {
    tracing::debug!("git cannot be asked what changes: {why}");
    Unknown
}

async fn read(stream: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let mut res = Vec::new();
    stream.take(MAX_SAID + 1).read_to_end(&mut res).await?;
    match res.len() as u64 > MAX_SAID {
        true => Err(io::Error::other("git says too much")),
        false => Ok(res),
    }
}
