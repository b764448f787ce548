//! Each room of the map has its row in `rooms.txt`: its lines of code, and counts of words and forms that only fall.

use std::{collections::BTreeMap, fs};

use super::{Source, map, room_of, root, sources, weight::code};

const FILE: &str = "tests/tidy/rooms.txt";
/// The name of a count, and how it is taken.
type Count = (&'static str, fn(&Source) -> usize);
/// The columns of the file.
const COUNTS: [Count; 7] = [
    ("code", code),
    ("headless", headless),
    ("it", |it| code_lines(it).map(n_it).sum()),
    ("it-in-comments", |it| comment_lines(it).map(n_it).sum()),
    ("text-errors", text_errors),
    ("tuple-lets", |it| code_lines(it).filter(|line| line.trim_start().starts_with("let (")).count()),
    ("wide", |it| it.text.lines().filter(|line| line.chars().count() > WIDE).count()),
];
/// Columns of text that a reader need not turn the head for.
const WIDE: usize = 110;
/// First words of comments that have no subject: "What left it", "Of the last request".
const HEADLESS: &[&str] = &[
    "As", "At", "By", "How", "In", "Of", "On", "To", "What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why",
];
/// Files that stand between rooms.
const BETWEEN: &str = "(between)";

type Counts = [usize; COUNTS.len()];

/// A count above its row has grown. A row far above its count is to be lowered, so that it stays so.
#[test]
fn rooms_keep_to_their_rows() {
    let measured = measure();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(root().join(FILE), page(&lowered(&rows(&read()), &measured))).unwrap();
    }
    let wrong = violations(&rows(&read()), &measured);
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

fn read() -> String {
    fs::read_to_string(root().join(FILE)).unwrap_or_default()
}

fn measure() -> BTreeMap<String, Counts> {
    let rooms = map();
    let mut res: BTreeMap<String, Counts> = rooms.keys().map(|it| (it.clone(), Counts::default())).collect();
    for source in sources() {
        let room = room_of(&rooms, &source.module()).unwrap_or_else(|| BETWEEN.to_owned());
        let row = res.entry(room).or_default();
        for (sum, (_, count)) in row.iter_mut().zip(COUNTS) {
            *sum += count(&source);
        }
    }
    res
}

fn rows(text: &str) -> BTreeMap<String, Counts> {
    let mut res = BTreeMap::new();
    for line in text.lines().filter(|it| !it.starts_with('#')) {
        let mut parts = line.split_whitespace();
        let room = parts.next().unwrap_or_default().to_owned();
        let numbers: Vec<usize> = parts.map_while(|it| it.parse().ok()).collect();
        let numbers = numbers.try_into().unwrap_or_else(|_| panic!("{FILE}: `{line}` is not {} numbers", COUNTS.len()));
        res.insert(room, numbers);
    }
    res
}

fn violations(rows: &BTreeMap<String, Counts>, measured: &BTreeMap<String, Counts>) -> Vec<String> {
    let mut res = Vec::new();
    for (room, counts) in measured {
        let Some(row) = rows.get(room) else {
            res.push(format!("{room} has no row in {FILE}: `UPDATE_EXPECT=1 cargo test --test tidy` writes one"));
            continue;
        };
        for ((n, most), (what, _)) in counts.iter().zip(row).zip(COUNTS) {
            if n > most {
                res.push(format!(
                    "{room}: {n} {what}, at most {most}: take some away, or say in the commit why {FILE} rises"
                ));
            } else if *most > n + slack(*n) {
                res.push(format!(
                    "{room}: {n} {what}, {FILE} allows {most}: `UPDATE_EXPECT=1 cargo test --test tidy` lowers it"
                ));
            }
        }
    }
    let gone = rows.keys().filter(|it| !measured.contains_key(*it));
    res.extend(gone.map(|it| format!("{it} has a row in {FILE} and is no room of src/README.md")));
    res
}

/// A number need not be lowered with each word that goes.
fn slack(n: usize) -> usize {
    5 + n / 50
}

/// What was counted, and nothing above its row.
fn lowered(rows: &BTreeMap<String, Counts>, measured: &BTreeMap<String, Counts>) -> BTreeMap<String, Counts> {
    let low = |(room, counts): (&String, &Counts)| {
        let row = rows.get(room).unwrap_or(counts);
        (room.clone(), std::array::from_fn(|idx| counts[idx].min(row[idx])))
    };
    measured.iter().map(low).collect()
}

fn page(rows: &BTreeMap<String, Counts>) -> String {
    let line = |name: &str, cells: Vec<String>| {
        let cells: String =
            cells.iter().zip(COUNTS).map(|(it, (what, _))| format!(" {it:>0$}", what.len().max(6))).collect();
        format!("{name:<20}{cells}\n")
    };
    let mut res = "# The rooms of src/README.md's map with what they may have at most. A number falls; tests/tidy/rooms.rs counts.\n".to_owned();
    res += &line("# room", COUNTS.iter().map(|it| it.0.to_owned()).collect());
    for (room, counts) in rows {
        res += &line(room, counts.iter().map(usize::to_string).collect());
    }
    let total = (0..COUNTS.len()).map(|idx| rows.values().map(|it| it[idx]).sum::<usize>().to_string()).collect();
    res + &line("# all", total)
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn code_lines(source: &Source) -> impl Iterator<Item = &str> {
    source.text.lines().filter(|it| !is_comment(it))
}

fn comment_lines(source: &Source) -> impl Iterator<Item = &str> {
    source.text.lines().filter(|it| is_comment(it))
}

fn n_it(line: &str) -> usize {
    line.split(|it: char| it != '_' && !it.is_alphanumeric()).filter(|it| *it == "it").count()
}

/// Doc comments that begin with no subject.
fn headless(source: &Source) -> usize {
    let mut is_inside = false;
    let begins = |line: &&str| {
        let text = line.trim_start().strip_prefix("///");
        let begins = text.is_some() && !is_inside;
        is_inside = text.is_some();
        let first = text.and_then(|it| it.split_whitespace().next()).unwrap_or_default();
        begins && HEADLESS.contains(&first)
    };
    source.text.lines().filter(begins).count()
}

/// Results of which the error is a text, so that no caller can tell one from another.
fn text_errors(source: &Source) -> usize {
    let code = source.code();
    let is_text = |rest: &str| {
        let mut depth = 1;
        let end = rest.replace("->", "--").char_indices().find_map(|(at, c)| {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => (),
            }
            (depth == 0).then_some(at)
        });
        end.is_some_and(|it| rest[..it].trim_end().trim_end_matches(',').ends_with(", String"))
    };
    code.match_indices("Result<").filter(|(at, word)| is_text(&code[at + word.len()..])).count()
}

#[test]
fn words_and_forms_are_counted() {
    let text = "/// What left it.\n/// Of none.\nfn a(it: u8) -> Result<Vec<u8>, String> {\n    // Keeps it.\n    let (b, c) = it;\n}\n\n\
                /// The rest.\nfn item() -> Result<String, Error> {}\n";
    let source = Source { name: "a.rs".into(), text: text.to_owned() + &"x".repeat(111), tests: String::new() };
    let counts: Vec<usize> = COUNTS.iter().map(|(_, count)| count(&source)).collect();
    assert_eq!(counts, [5, 1, 2, 2, 1, 1, 1]);
}

#[test]
fn rows_fall_and_never_rise() {
    let counts = |n: usize| Counts::from([n; COUNTS.len()]);
    let room = |n: usize| BTreeMap::from([("a".to_owned(), counts(n))]);
    assert_eq!(violations(&room(100), &room(100)), Vec::<String>::new());
    assert_eq!(violations(&room(100), &room(101)).len(), COUNTS.len());
    assert_eq!(violations(&room(100), &room(90)).len(), COUNTS.len());
    assert_eq!(violations(&room(100), &room(95)).len(), 0);
    assert_eq!(violations(&BTreeMap::new(), &room(1)).len(), 1);
    assert_eq!(lowered(&room(100), &room(90)), room(90));
    assert_eq!(lowered(&room(100), &room(101)), room(100));
    assert_eq!(rows(&page(&room(7))), room(7));
}
