//! Session builder: makes the engine's spec, the session's resources and its MCP servers from settings and trust.

use std::sync::Arc;

use jsonrpsee::types::ErrorObjectOwned;

use crate::{
    model::{
        catalog::Catalog, model_factory::ModelContext, providers, reachability, refused_parameters::RefusedParameters,
    },
    panics::FaultPoint,
    session::{
        agents,
        confinement::{self, SandboxPlace},
        hooks,
        host::SessionHost,
        mcp_access::McpAccess,
        mcp_servers::ServerRequest,
        modes::{allowed_modes, modes_on_offer, offered_modes},
        place::SessionPlace,
        policies, prompts,
        session_resources::{
            ChildProcesses, Files, HookResources, ModelInput, SessionClosed, SessionResources, TerminalMode,
        },
        web_search,
    },
    settings::{Flag, McpSettings, Provider, Settings, options::Options},
};
use castor_base::{
    agent::FolderAgents,
    clock::Now,
    ids::SessionId,
    log::Mode,
    mcp::{McpServerConfig, ServerRules, merge_servers},
    model::DEMO,
    path::AbsPath,
    sandbox::{Confinement, SandboxGrant},
    saved_memory::SavedMemory,
};
use castor_engine::{
    context::{Instructions, PLANS, SessionEnvironment},
    policy,
    routing::aliases::Aliases,
    scheduler::Toolbox,
    session_tools::{self, plan::Planning},
    step::ServerStatus,
    turn::{Choices, MemorySources, Modes, OfferedModels, OfferedProvider, Spec, TurnBounds},
};
use castor_hands::{
    checkpoints::{Checkpoints, Limits},
    disk,
    provenance::Provenance,
};
use castor_models::providers::Generator;
use castor_store::sessions::SessionStore;
use castor_tools::{
    builtin::{GOOGLE_WEB_SEARCH, ToolSettings, folder_tree::folder_tree},
    redaction::Secrets,
    workspace::{
        castor_home,
        folder_config::FolderConfig,
        memory::{self, MemorySearch},
    },
};
use castor_wire::acp::{initialize::Client, session::SessionFolders};

/// The spec of the engine and the resources of the leaves.
pub struct SessionParts {
    pub spec: Arc<Spec>,
    pub resources: Arc<SessionResources>,
    /// Why the model cannot be asked.
    pub trouble: Option<ErrorObjectOwned>,
}

pub fn build_session(mut host: SessionHost<'_>, id: &SessionId, place: &SessionPlace, model: &str) -> SessionParts {
    let SessionPlace { cwd, roots, ground, settings, .. } = place;
    host.models.set_connection(&settings.models.connection);
    let context = ModelContext { options: host.options, env: &ground.env, settings };
    let (generator, reached) = reachability::reach_models(host.models, context, id, model);
    let catalog = Catalog::for_options(host.options, host.store.home());
    let terminal_mode = terminal_mode(&host.client, settings.tools.shell_in_client);
    let spec = Spec {
        toolbox: toolbox(&mut host, id, place, (&terminal_mode, model)),
        instructions: Instructions::new(&environment(&host, id, place)),
        scratch: host.store.scratch_dir(id),
        memory_sources: MemorySources { at_start: true, just_in_time: settings.memory.just_in_time },
        bounds: bounds(settings),
        chain: reached.chain,
        windows: catalog.windows(settings),
        prices: Arc::new(settings.models.prices.clone()),
        aliases: Arc::new(aliases(&host, settings, &*generator)),
        helpers: reached.helpers,
        choices: choices(host.options, place, catalog.models_on_offer(host.options, settings, model)),
        role: None,
    };
    let confined = confine_commands(&host, id, place);
    let search = search_model(host.options, settings, model);
    let search = search.map(|it| web_search::by(generator.clone(), &it, settings.models.aliases.models().traits(&it)));
    let resources = SessionResources {
        session: id.clone(),
        cwd: cwd.clone(),
        roots: roots.clone(),
        scratch: host.store.scratch_dir(id),
        generator,
        tools: Arc::new(ToolSettings {
            saved_memory: saved_memory(place),
            web: settings.tools.web.over(host.models.http(), search),
            ..settings.tools.clone()
        }),
        mcp: McpAccess::default(),
        children: ChildProcesses {
            env: Arc::new(host.env.child_env(&settings.children.allowed, &settings.children.blocked)),
            hooks: hook_resources(&host, id, place, confined.clone()),
            confined,
            protected_paths: Arc::new(confinement::protected_paths(host.env, host.store.home(), settings)),
            closed: SessionClosed::default(),
        },
        model_input: ModelInput {
            truncate_at: settings.caps.truncate_at(),
            memory: Arc::new(memory_of(place)),
            secrets: secrets(&host, roots),
        },
        files: files(&host, id, place),
        terminal_mode,
        fault: FaultPoint::read(host.env),
    };
    SessionParts { spec: Arc::new(spec), resources: Arc::new(resources), trouble: reached.trouble }
}

