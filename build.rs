//! The build's own step: the table of models becomes JSON, which a process reads in a fraction of TOML's time.

use std::{env, fs, path::Path};

const TABLE: &str = "src/base/model_table/models.toml";

fn main() {
    println!("cargo::rerun-if-changed={TABLE}");
    let text = fs::read_to_string(TABLE).expect("models.toml is there");
    let table: serde_json::Value = toml::from_str(&text).expect("models.toml is TOML");
    let out = env::var("OUT_DIR").expect("cargo names a folder");
    fs::write(Path::new(&out).join("models.json"), table.to_string()).expect("the folder can be written");
}
