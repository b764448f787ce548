//! `castor config`: explains where a setting comes from.

use std::io::{self, Write};

use clap::{Args, Subcommand};

use super::{exits::EXIT_INPUT, folder::folder, output::write_warnings, terminal_text::escape_line};
use castor_agent::settings::{Sources, check, explain, set_values, without_effect};
use castor_base::{path::AbsPath, trust::TrustedFileKind};
use castor_hands::secrets::Env;
use castor_tools::workspace::{Warning, folder_config};

/// How [`set_values`] calls the layer of the defaults.
const DEFAULT: &str = "default";
const HINT: &str = "All else is the default: `castor config explain KEY` shows it.\n";

/// Asks about settings.
#[derive(Args, Clone, Debug)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub verb: Option<ConfigVerb>,
}

#[derive(Subcommand, Clone, Debug)]
pub enum ConfigVerb {
    /// Lists the settings that are not the defaults, and where each comes from
    List {
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<String>,
    },
    /// Prints each layer of a setting and the one that wins
    Explain {
        /// A dotted path, such as model.name, or a group, such as security
        key: String,
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<String>,
    },
}

/// Returns the exit code: 0, 1 for a setting that castor does not know, 42 for a folder that is not there.
pub fn run(args: &ConfigArgs, env: &Env, cwd: &AbsPath, out: &mut dyn Write) -> io::Result<u8> {
    let (key, dir) = match &args.verb {
        Some(ConfigVerb::Explain { key, cwd }) => (Some(key), cwd.as_ref()),
        Some(ConfigVerb::List { cwd }) => (None, cwd.as_ref()),
        None => (None, None),
    };
    let folder = match folder(cwd, dir) {
        Ok(it) => it,
        Err(why) => return writeln!(out, "castor: {why}").map(|()| EXIT_INPUT),
    };
    let ground = folder_config::load(env, &folder);
    let (layers, changes, mut warnings) =
        (ground.layers(), ground.project.changes(TrustedFileKind::Settings), ground.warnings.clone());
    let sources = Sources { layers, env: &ground.env, flags: &[] };
    let (text, known) = key.map_or_else(|| (list(sources), true), |it| explain(it, sources));
    out.write_all(text.as_bytes())?;
    for it in &changes {
        writeln!(out, "\n{}; `castor trust` trusts its current content.", escape_line(it))?;
    }
    warnings.extend(ground.locate(check(sources)));
    let idle = ground.locate(without_effect(sources));
    warnings.extend(idle.into_iter().map(|it| Warning { message: format!("no effect: {}", it.message), ..it }));
    write_warnings(&warnings, out)?;
    Ok(u8::from(!known))
}

/// A line for each setting that a file, a variable or a flag sets.
fn list(sources: Sources<'_>) -> String {
    let set = set_values(sources).into_iter().filter(|it| it.source != DEFAULT);
    set.map(|it| format!("{it}\n")).collect::<String>() + HINT
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::cli::testing::{Ground, parse, run_verb};
    use castor_base::path::AbsPath;
    use castor_hands::secrets::Env;

    fn castor_config(line: &[&str], env: &Env, cwd: &AbsPath) -> (String, u8) {
        run_verb(|out| run(&parse(line), env, cwd, out))
    }

    #[test]
    fn reads_real_files_by_trust() {
        let ground = Ground::new();
        let root = &ground.root;
        let write = |path: &str, text: &str| ground.write(path, text);
        write("h/.gemini/settings.json", "{\"model\": {\"name\": \"flash\"}, // c\n}");
        write("h/.castor/settings.json", "{\n oops");
        write("w/.gemini/settings.json", r#"{"model": {"name": "pro"}}"#);
        let env = |trust| ground.env(trust);

        let (text, code) = castor_config(&["explain", "model.name", "--cwd", "w"], &env("true"), root);
        assert!(text.starts_with("model.name = \"pro\"\n"), "{text}");
        assert!(
            text.ends_with("settings.json:2:2: not valid JSON: key must be a string; the file is skipped\n"),
            "{text}"
        );
        assert_eq!(code, 0);

        let (text, _) = castor_config(&["explain", "model.name"], &env(""), &root.join("w"));
        assert!(text.starts_with("model.name = \"flash\"\n") && text.contains("not trusted"), "{text}");
        write("h/.castor/trustedFolders.json", &format!("{{\"{}\": \"TRUST_FOLDER\"}}", root.join("w")));
        let (text, _) = castor_config(&["explain", "model.name"], &env(""), &root.join("w"));
        assert!(text.starts_with("model.name = \"pro\"\n"), "{text}");

        write("w/.gemini/settings.json", r#"{"model": {"name": "other"}}"#);
        let (text, _) = castor_config(&["explain", "model.name"], &env(""), &root.join("w"));
        assert!(text.starts_with("model.name = \"flash\"\n"), "{text}");
        let why = "\n.gemini/settings.json is not used: changed since you trusted the folder; `castor trust`";
        assert!(text.contains(why), "{text}");

        let (text, code) = castor_config(&["explain", "model.name", "--cwd", "gone"], &env(""), root);
        assert!(text.starts_with(&format!("castor: {root}/gone cannot be looked into")), "{text}");
        assert_eq!(code, 42);
        write(
            "h/.gemini/settings.json",
            r#"{"providers": {"a": {"baseUrl": "http://a", "apiKeyEnv": "MY_API_KEY"}, "b": {"baseUrl": "http://b", "apiKeyEnv": "canary1"}}}"#,
        );
        let (text, _) = castor_config(&["explain", "providers"], &env(""), root);
        assert!(text.contains("MY_API_KEY") && !text.contains("canary1"), "{text}");
        write("w/.env", "# mine\nGEMINI_MODEL=x\n");
        let (text, _) = castor_config(&["explain", "model.name", "--cwd", "w"], &env("true"), root);
        let line = format!("  * {root}/w/.env:2 (GEMINI_MODEL)");
        assert!(text.starts_with("model.name = \"x\"\n") && text.contains(&line), "{text}");
        let (text, code) = castor_config(&["list"], &env(""), root);
        let from = format!("}}  <- default + {} (user)\n", root.join("h/.gemini/settings.json"));
        assert!(text.starts_with("providers = {\"a\":{") && text.contains(&from), "{text}");
        assert!(text.contains(super::HINT), "{text}");
        assert!(!text.contains("canary1") && code == 0, "{text}");
        assert_eq!(castor_config(&[], &env(""), root), (text, 0));
        let (text, code) = castor_config(&["explain", "model.nam"], &env(""), root);
        assert!(text.contains("did you mean model.name?"), "{text}");
        assert_eq!(code, 1);
    }
}
