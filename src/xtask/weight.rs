//! The weight of crates: lines of code without tests, comments and blanks.

use std::{collections::BTreeMap, fs, io, path::Path};

/// Lines of a text that are code. Tests at its end do not count.
pub fn lines_of_code(text: &str) -> usize {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with("//")).count()
}

/// A row for each folder of `src`, and the sum of all but this one.
///
/// # Errors
/// When a folder or a file cannot be read.
pub fn table(src: &Path) -> io::Result<String> {
    let mut all = BTreeMap::<String, usize>::new();
    let mut open = vec![src.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            let name = path.strip_prefix(src).unwrap_or(&path).to_string_lossy().into_owned();
            let is_test = name.split('/').any(|it| it.starts_with("tests") || it == "testing.rs" || it == "fixtures");
            match path.is_dir() {
                _ if is_test => (),
                true => open.push(path),
                false if !name.ends_with(".rs") => (),
                false => {
                    let room = name.split_once('/').map_or("castor", |it| it.0).to_owned();
                    *all.entry(room).or_default() += lines_of_code(&fs::read_to_string(&path)?);
                }
            }
        }
    }
    let rows: String = all.iter().map(|(room, n)| format!("{n:>7} {room}\n")).collect();
    let sum: usize = all.iter().filter(|it| it.0 != "xtask").map(|it| it.1).sum();
    Ok(format!("{rows}{sum:>7} without xtask\n"))
}

#[cfg(test)]
mod tests {
    use super::{lines_of_code, table};

    #[test]
    fn tests_comments_and_blanks_weigh_nothing() {
        assert_eq!(
            lines_of_code("//! A file.\n\nfn a() {\n    // Why.\n}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n"),
            2
        );
    }

    #[test]
    fn each_folder_has_its_row() {
        let table = table(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        assert!(table.contains(" engine\n") && table.contains(" xtask\n") && !table.contains("fixtures"), "{table}");
    }
}
