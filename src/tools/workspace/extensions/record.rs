//! The record of an extension: where it is from, what the user's yes covers, and where it is on.

use std::{collections::BTreeMap, fmt, io};

use serde::{Deserialize, Serialize};

use super::manifest::is_extension_name;
use castor_base::path::AbsPath;
use castor_hands::disk;

const VERSION: u32 = 1;
/// More extensions are not read.
const MAX_EXTENSIONS: usize = 200;

/// Larger records are none.
const MAX_RECORD: u64 = 32 << 20;

/// Values that the user gave an extension, by variable.
pub type Values = BTreeMap<String, String>;

/// One file each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionRecord {
    version: u32,
    pub name: String,
    /// The version that its manifest said.
    pub release: String,
    pub source: ExtensionSource,
    #[serde(default)]
    pub kind: ExtensionKind,
    /// As they were shown.
    pub files: TreeHashes,
    #[serde(default)]
    pub switches: Switches,
}

/// What the folder is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExtensionKind {
    /// It has a manifest.
    #[default]
    Extension,
    /// It is one skill, and nothing else of it counts.
    Skill,
}

impl ExtensionKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Extension => "extension",
            Self::Skill => "skill",
        }
    }
}

/// What a yes covers, by name.
pub type TreeHashes = BTreeMap<String, FileHash>;

/// A file or link as it was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    pub hash: String,
    /// While it is the same the file is not read again; empty: a link.
    pub stamp: String,
}

/// Where an extension is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum ExtensionSource {
    /// A copy of this folder.
    Folder { path: AbsPath },
    /// This folder itself.
    Link { path: AbsPath },
    /// A copy of a commit, or of one folder in it.
    Git {
        url: String,
        reference: Option<String>,
        commit: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
}

impl ExtensionSource {
    pub fn is_git(&self) -> bool {
        matches!(self, Self::Git { .. })
    }

    /// This folder of a repository; empty: all of it.
    #[must_use]
    pub fn at_path(mut self, folder: &str) -> Self {
        if let Self::Git { path, .. } = &mut self {
            *path = Some(folder.to_owned()).filter(|it| !it.is_empty());
        }
        self
    }

    /// What a rule on sources is compared with.
    pub fn address(&self) -> String {
        match self {
            Self::Folder { path } | Self::Link { path } => path.to_string(),
            Self::Git { url, .. } => url.clone(),
        }
    }
}

impl fmt::Display for ExtensionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { path } => write!(f, "a copy of {path}"),
            Self::Link { path } => write!(f, "linked to {path}"),
            Self::Git { url, commit, path: None, .. } => write!(f, "{url} at {commit}"),
            Self::Git { url, commit, path: Some(path), .. } => write!(f, "{path} of {url} at {commit}"),
        }
    }
}

/// Where an extension is on: of the folders above a session's, the nearest one with a switch decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    pub everywhere: bool,
    pub folders: BTreeMap<AbsPath, bool>,
}

impl Default for Switches {
    fn default() -> Self {
        Self { everywhere: true, folders: BTreeMap::new() }
    }
}

impl Switches {
    pub fn is_on(&self, folder: &AbsPath) -> bool {
        let above = self.folders.iter().filter(|it| folder.is_within(it.0));
        let nearest = above.max_by_key(|it| it.0.as_path().as_os_str().len());
        nearest.map_or(self.everywhere, |it| *it.1)
    }

    /// `None`: everywhere but where a folder says otherwise.
    pub fn set(&mut self, folder: Option<&AbsPath>, is_on: bool) {
        match folder {
            None => self.everywhere = is_on,
            Some(it) => _ = self.folders.insert(it.clone(), is_on),
        }
    }
}

impl ExtensionRecord {
    pub fn new(name: &str, release: &str, source: ExtensionSource, files: TreeHashes) -> Self {
        let (name, release) = (name.to_owned(), release.to_owned());
        let (kind, switches) = (ExtensionKind::default(), Switches::default());
        Self { version: VERSION, name, release, source, kind, files, switches }
    }

    /// Where its files are.
    pub fn folder(&self, home: &AbsPath) -> AbsPath {
        folder(home, &self.name, &self.source)
    }
}

fn folder(home: &AbsPath, name: &str, source: &ExtensionSource) -> AbsPath {
    match source {
        ExtensionSource::Link { path } => path.clone(),
        _ => home_of(home).join(name),
    }
}

