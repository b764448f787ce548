//! Lists that grow: in an expected list a placeholder stands for what every plain session has in it.
//!
//! `$COMMANDS` is castor's table of slash commands, as a list and as the text of `/help`. `$OPTIONS` and `$MODES` are
//! the lists that `lists.txt` shows, the one conversation that spells them out. Other entries of an expected list either
//! override one of the usual entries, by its id, or stand beside these: before the next one that is named, or at the end.

use std::{borrow::Cow, fs, sync::OnceLock};

use castor_engine::commands::{COMMANDS, SlashCommand};
use serde_json::{Map, Value, json};

use super::folder;

/// The conversation that spells its lists out.
pub const FILE: &str = "lists.txt";
const COMMANDS_HERE: &str = "$COMMANDS";
/// Slash commands that a plain session does not offer.
const RARE_COMMANDS: &[&str] = &["commands", "directory", "extensions", "hooks", "restore", "skills"];

struct List {
    placeholder: &'static str,
    /// The member of messages that holds such a list.
    member: &'static str,
    /// In the shape of version 1.
    entries: Vec<Value>,
}

/// The pattern `items` with its placeholder filled in, in the shape of the list that came. `None`: it has none.
pub fn fill_in(items: &[Value], came: &[Value]) -> Option<Vec<Value>> {
    let is_placeholder = |it: &Value| it.as_str().is_some_and(|it| it.starts_with('$'));
    items.iter().find(|it| is_placeholder(it))?;
    let list = lists().iter().find(|list| items.iter().any(|it| it == list.placeholder))?;
    let usual = list.shaped_like(came);
    let mut rest = usual.as_slice();
    let (mut res, mut beside) = (Vec::new(), Vec::new());
    for item in items.iter().filter(|it| *it != list.placeholder) {
        let Some(at) = rest.iter().position(|it| id(it) == id(item)) else {
            beside.push(item.clone());
            continue;
        };
        res.extend_from_slice(&rest[..at]);
        res.append(&mut beside);
        res.push(overridden(&rest[at], item));
        rest = &rest[at + 1..];
    }
    res.extend_from_slice(rest);
    res.append(&mut beside);
    Some(res)
}

/// A pattern of a text with its placeholder filled in.
pub fn fill_in_text(pattern: &str) -> Cow<'_, str> {
    match pattern.contains(COMMANDS_HERE) {
        true => pattern.replace(COMMANDS_HERE, help()).into(),
        false => pattern.into(),
    }
}

/// The value with placeholders where it holds all of a list.
pub fn shorten(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(text.replace(help(), COMMANDS_HERE)),
        Value::Array(items) => items.iter().map(shorten).collect(),
        Value::Object(fields) => {
            let short = |(member, it): (&String, &Value)| {
                let list = lists().iter().find(|it| it.member == member);
                let short = list.zip(it.as_array()).and_then(|(list, items)| list.shorten(items));
                (member.clone(), short.map_or_else(|| shorten(it), Value::Array))
            };
            Value::Object(fields.iter().map(short).collect::<Map<String, Value>>())
        }
        _ => value.clone(),
    }
}

fn lists() -> &'static [List] {
    static LISTS: OnceLock<Vec<List>> = OnceLock::new();
    LISTS.get_or_init(|| {
        let text = fs::read_to_string(folder().join(FILE)).unwrap();
        let bodies = text.lines().filter_map(|it| it.strip_prefix("< ")?.find('{').map(|at| &it[at + 2..]));
        let bodies: Vec<Value> = bodies.filter_map(|it| serde_json::from_str(it).ok()).collect();
        let shown = |placeholder, member: &'static str| {
            let found = bodies.iter().find_map(|it| find(it, member)).and_then(Value::as_array);
            let entries = found.unwrap_or_else(|| panic!("tests/data/{FILE} does not show {member}")).clone();
            List { placeholder, member, entries }
        };
        let entries = usual_commands().map(command).collect();
        let commands = List { placeholder: COMMANDS_HERE, member: "availableCommands", entries };
        vec![commands, shown("$OPTIONS", "configOptions"), shown("$MODES", "availableModes")]
    })
}

fn usual_commands() -> impl Iterator<Item = &'static SlashCommand> {
    COMMANDS.iter().filter(|it| !RARE_COMMANDS.contains(&it.name))
}

fn command(it: &SlashCommand) -> Value {
    match it.hint {
        "" => json!({"name": it.name, "description": it.description}),
        hint => json!({"name": it.name, "description": it.description, "input": {"hint": hint}}),
    }
}

/// Of a plain session, as `/help` says it.
fn help() -> &'static str {
    static HELP: OnceLock<String> = OnceLock::new();
    HELP.get_or_init(|| {
        let typed = |it: &SlashCommand| format!("/{} {}", it.name, it.hint).trim_end().to_owned();
        usual_commands().map(|it| format!("- `{}`: {}\n", typed(it), it.description)).collect()
    })
}

