//! Saved permissions ("allow for ever"): rules in a policy file, sandbox grants in a list of their own.

mod lasting_grants;

use std::io;

use crate::workspace::{Reader, Warning};
use castor_base::{
    host_pattern,
    log::{GRANTS_FILE, Grant, PersistentGrant},
    path::AbsPath,
};
use castor_hands::disk;

pub use lasting_grants::{load_grants, save_grant};

/// As Gemini CLI's: above what users usually write.
const PRIORITY: i64 = 950;

/// Why a file of permissions that is there cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no TOML, or holds no such list.
    #[error("{file}: {why}")]
    Broken { file: AbsPath, why: String },
}

impl From<SavedError> for io::Error {
    fn from(it: SavedError) -> Self {
        match it {
            SavedError::Io(it) => it,
            it @ SavedError::Broken { .. } => Self::new(io::ErrorKind::InvalidData, it),
        }
    }
}

/// A file of standing yeses.
#[derive(Debug)]
struct GrantFile {
    folder: &'static str,
    name: &'static str,
    /// Under which its list is.
    key: &'static str,
    head: &'static str,
}

const RULES: GrantFile = GrantFile {
    folder: "policies",
    name: GRANTS_FILE,
    key: "rule",
    head: "# Permanent permissions. `castor permissions` lists and removes them.\n\n",
};

impl GrantFile {
    fn file(&self, home: &AbsPath) -> AbsPath {
        home.join(self.folder).join(self.name)
    }

    fn sibling(&self, home: &AbsPath, name: &str) -> AbsPath {
        home.join(self.folder).join(name)
    }
}

/// The file of rules below castor's folder.
pub fn file(home: &AbsPath) -> AbsPath {
    RULES.file(home)
}

/// Adds a permission, or finds that it is there: in `folder` for a command or a file, which mean something else elsewhere. A file that cannot be understood is kept aside.
///
/// # Errors
/// A folder or file that cannot be written. Then nothing has changed.
pub fn add(home: &AbsPath, folder: &AbsPath, lasting: &PersistentGrant) -> io::Result<Option<Warning>> {
    change(&RULES, home, |rules| {
        let mut new = table(lasting);
        if lasting.is_local() {
            new.insert("folder".to_owned(), folder.to_string().into());
        }
        if !rules.contains(&new) {
            rules.push(new);
        }
    })
}

/// Strikes out the rule that came of the same yes, where there is one.
///
/// # Errors
/// As [`add`].
fn remove_rule(home: &AbsPath, folder: &AbsPath, grant: &Grant) -> io::Result<Option<Warning>> {
    let is_it = |it: &toml::Table| matches_grant(it, folder, grant);
    if has(&RULES, home, is_it)? { change(&RULES, home, |rules| rules.retain(|it| !is_it(it))) } else { Ok(None) }
}

fn matches_grant(it: &toml::Table, folder: &AbsPath, grant: &Grant) -> bool {
    let text = |key: &str| it.get(key).and_then(toml::Value::as_str);
    let is_here = text("folder") == folder.as_path().to_str();
    match grant {
        Grant::Commands { prefixes } => {
            let said = it.get("commandPrefix").and_then(toml::Value::as_array);
            is_here && said.is_some_and(|it| it.iter().filter_map(toml::Value::as_str).eq(prefixes))
        }
        // The model may have named it either way.
        Grant::File { tool, path } => {
            let names = [path.relative_to(folder), path.to_string()];
            let patterns = names.map(|it| PersistentGrant::file_pattern(&it));
            is_here && text("toolName") == Some(tool) && patterns.iter().any(|it| text("argsPattern") == Some(it))
        }
        Grant::Foreign { tool, digest } => text("toolName") == Some(tool) && text("toolDigest") == Some(digest),
        Grant::Tool { tool } => {
            let is_whole = ["mcpName", "commandPrefix", "argsPattern"].iter().all(|key| !it.contains_key(*key));
            is_whole && text("toolName") == Some(tool)
        }
        Grant::Hosts { tool, hosts } => {
            let patterns: Vec<String> = hosts.iter().map(|it| host_pattern::of_host(it)).collect();
            is_here && text("toolName") == Some(tool) && patterns.iter().any(|it| text("argsPattern") == Some(it))
        }
        Grant::Edits
        | Grant::Network
        | Grant::NetworkFor { .. }
        | Grant::Reach { .. }
        | Grant::Secrets { .. }
        | Grant::Write { .. }
        | Grant::Read { .. }
        | Grant::Auto => false,
    }
}

