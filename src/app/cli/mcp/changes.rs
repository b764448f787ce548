//! `castor mcp add`, `remove`, `enable` and `disable`: servers in the settings files.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use crate::{
    app::{
        cli::{
            exits::{EXIT_FAILED, EXIT_INPUT},
            terminal_text::escape_line,
        },
        session::place::load_ground,
        settings::options::Options,
    },
    base::path::AbsPath,
    world::{
        http::origin_of,
        secrets::Env,
        workspace::{NO_HOME, castor_home, settings_edit},
    },
};

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

type Place<'a> = (&'a Env, &'a AbsPath);

pub fn add(args: &AddArgs, env: &Env, cwd: &AbsPath, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let (server, file) = match server(args).and_then(|it| Ok((it, file(args.scope, (env, cwd))?))) {
        Ok(it) => it,
        Err(why) => return writeln!(err, "castor: {}", escape_line(&why)).map(|()| EXIT_INPUT),
    };
    match settings_edit::edit_member(&file, &["mcpServers", &args.name], Some(server), is_shared(args.scope)) {
        Ok(before) => {
            let (name, what) = (escape_line(&args.name), if before.is_some() { "Replaced" } else { "Added" });
            writeln!(out, "{what} the MCP server {name} in {file}.")?;
            if args.scope == ServerScope::Project {
                writeln!(out, "It starts once you trust this folder with it; the next session asks.")?;
            }
            Ok(0)
        }
        Err(it) => writeln!(err, "castor: {}", escape_line(&it.to_string())).map(|()| EXIT_FAILED),
    }
}

pub fn remove(
    name: &str,
    scope: ServerScope,
    place: Place<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let file = match file(scope, place) {
        Ok(it) => it,
        Err(why) => return writeln!(err, "castor: {}", escape_line(&why)).map(|()| EXIT_INPUT),
    };
    let shown = escape_line(name);
    match settings_edit::edit_member(&file, &["mcpServers", name], None, is_shared(scope)) {
        Ok(Some(_)) => writeln!(out, "Removed the MCP server {shown} from {file}.").map(|()| 0),
        Ok(None) => {
            writeln!(err, "castor: {file} has no MCP server {shown}; `--scope` names another file").map(|()| EXIT_INPUT)
        }
        Err(it) => writeln!(err, "castor: {}", escape_line(&it.to_string())).map(|()| EXIT_FAILED),
    }
}

pub fn switch(
    name: &str,
    is_on: bool,
    (env, cwd): Place<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let Some(home) = castor_home(env) else {
        return writeln!(err, "castor: {NO_HOME}").map(|()| EXIT_FAILED);
    };
    let (shown, what) = (escape_line(name), if is_on { "on" } else { "off" });
    let (_, settings) = load_ground(&Options::default(), env, cwd);
    let is_it = |it: &str| it.eq_ignore_ascii_case(name);
    let is_known =
        settings.mcp.servers.iter().any(|it| is_it(&it.name)) || settings.mcp.off.iter().any(|it| is_it(&it.0));
    let file = home.join("settings.json");
    match settings_edit::edit_list(&file, &["mcp", "excluded"], name, !is_on) {
        Ok(true) => writeln!(out, "The MCP server {shown} is {what} in new sessions.")?,
        Ok(false) => writeln!(out, "The MCP server {shown} is {what} already in {file}.")?,
        Err(it) => return writeln!(err, "castor: {}", escape_line(&it.to_string())).map(|()| EXIT_FAILED),
    }
    if !is_known {
        writeln!(out, "The settings that count in this folder name no such server.")?;
    }
    // Another file may say no as well.
    let (_, settings) = load_ground(&Options::default(), env, cwd);
    if let Some(why) = settings.mcp.exclusion_reason(name).filter(|_| is_on) {
        writeln!(out, "It stays off here: {why}. `castor config explain mcp.excluded` says where.")?;
    }
    Ok(0)
}

/// Others read the settings of a project.
fn is_shared(scope: ServerScope) -> bool {
    scope == ServerScope::Project
}

fn file(scope: ServerScope, (env, cwd): Place<'_>) -> Result<AbsPath, String> {
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

    use super::{AddArgs, server};

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
}
