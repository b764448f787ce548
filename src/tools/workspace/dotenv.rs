//! `.env` files of a workspace: harmless variables that the environment lacks.

use crate::workspace::{Warning, castor_home, gemini_home, project::ProjectFiles};
use castor_base::{dotenv::parse_lines, path::AbsPath};
use castor_hands::{disk, secrets::Env};

/// What a file may set: keys, and where and how loud castor works. Never homes, paths, loaders, proxies or addresses:
/// they would decide what runs, and where keys go.
pub const ALLOWED_VARS: &[&str] = &[
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_CLOUD_LOCATION",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_MODEL",
    "CASTOR_MODEL",
    "CASTOR_LOG",
];
const MAX_BYTES: u64 = 1 << 20;
/// More refused names of a file are not said.
const MAX_NAMES: usize = 50;

/// The environment with what the project's nearest file and then the user's own add to it.
pub fn extend_env(env: &Env, project: &ProjectFiles) -> (Env, Vec<Warning>) {
    let (mut res, mut warnings) = (env.clone(), Vec::new());
    let mut add = |origin: String, bytes: &[u8]| {
        let mut refused: Vec<Warning> = Vec::new();
        for (line, name, value) in parse_lines(&String::from_utf8_lossy(bytes)) {
            let is_new = || refused.len() < MAX_NAMES && refused.iter().all(|it| it.key.as_ref() != Some(&name));
            match ALLOWED_VARS.contains(&name.as_str()) {
                true => res.set_if_absent(&name, &value, (&origin, line)),
                false if is_for_castor(&name) && is_new() => refused.push(Warning {
                    origin: origin.clone(),
                    at: Some((line, 1)),
                    key: Some(name),
                    message: "a file may not set it for castor: set it in the environment".to_owned(),
                }),
                false => (),
            }
        }
        warnings.extend(refused);
    };
    if let Some((file, bytes)) = project.env_file() {
        add(file.to_string(), bytes);
    }
    let home = env.get("HOME").and_then(AbsPath::new);
    let users = [castor_home(env), gemini_home(env), home].into_iter().flatten().map(|it| it.join(".env"));
    if let Some((file, bytes)) =
        users.filter_map(|it| Some((disk::read_head(&it, MAX_BYTES).ok()?, it))).map(|(a, b)| (b, a)).next()
    {
        add(file.to_string(), &bytes);
    }
    (res, warnings)
}

/// What castor would obey if it were set elsewhere. The rest of a project's file is for its programs.
fn is_for_castor(name: &str) -> bool {
    const OBEYED_PREFIXES: &[&str] =
        &["ANTHROPIC_", "CASTOR_", "GEMINI_", "GOOGLE_", "OPENAI_", "OPENROUTER_", "OTEL_"];
    let upper = name.to_ascii_uppercase();
    OBEYED_PREFIXES.iter().any(|it| upper.starts_with(it)) || upper.ends_with("_PROXY")
}
