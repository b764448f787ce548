//! Session factory: creates, loads, forks and readmits live sessions.

use std::sync::Arc;

use jsonrpsee::types::ErrorObjectOwned;

use crate::{
    app::{
        errors::{auth_required, store_error},
        model::{
            access::{self, AccessKind, CredentialOverride},
            catalog::Catalog,
            reachability,
        },
        server::{
            flush, mcp,
            state::{LiveSession, State},
        },
        session::{
            build_session::{SessionParts, build_session, server_request},
            confinement,
            mcp_servers::ServerRequest,
            session_resources::SessionResources,
            trust::{self, PendingTrust},
        },
        settings::{Flag, Settings, Sources, options::Options},
    },
    base::{
        clock::Now,
        ids::{MessageId, SessionId},
        log::{Entry, Mode, Principal},
        path::AbsPath,
        text,
        trust::{Trust, mode_refusal},
    },
    engine::{
        record::{Fork, Record, SessionOrigin},
        session::Session,
        step::{Input, StepOutput},
        turn::Spec,
    },
    wire::{
        acp::{
            options::{ChosenOptions, OfferedOptions},
            session::{ForkParams, SessionFolders},
            updates::{ClientProfile, SessionView},
        },
        jsonrpc::error,
    },
    world::{
        disk,
        process::sandbox,
        secrets::Env,
        store::{SessionLog, StoreError},
        workspace::{
            Warning,
            folder_config::{self, FolderConfig},
        },
    },
};

/// The model when neither flag, environment nor settings name one.
pub const DEFAULT_MODEL: &str = "gemini-2.5-flash";
/// What a session with a script for a model calls it, unless another name is given.
const SCRIPT: &str = "script";

/// Where a session works, checked against the disk.
pub struct SessionPlace {
    pub cwd: AbsPath,
    /// Canonical, `cwd` first.
    pub roots: Vec<AbsPath>,
    pub ground: FolderConfig,
    pub settings: Settings,
}

/// A session that sees more or less of its folder than before.
pub struct ReadmittedSession {
    pub settings: Settings,
    pub wish: ServerRequest,
    modes: Vec<Mode>,
}

/// A new session, live at once.
///
/// # Errors
/// For the client: a folder that is not there, no usable model, a log that cannot be written.
pub fn create(state: &mut State, place: &SessionFolders) -> Result<SessionId, ErrorObjectOwned> {
    let (site, left) = inspect_place(state, place)?;
    let model = model_of(&state.options, &site.settings);
    let (mode, notice) = first_mode(&state.options, &site.ground.trust, &site.settings)?;
    let unread = trust::unread_notice(&site.ground);
    let held = confinement::notice(state, confinement::is_harmless(&site.ground), &site.settings);
    let now = state.now();
    let id = new_id(now);
    let SessionParts { spec, resources: desk, trouble } = build_session(state, &id, &site, &model);
    if let Some(it) = trouble {
        return Err(it);
    }
    let log = state.tasks.store.create(&id).map_err(|it| store_error(&id, &it))?;
    let wish = server_request(&site, place, &desk);
    let SessionPlace { cwd, roots, ground, .. } = site;
    let origin = SessionOrigin { session: id.clone(), cwd, roots, mode, model, principal: Principal::Root };
    let mut out = StepOutput::default();
    let session = Session::create(origin, spec, now, &mut out);
    insert_session(state, session, log, desk);
    state.queue_acts(&id, out);
    for it in [notice, unread, held, left].into_iter().flatten() {
        state.step(&id, Input::Notice(it));
    }
    reachability::send_outages(state, &id);
    trust::ask_trust(state, &id, PendingTrust { ground, place: place.clone(), is_resumed: false });
    mcp::connect(state, &id, wish);
    Ok(id)
}

/// Sorts by time, as the UUIDs of version 7 do.
pub fn new_id(now: Now) -> SessionId {
    let mut random = [0; 10];
    let dice = [now.random(u64::MAX), now.random(u64::MAX - 1)].map(u64::to_le_bytes);
    random.iter_mut().zip(dice.iter().flatten()).for_each(|(to, from)| *to = *from);
    SessionId::from(uuid::Builder::from_unix_timestamp_millis(now.unix_ms, &random).into_uuid().to_string())
}

