//! Extensions: folders that bring servers, hooks, commands, skills, agents, policies and context, as the user agreed to them.

pub mod contents;
mod layer;
pub mod manifest;
pub mod record;

use std::{collections::BTreeSet, fmt, io, sync::Arc};

use serde_json::Value;

use self::{
    contents::Contents,
    record::{ExtensionKind, ExtensionRecord, ExtensionSource, Values},
};
use crate::workspace::{
    Reader, Warning, agents, castor_home,
    extension_files::{AGENTS, COMMANDS, ExtensionFiles, ExtensionTier, MANIFEST, POLICIES},
    policies::FolderAccess,
    programs,
    prompts::SKILL_FILE,
    settings::{Layer, Layers, Scope},
};
use castor_base::{path::AbsPath, text, trust::ScriptHashes};
use castor_hands::secrets::Env;

/// Names of changed files that are told.
const MAX_TOLD: usize = 3;

/// An extension, and whether it counts.
#[derive(Clone)]
pub struct Extension {
    pub name: String,
    /// The version that its manifest says.
    pub release: String,
    pub folder: AbsPath,
    pub kind: ExtensionKind,
    pub state: ExtensionState,
    values: Values,
}

#[derive(Clone, Debug)]
pub enum ExtensionState {
    On(Arc<Contents>),
    /// The user's word, here or in settings.
    Off(&'static str),
    /// The reason why it cannot count.
    Unusable(String),
}

/// Without the values: they are often secrets.
impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<&String> = self.values.keys().collect();
        let mut it = f.debug_struct("Extension");
        it.field("name", &self.name).field("folder", &self.folder).field("values", &values).finish_non_exhaustive()
    }
}

impl Extension {
    /// One that is looked at before it is installed.
    pub fn candidate(folder: &AbsPath, contents: Contents) -> Self {
        let (name, release) = (contents.manifest.name.clone(), contents.manifest.version.clone());
        Self {
            name,
            release,
            folder: folder.clone(),
            kind: contents.kind,
            state: ExtensionState::On(contents.into()),
            values: Values::new(),
        }
    }

    fn of_record(home: &AbsPath, it: &ExtensionRecord, off: Option<&'static str>) -> Self {
        let folder = it.folder(home);
        let (values, state) = match (off, record::read_values(home, &it.name)) {
            (Some(why), _) => (Values::new(), ExtensionState::Off(why)),
            (None, Err(why)) => (Values::new(), ExtensionState::Unusable(why)),
            (None, Ok(values)) => (values, look(it, &folder)),
        };
        Self { name: it.name.clone(), release: it.release.clone(), folder, kind: it.kind, state, values }
    }

    pub fn contents(&self) -> Option<&Contents> {
        match &self.state {
            ExtensionState::On(it) => Some(it.as_ref()),
            _ => None,
        }
    }

    fn manifest_file(&self) -> AbsPath {
        self.folder.join(MANIFEST)
    }
}

/// Checks that a folder holds what the user approved, or nothing.
fn look(it: &ExtensionRecord, folder: &AbsPath) -> ExtensionState {
    let again = format!("`castor extensions update {}` shows it again and asks", it.name);
    match contents::read_against(folder, it.kind, &it.files) {
        Err(why) => ExtensionState::Unusable(format!("{}; {again}", text::first_line(&why, 300))),
        Ok((found, changed)) if changed.is_empty() && found.manifest.name == it.name => {
            ExtensionState::On(found.into())
        }
        Ok((_, changed)) => {
            let told: Vec<&str> = changed.iter().take(MAX_TOLD).map(String::as_str).collect();
            let more = changed.len() - told.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            ExtensionState::Unusable(format!("changed since your yes: {}{more}; {again}", told.join(", ")))
        }
    }
}

/// All extensions that are installed, and what those that count bring.
#[derive(Clone, Debug, Default)]
pub struct Extensions {
    pub all: Arc<[Extension]>,
    pub warnings: Vec<Warning>,
}

/// Looks at all of them, for a session in this folder. `layers`: settings may switch them off.
pub fn load(env: &Env, folder: &AbsPath, layers: &Layers) -> Extensions {
    let Some(home) = castor_home(env) else { return Extensions::default() };
    let files = record::files(&home);
    if files.is_empty() {
        return Extensions::default();
    }
    let limits = ExtensionLimits::read(layers);
    let (mut all, mut warnings) = (Vec::new(), Vec::new());
    for file in files {
        let name = file.as_path().file_stem().and_then(|it| it.to_str()).unwrap_or_default();
        match record::read(&home, name) {
            Ok(Some(it)) => {
                let off = limits.why_off(&it).or_else(|| (!it.switches.is_on(folder)).then_some("you switched it off"));
                all.push(Extension::of_record(&home, &it, off));
            }
            Ok(None) => (),
            Err(message) => warnings.push(Warning { origin: file.to_string(), at: None, key: None, message }),
        }
    }
    Extensions { all: all.into(), warnings }
}

