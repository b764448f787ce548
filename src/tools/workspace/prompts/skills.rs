//! One `SKILL.md`: its keys, its instructions, and what lies beside it.

use super::{SKILL_FILE, lenient_keys, plain_line};
use crate::workspace::{
    files_below::files_below,
    front_matter::{self, FileFault},
};
use castor_base::{agent::AgentOrigin, file_prompt::Skill, path::AbsPath, text};
use castor_hands::disk;

/// Longest names and descriptions, in characters.
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1_000;
/// More files of its folder are not named.
const MAX_LISTED: usize = 50;
/// How deep its folder is looked through.
const DEPTH: usize = 3;

/// Reads one file; what lies beside it is not looked at.
///
/// # Errors
/// The first fault.
pub fn parse(bytes: &[u8], origin: AgentOrigin) -> Result<Skill, FileFault> {
    let whole = str::from_utf8(bytes).map_err(|_| FileFault::new(None, "is not UTF-8"))?;
    let (yaml, body) = front_matter::split(whole)?;
    let keys = lenient_keys::read(yaml)?;
    let take = |key: &str| keys.get(key).map(|it| it.trim()).filter(|it| !it.is_empty());
    let missing = |key: &str| FileFault::new(Some((1, 1)), format!("has no {key} in its front matter"));
    let name = file_name(take("name").ok_or_else(|| missing("name"))?);
    let description = plain_line(take("description").ok_or_else(|| missing("description"))?, MAX_DESCRIPTION);
    if name.is_empty() || description.is_empty() {
        return Err(missing("readable name and description"));
    }
    // What nobody sees is not for the model either.
    let instructions = text::strip_hidden(body);
    if instructions.trim().is_empty() {
        return Err(FileFault::new(None, "has no instructions below its front matter"));
    }
    let folder = origin.file().and_then(AbsPath::parent).ok_or_else(|| FileFault::new(None, "lies in no folder"))?;
    let (files, instructions) = (Default::default(), instructions.into());
    Ok(Skill { name, description, origin, enabled: true, folder, files, instructions })
}

/// A name without what separates paths or words.
fn file_name(name: &str) -> String {
    let plain = |it: char| if it.is_whitespace() || ":\\/<>*?\"|".contains(it) { '-' } else { it };
    plain_line(&name.chars().map(plain).collect::<String>(), MAX_NAME)
}

/// The first files of its folder, by name. Nothing of a link that leads out of it.
pub fn list(folder: &AbsPath) -> Vec<String> {
    let Ok(real) = disk::real_path(folder) else { return Vec::new() };
    let inside = |it: &AbsPath| disk::real_path(it).is_ok_and(|it| it.is_within(&real));
    let files = files_below(folder, "", DEPTH).into_iter().flatten().filter(inside);
    let names = files.map(|it| it.relative_to(folder)).filter(|it| it != SKILL_FILE);
    let mut res: Vec<String> = names.map(|it| plain_line(&it, 200)).take(MAX_LISTED + 1).collect();
    if res.len() > MAX_LISTED {
        res.truncate(MAX_LISTED);
        res.push("and more".to_owned());
    }
    res
}
