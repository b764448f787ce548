//! Plans by id (`plan_update`, `plan_removed`), which are unstable, for clients that know them.

use agent_client_protocol_schema::v1::{Plan, PlanRemoved, PlanUpdate, PlanUpdateContent, SessionUpdate};

use castor_base::shown_text::show_line;

/// A session has one list of todos.
pub(super) const TODOS: &str = "todos";

/// `by_id`: the client knows plans by their ids. An empty list is no plan any more.
pub(super) fn plan_update(mut plan: Plan, by_id: bool) -> SessionUpdate {
    for it in &mut plan.entries {
        it.content = show_line(&it.content).into_owned();
    }
    match by_id {
        false => SessionUpdate::Plan(plan),
        true if plan.entries.is_empty() => SessionUpdate::PlanRemoved(PlanRemoved::new(TODOS)),
        true => SessionUpdate::PlanUpdate(PlanUpdate::new(PlanUpdateContent::items(TODOS, plan.entries))),
    }
}
