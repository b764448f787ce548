//! What goes to stderr is for pipes as well as for people.

use serde_json::json;

use crate::client::{Client, Sandbox};

#[test]
fn warnings_have_no_colours_in_a_pipe() -> Result<(), String> {
    let mut sandbox = Sandbox::new();
    sandbox.args = ["acp", "--model", "demo"].map(Into::into).into();
    sandbox.write("ws/.env", "CASTOR_HOME=/elsewhere\n");
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({}))?;
    client.new_session(&sandbox.workspace())?;
    let (_, said) = (client.end()?, client.transcript());
    assert!(said.contains("warning: ") && !said.contains('\u{1b}'), "{said}");
    assert!(!said.contains("WARN") && !said.contains("castor_"), "no module's path: {said}");
    Ok(())
}
