//! Folder configuration of a session: the user's trust decision, and the files that count under it.

use std::{io, sync::Arc};

use serde_json::{Map, Value, json};

use crate::workspace::{
    Reader, Warning,
    agents::{self, FoundAgents, ToolLookup},
    castor_home, dotenv,
    extensions::{self, Extensions},
    integrity, model_file,
    policies::{self, PolicyFile, PolicyPaths},
    project::ProjectFiles,
    prompts::{self, FoundPrompts, TrustedPrompts},
    settings::{self, Layers, WorkspaceFiles},
    trust,
};
use castor_base::{
    hook::{Hook, HookSource},
    mcp::{McpLink, McpServerConfig},
    model_table::ModelTable,
    path::AbsPath,
    peer_agent::ProgramAgent,
    trust::{
        Trust, TrustChoice, TrustDoubt, TrustLevel, TrustedFile, TrustedFileKind, TrustedHashes, change_doubt,
        folder_doubt, is_wide, split_covered, trusted_hashes,
    },
};
use castor_hands::{provenance::Provenance, secrets::Env};

#[derive(Clone, Debug)]
pub struct FolderConfig {
    /// The real path.
    pub folder: AbsPath,
    pub trust: Trust,
    pub project: ProjectFiles,
    /// What the user should be asked; `None`: nothing.
    pub doubt: Option<TrustDoubt>,
    /// With what `.env` files add.
    pub env: Env,
    pub extensions: Extensions,
    /// What is known of models.
    pub models: Arc<ModelTable>,
    pub warnings: Vec<Warning>,
    /// Of all files as they were read.
    layers: Arc<Layers>,
}

/// Looks at a folder. Where it was trusted before anybody looked at its files, they are what was trusted.
pub fn load(env: &Env, folder: &AbsPath) -> FolderConfig {
    let reader = Reader::disk();
    let folder = reader.real(folder);
    let (trust, mut warnings) = trust::read(env, &folder, reader);
    let is_home = settings::is_home(env, &folder, reader);
    let (mut project, mut doubt) = (ProjectFiles::default(), None);
    match &trust {
        _ if is_home => (),
        // What must not be used is not even opened.
        Trust::Untrusted(_) => (),
        Trust::Unknown => {
            project = ProjectFiles::read(env, &folder, &folder);
            doubt = folder_doubt(
                &folder,
                &settings::config_homes(env, reader),
                &project.all_files(),
                &project.describe_programs(|_| true),
            );
        }
        Trust::Trusted { root, .. } => {
            project = ProjectFiles::read(env, &folder, root.as_ref().unwrap_or(&folder));
            match (root, castor_home(env)) {
                (Some(root), Some(home)) => {
                    doubt = save_trusted_files(&home, root, &folder, &mut project, &mut warnings)
                }
                _ => project.trust_all(),
            }
            doubt = distrust_unseen(env, &folder, &mut project).or(doubt);
        }
    }
    let (env, more) = dotenv::extend_env(env, &project);
    warnings.extend(more);
    let models = model_file::read(castor_home(&env).as_ref(), &mut warnings);
    let (extensions, layers) = (Extensions::default(), Arc::default());
    FolderConfig { folder, trust, project, doubt, env, extensions, models, warnings, layers }.load_extensions()
}

impl FolderConfig {
    /// Where settings may switch off extensions, which are settings in turn.
    fn load_extensions(mut self) -> Self {
        let own = self.read_layers();
        self.extensions = extensions::load(&self.env, &self.folder, &own);
        self.layers = Arc::new(own);
        if self.extensions.all.is_empty() { self } else { self.with_layers() }
    }

    fn with_layers(mut self) -> Self {
        self.layers = Arc::new(self.read_layers());
        self
    }

    /// What extensions bring, apart from all that a user and a workspace have.
    pub fn of_extensions(folder: &AbsPath, extensions: Extensions) -> Self {
        Self {
            folder: folder.clone(),
            trust: Trust::Untrusted(String::new()),
            project: ProjectFiles::default(),
            doubt: None,
            env: Env::default(),
            extensions,
            models: ModelTable::built_in(),
            warnings: Vec::new(),
            layers: Arc::default(),
        }
        .with_layers()
    }