fn find<'v>(value: &'v Value, member: &str) -> Option<&'v Value> {
    match value {
        Value::Object(fields) => fields.get(member).or_else(|| fields.values().find_map(|it| find(it, member))),
        Value::Array(items) => items.iter().find_map(|it| find(it, member)),
        _ => None,
    }
}

/// The value that tells an entry from the others of its list, with its member's name.
fn id_of(entry: &Value) -> Option<(&'static str, &str)> {
    ["configId", "id", "name"].into_iter().find_map(|name| Some((name, entry.get(name)?.as_str()?)))
}

fn id(entry: &Value) -> Option<&str> {
    id_of(entry).map(|(_, id)| id)
}

fn overridden(entry: &Value, by: &Value) -> Value {
    let mut res = entry.clone();
    if let (Some(fields), Some(by)) = (res.as_object_mut(), by.as_object()) {
        fields.extend(by.iter().map(|(name, it)| (name.clone(), it.clone())));
    }
    res
}

impl List {
    /// The entries as the protocol's version has them that `came` is of.
    fn shaped_like(&self, came: &[Value]) -> Vec<Value> {
        let has = |member: &str| came.iter().any(|it| it.get(member).is_some());
        let is_v2 = has("configId") || self.placeholder == COMMANDS_HERE && has("type");
        let shaped = |it: &Value| if is_v2 { self.in_version_2(it.clone()) } else { it.clone() };
        self.entries.iter().map(shaped).collect()
    }

    fn in_version_2(&self, mut entry: Value) -> Value {
        if self.placeholder == COMMANDS_HERE {
            entry["type"] = json!("command");
            if let Some(input) = entry.get_mut("input") {
                input["type"] = json!("text");
            }
        } else if let Some(fields) = entry.as_object_mut()
            && let Some(id) = fields.shift_remove("id")
        {
            fields.insert("configId".to_owned(), id);
        }
        entry
    }

    /// The list with its placeholder; `None` where it lacks an entry of it.
    fn shorten(&self, items: &[Value]) -> Option<Vec<Value>> {
        let usual = self.shaped_like(items);
        let mut rest = usual.iter();
        let mut next = rest.next();
        let (mut res, mut is_beside) = (vec![json!(self.placeholder)], false);
        for item in items {
            let Some(own) = next.filter(|it| id(it) == id(item)) else {
                res.push(item.clone());
                is_beside = true;
                continue;
            };
            let other = differences(own, item)?;
            if is_beside || !other.is_empty() {
                let head = id_of(own).map(|(name, id)| (name.to_owned(), json!(id)));
                res.push(Value::Object(head.into_iter().chain(other).collect()));
            }
            (is_beside, next) = (false, rest.next());
        }
        next.is_none().then_some(res)
    }
}

/// The members of `item` that the usual entry has otherwise; `None` where it lacks one.
fn differences(usual: &Value, item: &Value) -> Option<Map<String, Value>> {
    let (usual, item) = (usual.as_object()?, item.as_object()?);
    let has_all = usual.keys().all(|it| item.contains_key(it));
    let other = item.iter().filter(|(name, it)| usual.get(*name) != Some(*it));
    has_all.then(|| other.map(|(name, it)| (name.clone(), it.clone())).collect())
}

#[test]
fn placeholders_stand_for_whole_lists() {
    let list = lists().iter().find(|it| it.placeholder == "$OPTIONS").unwrap();
    let usual = list.entries.clone();
    let check = |items: Vec<Value>| {
        let short = shorten(&json!({"configOptions": items}))["configOptions"].clone();
        let short = short.as_array().unwrap().clone();
        assert_eq!(fill_in(&short, &items).unwrap_or(short.clone()), items, "{short:?}");
        short
    };
    assert_eq!(check(usual.clone()), [json!("$OPTIONS")]);
    let mut other = usual.clone();
    other[0]["currentValue"] = json!("plan");
    other.insert(1, json!({"id": "x", "name": "X"}));
    let expect =
        json!(["$OPTIONS", {"id": "mode", "currentValue": "plan"}, {"id": "x", "name": "X"}, {"id": id(&usual[1])}]);
    assert_eq!(json!(check(other)), expect);
    let mut fewer = usual.clone();
    fewer.pop();
    assert_eq!(check(fewer.clone()), fewer, "a list that lacks an entry is spelled out");
    let renamed = |it: &Value| list.in_version_2(it.clone());
    assert_eq!(check(usual.iter().map(renamed).collect()), [json!("$OPTIONS")]);
    assert!(fill_in(&[json!("$OPTIONS")], &fewer).is_some_and(|it| it != fewer), "nothing is missed");
    assert_eq!(shorten(&json!({"text": help()})), json!({"text": "$COMMANDS"}));
    assert_eq!(fill_in_text("Type $COMMANDS"), format!("Type {}", help()));
}
