//! `castor trust`: trusts or distrusts a folder, and explains what counts.

use std::io::{self, Write};

use clap::{Args, Subcommand};

use super::{exits::EXIT_INPUT, terminal_text::escape_line};
use castor_agent::session::policies;
use castor_base::{
    path::AbsPath,
    trust::{TrustChoice, UNWATCHED, wide_folder_warning},
};
use castor_hands::{disk, secrets::Env};
use castor_tools::workspace::{
    castor_home,
    folder_config::{self, FolderConfig},
    trust,
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
    /// Remove your decision about it
    #[arg(long)]
    pub revoke: bool,
    /// Trust also a folder that the home folder is in, and do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Subcommand, Clone, Debug)]
pub enum TrustVerb {
    /// List the folders that you have decided about
    List,
    /// Tell whether a folder is trusted, which file says so, and what that covers
    Why {
        /// The folder [default: the current one]
        path: Option<String>,
    },
}

/// Asks the user, if one is there.
pub type Ask<'a> = Option<&'a mut dyn FnMut(&str) -> bool>;

/// Returns the exit code.
pub fn run(args: &TrustArgs, env: &Env, cwd: &AbsPath, ask: Ask<'_>, out: &mut dyn Write) -> io::Result<u8> {
    let path = match &args.verb {
        Some(TrustVerb::List) => return list(env, out),
        Some(TrustVerb::Why { path }) => path,
        None => &args.path,
    };
    let folder = path.as_ref().map_or_else(|| cwd.clone(), |it| cwd.join(it));
    // A folder that is gone may come back, as anybody's.
    if !args.revoke && !disk::metadata(&folder).is_ok_and(|it| it.is_dir) {
        return writeln!(out, "{folder} is not a folder.").map(|()| EXIT_INPUT);
    }
    let Some(home) = castor_home(env) else {
        return writeln!(out, "There is no home folder: set HOME or CASTOR_HOME.").map(|()| EXIT_INPUT);
    };
    let ground = folder_config::load(env, &folder);
    if args.verb.is_some() {
        return explain_trust(&ground, env, out);
    }
    let choice = match (args.parent, args.never) {
        (true, _) => TrustChoice::Parent,
        (_, true) => TrustChoice::Never,
        _ => TrustChoice::Folder,
    };
    if args.revoke {
        let (changed, warning) = trust::set_rule(&home, &ground.folder, None)?;
        warning.map_or(Ok(()), |it| writeln!(out, "{it}"))?;
        writeln!(out, "{}", if changed { "Revoked." } else { "castor's own list says nothing about this folder." })?;
    } else {
        if let Some(it) = folder_config::broad_folder(env, &ground, choice).filter(|_| !args.yes) {
            writeln!(out, "{}", wide_folder_warning(&it))?;
            if !ask.is_some_and(|ask| ask(&format!("Trust {it} all the same?"))) {
                return writeln!(out, "Nothing was changed; with --yes it is trusted all the same.")
                    .map(|()| EXIT_INPUT);
            }
        }
        for it in folder_config::save_fresh_decision(env, &home, &ground, choice)? {
            writeln!(out, "{it}")?;
        }
        let is_wide = choice == TrustChoice::Folder && trust::trusts_parent(&home, &ground.folder);
        if is_wide {
            let hint = "with its sibling folders; to trust it alone, revoke that first (--revoke)";
            writeln!(out, "It was trusted already, {hint}.")?;
        }
    }
    explain_trust(&folder_config::load(env, &folder), env, out).map(|_| 0)
}

fn list(env: &Env, out: &mut dyn Write) -> io::Result<u8> {
    match trust::list_rules(env) {
        Err(it) => writeln!(out, "{it}").map(|()| 1),
        Ok(rules) if rules.is_empty() => writeln!(out, "You have not decided about any folder.").map(|()| 0),
        Ok(rules) => rules.iter().try_for_each(|it| writeln!(out, "{}", escape_line(it))).map(|()| 0),
    }
}

/// Returns 0 where the folder is trusted, as it is.
fn explain_trust(ground: &FolderConfig, env: &Env, out: &mut dyn Write) -> io::Result<u8> {
    let folder = escape_line(&ground.folder.to_string());
    writeln!(
        out,
        "{folder} is {}",
        escape_line(&ground.trust.in_words(env.get("HOME").and_then(AbsPath::new).as_ref()))
    )?;
    for (name, counts) in ground.project.file_states() {
        let why = ground.project.why_unused(name).map(|it| format!(": {}", escape_line(&it))).unwrap_or_default();
        writeln!(out, "  {}: {}{why}", escape_line(name), if counts { "is used" } else { "is not used" })?;
    }
    if ground.doubt.is_some() {
        let lines = policies::allowed_if_trusted(ground, env);
        lines.iter().try_for_each(|it| writeln!(out, "  would allow without a question: {}", escape_line(it)))?;
    }
    if !ground.project.describe_programs(|_| true).is_empty() {
        writeln!(out, "  {UNWATCHED}")?;
    }
    for it in &ground.warnings {
        writeln!(out, "  {}", escape_line(&it.to_string()))?;
    }
    Ok(u8::from(!ground.trust.is_trusted() || ground.doubt.is_some()))
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::cli::testing::{Ground, parse, run_verb};
    use castor_base::trust::allowed_by_trust;
    use castor_hands::secrets::Env;

    #[test]
    fn trusts_tells_and_takes_back() {
        let ground = Ground::new();
        let root = ground.root.to_string();
        let ws = ground.root.join("w/ws");
        ground.write("w/ws/.castor/settings.json", "{}");
        let env = Env::from_pairs([("HOME", ground.root.join("h").to_string().as_str())]);
        let say = |line: &[&str]| {
            let (text, code) = run_verb(|out| run(&parse(line), &env, &ws, None, out));
            (text.replace(&root, "$ROOT"), code)
        };
        let unknown =
            "$ROOT/w/ws is not trusted: you have not decided about it yet\n  .castor/settings.json: is not used\n";
        assert_eq!(say(&["why"]), (unknown.to_owned(), 1));
        let rules = "$ROOT/h/.castor/trustedFolders.json: $ROOT/w/ws";
        let trusted = "$ROOT/w/ws is trusted (~/.castor/trustedFolders.json)\n  .castor/settings.json: is used\n";
        assert_eq!(say(&[]), (trusted.to_owned(), 0));
        assert_eq!(say(&["list"]).0, format!("{rules}: TRUST_FOLDER\n"));
        ground.write("w/ws/.castor/settings.json", "{ }");
        let changed = "is not used: changed since you trusted the folder";
        assert_eq!(say(&["why"]), (trusted.replace("is used", changed), 1));
        assert_eq!(say(&["."]).1, 0, "saying it again covers what is there now");
        assert_eq!((say(&["--never"]).1, say(&["why"]).1), (0, 1));
        assert_eq!(say(&["--revoke"]), (format!("Revoked.\n{unknown}"), 0));
        assert_eq!(say(&["--parent"]).1, 0);
        let parent = "$ROOT/w/ws is trusted (~/.castor/trustedFolders.json, for all of $ROOT/w)\n";
        assert!(say(&["why"]).0.starts_with(parent));
        assert_eq!(say(&["why", ".."]).1, 0);
        let wide = format!("{rules}: TRUST_PARENT\n");
        for line in [&[][..], &["."], &["--yes"]] {
            let (text, code) = say(line);
            assert!(code == 0 && text.starts_with("It was trusted already, with its sibling folders"), "{text}");
            assert_eq!((say(&["list"]).0, say(&["why", ".."]).1), (wide.clone(), 0));
        }
        assert_eq!((say(&["--revoke"]).1, say(&[]).1), (0, 0));
        assert_eq!((say(&["list"]).0, say(&["why", ".."]).1), (wide.replace("PARENT", "FOLDER"), 1));
        assert_eq!(say(&["nowhere"]).1, 42);
    }

    /// What changed since the yes stays out while another rule trusts the folder, also when a no cannot be written down.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn taking_back_switches_nothing_on() {
        let ground = Ground::new();
        let ws = ground.root.join("w/ws");
        let env = Env::from_pairs([("HOME", ground.root.join("h").to_string().as_str())]);
        let say = |line: &[&str]| run_verb(|out| run(&parse(line), &env, &ws, None, out));
        ground.write("h/.gemini/trustedFolders.json", &format!("{{\"{ws}\": \"TRUST_FOLDER\"}}"));
        ground.write("w/ws/.castor/settings.json", "{}");
        assert!(say(&["why"]).0.contains("settings.json: is used\n"));
        ground.write("w/ws/.castor/settings.json", "{ }");
        let changed = "settings.json: is not used: changed since you trusted the folder\n";
        assert!(say(&["--revoke"]).0.contains(changed) && say(&["why"]).0.contains(changed));
        assert_eq!((say(&["--never"]).1, say(&["--revoke"]).1), (0, 0));
        assert!(say(&["why"]).0.contains(changed));
        let own = ground.root.join("h/.castor/trustedFolders.json");
        std::fs::remove_file(&own).unwrap();
        std::fs::create_dir_all(own.join("in the way")).unwrap();
        let failed = run(&parse(&["--never"]), &env, &ws, None, &mut Vec::new()).unwrap_err().to_string();
        assert!(failed.contains("trustedFolders.json"), "{failed}");
        std::fs::remove_dir_all(&own).unwrap();
        assert!(say(&["why"]).0.contains(changed));
        assert_eq!(say(&["."]).1, 0);
        assert!(say(&["why"]).0.contains("settings.json: is used\n"));
    }

    #[test]
    fn a_name_makes_no_line_of_its_own() {
        let ground = Ground::new();
        ground.write("w/x\ny is trusted/.castor/settings.json", "{}");
        let ws = ground.root.join("w/x\ny is trusted");
        let env = Env::from_pairs([("HOME", ground.root.join("h").to_string().as_str())]);
        for line in [&["why"][..], &[], &["list"], &["--revoke"]] {
            let (text, _) = run_verb(|out| run(&parse(line), &env, &ws, None, out));
            assert!(text.contains("x\\u000ay is trusted") && !text.contains("\ny is"), "{text}");
        }
    }

    /// However many there are: the question shows the first of them.
    #[test]
    fn all_that_policies_would_allow_is_listed() {
        let ground = Ground::new();
        let rule = |n: usize| {
            format!(
                "[[rule]]\ntoolName = 'run_shell_command'\ncommandPrefix = 'c{n}'\ndecision = 'allow'\npriority = 1\n"
            )
        };
        ground.write("w/ws/.castor/policies/a.toml", &(0..30).map(rule).collect::<String>());
        let env = Env::from_pairs([("HOME", ground.root.join("h").to_string().as_str())]);
        let (text, _) = run_verb(|out| run(&parse(&["why"]), &env, &ground.root.join("w/ws"), None, out));
        for n in 0..30 {
            let line = format!(
                "would allow without a question: .castor/policies/a.toml:{}: run_shell_command c{n}\n",
                n * 5 + 1
            );
            assert!(text.contains(&line), "{text}");
        }
        let lines: Vec<String> = (0..30).map(|n| n.to_string()).collect();
        assert!(allowed_by_trust(&lines).ends_with("- 19\n- and 10 more; `castor trust why` lists all of them\n"));
    }

    #[test]
    fn what_is_not_watched_is_told() {
        let ground = Ground::new();
        let ws = ground.root.join("w/ws");
        ground.write("w/ws/tools/run.py", "import more");
        let hook = r#"{"hooks": {"AfterAgent": [{"hooks": [{"command": "python3 -m tools.run && acme-lint"}]}]}}"#;
        ground.write("w/ws/.castor/settings.json", hook);
        let env = Env::from_pairs([("HOME", ground.root.join("h").to_string().as_str())]);
        let line = "  castor does not watch what these start in turn, and does not ask when that changes.\n";
        let say = |args: &[&str]| run_verb(|out| run(&parse(args), &env, &ws, None, out)).0;
        for args in [&["why"][..], &["."], &["why"]] {
            assert!(say(args).ends_with(line), "{args:?}: {}", say(args));
        }
    }

    /// A home folder, a folder above it and the top of the disk need `--yes`.
    #[test]
    fn a_home_is_trusted_by_those_only_who_say_so_twice() {
        let ground = Ground::new();
        let root = ground.root.to_string();
        ground.write("home/u/p/GEMINI.md", "");
        let home = ground.root.join("home/u");
        let env = Env::from_pairs([("HOME", home.to_string().as_str())]);
        let say = |line: &[&str], answer: Option<bool>| {
            let mut asked = String::new();
            let mut ask = |it: &str| {
                asked.push_str(it);
                answer == Some(true)
            };
            let ask = answer.is_some().then_some(&mut ask as &mut dyn FnMut(&str) -> bool);
            let (text, code) = run_verb(|out| run(&parse(line), &env, &home, ask, out));
            (text.replace(&root, "$ROOT"), code, asked.replace(&root, "$ROOT"))
        };
        let nothing = || say(&["list"], None).0 == "You have not decided about any folder.\n";
        for (line, folder) in [
            (&["."][..], "$ROOT/home/u"),
            (&[], "$ROOT/home/u"),
            (&["p", "--parent"], "$ROOT/home/u"),
            (&["--parent"], "$ROOT/home"),
            (&[".."], "$ROOT/home"),
            (&["/"], "/"),
            (&["/", "--parent"], "/"),
        ] {
            let (text, code, asked) = say(line, None);
            assert!(text.starts_with(&format!("Your home folder is in {folder}: to trust it")), "{line:?}: {text}");
            assert!(text.contains("--yes") && asked.is_empty(), "{text}");
            assert_eq!((code, nothing()), (42, true), "{line:?}");
            let (_, code, asked) = say(line, Some(false));
            assert_eq!((code, nothing(), asked), (42, true, format!("Trust {folder} all the same?")));
        }
        assert_eq!(say(&["--never"], None).1, 0);
        assert_eq!(say(&["--revoke"], None).1, 0);
        assert!(nothing());
        assert_eq!(say(&["p"], None).1, 0, "a project in it needs no second word");
        assert_eq!(say(&[], Some(true)).1, 0);
        assert_eq!(say(&["--revoke"], None).1, 0);
        assert_eq!(say(&["--yes"], None).1, 0);
    }
}