    /// With no other extensions than these; `None`: all that are on.
    #[must_use]
    pub fn with_extensions(mut self, only: Option<&[String]>) -> Self {
        let Some(names) = only else { return self };
        self.extensions = std::mem::take(&mut self.extensions).only(names);
        self.with_layers()
    }

    /// After a yes: all that was read counts, as it was read.
    pub fn with_trust(self, env: &Env, why: &str) -> Self {
        let mut project = self.project;
        project.trust_all();
        let (env, warnings) = dotenv::extend_env(env, &project);
        let root = Some(self.folder.clone());
        let trust = Trust::Trusted { why: why.to_owned(), root };
        Self { trust, project, doubt: None, env, warnings, ..self }.with_layers()
    }

    /// After a no.
    pub fn without_trust(self, env: &Env, why: &str) -> Self {
        let project = ProjectFiles::default();
        let (env, warnings) = dotenv::extend_env(env, &project);
        Self { trust: Trust::Untrusted(why.to_owned()), project, doubt: None, env, warnings, ..self }.with_layers()
    }

    /// A hook of the workspace's settings or of an extension, with what it runs.
    pub fn bind_hook(&self, it: Hook) -> Hook {
        let settings = json!({ "hooks": { "command": it.command, "env": object(&it.env) } });
        let scripts = match it.source {
            HookSource::Project => self.project.programs(&settings, &self.folder),
            HookSource::Extension => self.extensions.programs(&settings),
            _ => return it,
        };
        Hook { scripts, ..it }
    }

    /// A server as a shell would start it.
    pub fn expand_home(&self, it: &McpServerConfig) -> McpServerConfig {
        match self.home() {
            Some(home) => McpServerConfig { link: it.link.clone().in_home(&home), ..it.clone() },
            None => it.clone(),
        }
    }

    fn home(&self) -> Option<AbsPath> {
        self.env.get("HOME").and_then(AbsPath::new)
    }

    /// A server of settings, with what it runs of the workspace or of an extension.
    pub fn bind_server(&self, it: &McpServerConfig) -> McpServerConfig {
        let it = self.expand_home(it);
        let McpLink::Stdio { command, args, env, cwd } = &it.link else { return it };
        if !it.of_project && self.extensions.all.is_empty() {
            return it;
        }
        let mut server = json!({ "command": command, "args": args, "env": object(env) });
        if let (Some(cwd), Some(members)) = (cwd, server.as_object_mut()) {
            members.insert("cwd".to_owned(), cwd.as_str().into());
        }
        let settings = json!({ "mcpServers": { &it.name: server } });
        let scripts = match it.of_project {
            true => self.project.programs(&settings, &self.folder),
            false => self.extensions.programs(&settings),
        };
        McpServerConfig { scripts, ..it }
    }

    /// An agent's program as a shell would start it.
    pub fn expand_program(&self, it: &ProgramAgent) -> ProgramAgent {
        let Some(home) = self.home() else { return it.clone() };
        let args = it.args.iter().map(|it| home.expand_word(it)).collect();
        ProgramAgent { command: home.expand_word(&it.command), args, ..it.clone() }
    }

    /// A program that the workspace names as an agent, with what it runs.
    pub fn bind_program(&self, name: &str, it: &ProgramAgent) -> ProgramAgent {
        let program = json!({ "command": it.command, "args": it.args, "env": object(&it.env) });
        let settings = json!({ "agents": { name: program } });
        ProgramAgent { scripts: self.project.programs(&settings, &self.folder), ..it.clone() }
    }

