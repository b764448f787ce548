//! Settings files, layer by layer, with the errors in their text.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::workspace::{Reader, Warning, castor_home, gemini_home, jsonc};
use castor_base::path::AbsPath;
use castor_hands::secrets::{Env, is_open_to_workspace};

/// The place of a layer; later ones win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    SystemDefaults,
    /// An extension: servers, hooks and excluded tools, and nothing else.
    Extension,
    User,
    Workspace,
    SystemOverrides,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SystemDefaults => "system defaults",
            Self::Extension => "extension",
            Self::User => "user",
            Self::Workspace => "workspace",
            Self::SystemOverrides => "system",
        }
    }
}

/// One settings file. Both values are objects of the same shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub scope: Scope,
    pub file: AbsPath,
    /// As it stands in the file.
    pub raw: Value,
    /// With variables filled in.
    pub value: Value,
}

/// Whether the workspace's files count, with the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceFiles {
    Read,
    #[default]
    NotTrusted,
    /// The workspace is the home folder: its files are the user's, read as such.
    IsHome,
}

/// All that was found, lowest precedence first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layers {
    pub layers: Vec<Layer>,
    pub workspace: WorkspaceFiles,
    pub warnings: Vec<Warning>,
}

impl Layers {
    /// With those of extensions, which are weaker than the user's own.
    #[must_use]
    pub fn with_extensions(mut self, layers: Vec<Layer>) -> Self {
        let at = self.layers.iter().position(|it| it.scope > Scope::Extension).unwrap_or(self.layers.len());
        self.layers.splice(at..at, layers);
        self
    }

    /// The files that count for nothing, and why.
    pub fn unread_files(&self) -> impl Iterator<Item = &Warning> {
        self.warnings.iter().filter(|it| self.layers.iter().all(|layer| layer.file.to_string() != it.origin))
    }

    /// Gives warnings about keys their places. What merged values are at fault of is said of the strongest file that sets
    /// the key.
    pub fn locate(&self, warnings: &mut [Warning], reader: Reader<'_>) {
        for it in warnings.iter_mut().filter(|it| it.at.is_none()) {
            let Some(key) = &it.key else { continue };
            let mut layers = self.layers.iter();
            let layer = match it.origin.as_str() {
                "settings" => layers.filter(|it| depth(&it.value, key) > 0).max_by_key(|it| depth(&it.value, key)),
                origin => layers.find(|layer| layer.file.to_string() == origin),
            };
            let Some(layer) = layer else { continue };
            it.origin = layer.file.to_string();
            it.at = reader.optional(&layer.file).ok().flatten().and_then(|text| jsonc::position(&text, key));
        }
    }
}

/// How many names of a dotted path lead somewhere.
fn depth(value: &Value, path: &str) -> usize {
    let mut here = value;
    path.split('.').take_while(|name| here.get(name).map(|it| here = it).is_some()).count()
}

/// Reads every settings file that counts for `workspace`. Those of a workspace that is not trusted are not opened.
pub fn read(env: &Env, workspace: &AbsPath, trusted: bool, reader: Reader<'_>) -> Layers {
    let files = match trusted {
        false => WorkspaceFiles::NotTrusted,
        true if is_home(env, workspace, reader) => WorkspaceFiles::IsHome,
        true => WorkspaceFiles::Read,
    };
    let mut res = Layers { layers: Vec::new(), workspace: files, warnings: Vec::new() };
    for (scope, file) in settings_files(env, (files == WorkspaceFiles::Read).then_some(workspace)) {
        match read_layer(scope, &file, env, reader) {
            Ok(Some((layer, warning))) => {
                res.layers.push(layer);
                res.warnings.extend(warning);
            }
            Ok(None) => (),
            Err(warning) => res.warnings.push(warning),
        }
    }
    res
}

