//! The place of a session: its folders checked against the disk, its trust and its merged settings.

use std::sync::Arc;

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use jsonrpsee::types::ErrorObjectOwned;

use super::{
    confinement,
    modes::{allow_mode, least_mode},
    session_resources::SessionResources,
};
use crate::settings::{Flag, Settings, Sources, options::Options};
use castor_base::{
    agent::ClientAgent,
    host_tools::HostTools,
    log::{Entry, Grant, Mode},
    path::AbsPath,
};
use castor_engine::record::Record;
use castor_hands::{disk, process::sandbox, secrets::Env};
use castor_tools::workspace::{
    Warning, castor_home,
    folder_config::{self, FolderConfig},
    saved,
};
use castor_wire::{acp::session::SessionFolders, jsonrpc::error};

/// Where a session works, checked against the disk.
pub struct SessionPlace {
    pub cwd: AbsPath,
    /// Canonical, `cwd` first.
    pub roots: Vec<AbsPath>,
    pub ground: FolderConfig,
    pub settings: Settings,
    /// What the host brings.
    pub host: Arc<HostTools>,
    /// The agent that the client defined for the session.
    pub client_agent: Option<ClientAgent>,
}

/// The place, and what is to be said of what was found there.
///
/// # Errors
/// For the client: a folder that is not there.
pub fn inspect_place(
    options: &Options,
    env: &Env,
    home: &AbsPath,
    folders: &SessionFolders,
) -> Result<(SessionPlace, Option<String>), ErrorObjectOwned> {
    let mut roots = Vec::new();
    for path in std::iter::once(&folders.cwd).chain(&folders.additional) {
        let real = disk::real_path(path).ok().filter(|it| disk::metadata(it).is_ok_and(|it| it.is_dir));
        let real =
            real.ok_or_else(|| error::invalid_params(&format!("{path} is not a folder; choose one that exists")))?;
        if !roots.contains(&real) {
            roots.push(real);
        }
    }
    if let Some(it) = options.only.outside(&roots) {
        let roots: Vec<String> = options.only.roots.iter().map(ToString::to_string).collect();
        let why = format!("{it} is none of the folders that you may work in; choose one in {}", roots.join(", "));
        return Err(error::invalid_params(&why));
    }
    // Before anybody looks at the folder: what a killed castor left there looks like configuration.
    let records = confinement::records_folder(home);
    for it in sandbox::remove_orphans(records.as_path()) {
        tracing::info!("{} was left by a castor that was killed, and is removed", it.display());
    }
    let left = confinement::quarantine_leftovers(&records);
    let ground = folder_config::load(env, &folders.cwd).with_extensions(options.extensions.as_deref());
    let settings = settings_of(options, &ground);
    let host = Arc::new(folders.host.clone());
    let place = SessionPlace { cwd: folders.cwd.clone(), roots, ground, settings, host, client_agent: None };
    log_warnings(&place);
    Ok((place, left))
}

/// Trust first, then the settings that it lets in.
pub fn load_ground(options: &Options, env: &Env, cwd: &AbsPath) -> (FolderConfig, Settings) {
    let ground = folder_config::load(env, cwd).with_extensions(options.extensions.as_deref());
    let settings = settings_of(options, &ground);
    (ground, settings)
}

pub fn settings_of(options: &Options, ground: &FolderConfig) -> Settings {
    merged_settings(options, ground).0
}

pub(super) fn merged_settings(options: &Options, ground: &FolderConfig) -> (Settings, Vec<Warning>) {
    let layers = ground.layers();
    let model = options.model.as_deref().map(Flag::model);
    let mode = options.approval_mode.map(|it| Flag::approval_mode(it.as_str()));
    let sandbox = options.sandbox.as_deref().map(Flag::sandbox);
    let flags = model.into_iter().chain(mode).chain(sandbox).chain(options.flags.iter().cloned());
    let flags: Vec<Flag> = flags.collect();
    let (mut settings, warnings) = Settings::merge(Sources { layers, env: &ground.env, flags: &flags });
    options.routing.apply(&mut settings.models.providers);
    let aliases = std::mem::take(&mut settings.models.aliases);
    settings.models.aliases = aliases.knowing(ground.models.clone()).on(today());
    settings.barred_modes.extend(options.only.barred_modes());
    // What the user said of this folder is narrower than the settings, and an order of the command line is newer.
    if options.approval_mode.is_none() && settings.approval_mode == Mode::Default && has_auto(ground, &settings) {
        settings.approval_mode = Mode::Auto;
    }
    settings.models.only.clone_from(&options.only.models);
    (settings, warnings)
}

/// Tells whether the user wants to work without questions in the folder, and may.
fn has_auto(ground: &FolderConfig, settings: &Settings) -> bool {
    let is_kept = |home: &AbsPath| saved::load_grants(home, &ground.folder).0.contains(&Grant::Auto);
    ground.trust.is_trusted()
        && !settings.disable_always_allow
        && !settings.barred_modes.contains(&Mode::Auto)
        && castor_home(&ground.env).is_some_and(|it| is_kept(&it))
}

/// Aliases and the default lead to what is served today.
fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}

/// Once for each look that a session is made from: the user reads them, or nobody does.
pub fn log_warnings(place: &SessionPlace) {
    for it in &place.ground.warnings {
        tracing::warn!("{it}");
    }
}

/// What a log says of places and rights was true when it was written.
pub fn bring_up_to_date(record: &mut Record, place: &SessionPlace) {
    record.cwd.clone_from(&place.cwd);
    record.roots.clone_from(&place.roots);
    if allow_mode(record.mode, &place.ground.trust, &place.settings).is_err() {
        record.mode = least_mode(&place.settings);
    }
}

/// A session as its log has it, in its place and with the trust and settings of now; `None` without a usable log.
pub fn reload_record(entries: &[Entry], options: &Options, env: &Env, resources: &SessionResources) -> Option<Record> {
    let mut record = Record::replay(entries)?;
    let (ground, settings) = load_ground(options, env, &resources.cwd);
    let (cwd, roots, host) = (resources.cwd.clone(), resources.roots.clone(), Arc::default());
    let place = SessionPlace { cwd, roots, ground, settings, host, client_agent: None };
    bring_up_to_date(&mut record, &place);
    Some(record)
}