    /// The settings that count.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    pub fn shared_layers(&self) -> Arc<Layers> {
        self.layers.clone()
    }

    fn read_layers(&self) -> Layers {
        let read = |reader: Reader<'_>| settings::read(&self.env, &self.folder, self.trust.is_trusted(), reader);
        let mut res = self.project.with_trusted(|reader, _| read(reader));
        let (layers, warnings) = self.extensions.layers(&self.env, &self.folder);
        res.warnings.extend(warnings);
        res.with_extensions(layers)
    }

    /// The warnings with the place of each key: the file that sets it, the line and the column.
    pub fn locate(&self, mut warnings: Vec<Warning>) -> Vec<Warning> {
        let layers = self.layers();
        self.project.with_trusted(|reader, _| layers.locate(&mut warnings, reader));
        warnings
    }

    /// The agents that count.
    pub fn agents(&self, tools: ToolLookup<'_>) -> FoundAgents {
        let workspace = (self.layers().workspace == WorkspaceFiles::Read).then_some(&self.folder);
        self.project.with_trusted(|reader, folders| {
            self.extensions.with_files(reader, folders, |reader, folders| {
                agents::read(&self.env, workspace, &self.extensions.tier(), tools, (reader, folders))
            })
        })
    }

    /// The commands and skills that count. `is_own`: whether castor has a command of that name.
    pub fn prompts(&self, is_own: &dyn Fn(&str) -> bool) -> FoundPrompts {
        let counts = self.trust.is_trusted() && self.layers().workspace == WorkspaceFiles::Read;
        let kinds = [TrustedFileKind::Command, TrustedFileKind::Skill];
        let workspace = counts.then(|| TrustedPrompts {
            root: self.folder.clone(),
            files: kinds.iter().flat_map(|it| self.project.trusted_of(*it)).collect(),
            unreadable: kinds.iter().flat_map(|kind| self.project.unreadable(*kind).map(|it| (*kind, it))).collect(),
        });
        prompts::read(&self.env, workspace.as_ref(), &self.extensions.tier(), is_own)
    }

    /// The policies that count. An untrusted workspace is not even listed.
    pub fn policies(&self, layers: &Layers, named: &PolicyPaths) -> (Vec<PolicyFile>, Vec<Warning>) {
        let workspace = (layers.workspace == WorkspaceFiles::Read).then_some(&self.folder);
        self.project.with_trusted(|reader, folders| {
            self.extensions.with_files(reader, folders, |reader, folders| {
                policies::read(&self.env, workspace, &self.extensions.tier(), named, (reader, folders))
            })
        })
    }
}

/// What the record of a whole folder says of the files of a part.
fn subset_of(whole: &TrustedHashes, root: &AbsPath, folder: &AbsPath, pieces: &[TrustedFile]) -> TrustedHashes {
    let same = |it: &TrustedFile| {
        let hash = whole.get(&folder.join(&it.name).relative_to(root))?;
        Some((it.name.clone(), hash.clone()))
    };
    pieces.iter().filter_map(same).collect()
}

fn object(pairs: &[(String, String)]) -> Map<String, Value> {
    pairs.iter().map(|(name, it)| (name.clone(), it.as_str().into())).collect()
}

/// The folder that a yes would be about, where that is about all that the user has.
pub fn broad_folder(env: &Env, ground: &FolderConfig, choice: TrustChoice) -> Option<AbsPath> {
    let folder = match choice {
        TrustChoice::Folder | TrustChoice::FolderAuto => Some(ground.folder.clone()),
        TrustChoice::Parent => ground.folder.parent().or_else(|| Some(ground.folder.clone())),
        TrustChoice::NotNow | TrustChoice::Never => None,
    };
    folder.filter(|it| is_wide(it, &settings::config_homes(env, Reader::disk())))
}

/// Writes the user's word down: first what it covers, then the word.
///
/// # Errors
/// A file that cannot be written.
pub fn save_decision(home: &AbsPath, ground: &FolderConfig, choice: TrustChoice) -> io::Result<Vec<Warning>> {
    let level = match choice {
        TrustChoice::NotNow => return Ok(Vec::new()),
        TrustChoice::Never => TrustLevel::Never,
        TrustChoice::Parent => TrustLevel::Parent,
        TrustChoice::Folder | TrustChoice::FolderAuto => TrustLevel::Folder,
    };
    // What a yes covered stays written down after a no: another rule may trust the folder one day, and means that.
    if level != TrustLevel::Never {
        integrity::write(home, &ground.folder, trusted_hashes(&ground.project.all_files()))?;
    }
    // A folder that a rule trusts needs no other: only its files are as they are now.
    let set = match choice != TrustChoice::Parent && level == TrustLevel::Folder && ground.trust.is_trusted() {
        true => None,
        false => trust::set_rule(home, &ground.folder, Some(level))?.1,
    };
    Ok(set.into_iter().collect())
}

