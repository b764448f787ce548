//! What of that which a sandbox holds a command would have git change: git is asked, in a sandbox in which nothing is
//! written and nobody reached, and not at all where the repository names what it would run as it looks: nobody said yes yet.

mod trees;

use std::{borrow::Cow, collections::BTreeSet, io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::{Instant, timeout_at},
};

use crate::{
    base::{
        guarded,
        path::AbsPath,
        sandbox::{Confinement, Granted},
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
    "clean",
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
        let Some(dir) = real_dir(&work.dir, dir, ctx) else { continue };
        res.folder = res.folder.or_else(|| trees::made(work, &dir, confined));
        let Some(looker) = Looker::new(dir, confined, ctx, groups) else { continue };
        let looker = Looker { runs, until, ..looker };
        let Some(work) = looker.meant(work).await else { continue };
        let found = looker.find(&work, &mut places).await;
        res.perhaps |= found.perhaps;
        res.top = res.top.or_else(|| found.outside.then(|| looker.top.clone()));
        trees::changed(&work, &looker, &mut places, &mut res);
    }
    res.closed |= res.top.as_ref().is_some_and(|it| confined.is_too_wide(it));
    res.places = places.into_iter().collect();
    (!res.places.is_empty() || res.folder.is_some() || res.top.is_some()).then_some(res)
}

/// Where git works.
pub fn real_dir(work: &str, dir: &AbsPath, ctx: &ToolContext) -> Option<AbsPath> {
    let dir = match work.strip_prefix('~') {
        Some(rest) => ctx.home()?.join(rest.trim_start_matches('/')),
        None => dir.join(work),
    };
    disk::real_path(&dir).ok()
}

/// What was found beside places.
#[derive(Default)]
struct Found {
    /// What is there is only perhaps changed.
    perhaps: bool,
    /// So are files that lie outside of what is written.
    outside: bool,
}

struct Looker<'a> {
    /// Where git works, and the top of the work tree around that.
    dir: AbsPath,
    git: AbsPath,
    top: AbsPath,
    /// What the repository's settings name.
    named: Vec<AbsPath>,
    confined: &'a Confinement,
    /// The same with all of the work tree, as a yes would give it.
    reach: Confinement,
    closed: Confinement,
    env: Vec<(String, String)>,
    groups: &'a Groups,
    runs: bool,
    until: Instant,
}

impl<'a> Looker<'a> {
    /// `None`: there is no repository that commands write.
    fn new(dir: AbsPath, confined: &'a Confinement, ctx: &ToolContext, groups: &'a Groups) -> Option<Self> {
        let git = repository::held_around(confined, &dir)?;
        let mut above = std::iter::successors(Some(dir.clone()), AbsPath::parent);
        let top = above.find(|it| disk::metadata(&it.join(".git")).is_ok())?;
        let home = ctx.home();
        let named = named::places(top.as_path(), git.as_path(), home.as_ref().map(AbsPath::as_path));
        let closed = Confinement { read_only: true, network: false, ..confined.clone() };
        let closed = Confinement { writable: Vec::new(), granted: Vec::new(), gits: Vec::new(), ..closed };
        let own = ENV.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env = ctx.env.iter().cloned().chain(own).collect();
        let named = named.into_iter().filter_map(AbsPath::new).collect();
        let mut reach = confined.clone();
        if !is_written(confined, &top) && !confined.is_too_wide(&top) {
            reach.granted.push(Granted::Folder(top.clone()));
        }
        Some(Self { dir, git, top, named, confined, reach, closed, env, groups, runs: true, until: Instant::now() })
    }

    /// Adds what is held of what changes.
    async fn find(&self, work: &Rework, places: &mut BTreeSet<AbsPath>) -> Found {
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
        let (before, mut res) = (places.len(), Found::default());
        self.add(names, &is_meant, places, &mut res);
        if work.changes.contains(&Change::Moved) {
            places.extend(self.submodules(&about));
        }
        let is_sure = places.len() > before || res.outside;
        if is_known {
            return res;
        }
        let known = match tracked::all(&self.top) {
            Some(it) => it,
            None => self.names_in(&["ls-files", "-z"]).await.unwrap_or_default(),
        };
        self.add(known, &is_meant, places, &mut res);
        res.perhaps = !is_sure && (places.len() > before || res.outside);
        res
    }

    fn add(
        &self,
        names: Vec<String>,
        is_meant: &dyn Fn(&AbsPath) -> bool,
        places: &mut BTreeSet<AbsPath>,
        to: &mut Found,
    ) {
        let files = names.into_iter().map(|it| self.top.join(it)).filter(is_meant);
        for file in files {
            places.extend(self.held(&file));
            to.outside |= self.is_outside(&file);
        }
    }

    /// Whether it lies in the work tree beside what is written.
    fn is_outside(&self, file: &AbsPath) -> bool {
        !is_written(self.confined, &self.top) && !is_written(self.confined, file)
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
            Change::Ignored => self.status("--ignored").await,
            Change::Moved => tracked::all(&self.top).ok_or(Unknown),
            Change::Tree(_) | Change::Clone(_) | Change::Trees(_) | Change::Alias { .. } => Ok(Vec::new()),
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
        let is_held = |it: &String| {
            let file = self.top.join(it);
            self.held(&file).is_some() || self.is_outside(&file)
        };
        // Most repositories have none, and so nobody is started.
        if untracked == TRACKED && tracked::all(&self.top).is_some_and(|it| !it.iter().any(is_held)) {
            return Ok(Vec::new());
        }
        let status = ["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all", untracked];
        let all = (untracked == "--ignored").then_some("-uall");
        let status: Vec<&str> = status.into_iter().chain(all).collect();
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
        let said = said.trim();
        if let Some((_, it)) = means.iter().find(|it| it.0 == said) {
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
        let named = || self.named.iter().find(|it| path.is_within(it)).filter(|it| self.reach.writes(it)).cloned();
        is_guarded.then(|| piece(&self.reach, path)).flatten().or_else(named)
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
        [file]
            .into_iter()
            .chain([self.git.join("modules")])
            .chain(links.into_iter().filter(|it| disk::metadata(it).is_ok()))
            .collect()
    }
}

/// Of the helper, which could not confine.
const FAILED: i32 = crate::world::process::sandbox::FAILED;

/// Whether it lies in what commands write, guards apart.
fn is_written(it: &Confinement, path: &AbsPath) -> bool {
    it.folders().chain(&it.gits).chain([&it.tmp]).any(|folder| path.is_within(folder))
}

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
