//! Installs and updates of extensions and skills: fetched beside, shown, asked about, and put in their place.

use super::{Cx, Stop, failed, git, page, wrong};
use castor_base::path::AbsPath;
use castor_engine::commands::is_own_command;
use castor_hands::disk;
use castor_tools::workspace::extensions::{
    Extension, ExtensionLimits,
    contents::{self, Contents},
    record::{self, ExtensionKind, ExtensionRecord, ExtensionSource},
};

/// A folder in castor's own, which is gone with this value.
pub struct Staging(AbsPath);

impl Staging {
    pub fn new(home: &AbsPath) -> Result<Self, Stop> {
        let folder = record::home_of(home).join(format!(".new-{}", std::process::id()));
        if disk::path_exists(&folder) {
            disk::remove_tree(&folder).or_else(failed)?;
        }
        Ok(Self(folder))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        _ = disk::remove_tree(&self.0);
    }
}

pub fn install(cx: &mut Cx<'_, '_>, source: &str, reference: Option<&str>, consent: bool) -> Result<u8, Stop> {
    let source = source_of(cx, source, reference)?;
    fetch(cx, source, Aim::EXTENSION, consent)
}

/// What the user names: something to clone, or a folder.
pub fn source_of(cx: &Cx<'_, '_>, source: &str, reference: Option<&str>) -> Result<ExtensionSource, Stop> {
    match git::is_address(source) {
        true => Ok(ExtensionSource::Git {
            url: source.to_owned(),
            reference: reference.map(str::to_owned),
            commit: String::new(),
            path: None,
        }),
        false if reference.is_some() => wrong("--ref is for git repositories"),
        false => Ok(ExtensionSource::Folder { path: folder(cx, source)? }),
    }
}

pub fn folder(cx: &Cx<'_, '_>, name: &str) -> Result<AbsPath, Stop> {
    let home = cx.env.get("HOME").and_then(AbsPath::new);
    let path = AbsPath::written(name, home.as_ref()).unwrap_or_else(|| cx.here.join(name));
    match disk::metadata(&path) {
        Ok(it) if it.is_dir => disk::real_path(&path).or_else(failed),
        Ok(_) => wrong(format!("{path} is no folder")),
        Err(it) => {
            wrong(format!("{path} cannot be looked into ({it}); name a folder, or an address that git can clone"))
        }
    }
}

pub fn link(cx: &mut Cx<'_, '_>, path: &AbsPath, consent: bool) -> Result<u8, Stop> {
    let path = folder(cx, &path.to_string())?;
    fetch(cx, ExtensionSource::Link { path }, Aim::EXTENSION, consent)
}

pub fn update(cx: &mut Cx<'_, '_>, name: Option<&str>, consent: bool) -> Result<u8, Stop> {
    let all = match name {
        Some(name) => vec![cx.record(name)?],
        None => {
            let files = record::files(&cx.home);
            let names = files.iter().filter_map(|it| it.as_path().file_stem()?.to_str().map(str::to_owned));
            names.map(|it| cx.record(&it)).collect::<Result<Vec<_>, _>>()?
        }
    };
    let mut worst = 0;
    for old in all {
        let source = old.source.clone();
        match fetch(cx, source, Aim::update(&old), consent) {
            Err(Stop::Failed(code, why)) if name.is_none() => {
                cx.say(&format!("{}: {why}", old.name))?;
                worst = worst.max(code);
            }
            other => worst = worst.max(other?),
        }
    }
    Ok(worst)
}

/// What is to come of a folder.
#[derive(Clone, Copy)]
pub struct Aim<'a> {
    kind: ExtensionKind,
    /// What is installed and is to be updated.
    old: Option<&'a ExtensionRecord>,
    /// The only folder where a new one is on.
    only_in: Option<&'a AbsPath>,
}

impl<'a> Aim<'a> {
    const EXTENSION: Self = Self { kind: ExtensionKind::Extension, old: None, only_in: None };

    pub fn skill(only_in: Option<&'a AbsPath>) -> Self {
        Self { kind: ExtensionKind::Skill, old: None, only_in }
    }

    fn update(old: &'a ExtensionRecord) -> Self {
        Self { kind: old.kind, old: Some(old), only_in: None }
    }
}

/// Gets it, shows it, asks, and puts it in its place.
pub fn fetch(cx: &mut Cx<'_, '_>, source: ExtensionSource, aim: Aim<'_>, consent: bool) -> Result<u8, Stop> {
    let staging = Staging::new(&cx.home)?;
    let found = stage(cx, source, &staging)?;
    settle(cx, found, aim, consent)
}

/// Gets what settings allow.
pub fn stage(
    cx: &mut Cx<'_, '_>,
    source: ExtensionSource,
    staging: &Staging,
) -> Result<(ExtensionSource, AbsPath), Stop> {
    let limits = ExtensionLimits::read(cx.ground(None)?.layers());
    let refuse = |it: &ExtensionSource| match limits.refusal(it) {
        Some(why) => failed(format!("nothing is installed: {why}")),
        None => Ok(()),
    };
    refuse(&source)?;
    let (source, folder) = get(cx, source, staging)?;
    // It may have moved.
    refuse(&source)?;
    Ok((source, folder))
}