fn confine_commands(host: &SessionHost<'_>, id: &SessionId, place: &SessionPlace) -> Option<Arc<Confinement>> {
    let SessionPlace { roots, ground, settings, .. } = place;
    let sandbox = SandboxPlace::of_session(host, id);
    let confined = confinement::for_session(&sandbox, confinement::is_harmless(ground), roots, settings);
    confined.map(|it| Arc::new(with_extensions(it, host.store.home(), ground)))
}

/// With what models refused lately at the addresses where they are asked.
fn aliases(host: &SessionHost<'_>, settings: &Settings, generator: &dyn Generator) -> Aliases {
    let refused = RefusedParameters::read(host.store.home(), host.now_ms);
    settings.models.aliases.clone().with_refusals(refused.by_model(|it| generator.address(it)))
}

/// The model that searches: Gemini's own can. One is asked that is quick, by the door of the session's model.
fn search_model(options: &Options, settings: &Settings, model: &str) -> Option<String> {
    let aliases = &settings.models.aliases;
    let model = aliases.model_of(model);
    let is_gemini = model != DEMO && !options.needs_no_access() && providers::provider_of(settings, &model).is_none();
    let wanted = if aliases.knows(SEARCH_ALIAS) { SEARCH_ALIAS } else { "flash" };
    is_gemini.then(|| aliases.model_of(wanted)).filter(|it| providers::provider_of(settings, it).is_none())
}

/// Gemini CLI's name in `modelConfigs`.
const SEARCH_ALIAS: &str = "web-search";

fn environment(host: &SessionHost<'_>, id: &SessionId, place: &SessionPlace) -> SessionEnvironment {
    let SessionPlace { cwd, roots, ground, settings, .. } = place;
    // Names are texts of others, and the system prompt is no place for those of strangers. Where the host runs all calls,
    // what the model is to know of the folder is the host's to say.
    let is_told = settings.tools.tells_tree && ground.trust.is_trusted() && !place.host.runs_all();
    SessionEnvironment {
        cwd: cwd.clone(),
        roots: roots.clone(),
        platform: std::env::consts::OS,
        made_on: day_made(id, host.now_ms),
        interactive: !host.client.headless,
        tree: is_told.then(|| folder_tree(roots, &settings.tools)).flatten(),
    }
}

/// As the session's id has it: also after a load it is the same day. Ids from elsewhere may not say it.
fn day_made(id: &SessionId, now_ms: u64) -> String {
    let made = uuid::Uuid::parse_str(id.as_str()).ok().and_then(|it| it.get_timestamp());
    let unix_ms = made.map_or(now_ms, |it| it.to_unix().0.saturating_mul(1_000));
    Now { unix_ms, seed: 0 }.date()
}

fn toolbox(
    host: &mut SessionHost<'_>,
    id: &SessionId,
    place: &SessionPlace,
    (terminal_mode, model): (&TerminalMode, &str),
) -> Toolbox {
    let SessionPlace { cwd, roots, ground, settings, .. } = place;
    let found = session_rules(ground, &host.options.flags);
    let folder = confinement::grant_folder(roots, cwd);
    let grants = confinement::saved_grants(host.store.home(), folder, confinement::is_harmless(ground), settings);
    let sandbox_state = confinement::sandbox_state(ground, settings);
    let (sandbox, facts) = match terminal_mode {
        TerminalMode::Client { .. } => {
            let facts = policy::SandboxFacts {
                trusted: ground.trust.is_trusted(),
                plain_repository: confinement::has_plain_repository(ground),
                ..policy::SandboxFacts::default()
            };
            ("off; commands run in your editor's terminals".to_owned(), facts)
        }
        _ => (sandbox_state.in_words(), confinement::policy_sandbox(sandbox_state, ground, settings)),
    };
    host.builtins.retain(|it| it.name != GOOGLE_WEB_SEARCH || search_model(host.options, settings, model).is_some());
    let tools = session_tools::own_tools(std::mem::take(&mut host.builtins));
    Toolbox::new(tools, found.rules, !host.client.headless)
        .with_renewals(host.client.renews_credentials(), host.client.opens_links)
        .with_saving(found.saves)
        .with_grants(grants)
        .with_sandbox(sandbox, facts)
        .with_hooks(hooks::load_hooks(ground).with_interceptors(&host.client.host.interceptors))
        .with_client_policy(host.client.host.policy)
        .with_planning(planning(host.store, id, ground, settings))
        .with_checkpoints(takes_checkpoints(place))
        .for_host(place.host.clone())
}

