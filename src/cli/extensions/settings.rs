//! Values that an extension asks for: listed without what they are, and set from a terminal or a pipe.

use std::io::{self, IsTerminal, Read};

use secrecy::ExposeSecret;

use super::{Cx, Stop, failed, wrong};
use crate::cli::auth::hidden_input;
use castor_tools::workspace::extensions::{
    contents,
    manifest::ExtensionSetting,
    record::{self, Values},
};

/// Longer values are none.
const MAX_VALUE: u64 = 16 << 10;

pub fn config(cx: &mut Cx<'_, '_>, name: &str, setting: Option<&str>) -> Result<u8, Stop> {
    let record = cx.record(name)?;
    let contents = contents::read(&record.folder(&cx.home), record.kind).or_else(failed)?;
    let all = contents.manifest.settings;
    let mut values = record::read_values(&cx.home, name).or_else(failed)?;
    let Some(wanted) = setting else { return list(cx, &all, &values) };
    let Some(it) = all.iter().find(|it| it.variable == wanted || it.name == wanted) else {
        return wrong(format!("{name} asks for no {wanted}; `castor extensions config {name}` lists what it asks for"));
    };
    let value = read(it)?;
    match value.is_empty() {
        true => _ = values.remove(&it.variable),
        false => _ = values.insert(it.variable.clone(), value.clone()),
    }
    record::write_values(&cx.home, name, &values).or_else(failed)?;
    let done = if value.is_empty() { "removed" } else { "set" };
    cx.say(&format!("{} is {done}, from the next session on.", it.name))?;
    Ok(0)
}

fn list(cx: &mut Cx<'_, '_>, all: &[ExtensionSetting], values: &Values) -> Result<u8, Stop> {
    if all.is_empty() {
        cx.say("It asks for no values.")?;
    }
    for it in all {
        let state = match values.get(&it.variable) {
            None => "not set".to_owned(),
            Some(_) if it.is_sensitive => "set".to_owned(),
            Some(value) => value.clone(),
        };
        cx.say(&format!("{:<24} {:<24} {state}  {}", it.variable, it.name, it.description))?;
    }
    Ok(0)
}

/// From argv it would be seen by others.
fn read(it: &ExtensionSetting) -> Result<String, Stop> {
    let stdin = io::stdin();
    let text = if stdin.is_terminal() {
        let question = format!("{} ({}): ", it.name, it.variable);
        let line = hidden_input::read_line(&mut stdin.lock(), &mut io::stderr(), &question)?;
        line.map(|it| it.expose_secret().to_owned()).unwrap_or_default()
    } else {
        let mut text = String::new();
        stdin.lock().take(MAX_VALUE).read_to_string(&mut text)?;
        text
    };
    Ok(text.trim().to_owned())
}
