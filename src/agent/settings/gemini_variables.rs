//! The table of Gemini CLI's variables that castor does not go by, and what there is in their place.

use super::gemini;
use castor_hands::secrets::Env;
use castor_tools::workspace::Warning;

const CONTAINER: &str = "castor starts no container, its own sandbox is on: security.sandbox.level";
const CODE_ASSIST: &str = "castor has API keys and Vertex AI, no plans of Google's";

/// What users set. What Gemini CLI, its extension of an editor and its tests set for themselves is not among them.
#[rustfmt::skip]
pub const VARIABLES: &[(&str, &str)] = &[
    ("BUILD_SANDBOX", CONTAINER),
    ("CLI_TITLE", "castor leaves the title of the terminal alone"),
    ("CODE_ASSIST_API_VERSION", CODE_ASSIST),
    ("CODE_ASSIST_ENDPOINT", CODE_ASSIST),
    ("GEMINI_DEBUG_LOG_FILE", "CASTOR_LOG_FILE and CASTOR_LOG say where and what castor logs"),
    ("GEMINI_DEFAULT_AUTH_TYPE", "security.auth.selectedType"),
    ("GEMINI_SANDBOX", CONTAINER),
    ("GEMINI_SANDBOX_IMAGE", CONTAINER),
    ("GEMINI_SANDBOX_PROXY_COMMAND", CONTAINER),
    ("GEMINI_SYSTEM_MD", "castor's instructions are its own: put yours into GEMINI.md"),
    ("GEMINI_TELEMETRY_LOG_PROMPTS", "castor's telemetry holds no prompts and no arguments"),
    ("GEMINI_TELEMETRY_USE_CLI_AUTH", "castor has no login of Google's"),
    ("GEMINI_TELEMETRY_USE_COLLECTOR", "castor exports to a collector anyway"),
    ("GEMINI_WRITE_SYSTEM_MD", "castor writes its instructions to no file"),
    ("OTLP_GOOGLE_CLOUD_PROJECT", "castor exports to a collector: telemetry.otlpEndpoint"),
    ("SANDBOX_ENV", CONTAINER),
    ("SANDBOX_FLAGS", CONTAINER),
    ("SANDBOX_MOUNTS", CONTAINER),
    ("SANDBOX_PORTS", CONTAINER),
    ("SANDBOX_SET_UID_GID", CONTAINER),
    ("SEATBELT_PROFILE", "castor's sandbox has levels: security.sandbox.level"),
];

/// Variables of settings of which some values stand for nothing.
const OF_SETTINGS: &[(&str, &str)] =
    &[("GEMINI_TELEMETRY_OTLP_PROTOCOL", "telemetry.otlpProtocol"), ("GEMINI_TELEMETRY_TARGET", "telemetry.target")];

/// Those that are set, for nothing.
pub fn without_effect(env: &Env) -> Vec<Warning> {
    let warning = |name: &str, why: &str| Warning {
        origin: "the environment".to_owned(),
        at: None,
        key: Some(name.to_owned()),
        message: why.to_owned(),
    };
    let set = VARIABLES.iter().filter(|it| env.get(it.0).is_some_and(|it| !matches!(it, "false" | "0")));
    let refused = OF_SETTINGS.iter().filter_map(|(name, path)| Some((*name, gemini::refusal(path, env.get(name)?)?)));
    set.copied().chain(refused).map(|(name, why)| warning(name, why)).collect()
}