/// The files in order of precedence, lowest first; in each scope Gemini CLI's, then castor's.
pub fn settings_files(env: &Env, workspace: Option<&AbsPath>) -> Vec<(Scope, AbsPath)> {
    let mut res = Vec::with_capacity(8);
    let system = |scope, rows: [(&str, &str); 2], out: &mut Vec<_>| {
        for (name, usual) in rows {
            let file = AbsPath::new(env.get(name).unwrap_or(usual));
            out.extend(file.map(|it| (scope, it)));
        }
    };
    let defaults = [
        ("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "/etc/gemini-cli/system-defaults.json"),
        ("CASTOR_SYSTEM_DEFAULTS_PATH", "/etc/castor/system-defaults.json"),
    ];
    let overrides = [
        ("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "/etc/gemini-cli/settings.json"),
        ("CASTOR_SYSTEM_SETTINGS_PATH", "/etc/castor/settings.json"),
    ];
    system(Scope::SystemDefaults, defaults, &mut res);
    let user = [gemini_home(env), castor_home(env)];
    res.extend(user.into_iter().flatten().map(|it| (Scope::User, it.join("settings.json"))));
    for name in workspace.iter().flat_map(|_| [".gemini", ".castor"]) {
        let file = workspace.map(|it| it.join(name).join("settings.json"));
        // CASTOR_HOME may point into the workspace: a file counts once, as the user's.
        let fresh = file.filter(|file| res.iter().all(|(_, it)| it != file));
        res.extend(fresh.map(|it| (Scope::Workspace, it)));
    }
    system(Scope::SystemOverrides, overrides, &mut res);
    res
}

/// Tells whether the workspace is the user's home, whose files are the user's.
pub fn is_home(env: &Env, workspace: &AbsPath, reader: Reader<'_>) -> bool {
    config_homes(env, reader).contains(&reader.real(workspace))
}

/// The folders in which the user's own configuration lies, as real paths.
pub fn config_homes(env: &Env, reader: Reader<'_>) -> Vec<AbsPath> {
    let homes = [env.get("HOME").and_then(AbsPath::new), gemini_home(env).and_then(|it| it.parent())];
    homes.iter().flatten().map(|it| reader.real(it)).collect()
}

/// A layer, and what is to be said about it.
type ReadLayer = (Layer, Option<Warning>);

fn read_layer(scope: Scope, file: &AbsPath, env: &Env, reader: Reader<'_>) -> Result<Option<ReadLayer>, Warning> {
    let warn = |at, message: String| Warning { origin: file.to_string(), at, key: None, message };
    let Some(bytes) = reader.optional(file).map_err(|it| warn(None, format!("cannot be read: {it}")))? else {
        return Ok(None);
    };
    let written = jsonc::parse(&bytes).map_err(|it| {
        warn(Some((it.line, it.column)), format!("not valid JSON: {}; the file is skipped", it.message))
    })?;
    if !written.is_object() {
        return Err(warn(Some((1, 1)), "should hold an object {…}; the file is skipped".to_owned()));
    }
    let mut value = written.clone();
    let mut filling = VariableFilling { env, by_workspace: scope == Scope::Workspace, refused: BTreeSet::new() };
    filling.expand_value(&mut value);
    let warning = filling.warning().map(|it| warn(None, it));
    Ok(Some((Layer { scope, file: file.clone(), raw: written, value }, warning)))
}

/// What the settings of a workspace become, for who looks at them before they count.
pub fn expand_workspace_vars(value: &mut Value, env: &Env) {
    VariableFilling { env, by_workspace: true, refused: BTreeSet::new() }.expand_value(value);
}

/// The same of a file of the user's.
pub fn expand_user_vars(value: &mut Value, env: &Env) {
    VariableFilling { env, by_workspace: false, refused: BTreeSet::new() }.expand_value(value);
}

/// The variables that a file names.
pub fn variables_in(value: &Value) -> BTreeSet<String> {
    let mut res = BTreeSet::new();
    match value {
        Value::String(text) => {
            let mut rest = text.as_str();
            while let Some(at) = rest.find('$') {
                let (len, name, _) = reference(rest.split_at(at).1);
                res.extend((!name.is_empty()).then(|| name.to_owned()));
                rest = rest.get(at + len..).unwrap_or_default();
            }
        }
        Value::Array(items) => items.iter().for_each(|it| res.extend(variables_in(it))),
        Value::Object(members) => members.values().for_each(|it| res.extend(variables_in(it))),
        _ => (),
    }
    res
}

/// Puts variables into what a file says. What a repository says ends in arguments, addresses and headers of servers
/// that it names itself: it gets none of the user's secrets by naming them, trusted or not.
struct VariableFilling<'a> {
    env: &'a Env,
    by_workspace: bool,
    /// Variables that are set, and that the file may not have.
    refused: BTreeSet<String>,
}

/// More names than this are counted.
const MAX_NAMES: usize = 10;

impl<'a> VariableFilling<'a> {
    /// Fills variables into every string of `value`. Names of members stay as they are.
    fn expand_value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) if text.contains('$') => *text = self.expand_text(text),
            Value::Array(items) => items.iter_mut().for_each(|it| self.expand_value(it)),
            Value::Object(members) => members.values_mut().for_each(|it| self.expand_value(it)),
            _ => (),
        }
    }

    /// `$VAR`, `${VAR}` and `${VAR:-default}`; what is not set stays as written.
    fn expand_text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let (len, name, default) = reference(from);
            let (as_written, after) = from.split_at(len);
            out.push_str(match self.get(name) {
                Ok(value) => value.or(default).unwrap_or(as_written),
                Err(RefusedVariable) => as_written,
            });
            rest = after;
        }
        out.push_str(rest);
        out
    }

    fn get(&mut self, name: &str) -> Result<Option<&'a str>, RefusedVariable> {
        let value = self.env.get(name);
        if self.by_workspace && value.is_some_and(|it| !is_open_to_workspace(name, it)) {
            self.refused.insert(name.to_owned());
            return Err(RefusedVariable);
        }
        Ok(value)
    }

    fn warning(&self) -> Option<String> {
        let names: Vec<&str> = self.refused.iter().take(MAX_NAMES).map(String::as_str).collect();
        let more = self.refused.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names = names.join(", ");
        let words = "is not filled in for a workspace: settings of the user can say it";
        (!names.is_empty()).then(|| format!("{names}{more} {words}"))
    }
}