/// A session from its log, live at once. Returns the log's entries; nothing is written. It keeps its own model, unless
/// castor was started with one; one that cannot be asked now does not keep anybody from looking at what was said.
///
/// # Errors
/// For the client: a folder or a session that is not there, that another process has open, or that is busy here; a
/// script that cannot be read.
pub fn load(state: &mut State, id: &SessionId, place: &SessionFolders) -> Result<Vec<Entry>, ErrorObjectOwned> {
    let is_live = state.sessions.contains_key(id);
    if state.sessions.get(id).is_some_and(|it| it.session.is_busy()) {
        return Err(error::busy("the session is busy with a prompt", "Cancel it first, or wait for its end."));
    }
    let (site, left) = inspect_place(state, place)?;
    let (entries, log) = match is_live {
        // What it was told in the same breath belongs to it.
        true => {
            let lines = flush::flush(state);
            state.queue_lines(|it| it.extend_from_slice(&lines));
            (state.tasks.store.read(id).map_err(|it| store_error(id, &it))?, None)
        }
        false => {
            state.tasks.store.open(id).map(|(entries, log)| (entries, Some(log))).map_err(|it| store_error(id, &it))?
        }
    };
    let missing = || store_error(id, &StoreError::NotFound { id: id.clone() });
    let mut record = Record::replay(&entries).ok_or_else(missing)?;
    bring_up_to_date(&mut record, &site);
    let model = match state.sessions.get(id) {
        // What was chosen here since holds.
        Some(live) => live.session.record().model.clone(),
        None => resumed_model(&record, &state.options, &site.settings),
    };
    let SessionParts { spec, resources: desk, trouble } = build_session(state, id, &site, &model);
    // Files that castor was started with are an order.
    if let Some(it) = trouble.filter(|_| state.options.script.is_some() || state.options.record.is_some()) {
        return Err(it);
    }
    let wish = server_request(&site, place, &desk);
    match log {
        Some(log) => {
            let mut session = Session::resume(record, spec);
            session.override_model(model);
            insert_session(state, session, log, desk);
        }
        None => replace_session(state, record, spec, desk),
    }
    if let Some(it) = left {
        state.step(id, Input::Notice(it));
    }
    reachability::send_outages(state, id);
    trust::ask_trust(state, id, PendingTrust { ground: site.ground, place: place.clone(), is_resumed: true });
    mcp::connect(state, id, wish);
    Ok(entries)
}

/// A session that begins as a copy of another, live at once. The other is only read, whoever has it: what a turn of it did
/// not end yet is interrupted in the copy.
///
/// # Errors
/// As [`load`]; also for another folder than the parent's, and for a message that it does not have.
pub fn fork(state: &mut State, wish: &ForkParams) -> Result<SessionId, ErrorObjectOwned> {
    let ForkParams { parent, place, until } = wish;
    // What it was told in the same breath belongs to it.
    let lines = flush::flush(state);
    state.queue_lines(|it| it.extend_from_slice(&lines));
    let entries = state.tasks.store.read(parent).map_err(|it| store_error(parent, &it))?;
    let missing = || store_error(parent, &StoreError::NotFound { id: parent.clone() });
    let logged = Record::begin(entries.first().ok_or_else(missing)?).ok_or_else(missing)?;
    let cwd = state.sessions.get(parent).map_or(logged.cwd, |it| it.resources.cwd.clone());
    if disk::real_path(&place.cwd).ok() != disk::real_path(&cwd).ok() {
        let why = format!("cwd: a fork stays in the folder of its session, which is {cwd}");
        return Err(error::invalid_params(&format!("{why}; send that, or begin another session with session/new")));
    }
    let now = state.now();
    let fork = Fork { session: new_id(now), until: until.clone(), now_ms: now.unix_ms };
    let id = fork.session.clone();
    let log = fork.copy_log(&entries).ok_or_else(|| no_message(until.as_ref()))?;
    state.tasks.store.create_with(&id, &log).map_err(|it| store_error(&id, &it))?;
    load(state, &id, place).inspect_err(|_| _ = state.tasks.store.delete(&id))?;
    Ok(id)
}