/// The settings on extensions: which are off, and where they may come from.
pub struct ExtensionLimits {
    disabled: BTreeSet<String>,
    blocks_git: bool,
    /// Regular expressions; `None`: any source.
    allowed: Option<Vec<String>>,
}

impl ExtensionLimits {
    /// A workspace may switch one off; it has no say in sources.
    pub fn read(layers: &Layers) -> Self {
        let mut res = Self { disabled: BTreeSet::new(), blocks_git: false, allowed: None };
        for Layer { scope, value, .. } in &layers.layers {
            let texts = |path: &str| {
                let all = value.pointer(path)?.as_array()?;
                Some(all.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>())
            };
            res.disabled.extend(texts("/extensions/disabled").into_iter().flatten().map(|it| it.to_lowercase()));
            if *scope != Scope::Workspace {
                res.blocks_git |= value.pointer("/security/blockGitExtensions") == Some(&Value::Bool(true));
                res.allowed = texts("/security/allowedExtensions").filter(|it| !it.is_empty()).or(res.allowed);
            }
        }
        res
    }

    fn why_off(&self, it: &ExtensionRecord) -> Option<&'static str> {
        match self.disabled.contains(&it.name.to_lowercase()) {
            true => Some("off by `extensions.disabled`"),
            false => self.refusal(&it.source),
        }
    }

    /// The reason why nothing from there counts. Sources that are named are allowed from git, too, as in Gemini CLI.
    pub fn refusal(&self, source: &ExtensionSource) -> Option<&'static str> {
        let address = source.address();
        let fits = |it: &String| regex::Regex::new(it).is_ok_and(|it| it.is_match(&address));
        match &self.allowed {
            Some(all) if !all.iter().any(fits) => Some("its source is not among `security.allowedExtensions`"),
            Some(_) => None,
            None => {
                (self.blocks_git && source.is_git()).then_some("from git, which `security.blockGitExtensions` refuses")
            }
        }
    }
}

impl Extensions {
    /// This one alone.
    pub fn of(it: Extension) -> Self {
        Self { all: vec![it].into(), warnings: Vec::new() }
    }

    /// The starts and hosts of a layer of an extension, in words.
    pub fn describe(layer: &Layer) -> Vec<String> {
        programs::describe_programs(&layer.raw)
    }

    /// The starts and hosts of an agent's file of an extension, in words.
    pub fn describe_agent(&self, file: &AbsPath) -> Vec<String> {
        let bytes = self.used().find_map(|(_, it)| it.config.get(file));
        let servers = bytes.and_then(|it| agents::servers(file, it));
        servers.map(|it| programs::describe_programs(&it)).unwrap_or_default()
    }

    /// Those that count.
    fn used(&self) -> impl Iterator<Item = (&Extension, &Contents)> {
        self.all.iter().filter_map(|it| Some((it, it.contents()?)))
    }

    /// With no others than these; a name that is none is told.
    #[must_use]
    pub fn only(mut self, names: &[String]) -> Self {
        let has = |name: &str| names.iter().any(|it| it.eq_ignore_ascii_case(name));
        for it in names.iter().filter(|it| *it != "none" && !self.all.iter().any(|e| e.name.eq_ignore_ascii_case(it))) {
            let message = format!("there is no extension {it}; `castor extensions list` lists them");
            self.warnings.push(Warning { origin: "--extensions".to_owned(), at: None, key: None, message });
        }
        let limited = |it: &Extension| match &it.state {
            ExtensionState::On(_) if !has(&it.name) => {
                Extension { state: ExtensionState::Off("not among those of --extensions"), ..it.clone() }
            }
            _ => it.clone(),
        };
        self.all = self.all.iter().map(limited).collect();
        self
    }