struct RefusedVariable;

/// Reads the reference at the start of `text` (a `$`): how long it is, the variable, what stands for it if it is not
/// set. A `$` alone names nothing.
fn reference(text: &str) -> (usize, &str, Option<&str>) {
    let after = text.get(1..).unwrap_or_default();
    if let Some((inside, _)) = after.strip_prefix('{').and_then(|it| it.split_once('}')) {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if name_len(name) == name.len() && !name.is_empty() {
            return (inside.len() + 3, name, default);
        }
    }
    let len = name_len(after);
    (len + 1, after.get(..len).unwrap_or_default(), None)
}

/// How much of the start of `text` is a variable's name: a letter or `_`, then digits too.
fn name_len(text: &str) -> usize {
    let is_name = |(at, it): &(usize, char)| *it == '_' || it.is_ascii_alphabetic() || *at > 0 && it.is_ascii_digit();
    text.char_indices().take_while(is_name).count()
}

#[cfg(test)]
mod tests {
    use std::{
        cell::RefCell,
        collections::{BTreeMap, BTreeSet},
        io,
    };

    use super::{Layers, VariableFilling, WorkspaceFiles, read};
    use crate::workspace::Reader;
    use castor_base::path::AbsPath;
    use castor_hands::secrets::Env;

    fn path(text: &str) -> AbsPath {
        AbsPath::new(text).unwrap()
    }

    /// Reads from `files`; a file whose text starts with `-> ` is a symlink. Returns what was opened too.
    fn read_from(files: &[(&str, &str)], env: &[(&str, &str)], ws: &str, trusted: bool) -> (Layers, Vec<String>) {
        let files: BTreeMap<_, _> = files.iter().map(|(name, text)| (path(name), *text)).collect();
        let opened = RefCell::new(Vec::new());
        let reader = Reader {
            read: &|it| {
                opened.borrow_mut().push(it.to_string());
                match files.get(it).copied() {
                    Some("denied") => Err(io::ErrorKind::PermissionDenied.into()),
                    Some(text) => Ok(text.as_bytes().to_vec()),
                    None => Err(io::ErrorKind::NotFound.into()),
                }
            },
            real_path: &|it| {
                opened.borrow_mut().push(format!("real {it}"));
                Ok(files.get(it).and_then(|it| it.strip_prefix("-> ")).map_or(it.clone(), path))
            },
        };
        let env = Env::from_pairs(env.iter().copied());
        let res = read(&env, &path(ws), trusted, reader);
        (res, opened.into_inner())
    }

    #[test]
    fn fills_in_variables() {
        let env = Env::from_pairs([("A", "1"), ("B_2", "two"), ("EMPTY", "")]);
        for (text, want) in [
            ("$A ${A}x$B_2/", "1 1xtwo/"),
            ("${NO:-d:-e} ${A:-d} ${EMPTY:-d} ${NO:-}", "d:-e 1 d "),
            ("$NO ${NO} $ $5 ${} ${:-x} ${A", "$NO ${NO} $ $5 ${} ${:-x} ${A"),
            ("$$A ä$Aö ${A b}", "$1 ä1ö ${A b}"),
        ] {
            let mut filling = VariableFilling { env: &env, by_workspace: false, refused: BTreeSet::new() };
            assert_eq!(filling.expand_text(text), want, "{text}");
        }
    }

