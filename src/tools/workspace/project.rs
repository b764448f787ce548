//! Project files that configure castor: read once, hashed for trust, and used as read.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use serde_json::Value;

use crate::workspace::{
    Reader, agents, castor_home,
    files_below::{MAX_FILES, covered_files, files_below},
    gemini_home, jsonc,
    policies::FolderAccess,
    programs, prompts, settings,
};
use castor_base::{
    path::AbsPath,
    trust::{ScriptHashes, TrustedFile, TrustedFileKind},
};
use castor_hands::{
    disk::{self, TreeBounds, TreeKind},
    secrets::Env,
};

/// Larger files count as unreadable.
const MAX_BYTES: u64 = 4 << 20;
/// Of all programs together. What is over counts as unreadable.
const MAX_PROGRAMS: u64 = 64 << 20;
/// Folders of configuration, Gemini CLI's and castor's: later ones win.
const FOLDERS: &[&str] = &[".gemini", ".castor"];
const MEMORY: &[&str] = &["GEMINI.md", "AGENTS.md"];

/// The files of a folder, and which of them count.
#[derive(Clone, Debug, Default)]
pub struct ProjectFiles {
    /// Whose files are the project's alone: nothing in them is read in any other way.
    folders: Vec<AbsPath>,
    files: Vec<ProjectFile>,
    /// By file that names programs: the files of the folder among them; by skill: what lies beside it. It counts only while
    /// all of them do.
    programs: BTreeMap<String, BTreeSet<String>>,
    trusted: BTreeSet<String>,
    /// What the user's yes does not cover; `true`: it never saw it.
    unapproved: BTreeMap<String, bool>,
}

#[derive(Clone, Debug)]
struct ProjectFile {
    piece: TrustedFile,
    path: AbsPath,
    bytes: Vec<u8>,
}

impl ProjectFile {
    /// What says which programs it would start; `None`: it starts none.
    fn settings(&self) -> Option<Value> {
        match self.piece.kind {
            TrustedFileKind::Settings => jsonc::parse(&self.bytes).ok(),
            TrustedFileKind::Agent => agents::servers(&self.path, &self.bytes),
            _ => None,
        }
    }
}

impl ProjectFiles {
    /// Looks at everything in `root` (a real path) that trust would let in. `top` is the highest folder whose `.env`
    /// belongs to it. The user's own folders are no part of it.
    pub fn read(env: &Env, root: &AbsPath, top: &AbsPath) -> Self {
        let reader = Reader::disk();
        let users: Vec<AbsPath> =
            [castor_home(env), gemini_home(env)].into_iter().flatten().map(|it| reader.real(&it)).collect();
        let mut res = Self::default();
        for folder in FOLDERS.iter().map(|it| root.join(it)) {
            if users.contains(&reader.real(&folder)) {
                continue;
            }
            res.take(root, TrustedFileKind::Settings, folder.join("settings.json"));
            res.take_all(root, TrustedFileKind::Policy, files_below(&folder.join("policies"), ".toml", 0));
            res.folders.push(folder);
        }
        for folder in agents::FOLDERS.iter().map(|it| root.join(it.0)) {
            if users.iter().any(|it| reader.real(&folder).is_within(it)) {
                continue;
            }
            let mut files = files_below(&folder, ".md", 0);
            files.retain(|it| it.as_ref().map_or(true, |it| agents::is_agent_file(&it.relative_to(&folder))));
            res.take_all(root, TrustedFileKind::Agent, files);
            res.folders.push(folder);
        }
        res.take_programs(env, root);
        res.take_prompts(root, &users, reader);
        res.take_skill_files(root);
        let home = env.get("HOME").and_then(AbsPath::new).map(|it| reader.real(&it));
        let mut at = Some(root.clone());
        // The user's home is not below a project, whatever is trusted.
        while let Some(folder) = at.filter(|it| it.is_within(top) && home.as_ref() != Some(it)) {
            for name in [".castor/.env", ".gemini/.env", ".env"] {
                let file = folder.join(name);
                if !users.iter().any(|it| reader.real(&file).is_within(it)) {
                    res.take(root, TrustedFileKind::Env, file);
                }
            }
            at = folder.parent();
        }
        for name in MEMORY.iter().filter(|it| disk::metadata(&root.join(it)).is_ok_and(|it| !it.is_dir)) {
            let piece = TrustedFile { name: (*name).to_owned(), kind: TrustedFileKind::Memory, hash: None };
            res.files.push(ProjectFile { piece, path: root.join(name), bytes: Vec::new() });
        }
        res
    }

