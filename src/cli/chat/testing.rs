//! Test helper: panels played by lines of keys, with their screens and actions as text.

#![allow(clippy::disallowed_methods)]

use expect_test::expect_file;

use super::lower::{Action, AgentPhase, Draft, Drawn, Key, News, Panel, Theme};

/// Columns and rows of a screen, unless a scenario says otherwise.
const SIZE: (u16, u16) = (60, 12);

/// Plays a file of scenarios, and compares it with what they show now. `UPDATE_EXPECT=1` rewrites it. `# name` begins a
/// scenario, `> keys` are typed, `= 40x10` is another size; what stands below, indented, is what is seen.
pub fn check(file: &str, make: impl Fn(&str) -> Box<dyn Panel>, tell: impl Fn(&Action) -> Option<News>) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let before = std::fs::read_to_string(&path).unwrap();
    let (mut after, mut panel, mut size) = (String::new(), make(""), SIZE);
    for line in before.lines() {
        let (sign, rest) = line.split_at_checked(2).unwrap_or_default();
        match sign {
            "# " => {
                (panel, size) = (make(rest), SIZE);
                after.push_str(&format!("{}{line}\n", if after.is_empty() { "" } else { "\n" }));
            }
            "= " => {
                let (width, height) = rest.split_once('x').unwrap();
                size = (width.parse().unwrap(), height.parse().unwrap());
                after.push_str(&format!("{line}\n"));
            }
            "> " => {
                let actions = play(panel.as_mut(), rest, &tell);
                let seen = screen_text(&panel.draw(size.0, size.1, &Theme::default())) + &actions;
                let seen = seen.lines().map(|it| format!("  {it}").trim_end().to_owned() + "\n");
                after.push_str(&format!("{line}\n{}", seen.collect::<String>()));
            }
            _ => (),
        }
    }
    assert!(after.matches("\n> ").count() > 3, "{file} has no scenarios");
    expect_file![path].assert_eq(&after);
}

/// Types keys, answers what the panel asks for, and gives the rest of its actions.
fn play(panel: &mut dyn Panel, keys: &str, tell: &impl Fn(&Action) -> Option<News>) -> String {
    let mut out = Vec::new();
    for key in read_keys(keys) {
        match key {
            Typed::Key(key) => panel.key(&key, &mut out),
            Typed::News(news) => panel.tell(&news, &mut out),
            // As the frame knows the width before the next key.
            Typed::Draw => (),
        }
        panel.draw(SIZE.0, SIZE.1, &Theme::default());
        for it in out.clone() {
            if let Some(news) = tell(&it) {
                out.retain(|own| *own != it);
                panel.tell(&news, &mut out);
            }
        }
    }
    out.iter().map(|it| format!("→ {it:?}\n")).collect()
}

pub enum Typed {
    Key(Key),
    News(News),
    Draw,
}

/// `<Esc>`, `<C-x>`, `<A-b>`, `<Paste 212>` for so many lines, `<Paste text>`, `<Working>`; other characters are typed.
pub fn read_keys(text: &str) -> Vec<Typed> {
    let (mut res, mut rest) = (Vec::new(), text);
    while let Some(it) = rest.chars().next() {
        match rest.strip_prefix('<').and_then(|it| it.split_once('>')) {
            Some((name, behind)) => {
                res.push(typed_by_name(name));
                rest = behind;
            }
            None => {
                res.push(Typed::Key(Key::Char(it)));
                rest = &rest[it.len_utf8()..];
            }
        }
    }
    res
}

fn typed_by_name(name: &str) -> Typed {
    Typed::Key(match name {
        "lt" => Key::Char('<'),
        "Enter" => Key::Enter,
        "NL" => Key::LineBreak,
        "Tab" => Key::Tab,
        "BackTab" => Key::BackTab,
        "BS" => Key::Backspace,
        "Del" => Key::Delete,
        "Esc" => Key::Esc,
        "Up" => Key::Up,
        "Down" => Key::Down,
        "Left" => Key::Left,
        "Right" => Key::Right,
        "Home" => Key::Home,
        "End" => Key::End,
        "PageUp" => Key::PageUp,
        "PageDown" => Key::PageDown,
        "Draw" => return Typed::Draw,
        "Working" => return Typed::News(News::Agent(AgentPhase::Steerable)),
        "Busy" => return Typed::News(News::Agent(AgentPhase::Busy)),
        "Foreign" => return Typed::News(News::Castor(false)),
        _ => {
            if let Some(it) = name.strip_prefix("C-") {
                Key::Ctrl(it.chars().next().unwrap())
            } else if let Some(it) = name.strip_prefix("A-") {
                Key::Alt(it.chars().next().unwrap())
            } else if let Some(it) = name.strip_prefix("Edited ") {
                return Typed::News(News::Edited(Some(it.replace("\\n", "\n"))));
            } else if let Some(it) = name.strip_prefix("Back ") {
                return Typed::News(News::Draft(Draft { text: it.to_owned(), files: Vec::new() }));
            } else {
                let it = name.strip_prefix("Paste ").unwrap_or_else(|| panic!("<{name}> is no key"));
                Key::Paste(it.parse().map_or_else(|_| it.to_owned(), |lines| "line\n".repeat(lines)))
            }
        }
    })
}

/// The lines, with `▮` where the cursor stands.
fn screen_text(drawn: &Drawn) -> String {
    let mut res = String::new();
    for (row, line) in drawn.lines.iter().enumerate() {
        let text = line.text();
        let cursor = drawn.cursor.filter(|it| usize::from(it.0) == row).map(|it| usize::from(it.1));
        res.push_str(with_cursor(&text, cursor).trim_end());
        res.push('\n');
    }
    res
}

fn with_cursor(text: &str, column: Option<usize>) -> String {
    use unicode_segmentation::UnicodeSegmentation;
    use unicode_width::UnicodeWidthStr;
    let (Some(column), mut res, mut used) = (column, String::new(), 0) else { return text.to_owned() };
    let mut is_placed = false;
    for it in text.graphemes(true) {
        if used >= column && !is_placed {
            is_placed = true;
            res.push('▮');
            used += it.width();
            if it == " " {
                continue;
            }
            res.push_str(it);
            continue;
        }
        used += it.width();
        res.push_str(it);
    }
    if !is_placed {
        res.push('▮');
    }
    res
}
