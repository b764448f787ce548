//! The manifest of an extension, `gemini-extension.json`: Gemini CLI's keys.

use serde_json::{Map, Value};

use crate::workspace::jsonc;
use castor_base::text;

/// Names that say something else in front of a command's name.
const RESERVED: &[&str] = &["built-in", "castor", "client", "extension", "skill", "user", "workspace"];
const MAX_NAME: usize = 64;
/// Longest texts of a manifest, in characters.
const MAX_TEXT: usize = 300;
/// Context that an extension has without a word about it.
const CONTEXT: &str = "GEMINI.md";
/// Keys that change nothing in castor, and why.
const UNUSED: &[(&str, &str)] = &[
    ("themes", "castor has no themes"),
    ("plan", "plans lie in castor's own folder"),
    ("migratedTo", "castor does not follow it; install the other place"),
    ("$schema", ""),
];

/// What a manifest says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtensionManifest {
    pub name: String,
    pub version: String,
    pub description: String,
    /// As in settings, without `trust`: no extension answers its own questions.
    pub servers: Map<String, Value>,
    /// Files of context, from its folder on.
    pub context: Vec<String>,
    pub exclude_tools: Vec<String>,
    pub settings: Vec<ExtensionSetting>,
    /// What of it does not count, and why.
    pub notes: Vec<String>,
}

/// A value that the user gives an extension, in a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionSetting {
    pub name: String,
    pub description: String,
    pub variable: String,
    pub is_sensitive: bool,
}

/// Tells whether it may be the name of an extension: it names a folder, and stands before names of commands.
pub fn is_extension_name(name: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '-';
    let starts = name.starts_with(|it: char| it.is_ascii_alphanumeric());
    starts && name.len() <= MAX_NAME && name.chars().all(plain) && !RESERVED.contains(&name.to_lowercase().as_str())
}

/// # Errors
/// What is wrong with it as the name of an extension.
pub fn check_name(name: &str) -> Result<(), String> {
    match is_extension_name(name) {
        true => Ok(()),
        false => Err(format!(
            "the name {name:?} is not possible: letters, digits and dashes, at most {MAX_NAME}, and none of {}",
            RESERVED.join(", ")
        )),
    }
}

/// Reads it.
///
/// # Errors
/// The first fault; nothing of such an extension counts.
pub fn parse(bytes: &[u8]) -> Result<ExtensionManifest, String> {
    let value = jsonc::parse(bytes).map_err(|it| format!("{}:{}: {}", it.line, it.column, it.message))?;
    let keys = value.as_object().ok_or("should hold an object {…}")?;
    let text = |key: &str| keys.get(key).and_then(Value::as_str).map(|it| plain(it.trim()));
    let name = text("name").filter(|it| !it.is_empty()).ok_or("has no name")?;
    check_name(&name)?;
    let version = text("version").filter(|it| !it.is_empty()).ok_or("has no version")?;
    let mut res = ExtensionManifest {
        name,
        version,
        description: text("description").unwrap_or_default(),
        ..ExtensionManifest::default()
    };
    for (key, it) in keys {
        match key.as_str() {
            "name" | "version" | "description" => (),
            "mcpServers" => res.servers = servers(it)?,
            "contextFileName" => res.context = context(it)?,
            "excludeTools" => res.exclude_tools = texts("excludeTools", it)?,
            "settings" => res.settings = settings(it)?,
            other => res.notes.extend(unused(other)),
        }
    }
    if !keys.contains_key("contextFileName") {
        res.context.push(CONTEXT.to_owned());
    }
    Ok(res)
}

fn unused(key: &str) -> Option<String> {
    match UNUSED.iter().find(|it| it.0 == key) {
        Some((_, "")) => None,
        Some((_, why)) => Some(format!("{key} changes nothing: {why}")),
        None => Some(format!("castor does not know the key {}", plain(key))),
    }
}

/// One line without what deceives.
fn plain(it: &str) -> String {
    let spaced = it.chars().map(|it| if it.is_whitespace() { ' ' } else { it });
    let kept: String = spaced.filter(|it| !text::is_deceptive(*it) && !text::is_hidden(*it)).collect();
    text::first_line(&kept, MAX_TEXT)
}

fn servers(it: &Value) -> Result<Map<String, Value>, String> {
    let mut res = it.as_object().ok_or("mcpServers should be an object {…}")?.clone();
    for server in res.values_mut().filter_map(Value::as_object_mut) {
        server.remove("trust");
        server.remove("sandbox");
    }
    Ok(res)
}

