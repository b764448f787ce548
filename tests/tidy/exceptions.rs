//! Exceptions of the rulers: what is beyond a limit today, by its place, with numbers that only fall.

use std::{
    collections::BTreeMap,
    fs,
    sync::{Mutex, PoisonError},
};

use super::root;

const FILE: &str = "tests/tidy/exceptions.txt";
/// Rulers run at the same time, and each may rewrite its rows.
static WRITING: Mutex<()> = Mutex::new(());

/// Holds what a ruler measured, by place, to its limit and to its rows in the file. `UPDATE_EXPECT=1` lowers the rows.
pub fn check(ruler: &str, limit: usize, measured: &BTreeMap<String, usize>) {
    assert!(!measured.is_empty(), "{ruler}: nothing is found");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let text = read();
        fs::write(root().join(FILE), lowered(&text, ruler, limit, measured)).unwrap();
    }
    let wrong = violations(&read(), ruler, limit, measured);
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

fn read() -> String {
    fs::read_to_string(root().join(FILE)).unwrap()
}

/// The rows of a ruler: line, place, number.
fn rows<'t>(text: &'t str, ruler: &str) -> Vec<(usize, &'t str, usize)> {
    let mut res = Vec::new();
    for (idx, line) in text.lines().enumerate().filter(|(_, it)| !it.starts_with('#')) {
        let parts: Vec<&str> = line.split_whitespace().collect();
        let [own, place, number] = parts[..] else { panic!("{FILE}:{}: a row is `ruler place number`", idx + 1) };
        if own == ruler {
            res.push((idx, place, number.parse().unwrap()));
        }
    }
    res
}

fn violations(text: &str, ruler: &str, limit: usize, measured: &BTreeMap<String, usize>) -> Vec<String> {
    let rows = rows(text, ruler);
    let allowed = |place: &str| rows.iter().find(|it| it.1 == place).map_or(limit, |it| it.2);
    let beyond = measured.iter().filter(|(place, n)| **n > allowed(place));
    let mut res: Vec<String> =
        beyond.map(|(place, n)| format!("{place}: {n} {ruler}, at most {}", allowed(place))).collect();
    for (_, place, number) in &rows {
        let n = measured.get(*place).copied().unwrap_or_default();
        if n < *number {
            res.push(format!(
                "{place}: {n} {ruler}, and {FILE} still allows {number}: `UPDATE_EXPECT=1 cargo test --test tidy` lowers it"
            ));
        }
    }
    res
}

fn lowered(text: &str, ruler: &str, limit: usize, measured: &BTreeMap<String, usize>) -> String {
    let rows = rows(text, ruler);
    let mut res = String::new();
    for (idx, line) in text.lines().enumerate() {
        let row = rows.iter().find(|it| it.0 == idx);
        let Some((_, place, number)) = row else {
            res += &format!("{line}\n");
            continue;
        };
        let n = measured.get(*place).copied().unwrap_or_default().min(*number);
        if n > limit {
            res += &format!("{ruler} {place} {n}\n");
        }
    }
    res
}

#[test]
fn rows_fall_and_go() {
    let measured = |rows: &[(&str, usize)]| rows.iter().map(|it| (it.0.to_owned(), it.1)).collect::<BTreeMap<_, _>>();
    let text = "# ruler place number\nfields a 20\nfiles a 40\nfields b 15\n";
    let now = measured(&[("a", 20), ("b", 15), ("c", 12)]);
    assert!(violations(text, "fields", 12, &now).is_empty());
    let grown = measured(&[("a", 21), ("b", 15), ("c", 13)]);
    assert_eq!(violations(text, "fields", 12, &grown), ["a: 21 fields, at most 20", "c: 13 fields, at most 12"]);
    let fallen = measured(&[("a", 19), ("b", 12)]);
    assert_eq!(violations(text, "fields", 12, &fallen).len(), 2);
    let new = lowered(text, "fields", 12, &fallen);
    assert_eq!(new, "# ruler place number\nfields a 19\nfiles a 40\n");
    assert!(violations(&new, "fields", 12, &fallen).is_empty());
    assert_eq!(lowered(text, "fields", 12, &grown), text, "a row never rises");
    assert_eq!(violations(text, "fields", 12, &measured(&[("b", 15)])).len(), 1, "what is gone has no row");
}