/// As [`save_decision`], without a question: about the files of now, whatever was decided before.
///
/// # Errors
/// As [`save_decision`].
pub fn save_fresh_decision(
    env: &Env,
    home: &AbsPath,
    ground: &FolderConfig,
    choice: TrustChoice,
) -> io::Result<Vec<Warning>> {
    let top = ground.folder.clone();
    let is_home = settings::is_home(env, &ground.folder, Reader::disk());
    let project = if is_home { ProjectFiles::default() } else { ProjectFiles::read(env, &ground.folder, &top) };
    let covers_more = matches!(&ground.trust, Trust::Trusted { root: Some(_), .. });
    let project = if covers_more { ground.project.clone() } else { project };
    // A word of its own for the folder, also where another rule covers it today.
    save_decision(home, &FolderConfig { trust: Trust::Unknown, project, ..ground.clone() }, choice)
}

fn save_trusted_files(
    home: &AbsPath,
    root: &AbsPath,
    folder: &AbsPath,
    project: &mut ProjectFiles,
    warnings: &mut Vec<Warning>,
) -> Option<TrustDoubt> {
    let pieces = project.all_files();
    let (found, warning) = integrity::read(home, folder);
    warnings.extend(warning);
    // What is below a trusted part of a repository came with it, perhaps since the yes. Elsewhere each folder was put there
    // by the user, who trusts what they put there.
    let is_part = folder != root && trust::is_in_repository(root);
    let of_whole = || {
        let (found, warning) = integrity::read(home, root);
        warnings.extend(warning);
        subset_of(&found.unwrap_or_default(), root, folder, &pieces)
    };
    let found = found.or_else(|| is_part.then(of_whole).filter(|it| !split_covered(&pieces, it).1.is_empty()));
    let Some(found) = found else {
        project.trust_all();
        if let Err(it) = integrity::write(home, folder, trusted_hashes(&pieces)) {
            let message = format!("castor could not save which files it covers: {it}");
            warnings.push(Warning { origin: folder.to_string(), at: None, key: None, message });
        }
        return None;
    };
    let (names, open) = split_covered(&pieces, &found);
    project.trust_files(names);
    project.mark_unapproved(&open);
    let starts = project.describe_programs(|name| open.iter().any(|(it, _)| it == name));
    change_doubt(folder, &open, &starts)
}

/// What an agent wrote of agents, commands and skills does not count before somebody looked, whatever the folder's trust.
fn distrust_unseen(env: &Env, folder: &AbsPath, project: &mut ProjectFiles) -> Option<TrustDoubt> {
    let home = castor_home(env).filter(|_| project.bound_instructions().next().is_some())?;
    // What cannot be known may be an agent's.
    let unseen = Provenance::new(&home, &[]).unseen_below(folder).ok();
    let is_unseen =
        |it: &AbsPath| unseen.as_ref().is_none_or(|all| all.iter().any(|of| it.as_path().starts_with(&of.path)));
    let found = project.bound_instructions().filter(|it| is_unseen(it.1));
    let names: Vec<String> = found.map(|it| it.0.to_owned()).collect();
    let first = names.first()?.clone();
    let open = project.distrust(names);
    let starts = project.describe_programs(|name| open.iter().any(|(it, _)| it == name));
    let doubt = change_doubt(folder, &open, &starts)?;
    let notice = format!("{} What an agent wrote needs your look first: castor looked {first}", doubt.notice);
    Some(TrustDoubt { notice, ..doubt })
}

#[cfg(test)]
mod tests;