/// Takes the permission at `at` (from 0, as [`list`] counts) back, or all of them. How many went.
///
/// # Errors
/// As [`add`], and a file that cannot be understood: nobody knows what would go.
pub fn revoke(home: &AbsPath, at: Option<usize>) -> io::Result<usize> {
    let (mut gone, mut passed) = (0, 0);
    for book in [&RULES, &lasting_grants::GRANTS] {
        // What is not there needs no empty file.
        if Reader::disk().optional(&book.file(home))?.is_none() {
            continue;
        }
        read(book, home)?;
        change(book, home, |entries| {
            let before = entries.len();
            match at.map(|it| it.checked_sub(passed)) {
                None => entries.clear(),
                Some(Some(at)) if at < before => _ = entries.remove(at),
                Some(_) => (),
            }
            gone += before - entries.len();
            passed += before;
        })?;
    }
    Ok(gone)
}

/// Every saved permission in words: the rules, then what the sandbox lets through, in the order of their files.
///
/// # Errors
/// A file that is there and cannot be read or understood.
pub fn list(home: &AbsPath) -> Result<Vec<String>, SavedError> {
    let (rules, kept) = (read(&RULES, home)?, read(&lasting_grants::GRANTS, home)?);
    Ok(rules.iter().map(in_words).chain(kept.iter().map(lasting_grants::in_words)).collect())
}

type Tables = Vec<toml::Table>;

/// Tells whether such an entry is there; a file that cannot be understood has none.
fn has(book: &GrantFile, home: &AbsPath, is_it: impl Fn(&toml::Table) -> bool) -> io::Result<bool> {
    match read(book, home) {
        Err(SavedError::Io(it)) => Err(it),
        it => Ok(it.is_ok_and(|it| it.iter().any(is_it))),
    }
}

fn read(book: &GrantFile, home: &AbsPath) -> Result<Tables, SavedError> {
    Ok(read_whole(book, home)?.0)
}

/// The list, and all else that somebody wrote beside it.
fn read_whole(book: &GrantFile, home: &AbsPath) -> Result<(Tables, toml::Table), SavedError> {
    let broken = |why: &str| SavedError::Broken { file: book.file(home), why: why.to_owned() };
    let Some(bytes) = Reader::disk().optional(&book.file(home))? else { return Ok(Default::default()) };
    let text = String::from_utf8(bytes).map_err(|_| broken("it is not UTF-8"))?;
    let mut table: toml::Table = text.parse().map_err(|it: toml::de::Error| broken(it.message()))?;
    let entries = match table.remove(book.key) {
        None => Ok(Vec::new()),
        Some(toml::Value::Array(list)) => {
            let tables: Option<Tables> = list.iter().map(|it| it.as_table().cloned()).collect();
            tables.ok_or_else(|| broken("its entries are not tables"))
        }
        Some(_) => Err(broken("its entries are not a list")),
    };
    Ok((entries?, table))
}

fn change(book: &GrantFile, home: &AbsPath, edit: impl FnOnce(&mut Tables)) -> io::Result<Option<Warning>> {
    // Other processes save too; the lock goes with the handle.
    let lock = disk::open_append_private(&book.sibling(home, ".auto-saved.lock"))?;
    lock.lock()?;
    let file = book.file(home);
    let ((mut entries, mut whole), warning) = match read_whole(book, home) {
        Ok(it) => (it, None),
        Err(SavedError::Io(it)) => return Err(it),
        Err(SavedError::Broken { why, .. }) => {
            let aside = book.sibling(home, &format!("{}.bak", book.name));
            disk::write_private(&aside, &disk::read(&file)?)?;
            let message = format!("could not be understood ({why}); it was kept as {aside}");
            (Default::default(), Some(Warning { origin: file.to_string(), at: None, key: None, message }))
        }
    };
    let before = entries.clone();
    edit(&mut entries);
    if entries == before && warning.is_none() {
        return Ok(None);
    }
    let list = entries.into_iter().map(toml::Value::Table).collect();
    whole.insert(book.key.to_owned(), toml::Value::Array(list));
    let text = toml::to_string(&whole).map_err(io::Error::other)?;
    disk::write_private(&file, (book.head.to_owned() + &text).as_bytes())?;
    Ok(warning)
}

fn table(it: &PersistentGrant) -> toml::Table {
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
    let what = match (text("commandPrefix"), text("argsPattern")) {
        (Some(it), _) => format!("commands `{it}`"),
        (None, Some(it)) => match PersistentGrant::subject_of(&it) {
            Some(file) => format!("`{tool}` of {file}"),
            None => format!("the tool `{tool}` with {}", it.replace("\\x00", "")),
        },
        (None, None) => format!("the tool `{tool}`"),
    };
    text("folder").map_or(what.clone(), |it| format!("{what}, in {it}"))
}

#[cfg(test)]
mod tests;