fn texts(key: &str, it: &Value) -> Result<Vec<String>, String> {
    let odd = || format!("{key} should be a list of texts");
    let all = it.as_array().ok_or_else(odd)?.iter();
    all.map(|it| it.as_str().map(str::to_owned).ok_or_else(odd)).collect()
}

fn context(it: &Value) -> Result<Vec<String>, String> {
    let all = match it {
        Value::String(it) => vec![it.clone()],
        it => texts("contextFileName", it)?,
    };
    for it in &all {
        let leads_out = it.starts_with('/') || it.contains('\\') || it.split('/').any(|it| it == "..");
        if leads_out || !it.to_ascii_lowercase().ends_with(".md") {
            return Err(format!(
                "contextFileName {it:?}: only a file of its own folder, whose name ends with .md, counts"
            ));
        }
    }
    Ok(all)
}

fn settings(it: &Value) -> Result<Vec<ExtensionSetting>, String> {
    let one = |it: &Value| {
        let text = |key: &str| it.get(key).and_then(Value::as_str).map(plain).filter(|it| !it.is_empty());
        let variable = text("envVar").filter(|it| is_variable(it)).ok_or("a setting names no variable in envVar")?;
        Ok(ExtensionSetting {
            name: text("name").unwrap_or_else(|| variable.clone()),
            description: text("description").unwrap_or_default(),
            is_sensitive: it.get("sensitive").and_then(Value::as_bool).unwrap_or_default(),
            variable,
        })
    };
    it.as_array().ok_or("settings should be a list")?.iter().map(one).collect()
}

/// What loaders and shells obey is no setting.
fn is_variable(name: &str) -> bool {
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let starts = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    let obeyed = [
        "LD_",
        "DYLD_",
        "BASH_",
        "GIT_",
        "PATH",
        "HOME",
        "ENV",
        "IFS",
        "NODE_OPTIONS",
        "PYTHONHOME",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PERL5OPT",
        "RUBYOPT",
        "SHELL",
    ];
    starts
        && name.chars().all(is_word)
        && !obeyed.iter().any(|it| name == *it || it.ends_with('_') && name.starts_with(it))
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn fault(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn all_keys_are_read() {
        let it = parse(
            br#"{ // Comments are fine.
                "name": "My-ext", "version": "1.0", "description": "does\nthings", "themes": [], "odd": 1,
                "mcpServers": {"s": {"command": "c", "trust": true, "sandbox": false}},
                "contextFileName": ["A.md", "docs/B.md"], "excludeTools": ["web_fetch"],
                "settings": [{"name": "Key", "description": "d", "envVar": "MY_KEY", "sensitive": true}]
            }"#,
        )
        .unwrap();
        assert_eq!((it.name.as_str(), it.description.as_str()), ("My-ext", "does things"));
        assert_eq!(it.servers["s"], serde_json::json!({"command": "c"}), "no extension trusts itself");
        assert_eq!(it.context, ["A.md", "docs/B.md"]);
        assert_eq!((it.settings[0].variable.as_str(), it.settings[0].is_sensitive), ("MY_KEY", true));
        assert_eq!(it.notes, ["themes changes nothing: castor has no themes", "castor does not know the key odd"]);
        assert_eq!(parse(br#"{"name": "a", "version": "1"}"#).unwrap().context, ["GEMINI.md"]);
    }

    #[test]
    fn what_leads_out_or_takes_a_name_is_refused() {
        for (text, says) in [
            ("[]", "should hold an object"),
            (r#"{"version": "1"}"#, "has no name"),
            (r#"{"name": "a"}"#, "has no version"),
            (r#"{"name": "../a", "version": "1"}"#, "is not possible"),
            (r#"{"name": "user", "version": "1"}"#, "is not possible"),
            (r#"{"name": "Workspace", "version": "1"}"#, "is not possible"),
            (r#"{"name": "a", "version": "1", "contextFileName": "../../.ssh/x.md"}"#, "its own folder"),
            (r#"{"name": "a", "version": "1", "contextFileName": "/etc/x.md"}"#, "its own folder"),
            (r#"{"name": "a", "version": "1", "contextFileName": ".env"}"#, "its own folder"),
            (r#"{"name": "a", "version": "1", "mcpServers": []}"#, "mcpServers"),
            (r#"{"name": "a", "version": "1", "settings": [{"envVar": "LD_PRELOAD"}]}"#, "names no variable"),
            (r#"{"name": "a", "version": "1", "settings": [{"envVar": "PYTHONPATH"}]}"#, "names no variable"),
            (r#"{"name": "a", "version": "1", "settings": [{"envVar": "A\nB"}]}"#, "names no variable"),
        ] {
            assert!(fault(text).contains(says), "{text}: {}", fault(text));
        }
    }
}