fn no_message(id: Option<&MessageId>) -> ErrorObjectOwned {
    let id = id.map(|it| text::head(it.as_str(), 200)).unwrap_or_default();
    let why = format!("_meta.castor.fork.messageId: the session has no message {id:?}");
    error::invalid_params(&format!("{why}; session/load shows those there are"))
}

/// The session with other files of its folder: all but its servers, which are to be connected with.
///
/// # Errors
/// In words: the session is gone.
pub fn readmit_session(
    state: &mut State,
    id: &SessionId,
    ground: FolderConfig,
    place: &SessionFolders,
) -> Result<ReadmittedSession, String> {
    let Some(live) = state.sessions.get(id) else { return Err("the session is gone".to_owned()) };
    let record = live.session.record();
    let (cwd, roots, model) = (record.cwd.clone(), record.roots.clone(), record.model.clone());
    let settings = settings_of(&state.options, &ground);
    let site = SessionPlace { cwd, roots, ground, settings };
    log_warnings(&site);
    let SessionParts { spec, resources: desk, .. } = build_session(state, id, &site, &model);
    let wish = server_request(&site, place, &desk);
    let modes = spec.modes.allowed.clone();
    if let Some(live) = state.sessions.get_mut(id) {
        live.session.replace_spec(spec);
        live.resources = desk;
    }
    Ok(ReadmittedSession { settings: site.settings, wish, modes })
}

/// `mode` where it is allowed, else the most careful one.
pub fn nearest_mode(mode: Mode, joined: &ReadmittedSession) -> Mode {
    if joined.modes.contains(&mode) { mode } else { Mode::Default }
}

fn insert_session(state: &mut State, session: Session, log: SessionLog, desk: Arc<SessionResources>) {
    let id = desk.session.clone();
    let (manner, view) = client_view(state, &id, &session);
    state.sessions.insert(
        id,
        LiveSession { session, log, view, profile: manner, resources: desk, commands: None, pending_trust: None },
    );
}

/// As [`admit`], for a session that is live: rules, trust and what confines commands are those of now.
fn replace_session(state: &mut State, record: Record, spec: Arc<Spec>, desk: Arc<SessionResources>) {
    let id = desk.session.clone();
    let Some(mut live) = state.sessions.remove(&id) else { return };
    live.session.replace_record(record);
    live.session.replace_spec(spec);
    let (manner, view) = client_view(state, &id, &live.session);
    // Its commands are told with the answer.
    let LiveSession { session, log, .. } = live;
    state.sessions.insert(
        id,
        LiveSession { session, log, view, profile: manner, resources: desk, commands: None, pending_trust: None },
    );
}

/// How the client sees it.
fn client_view(state: &State, id: &SessionId, session: &Session) -> (ClientProfile, SessionView) {
    let client = state.client.clone().unwrap_or_default();
    let record = session.record();
    let (mode, model, tuning) = (record.mode, record.model.clone(), record.tuning);
    let chosen = ChosenOptions { mode, model, tuning, limits: record.limits() };
    let models = session.models().to_vec();
    let (thinking, limits) = (!state.options.needs_no_access(), session.configured_limits());
    let modes = session.offered_modes().to_vec();
    let offer = OfferedOptions { modes, models, thinking, booleans: client.bool_options, limits };
    let manner = ClientProfile { offer, features: client.features };
    let mut view = SessionView::new(id.clone(), manner.clone(), chosen);
    if let Some((usage, _)) = record.spent.last {
        view.set_context_usage(usage.total, record.spent.cost_with(None));
    }
    (manner, view)
}

/// Whether a mode may be set in a session now.
///
/// # Errors
/// For the client, with what would allow it.
pub fn check_mode(state: &State, id: &SessionId, mode: Mode) -> Result<(), ErrorObjectOwned> {
    let Some(live) = state.sessions.get(id) else { return Err(error::session_not_found(id.as_str())) };
    let (ground, settings) = load_ground(&state.options, &state.env, &live.resources.cwd);
    allow_mode(mode, &ground.trust, &settings)
}

