//! Skills that are installed, linked and removed: one folder each, kept and covered as an extension is.

use std::io;

use clap::Args;

use super::{
    Cx, ExtensionStreams, Stop, SwitchScope, failed,
    install::{Aim, Staging, fetch, folder, folder_in, folder_of_skill, settle, source_of, stage},
    with_cx, wrong,
};
use castor_base::path::AbsPath;
use castor_hands::{disk, secrets::Env};
use castor_tools::workspace::{
    extensions::record::{self, ExtensionKind, ExtensionSource},
    prompts::SKILL_FILE,
};

#[derive(Args, Clone, Debug)]
pub struct SkillSourceArgs {
    /// A folder with a SKILL.md or with folders of skills, or an address that git can clone
    pub source: String,
    /// The branch, tag or commit [default: the repository's own]
    #[arg(long, value_name = "REF")]
    pub r#ref: Option<String>,
    /// A folder in the repository
    #[arg(long, value_name = "FOLDER")]
    pub path: Option<String>,
    #[command(flatten)]
    pub usage: SkillUseArgs,
}

#[derive(Args, Clone, Debug)]
pub struct SkillLinkArgs {
    /// The folder of the skill, or one with folders of skills
    pub folder: String,
    #[command(flatten)]
    pub usage: SkillUseArgs,
}

#[derive(Args, Clone, Debug)]
pub struct SkillUseArgs {
    /// For all your sessions, or only for those in this folder
    #[arg(long, value_enum, default_value_t)]
    pub scope: SwitchScope,
    /// Yes to what it brings, without a question
    #[arg(long)]
    pub consent: bool,
}

/// What `castor skills` does with skills that come from elsewhere.
pub enum SkillOrder<'a> {
    Install(&'a SkillSourceArgs),
    Link(&'a SkillLinkArgs),
    Uninstall(&'a str),
}

/// Returns the exit code.
///
/// # Errors
/// The output's.
pub fn run(order: &SkillOrder<'_>, env: &Env, here: &AbsPath, streams: &mut ExtensionStreams<'_>) -> io::Result<u8> {
    with_cx(env, here, streams, |cx| match order {
        SkillOrder::Install(args) => install(cx, args),
        SkillOrder::Link(args) => link(cx, args),
        SkillOrder::Uninstall(name) => uninstall(cx, name),
    })
}

fn install(cx: &mut Cx<'_, '_>, args: &SkillSourceArgs) -> Result<u8, Stop> {
    let found = source_of(cx, &args.source, args.r#ref.as_deref())?;
    match (found, &args.path) {
        (source @ ExtensionSource::Git { .. }, path) => {
            install_from_git(cx, source, path.as_deref().unwrap_or_default(), &args.usage)
        }
        (_, Some(_)) => wrong("--path is for git repositories; name the folder itself"),
        (ExtensionSource::Folder { path } | ExtensionSource::Link { path }, None) => {
            each(cx, &path, &args.usage, |path| ExtensionSource::Folder { path })
        }
    }
}

fn link(cx: &mut Cx<'_, '_>, args: &SkillLinkArgs) -> Result<u8, Stop> {
    let found = folder(cx, &args.folder)?;
    each(cx, &found, &args.usage, |path| ExtensionSource::Link { path })
}

fn each(
    cx: &mut Cx<'_, '_>,
    folder: &AbsPath,
    args: &SkillUseArgs,
    source: fn(AbsPath) -> ExtensionSource,
) -> Result<u8, Stop> {
    let only_in = only_in(cx, args.scope)?;
    for name in skills_in(folder, &folder.to_string())? {
        let aim = Aim::skill(only_in.as_ref());
        fetch(cx, source(folder.join(name)), aim, args.consent)?;
    }
    Ok(0)
}

fn install_from_git(cx: &mut Cx<'_, '_>, source: ExtensionSource, path: &str, args: &SkillUseArgs) -> Result<u8, Stop> {
    let only_in = only_in(cx, args.scope)?;
    let staging = Staging::new(&cx.home)?;
    let (source, fetched) = stage(cx, source, &staging)?;
    let root = folder_in(&fetched, path)?;
    for name in skills_in(&root, "the repository")? {
        let path: Vec<&str> = [path, name.as_str()].into_iter().filter(|it| !it.is_empty()).collect();
        let found = (source.clone().at_path(&path.join("/")), folder_in(&root, &name)?);
        let aim = Aim::skill(only_in.as_ref());
        settle(cx, found, aim, args.consent)?;
    }
    Ok(0)
}

fn only_in(cx: &Cx<'_, '_>, scope: SwitchScope) -> Result<Option<AbsPath>, Stop> {
    match scope {
        SwitchScope::User => Ok(None),
        SwitchScope::Workspace => disk::real_path(cx.here).map(Some).or_else(failed),
    }
}

/// The names of the folders that are skills: the folder itself, which has no name, or those right below it.
fn skills_in(folder: &AbsPath, shown: &str) -> Result<Vec<String>, Stop> {
    let has = |name: &String| disk::path_exists(&folder.join(name).join(SKILL_FILE));
    let mut names: Vec<String> = disk::read_dir(folder).or_else(failed)?.into_iter().map(|it| it.name).collect();
    names.retain(has);
    names.sort();
    match (has(&String::new()), names.is_empty()) {
        (true, _) => Ok(vec![String::new()]),
        (false, true) => wrong(format!("{shown} has no {SKILL_FILE}, nor has a folder in it")),
        (false, false) => Ok(names),
    }
}

fn uninstall(cx: &mut Cx<'_, '_>, name: &str) -> Result<u8, Stop> {
    let record = record::read(&cx.home, name).or_else(failed)?;
    match record {
        Some(it) if it.kind == ExtensionKind::Skill => {
            record::remove(&cx.home, &it).or_else(failed)?;
            cx.say(&format!("The skill {name} is gone from the next session on."))?;
            Ok(0)
        }
        Some(_) => wrong(format!("{name} is an extension: write `castor extensions uninstall {name}`")),
        None => match folder_of_skill(cx, name)? {
            Some(at) => wrong(format!("castor did not install the skill {name}; it is gone when you remove {at}")),
            None => wrong(format!("there is no skill {name}; `castor skills list` lists them")),
        },
    }
}
