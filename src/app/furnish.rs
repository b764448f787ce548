//! What a session works with, made from its place, settings and trust: the engine's spec, the leaves' desk, its servers.

use std::sync::Arc;

use jsonrpsee::types::ErrorObjectOwned;

use crate::{
    app::{
        confinement,
        desk::{Children, Closed, Desk, Files, Intake, Screens},
        fault::Fault,
        hooks::{self, HookDesk},
        mcp::servers::Wish,
        options::Options,
        policies, reach,
        sessions::{Site, allow_mode, catalog, models_on_offer},
        settings::{McpSettings, Settings},
        state::State,
    },
    base::{
        ids::SessionId,
        log::Mode,
        mcp::merged,
        path::AbsPath,
        sandbox::{Confinement, Leave},
        trust::Trust,
    },
    engine::{
        context::{Instructions, PLANS, Surroundings},
        policy,
        scheduler::{Planning, Toolbox},
        step::Standing,
        turn::{Bounds, Modes, OnOffer, Remembers, Spec},
    },
    wire::acp::{initialize::Client, session::Place},
    world::{
        checkpoints::{Checkpoints, Limits},
        disk,
        redaction::Secrets,
        workspace::{ground::Ground, memory::Wanted},
    },
};

/// The spec of the engine and the desk of the leaves.
pub struct Furnished {
    pub spec: Arc<Spec>,
    pub desk: Arc<Desk>,
    /// Why the model cannot be asked.
    pub trouble: Option<ErrorObjectOwned>,
}

pub fn furnish(state: &mut State, id: &SessionId, site: &Site, model: &str) -> Furnished {
    let Site { cwd, roots, ground, settings } = site;
    state.models.connect_as(&settings.reach.connection);
    let (generator, reached) = reach::reach(state, id, &ground.env, settings, model);
    let catalog = catalog(state);
    let client = state.client.clone().unwrap_or_default();
    let interactive = !client.headless;
    let around = Surroundings { cwd: cwd.clone(), roots: roots.clone(), platform: std::env::consts::OS, interactive };
    let screens = screens(&client, settings.tools.shell_in_client);
    let spec = Spec {
        toolbox: toolbox(state, id, site, interactive, &screens),
        instructions: Instructions::new(&around),
        scratch: state.world.store.scratch(id),
        remembers: Remembers { at_start: true, just_in_time: settings.memory.just_in_time },
        bounds: bounds(settings),
        chain: reached.chain,
        models: OnOffer {
            listed: models_on_offer(&state.options, settings, &catalog, model),
            providers: providers_of(&state.options, settings),
        },
        windows: catalog.windows(settings),
        prices: settings.reach.prices.clone(),
        aliases: settings.reach.aliases.clone(),
        helpers: reached.helpers,
        modes: Modes { offered: offered_modes(settings), allowed: allowed_modes(&ground.trust, settings) },
    };
    let confined = confinement::of(state, id, confinement::is_harmless(ground), roots, settings).map(Arc::new);
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
            hooks: hook_desk(state, id, site),
            confined,
            held: Arc::new(confinement::protected_paths(&state.env, state.world.store.home(), settings)),
            closed: Closed::default(),
        },
        intake: Intake {
            truncate_at: settings.caps.truncate_at(),
            memory: Arc::new(memory_of(site)),
            secrets: secrets(state, id, roots),
        },
        files: Files {
            reads: client.reads_files,
            writes: client.writes_files,
            checkpoints: settings.children.checkpoints.then(|| checkpoints(state, id, roots)),
        },
        screens,
        fault: Fault::read(&state.env),
    };
    Furnished { spec: Arc::new(spec), desk: Arc::new(desk), trouble: reached.trouble }
}

fn toolbox(state: &State, id: &SessionId, site: &Site, interactive: bool, screens: &Screens) -> Toolbox {
    let Site { cwd, roots, ground, settings } = site;
    let found = session_rules(ground);
    let folder = confinement::folder(roots, cwd);
    let kept = confinement::kept(state.world.store.home(), folder, confinement::is_harmless(ground), settings);
    let hold = confinement::hold(ground, settings);
    let (held, facts) = match screens {
        Screens::Client { .. } => {
            let facts = policy::Sandbox {
                trusted: ground.trust.is_trusted(),
                plain_repository: confinement::has_plain_repository(ground),
                ..policy::Sandbox::default()
            };
            ("off; commands run in your editor's terminals".to_owned(), facts)
        }
        _ => (hold.in_words(), confinement::facts(hold, ground, settings)),
    };
    let builtins = state.world.tools.iter().map(|(spec, _)| spec.clone()).collect();
    Toolbox::new(builtins, found.rules, interactive)
        .saving(found.saves)
        .keeping(kept)
        .held(held, facts)
        .hooking(hooks::gather(ground))
        .planning(planning(state, id, ground, settings))
        .undoing(settings.children.checkpoints)
}

