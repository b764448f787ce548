//! Plugins in a turn: a row at each point, and the session's reaction.

use std::sync::Arc;

use super::tests::{fresh_session, play, spec};
use crate::{
    base::{
        content::Part,
        event::{EndReason, EventKind},
        model::Chunk,
        tool::ToolOutput,
    },
    engine::hooks::{
        Hooks,
        plugins::{self, PluginMoment, PluginPoint, Plugins, Reply},
    },
};

fn told(moment: PluginMoment<'_>) -> Option<Reply> {
    let text = |it: &str| Chunk::Text { text: it.to_owned(), signature: None };
    Some(match moment {
        PluginMoment::Turn => Reply::Parts(vec![Part::text("a plugin")]),
        PluginMoment::Message(_) => Reply::Parts(vec![Part::text("what a plugin heard")]),
        PluginMoment::Request(_) => Reply::Chunks(vec![text("before")]),
        PluginMoment::Answer(_) => Reply::Chunks(vec![text("after")]),
        PluginMoment::Failure(_) => Reply::Chunks(vec![text("in place of an error")]),
        PluginMoment::Call(_) => Reply::Output(ToolOutput::text("not run")),
        PluginMoment::Result(_, it) if it.error.is_some() => Reply::Output(ToolOutput::text("all is well")),
        PluginMoment::Result(..) => Reply::Output(ToolOutput::text("another result")),
        PluginMoment::Event(EventKind::AgentEnd { .. }) => {
            Reply::Event(EventKind::AgentEnd { reason: EndReason::MaxTime, data: None })
        }
        PluginMoment::Event(_) => return None,
    })
}

fn silent(_: PluginMoment<'_>) -> Option<Reply> {
    None
}

/// What a session with a plugin at that point says to a turn, in the words of the scripts.
fn plugged(point: &str, steps: &[&str]) -> String {
    // The second one is asked, since the first says nothing; the third is not.
    // Of most events it says nothing, so the third is asked.
    let third: plugins::PluginRun = if point == "on_event" { silent } else { |_| panic!("asked") };
    let rows: [(&str, plugins::PluginRun); 3] = [(point, silent), (point, told), (point, third)];
    let mut session = fresh_session("");
    let mut spec = spec("");
    let hooks = Hooks::default().with_plugins(Plugins::new(&rows).unwrap());
    spec.toolbox = spec.toolbox.with_hooks(hooks);
    session.replace_spec(Arc::new(spec));
    let mut res = String::new();
    for (n, step) in steps.iter().enumerate() {
        play(&mut session, step, n as u64, &mut res);
    }
    res
}

#[test]
fn plugins_come_in_at_every_point() {
    let go: &[&str] = &["prompt 1 go"];
    let answered: &[&str] = &["prompt 1 go", "text 1 hi", "finish 1 STOP", "ended 1"];
    let failed: &[&str] = &["prompt 1 go", "failed 1 401"];
    let called: &[&str] = &["prompt 1 go", "call 1 read_file {}", "ended 1", "resolved 2 {}", "ran 3 out"];
    let broken: &[&str] = &["prompt 1 go", "call 1 read_file {}", "ended 1", "resolved 2 {}", "broke 3 no"];
    let wrong: &[&str] = &["prompt 1 go", "call 1 read_file {}", "ended 1", "invalid 2 no"];
    for (point, steps, expected) in [
        ("on_user_message", go, "User: what a plugin heard"),
        ("before_run", go, "Agent: a plugin"),
        ("before_agent", go, "Agent: a plugin"),
        ("before_model", go, "Agent: before"),
        ("after_model", answered, "Agent: after"),
        ("on_model_error", failed, "Agent: in place of an error"),
        ("before_tool", called, "done: not run"),
        ("after_tool", called, "done: another result"),
        ("on_tool_error", broken, "done: all is well"),
        ("after_agent", answered, "Agent: a plugin"),
        ("on_event", answered, "end MaxTime"),
        ("after_run", answered, "end Completed"),
    ] {
        let text = plugged(point, steps);
        assert!(text.contains(expected), "{point}:\n{text}");
        let asked = ["before_run", "before_agent", "before_model"].contains(&point);
        assert!(!asked || !text.contains("Generate"), "{point}: a model was asked\n{text}");
    }
    assert!(plugged("on_tool_error", called).contains("done: out"), "nothing failed");
    assert!(plugged("on_tool_error", wrong).contains("invalid_tool_params"), "it never ran");
}

#[test]
fn unknown_plugin_points_are_refused_by_name() {
    let why = Plugins::new(&[("before_lunch", told)]).unwrap_err().to_string();
    assert!(why.contains("before_lunch") && why.contains("on_model_error"), "{why}");
    for (name, point) in PluginPoint::ALL {
        assert_eq!(PluginPoint::parse(name), Ok(*point));
    }
}
