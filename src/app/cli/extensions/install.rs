//! Installs and updates of extensions: fetched beside, shown, asked about, and put in their place.

use super::{Cx, Stop, failed, git, page, wrong};
use crate::{
    base::path::AbsPath,
    world::{
        disk,
        workspace::extensions::{
            Extension, ExtensionLimits,
            contents::{self, Contents},
            record::{self, ExtensionRecord, ExtensionSource},
        },
    },
};

/// A folder in castor's own, which is gone with this value.
struct Staging(AbsPath);

impl Staging {
    fn new(home: &AbsPath) -> Result<Self, Stop> {
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
    let source = match git::is_address(source) {
        true => ExtensionSource::Git {
            url: source.to_owned(),
            reference: reference.map(str::to_owned),
            commit: String::new(),
        },
        false if reference.is_some() => return wrong("--ref is for git repositories"),
        false => ExtensionSource::Folder { path: folder(cx, source)? },
    };
    fetch(cx, source, None, consent)
}

fn folder(cx: &Cx<'_, '_>, name: &str) -> Result<AbsPath, Stop> {
    let below = name.strip_prefix("~/").and_then(|it| Some(AbsPath::new(cx.env.get("HOME")?)?.join(it)));
    let path = below.unwrap_or_else(|| cx.here.join(name));
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
    fetch(cx, ExtensionSource::Link { path }, None, consent)
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
        match fetch(cx, source, Some(&old), consent) {
            Err(Stop::Failed(code, why)) if name.is_none() => {
                cx.say(&format!("{}: {why}", old.name))?;
                worst = worst.max(code);
            }
            other => worst = worst.max(other?),
        }
    }
    Ok(worst)
}

/// Gets it, shows it, asks, and puts it in its place. `old`: what is installed and is to be updated.
fn fetch(
    cx: &mut Cx<'_, '_>,
    source: ExtensionSource,
    old: Option<&ExtensionRecord>,
    consent: bool,
) -> Result<u8, Stop> {
    let limits = ExtensionLimits::read(cx.ground(None)?.layers());
    let refuse = |it: &ExtensionSource| match limits.refusal(it) {
        Some(why) => failed(format!("nothing is installed: {why}")),
        None => Ok(()),
    };
    refuse(&source)?;
    let staging = Staging::new(&cx.home)?;
    let (source, folder) = get(cx, source, &staging)?;
    // It may have moved.
    refuse(&source)?;
    let contents = contents::read(&folder).or_else(failed)?;
    let name = contents.manifest.name.clone();
    let known = record::read(&cx.home, &name).or_else(failed)?;
    match old {
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
    let (candidate, files) = (Extension::candidate(&folder, contents.clone()), contents.hashes.clone());
    if !agreed(cx, &candidate, &source, consent)? {
        return failed("nothing was changed");
    }
    let mut record = ExtensionRecord::new(&name, &contents.manifest.version, source, files);
    if let Some(old) = old.or(known.as_ref()) {
        record.switches.clone_from(&old.switches);
    }
    if folder == staging.0 {
        disk::replace_tree(&folder, &record.folder(&cx.home)).or_else(failed)?;
    }
    record::write(&cx.home, &record).or_else(failed)?;
    let done = if old.is_some() { "updated" } else { "installed" };
    cx.say(&format!("{name} {} is {done}; it counts from the next session on.", record.release))?;
    for it in &contents.manifest.settings {
        cx.say(&format!("`castor extensions config {name} {}` sets {}.", it.variable, it.name))?;
    }
    Ok(0)
}

/// Whether what is installed is what the user agreed to.
fn is_intact(old: &ExtensionRecord, home: &AbsPath) -> bool {
    contents::read_against(&old.folder(home), &old.files).is_ok_and(|it| it.1.is_empty())
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
        ExtensionSource::Git { url, reference, .. } => {
            cx.say(&format!("Fetching {url}"))?;
            let found = git::clone(cx.env, &url, reference.as_deref(), &staging.0).or_else(failed)?;
            if found.url != url {
                cx.say(&format!("It moved to {}", found.url))?;
            }
            Ok((ExtensionSource::Git { url: found.url, reference, commit: found.id }, staging.0.clone()))
        }
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
    let question = format!("{RISK}\nUse the extension {}?", it.name);
    match cx.streams.ask.as_mut() {
        Some(ask) => Ok(ask(&question)),
        None => failed("nobody can be asked here; with --consent you say yes to all of this"),
    }
}

const RISK: &str = "Its servers, hooks and agents run with your rights, and its texts go to the model.";
