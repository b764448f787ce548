//! References of a schema: written out where a dialect takes none, ended where they go in circles, dropped where they lead
//! to nothing.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{MAX_WRITTEN, Walk, combine, is_definitions};

/// References of one kind that end at the same place.
const REFERENCES: &[&str] = &["$ref", "$recursiveRef"];
/// References in a row, at most.
const MAX_HOPS: usize = 16;

impl<'a> Walk<'a> {
    /// A schema that refers to another one. What stands beside the reference counts more than what it leads to.
    pub(super) fn reference(&mut self, schema: &Map<String, Value>, depth: usize) -> Value {
        let address = address(schema);
        let mut beside = schema.clone();
        REFERENCES.iter().for_each(|it| _ = beside.shift_remove(*it));
        let Some((pointer, target)) = address.and_then(|it| self.resolve(it)) else {
            return Value::Object(self.members(&beside, depth));
        };
        if self.open.contains(&pointer) || self.n_written > MAX_WRITTEN {
            return self.end_circle(&beside, target, depth);
        }
        let mut whole = match target {
            Value::Object(it) => it.clone(),
            _ => Map::new(),
        };
        whole.retain(|name, _| !is_definitions(name));
        whole.extend(beside);
        self.open.push(pointer);
        let res = self.schema(&Value::Object(whole), depth);
        self.open.pop();
        res
    }

    /// The last turn of a circle has the type alone.
    fn end_circle(&mut self, beside: &Map<String, Value>, target: &Value, depth: usize) -> Value {
        let mut last = beside.clone();
        for name in ["type", "description"] {
            let said = target.get(name).filter(|_| !beside.contains_key(name));
            last.extend(said.map(|it| (name.to_owned(), it.clone())));
        }
        Value::Object(self.members(&last, depth))
    }

    /// What a reference leads to within the schema, and its place as a JSON pointer.
    fn resolve(&self, address: &str) -> Option<(String, &'a Value)> {
        let pointer = decode(address.strip_prefix('#')?);
        let found = self.root.pointer(&pointer).filter(|it| it.is_object() || **it == true)?;
        Some((pointer.into_owned(), found))
    }

    /// The top without what it cannot be, as it has to be an object: a reference, or one of some values.
    pub(super) fn plain_top(&self) -> Value {
        let mut top = self.root.clone();
        for _ in 0..MAX_HOPS {
            let Some(members) = top.as_object_mut() else { break };
            let Some(address) = address(members).map(str::to_owned) else { break };
            REFERENCES.iter().for_each(|it| _ = members.shift_remove(*it));
            let target = self.resolve(&address).and_then(|it| it.1.as_object());
            let target = target.into_iter().flatten().filter(|(name, _)| !is_definitions(name));
            for (name, it) in target {
                members.entry(name.clone()).or_insert_with(|| it.clone());
            }
        }
        top.as_object_mut().into_iter().for_each(combine::drop_choices);
        top
    }
}

/// Where a schema refers to.
pub(super) fn address(schema: &Map<String, Value>) -> Option<&str> {
    REFERENCES.iter().find_map(|it| schema.get(*it)).and_then(Value::as_str)
}

/// Percent escapes of a fragment.
fn decode(text: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy()
}
