//! Lenient reading: a member or an item that is broken is left out, and the rest counts.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

/// Broken places in one value; with more of them nothing is read.
const MAX_BROKEN: usize = 64;

/// Reads JSON text. `None`: it is none, or what a `T` needs is missing.
pub fn read_text<T: DeserializeOwned>(text: &str) -> Option<T> {
    match serde_json::from_str(text) {
        Ok(it) => Some(it),
        Err(_) => read_value(serde_json::from_str(text).ok()?),
    }
}

/// Reads a JSON value, without the places that a `T` cannot have.
pub fn read_value<T: DeserializeOwned>(mut value: Value) -> Option<T> {
    for _ in 0..MAX_BROKEN {
        match serde_path_to_error::deserialize(&value) {
            Ok(it) => return Some(it),
            Err(error) => leave_out(&mut value, error.path())?,
        }
    }
    None
}

/// `None`: the value itself is what is wrong.
fn leave_out(value: &mut Value, path: &Path) -> Option<()> {
    let mut known: Vec<&Segment> =
        path.iter().filter(|it| !matches!(it, Segment::Unknown | Segment::Enum { .. })).collect();
    let last = known.pop()?;
    let holder = known.into_iter().try_fold(value, |at, it| match it {
        Segment::Map { key } => at.get_mut(key),
        Segment::Seq { index } => at.get_mut(index),
        Segment::Enum { .. } | Segment::Unknown => None,
    })?;
    match (holder, last) {
        (Value::Object(members), Segment::Map { key }) => members.shift_remove(key).map(|_| ()),
        (Value::Array(items), Segment::Seq { index }) if *index < items.len() => {
            items.remove(*index);
            Some(())
        }
        _ => None,
    }
}