/// Where the host runs all calls, castor changes nothing and looks at nothing.
fn takes_checkpoints(place: &SessionPlace) -> bool {
    place.settings.children.checkpoints && !place.host.runs_all()
}

fn files(host: &SessionHost<'_>, id: &SessionId, place: &SessionPlace) -> Files {
    let roots = &place.roots;
    Files {
        reads: host.client.reads_files,
        writes: host.client.writes_files,
        checkpoints: takes_checkpoints(place).then(|| checkpoints(host, id, roots)),
        provenance: Arc::new(Provenance::new(host.store.home(), roots)),
        above: Vec::new(),
    }
}

/// Those of the session as it is: what is held for a call that runs is known to them alone.
fn checkpoints(host: &SessionHost<'_>, id: &SessionId, roots: &[AbsPath]) -> Arc<Checkpoints> {
    let live = host.live.filter(|it| it.roots == *roots);
    let own = live.and_then(|it| it.files.checkpoints.clone());
    own.unwrap_or_else(|| Arc::new(Checkpoints::new(host.store.home(), id, roots, Limits::default())))
}

fn choices(options: &Options, place: &SessionPlace, listed: Vec<(String, String)>) -> Choices {
    let SessionPlace { ground, settings, .. } = place;
    Choices {
        models: OfferedModels { listed, providers: providers_of(options, settings) },
        modes: Modes { offered: offered_modes(settings), allowed: allowed_modes(&ground.trust, settings) },
        agents: session_agents(place),
        prompts: prompts::folder_prompts(ground),
    }
}

fn providers_of(options: &Options, settings: &Settings) -> Vec<OfferedProvider> {
    let offered = |it: &Provider| OfferedProvider { name: it.name.clone(), max_tools: it.max_tools() };
    match options.script {
        Some(_) => Vec::new(),
        None => settings.models.providers.iter().map(offered).collect(),
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
        sampling: settings.mcp.sampling,
    }
}

/// Why no server is started.
const HOST_RUNS_ALL: &str = "your client runs all calls";

/// The client's servers start anywhere; those of the settings only where the folder cannot turn them against the user.
pub fn server_request(place: &SessionPlace, folders: &SessionFolders, resources: &SessionResources) -> ServerRequest {
    let McpSettings { servers, off, rules, .. } = &place.settings.mcp;
    let off = off.iter().map(|(name, why)| (name.clone(), ServerStatus::Off(why.clone())));
    if place.host.runs_all() {
        let by_host = |it: &McpServerConfig| (it.name.clone(), ServerStatus::Off(HOST_RUNS_ALL.to_owned()));
        let off = servers.iter().map(by_host).chain(off).collect();
        return ServerRequest { off, ..agent_server_request(&[], *rules, resources) };
    }
    let (of_settings, mut off): (_, Vec<_>) = match place.ground.trust.is_trusted() {
        true => (servers.iter().map(|it| place.ground.bind_server(it)).collect(), off.collect()),
        // Also the user's own: what they start may be found in the folder, as `npx` does.
        false => (Vec::new(), servers.iter().map(|it| (it.name.clone(), ServerStatus::Untrusted)).chain(off).collect()),
    };
    let of_client = folders.mcp_servers.iter().map(|it| place.ground.expand_home(it)).collect();
    let mut servers = merge_servers(of_client, of_settings);
    // The user's word holds for what the client brings, too.
    servers.retain(|it| match place.settings.mcp.exclusion_reason(&it.name) {
        Some(why) if off.iter().all(|(name, _)| *name != it.name) => {
            off.push((it.name.clone(), ServerStatus::Off(why.to_owned())));
            false
        }
        why => why.is_none(),
    });
    off.retain(|(name, _)| !servers.iter().any(|it| it.name == *name));
    ServerRequest { off, ..agent_server_request(&servers, *rules, resources) }
}

/// Servers of an agent's own, which were bound to the folder with its definition.
pub fn agent_server_request(
    servers: &[McpServerConfig],
    rules: ServerRules,
    resources: &SessionResources,
) -> ServerRequest {
    // Most servers are of no use without the network.
    let confined = resources.children.confined.as_deref().map(|it| {
        let grant = SandboxGrant { is_mcp_server: true, ..it.grant.clone() };
        Arc::new(Confinement { network: true, grant, ..it.clone() })
    });
    let (cwd, env) = (resources.cwd.clone(), Arc::clone(&resources.children.env));
    let roots = resources.roots.clone().into();
    let rights = resources.children.hooks.rights.clone();
    ServerRequest { servers: servers.to_vec(), off: Vec::new(), cwd, roots, env, confined, rights, rules }
}

