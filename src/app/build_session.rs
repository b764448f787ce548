//! What a session works with, made from its place, settings and trust: the engine's spec, the leaves' desk, its servers.

use std::sync::Arc;

use jsonrpsee::types::ErrorObjectOwned;

use crate::{
    app::{
        confinement,
        hooks::{self, HookResources},
        mcp::servers::ServerRequest,
        options::Options,
        panics::FaultPoint,
        policies, reachability,
        session_resources::{ChildProcesses, Files, ModelInput, SessionClosed, SessionResources, TerminalMode},
        sessions::{SessionPlace, allow_mode, catalog, models_on_offer},
        settings::{McpSettings, Settings},
        state::State,
    },
    base::{
        ids::SessionId,
        log::Mode,
        mcp::merge_servers,
        path::AbsPath,
        sandbox::{Confinement, SandboxGrant},
        trust::Trust,
    },
    engine::{
        context::{Instructions, PLANS, SessionEnvironment},
        policy,
        scheduler::{self, Planning, Toolbox},
        step::ServerStatus,
        turn::{MemorySources, Modes, OfferedModels, Spec, TurnBounds},
    },
    wire::acp::{initialize::Client, session::SessionFolders},
    world::{
        checkpoints::{Checkpoints, Limits},
        disk,
        redaction::Secrets,
        workspace::{folder_config::FolderConfig, memory::MemorySearch},
    },
};

/// The spec of the engine and the desk of the leaves.
pub struct SessionParts {
    pub spec: Arc<Spec>,
    pub resources: Arc<SessionResources>,
    /// Why the model cannot be asked.
    pub trouble: Option<ErrorObjectOwned>,
}

pub fn build_session(state: &mut State, id: &SessionId, site: &SessionPlace, model: &str) -> SessionParts {
    let SessionPlace { cwd, roots, ground, settings } = site;
    state.models.set_connection(&settings.models.connection);
    let (generator, reached) = reachability::reach_models(state, id, &ground.env, settings, model);
    let catalog = catalog(state);
    let client = state.client.clone().unwrap_or_default();
    let interactive = !client.headless;
    let around =
        SessionEnvironment { cwd: cwd.clone(), roots: roots.clone(), platform: std::env::consts::OS, interactive };
    let screens = terminal_mode(&client, settings.tools.shell_in_client);
    let spec = Spec {
        toolbox: toolbox(state, id, site, interactive, &screens),
        instructions: Instructions::new(&around),
        scratch: state.tasks.store.scratch_dir(id),
        memory_sources: MemorySources { at_start: true, just_in_time: settings.memory.just_in_time },
        bounds: bounds(settings),
        chain: reached.chain,
        models: OfferedModels {
            listed: models_on_offer(&state.options, settings, &catalog, model),
            providers: providers_of(&state.options, settings),
        },
        windows: catalog.windows(settings),
        prices: settings.models.prices.clone(),
        aliases: settings.models.aliases.clone(),
        helpers: reached.helpers,
        modes: Modes { offered: offered_modes(settings), allowed: allowed_modes(&ground.trust, settings) },
    };
    let confined = confinement::for_session(state, id, confinement::is_harmless(ground), roots, settings).map(Arc::new);
    let desk = SessionResources {
        session: id.clone(),
        cwd: cwd.clone(),
        roots: roots.clone(),
        scratch: state.tasks.store.scratch_dir(id),
        generator,
        tools: Arc::new(settings.tools.clone()),
        mcp: Arc::default(),
        children: ChildProcesses {
            env: Arc::new(state.env.child_env(&settings.children.allowed, &settings.children.blocked)),
            hooks: hook_resources(state, id, site),
            confined,
            protected_paths: Arc::new(confinement::protected_paths(&state.env, state.tasks.store.home(), settings)),
            closed: SessionClosed::default(),
        },
        model_input: ModelInput {
            truncate_at: settings.caps.truncate_at(),
            memory: Arc::new(memory_of(site)),
            secrets: secrets(state, id, roots),
        },
        files: Files {
            reads: client.reads_files,
            writes: client.writes_files,
            checkpoints: settings.children.checkpoints.then(|| checkpoints(state, id, roots)),
        },
        terminal_mode: screens,
        fault: FaultPoint::read(&state.env),
    };
    SessionParts { spec: Arc::new(spec), resources: Arc::new(desk), trouble: reached.trouble }
}

