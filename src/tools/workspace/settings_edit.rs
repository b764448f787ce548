//! Changes of the user's own settings file by castor's commands.

use std::io;

use serde_json::{Map, Value};

use super::{Reader, jsonc};
use castor_base::path::AbsPath;
use castor_hands::disk;

/// Puts a text into a list of the file, or takes it out. `path`: the keys that lead to the list. Whether anything changed.
///
/// # Errors
/// A file that cannot be read, understood or written, or that has comments: they would be lost.
pub fn edit_list(file: &AbsPath, path: &[&str], text: &str, is_in: bool) -> io::Result<bool> {
    edit(file, path, false, |group, last| {
        let list = group.entry(last.to_owned()).or_insert_with(|| Value::Array(Vec::new()));
        let list = list.as_array_mut().ok_or_else(|| format!("{} is no list", path.join(".")))?;
        let is_it = |it: &Value| it.as_str().is_some_and(|it| it.to_lowercase() == text.to_lowercase());
        let n = list.len();
        match (is_in, list.iter().any(is_it)) {
            (true, false) => list.push(text.into()),
            (false, true) => list.retain(|it| !is_it(it)),
            _ => (),
        }
        Ok((list.len() != n, list.len() != n))
    })
}

/// Sets a value, or takes it out; returns the one before. `is_shared`: others may read the file.
///
/// # Errors
/// As [`edit_list`].
pub fn edit_member(file: &AbsPath, path: &[&str], value: Option<Value>, is_shared: bool) -> io::Result<Option<Value>> {
    edit(file, path, is_shared, |group, last| {
        let before = match &value {
            Some(it) => group.insert(last.to_owned(), it.clone()),
            // The others stay in their order.
            None => group.shift_remove(last),
        };
        Ok((before.as_ref() != value.as_ref(), before))
    })
}

/// `change` gets the object that the last key of `path` is in; it says whether anything changed, and what.
fn edit<T>(
    file: &AbsPath,
    path: &[&str],
    is_shared: bool,
    change: impl FnOnce(&mut Map<String, Value>, &str) -> Result<(bool, T), String>,
) -> io::Result<T> {
    let odd = |why: String| io::Error::new(io::ErrorKind::InvalidData, format!("{file}: {why}"));
    let bytes = Reader::disk().optional(file)?.unwrap_or_default();
    let mut value = jsonc::parse(&bytes).map_err(|it| odd(format!("line {}: {}", it.line, it.message)))?;
    let has_comments = !bytes.iter().all(u8::is_ascii_whitespace) && serde_json::from_slice::<Value>(&bytes).is_err();
    if has_comments {
        return Err(odd(format!("has comments, which would be lost; change {} in it by hand", path.join("."))));
    }
    let (last, groups) = path.split_last().ok_or_else(|| odd("no key is named".to_owned()))?;
    let mut group = value.as_object_mut().ok_or_else(|| odd("holds no object".to_owned()))?;
    for key in groups {
        let inner = group.entry((*key).to_owned()).or_insert_with(|| Value::Object(Map::new()));
        group = inner.as_object_mut().ok_or_else(|| odd(format!("{key} is no object")))?;
    }
    let (is_changed, res) = change(group, last).map_err(odd)?;
    if is_changed {
        let mut text = serde_json::to_string_pretty(&value)?;
        text.push('\n');
        match is_shared {
            true => disk::write_atomic(file, text.as_bytes())?,
            false => disk::write_private(file, text.as_bytes())?,
        }
    }
    Ok(res)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]

    use serde_json::json;

    use super::{edit_list, edit_member};
    use castor_base::path::AbsPath;

    #[test]
    fn lists_of_settings_change_and_the_rest_stays() {
        let temp = tempfile::tempdir().unwrap();
        let file = AbsPath::new(temp.path().to_str().unwrap()).unwrap().join("settings.json");
        let path = ["skills", "disabled"];
        let edit = |text: &str, is_in| edit_list(&file, &path, text, is_in);
        assert!(edit("Pdf", true).unwrap() && !edit("pdf", true).unwrap());
        std::fs::write(&file, r#"{"b": 1, "skills": {"disabled": ["x", "Pdf"]}}"#).unwrap();
        assert!(edit("PDF", false).unwrap());
        let now: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(now, serde_json::json!({"b": 1, "skills": {"disabled": ["x"]}}));
        for (bad, why) in
            [("{ // mine\n}", "comments"), ("[]", "no object"), (r#"{"skills": 1}"#, "no object"), ("{", "line 1")]
        {
            std::fs::write(&file, bad).unwrap();
            assert!(edit("x", true).unwrap_err().to_string().contains(why), "{bad}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), bad);
        }
    }

    #[test]
    fn members_come_and_go_and_the_rest_stays() {
        let temp = tempfile::tempdir().unwrap();
        let file = AbsPath::new(temp.path().to_str().unwrap()).unwrap().join("deep/settings.json");
        let edit = |value| edit_member(&file, &["mcpServers", "a"], value, true);
        assert_eq!(edit(None).unwrap(), None);
        assert!(!file.as_path().exists(), "nothing was there to be taken out");
        assert_eq!(edit(Some(json!(1))).unwrap(), None);
        std::fs::write(&file, r#"{"b": 1, "mcpServers": {"a": 1, "c": 2}}"#).unwrap();
        assert_eq!(edit(Some(json!(2))).unwrap(), Some(json!(1)));
        assert_eq!(edit(None).unwrap(), Some(json!(2)));
        let now: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(now, json!({"b": 1, "mcpServers": {"c": 2}}));
        std::fs::write(&file, "{ // mine\n}").unwrap();
        let why = edit(Some(json!(1))).unwrap_err().to_string();
        assert!(why.ends_with("has comments, which would be lost; change mcpServers.a in it by hand"), "{why}");
    }
}
