//! `castor mcp add`, `remove`, `enable` and `disable`: servers in the settings files.

use std::io::{self, Write};

use crate::cli::{
    exits::{EXIT_FAILED, EXIT_INPUT},
    terminal_text::escape_line,
};
use castor_agent::{
    session::place::load_ground,
    settings::{
        options::Options,
        server_edit::{EditFailure, EditPlace, ServerEdit, ServerScope},
    },
};
use castor_tools::workspace::{NO_HOME, castor_home, settings_edit};

pub fn edit(it: &ServerEdit, place: EditPlace<'_>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    match it.apply(place) {
        Ok(done) => {
            writeln!(out, "{}.", escape_line(&done))?;
            if let (ServerEdit::Add(_), ServerScope::Project) = (it, it.scope()) {
                writeln!(out, "It starts once you trust this folder with it; the next session asks.")?;
            }
            Ok(0)
        }
        Err(EditFailure::Refused(why)) => writeln!(err, "castor: {}", escape_line(&why)).map(|()| EXIT_INPUT),
        Err(EditFailure::Failed(why)) => writeln!(err, "castor: {}", escape_line(&why)).map(|()| EXIT_FAILED),
    }
}

pub fn switch(
    name: &str,
    is_on: bool,
    (env, cwd): EditPlace<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let Some(home) = castor_home(env) else {
        return writeln!(err, "castor: {NO_HOME}").map(|()| EXIT_FAILED);
    };
    let (shown, what) = (escape_line(name), if is_on { "on" } else { "off" });
    let (_, settings) = load_ground(&Options::default(), env, cwd);
    let is_it = |it: &str| it.eq_ignore_ascii_case(name);
    let is_known =
        settings.mcp.servers.iter().any(|it| is_it(&it.name)) || settings.mcp.off.iter().any(|it| is_it(&it.0));
    let file = home.join("settings.json");
    match settings_edit::edit_list(&file, &["mcp", "excluded"], name, !is_on) {
        Ok(true) => writeln!(out, "The MCP server {shown} is {what} in new sessions.")?,
        Ok(false) => writeln!(out, "The MCP server {shown} is {what} already in {file}.")?,
        Err(it) => return writeln!(err, "castor: {}", escape_line(&it.to_string())).map(|()| EXIT_FAILED),
    }
    if !is_known {
        writeln!(out, "The settings that count in this folder name no such server.")?;
    }
    // Another file may say no as well.
    let (_, settings) = load_ground(&Options::default(), env, cwd);
    if let Some(why) = settings.mcp.exclusion_reason(name).filter(|_| is_on) {
        writeln!(out, "It stays off here: {why}. `castor config explain mcp.excluded` says where.")?;
    }
    Ok(0)
}
