//! Test fixture of commands: parsing of a command line, and what a verb said.
#![allow(clippy::disallowed_methods)]

use clap::{Args, Parser};

pub use castor_fixtures::Ground;

#[derive(Parser)]
struct Line<A: Args> {
    #[command(flatten)]
    args: A,
}

/// The arguments behind a verb.
pub fn parse<A: Args>(line: &[&str]) -> A {
    let line = ["verb"].iter().chain(line);
    Line::<A>::try_parse_from(line).unwrap_or_else(|it| panic!("{it}")).args
}

/// What a verb that can always be printed said, with its exit code.
pub fn run_verb(run: impl FnOnce(&mut Vec<u8>) -> std::io::Result<u8>) -> (String, u8) {
    let mut out = Vec::new();
    let code = run(&mut out).unwrap();
    (String::from_utf8(out).unwrap(), code)
}