    /// Commands and skills.
    fn take_prompts(&mut self, root: &AbsPath, users: &[AbsPath], reader: Reader<'_>) {
        let commands = prompts::COMMAND_FOLDERS.iter().map(|(name, format)| {
            (root.join(name), TrustedFileKind::Command, prompts::extension(*format), prompts::MAX_DEPTH)
        });
        let skills = prompts::SKILL_FOLDERS;
        let skills = skills.iter().map(|name| (root.join(name), TrustedFileKind::Skill, prompts::SKILL_FILE, 1));
        for (folder, kind, end, depth) in commands.chain(skills) {
            if !users.iter().any(|it| reader.real(&folder).is_within(it)) {
                self.take_all(root, kind, files_below(&folder, end, depth));
                self.folders.push(folder);
            }
        }
    }

    /// A yes to instructions that say "run scripts/fill.py" is a yes to that file as it is.
    fn take_skill_files(&mut self, root: &AbsPath) {
        let skills = self.files.iter().filter(|it| it.piece.kind == TrustedFileKind::Skill && it.piece.hash.is_some());
        let skills = skills.filter_map(|it| Some((it.piece.name.clone(), it.path.parent()?)));
        let mut known: BTreeSet<String> = self.files.iter().map(|it| it.piece.name.clone()).collect();
        let mut left = prompts::SKILL_BOUNDS;
        for (skill, folder) in skills.collect::<Vec<_>>() {
            let kind = TrustedFileKind::SkillFile;
            let pieces: Vec<TrustedFile> = match hash_tree(&folder, &mut left) {
                Ok(found) => found
                    .into_iter()
                    .map(|(path, hash)| TrustedFile { name: name_in(root, &path), kind, hash: Some(hash) })
                    .collect(),
                Err(why) => vec![TrustedFile { name: format!("{}: {why}", name_in(root, &folder)), kind, hash: None }],
            };
            self.programs.insert(skill, pieces.iter().map(|it| it.name.clone()).collect());
            for piece in pieces.into_iter().filter(|it| known.insert(it.name.clone())) {
                self.files.push(ProjectFile { path: root.join(&piece.name), piece, bytes: Vec::new() });
            }
        }
    }

    fn take_all(&mut self, root: &AbsPath, kind: TrustedFileKind, files: Vec<Result<AbsPath, AbsPath>>) {
        for it in files {
            match it {
                Ok(file) => self.take(root, kind, file),
                Err(folder) => {
                    let piece = TrustedFile { name: name_in(root, &folder), kind, hash: None };
                    self.files.push(ProjectFile { piece, path: folder, bytes: Vec::new() });
                }
            }
        }
    }

