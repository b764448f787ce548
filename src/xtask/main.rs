//! `cargo xtask`: what castor's developers run.
#![allow(clippy::disallowed_methods, reason = "no agent runs here")]

use std::{fs, io, path::Path};

use castor::cli::schema::SCHEMAS;
use castor_xtask::{docs, weight};
use clap::Parser;

/// What castor's developers run, from the folder of the repository
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Write the pages of docs/reference
    Docs,
    /// Write the files of schema/ that castor makes of its types
    Schemas,
    /// Print the lines of code of each crate, without tests, comments and blanks
    Weight,
}

fn main() -> io::Result<()> {
    match Task::parse() {
        Task::Docs => docs::write(Path::new("docs/reference")),
        Task::Schemas => SCHEMAS
            .iter()
            .try_for_each(|it| fs::write(Path::new("schema").join(it.name.to_owned() + ".json"), it.text())),
        Task::Weight => {
            print!("{}", weight::table(Path::new("src"))?);
            Ok(())
        }
    }
}
