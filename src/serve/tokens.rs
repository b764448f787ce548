//! Tokens of `castor serve`: a private file with their hashes, each with its principal and that one's rights.

use std::{collections::BTreeMap, io::ErrorKind};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use castor_base::path::AbsPath;
use castor_hands::disk;

/// How every token begins, so that it is known where it is found.
const PREFIX: &str = "castor_";
const MAX_NAME: usize = 64;

/// Below castor's own folder.
pub fn file(home: &AbsPath) -> AbsPath {
    home.join("serve").join("tokens.json")
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenFile {
    #[serde(default)]
    pub principals: BTreeMap<String, PrincipalRights>,
    #[serde(default)]
    pub tokens: Vec<TokenEntry>,
}

/// What a principal that is not the user may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrincipalRights {
    /// Folders that its sessions work in; it sees nothing beside them of where people keep theirs.
    pub roots: Vec<String>,
    /// The only modes; empty: all.
    pub modes: Vec<String>,
    /// The only models; empty: all.
    pub models: Vec<String>,
    /// Flags of `castor acp` that bound what it spends.
    pub budgets: Vec<String>,
    /// Variables that its agent gets though they look like secrets.
    pub env: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    pub name: String,
    /// `None`: the user that runs the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    pub sha256: String,
}

impl TokenFile {
    /// No file: no tokens.
    ///
    /// # Errors
    /// A file that others can read or that holds something else, in words.
    pub fn load(home: &AbsPath) -> Result<Self, String> {
        let file = file(home);
        let bytes = match disk::read_private(&file) {
            Ok(it) => it,
            Err(it) if it.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(it) => return Err(format!("{file}: {it}")),
        };
        serde_json::from_slice(&bytes).map_err(|it| format!("{file}: {it}"))
    }

    /// # Errors
    /// Of the disk, in words.
    pub fn save(&self, home: &AbsPath) -> Result<(), String> {
        let file = file(home);
        let failed = |it: &dyn std::fmt::Display| format!("{file}: {it}");
        let bytes = serde_json::to_vec_pretty(self).map_err(|it| failed(&it))?;
        disk::write_private(&file, &bytes).map_err(|it| failed(&it))
    }

    /// Makes a token and returns it: it is nowhere else.
    ///
    /// # Errors
    /// A name that is taken or none, or rights that another token of the principal does not have.
    pub fn add(&mut self, name: &str, principal: Option<&str>, rights: PrincipalRights) -> Result<String, String> {
        for it in std::iter::once(name).chain(principal) {
            check_name(it)?;
        }
        if self.tokens.iter().any(|it| it.name == name) {
            return Err(format!("there is a token {name} already; remove it, or choose another name"));
        }
        if let Some(principal) = principal {
            self.admit(principal, rights)?;
        }
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| "the system has no random bytes".to_owned())?;
        let token = format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes));
        let sha256 = disk::hash(token.as_bytes());
        self.tokens.push(TokenEntry { name: name.to_owned(), principal: principal.map(str::to_owned), sha256 });
        Ok(token)
    }

    fn admit(&mut self, principal: &str, rights: PrincipalRights) -> Result<(), String> {
        match self.principals.get(principal) {
            Some(known) if rights != PrincipalRights::default() && rights != *known => {
                Err(format!("the principal {principal} has other rights; remove its tokens first, or leave them out"))
            }
            Some(_) => Ok(()),
            None if rights.roots.is_empty() => Err(format!("the principal {principal} needs a folder: --root DIR")),
            None => {
                self.principals.insert(principal.to_owned(), rights);
                Ok(())
            }
        }
    }

    /// Tells whether there was such a token. The last one of a principal takes its rights with it.
    pub fn remove(&mut self, name: &str) -> bool {
        let n = self.tokens.len();
        self.tokens.retain(|it| it.name != name);
        let tokens = &self.tokens;
        self.principals.retain(|name, _| tokens.iter().any(|it| it.principal.as_ref() == Some(name)));
        self.tokens.len() < n
    }

    /// The entry of a token, as a client sends it. How long that takes says nothing of any token.
    pub fn find(&self, token: &str) -> Option<&TokenEntry> {
        let sha256 = disk::hash(token.as_bytes());
        // All are looked at, also behind the one that it is.
        let is_it = |it: &TokenEntry| is_same(it.sha256.as_bytes(), sha256.as_bytes());
        self.tokens.iter().fold(None, |found, it| if is_it(it) { Some(it) } else { found })
    }
}

/// Looks at every byte, wherever they differ first.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
    a.len() == b.len() && differences == 0
}

/// Names are also those of folders.
fn check_name(name: &str) -> Result<(), String> {
    let is_fine = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    match name.is_empty() || name.len() > MAX_NAME || name.starts_with('.') || !name.chars().all(is_fine) {
        true => Err(format!("{name:?} is no name: use letters, digits, - and _, {MAX_NAME} at most")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{PrincipalRights, TokenFile};
    use castor_base::path::AbsPath;
    use castor_hands::disk;

    #[test]
    fn a_token_is_known_by_its_hash_and_gone_when_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let home = AbsPath::new(folder.path()).unwrap();
        let mut all = TokenFile::load(&home).unwrap();
        let rights = PrincipalRights { roots: vec!["/srv".into()], ..PrincipalRights::default() };
        let mine = all.add("laptop", None, PrincipalRights::default()).unwrap();
        let ci = all.add("ci", Some("bots"), rights.clone()).unwrap();
        all.save(&home).unwrap();
        let text = String::from_utf8(disk::read(&super::file(&home)).unwrap()).unwrap();
        assert!(!text.contains(&mine) && !text.contains(&ci));
        let mut read = TokenFile::load(&home).unwrap();
        assert_eq!(read, all);
        assert_eq!(read.find(&ci).unwrap().principal.as_deref(), Some("bots"));
        assert_eq!(read.find(&mine).unwrap().principal, None);
        assert!(read.find("castor_x").is_none() && read.find("").is_none());
        assert!(read.remove("ci") && !read.remove("ci"));
        assert!(read.find(&ci).is_none() && read.principals.is_empty());
    }

    #[test]
    fn a_principal_has_one_set_of_rights() {
        let mut all = TokenFile::default();
        let rights = |root: &str| PrincipalRights { roots: vec![root.into()], ..PrincipalRights::default() };
        let none = PrincipalRights::default;
        assert!(all.add("a", Some("p"), none()).is_err(), "it needs a root");
        all.add("a", Some("p"), rights("/x")).unwrap();
        all.add("b", Some("p"), none()).unwrap();
        all.add("c", Some("p"), rights("/x")).unwrap();
        assert!(all.add("d", Some("p"), rights("/y")).is_err());
        assert!(all.add("a", None, none()).is_err(), "the name is taken");
        for name in ["", "../x", ".x", "a b", "é"] {
            assert!(all.add(name, None, none()).is_err(), "{name}");
            assert!(all.add("e", Some(name), rights("/x")).is_err(), "{name}");
        }
    }
}
