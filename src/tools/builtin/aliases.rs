//! Hard links to secret files: other names under which a secret could be read.

use std::{collections::VecDeque, ffi::OsStr};

use castor_base::{guarded_names::SECRETS, path::AbsPath};
use castor_hands::disk::{self, FileId};

/// Entries that are looked at, those that lie higher first; as many again in the folders that are put off. Behind these,
/// a file of secrets is guarded under its own name only.
const MAX_ENTRIES: usize = 5_000;
const MAX_FOUND: usize = 200;
/// Folders with much in them, and rarely a secret.
const PUT_OFF: &[&str] = &["node_modules", ".git", "target", ".venv", "dist", "build", "__pycache__"];

/// The files of secrets in the roots that have more than one name.
pub struct Aliases {
    secrets: Vec<(FileId, AbsPath)>,
}

impl Aliases {
    /// Names are looked at, and no content. Blocks.
    pub fn scan(roots: &[AbsPath]) -> Self {
        let (mut res, mut put_off) = (Self { secrets: Vec::new() }, VecDeque::new());
        for root in roots {
            res.walk([root.clone()].into(), Some(&mut put_off));
        }
        res.walk(put_off, None);
        res
    }

    /// The file of secrets that `path` is another name of. Blocks.
    pub fn secret_of(&self, path: &AbsPath) -> Option<&AbsPath> {
        let id = disk::hard_link_id(path)?;
        self.secrets.iter().find(|(it, _)| *it == id).map(|(_, it)| it).filter(|it| *it != path)
    }

    /// Looks below `folders`, the higher before the lower.
    fn walk(&mut self, mut folders: VecDeque<AbsPath>, mut put_off: Option<&mut VecDeque<AbsPath>>) {
        let (mut n, mut n_found) = (0, 0);
        while let Some(folder) = folders.pop_front().filter(|_| n < MAX_ENTRIES) {
            for (name, kind) in disk::entries(&folder, MAX_ENTRIES - n) {
                n += 1;
                let path = folder.join(&name);
                match &mut put_off {
                    Some(it) if kind.is_dir() && is_deferred(&name) => it.push_back(path),
                    _ if kind.is_dir() => folders.push_back(path),
                    _ if kind.is_file() && n_found < MAX_FOUND && SECRETS.find(path.as_path()).is_some() => {
                        n_found += 1;
                        self.secrets.extend(disk::hard_link_id(&path).map(|id| (id, path)));
                    }
                    _ => (),
                }
            }
        }
    }
}

fn is_deferred(name: &OsStr) -> bool {
    name.to_str().is_some_and(|it| PUT_OFF.contains(&it))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]

    use std::fs;

    use super::{Aliases, MAX_ENTRIES};
    use crate::builtin::testing::ToolFixture;

    fn ground() -> ToolFixture {
        let ground = ToolFixture::new(&[(".env", "x"), ("build/.env", "x"), ("src/target/id_rsa", "x")]);
        fs::hard_link(ground.cwd.join("build/.env"), ground.cwd.join("hard")).unwrap();
        ground
    }

    #[test]
    fn another_name_of_a_secret_in_a_folder_that_is_put_off() {
        let ground = ground();
        let aliases = Aliases::scan(&ground.ctx().roots);
        assert_eq!(aliases.secret_of(&ground.cwd.join("hard")), Some(&ground.cwd.join("build/.env")));
        assert_eq!(aliases.secret_of(&ground.cwd.join("build/.env")), None);
    }

    /// However much lies deeper.
    #[test]
    fn what_lies_higher_is_looked_at_first() {
        let ground = ground();
        (0..MAX_ENTRIES).for_each(|it| ground.write(&format!("build/a/{it}"), b""));
        let aliases = Aliases::scan(&ground.ctx().roots);
        assert!(aliases.secret_of(&ground.cwd.join("hard")).is_some());
    }
}