    /// A workspace's settings cannot expand variables that hold keys.
    #[test]
    fn a_workspace_names_no_secret() {
        let ours = r#"{"a": "$HOME ${LC_ALL} $GEMINI_API_KEY ${MY_DB:-d} ${NO:-d} $XDG_SESSION_ID $LANG $PATH"}"#;
        let files = &[("/w/.castor/settings.json", ours), ("/h/.castor/settings.json", ours)];
        let env = &[
            ("HOME", "/h"),
            ("LC_ALL", "C"),
            ("GEMINI_API_KEY", "k1"),
            ("MY_DB", "k2"),
            ("XDG_SESSION_ID", "4"),
            ("LANG", "ghp_k3"),
            ("PATH", "/bin"),
        ];
        let (res, _) = read_from(files, env, "/w", true);
        let said: Vec<&str> = res.layers.iter().filter_map(|it| it.value["a"].as_str()).collect();
        assert_eq!(
            said,
            ["/h C k1 k2 d 4 ghp_k3 /bin", "/h C $GEMINI_API_KEY ${MY_DB:-d} d $XDG_SESSION_ID $LANG /bin",]
        );
        let warned: Vec<String> = res.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warned,
            [
                "/w/.castor/settings.json: GEMINI_API_KEY, LANG, MY_DB, XDG_SESSION_ID is not filled in for a workspace: \
              settings of the user can say it"
            ]
        );
    }

    #[test]
    fn reads_layers_in_order() {
        let files = &[
            ("/etc/gemini-cli/settings.json", "{}"),
            ("/sys/castor.json", "{}"),
            ("/h/.gemini/settings.json", "{}"),
            ("/h/.castor/settings.json", r#"{"a": ["$X", {"b": "${X}"}]}"#),
            ("/w/.gemini/settings.json", "{}"),
            ("/w/.castor/settings.json", "{}"),
            ("/etc/castor/system-defaults.json", "{}"),
        ];
        let env = &[("HOME", "/h"), ("CASTOR_SYSTEM_SETTINGS_PATH", "/sys/castor.json"), ("X", "x")];
        let (res, _) = read_from(files, env, "/w", true);
        let got: Vec<_> = res.layers.iter().map(|it| format!("{} {}", it.scope.as_str(), it.file)).collect();
        assert_eq!(
            got,
            [
                "system defaults /etc/castor/system-defaults.json",
                "user /h/.gemini/settings.json",
                "user /h/.castor/settings.json",
                "workspace /w/.gemini/settings.json",
                "workspace /w/.castor/settings.json",
                "system /etc/gemini-cli/settings.json",
                "system /sys/castor.json",
            ]
        );
        let layer = &res.layers[2];
        assert_eq!(layer.value.to_string(), r#"{"a":["x",{"b":"x"}]}"#);
        assert_eq!(layer.raw.to_string(), r#"{"a":["$X",{"b":"${X}"}]}"#);

        let env = &[("HOME", "/h"), ("GEMINI_CLI_HOME", "/g"), ("CASTOR_HOME", "/w/.castor")];
        let (res, opened) = read_from(files, env, "/w", true);
        let user: Vec<_> = opened.iter().filter(|it| !it.contains("real") && !it.contains("/etc/")).collect();
        assert_eq!(user, ["/g/.gemini/settings.json", "/w/.castor/settings.json", "/w/.gemini/settings.json"]);
        assert_eq!(res.warnings, []);
    }

    /// Not even the settings file of an untrusted folder is opened.
    #[test]
    fn opens_nothing_of_an_untrusted_workspace() {
        let files = &[("/w/.gemini/settings.json", "{}"), ("/w/.castor/settings.json", "{}")];
        let (res, opened) = read_from(files, &[("HOME", "/h")], "/w", false);
        assert_eq!(res.workspace, WorkspaceFiles::NotTrusted);
        assert!(res.layers.is_empty());
        assert!(opened.iter().all(|it| !it.contains("/w")), "{opened:?}");
        assert_eq!(opened.len(), 6);
    }

    #[test]
    fn the_home_folder_is_no_workspace() {
        let files = &[("/h/.gemini/settings.json", "{}"), ("/link", "-> /h")];
        for ws in ["/h", "/link"] {
            let (res, _) = read_from(files, &[("HOME", "/h")], ws, true);
            assert_eq!((res.workspace, res.layers.len()), (WorkspaceFiles::IsHome, 1), "{ws}");
        }
    }

    #[test]
    fn a_bad_file_is_skipped_and_named() {
        for (text, want) in [
            ("{\n \"a\": }", "/h/.castor/settings.json:2:7: not valid JSON: expected value; the file is skipped"),
            ("[]", "/h/.castor/settings.json:1:1: should hold an object {…}; the file is skipped"),
            ("denied", "/h/.castor/settings.json: cannot be read: permission denied"),
        ] {
            let files = &[("/h/.castor/settings.json", text), ("/h/.gemini/settings.json", "{}")];
            let (res, _) = read_from(files, &[("HOME", "/h")], "/w", true);
            assert_eq!(res.warnings.iter().map(|it| it.to_string()).collect::<Vec<_>>(), [want]);
            assert_eq!(res.layers.len(), 1);
        }
    }
}