fn memory_of(place: &SessionPlace) -> MemorySearch {
    let SessionPlace { roots, ground, settings, .. } = place;
    let (env, names, trust) = (ground.env.clone(), settings.memory.names.clone(), ground.trust.clone());
    let (saved, extensions) = (saved_memory(place), ground.extensions.context());
    MemorySearch { saved, extensions, env, names, roots: roots.clone(), trust }
}

/// A project is its repository, wherever in it the session works.
fn saved_memory(SessionPlace { roots, ground, .. }: &SessionPlace) -> Option<SavedMemory> {
    Some(SavedMemory::new(&castor_home(&ground.env)?, &memory::project(roots.first()?)))
}

/// Where plans go, as policy compares it: where it really is.
fn planning(store: &SessionStore, id: &SessionId, ground: &FolderConfig, settings: &Settings) -> Planning {
    let scratch = store.scratch_dir(id);
    let folder = disk::real_path(&scratch).unwrap_or(scratch).join(PLANS);
    let modes = modes_on_offer(ground, settings).into_iter().filter(|it| *it != Mode::Plan).collect();
    Planning { folder: Some(folder), modes }
}

/// The sub-agents that the session may start.
fn session_agents(SessionPlace { ground, settings, client_agent, .. }: &SessionPlace) -> FolderAgents {
    let (agents, warnings) = agents::session_agents(ground, settings, client_agent.as_ref());
    for it in &warnings {
        tracing::warn!("{it}");
    }
    agents
}

fn session_rules(ground: &FolderConfig, flags: &[Flag]) -> policies::FolderRules {
    let found = policies::rules(ground, flags);
    for it in &found.warnings {
        tracing::warn!("{it}");
    }
    found
}

/// A session that goes on with the same folders knows what it knew of them.
fn secrets(host: &SessionHost<'_>, roots: &[AbsPath]) -> Arc<Secrets> {
    if let Some(it) = host.live.filter(|it| it.roots == roots) {
        return it.model_input.secrets.clone();
    }
    let home = host.env.get("HOME").and_then(AbsPath::new);
    Arc::new(Secrets::new(roots.to_vec(), home, (host.now_ms / 1000).cast_signed()))
}

/// The user's own hooks have the rights of commands: what they run may be what an agent wrote. Where nobody trusts the
/// folder they neither start in it, where a name might lead to a file of it, nor write.
fn hook_resources(
    host: &SessionHost<'_>,
    id: &SessionId,
    place: &SessionPlace,
    commands: Option<Arc<Confinement>>,
) -> HookResources {
    let SessionPlace { cwd, roots, ground, settings, .. } = place;
    let home = || host.env.get("HOME").and_then(AbsPath::new).unwrap_or_else(|| host.store.home().clone());
    let project = cwd.clone();
    let (cwd, confined) = match ground.trust.is_trusted() {
        true => (cwd.clone(), commands),
        false => {
            let sandbox = SandboxPlace::of_session(host, id);
            (home(), confinement::for_session(&sandbox, false, roots, settings).map(Arc::new))
        }
    };
    let transcript = host.store.log_file(id).map(|it| it.to_string()).unwrap_or_default();
    let rights = host.live.map(|it| it.children.hooks.rights.clone()).unwrap_or_default();
    HookResources { groups: host.groups.clone(), project, cwd, confined, transcript, rights }
}

/// Commands read, and never write, what the user's extensions brought into castor's own folder.
fn with_extensions(mut it: Confinement, castor: &AbsPath, ground: &FolderConfig) -> Confinement {
    let real = |it: &AbsPath| disk::real_path(it).unwrap_or_else(|_| it.clone());
    let castor = real(castor);
    let folders = ground.extensions.folders().map(|it| real(&it));
    it.read_only_paths.extend(folders.filter(|it| it.is_within(&castor) && *it != castor));
    it
}

/// The client's terminals need both its offer and the user's wish: they have the client's environment, not ours.
fn terminal_mode(client: &Client, wanted: bool) -> TerminalMode {
    match (client.has_terminals && wanted, client.draws_terminals) {
        (true, _) => TerminalMode::Client { reads_lines: client.reads_command_lines() },
        (false, true) => TerminalMode::Drawn,
        (false, false) => TerminalMode::Text,
    }
}