/// Shows what is in a folder, asks, and puts it in its place.
pub fn settle(
    cx: &mut Cx<'_, '_>,
    (source, folder): (ExtensionSource, AbsPath),
    aim: Aim<'_>,
    consent: bool,
) -> Result<u8, Stop> {
    let contents = contents::read(&folder, aim.kind).or_else(failed)?;
    let name = contents.manifest.name.clone();
    let known = record::read(&cx.home, &name).or_else(failed)?;
    match aim.old {
        None if known.is_some() => {
            return wrong(format!("{name} is installed already; `castor extensions update {name}` updates it"));
        }
        Some(old) if old.name != name => return failed(format!("{} calls itself {name} now", old.name)),
        Some(old) if old.source == source && same_files(old, &contents) && is_intact(old, &cx.home) => {
            cx.say(&format!("{name} {} is as you agreed to it.", old.release))?;
            return Ok(0);
        }
        _ => (),
    }
    if aim.kind == ExtensionKind::Skill
        && aim.old.is_none()
        && let Some(at) = folder_of_skill(cx, &name)?
    {
        return wrong(format!("there is a skill {name} already, in {at}"));
    }
    let (candidate, files) = (Extension::candidate(&folder, contents.clone()), contents.hashes.clone());
    if !agreed(cx, &candidate, &source, consent)? {
        return failed("nothing was changed");
    }
    let mut record = ExtensionRecord::new(&name, &contents.manifest.version, source, files);
    record.kind = aim.kind;
    if let Some(it) = aim.only_in {
        record.switches.set(None, false);
        record.switches.set(Some(it), true);
    }
    if let Some(old) = aim.old {
        record.switches.clone_from(&old.switches);
    }
    if !matches!(record.source, ExtensionSource::Link { .. }) {
        disk::replace_tree(&folder, &record.folder(&cx.home)).or_else(failed)?;
    }
    record::write(&cx.home, &record).or_else(failed)?;
    let done = if aim.old.is_some() { "updated" } else { "installed" };
    cx.say(&format!("{name} {} is {done}; it counts from the next session on.", record.release))?;
    for it in &contents.manifest.settings {
        cx.say(&format!("`castor extensions config {name} {}` sets {}.", it.variable, it.name))?;
    }
    Ok(0)
}

/// Whether what is installed is what the user agreed to.
fn is_intact(old: &ExtensionRecord, home: &AbsPath) -> bool {
    contents::read_against(&old.folder(home), old.kind, &old.files).is_ok_and(|it| it.1.is_empty())
}

fn same_files(old: &ExtensionRecord, now: &Contents) -> bool {
    let hashes =
        |it: &record::TreeHashes| it.iter().map(|(name, it)| (name.clone(), it.hash.clone())).collect::<Vec<_>>();
    hashes(&old.files) == hashes(&now.hashes)
}

/// The files, where they are to be looked at.
fn get(cx: &mut Cx<'_, '_>, source: ExtensionSource, staging: &Staging) -> Result<(ExtensionSource, AbsPath), Stop> {
    match source {
        ExtensionSource::Link { path } => Ok((ExtensionSource::Link { path: path.clone() }, path)),
        ExtensionSource::Folder { path } => {
            let files = contents::list(&path).or_else(failed)?;
            disk::copy_tree(&path, &staging.0, &files).or_else(failed)?;
            Ok((ExtensionSource::Folder { path }, staging.0.clone()))
        }
        ExtensionSource::Git { url, reference, path, .. } => {
            cx.say(&format!("Fetching {url}"))?;
            let found = git::clone(cx.env, &url, reference.as_deref(), &staging.0).or_else(failed)?;
            if found.url != url {
                cx.say(&format!("It moved to {}", found.url))?;
            }
            let folder = folder_in(&staging.0, path.as_deref().unwrap_or_default())?;
            Ok((ExtensionSource::Git { url: found.url, reference, commit: found.id, path }, folder))
        }
    }
}

/// Where a skill of that name lies that a session in this folder would have.
pub fn folder_of_skill(cx: &Cx<'_, '_>, name: &str) -> Result<Option<AbsPath>, Stop> {
    let found = cx.ground(None)?.prompts(&is_own_command);
    Ok(found.skills.into_iter().find(|it| it.name == name).map(|it| it.folder))
}

/// A folder of what was fetched, which is a folder and lies in it.
pub fn folder_in(fetched: &AbsPath, path: &str) -> Result<AbsPath, Stop> {
    let (root, folder) = (disk::real_path(fetched).or_else(failed)?, fetched.join(path));
    match disk::real_path(&folder).ok().filter(|it| it.is_within(&root)) {
        Some(it) if disk::metadata(&it).is_ok_and(|it| it.is_dir) => Ok(it),
        _ => wrong(format!("the repository has no folder {path}")),
    }
}

fn agreed(cx: &mut Cx<'_, '_>, it: &Extension, source: &ExtensionSource, consent: bool) -> Result<bool, Stop> {
    cx.say(&format!("{} {}, {source}", it.name, it.release))?;
    if let Some(about) = it.contents().map(|it| it.manifest.description.clone()).filter(|it| !it.is_empty()) {
        cx.say(&about)?;
    }
    page::write(&page::of(it), cx.streams.out)?;
    if consent {
        return Ok(true);
    }
    let risk = match it.kind {
        ExtensionKind::Extension => RISK,
        ExtensionKind::Skill => SKILL_RISK,
    };
    let question = format!("{risk}\nUse the {} {}?", it.kind.as_str(), it.name);
    match cx.streams.ask.as_mut() {
        Some(ask) => Ok(ask(&question)),
        None => failed("nobody can be asked here; with --consent you say yes to all of this"),
    }
}

const RISK: &str = "Its servers, hooks and agents run with your rights, and its texts go to the model.";
const SKILL_RISK: &str = "Its text goes to the model, which may run what it brings as commands.";
