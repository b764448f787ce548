//! What the user allowed for ever: rules in one file of the user's, written whole, one writer at a time.

use std::io;

use crate::{
    base::{log::Lasting, path::AbsPath},
    world::{
        disk,
        workspace::{Reader, Warning},
    },
};

/// In `policies` of castor's own folder.
pub const FILE: &str = "auto-saved.toml";
/// As Gemini CLI's: above what users usually write.
const PRIORITY: i64 = 950;

/// The file below castor's folder.
pub fn file(home: &AbsPath) -> AbsPath {
    home.join("policies").join(FILE)
}

/// Adds a permission, or finds that it is there. A file that cannot be understood is kept aside.
///
/// # Errors
/// A folder or file that cannot be written. Then nothing has changed.
pub fn add(home: &AbsPath, lasting: &Lasting) -> io::Result<Option<Warning>> {
    change(home, |rules| {
        let new = table(lasting);
        if !rules.contains(&new) {
            rules.push(new);
        }
    })
}

/// Takes the permission at `at` (from 0) back, or all of them. How many went.
///
/// # Errors
/// As [`add`].
pub fn revoke(home: &AbsPath, at: Option<usize>) -> io::Result<usize> {
    let mut gone = 0;
    change(home, |rules| {
        let before = rules.len();
        match at {
            None => rules.clear(),
            Some(at) if at < rules.len() => _ = rules.remove(at),
            Some(_) => (),
        }
        gone = before - rules.len();
    })?;
    Ok(gone)
}

/// Every saved permission in words, in the order of the file.
///
/// # Errors
/// A file that is there and cannot be read or understood.
pub fn list(home: &AbsPath) -> Result<Vec<String>, String> {
    let rules = read(home).map_err(|it| it.to_string())?.map_err(|it| format!("{}: {it}", file(home)))?;
    Ok(rules.iter().map(in_words).collect())
}

type Tables = Vec<toml::Table>;

/// The inner error: it is no TOML.
fn read(home: &AbsPath) -> io::Result<Result<Tables, String>> {
    let Some(bytes) = Reader::disk().optional(&file(home))? else { return Ok(Ok(Vec::new())) };
    let Ok(text) = String::from_utf8(bytes) else { return Ok(Err("it is not UTF-8".to_owned())) };
    let table: toml::Table = match text.parse() {
        Ok(it) => it,
        Err(it) => return Ok(Err(toml::de::Error::message(&it).to_owned())),
    };
    let rules = match table.get("rule") {
        None => Ok(Vec::new()),
        Some(toml::Value::Array(list)) => {
            let tables: Option<Tables> = list.iter().map(|it| it.as_table().cloned()).collect();
            tables.ok_or_else(|| "its rules are not tables".to_owned())
        }
        Some(_) => Err("its rules are not a list".to_owned()),
    };
    Ok(rules)
}

fn change(home: &AbsPath, edit: impl FnOnce(&mut Tables)) -> io::Result<Option<Warning>> {
    // Other processes save too; the lock goes with the handle.
    let lock = disk::open_append_private(&home.join("policies").join(".auto-saved.lock"))?;
    lock.lock()?;
    let (mut rules, warning) = match read(home)? {
        Ok(it) => (it, None),
        Err(why) => {
            let aside = home.join("policies").join(format!("{FILE}.bak"));
            disk::write_atomic(&aside, &disk::read(&file(home))?)?;
            let message = format!("could not be understood ({why}); it was kept as {aside}");
            (Vec::new(), Some(Warning { origin: file(home).to_string(), at: None, key: None, message }))
        }
    };
    edit(&mut rules);
    let list = rules.into_iter().map(toml::Value::Table).collect();
    let whole = toml::Table::from_iter([("rule".to_owned(), toml::Value::Array(list))]);
    let text = toml::to_string(&whole).map_err(io::Error::other)?;
    let head = "# What was allowed for ever. `castor permissions` lists and takes back.\n\n";
    disk::write_atomic(&file(home), (head.to_owned() + &text).as_bytes())?;
    Ok(warning)
}

fn table(it: &Lasting) -> toml::Table {
    let mut res = toml::Table::new();
    let mut put = |key: &str, value: toml::Value| _ = res.insert(key.to_owned(), value);
    put("toolName", it.tool.clone().into());
    if let Some(server) = &it.server {
        put("mcpName", server.clone().into());
    }
    if let Some(digest) = &it.digest {
        put("toolDigest", digest.clone().into());
    }
    put("decision", "allow".into());
    put("priority", PRIORITY.into());
    put("modes", it.modes.iter().map(|it| it.as_str()).collect::<Vec<_>>().into());
    if !it.prefixes.is_empty() {
        put("commandPrefix", it.prefixes.clone().into());
    }
    if let Some(pattern) = &it.args_pattern {
        put("argsPattern", pattern.clone().into());
    }
    res
}

fn in_words(it: &toml::Table) -> String {
    let text = |key: &str| match it.get(key) {
        Some(toml::Value::String(it)) => Some(it.clone()),
        Some(toml::Value::Array(list)) => {
            Some(list.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>().join("`, `"))
        }
        _ => None,
    };
    let tool = text("toolName").unwrap_or_default();
    let tool = text("mcpName").map_or(tool.clone(), |server| format!("{server}/{tool}"));
    match (text("commandPrefix"), text("argsPattern")) {
        (Some(it), _) => format!("commands `{it}`"),
        (None, Some(it)) => format!("the tool `{tool}` with {}", it.replace("\\x00", "")),
        (None, None) => format!("the tool `{tool}`"),
    }
}

#[cfg(test)]
mod tests;