/// Those of the session as it is: what is held for a call that runs is known to them alone.
fn checkpoints(state: &State, id: &SessionId, roots: &[AbsPath]) -> Arc<Checkpoints> {
    let live = state.sessions.get(id).filter(|it| it.desk.roots == *roots);
    let own = live.and_then(|it| it.desk.files.checkpoints.clone());
    own.unwrap_or_else(|| Arc::new(Checkpoints::new(state.world.store.home(), id, roots, Limits::default())))
}

fn providers_of(options: &Options, settings: &Settings) -> Vec<String> {
    match options.script {
        Some(_) => Vec::new(),
        None => settings.reach.providers.iter().map(|it| it.name.clone()).collect(),
    }
}

fn bounds(settings: &Settings) -> Bounds {
    Bounds {
        limits: settings.limits,
        watches_loops: settings.failing.watches_loops,
        asks_next_speaker: settings.failing.asks_next_speaker,
        patience: settings.failing.patience,
        compress_above: settings.caps.compress_above,
        distill: settings.caps.distill,
    }
}

/// The client's servers start anywhere; those of the settings only where the folder cannot turn them against the user.
pub fn wish(site: &Site, place: &Place, desk: &Desk) -> Wish {
    let McpSettings { servers, off, start_budget_ms, .. } = &site.settings.mcp;
    let off = off.iter().map(|(name, why)| (name.clone(), Standing::Off(why.clone())));
    let (of_settings, mut off): (_, Vec<_>) = match site.ground.trust.is_trusted() {
        true => (servers.iter().map(|it| site.ground.bound_server(it)).collect(), off.collect()),
        // Also the user's own: what they start may be found in the folder, as `npx` does.
        false => (Vec::new(), servers.iter().map(|it| (it.name.clone(), Standing::Untrusted)).chain(off).collect()),
    };
    let mut servers = merged(place.mcp_servers.clone(), of_settings);
    // The user's word holds for what the client brings, too.
    servers.retain(|it| match site.settings.mcp.why_not(&it.name) {
        Some(why) if off.iter().all(|(name, _)| *name != it.name) => {
            off.push((it.name.clone(), Standing::Off(why.to_owned())));
            false
        }
        why => why.is_none(),
    });
    off.retain(|(name, _)| !servers.iter().any(|it| it.name == *name));
    // Most servers are of no use without the network.
    let confined = desk.children.confined.as_deref().map(|it| {
        let leave = Leave { serves: true, ..it.leave.clone() };
        Arc::new(Confinement { network: true, leave, ..it.clone() })
    });
    let (cwd, env) = (desk.cwd.clone(), Arc::clone(&desk.children.env));
    Wish { servers, off, cwd, env, confined, budget_ms: *start_budget_ms }
}

fn memory_of(Site { roots, ground, settings, .. }: &Site) -> Wanted {
    let (env, names, trust) = (ground.env.clone(), settings.memory.names.clone(), ground.trust.clone());
    Wanted { env, names, roots: roots.clone(), trust }
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
fn planning(state: &State, id: &SessionId, ground: &Ground, settings: &Settings) -> Planning {
    let scratch = state.world.store.scratch(id);
    let folder = disk::real_path(&scratch).unwrap_or(scratch).join(PLANS);
    let modes = allowed_modes(&ground.trust, settings).into_iter().filter(|it| *it != Mode::Plan).collect();
    Planning { folder: Some(folder), modes }
}

fn session_rules(ground: &Ground) -> policies::Found {
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
    if let Some(it) = state.sessions.get(id).filter(|it| it.desk.roots == roots) {
        return it.desk.intake.secrets.clone();
    }
    let home = state.env.get("HOME").and_then(AbsPath::new);
    Arc::new(Secrets::new(roots.to_vec(), home, (state.now.unix_ms / 1000).cast_signed()))
}

fn hook_desk(state: &State, id: &SessionId, site: &Site) -> HookDesk {
    let Site { cwd, roots, ground, settings } = site;
    let home = || state.env.get("HOME").and_then(AbsPath::new).unwrap_or_else(|| state.world.store.home().clone());
    let (cwd, confined) = match ground.trust.is_trusted() {
        true => (cwd.clone(), None),
        false => (home(), confinement::of(state, id, false, roots, settings).map(Arc::new)),
    };
    let transcript = state.world.store.log_file(id).map(|it| it.to_string()).unwrap_or_default();
    HookDesk { groups: state.world.groups.clone(), cwd, confined, transcript }
}

/// The client's terminals need both its offer and the user's wish: they have the client's environment, not ours.
fn screens(client: &Client, wanted: bool) -> Screens {
    match (client.has_terminals && wanted, client.draws_terminals) {
        (true, _) => Screens::Client { reads_lines: client.reads_command_lines() },
        (false, true) => Screens::Drawn,
        (false, false) => Screens::Text,
    }
}
