//! Checkpoints around tool calls: taken before a call that may write, so that undo works.

use super::{BatchStatus, Scheduler};
use crate::{
    policy,
    record::Step,
    scheduler::{
        call::{Call, CallState},
        denials,
        toolbox::{CallContext, Toolbox},
    },
    step::{CallHold, Effect},
};
use castor_base::{
    checkpoint::{CheckpointResult, Scope},
    event::ToolProgress,
    hook::HookRun,
    ids::{CallId, CheckpointId, EffectId},
    log::Fact,
    path::AbsPath,
    sandbox::SandboxGrant,
    tool::{Access, BaseHash, ToolKind},
};

/// Most files that are mounted read-only for one call, as no checkpoint holds them.
const MAX_READ_ONLY: usize = 256;

impl Call {
    /// The scope of its changes; `None`: nothing that could be restored, or nobody wants that.
    fn scope(&self, cx: &CallContext<'_, '_>) -> Option<Scope> {
        // What a host changes is its own, as what an editor changes.
        if cx.tools.is_of_host(&self.call.name) {
            return None;
        }
        if !cx.tools.checkpoints || self.sandbox_grant.read_only || !self.display.kind.has_side_effects() {
            return None;
        }
        match cx.tools.foreign_tool(&self.call.name) {
            Some(it) if it.trusted && it.annotations.get("readOnlyHint") == Some(&true.into()) => None,
            None if self.display.kind == ToolKind::Edit => {
                // castor's own folder of plans counts as one of the session's, and nobody needs it back.
                let is_held = |it: &AbsPath| cx.step.record.roots.iter().any(|root| it.is_within(root));
                let written = self.places.iter().filter(|it| it.access == Access::Write).map(|it| &it.real);
                let files: Vec<AbsPath> = written.filter(|it| is_held(it)).cloned().collect();
                (!files.is_empty()).then_some(Scope::Files(files))
            }
            _ => Some(Scope::Roots),
        }
    }

    pub fn run(&mut self, cx: &mut CallContext<'_, '_>) {
        let CallState::Allowed { base } = std::mem::replace(&mut self.state, CallState::Done) else { return };
        self.checkpoint_then_run(cx, base);
    }

    /// Runs it, once what it may change is held.
    pub(super) fn checkpoint_then_run(&mut self, cx: &mut CallContext<'_, '_>, base: Option<BaseHash>) {
        match self.scope(cx) {
            Some(scope) => {
                let id = CheckpointId::from(cx.step.fresh_id("k"));
                let effect = cx.step.start_effect(Effect::Checkpoint { id: id.clone(), scope });
                self.state = CallState::Checkpointing { effect, id, base };
            }
            None => self.start(cx, base, None),
        }
    }

    /// The sandbox grant of longer approvals.
    pub(super) fn standing_rights(&self, cx: &CallContext<'_, '_>) -> SandboxGrant {
        policy::sandbox_grant(&self.call, &cx.step.record.active_grants(&cx.tools.folder_grants))
    }

    fn start(&mut self, cx: &mut CallContext<'_, '_>, base: Option<BaseHash>, hold: Option<CallHold>) {
        let display = std::mem::take(&mut self.display_dirty).then(|| self.display.clone());
        self.send_progress(cx.step, ToolProgress::Started { display });
        let host = self.host_run(cx);
        // The host knows what it did, and gets its calls in order.
        let durable = host.is_none() && self.display.kind.has_side_effects();
        let leave = self.standing_rights(cx).union(&self.sandbox_grant);
        self.has_run = true;
        let (call, places, seen) = (self.call.clone(), self.places.clone(), self.seen_files(cx.step));
        let effect = cx.step.start_effect(Effect::Run {
            call,
            places,
            base,
            seen,
            durable,
            sandbox_grant: Box::new(leave),
            hold,
            host,
        });
        self.state = CallState::Running { effect };
    }

    /// Nothing holds what it may change, and it was allowed because something would: that is for the user to say.
    fn ask_without_undo(&mut self, cx: &mut CallContext<'_, '_>, why: &str) {
        (self.auto_allowed, self.needs_undo) = (false, false);
        let why = format!("What this call changes could not be undone: {why}.");
        if !cx.tools.interactive {
            return self.end(cx.step, denials::unasked(&why));
        }
        self.ask_reason = Some(why);
        self.ask(cx, None);
    }

    /// It itself, where what hooks around it change is to be undone with it.
    pub(super) fn checkpoint_owner(&self, tools: &Toolbox) -> Option<CallId> {
        (tools.checkpoints && self.display.kind.has_side_effects()).then(|| self.call.id.clone())
    }
}

/// Has a hook run, around `call`.
pub(super) fn run_hook(step: &mut Step<'_>, call: Option<&CallId>, run: HookRun) -> EffectId {
    // What the user's own program does meanwhile is the user's.
    let hold = call.filter(|_| !run.hook.is_of_client()).map(|it| (CheckpointId::from(step.fresh_id("k")), it.clone()));
    step.start_hook(HookRun { checkpoint: hold, ..run })
}

impl Scheduler {
    /// Notes that the files of a call are held now, or cannot be.
    pub(super) fn on_checkpoint(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        effect: EffectId,
        result: Result<CheckpointResult, String>,
    ) -> BatchStatus {
        let is_it = |it: &CallState| matches!(it, CallState::Checkpointing { effect: own, .. } if *own == effect);
        let Some((_, call)) = self.find(is_it) else { return BatchStatus::Open };
        let CallState::Checkpointing { id, base, .. } = std::mem::replace(&mut call.state, CallState::Done) else {
            return BatchStatus::Open;
        };
        match result {
            Ok(held) if call.needs_undo && held.not_kept.len() > MAX_READ_ONLY => {
                let n = held.not_kept.len();
                call.ask_without_undo(cx, &format!("{n} files are too large or too many to be held"));
            }
            Ok(held) => {
                let not_kept = || held.not_kept.iter().filter_map(AbsPath::new).collect();
                let not_kept = (call.auto_allowed && held.not_kept.len() <= MAX_READ_ONLY).then(not_kept);
                cx.step.log(Fact::Checkpoint { id: id.clone(), call: Some(call.call.id.clone()), changes: None });
                let is_looked_at = std::mem::take(&mut call.is_looked_at);
                call.start(cx, base, Some(CallHold { id, read_only: not_kept, is_looked_at }));
            }
            Err(why) if call.needs_undo => call.ask_without_undo(cx, &why),
            // It was allowed for other reasons; that it cannot be undone is said once.
            Err(_) => call.start(cx, base, None),
        }
        self.advance(cx)
    }
}
