//! Servers in the settings files: what `castor mcp add` and `remove` change there, and `/mcp add` and `remove` likewise.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use castor_base::path::AbsPath;
use castor_hands::{http::origin_of, secrets::Env};
use castor_tools::workspace::{NO_HOME, castor_home, settings_edit};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ServerScope {
    /// ~/.castor/settings.json
    User,
    /// .castor/settings.json of this folder
    Project,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    Stdio,
    Sse,
    Http,
}

#[derive(Args, Clone, Debug)]
pub struct AddArgs {
    /// What to call it
    pub name: String,
    /// The program, or the address of a server on the web
    #[arg(value_name = "COMMAND_OR_URL")]
    pub what: String,
    /// Arguments of the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
    /// Whose settings
    #[arg(short, long, value_enum, default_value = "project")]
    pub scope: ServerScope,
    /// How it is spoken to [default: http for an address, else stdio]
    #[arg(short, long, visible_alias = "type", value_enum)]
    pub transport: Option<Transport>,
    /// A variable of the program; may be given again
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// A header of each request; may be given again
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// How long it may take for an answer, in milliseconds
    #[arg(long, value_name = "MS")]
    pub timeout: Option<u64>,
    /// Its tools run without a question; in a project's settings this counts for nothing
    #[arg(long)]
    pub trust: bool,
    /// What it is for
    #[arg(long)]
    pub description: Option<String>,
    /// Only these tools, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "TOOLS")]
    pub include_tools: Vec<String>,
    /// Not these tools, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "TOOLS")]
    pub exclude_tools: Vec<String>,
}

#[derive(Args, Clone, Debug)]
pub struct RemoveArgs {
    /// As the settings name it
    pub name: String,
    /// Whose settings
    #[arg(short, long, value_enum, default_value = "project")]
    pub scope: ServerScope,
}

/// A change of the servers in a settings file.
#[derive(Clone, Debug)]
pub enum ServerEdit {
    Add(AddArgs),
    Remove(RemoveArgs),
}

/// Why a settings file stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum EditFailure {
    /// It makes no sense as it is written.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Failed(String),
}

/// Variables, and the folder of the project.
pub type EditPlace<'a> = (&'a Env, &'a AbsPath);

impl ServerEdit {
    pub fn scope(&self) -> ServerScope {
        match self {
            Self::Add(it) => it.scope,
            Self::Remove(it) => it.scope,
        }
    }

    /// Changes the file. Returns what was done, in words.
    ///
    /// # Errors
    /// Why it stays as it is.
    pub fn apply(&self, place: EditPlace<'_>) -> Result<String, EditFailure> {
        let scope = self.scope();
        let (name, value) = match self {
            Self::Add(it) => (&it.name, Some(server(it).map_err(EditFailure::Refused)?)),
            Self::Remove(it) => (&it.name, None),
        };
        let file = file(scope, place).map_err(EditFailure::Refused)?;
        let is_new = value.is_some();
        let before = settings_edit::edit_member(&file, &["mcpServers", name], value, is_shared(scope));
        match (is_new, before.map_err(|it| EditFailure::Failed(it.to_string()))?) {
            (true, None) => Ok(format!("Added the MCP server {name} in {file}")),
            (true, Some(_)) => Ok(format!("Replaced the MCP server {name} in {file}")),
            (false, Some(_)) => Ok(format!("Removed the MCP server {name} from {file}")),
            (false, None) => {
                Err(EditFailure::Refused(format!("{file} has no MCP server {name}; `--scope` names another file")))
            }
        }
    }
}

/// Reads what is typed behind `/mcp add` or another such command.
///
/// # Errors
/// What is wrong with it, and how it is written.
pub fn read_line<T: Args>(command: &'static str, typed: &str) -> Result<T, String> {
    let mut line = T::augment_args(clap::Command::new(command).no_binary_name(true).disable_help_flag(true));
    let usage = line.render_usage().to_string();
    let found = match shlex::split(typed) {
        Some(words) => line.try_get_matches_from_mut(words).and_then(|it| T::from_arg_matches(&it)),
        None => return Err(format!("a quote is not closed. {}", in_words(&usage))),
    };
    found.map_err(|it| {
        let said = it.to_string();
        let why: Vec<&str> = said.lines().take_while(|it| !it.trim().is_empty()).map(str::trim).collect();
        format!("{}. {}", why.join(" ").trim_start_matches("error: "), in_words(&usage))
    })
}

/// `Usage: …`, with what else there is.
fn in_words(usage: &str) -> String {
    let usage = usage.trim().trim_start_matches("Usage: ");
    format!("Usage: `{usage}`; the options are those of `castor mcp`")
}

/// Others read the settings of a project.
fn is_shared(scope: ServerScope) -> bool {
    scope == ServerScope::Project
}

fn file(scope: ServerScope, (env, cwd): EditPlace<'_>) -> Result<AbsPath, String> {
    let home = castor_home(env);
    match scope {
        ServerScope::User => Ok(home.ok_or(NO_HOME)?.join("settings.json")),
        ServerScope::Project => {
            let file = cwd.join(".castor").join("settings.json");
            match home.is_some_and(|it| it.join("settings.json") == file) {
                true => Err("this is your home folder: write `--scope user`".to_owned()),
                false => Ok(file),
            }
        }
    }
}