fn toolbox(state: &State, id: &SessionId, site: &SessionPlace, interactive: bool, screens: &TerminalMode) -> Toolbox {
    let SessionPlace { cwd, roots, ground, settings } = site;
    let found = session_rules(ground);
    let folder = confinement::grant_folder(roots, cwd);
    let kept = confinement::saved_grants(state.tasks.store.home(), folder, confinement::is_harmless(ground), settings);
    let hold = confinement::sandbox_state(ground, settings);
    let (held, facts) = match screens {
        TerminalMode::Client { .. } => {
            let facts = policy::SandboxFacts {
                trusted: ground.trust.is_trusted(),
                plain_repository: confinement::has_plain_repository(ground),
                ..policy::SandboxFacts::default()
            };
            ("off; commands run in your editor's terminals".to_owned(), facts)
        }
        _ => (hold.in_words(), confinement::policy_sandbox(hold, ground, settings)),
    };
    let tools = scheduler::own_tools(state.tasks.tools.iter().map(|(spec, _)| spec.clone()));
    Toolbox::new(tools, found.rules, interactive)
        .with_saving(found.saves)
        .with_grants(kept)
        .with_sandbox(held, facts)
        .with_hooks(hooks::load_hooks(ground))
        .with_planning(planning(state, id, ground, settings))
        .with_checkpoints(settings.children.checkpoints)
}

/// Those of the session as it is: what is held for a call that runs is known to them alone.
fn checkpoints(state: &State, id: &SessionId, roots: &[AbsPath]) -> Arc<Checkpoints> {
    let live = state.sessions.get(id).filter(|it| it.resources.roots == *roots);
    let own = live.and_then(|it| it.resources.files.checkpoints.clone());
    own.unwrap_or_else(|| Arc::new(Checkpoints::new(state.tasks.store.home(), id, roots, Limits::default())))
}

fn providers_of(options: &Options, settings: &Settings) -> Vec<String> {
    match options.script {
        Some(_) => Vec::new(),
        None => settings.models.providers.iter().map(|it| it.name.clone()).collect(),
    }
}

fn bounds(settings: &Settings) -> TurnBounds {
    TurnBounds {
        limits: settings.limits,
        watches_loops: settings.on_failure.watches_loops,
        asks_next_speaker: settings.on_failure.asks_next_speaker,
        patience: settings.on_failure.patience,
        compress_above: settings.caps.compress_above,
        distill: settings.caps.distill,
    }
}

/// The client's servers start anywhere; those of the settings only where the folder cannot turn them against the user.
pub fn server_request(site: &SessionPlace, place: &SessionFolders, desk: &SessionResources) -> ServerRequest {
    let McpSettings { servers, off, start_budget_ms, .. } = &site.settings.mcp;
    let off = off.iter().map(|(name, why)| (name.clone(), ServerStatus::Off(why.clone())));
    let (of_settings, mut off): (_, Vec<_>) = match site.ground.trust.is_trusted() {
        true => (servers.iter().map(|it| site.ground.bind_server(it)).collect(), off.collect()),
        // Also the user's own: what they start may be found in the folder, as `npx` does.
        false => (Vec::new(), servers.iter().map(|it| (it.name.clone(), ServerStatus::Untrusted)).chain(off).collect()),
    };
    let mut servers = merge_servers(place.mcp_servers.clone(), of_settings);
    // The user's word holds for what the client brings, too.
    servers.retain(|it| match site.settings.mcp.exclusion_reason(&it.name) {
        Some(why) if off.iter().all(|(name, _)| *name != it.name) => {
            off.push((it.name.clone(), ServerStatus::Off(why.to_owned())));
            false
        }
        why => why.is_none(),
    });
    off.retain(|(name, _)| !servers.iter().any(|it| it.name == *name));
    // Most servers are of no use without the network.
    let confined = desk.children.confined.as_deref().map(|it| {
        let leave = SandboxGrant { is_mcp_server: true, ..it.grant.clone() };
        Arc::new(Confinement { network: true, grant: leave, ..it.clone() })
    });
    let (cwd, env) = (desk.cwd.clone(), Arc::clone(&desk.children.env));
    ServerRequest { servers, off, cwd, env, confined, budget_ms: *start_budget_ms }
}

