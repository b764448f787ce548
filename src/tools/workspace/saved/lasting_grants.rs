//! Saved sandbox grants of commands, by folder. castor reads them at the start of each session.

use std::io;

use super::{GrantFile, SavedError, change, has, read};
use crate::workspace::Warning;
use castor_base::{log::Grant, network::HostGrant, path::AbsPath};

/// The value of `mode`.
const AUTO: &str = "auto";

pub(super) const GRANTS: GrantFile = GrantFile {
    folder: "",
    name: "sandbox-saved.toml",
    key: "allow",
    head: "# Permanent permissions of commands beyond the sandbox, each for one folder. `castor permissions` lists and removes them.\n\n",
};

/// Adds what `folder`'s commands may do, or finds that it is there; or strikes it out, where it is, as any other yes. A file
/// that cannot be understood is kept aside.
///
/// # Errors
/// A folder or file that cannot be written. Then nothing has changed.
pub fn save_grant(home: &AbsPath, folder: &AbsPath, grant: &Grant, holds: bool) -> io::Result<Option<Warning>> {
    let Some(new) = table(folder, grant) else {
        return if holds { Ok(None) } else { super::remove_rule(home, folder, grant) };
    };
    if has(&GRANTS, home, |it| *it == new)? == holds {
        return Ok(None);
    }
    change(&GRANTS, home, |entries| {
        entries.retain(|it| *it != new);
        if holds {
            entries.push(new);
        }
    })
}

/// What holds in `folder`, and what is wrong with the file. What cannot be understood allows nothing.
pub fn load_grants(home: &AbsPath, folder: &AbsPath) -> (Vec<Grant>, Option<String>) {
    let why = match read(&GRANTS, home) {
        Ok(entries) => {
            let here =
                entries.iter().filter(|it| it.get("folder").and_then(toml::Value::as_str) == folder.as_path().to_str());
            let grants: Vec<Option<Grant>> = here.map(grant).collect();
            let odd = grants.iter().any(Option::is_none);
            let odd = odd.then(|| {
                format!(
                    "{}: an entry is none of `network`, `write`, `hosts`, `secrets` and `mode`; it allows nothing",
                    GRANTS.file(home)
                )
            });
            return (grants.into_iter().flatten().collect(), odd);
        }
        Err(SavedError::Broken { why, .. }) => why,
        Err(SavedError::Io(it)) => it.to_string(),
    };
    (Vec::new(), Some(format!("{}: {why}; it allows nothing", GRANTS.file(home))))
}

pub(super) fn in_words(it: &toml::Table) -> String {
    let folder = it.get("folder").and_then(toml::Value::as_str).unwrap_or("no folder");
    match grant(it) {
        Some(Grant::NetworkFor { prefixes }) => {
            format!("network in the sandbox for `{}`, in {folder}", prefixes.join("`, `"))
        }
        Some(Grant::Write { folder: below }) => format!("writing below {below} in the sandbox, in {folder}"),
        Some(it @ Grant::Reach { .. }) => {
            format!("{} in the sandbox, in {folder}", it.reach_in_words().unwrap_or_default())
        }
        Some(it @ Grant::Secrets { .. }) => format!("{}, in {folder}", it.secrets_in_words().unwrap_or_default()),
        Some(Grant::Auto) => format!("work without questions (mode auto), in {folder}"),
        _ => format!("nothing, in {folder}"),
    }
}

/// `None`: it cannot be written down so that it is the same when it is read.
fn table(folder: &AbsPath, grant: &Grant) -> Option<toml::Table> {
    let hosts_in = |hosts: &[HostGrant]| toml::Value::from(hosts.iter().map(ToString::to_string).collect::<Vec<_>>());
    let (key, what): (_, toml::Value) = match grant {
        Grant::NetworkFor { prefixes } => ("network", prefixes.clone().into()),
        Grant::Write { folder } => ("write", folder.as_path().to_str()?.into()),
        Grant::Reach { hosts, .. } => ("hosts", hosts_in(hosts)),
        Grant::Secrets { files, hosts, line: None } => {
            let files = files.iter().map(|it| Some(it.as_path().to_str()?.into())).collect::<Option<Vec<_>>>()?;
            let pair = [("files", toml::Value::Array(files)), ("hosts", hosts_in(hosts))];
            ("secrets", toml::Table::from_iter(pair.map(|(key, it)| (key.to_owned(), it))).into())
        }
        Grant::Auto => ("mode", AUTO.into()),
        _ => return None,
    };
    let folder = folder.as_path().to_str()?.into();
    Some(toml::Table::from_iter([("folder".to_owned(), folder), (key.to_owned(), what)]))
}