/// The same without all that a record holds, and what the folder is.
pub fn folder_of(home: &AbsPath, name: &str) -> Option<(AbsPath, ExtensionKind)> {
    #[derive(Deserialize)]
    struct Head {
        source: ExtensionSource,
        #[serde(default)]
        kind: ExtensionKind,
    }
    let head: Head = serde_json::from_slice(&disk::read_head(&file(home, name), MAX_RECORD).ok()?).ok()?;
    Some((folder(home, name, &head.source), head.kind))
}

/// Where castor keeps extensions.
pub fn home_of(home: &AbsPath) -> AbsPath {
    home.join("extensions")
}

fn file(home: &AbsPath, name: &str) -> AbsPath {
    home_of(home).join(format!("{name}.json"))
}

/// The files of records, by name.
pub fn files(home: &AbsPath) -> Vec<AbsPath> {
    let folder = home_of(home);
    let mut names: Vec<String> = disk::read_dir(&folder).unwrap_or_default().into_iter().map(|it| it.name).collect();
    names.retain(|it| it.strip_suffix(".json").is_some_and(is_extension_name));
    names.sort();
    names.truncate(MAX_EXTENSIONS);
    names.iter().map(|it| folder.join(it)).collect()
}

/// `None`: there is no such extension.
///
/// # Errors
/// A record that cannot be read or understood.
pub fn read(home: &AbsPath, name: &str) -> Result<Option<ExtensionRecord>, String> {
    let file = file(home, name);
    if !is_extension_name(name) {
        return Ok(None);
    }
    let bytes = match disk::read_head(&file, MAX_RECORD) {
        Ok(it) => it,
        Err(it) if it.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(it) => return Err(format!("{file} cannot be read: {it}")),
    };
    match serde_json::from_slice::<ExtensionRecord>(&bytes) {
        Ok(it) if it.version == VERSION && it.name == name => Ok(Some(it)),
        Ok(_) => Err(format!("{file} is of another castor, or about something else; install {name} again")),
        Err(it) => Err(format!("{file} cannot be understood ({it}); install {name} again")),
    }
}

/// # Errors
/// A file that cannot be written.
pub fn write(home: &AbsPath, record: &ExtensionRecord) -> io::Result<()> {
    disk::write_private(&file(home, &record.name), &serde_json::to_vec(record)?)
}

/// Kept as keys are: in a file for the user alone. One that others can read counts for nothing.
///
/// # Errors
/// Such a file, or one that cannot be understood.
pub fn read_values(home: &AbsPath, name: &str) -> Result<Values, String> {
    let file = values_file(home, name);
    match disk::read_private(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| format!("{file} cannot be understood")),
        Err(it) if it.kind() == io::ErrorKind::NotFound => Ok(Values::new()),
        Err(it) => Err(format!("{file} cannot be read: {it}")),
    }
}

/// # Errors
/// A file that cannot be written.
pub fn write_values(home: &AbsPath, name: &str, values: &Values) -> io::Result<()> {
    disk::write_private(&values_file(home, name), &serde_json::to_vec(values)?)
}

fn values_file(home: &AbsPath, name: &str) -> AbsPath {
    home_of(home).join(format!("{name}.values.json"))
}

/// Its values, and its files in castor's folder, too.
///
/// # Errors
/// What cannot be removed.
pub fn remove(home: &AbsPath, record: &ExtensionRecord) -> io::Result<()> {
    disk::remove(&file(home, &record.name))?;
    disk::remove(&values_file(home, &record.name))?;
    let copy = home_of(home).join(&record.name);
    if disk::path_exists(&copy) { disk::remove_tree(&copy) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::Switches;
    use castor_base::path::AbsPath;

    #[test]
    fn the_nearest_folder_decides() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let mut it = Switches::default();
        it.set(Some(&path("/a")), false);
        it.set(Some(&path("/a/b")), true);
        let on = |it: &Switches, at: &[&str]| at.iter().map(|at| it.is_on(&path(at))).collect::<Vec<_>>();
        assert_eq!(on(&it, &["/", "/a", "/a/b/c", "/a/x", "/ab"]), [true, false, true, false, true]);
        it.set(None, false);
        assert_eq!(on(&it, &["/", "/a/b"]), [false, true]);
    }
}
