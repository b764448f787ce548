//! Specifications of the simulated sessions.

use std::collections::BTreeSet;

use serde_json::json;

use crate::testing::own_tools;
use crate::{
    context::{Instructions, SessionEnvironment},
    hooks::Hooks,
    policy::{RuleSet, Tier},
    record::SessionOrigin,
    routing::{
        Chain,
        fallback_policies::{FallbackAction, FallbackPolicies, FallbackPolicy},
    },
    scheduler::Toolbox,
    session_tools,
    step::Input,
    turn::{Choices, MemorySources, Modes, OfferedModels, OfferedProvider, Spec, TurnBounds},
};
use castor_base::{
    check::CheckFinding,
    credential::{Credential, CredentialOwner},
    held_program::{HeldProgram, HoldReason, ProgramName},
    hook::{Hook, HookEvent, HookSource},
    ids::{EffectId, SessionId},
    limits::Limits,
    log::{Decision, Mode, Principal},
    model::{Details, Failure, FailureKind},
    path::AbsPath,
    sandbox::Denial,
    tool::{ToolKind, ToolSpec, ToolTraits},
    unseen_files::UnseenFiles,
};

pub(super) fn origin() -> SessionOrigin {
    let cwd = AbsPath::new("/w").unwrap();
    let (mode, model) = (Mode::Default, "sim".to_owned());
    SessionOrigin {
        session: SessionId::from("sim"),
        cwd: cwd.clone(),
        roots: vec![cwd],
        mode,
        model,
        principal: Principal::Root,
        child_of: None,
        thread: None,
        user: None,
    }
}

/// Every third session has two at each point.
fn hooks(seed: u64) -> Hooks {
    let hook = |event: HookEvent, command: &str| Hook {
        event,
        matcher: None,
        sequential: seed.is_multiple_of(2),
        observes: false,
        command: format!("{command} {}", event.as_str()),
        name: None,
        description: None,
        timeout_ms: 1,
        env: Vec::new(),
        source: HookSource::User,
        scripts: Vec::new(),
        sandbox: Default::default(),
    };
    let n = if seed.is_multiple_of(3) { 2 } else { 0 };
    let rows = HookEvent::ALL.iter().flat_map(|it| ["one", "two"].into_iter().take(n).map(|name| hook(*it, name)));
    Hooks::new(rows.collect(), BTreeSet::new())
}

pub(super) fn spec(seed: u64) -> Spec {
    let tool = |name: &'static str, kind| {
        let (name, description) = (name.into(), "".into());
        ToolSpec {
            title: Clone::clone(&name),
            name,
            description,
            kind,
            parameters: json!({}).into(),
            traits: ToolTraits::default(),
        }
    };
    let tools = vec![tool("read", ToolKind::Read), tool("write", ToolKind::Edit)];
    let interactive = !seed.is_multiple_of(4);
    let compress_above = if seed % 3 == 1 { 0.000_1 } else { 0.5 };
    let checker = "[[safety_checker]]\ntoolName = '*'\nchecker = { type = 'external', name = '/check' }\n";
    let (checkers, _) = RuleSet::parse(&checker.repeat(2), Tier::User, "f").unwrap();
    let rules = if seed.is_multiple_of(3) {
        RuleSet::shipped(own_tools()).with(checkers)
    } else {
        RuleSet::shipped(own_tools())
    };
    let cwd = AbsPath::new("/w").unwrap();
    let around = SessionEnvironment {
        cwd: cwd.clone(),
        roots: vec![cwd],
        platform: "linux",
        made_on: "2026-01-31".to_owned(),
        interactive,
        tree: None,
    };
    let action = if seed.is_multiple_of(5) { FallbackAction::Silent } else { FallbackAction::Ask };
    let policies = FallbackPolicies { otherwise: FallbackPolicy::always(action), ..FallbackPolicies::default() };
    Spec {
        toolbox: Toolbox::new(session_tools::own_tools(tools), rules, interactive)
            .with_hooks(hooks(seed))
            .with_checkpoints(!seed.is_multiple_of(2))
            .with_renewals(!seed.is_multiple_of(3), seed.is_multiple_of(2)),
        instructions: Instructions::new(&around),
        scratch: AbsPath::new("/scratch").unwrap(),
        memory_sources: MemorySources { at_start: true, just_in_time: true },
        bounds: TurnBounds {
            limits: Limits::parse("requests=6").unwrap(),
            asks_next_speaker: seed.is_multiple_of(7),
            compress_above,
            ..TurnBounds::default()
        },
        chain: Chain { models: vec!["b".to_owned(), "c".to_owned()], for_all: true, policies },
        windows: Default::default(),
        prices: Default::default(),
        aliases: Default::default(),
        helpers: Default::default(),
        choices: Choices {
            models: OfferedModels {
                listed: vec![("a".to_owned(), "A".to_owned())],
                providers: vec![OfferedProvider { name: "p".to_owned(), max_tools: Some(3) }],
            },
            modes: Modes { offered: Mode::OFFERED.to_vec(), allowed: Mode::OFFERED.to_vec() },
            ..Choices::default()
        },
        role: None,
    }
}

/// A safety checker's, by a die with four sides.
pub(super) fn finding(die: u64) -> Result<CheckFinding, String> {
    let reason = "it said so".to_owned();
    match die {
        0 => Err("it crashed".to_owned()),
        1 => Ok(CheckFinding { decision: Decision::Deny, reason }),
        2 => Ok(CheckFinding { decision: Decision::Ask, reason }),
        _ => Ok(CheckFinding::allow()),
    }
}

pub(super) fn refused_key() -> Failure {
    let credential = Some(Credential::new(CredentialOwner::Model, "p", None));
    let details = Box::new(Details { credential, ..Details::default() });
    Failure { details, ..Failure::new(FailureKind::Auth, "no key") }
}

pub(super) fn held_program(n: u64) -> HeldProgram {
    let denial = if n.is_multiple_of(3) { Denial::Other } else { Denial::Network };
    let why = match n.is_multiple_of(2) {
        true => HoldReason::Lacks(denial),
        false => HoldReason::Unseen(AbsPath::new("/w").into_iter().collect()),
    };
    HeldProgram { program: ProgramName::Hook(n.to_string()), why }
}

pub(super) fn unseen_shown(effect: EffectId, roots: Vec<AbsPath>, die: u64) -> Input {
    let bytes = roots.into_iter().map(|it| (it, [0; 32])).collect();
    Input::UnseenShown { effect, shown: (die > 0).then_some(UnseenFiles { diffs: Vec::new(), bytes }) }
}
