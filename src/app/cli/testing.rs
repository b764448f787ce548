//! Test fixture of commands: a folder with a home and a workspace, and parsing of a command line.
#![allow(clippy::disallowed_methods)]

use clap::{Args, Parser};

use crate::{
    base::path::AbsPath,
    world::{disk, secrets::Env},
};

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

/// `h` is the home, `w` the workspace, where a test makes them.
pub struct Ground {
    _dir: tempfile::TempDir,
    pub root: AbsPath,
}

impl Ground {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = disk::real_path(&AbsPath::new(dir.path()).unwrap()).unwrap();
        Self { _dir: dir, root }
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// `trust` is what `CASTOR_TRUST_WORKSPACE` says.
    pub fn env(&self, trust: &str) -> Env {
        let home = self.root.join("h").to_string();
        Env::from_pairs([("HOME", home.as_str()), ("CASTOR_TRUST_WORKSPACE", trust)])
    }
}

/// What a verb that can always be printed said, with its exit code.
pub fn run_verb(run: impl FnOnce(&mut Vec<u8>) -> std::io::Result<u8>) -> (String, u8) {
    let mut out = Vec::new();
    let code = run(&mut out).unwrap();
    (String::from_utf8(out).unwrap(), code)
}
