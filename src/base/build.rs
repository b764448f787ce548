//! The build's own step: the table of models becomes JSON, which a process reads in a fraction of TOML's time.
#![allow(clippy::disallowed_methods, reason = "no agent runs here")]

use std::{env, error::Error, fs, path::Path};

const TABLE: &str = "model_table/models.toml";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={TABLE}");
    let table: serde_json::Value = toml::from_str(&fs::read_to_string(TABLE)?)?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("models.json"), table.to_string())?;
    Ok(())
}