fn server(args: &AddArgs) -> Result<Value, String> {
    if args.name.trim().is_empty() || args.name.chars().any(char::is_control) {
        return Err("a server needs a name without control characters".to_owned());
    }
    let address = origin_of(&args.what);
    let transport = args.transport.unwrap_or(if address.is_some() { Transport::Http } else { Transport::Stdio });
    let mut res = Map::new();
    match transport {
        Transport::Stdio => {
            if !args.header.is_empty() {
                return Err("--header is for servers on the web; a program gets variables, by --env".to_owned());
            }
            res.insert("command".to_owned(), args.what.as_str().into());
            if !args.args.is_empty() {
                res.insert("args".to_owned(), json!(args.args));
            }
            insert_pairs(&mut res, "env", pairs(&args.env, '=', "--env NAME=VALUE")?);
        }
        Transport::Http | Transport::Sse => {
            if address.is_none() {
                return Err(format!("{:?} is no address; write one with http:// or https://", args.what));
            }
            if !args.env.is_empty() || !args.args.is_empty() {
                return Err("arguments and --env are for programs; a server on the web gets --header".to_owned());
            }
            res.insert("url".to_owned(), args.what.as_str().into());
            res.insert("type".to_owned(), if transport == Transport::Sse { "sse" } else { "http" }.into());
            insert_pairs(&mut res, "headers", pairs(&args.header, ':', "--header \"NAME: VALUE\"")?);
        }
    }
    let lists = [("includeTools", &args.include_tools), ("excludeTools", &args.exclude_tools)];
    res.extend(args.timeout.map(|it| ("timeout".to_owned(), it.into())));
    res.extend(args.trust.then(|| ("trust".to_owned(), true.into())));
    res.extend(args.description.iter().map(|it| ("description".to_owned(), it.as_str().into())));
    res.extend(lists.iter().filter(|it| !it.1.is_empty()).map(|(key, it)| ((*key).to_owned(), json!(it))));
    Ok(res.into())
}

fn insert_pairs(to: &mut Map<String, Value>, key: &str, pairs: Map<String, Value>) {
    if !pairs.is_empty() {
        to.insert(key.to_owned(), pairs.into());
    }
}

fn pairs(all: &[String], between: char, form: &str) -> Result<Map<String, Value>, String> {
    let pair = |it: &String| {
        // The value may be a secret: it is not repeated.
        let (name, value) = it.split_once(between).filter(|it| !it.0.trim().is_empty()).ok_or(form)?;
        Ok((name.trim().to_owned(), value.trim().into()))
    };
    all.iter().map(pair).collect::<Result<_, &str>>().map_err(|form| format!("write {form}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{AddArgs, RemoveArgs, ServerScope, read_line, server};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        add: AddArgs,
    }

    fn check(line: &str, expected: &str) {
        let args = Line::try_parse_from(["add"].into_iter().chain(line.split(' '))).unwrap().add;
        let said = server(&args).map_or_else(|why| why, |it| it.to_string());
        assert_eq!(said, expected, "{line}");
    }

    #[test]
    fn servers_as_gemini_cli_adds_them() {
        check("s node server.js --port 1", r#"{"command":"node","args":["server.js","--port","1"]}"#);
        check("-e A=b=c -e D= s node", r#"{"command":"node","env":{"A":"b=c","D":""}}"#);
        check("s https://h/mcp", r#"{"url":"https://h/mcp","type":"http"}"#);
        check(
            "-t sse -H A:b --timeout 5 --trust --include-tools x,y --exclude-tools z s http://h/sse",
            r#"{"url":"http://h/sse","type":"sse","headers":{"A":"b"},"timeout":5,"trust":true,"includeTools":["x","y"],"excludeTools":["z"]}"#,
        );
        check("--transport http s node", r#""node" is no address; write one with http:// or https://"#);
        check("-H A:b s node", "--header is for servers on the web; a program gets variables, by --env");
        check("-e A=b s https://h", "arguments and --env are for programs; a server on the web gets --header");
        check("-e t0ken s node", "write --env NAME=VALUE");
        check("-H =t0ken s https://h", "write --header \"NAME: VALUE\"");
    }

    #[test]
    fn lines_of_a_session_are_read_as_a_shell_would() {
        let read = |typed: &str| read_line::<AddArgs>("/mcp add", typed);
        let it = read("-s user -e 'A=b c' s node \"a b\" -x").unwrap();
        assert_eq!(
            (it.scope, it.env, it.args),
            (ServerScope::User, vec!["A=b c".to_owned()], vec!["a b".into(), "-x".into()])
        );
        let usage =
            "Usage: `/mcp add [OPTIONS] <NAME> <COMMAND_OR_URL> [ARGS]...`; the options are those of `castor mcp`";
        for (typed, why) in [
            ("", "the following required arguments were not provided: <NAME> <COMMAND_OR_URL>"),
            ("s", "the following required arguments were not provided: <COMMAND_OR_URL>"),
            ("s 'node", "a quote is not closed"),
            ("--fly s node", "unexpected argument '--fly' found"),
            ("--help", "unexpected argument '--help' found"),
        ] {
            assert_eq!(read(typed).unwrap_err(), format!("{why}. {usage}"), "{typed}");
        }
        let scope = read_line::<RemoveArgs>("/mcp remove", "-s all s").unwrap_err();
        assert!(scope.starts_with("invalid value 'all' for '--scope <SCOPE>'"), "{scope}");
    }
}
