//! The factory of sessions: place, trust, settings, model and tools become one live session.

use std::sync::Arc;

use jsonrpsee::types::ErrorObjectOwned;

use crate::{
    app::{
        access::{self, AccessKind, Given},
        confinement,
        desk::{Children, Desk, Editor, Screens},
        errors::{auth_required, store_error},
        fault::Fault,
        mcp::{self, servers::Wish},
        options::Options,
        policies,
        settings::{Flag, McpSettings, Settings, Sources},
        state::{Live, State},
    },
    base::{
        ids::SessionId,
        log::{Entry, Fact, Mode},
        mcp::merged,
        now::Now,
        path::AbsPath,
    },
    engine::{
        context::{Instructions, Surroundings},
        record::{Origin, Record},
        routing::limits::KNOWN,
        scheduler::Toolbox,
        session::Session,
        step::Out,
        turn::{MAX_SAMPLES, Spec},
    },
    wire::{
        acp::{
            initialize::Client,
            options::{Chosen, Offer},
            session::Place,
            updates::{Manner, View},
        },
        jsonrpc::error,
    },
    world::{
        disk,
        models::refused::Refused,
        secrets::Env,
        store::{Log, StoreError},
        workspace::{
            Reader, settings as files,
            trust::{self, Trust},
        },
    },
};

/// The model when neither flag, environment nor settings name one.
pub const DEFAULT_MODEL: &str = "gemini-2.5-flash";

/// Why servers of the settings do not start.
const UNTRUSTED: &str = "the folder is not trusted";

/// Where a session works, checked against the disk.
struct Ground {
    cwd: AbsPath,
    /// Canonical, `cwd` first.
    roots: Vec<AbsPath>,
    trust: Trust,
    settings: Settings,
}

/// A new session, live at once.
///
/// # Errors
/// For the client: a folder that is not there, no usable model, a log that cannot be written.
pub fn create(state: &mut State, place: &Place) -> Result<SessionId, ErrorObjectOwned> {
    let ground = survey(state, place)?;
    let model = model_of(&state.options, &ground.settings);
    let mode = ground.settings.approval_mode;
    allow_mode(mode, &ground.trust, &ground.settings)?;
    let now = state.now();
    let id = new_id(now);
    let (spec, desk) = furnish(state, &id, &ground, &model)?;
    let log = state.world.store.create(&id).map_err(|it| store_error(&id, &it))?;
    let wish = wish(&ground, place, &desk);
    let (cwd, roots) = (ground.cwd, ground.roots);
    let origin = Origin { session: id.clone(), cwd, roots, mode, model };
    let mut out = Out::default();
    let session = Session::create(origin, spec, now, &mut out);
    admit(state, session, log, desk);
    state.say(&id, out);
    mcp::connect(state, &id, wish);
    Ok(id)
}

/// Sorts by time, as the UUIDs of version 7 do.
fn new_id(now: Now) -> SessionId {
    let mut random = [0; 10];
    let dice = [now.dice(u64::MAX), now.dice(u64::MAX - 1)].map(u64::to_le_bytes);
    random.iter_mut().zip(dice.iter().flatten()).for_each(|(to, from)| *to = *from);
    SessionId::from(uuid::Builder::from_unix_timestamp_millis(now.unix_ms, &random).into_uuid().to_string())
}

/// A session from its log, live at once. Returns the log's entries; nothing is written.
///
/// # Errors
/// As [`create`]; also for a session that is not there, that another process has open, or that is busy here.
pub fn load(state: &mut State, id: &SessionId, place: &Place) -> Result<Vec<Entry>, ErrorObjectOwned> {
    if let Some(live) = state.sessions.get_mut(id) {
        if live.session.is_busy() {
            return Err(error::busy("the session is busy with a prompt", "Cancel it first, or wait for its end."));
        }
        let desk = Arc::clone(&live.desk);
        // Told with the answer.
        live.commands = None;
        let ground = survey(state, place)?;
        mcp::connect(state, id, wish(&ground, place, &desk));
        return state.world.store.read(id).map_err(|it| store_error(id, &it));
    }
    let ground = survey(state, place)?;
    let (entries, log) = state.world.store.open(id).map_err(|it| store_error(id, &it))?;
    let missing = || store_error(id, &StoreError::NotFound { id: id.clone() });
    let mut record = Record::replay(&entries).ok_or_else(missing)?;
    bring_up_to_date(&mut record, &entries, &state.options, &ground);
    let (spec, desk) = furnish(state, id, &ground, &record.model)?;
    let session = Session::resume(record, spec);
    let wish = wish(&ground, place, &desk);
    admit(state, session, log, desk);
    mcp::connect(state, id, wish);
    Ok(entries)
}

/// The client's servers start anywhere; those of the settings only where the folder cannot turn them against the user.
fn wish(ground: &Ground, place: &Place, desk: &Desk) -> Wish {
    let McpSettings { servers, off, start_budget_ms } = &ground.settings.mcp;
    let (of_settings, mut off) = match ground.trust.is_trusted() {
        true => (servers.clone(), off.clone()),
        false => {
            (Vec::new(), servers.iter().map(|it| (it.name.clone(), UNTRUSTED.to_owned())).chain(off.clone()).collect())
        }
    };
    let servers = merged(place.mcp_servers.clone(), of_settings);
    off.retain(|(name, _)| !servers.iter().any(|it| it.name == *name));
    Wish { servers, off, cwd: desk.cwd.clone(), env: Arc::clone(&desk.children.env), budget_ms: *start_budget_ms }
}