/// Whether sessions would begin with what the client brought.
///
/// # Errors
/// -32000 with what is missing.
pub fn check_access(state: &State, given: &CredentialOverride) -> Result<(), ErrorObjectOwned> {
    let cwd = AbsPath::new("/").unwrap_or_else(|| state.tasks.store.home().clone());
    let (ground, settings) = load_ground(&state.options, &state.env, &cwd);
    let wanted = given.method.unwrap_or(AccessKind::ApiKey);
    let access = access::model_access(&ground.env, &settings, given);
    let access = access.map_err(|it| auth_required(&it.to_string()))?;
    match access.kind == wanted || state.options.needs_no_access() {
        true => Ok(()),
        false => Err(auth_required(wanted.missing())),
    }
}

/// Credentials changed: from its next request on, each session reaches its model with the new ones.
pub fn reconnect_models(state: &mut State) {
    let ids: Vec<SessionId> = state.sessions.keys().cloned().collect();
    for id in &ids {
        reconnect_model(state, id);
    }
}

/// Looks again how a session's model is reached. Without access each of its requests fails, with what is missing.
pub fn reconnect_model(state: &mut State, id: &SessionId) {
    let Some(live) = state.sessions.get(id) else { return };
    let (ground, settings) = load_ground(&state.options, &state.env, &live.resources.cwd);
    let model = live.session.record().model.clone();
    let (generator, _) = reachability::reach_models(state, id, &ground.env, &settings, &model);
    if let Some(live) = state.sessions.get_mut(id) {
        live.resources = Arc::new(SessionResources { generator, ..SessionResources::clone(&live.resources) });
    }
}

/// A session as its log has it, in its place and with the trust and settings of now; `None` without a usable log.
pub fn reload_record(state: &State, desk: &SessionResources) -> Option<Record> {
    let entries = state.tasks.store.read(&desk.session).unwrap_or_default();
    let mut record = Record::replay(&entries)?;
    let (ground, settings) = load_ground(&state.options, &state.env, &desk.cwd);
    let site = SessionPlace { cwd: desk.cwd.clone(), roots: desk.roots.clone(), ground, settings };
    bring_up_to_date(&mut record, &site);
    Some(record)
}

/// What a log says of places and rights was true when it was written.
fn bring_up_to_date(record: &mut Record, site: &SessionPlace) {
    record.cwd.clone_from(&site.cwd);
    record.roots.clone_from(&site.roots);
    if allow_mode(record.mode, &site.ground.trust, &site.settings).is_err() {
        record.mode = Mode::Default;
    }
}

/// Who a session was begun with is whom the user told it to: settings, keys and defaults of another day change nothing.
/// A script's name is no model without the script.
fn resumed_model(record: &Record, options: &Options, settings: &Settings) -> String {
    match &options.model {
        Some(it) => it.clone(),
        None if record.model == SCRIPT && options.script.is_none() => model_of(options, settings),
        None => record.model.clone(),
    }
}

/// The site, and what is to be said of what was found there.
fn inspect_place(state: &State, place: &SessionFolders) -> Result<(SessionPlace, Option<String>), ErrorObjectOwned> {
    let mut roots = Vec::new();
    for path in std::iter::once(&place.cwd).chain(&place.additional) {
        let real = disk::real_path(path).ok().filter(|it| disk::metadata(it).is_ok_and(|it| it.is_dir));
        let real =
            real.ok_or_else(|| error::invalid_params(&format!("{path} is not a folder; choose one that exists")))?;
        if !roots.contains(&real) {
            roots.push(real);
        }
    }
    // Before anybody looks at the folder: what a killed castor left there looks like configuration.
    let records = confinement::records_folder(state.tasks.store.home());
    for it in sandbox::remove_orphans(records.as_path()) {
        tracing::info!("{} was left by a castor that was killed, and is removed", it.display());
    }
    let left = confinement::quarantine_leftovers(&records);
    let ground = folder_config::load(&state.env, &place.cwd);
    let (settings, warnings) = merged_settings(&state.options, &ground);
    for it in warnings {
        tracing::warn!("{it}");
    }
    let site = SessionPlace { cwd: place.cwd.clone(), roots, ground, settings };
    log_warnings(&site);
    Ok((site, left))
}

/// Trust first, then the settings that it lets in.
pub fn load_ground(options: &Options, env: &Env, cwd: &AbsPath) -> (FolderConfig, Settings) {
    let ground = folder_config::load(env, cwd);
    let settings = settings_of(options, &ground);
    (ground, settings)
}