/// An entry with more than one meaning has none.
fn grant(it: &toml::Table) -> Option<Grant> {
    let texts = |all: &[toml::Value]| all.iter().map(|it| it.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
    let hosts_of = |all: &[toml::Value]| -> Option<Vec<HostGrant>> {
        texts(all)?.into_iter().map(HostGrant::try_from).collect::<Result<_, _>>().ok()
    };
    let mut known =
        ["network", "write", "hosts", "secrets", "mode"].iter().filter_map(|key| Some((*key, it.get(*key)?)));
    match (known.next()?, known.next()) {
        (("network", toml::Value::Array(all)), None) => Some(Grant::NetworkFor { prefixes: texts(all)? }),
        (("write", toml::Value::String(it)), None) => AbsPath::new(it).map(|folder| Grant::Write { folder }),
        (("hosts", toml::Value::Array(all)), None) => Some(Grant::Reach { hosts: hosts_of(all)?, ports: Vec::new() }),
        (("secrets", toml::Value::Table(pair)), None) => {
            let list = |key: &str| pair.get(key)?.as_array();
            let files = texts(list("files")?)?.into_iter().map(AbsPath::new).collect::<Option<_>>()?;
            Some(Grant::Secrets { files, hosts: hosts_of(list("hosts")?)?, line: None })
        }
        (("mode", toml::Value::String(it)), None) if it == AUTO => Some(Grant::Auto),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]

    use std::os::unix::fs::PermissionsExt;

    use super::{GRANTS, load_grants, save_grant};
    use crate::workspace::saved::{list, revoke};
    use castor_base::{log::Grant, path::AbsPath};

    #[test]
    fn holds_in_its_folder_until_it_is_taken_back() {
        let temp = tempfile::tempdir().unwrap();
        let home = AbsPath::new(temp.path().join("new")).unwrap();
        let path = |it: &str| AbsPath::new(it).unwrap();
        let (one, two) = (path("/w/one"), path("/w/two"));
        let network = Grant::NetworkFor { prefixes: vec!["npm install".to_owned()] };
        let write = Grant::Write { folder: path("/h/out") };
        let hosts = ["registries", "*.corp:* private"].map(|it| it.to_owned().try_into().unwrap()).to_vec();
        let files = vec![path("/w/three/.env"), path("/w/three/a b/.env.local")];
        let secrets = Grant::Secrets { files, hosts: vec!["a.test".to_owned().try_into().unwrap()], line: None };
        let hosts = Grant::Reach { hosts, ports: vec![] };
        assert_eq!(load_grants(&home, &one), (vec![], None));
        save_grant(&home, &one, &network, false).unwrap();
        assert!(!GRANTS.file(&home).as_path().exists(), "nothing to strike out");
        let three = path("/w/three");
        for it in [&hosts, &secrets] {
            save_grant(&home, &three, it, true).unwrap();
            assert_eq!(load_grants(&home, &three).0, std::slice::from_ref(it));
            save_grant(&home, &three, it, false).unwrap();
        }
        let of_line = Grant::Secrets { files: vec![], hosts: vec![], line: Some("x".to_owned()) };
        save_grant(&home, &three, &of_line, true).unwrap();
        assert_eq!(load_grants(&home, &three).0, []);
        for it in [&network, &write, &Grant::Auto, &network] {
            assert_eq!(save_grant(&home, &one, it, true).unwrap(), None);
        }
        save_grant(&home, &two, &write, true).unwrap();
        let mode = std::fs::metadata(GRANTS.file(&home).as_path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(load_grants(&home, &one).0, [network.clone(), write.clone(), Grant::Auto]);
        assert_eq!(load_grants(&home, &path("/w")).0, []);
        assert_eq!(
            list(&home).unwrap(),
            [
                "network in the sandbox for `npm install`, in /w/one",
                "writing below /h/out in the sandbox, in /w/one",
                "work without questions (mode auto), in /w/one",
                "writing below /h/out in the sandbox, in /w/two"
            ]
        );
        save_grant(&home, &one, &network, false).unwrap();
        save_grant(&home, &one, &Grant::Auto, false).unwrap();
        assert_eq!(revoke(&home, Some(0)).unwrap(), 1);
        assert_eq!((load_grants(&home, &one).0, load_grants(&home, &two).0), (vec![], vec![write]));
        assert_eq!(revoke(&home, None).unwrap(), 1);
        save_grant(&home, &one, &Grant::Network, true).unwrap();
        assert_eq!(list(&home).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_cannot_be_understood_allows_nothing_and_is_kept_aside() {
        let temp = tempfile::tempdir().unwrap();
        let home = AbsPath::new(temp.path()).unwrap();
        let folder = AbsPath::new("/w").unwrap();
        let write = Grant::Write { folder: AbsPath::new("/h/out").unwrap() };
        for bad in ["[[allow", "allow = 5", "allow = [1]"] {
            std::fs::write(GRANTS.file(&home), bad).unwrap();
            let (grants, why) = load_grants(&home, &folder);
            assert!(grants.is_empty() && why.is_some_and(|it| it.contains("sandbox-saved.toml")), "{bad}");
            let warning = save_grant(&home, &folder, &write, true).unwrap().unwrap().to_string();
            assert!(warning.contains("sandbox-saved.toml.bak"), "{warning}");
            assert_eq!(std::fs::read_to_string(temp.path().join("sandbox-saved.toml.bak")).unwrap(), bad);
            assert_eq!(load_grants(&home, &folder), (vec![write.clone()], None));
        }
        let odd =
            "[[allow]]\nfolder = '/w'\nwrite = 'out'\n[[allow]]\nfolder = '/w'\nwrite = '/a/b'\nnetwork = ['x']\n";
        std::fs::write(GRANTS.file(&home), odd).unwrap();
        let (grants, why) = load_grants(&home, &folder);
        assert!(grants.is_empty() && why.is_some());
    }
}