fn admit(state: &mut State, session: Session, log: Log, desk: Arc<Desk>) {
    let id = desk.session.clone();
    let client = state.client.clone().unwrap_or_default();
    let record = session.record();
    let chosen = Chosen { mode: record.mode, model: record.model.clone(), tuning: record.tuning };
    let models = models_on_offer(&state.options, &record.model);
    let offer = Offer { models, thinking: !state.options.needs_no_access(), booleans: client.booleans };
    let manner = Manner { offer, notices: client.notices };
    let view = View::new(id.clone(), manner.clone(), chosen);
    state.sessions.insert(id, Live { session, log, view, manner, desk, commands: None });
}

/// Whether a mode may be set in a session now.
///
/// # Errors
/// For the client, with what would allow it.
pub fn check_mode(state: &State, id: &SessionId, mode: Mode) -> Result<(), ErrorObjectOwned> {
    let Some(live) = state.sessions.get(id) else { return Err(error::session_not_found(id.as_str())) };
    let (trust, settings) = look(&state.options, &state.env, &live.desk.cwd);
    allow_mode(mode, &trust, &settings)
}

/// Whether sessions would begin with what the client brought.
///
/// # Errors
/// -32000 with what is missing.
pub fn check_access(state: &State, given: &Given) -> Result<(), ErrorObjectOwned> {
    let cwd = AbsPath::new("/").unwrap_or_else(|| state.world.store.home().clone());
    let (_, settings) = look(&state.options, &state.env, &cwd);
    let wanted = given.method.unwrap_or(AccessKind::ApiKey);
    let access = access::model_access(&state.env, &settings, given);
    let access = access.map_err(|it| auth_required(&it.to_string()))?;
    match access.kind == wanted || state.options.needs_no_access() {
        true => Ok(()),
        false => Err(auth_required(wanted.missing())),
    }
}

/// Credentials changed: from its next request on, each session reaches its model with the new ones.
pub fn refit_all(state: &mut State) {
    let ids: Vec<SessionId> = state.sessions.keys().cloned().collect();
    for id in &ids {
        refit(state, id);
    }
}

/// Looks again how a session's model is reached. Without access each of its requests fails, with what is missing.
pub fn refit(state: &mut State, id: &SessionId) {
    let Some(live) = state.sessions.get(id) else { return };
    let (_, settings) = look(&state.options, &state.env, &live.desk.cwd);
    let model = live.session.record().model.clone();
    let generator = state.models.generator(&state.options, &state.env, &settings, &model);
    let generator = generator.unwrap_or_else(|it| Arc::new(Refused { why: it.message().to_owned() }));
    if let Some(live) = state.sessions.get_mut(id) {
        live.desk = Arc::new(Desk { generator, ..Desk::clone(&live.desk) });
    }
}

/// A session as its log has it, in its place and with the trust and settings of now; `None` without a usable log.
pub fn record_again(state: &State, desk: &Desk) -> Option<Record> {
    let entries = state.world.store.read(&desk.session).unwrap_or_default();
    let mut record = Record::replay(&entries)?;
    let (trust, settings) = look(&state.options, &state.env, &desk.cwd);
    let ground = Ground { cwd: desk.cwd.clone(), roots: desk.roots.clone(), trust, settings };
    bring_up_to_date(&mut record, &entries, &state.options, &ground);
    Some(record)
}

/// What a log says of places, rights and the default model was true when it was written.
fn bring_up_to_date(record: &mut Record, entries: &[Entry], options: &Options, ground: &Ground) {
    record.cwd.clone_from(&ground.cwd);
    record.roots.clone_from(&ground.roots);
    if allow_mode(record.mode, &ground.trust, &ground.settings).is_err() {
        record.mode = Mode::Default;
    }
    // A choice made in the session holds; else the model is what is configured today.
    let chosen = entries.iter().any(|it| matches!(it.fact, Fact::Model { .. }));
    if !chosen || options.needs_no_access() {
        record.model = model_of(options, &ground.settings);
    }
}

fn survey(state: &State, place: &Place) -> Result<Ground, ErrorObjectOwned> {
    let mut roots = Vec::new();
    for path in std::iter::once(&place.cwd).chain(&place.additional) {
        let real = disk::real_path(path).ok().filter(|it| disk::metadata(it).is_ok_and(|it| it.is_dir));
        let real =
            real.ok_or_else(|| error::invalid_params(&format!("{path} is not a folder; choose one that exists")))?;
        if !roots.contains(&real) {
            roots.push(real);
        }
    }
    let (trust, settings) = look(&state.options, &state.env, &place.cwd);
    Ok(Ground { cwd: place.cwd.clone(), roots, trust, settings })
}

