//! The user's model table, in castor's own folder: it goes before the one that castor brings if it is not older.

use std::{io, sync::Arc};

use super::Warning;
use castor_base::{model_table::ModelTable, path::AbsPath};
use castor_hands::disk;

/// Larger files are none.
pub const MAX_BYTES: u64 = 4 << 20;

pub fn path(home: &AbsPath) -> AbsPath {
    home.join("models.toml")
}

/// The table that counts. A file that cannot be used changes nothing, and is said.
pub fn read(home: Option<&AbsPath>, warnings: &mut Vec<Warning>) -> Arc<ModelTable> {
    let built_in = ModelTable::built_in;
    let Some(file) = home.map(path) else { return built_in() };
    let bytes = match disk::read_head(&file, MAX_BYTES) {
        Ok(it) => it,
        Err(it) if it.kind() == io::ErrorKind::NotFound => return built_in(),
        Err(it) => return refuse(&file, &it.to_string(), warnings),
    };
    match ModelTable::parse(&String::from_utf8_lossy(&bytes)) {
        Ok(own) if own.date() < built_in().date() => built_in(),
        Ok(own) => Arc::new(own),
        Err(it) => refuse(&file, &it.to_string(), warnings),
    }
}

fn refuse(file: &AbsPath, why: &str, warnings: &mut Vec<Warning>) -> Arc<ModelTable> {
    let message = format!("{why}; castor goes by its own rows. `castor models update FILE` writes it anew");
    warnings.push(Warning { origin: file.to_string(), at: None, key: None, message });
    ModelTable::built_in()
}

/// Replaces it.
///
/// # Errors
/// The disk's.
pub fn write(home: &AbsPath, text: &str) -> io::Result<()> {
    disk::write_private(&path(home), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{path, read, write};
    use castor_base::{model_table::ModelTable, path::AbsPath};

    #[test]
    fn the_newer_table_counts() {
        let dir = tempfile::tempdir().unwrap();
        let home = AbsPath::new(dir.path()).unwrap();
        let table = |day: &str| {
            let rows = "[family.a]\n[[model]]\nid = \"a\"\nfamily = \"a\"\n";
            format!("date = \"{day}\"\ndefault = \"a\"\n{rows}")
        };
        let own = ModelTable::built_in().date();
        for (text, day, warning) in [
            (None, own.to_string().as_str(), ""),
            (Some(table("2100-01-01")), "2100-01-01", ""),
            (Some(table("2020-01-01")), own.to_string().as_str(), ""),
            (Some("date = 1".to_owned()), own.to_string().as_str(), "invalid type"),
        ] {
            if let Some(it) = text {
                write(&home, &it).unwrap();
            }
            let mut warnings = Vec::new();
            assert_eq!(read(Some(&home), &mut warnings).date().to_string(), day);
            let said: String = warnings.iter().map(ToString::to_string).collect();
            assert!(said.contains(warning) && said.is_empty() == warning.is_empty(), "{said}");
        }
        assert!(path(&home).as_path().exists());
    }
}
