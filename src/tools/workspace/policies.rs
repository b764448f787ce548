//! Policy files on disk: where they lie, and which of them count. The engine parses them.

use std::io;

use crate::workspace::{Reader, Warning, castor_home, extension_files::ExtensionTier, gemini_home};
use castor_base::path::AbsPath;
use castor_hands::{disk, secrets::Env};

/// Larger files are no policies.
const MAX_BYTES: usize = 1 << 20;
/// More files in one folder are not read: loading must not take long.
const MAX_FILES: usize = 100;

/// Where an administrator's policies lie, the weakest first.
pub(super) const SYSTEM_FOLDERS: &[&str] = &["/etc/gemini-cli/policies", "/etc/castor/policies"];

/// The author of a policy file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyAuthor {
    Extension,
    Workspace,
    User,
    /// The machine's administrator.
    System,
}

/// A file with rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    pub author: PolicyAuthor,
    pub file: AbsPath,
    /// `None`: it is there, but cannot be read. It may have denied something.
    pub text: Option<String>,
}

/// Files (`.toml`) and folders that settings name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyPaths {
    /// In place of Gemini CLI's folder of the user.
    pub user: Vec<AbsPath>,
    /// Beside the system's folders, as long as those hold nothing.
    pub admin: Vec<AbsPath>,
}

struct PolicyPlace {
    author: PolicyAuthor,
    at: AbsPath,
    is_configured: bool,
}

type ListFn<'a> = dyn Fn(&AbsPath) -> io::Result<Vec<String>> + 'a;
type RootOnlyFn<'a> = dyn Fn(&AbsPath) -> bool + 'a;

/// Folder access, beside [`Reader`].
#[derive(Clone, Copy)]
pub struct FolderAccess<'a> {
    /// The names in a folder.
    pub list: &'a ListFn<'a>,
    /// Whether only root can change a file or a folder.
    pub only_root_can_write: &'a RootOnlyFn<'a>,
}

impl FolderAccess<'static> {
    pub fn disk() -> Self {
        Self {
            list: &|it| disk::read_dir(it).map(|it| it.into_iter().map(|it| it.name).collect()),
            only_root_can_write: &disk::only_root_can_write,
        }
    }
}

/// Reads every policy file. `workspace` is `None` when it is not trusted, or is the user's home.
pub fn read(
    env: &Env,
    workspace: Option<&AbsPath>,
    extensions: &ExtensionTier,
    named: &PolicyPaths,
    (reader, folders): (Reader<'_>, FolderAccess<'_>),
) -> (Vec<PolicyFile>, Vec<Warning>) {
    let (mut files, mut warnings) = (Vec::new(), Vec::new());
    let mut has_system = false;
    for PolicyPlace { author, at: folder, is_configured: named } in policy_places(env, workspace, extensions, named) {
        has_system |= !named && files.iter().any(|it: &PolicyFile| it.author == PolicyAuthor::System);
        if named && author == PolicyAuthor::System && has_system {
            warnings.push(warn(&folder, "is not read: the system has policies of its own".to_owned()));
            continue;
        }
        if named && folder.as_path().extension().is_some_and(|it| it == "toml") {
            let text = read_file(&folder, reader).map_err(|it| warnings.push(it)).ok();
            files.push(PolicyFile { author, file: folder, text });
            continue;
        }
        let names = match (folders.list)(&folder) {
            Ok(it) => it,
            Err(it) if !named && matches!(it.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                continue;
            }
            Err(it) => {
                warnings.push(warn(&folder, format!("cannot be read: {it}; castor asks about every call")));
                files.push(PolicyFile { author, file: folder, text: None });
                continue;
            }
        };
        if author == PolicyAuthor::System && !named && !(folders.only_root_can_write)(&folder) {
            warnings.push(warn(&folder, "is skipped: others than root can write to it".to_owned()));
            continue;
        }
        let mut names: Vec<String> = names.into_iter().filter(|it| it.ends_with(".toml")).collect();
        names.sort();
        if names.len() > MAX_FILES {
            warnings.push(warn(&folder, format!("has more than {MAX_FILES} files; castor asks about every call")));
            files.push(PolicyFile { author, file: folder.clone(), text: None });
            names.truncate(MAX_FILES);
        }
        for name in names {
            let file = folder.join(&name);
            if author == PolicyAuthor::System && !named && !(folders.only_root_can_write)(&file) {
                warnings.push(warn(&file, "is skipped: others than root can write to it".to_owned()));
                continue;
            }
            let text = read_file(&file, reader).map_err(|it| warnings.push(it)).ok();
            files.push(PolicyFile { author, file, text });
        }
    }
    (files, warnings)
}

