//! `castor mcp`: looks at the MCP servers of a folder, changes those of the settings, and logs in at them.

mod browser;
mod changes;
mod logins;
mod states;

use std::io::{self, Write};

use clap::{Args, Subcommand};

use super::exits;
use castor_agent::settings::server_edit::{AddArgs, RemoveArgs, ServerEdit};
use castor_base::path::AbsPath;
use castor_hands::secrets::Env;

/// Looks at the MCP servers of this folder, changes them, and logs in at them.
#[derive(Args, Clone, Debug)]
pub struct McpArgs {
    #[command(subcommand)]
    pub verb: Option<McpVerb>,
}

#[derive(Subcommand, Clone, Debug)]
pub enum McpVerb {
    /// Starts them and says how each is, as without a verb
    List,
    /// The same with all that they offer; fails if one that should start does not
    #[command(after_help = exits::help("mcp test"))]
    Test {
        /// Only this server
        name: Option<String>,
    },
    /// Puts a server into a settings file
    Add(AddArgs),
    /// Takes a server out of a settings file
    Remove(RemoveArgs),
    /// Takes a server off `mcp.excluded` in your settings
    Enable {
        /// As `list` names it
        name: String,
    },
    /// Puts a server on `mcp.excluded` in your settings
    Disable {
        /// As `list` names it
        name: String,
    },
    /// Logs in at a server by OAuth, with a page in your browser
    #[command(after_help = exits::help("mcp login"))]
    Login {
        /// As `list` names it
        name: String,
        /// Only print the address of the page
        #[arg(long)]
        no_browser: bool,
    },
    /// Revokes and forgets the tokens of a server
    Logout {
        /// As `list` names it
        name: String,
    },
}

/// Returns the exit code.
///
/// # Errors
/// The output's.
pub fn run(args: &McpArgs, env: &Env, cwd: &AbsPath, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    match &args.verb {
        None | Some(McpVerb::List) => states::list(cwd, out, err),
        Some(McpVerb::Test { name }) => states::test(cwd, name.as_deref(), out, err),
        Some(McpVerb::Add(server)) => changes::edit(&ServerEdit::Add(server.clone()), (env, cwd), out, err),
        Some(McpVerb::Remove(server)) => changes::edit(&ServerEdit::Remove(server.clone()), (env, cwd), out, err),
        Some(McpVerb::Enable { name }) => changes::switch(name, true, (env, cwd), out, err),
        Some(McpVerb::Disable { name }) => changes::switch(name, false, (env, cwd), out, err),
        Some(McpVerb::Login { name, no_browser }) => logins::log_in(name, !no_browser, (env, cwd), out, err),
        Some(McpVerb::Logout { name }) => logins::log_out(name, (env, cwd), out, err),
    }
}
