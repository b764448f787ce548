//! `castor looked`: the user's word for files that agents wrote.

use std::{io::Write, path::PathBuf};

use clap::Args;

use crate::cli::sessions::CommandError;
use castor_agent::server::tasks::looks;
use castor_base::path::AbsPath;
use castor_hands::{process::surroundings, provenance::Provenance};

/// Says that you looked at what agents wrote: it may run outside the sandbox from then on.
#[derive(Args, Clone, Debug)]
pub struct LookedArgs {
    /// Files and folders [default: all of this folder, after a question]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

const REFUSED: &str =
    "castor looked is for a person, and this was started by castor: type it in a terminal of your own";
const NOBODY: &str = "say which: castor looked PATH…; without one it asks, and here is no terminal";

/// `ask` puts a question to the user; `None`: no user is there.
///
/// # Errors
/// With the line for stderr.
pub fn run(
    args: &LookedArgs,
    home: &AbsPath,
    cwd: &AbsPath,
    out: &mut dyn Write,
    ask: Option<&mut dyn FnMut(&str) -> bool>,
) -> Result<(), CommandError> {
    if surroundings::descends_from_castor() {
        return Err(CommandError::new(REFUSED));
    }
    let provenance = Provenance::new(home, std::slice::from_ref(cwd));
    let mut places: Vec<AbsPath> = args.paths.iter().map(|it| cwd.join(it)).collect();
    let is_named = !places.is_empty();
    if !is_named {
        places.push(cwd.clone());
    }
    let (mut all, mut lists) = (Vec::new(), Vec::new());
    for place in &places {
        let (found, list) = looks::find(&provenance, place, cwd).map_err(CommandError::new)?;
        lists.extend((!found.is_empty()).then_some(list));
        all.extend(found);
    }
    if all.is_empty() {
        return Ok(writeln!(out, "Nothing here was written by an agent and not looked at.")?);
    }
    let list = lists.join("\n");
    writeln!(out, "Written by agents, not looked at:\n{list}")?;
    let is_meant = match (is_named, ask) {
        (true, _) => true,
        (false, Some(ask)) => ask("Did you look at all of it?"),
        (false, None) => return Err(CommandError::input(NOBODY)),
    };
    if !is_meant {
        return Ok(writeln!(out, "Nothing was changed.")?);
    }
    looks::look(&provenance, &all).map_err(|it| CommandError::new(it.to_string()))?;
    Ok(writeln!(out, "It counts as looked at, as it is now.")?)
}