    fn take(&mut self, root: &AbsPath, kind: TrustedFileKind, path: AbsPath) {
        let mut n_same = self.files.iter().filter(|it| it.piece.kind == kind);
        let fits = n_same.nth(MAX_FILES).is_none();
        // A link must not bring in what lies elsewhere: the user sees the name in the folder.
        let folder = if path.is_within(root) { Some(root.clone()) } else { path.parent() };
        let real = disk::real_path(&path).ok().zip(folder);
        let real = real.and_then(|(real, folder)| real.is_within(&folder).then_some(real)).filter(|_| fits);
        // What is read is where it was looked for, whatever takes its place meanwhile.
        let bytes = match real.map(|it| disk::read_real_head(&it, MAX_BYTES + 1)) {
            Some(Err(it)) if matches!(it.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return,
            Some(Ok(it)) if it.len() as u64 <= MAX_BYTES => Some(it),
            None if disk::metadata(&path).is_err() => return,
            _ => None,
        };
        let piece = TrustedFile { name: name_in(root, &path), kind, hash: bytes.as_deref().map(disk::hash) };
        self.files.push(ProjectFile { piece, path, bytes: bytes.unwrap_or_default() });
    }

    /// The files of the folder that its settings and agents name. A yes to "runs `node tools/server.js`" is a yes to what is in that
    /// file: it says more about what happens than they do. What such a file starts in turn is not looked at.
    fn take_programs(&mut self, env: &Env, root: &AbsPath) {
        let parsed = self.files.iter().filter_map(|it| Some((it.piece.name.clone(), it.settings()?)));
        let mut left = MAX_PROGRAMS;
        for (name, mut value) in parsed.collect::<Vec<_>>() {
            // A shell that reads a variable may have another value for it than the one that is filled in.
            let written = programs::named_files(&value, root);
            settings::expand_workspace_vars(&mut value, env);
            let mut needed = BTreeSet::new();
            for found in [written, programs::named_files(&value, root)] {
                match found {
                    Some(paths) => needed.extend(paths.into_iter().map(|it| self.take_program(root, it, &mut left))),
                    None => {
                        let why = format!("{name}: more words than are looked at");
                        let piece = TrustedFile { name: why.clone(), kind: TrustedFileKind::Program, hash: None };
                        self.files.push(ProjectFile { piece, path: root.clone(), bytes: Vec::new() });
                        needed.insert(why);
                    }
                }
            }
            self.programs.insert(name, needed);
        }
    }

    /// Returns its name.
    fn take_program(&mut self, root: &AbsPath, path: AbsPath, left: &mut u64) -> String {
        let name = name_in(root, &path);
        if self.files.iter().any(|it| it.piece.name == name) {
            return name;
        }
        let hash = disk::real_path(&path).ok().and_then(|real| match real.is_within(root) {
            true => {
                let bytes = disk::read_real_head(&real, *left + 1).ok()?;
                *left = left.checked_sub(bytes.len() as u64)?;
                Some(disk::hash(&bytes))
            }
            // A virtual environment's interpreter: the folder says where it is, and not what is in it.
            false => Some(disk::hash(format!("-> {real}").as_bytes())),
        });
        let piece = TrustedFile { name: name.clone(), kind: TrustedFileKind::Program, hash };
        self.files.push(ProjectFile { piece, path, bytes: Vec::new() });
        name
    }

    pub fn all_files(&self) -> Vec<TrustedFile> {
        self.files.iter().map(|it| it.piece.clone()).collect()
    }

    /// Files that are bound to the user's yes and tell a model what to do: their names and paths.
    pub fn bound_instructions(&self) -> impl Iterator<Item = (&str, &AbsPath)> {
        let bound = self.files.iter().filter(|it| it.piece.kind.instructs() && it.piece.kind.binds_content());
        bound.map(|it| (it.piece.name.as_str(), &it.path))
    }

    /// What a model would obey or run of them, and whether the user's yes does not cover it any more.
    pub fn instruction_files(&self) -> Vec<(AbsPath, bool)> {
        let instructs = self.files.iter().filter(|it| it.piece.kind.instructs());
        instructs.map(|it| (it.path.clone(), self.unapproved.contains_key(&it.piece.name))).collect()
    }

    /// The files in `root` that these settings name, as they were looked at. What a link leads to elsewhere is not among
    /// them.
    pub fn programs(&self, settings: &Value, root: &AbsPath) -> ScriptHashes {
        let inside = |it: &AbsPath| disk::real_path(it).is_ok_and(|real| real.is_within(root));
        let held: BTreeMap<&AbsPath, &ProjectFile> = self.files.iter().map(|it| (&it.path, it)).collect();
        let named = programs::named_files(settings, root).unwrap_or_default().into_iter().filter(inside);
        named.filter_map(|it| Some((held.get(&it)?.piece.hash.clone()?, it))).map(|(hash, it)| (it, hash)).collect()
    }

    /// Every file, and whether it counts.
    pub fn file_states(&self) -> impl Iterator<Item = (&str, bool)> {
        let counts = self.counting();
        let counts = move |it: &ProjectFile| {
            counts(it) || self.trusted.contains(&it.piece.name) && !it.piece.kind.binds_content()
        };
        self.files.iter().map(move |it| (it.piece.name.as_str(), counts(it)))
    }

    /// Those that are trusted, with all that they start or bring.
    fn counting(&self) -> impl Fn(&ProjectFile) -> bool {
        let can_count = |it: &&ProjectFile| it.piece.hash.is_some() && self.trusted.contains(&it.piece.name);
        let names: BTreeSet<&str> = self.files.iter().filter(can_count).map(|it| it.piece.name.as_str()).collect();
        move |it: &ProjectFile| {
            let needed = self.programs.get(&it.piece.name);
            can_count(&it) && needed.is_none_or(|it| it.iter().all(|it| names.contains(it.as_str())))
        }
    }

    /// Why a file is not used, as the rest of a line; `None`: it is, or nobody was asked about it.
    pub fn why_unused(&self, name: &str) -> Option<String> {
        if self.file_states().any(|(it, counts)| it == name && counts) {
            return None;
        }
        let itself = self.unapproved.get(name).map(|it| (name, *it));
        let started = self.programs.get(name).into_iter().flatten();
        let mut started = started.filter_map(|it| Some((it.as_str(), *self.unapproved.get(it)?)));
        let (file, is_new) = itself.or_else(|| started.next())?;
        let how = if is_new { "new" } else { "changed" };
        let is_beside = |it: &ProjectFile| it.piece.name == file && it.piece.kind == TrustedFileKind::SkillFile;
        let verb = if self.files.iter().any(is_beside) { "brings" } else { "starts" };
        Some(match file == name {
            true => format!("{how} since you trusted the folder"),
            false => format!("it {verb} {file}, which is {how} since you trusted the folder"),
        })
    }

    /// A line for each file of this kind that is not used, as it or what it starts changed.
    pub fn changes(&self, kind: TrustedFileKind) -> Vec<String> {
        let same = self.files.iter().filter(|it| it.piece.kind == kind);
        let line =
            |it: &ProjectFile| Some(format!("{} is not used: {}", it.piece.name, self.why_unused(&it.piece.name)?));
        same.filter_map(line).collect()
    }

    /// These are not covered by the user's yes.
    pub fn mark_unapproved(&mut self, names: &[(String, bool)]) {
        self.unapproved = names.iter().cloned().collect();
    }

    /// These do not count, whatever the user's yes covers. Returns all that do not.
    pub fn distrust(&mut self, names: Vec<String>) -> Vec<(String, bool)> {
        for it in names {
            self.trusted.remove(&it);
            self.unapproved.entry(it).or_insert(false);
        }
        self.unapproved.iter().map(|(name, is_new)| (name.clone(), *is_new)).collect()
    }

    /// From now on these count, and no others.
    pub fn trust_files(&mut self, names: BTreeSet<String>) {
        self.trusted = names;
    }

    /// All that can be read.
    pub fn trust_all(&mut self) {
        self.trusted = self.files.iter().map(|it| it.piece.name.clone()).collect();
        self.unapproved.clear();
    }

    /// What settings and agents would start or reach, in words: those of the named files.
    pub fn describe_programs(&self, names: impl Fn(&str) -> bool) -> Vec<String> {
        let programs =
            |it: &ProjectFile| self.programs.get(&it.piece.name).is_some_and(|it| it.iter().any(|it| names(it)));
        let named = self.files.iter().filter(|it| names(&it.piece.name) || programs(it));
        named.filter_map(ProjectFile::settings).flat_map(|it| programs::describe_programs(&it)).collect()
    }

    /// The first environment file that counts: the nearest one.
    pub fn env_file(&self) -> Option<(&AbsPath, &[u8])> {
        let mut found = self.trusted_files().filter(|it| it.piece.kind == TrustedFileKind::Env);
        found.next().map(|it| (&it.path, it.bytes.as_slice()))
    }

    /// Looks at files as they were when they were hashed, and only at those that count; at all others on the disk.
    pub fn with_trusted<T>(&self, look: impl FnOnce(Reader<'_>, FolderAccess<'_>) -> T) -> T {
        let held: BTreeMap<&AbsPath, &ProjectFile> = self.trusted_files().map(|it| (&it.path, it)).collect();
        let owns = |it: &AbsPath| self.folders.iter().any(|folder| it.is_within(folder));
        let read = |path: &AbsPath| match (owns(path), held.get(path)) {
            (_, Some(it)) => Ok(it.bytes.clone()),
            (true, None) => Err(io::ErrorKind::NotFound.into()),
            (false, None) => super::read(path),
        };
        let disk_folders = FolderAccess::disk();
        let list = |folder: &AbsPath| {
            if !owns(folder) {
                return (disk_folders.list)(folder);
            }
            let inside = held.keys().filter(|it| it.parent().as_ref() == Some(folder));
            Ok(inside.map(|it| it.relative_to(folder)).collect())
        };
        let real_path = |it: &AbsPath| disk::real_path(it);
        look(
            Reader { read: &read, real_path: &real_path },
            FolderAccess { list: &list, only_root_can_write: disk_folders.only_root_can_write },
        )
    }

    /// The files of a kind that count, as they were hashed.
    pub fn trusted_of(&self, kind: TrustedFileKind) -> impl Iterator<Item = (TrustedFileKind, AbsPath, Vec<u8>)> {
        let same = self.trusted_files().filter(move |it| it.piece.kind == kind);
        same.map(move |it| (kind, it.path.clone(), it.bytes.clone()))
    }

    /// Those of a kind that nobody could read, or not all that they bring.
    pub fn unreadable(&self, kind: TrustedFileKind) -> impl Iterator<Item = AbsPath> {
        let unread = self.files.iter().filter(|it| it.piece.hash.is_none());
        let unread: BTreeSet<&str> = unread.map(|it| it.piece.name.as_str()).collect();
        let is_meant = move |it: &&ProjectFile| {
            let brings = || self.programs.get(&it.piece.name).into_iter().flatten();
            it.piece.kind == kind && (it.piece.hash.is_none() || brings().any(|it| unread.contains(it.as_str())))
        };
        self.files.iter().filter(is_meant).map(|it| it.path.clone())
    }

    fn trusted_files(&self) -> impl Iterator<Item = &ProjectFile> {
        let counts = self.counting();
        self.files.iter().filter(move |it| counts(it) && it.piece.kind.is_read())
    }
}

/// The files of a folder with their hashes; `left` is what others may hold.
fn hash_tree(folder: &AbsPath, left: &mut TreeBounds) -> io::Result<Vec<(AbsPath, String)>> {
    let folder = disk::real_path(folder)?;
    let listed = covered_files(&folder, *left)?;
    left.files -= listed.len();
    let mut res = Vec::new();
    for it in listed {
        let path = folder.join(&it.name);
        let hash = match it.kind {
            TreeKind::Link { to } => disk::hash(format!("-> {to}").as_bytes()),
            TreeKind::File { .. } => {
                let bytes = disk::read_real_head(&path, left.bytes + 1)?;
                let rest = left.bytes.checked_sub(bytes.len() as u64);
                left.bytes = rest.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
                disk::hash(&bytes)
            }
        };
        res.push((path, hash));
    }
    Ok(res)
}

fn name_in(root: &AbsPath, path: &AbsPath) -> String {
    match path.is_within(root) {
        true => path.relative_to(root),
        false => path.to_string(),
    }
}

#[cfg(test)]
mod tests;
