//! `castor completions`, `castor man` and `castor update`: what belongs to an installed program.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, Command, Subcommand};
use clap_complete::Shell;

use super::exits::EXIT_INPUT;

#[derive(Clone, Debug, Subcommand)]
pub enum InstallVerb {
    /// Print a completion script for bash, zsh, fish, elvish or powershell
    #[command(hide = true)]
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands
    #[command(hide = true)]
    Man(ManArgs),
    /// Say how to get a newer castor
    #[command(hide = true)]
    Update,
}

/// Prints a completion script.
#[derive(Args, Clone, Debug)]
pub struct CompletionsArgs {
    /// The shell that reads it
    pub shell: Shell,
}

/// Prints the manual page, or writes one file for each command.
#[derive(Args, Clone, Debug)]
pub struct ManArgs {
    /// A folder for the pages of all commands; it is made if it is not there
    #[arg(long, value_name = "FOLDER")]
    pub to: Option<PathBuf>,
}

/// Runs one of them; `command` is the whole of castor's command line.
///
/// # Errors
/// The output could not be written.
pub fn run(verb: &InstallVerb, mut command: Command, out: &mut dyn Write) -> io::Result<u8> {
    match verb {
        InstallVerb::Completions(args) => {
            // The generator panics where it cannot write.
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut command, "castor", &mut script);
            out.write_all(&script).map(|()| 0)
        }
        InstallVerb::Man(args) => man(args, command, out),
        // The name that it was started by may be a link of an installer.
        InstallVerb::Update => update(&std::env::current_exe()?, out),
    }
}

// The generator of the pages writes to a path as well.
#[allow(clippy::disallowed_methods)]
fn man(args: &ManArgs, command: Command, out: &mut dyn Write) -> io::Result<u8> {
    let Some(folder) = &args.to else { return clap_mangen::Man::new(command).render(out).map(|()| 0) };
    match fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder)) {
        Ok(()) => writeln!(out, "The pages are in {}.", folder.display()).map(|()| 0),
        Err(it) => writeln!(out, "castor: cannot write pages to {}: {it}", folder.display()).map(|()| EXIT_INPUT),
    }
}

/// Says how to get a newer castor. castor downloads nothing by itself.
fn update(program: &Path, out: &mut dyn Write) -> io::Result<u8> {
    writeln!(out, "castor {} at {}", env!("CARGO_PKG_VERSION"), program.display())?;
    let (by, how) = installer(program);
    writeln!(out, "{by}. For a newer one: {how}").map(|()| 0)
}

/// Who put the program there, and what updates it.
fn installer(program: &Path) -> (&'static str, &'static str) {
    let has = |folder: &str| program.iter().any(|it| it == folder);
    match () {
        () if has("node_modules") => ("npm installed it", "npm install -g castor-agent@latest"),
        () if has("Cellar") || has("homebrew") || has("linuxbrew") => ("Homebrew installed it", "brew upgrade castor"),
        () if program.starts_with("/nix/store") => ("Nix installed it", "update its input, then build again"),
        () if has(".cargo") => {
            ("cargo installed it", "cargo binstall castor, or cargo install --path . --force in its source folder")
        }
        () if has("target") => ("It is a build of its source folder", "git pull, then cargo build --release"),
        () => ("It comes from an archive", "unpack the newer archive over it, and check its .sha256 file first"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::installer;

    #[test]
    fn installers_are_told_by_the_path() {
        for (path, want) in [
            ("/usr/lib/node_modules/castor-agent/node_modules/castor-agent-linux-x64/castor", "npm installed it"),
            ("/opt/homebrew/Cellar/castor/0.1.0/bin/castor", "Homebrew installed it"),
            ("/nix/store/abc-castor-0.1.0/bin/castor", "Nix installed it"),
            ("/home/ada/.cargo/bin/castor", "cargo installed it"),
            ("/home/ada/castor/target/release/castor", "It is a build of its source folder"),
            ("/usr/local/bin/castor", "It comes from an archive"),
        ] {
            assert_eq!(installer(Path::new(path)).0, want, "{path}");
        }
    }
}
