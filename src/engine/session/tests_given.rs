//! What the simulated sessions are built from.

use std::collections::BTreeSet;

use serde_json::json;

use crate::{
    base::{
        hook::{Hook, HookEvent},
        ids::SessionId,
        limits::Limits,
        log::{Mode, Principal},
        path::AbsPath,
        tool::{ToolKind, ToolSpec},
    },
    engine::{
        context::{Instructions, Surroundings},
        hooks::Hooks,
        policy::{Rules, Tier},
        record::Origin,
        routing::{
            Chain,
            policies::{Action, Policies, Policy},
        },
        scheduler::Toolbox,
        turn::{Bounds, Modes, OnOffer, Remembers, Spec},
    },
};

pub(super) fn origin() -> Origin {
    let cwd = AbsPath::new("/w").unwrap();
    let (mode, model) = (Mode::Default, "sim".to_owned());
    Origin {
        session: SessionId::from("sim"),
        cwd: cwd.clone(),
        roots: vec![cwd],
        mode,
        model,
        principal: Principal::Root,
    }
}

/// Every third session has two at each point.
fn hooks(seed: u64) -> Hooks {
    let hook = |event: HookEvent, command: &str| Hook {
        event,
        matcher: None,
        sequential: seed.is_multiple_of(2),
        command: format!("{command} {}", event.as_str()),
        name: None,
        description: None,
        timeout_ms: 1,
        env: Vec::new(),
        of_project: false,
        scripts: Vec::new(),
    };
    let n = if seed.is_multiple_of(3) { 2 } else { 0 };
    let rows = HookEvent::ALL.iter().flat_map(|it| ["one", "two"].into_iter().take(n).map(|name| hook(*it, name)));
    Hooks::new(rows.collect(), BTreeSet::new())
}

pub(super) fn spec(seed: u64) -> Spec {
    let tool = |name: &'static str, kind| {
        let (name, description) = (name.into(), "".into());
        ToolSpec { title: Clone::clone(&name), name, description, kind, parameters: json!({}).into() }
    };
    let tools = vec![tool("read", ToolKind::Read), tool("write", ToolKind::Edit)];
    let interactive = !seed.is_multiple_of(4);
    let compress_above = if seed % 3 == 1 { 0.000_1 } else { 0.5 };
    let checker = "[[safety_checker]]\ntoolName = '*'\nchecker = { type = 'external', name = '/check' }\n";
    let (checkers, _) = Rules::parse(&checker.repeat(2), Tier::User, "f").unwrap();
    let rules = if seed.is_multiple_of(3) { Rules::shipped().with(checkers) } else { Rules::shipped() };
    let cwd = AbsPath::new("/w").unwrap();
    let around = Surroundings { cwd: cwd.clone(), roots: vec![cwd], platform: "linux", interactive };
    let action = if seed.is_multiple_of(5) { Action::Silent } else { Action::Ask };
    let policies = Policies { otherwise: Policy::always(action), ..Policies::default() };
    Spec {
        toolbox: Toolbox::new(tools, rules, interactive).hooking(hooks(seed)).undoing(!seed.is_multiple_of(2)),
        instructions: Instructions::new(&around),
        scratch: AbsPath::new("/scratch").unwrap(),
        remembers: Remembers { at_start: true, just_in_time: true },
        bounds: Bounds {
            limits: Limits::parse("requests=6").unwrap(),
            asks_next_speaker: seed.is_multiple_of(7),
            compress_above,
            ..Bounds::default()
        },
        chain: Chain { models: vec!["b".to_owned(), "c".to_owned()], for_all: true, policies },
        models: OnOffer { listed: vec![("a".to_owned(), "A".to_owned())], providers: vec!["p".to_owned()] },
        windows: Default::default(),
        prices: Default::default(),
        aliases: Default::default(),
        helpers: Default::default(),
        modes: Modes { offered: Mode::OFFERED.to_vec(), allowed: Mode::OFFERED.to_vec() },
    }
}