fn memory_of(SessionPlace { roots, ground, settings, .. }: &SessionPlace) -> MemorySearch {
    let (env, names, trust) = (ground.env.clone(), settings.memory.names.clone(), ground.trust.clone());
    MemorySearch { env, names, roots: roots.clone(), trust }
}

fn offered_modes(settings: &Settings) -> Vec<Mode> {
    Mode::OFFERED
        .iter()
        .copied()
        .filter(|it| !matches!(it, Mode::Auto | Mode::Yolo) || !settings.disable_yolo)
        .collect()
}

fn allowed_modes(trust: &Trust, settings: &Settings) -> Vec<Mode> {
    Mode::OFFERED.iter().copied().filter(|it| allow_mode(*it, trust, settings).is_ok()).collect()
}

/// Where plans go, as policy compares it: where it really is.
fn planning(state: &State, id: &SessionId, ground: &FolderConfig, settings: &Settings) -> Planning {
    let scratch = state.tasks.store.scratch_dir(id);
    let folder = disk::real_path(&scratch).unwrap_or(scratch).join(PLANS);
    let modes = allowed_modes(&ground.trust, settings).into_iter().filter(|it| *it != Mode::Plan).collect();
    Planning { folder: Some(folder), modes }
}

fn session_rules(ground: &FolderConfig) -> policies::FolderRules {
    let found = policies::rules(ground);
    for it in &found.warnings {
        tracing::warn!("{it}");
    }
    found
}

/// The user's own hooks have the user's rights where the folder is trusted. Elsewhere it could turn them against the
/// user, also if nothing in it looks like it: there they neither start in it, where a name might lead to a file of it,
/// nor write.
/// A session that goes on with the same folders knows what it knew of them.
fn secrets(state: &State, id: &SessionId, roots: &[AbsPath]) -> Arc<Secrets> {
    if let Some(it) = state.sessions.get(id).filter(|it| it.resources.roots == roots) {
        return it.resources.model_input.secrets.clone();
    }
    let home = state.env.get("HOME").and_then(AbsPath::new);
    Arc::new(Secrets::new(roots.to_vec(), home, (state.now.unix_ms / 1000).cast_signed()))
}

fn hook_resources(state: &State, id: &SessionId, site: &SessionPlace) -> HookResources {
    let SessionPlace { cwd, roots, ground, settings } = site;
    let home = || state.env.get("HOME").and_then(AbsPath::new).unwrap_or_else(|| state.tasks.store.home().clone());
    let (cwd, confined) = match ground.trust.is_trusted() {
        true => (cwd.clone(), None),
        false => (home(), confinement::for_session(state, id, false, roots, settings).map(Arc::new)),
    };
    let transcript = state.tasks.store.log_file(id).map(|it| it.to_string()).unwrap_or_default();
    HookResources { groups: state.tasks.groups.clone(), cwd, confined, transcript }
}

/// The client's terminals need both its offer and the user's wish: they have the client's environment, not ours.
fn terminal_mode(client: &Client, wanted: bool) -> TerminalMode {
    match (client.has_terminals && wanted, client.draws_terminals) {
        (true, _) => TerminalMode::Client { reads_lines: client.reads_command_lines() },
        (false, true) => TerminalMode::Drawn,
        (false, false) => TerminalMode::Text,
    }
}
