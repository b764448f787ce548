//! Effects that only look: they begin before a shared store has what led to them.
//!
//! A turn waits for the store where it shows or changes something, and not at each step. What a prompt leads to waits for the
//! prompt; of sub-agents nothing goes ahead, since what they spend counts above them.

use castor_base::{
    event::EventKind,
    ids::EffectId,
    log::{Entry, Fact},
    tool::{PolicyClass, ToolCall},
};
use castor_engine::step::{Act, Effect};

/// Effects of a session that go ahead of one round. A store that does not answer holds up the others.
const MAX_AHEAD: usize = 8;

/// How many effects of a session have overtaken the acts that wait, and whether more may.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarlyEffects {
    n_ahead: usize,
    /// One of them comes before all effects that follow.
    is_over: bool,
}

impl EarlyEffects {
    /// Tells whether an effect may overtake what waits.
    pub fn may_begin(self) -> bool {
        !self.is_over && self.n_ahead < MAX_AHEAD
    }

    /// Which of new acts begin at once, and which wait. `is_open`: what is being stored may be overtaken. `class_of`: the
    /// class of a call's tool.
    pub fn split(
        &mut self,
        acts: Vec<Act>,
        is_open: bool,
        class_of: impl Fn(&ToolCall) -> PolicyClass,
    ) -> (Vec<(EffectId, Effect)>, Vec<Act>) {
        let (mut begin, mut wait) = (Vec::new(), Vec::with_capacity(acts.len()));
        for it in acts {
            match it {
                Act::Do(id, effect) if is_open && self.may_begin() && only_looks(&effect, &class_of) => {
                    self.n_ahead += 1;
                    begin.push((id, effect));
                }
                other => {
                    self.is_over |= !lets_pass(&other);
                    wait.push(other);
                }
            }
        }
        (begin, wait)
    }
}

fn only_looks(effect: &Effect, class_of: impl Fn(&ToolCall) -> PolicyClass) -> bool {
    match effect {
        Effect::Generate { .. } | Effect::Resolve { .. } | Effect::DiscoverMemory { .. } | Effect::OpenCheckpoints => {
            true
        }
        Effect::Run { call, durable: false, host: None, .. } => class_of(call) == PolicyClass::Look,
        _ => false,
    }
}

/// Tells whether an effect behind it is the same before it.
fn lets_pass(act: &Act) -> bool {
    match act {
        Act::Log(Entry { fact, .. }) => match fact {
            // Spans of its effects are below the turn's.
            Fact::Event { event } => !matches!(event.kind, EventKind::AgentStart {} | EventKind::AgentEnd { .. }),
            Fact::Attempt { .. } | Fact::Decision { .. } | Fact::Worked { .. } | Fact::Discovered { .. } => true,
            _ => false,
        },
        Act::Do(_, Effect::SetTimer { .. } | Effect::Abort { .. }) => true,
        Act::Do(..) | Act::BeginStream { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Act, EarlyEffects, Effect, MAX_AHEAD};
    use castor_base::{ids::EffectId, log::Entry, tool::PolicyClass};

    fn fact(value: &serde_json::Value) -> Act {
        let mut entry = json!({ "at": 1 });
        entry.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        Act::Log(serde_json::from_value::<Entry>(entry).unwrap())
    }

    fn event(kind: &str) -> Act {
        let event = json!({
            "id": "e", "streamId": "s", "timestamp": "2026-01-01T00:00:00.000Z", "agentId": "castor", "type": kind,
            "reason": "completed", "status": "INTERNAL", "message": "m", "fatal": false,
        });
        fact(&json!({"fact": "event", "event": event}))
    }

    fn resolve(id: u64) -> Act {
        let call = serde_json::from_value(json!({"id": "c", "name": "read_file", "args": {}})).unwrap();
        Act::Do(EffectId(id), Effect::Resolve { call, sandbox_grant: Box::default() })
    }

    fn run(id: u64, durable: bool) -> Act {
        let call = serde_json::from_value(json!({"id": "c", "name": "read_file", "args": {}})).unwrap();
        let (places, base, seen, hold, host) = ([].into(), None, Vec::new(), None, None);
        let sandbox_grant = Box::default();
        Act::Do(EffectId(id), Effect::Run { call, places, base, seen, durable, sandbox_grant, hold, host })
    }

    /// Which effects begin at once.
    fn begun(early: &mut EarlyEffects, acts: Vec<Act>, is_open: bool, class: PolicyClass) -> Vec<u64> {
        let n = acts.len();
        let (begin, wait) = early.split(acts, is_open, |_| class);
        assert_eq!(begin.len() + wait.len(), n, "none is lost");
        begin.into_iter().map(|it| it.0.0).collect()
    }

    #[test]
    fn effects_that_look_begin_early_up_to_the_first_of_another_kind() {
        let look = PolicyClass::Look;
        let worked = || fact(&json!({"fact": "worked", "ms": 1}));
        let cases = [
            ("looks", vec![worked(), resolve(1), event("error"), run(2, false)], look, vec![1, 2]),
            ("a change", vec![resolve(1), run(2, true), resolve(3)], look, vec![1]),
            ("a tool of another class", vec![run(1, false), resolve(2)], PolicyClass::Fetch, vec![]),
            ("a prompt begins", vec![resolve(1), event("agent_start"), resolve(2)], look, vec![1]),
            ("a turn ends", vec![event("agent_end"), resolve(1)], look, vec![]),
            ("another model", vec![fact(&json!({"fact": "model", "model": "m"})), resolve(1)], look, vec![]),
            ("an abort", vec![Act::Do(EffectId(1), Effect::Abort { effect: EffectId(0) }), resolve(2)], look, vec![2]),
        ];
        for (what, acts, class, expected) in cases {
            let mut early = EarlyEffects::default();
            assert_eq!(begun(&mut early, acts, true, class), expected, "{what}");
        }
    }

    #[test]
    fn early_effects_have_a_limit_and_an_order() {
        let mut early = EarlyEffects::default();
        let many = (0..20).map(resolve).collect();
        assert_eq!(begun(&mut early, many, true, PolicyClass::Look).len(), MAX_AHEAD);
        assert!(begun(&mut early, vec![resolve(30)], true, PolicyClass::Look).is_empty());
        assert!(!early.may_begin());
        let mut early = EarlyEffects::default();
        assert!(
            begun(&mut early, vec![resolve(1)], false, PolicyClass::Look).is_empty(),
            "behind what must not be overtaken"
        );
        assert!(begun(&mut early, vec![resolve(2)], true, PolicyClass::Look).is_empty(), "in its order");
    }
}
