//! The site of a safety checker: where it runs, and what holds it there.

use super::{confinement::for_program, session_resources::SessionResources};
use castor_base::{
    check::{Check, CheckerAction},
    held_program::{HeldProgram, HoldReason, ProgramName},
};
use castor_hands::process::{outside::OutsideGate, reach::ProgramLine};
use castor_tools::checkers::CheckSite;

/// A checker that the user wants outside, and that is held all the same.
pub struct HeldChecker {
    pub held: HeldProgram,
    /// For the user, the first time.
    pub notice: Option<String>,
}

/// As commands are held, with what its policy says of its sandbox.
pub async fn checker_site(resources: &SessionResources, check: &Check) -> (CheckSite, Option<HeldChecker>) {
    let children = &resources.children;
    let (cwd, roots, env) = (resources.cwd.clone(), resources.roots.clone(), children.env.to_vec());
    let commands = children.confined.as_deref();
    let CheckerAction::External { program, args, sandbox } = &check.checker.action else {
        return (CheckSite { cwd, roots, env, confined: commands.cloned() }, None);
    };
    let line = ProgramLine { program, args, own_env: &[], folder: &cwd, env: &env };
    let confined = commands.map(|it| for_program(it, sandbox, Some(&line)));
    let gate = commands.filter(|_| sandbox.is_off).and_then(|it| OutsideGate::of_line(it, &line));
    let Some(gate) = gate else {
        return (CheckSite { cwd, roots, env, confined }, None);
    };
    let Some(why) = gate.refusal().await else {
        return (CheckSite { cwd, roots, env, confined: None }, None);
    };
    let program = ProgramName::Checker(check.checker.name.to_string());
    let is_new = children.hooks.rights.note_told(&program);
    let notice = is_new.then(|| format!("{program} runs in the sandbox, though its settings say outside: {why}."));
    let held = HeldProgram { program, why: HoldReason::Unseen(gate.roots) };
    (CheckSite { cwd, roots, env, confined }, Some(HeldChecker { held, notice }))
}
