//! `castor permissions`: lists and revokes saved permissions.

use std::io::{self, Write};

use clap::{Args, Subcommand};

use super::{exits::EXIT_INPUT, terminal_text::escape_line};
use castor_hands::secrets::Env;
use castor_tools::workspace::{NO_HOME, castor_home, saved};

/// Running sessions are not told.
const RUNNING: &str = "Running sessions keep their permissions until they end. To revoke one in a running session, \
                       type `/permissions revoke` there.";

/// Lists what was saved, or takes it back.
#[derive(Args, Clone, Debug)]
pub struct PermissionsArgs {
    #[command(subcommand)]
    pub verb: Option<PermissionsVerb>,
}

#[derive(Subcommand, Clone, Debug)]
pub enum PermissionsVerb {
    /// Lists them, as without a verb
    List,
    /// Takes one back, by its number in the list, or all
    Revoke {
        /// A number, or `all`
        which: String,
    },
}

/// Returns the exit code.
pub fn run(args: &PermissionsArgs, env: &Env, out: &mut dyn Write) -> io::Result<u8> {
    let Some(home) = castor_home(env) else {
        writeln!(out, "castor: {NO_HOME}")?;
        return Ok(EXIT_INPUT);
    };
    let Some(PermissionsVerb::Revoke { which }) = &args.verb else {
        return match saved::list(&home) {
            Err(why) => writeln!(out, "{why}").map(|()| 1),
            Ok(list) if list.is_empty() => writeln!(out, "There are no permanent permissions.").map(|()| 0),
            Ok(list) => {
                for (n, it) in list.iter().enumerate() {
                    writeln!(out, "{}. {}", n + 1, escape_line(it))?;
                }
                writeln!(out, "\n`castor permissions revoke NUMBER` removes one.").map(|()| 0)
            }
        };
    };
    let at = match which.as_str() {
        "all" => Some(None),
        number => number.parse::<usize>().ok().and_then(|it| it.checked_sub(1)).map(Some),
    };
    let gone = at.map_or(Ok(0), |it| saved::revoke(&home, it))?;
    match gone {
        0 if which != "all" => {
            writeln!(out, "There is no permission {which}; `castor permissions` lists them.").map(|()| EXIT_INPUT)
        }
        0 => writeln!(out, "0 revoked.").map(|()| 0),
        n => writeln!(out, "{n} revoked. {RUNNING}").map(|()| 0),
    }
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::cli::testing::{parse, run_verb};
    use castor_base::{
        log::{Grant, PersistentGrant},
        path::AbsPath,
    };
    use castor_hands::secrets::Env;
    use castor_tools::workspace::saved;

    #[test]
    fn lists_and_revokes() {
        let temp = tempfile::tempdir().unwrap();
        let home = AbsPath::new(temp.path()).unwrap();
        let text = home.to_string();
        let env = Env::from_pairs([("CASTOR_HOME", text.as_str())]);
        let say = |line: &[&str]| run_verb(|out| run(&parse(line), &env, out));
        assert_eq!(say(&[]), ("There are no permanent permissions.\n".to_owned(), 0));
        let tool = "mcp_web_get".to_owned();
        let server = Some("web".to_owned());
        let one = PersistentGrant { tool, server, prefixes: vec![], args_pattern: None, modes: vec![], digest: None };
        saved::add(&home, &home, &one).unwrap();
        assert!(say(&[]).0.starts_with("1. the tool `web/mcp_web_get`\n"));
        assert_eq!(say(&["list"]), say(&[]));
        let write = Grant::Write { folder: home.join("out") };
        saved::save_grant(&home, &home.join("w"), &write, true).unwrap();
        assert!(say(&[]).0.contains(&format!("\n2. writing below {home}/out in the sandbox, in {home}/w\n")));
        let gone = format!("1 revoked. {}\n", super::RUNNING);
        assert_eq!(say(&["revoke", "2"]), (gone.clone(), 0));
        assert_eq!(say(&["revoke", "2"]).1, 42);
        assert_eq!(say(&["revoke", "1"]), (gone.clone(), 0));
        assert_eq!(say(&["revoke", "all"]), ("0 revoked.\n".to_owned(), 0));
    }
}
