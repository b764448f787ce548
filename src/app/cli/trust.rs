//! `castor trust`: says that a folder is trusted, or no longer, and tells what holds.

use std::io::{self, Write};

use clap::{Args, Subcommand};

use crate::{
    app::cli::{args::EXIT_INPUT, clean::shown_line},
    base::{
        path::AbsPath,
        trust::{Trust, TrustChoice},
    },
    world::{
        disk,
        secrets::Env,
        workspace::{
            castor_home,
            ground::{self, Ground},
            integrity, trust,
        },
    },
};

#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TrustArgs {
    #[command(subcommand)]
    pub verb: Option<TrustVerb>,
    /// The folder [default: the current one]
    pub path: Option<String>,
    /// Trust everything in its parent folder
    #[arg(long, conflicts_with_all = ["never", "revoke"])]
    pub parent: bool,
    /// Never trust it, and do not ask
    #[arg(long, conflicts_with = "revoke")]
    pub never: bool,
    /// Take back what was said about it
    #[arg(long)]
    pub revoke: bool,
}

#[derive(Subcommand, Clone, Debug)]
pub enum TrustVerb {
    /// List the folders that something was said about
    List,
    /// Tell whether a folder is trusted, by whose word, and what that covers
    Why {
        /// The folder [default: the current one]
        path: Option<String>,
    },
}

/// Returns the exit code.
pub fn run(args: &TrustArgs, env: &Env, cwd: &AbsPath, out: &mut dyn Write) -> io::Result<u8> {
    let path = match &args.verb {
        Some(TrustVerb::List) => return list(env, out),
        Some(TrustVerb::Why { path }) => path,
        None => &args.path,
    };
    let folder = path.as_ref().map_or_else(|| cwd.clone(), |it| cwd.join(it));
    if !disk::metadata(&folder).is_ok_and(|it| it.is_dir) {
        return writeln!(out, "{folder} is not a folder.").map(|()| EXIT_INPUT);
    }
    let Some(home) = castor_home(env) else {
        return writeln!(out, "There is no home folder: set HOME or CASTOR_HOME.").map(|()| EXIT_INPUT);
    };
    let ground = ground::look(env, &folder);
    if args.verb.is_some() {
        return why(&ground, out);
    }
    let choice = match (args.parent, args.never) {
        (true, _) => TrustChoice::Parent,
        (_, true) => TrustChoice::Never,
        _ => TrustChoice::Folder,
    };
    if args.revoke {
        let (changed, warning) = trust::set(&home, &ground.folder, None)?;
        integrity::forget(&home, &ground.folder)?;
        warning.map_or(Ok(()), |it| writeln!(out, "{it}"))?;
        writeln!(out, "{}", if changed { "Taken back." } else { "castor's own list says nothing about this folder." })?;
    } else {
        for it in ground::decide_now(env, &home, &ground, choice)? {
            writeln!(out, "{it}")?;
        }
    }
    why(&ground::look(env, &folder), out).map(|_| 0)
}

fn list(env: &Env, out: &mut dyn Write) -> io::Result<u8> {
    match trust::list(env) {
        Err(it) => writeln!(out, "{it}").map(|()| 1),
        Ok(rules) if rules.is_empty() => writeln!(out, "Nothing was said about any folder.").map(|()| 0),
        Ok(rules) => rules.iter().try_for_each(|it| writeln!(out, "{it}")).map(|()| 0),
    }
}

/// Returns 0 where the folder is trusted, as it is.
fn why(ground: &Ground, out: &mut dyn Write) -> io::Result<u8> {
    let folder = &ground.folder;
    match &ground.trust {
        Trust::Trusted { why, .. } => writeln!(out, "{folder} is trusted: {why}")?,
        Trust::Untrusted(why) => writeln!(out, "{folder} is not trusted: {why}")?,
        Trust::Unknown => writeln!(out, "{folder} is not trusted: nobody said anything about it")?,
    }
    for (name, counts) in ground.project.standing() {
        let why = ground.project.why_unused(name).map(|it| format!(": {}", shown_line(&it))).unwrap_or_default();
        writeln!(out, "  {}: {}{why}", shown_line(name), if counts { "is used" } else { "is not used" })?;
    }
    for it in &ground.warnings {
        writeln!(out, "  {it}")?;
    }
    Ok(u8::from(!ground.trust.is_trusted() || ground.doubt.is_some()))
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::{
        app::cli::testing::{Ground, parse, said},
        world::secrets::Env,
    };

    #[test]
    fn trusts_tells_and_takes_back() {
        let ground = Ground::new();
        let root = ground.root.to_string();
        let ws = ground.root.join("w/ws");
        ground.write("w/ws/.castor/settings.json", "{}");
        let env = Env::from_pairs([("HOME", ground.root.join("h").to_string().as_str())]);
        let say = |line: &[&str]| {
            let (text, code) = said(|out| run(&parse(line), &env, &ws, out));
            (text.replace(&root, "$ROOT"), code)
        };
        let unknown =
            "$ROOT/w/ws is not trusted: nobody said anything about it\n  .castor/settings.json: is not used\n";
        assert_eq!(say(&["why"]), (unknown.to_owned(), 1));
        let rules = "$ROOT/h/.castor/trustedFolders.json: $ROOT/w/ws";
        let trusted = format!("$ROOT/w/ws is trusted: {rules}: TRUST_FOLDER\n  .castor/settings.json: is used\n");
        assert_eq!(say(&[]), (trusted.clone(), 0));
        assert_eq!(say(&["list"]).0, format!("{rules}: TRUST_FOLDER\n"));
        ground.write("w/ws/.castor/settings.json", "{ }");
        let changed = "is not used: changed since you trusted the folder";
        assert_eq!(say(&["why"]), (trusted.replace("is used", changed), 1));
        assert_eq!(say(&["."]).1, 0, "saying it again covers what is there now");
        assert_eq!((say(&["--never"]).1, say(&["why"]).1), (0, 1));
        assert_eq!(say(&["--revoke"]), (format!("Taken back.\n{unknown}"), 0));
        assert_eq!(say(&["--parent"]).1, 0);
        assert_eq!(say(&["why", ".."]).1, 0);
        assert_eq!(say(&["nowhere"]).1, 42);
    }
}
