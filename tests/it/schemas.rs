//! castor's own schemas: does a value fit them?

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use castor::cli::schema::SCHEMAS;
use jsonschema::Validator;
use serde_json::Value;

static VALIDATORS: LazyLock<BTreeMap<&str, Validator>> = LazyLock::new(|| {
    let validator = |name: &str, text: &str| {
        let mut schema: Value = serde_json::from_str(text).unwrap();
        // Their members are methods and places: one that is not among them has no shape.
        if ["methods", "drafts", "meta"].contains(&name) {
            schema["additionalProperties"] = false.into();
        }
        jsonschema::validator_for(&schema).unwrap()
    };
    SCHEMAS.iter().map(|it| (it.name, validator(it.name, &it.text()))).collect()
});

/// What is wrong with a value of that schema.
pub fn check(name: &str, value: &Value) -> Result<(), String> {
    let errors = VALIDATORS[name].iter_errors(value);
    let errors: Vec<String> = errors.map(|it| format!("{name} at {}: {it}", it.instance_path())).collect();
    if errors.is_empty() { Ok(()) } else { Err(format!("{}\n    {value}", errors.join("; "))) }
}

/// All lines of all session logs below a home.
pub fn check_logs(home: &Path) -> Result<(), String> {
    for path in files(&home.join(".castor/sessions"), "jsonl") {
        for line in fs::read_to_string(&path).unwrap_or_default().lines() {
            let line = serde_json::from_str(line).map_err(|it| format!("{line}: {it}"))?;
            check("log", &line)?;
        }
    }
    Ok(())
}

/// The files of a folder with this extension.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|it| it.unwrap().path());
    entries.filter(|it| it.extension().is_some_and(|it| it == extension)).collect()
}