pub fn settings_of(options: &Options, ground: &FolderConfig) -> Settings {
    merged_settings(options, ground).0
}

fn merged_settings(options: &Options, ground: &FolderConfig) -> (Settings, Vec<Warning>) {
    let layers = ground.layers();
    let model = options.model.as_deref().map(Flag::model);
    let mode = options.approval_mode.map(|it| Flag::approval_mode(it.as_str()));
    let sandbox = options.sandbox.as_deref().map(Flag::sandbox);
    let flags = model.into_iter().chain(mode).chain(sandbox).chain(options.limits.iter().cloned());
    let flags: Vec<Flag> = flags.collect();
    Settings::merge(Sources { layers: &layers, env: &ground.env, flags: &flags })
}

/// Once for each look that a session is made from: the user reads them, or nobody does.
fn log_warnings(site: &SessionPlace) {
    for it in &site.ground.warnings {
        tracing::warn!("{it}");
    }
}

/// What providers said of their models.
pub fn catalog(state: &State) -> Catalog {
    match state.options.needs_no_access() {
        true => Catalog::default(),
        false => Catalog::read(state.tasks.store.home()),
    }
}

/// Ids and names: what is known, and the one in use. A script or the demo answers as itself only.
pub fn models_on_offer(
    options: &Options,
    settings: &Settings,
    catalog: &Catalog,
    current: &str,
) -> Vec<(String, String)> {
    let aliases = &settings.models.aliases;
    let mut res = if options.needs_no_access() { Vec::new() } else { catalog.offer(settings) };
    res.extend(aliases.offered_names(!options.needs_no_access()));
    // Who may take over can be chosen, too.
    for it in settings.on_failure.models.iter().filter(|_| options.script.is_none()) {
        if !res.iter().any(|(id, _)| id == it) {
            res.push((it.clone(), it.clone()));
        }
    }
    if !res.iter().any(|(id, _)| id == current) {
        res.insert(0, (current.to_owned(), current.to_owned()));
    }
    res
}

pub fn model_of(options: &Options, settings: &Settings) -> String {
    match (&options.script, &settings.model_name) {
        (_, Some(model)) => model.clone(),
        (Some(_), None) => SCRIPT.to_owned(),
        (None, None) => DEFAULT_MODEL.to_owned(),
    }
}

/// The mode that a session begins in, and what is to be said about it. A mode of the settings that is not allowed here
/// is a wish that waits; one that castor was started with is an order.
///
/// # Errors
/// As [`allow_mode`], for a mode of the command line.
pub fn first_mode(
    options: &Options,
    trust: &Trust,
    settings: &Settings,
) -> Result<(Mode, Option<String>), ErrorObjectOwned> {
    let wanted = settings.approval_mode;
    match allow_mode(wanted, trust, settings) {
        Ok(()) => Ok((wanted, None)),
        Err(it) if options.approval_mode.is_some() => Err(it),
        Err(_) => {
            let mode = Mode::Default;
            let (begun, why) = (mode.as_str(), why_not_here(wanted, trust));
            let wanted = wanted.as_str();
            let said =
                format!("The settings ask for the mode {wanted}, {why}: this session begins in the mode {begun}.");
            Ok((mode, Some(said)))
        }
    }
}

/// Behind the name of a mode.
fn why_not_here(mode: Mode, trust: &Trust) -> &'static str {
    if mode == Mode::Auto && trust.is_trusted() {
        return "which needs a sandbox with mounts, and checkpoints, and is not on offer here";
    }
    "which needs a trusted folder"
}

/// What does more without asking needs a folder that is trusted; `auto` also what holds commands and takes them back.
pub fn allow_mode(mode: Mode, trust: &Trust, settings: &Settings) -> Result<(), ErrorObjectOwned> {
    if matches!(mode, Mode::Auto | Mode::Yolo) && settings.disable_yolo {
        return Err(error::invalid_params(&mode_refusal(mode, true)));
    }
    if mode > Mode::Default && !trust.is_trusted() {
        return Err(error::untrusted(&mode_refusal(mode, false)));
    }
    // To find out may start a process: only for whom it matters.
    let lack = if mode == Mode::Auto { confinement::lacks_for_auto(settings) } else { None };
    lack.map_or(Ok(()), |why| Err(error::invalid_params(why)))
}