fn warn(file: &AbsPath, message: String) -> Warning {
    Warning { origin: file.to_string(), at: None, key: None, message }
}

fn read_file(file: &AbsPath, reader: Reader<'_>) -> Result<String, Warning> {
    let closed = "castor asks about everything that it may deny";
    let bytes = (reader.read)(file).map_err(|it| warn(file, format!("cannot be read: {it}; {closed}")))?;
    if bytes.len() > MAX_BYTES {
        return Err(warn(file, format!("is over {} MiB: {closed}", MAX_BYTES >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| warn(file, format!("is not UTF-8: {closed}")))
}

/// In order: of one author Gemini CLI's or what settings name, then castor's.
fn policy_places(
    env: &Env,
    workspace: Option<&AbsPath>,
    extensions: &ExtensionTier,
    named: &PolicyPaths,
) -> Vec<PolicyPlace> {
    let place = |author, at| PolicyPlace { author, at, is_configured: false };
    let by_name = |author, all: &[AbsPath]| -> Vec<PolicyPlace> {
        all.iter().map(|it| PolicyPlace { author, at: it.clone(), is_configured: true }).collect()
    };
    let of_extensions = extensions.policies.iter().cloned();
    let mut res: Vec<PolicyPlace> = of_extensions.map(|at| place(PolicyAuthor::Extension, at)).collect();
    res.extend(SYSTEM_FOLDERS.iter().filter_map(|it| AbsPath::new(*it)).map(|it| place(PolicyAuthor::System, it)));
    let gemini = gemini_home(env).filter(|_| named.user.is_empty());
    res.extend(gemini.map(|it| place(PolicyAuthor::User, it.join("policies"))));
    res.extend(by_name(PolicyAuthor::User, &named.user));
    res.extend(castor_home(env).map(|it| place(PolicyAuthor::User, it.join("policies"))));
    res.extend(by_name(PolicyAuthor::System, &named.admin));
    for name in [".gemini", ".castor"] {
        let folder = workspace.map(|it| it.join(name).join("policies"));
        // CASTOR_HOME may point into the workspace: a folder counts once, as the user's.
        let fresh = folder.filter(|folder| res.iter().all(|it| it.at != *folder));
        res.extend(fresh.map(|it| place(PolicyAuthor::Workspace, it)));
    }
    res
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, io};

    use super::{FolderAccess, PolicyAuthor, PolicyPaths, read};
    use crate::workspace::{Reader, extension_files::ExtensionTier};
    use castor_base::path::AbsPath;
    use castor_hands::secrets::Env;

    /// `author file` of what was read, and the warnings. A text `denied` cannot be read; `loose` paths are writable.
    fn look(files: &[(&str, &str)], loose: &[&str], workspace: Option<&str>) -> (Vec<String>, Vec<String>) {
        look_with(files, loose, workspace, &PolicyPaths::default())
    }

    fn look_with(
        files: &[(&str, &str)],
        loose: &[&str],
        workspace: Option<&str>,
        named: &PolicyPaths,
    ) -> (Vec<String>, Vec<String>) {
        let files: BTreeMap<String, &str> = files.iter().map(|(name, text)| ((*name).to_owned(), *text)).collect();
        let reader = Reader {
            read: &|it| match files.get(&it.to_string()).copied() {
                Some("denied") | None => Err(io::ErrorKind::PermissionDenied.into()),
                Some(text) => Ok(text.as_bytes().to_vec()),
            },
            real_path: &|it| Ok(it.clone()),
        };
        let list = |folder: &AbsPath| {
            let below = files.keys().filter_map(|it| it.strip_prefix(&format!("{folder}/")));
            let names: Vec<String> = below.map(str::to_owned).collect();
            if names.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(names) }
        };
        let folders =
            FolderAccess { list: &list, only_root_can_write: &|it| !loose.contains(&it.to_string().as_str()) };
        let env = Env::from_pairs([("HOME", "/h")]);
        let workspace = workspace.and_then(AbsPath::new);
        let (read, warnings) = read(&env, workspace.as_ref(), &ExtensionTier::default(), named, (reader, folders));
        let shown = |it: &super::PolicyFile| {
            format!("{:?} {}{}", it.author, it.file, if it.text.is_some() { "" } else { " unread" })
        };
        (read.iter().map(shown).collect(), warnings.iter().map(|it| it.to_string()).collect())
    }

    const FILES: &[(&str, &str)] = &[
        ("/etc/castor/policies/a.toml", ""),
        ("/etc/gemini-cli/policies/b.toml", ""),
        ("/h/.castor/policies/z.toml", ""),
        ("/h/.castor/policies/auto-saved.toml", ""),
        ("/h/.castor/policies/notes.md", ""),
        ("/h/.gemini/policies/u.toml", ""),
        ("/w/.castor/policies/w.toml", ""),
    ];

    #[test]
    fn reads_folders_in_order() {
        let (files, warnings) = look(FILES, &[], Some("/w"));
        assert_eq!(
            files,
            [
                "System /etc/gemini-cli/policies/b.toml",
                "System /etc/castor/policies/a.toml",
                "User /h/.gemini/policies/u.toml",
                "User /h/.castor/policies/auto-saved.toml",
                "User /h/.castor/policies/z.toml",
                "Workspace /w/.castor/policies/w.toml",
            ]
        );
        assert!(warnings.is_empty());
        let (files, _) = look(FILES, &[], None);
        assert!(files.iter().all(|it| !it.contains("/w")), "{files:?}");
    }

    #[test]
    fn settings_name_more() {
        let all = |it: &[&str]| it.iter().filter_map(AbsPath::new).collect();
        let files = [FILES, &[("/x/one.toml", ""), ("/x/two.toml", ""), ("/adm/a.toml", "")]].concat();
        let named = PolicyPaths { user: all(&["/x/two.toml", "/gone", "/gone.toml"]), admin: all(&["/adm"]) };
        let (read, warnings) = look_with(&files, &[], None, &named);
        assert_eq!(
            read,
            [
                "System /etc/gemini-cli/policies/b.toml",
                "System /etc/castor/policies/a.toml",
                "User /x/two.toml",
                "User /gone unread",
                "User /gone.toml unread",
                "User /h/.castor/policies/auto-saved.toml",
                "User /h/.castor/policies/z.toml",
            ]
        );
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(warnings[2].contains("/adm: is not read: the system has policies of its own"), "{warnings:?}");
        let named = PolicyPaths { admin: all(&["/adm", "/x/one.toml"]), ..PolicyPaths::default() };
        let (read, warnings) = look_with(&files[2..], &["/adm"], None, &named);
        assert_eq!(read[read.len() - 2..], ["System /adm/a.toml", "System /x/one.toml"]);
        assert!(warnings.is_empty() && read[0] == "User /h/.gemini/policies/u.toml", "{read:?} {warnings:?}");
    }

    #[test]
    fn the_systems_files_must_be_roots() {
        let (files, warnings) =
            look(FILES, &["/etc/castor/policies", "/etc/gemini-cli/policies/b.toml", "/h/.castor/policies"], None);
        assert!(files.iter().all(|it| it.starts_with("User")), "{files:?}");
        assert_eq!(warnings.len(), 2);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let (files, warnings) = look(&[("/h/.castor/policies/x.toml", "denied")], &[], None);
        assert_eq!(files, ["User /h/.castor/policies/x.toml unread"]);
        assert!(warnings[0].contains("castor asks about"), "{warnings:?}");
        assert_eq!(super::PolicyAuthor::Workspace.min(PolicyAuthor::User), PolicyAuthor::Workspace);
    }
}