/// Trust first, then the settings that it lets in.
pub fn look(options: &Options, env: &Env, cwd: &AbsPath) -> (Trust, Settings) {
    let reader = Reader::disk();
    let (trust, mut warnings) = trust::trust(env, cwd, reader);
    let layers = files::read(env, cwd, trust.is_trusted(), reader);
    let model = options.model.as_deref().map(Flag::model);
    let mode = options.approval_mode.map(|it| Flag::approval_mode(it.as_str()));
    let sandbox = options.sandbox.as_deref().map(Flag::sandbox);
    let flags: Vec<Flag> = model.into_iter().chain(mode).chain(sandbox).collect();
    let (settings, more) = Settings::merge(Sources { layers: &layers, env, flags: &flags });
    warnings.extend(more);
    for it in warnings {
        tracing::warn!("{it}");
    }
    (trust, settings)
}

/// Ids and names: what is known, and the one in use. A script or the demo answers as itself only.
fn models_on_offer(options: &Options, current: &str) -> Vec<(String, String)> {
    let owned = |(id, name): &(&str, &str)| ((*id).to_owned(), (*name).to_owned());
    let mut res: Vec<(String, String)> = match options.needs_no_access() {
        true => Vec::new(),
        false => KNOWN.iter().map(owned).collect(),
    };
    if !res.iter().any(|(id, _)| id == current) {
        res.insert(0, (current.to_owned(), current.to_owned()));
    }
    res
}

fn model_of(options: &Options, settings: &Settings) -> String {
    match (&options.script, &settings.model_name) {
        (_, Some(model)) => model.clone(),
        (Some(_), None) => "script".to_owned(),
        (None, None) => DEFAULT_MODEL.to_owned(),
    }
}

fn allowed_modes(trust: &Trust, settings: &Settings) -> Vec<Mode> {
    Mode::OFFERED.iter().copied().filter(|it| allow_mode(*it, trust, settings).is_ok()).collect()
}

/// What does everything without asking needs a folder that is trusted.
fn allow_mode(mode: Mode, trust: &Trust, settings: &Settings) -> Result<(), ErrorObjectOwned> {
    if mode == Mode::Yolo && settings.disable_yolo {
        return Err(error::invalid_params(
            "the settings forbid the mode yolo (security.disableYoloMode); choose another mode",
        ));
    }
    if mode > Mode::Default && !trust.is_trusted() {
        let why = format!(
            "the mode {} needs a trusted folder; set CASTOR_TRUST_WORKSPACE=true or list the folder in \
             ~/.castor/trustedFolders.json",
            mode.as_str()
        );
        return Err(error::untrusted(&why));
    }
    Ok(())
}

fn session_rules(state: &State, ground: &Ground) -> policies::Found {
    let found = policies::rules(&state.env, &ground.cwd, ground.trust.is_trusted());
    for it in &found.warnings {
        tracing::warn!("{it}");
    }
    found
}

/// The spec of the engine and the desk of the leaves.
fn furnish(
    state: &mut State,
    id: &SessionId,
    ground: &Ground,
    model: &str,
) -> Result<(Arc<Spec>, Arc<Desk>), ErrorObjectOwned> {
    let Ground { cwd, roots, settings, .. } = ground;
    let generator = state.models.generator(&state.options, &state.env, settings, model)?;
    let client = state.client.clone().unwrap_or_default();
    let interactive = !client.headless;
    let around = Surroundings { cwd: cwd.clone(), roots: roots.clone(), platform: std::env::consts::OS, interactive };
    let found = session_rules(state, ground);
    let spec = Spec {
        toolbox: Toolbox::new(
            state.world.tools.iter().map(|(spec, _)| spec.clone()).collect(),
            found.rules,
            interactive,
        )
        .saving(found.saves),
        instructions: Instructions::new(&around),
        max_samples: u32::try_from(settings.max_session_turns).unwrap_or(MAX_SAMPLES),
        models: models_on_offer(&state.options, model),
        modes: allowed_modes(&ground.trust, settings),
    };
    let desk = Desk {
        session: id.clone(),
        cwd: cwd.clone(),
        roots: roots.clone(),
        scratch: state.world.store.scratch(id),
        generator,
        tools: Arc::new(settings.tools.clone()),
        mcp: Arc::default(),
        children: Children {
            env: Arc::new(state.env.child_env(&settings.children.allowed, &settings.children.blocked)),
            confined: confinement::of(state, id, ground.trust.is_trusted(), roots, settings).map(Arc::new),
        },
        truncate_at: settings.truncate_threshold,
        editor: Editor { reads: client.reads_files, writes: client.writes_files },
        screens: screens(&client, settings.tools.shell_in_client),
        fault: Fault::read(&state.env),
    };
    Ok((Arc::new(spec), Arc::new(desk)))
}

/// The client's terminals need both its offer and the user's wish: they have the client's environment, not ours.
fn screens(client: &Client, wanted: bool) -> Screens {
    match (client.has_terminals && wanted, client.draws_terminals) {
        (true, _) => Screens::Client { reads_lines: client.reads_command_lines() },
        (false, true) => Screens::Drawn,
        (false, false) => Screens::Text,
    }
}