    /// The extensions as settings, weakest first. Of one name the first extension's server counts.
    pub fn layers(&self, env: &Env, workspace: &AbsPath) -> (Vec<Layer>, Vec<Warning>) {
        let (mut layers, mut warnings) = (Vec::new(), Vec::new());
        let mut taken: BTreeSet<String> = BTreeSet::new();
        // A skill says nothing of settings.
        for (it, contents) in self.used().filter(|it| it.0.kind == ExtensionKind::Extension) {
            let (mut layer, warning) = layer::of(it, contents, env, workspace);
            warnings.extend(warning);
            if let Some(servers) = layer.value.get_mut("mcpServers").and_then(Value::as_object_mut) {
                let double: Vec<String> = servers.keys().filter(|it| taken.contains(*it)).cloned().collect();
                for name in double {
                    let message = format!("another extension has the MCP server {name} already; this one is not used");
                    warnings.push(Warning { origin: it.manifest_file().to_string(), at: None, key: None, message });
                    servers.remove(&name);
                }
                taken.extend(servers.keys().cloned());
            }
            layers.push(layer);
        }
        (layers, warnings)
    }

    /// The tier that the readers of a session take of them.
    pub fn tier(&self) -> ExtensionTier {
        let folders = |name: &str| self.used().map(|(it, _)| (it.name.as_str().into(), it.folder.join(name))).collect();
        ExtensionTier {
            commands: self.files(".toml", |it, _| it.folder.join(COMMANDS)),
            skills: self.files(SKILL_FILE, |it, contents| contents.skills_folder(&it.folder)),
            agents: folders(AGENTS),
            policies: self.used().map(|(it, _)| it.folder.join(POLICIES)).collect(),
        }
    }

    fn files(&self, end: &str, at: fn(&Extension, &Contents) -> AbsPath) -> Vec<ExtensionFiles> {
        let files = |(it, contents): (&Extension, &Contents)| {
            let at = at(it, contents);
            let held =
                contents.config.iter().filter(|(file, _)| file.is_within(&at) && file.to_string().ends_with(end));
            let files = held.map(|(file, bytes)| (file.clone(), bytes.clone())).collect();
            ExtensionFiles { name: it.name.as_str().into(), at, files }
        };
        self.used().map(files).collect()
    }

    /// The folders of those that count.
    pub fn folders(&self) -> impl Iterator<Item = AbsPath> {
        self.used().map(|(it, _)| it.folder.clone())
    }

    /// Context files, in the order of their extensions.
    pub fn context(&self) -> Vec<(AbsPath, String)> {
        self.used().flat_map(|(it, contents)| contents.context(&it.folder)).collect()
    }

    /// Looks at files of extensions as they were hashed, and at all others as before.
    pub fn with_files<T>(
        &self,
        reader: Reader<'_>,
        folders: FolderAccess<'_>,
        look: impl FnOnce(Reader<'_>, FolderAccess<'_>) -> T,
    ) -> T {
        let owner = |path: &AbsPath| self.used().find(|(it, _)| path.is_within(&it.folder)).map(|it| it.1);
        let read = |path: &AbsPath| match owner(path) {
            Some(it) => it.config.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into()),
            None => (reader.read)(path),
        };
        let list = |folder: &AbsPath| match owner(folder) {
            Some(it) => {
                let inside = it.config.keys().filter(|it| it.parent().as_ref() == Some(folder));
                Ok(inside.map(|it| it.relative_to(folder)).collect())
            }
            None => (folders.list)(folder),
        };
        look(
            Reader { read: &read, real_path: reader.real_path },
            FolderAccess { list: &list, only_root_can_write: folders.only_root_can_write },
        )
    }

    /// The files of an extension that these settings name, as they were hashed: they run only as they are.
    pub fn programs(&self, settings: &Value) -> ScriptHashes {
        let named = |(it, contents): (&Extension, &Contents)| {
            let hash = |path: &AbsPath| Some(contents.hashes.get(&path.relative_to(&it.folder))?.hash.clone());
            let paths = programs::named_files(settings, &it.folder).unwrap_or_default();
            paths.into_iter().filter_map(|path| Some((path.clone(), hash(&path)?))).collect::<Vec<_>>()
        };
        self.used().flat_map(named).collect()
    }

    /// The faults of those that cannot count, a line each.
    pub fn faults(&self) -> Vec<String> {
        let unusable = self.all.iter().filter_map(|it| match &it.state {
            ExtensionState::Unusable(why) => Some(format!("The {} {} is not used: {why}.", it.kind.as_str(), it.name)),
            _ => None,
        });
        unusable.chain(self.warnings.iter().map(ToString::to_string)).collect()
    }
}

#[cfg(test)]
mod tests;
