//! Menu: options that are chosen by letter, digit or arrows.

use super::keys::KeyPress;
use crate::cli::{
    render::{
        text::{Color, Line, Style},
        wrap::wrap,
    },
    terminal_text::clean_line,
};

const MAX_LABEL: usize = 500;
/// Options with a digit of their own.
const DIGITS: usize = 9;
/// Letters of options by their ids, and by what they do in general.
const LETTERS: &[(&str, char)] = &[
    ("allow_always_save", 's'),
    ("allow_auto", 'm'),
    ("trust_folder", 'y'),
    ("trust_parent", 'a'),
    ("not_now", 'n'),
    ("never", 'x'),
    ("retry_once", 'y'),
    ("retry_always", 'a'),
    ("wait", 'w'),
    ("retry_later", 'l'),
    ("stop", 'n'),
    ("keep_mine", 'k'),
    ("restore", 'r'),
    ("restore_nothing", 'n'),
    ("show_diff", 'd'),
    ("edit", 'e'),
    ("reject", 'n'),
    ("allow_once", 'y'),
    ("allow_always", 'a'),
    ("reject_once", 'n'),
    ("reject_always", 'x'),
];
/// Options that change nothing.
const SAFE: &[&str] = &["not_now", "stop", "restore_nothing", "reject", "reject_once"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuOption {
    /// What it is called on the wire.
    pub id: String,
    /// The kind of a permission option; of others empty.
    pub kind: String,
    pub label: String,
    pub description: Option<String>,
    pub letter: Option<char>,
}

impl MenuOption {
    pub fn new(id: &str, label: &str) -> Self {
        let (id, label) = (id.to_owned(), clean_line(label, MAX_LABEL));
        Self { id, kind: String::new(), label, description: None, letter: None }
    }

    /// Its kind decides, where it has one: the id is the agent's own word.
    fn is_safe(&self) -> bool {
        let word = if self.kind.is_empty() { &self.id } else { &self.kind };
        SAFE.contains(&word.as_str())
    }

    pub fn with_letter(mut self, letter: char) -> Self {
        self.letter = Some(letter);
        self
    }
}

#[derive(Debug)]
pub struct Menu {
    options: Vec<MenuOption>,
    highlighted: Option<usize>,
    /// Of a menu with several answers: those that are chosen.
    checked: Option<Vec<bool>>,
}

impl Menu {
    /// Enter takes the option that changes nothing, until an arrow moves.
    pub fn new(mut options: Vec<MenuOption>) -> Self {
        let mut taken: Vec<char> = options.iter().filter_map(|it| it.letter).collect();
        for it in options.iter_mut().filter(|it| it.letter.is_none()) {
            // What is called no must be one.
            let by_id = letter(&it.id, &taken).filter(|letter| *letter != 'n' || it.is_safe());
            it.letter = by_id.or_else(|| letter(&it.kind, &taken));
            taken.extend(it.letter);
        }
        let highlighted = options.iter().position(MenuOption::is_safe);
        Self { options, highlighted, checked: None }
    }

    /// Enter takes this option.
    pub fn highlighting(self, at: usize) -> Self {
        Self { highlighted: Some(at), ..self }
    }

    pub fn with_several(mut self, checked: &[&str]) -> Self {
        self.checked = Some(self.options.iter().map(|it| checked.contains(&it.id.as_str())).collect());
        self.highlighted = Some(0);
        self
    }

    pub fn highlight(&mut self, id: &str) {
        self.highlighted = self.options.iter().position(|it| it.id == id).or(self.highlighted);
    }

    pub fn options(&self) -> &[MenuOption] {
        &self.options
    }

    pub fn get(&self, at: usize) -> Option<&MenuOption> {
        self.options.get(at)
    }

    pub fn checked(&self) -> impl Iterator<Item = &MenuOption> {
        let marks = self.checked.iter().flatten();
        self.options.iter().zip(marks).filter(|it| *it.1).map(|it| it.0)
    }

    /// Whether Enter chooses nothing here.
    pub fn is_open(&self) -> bool {
        self.highlighted.is_none()
    }

    /// Takes a key; gives the option that it chooses.
    pub fn key(&mut self, key: &KeyPress) -> Option<usize> {
        match (key, &mut self.checked) {
            (KeyPress::Up, _) => self.step(false),
            (KeyPress::Down, _) => self.step(true),
            (KeyPress::Enter, None) => return self.highlighted,
            (KeyPress::Char(' '), Some(checked)) => toggle(checked, self.highlighted),
            (KeyPress::Char(_), Some(_)) => {
                let at = self.option_for_key(key);
                self.highlighted = at.or(self.highlighted);
                if let Some(checked) = &mut self.checked {
                    toggle(checked, at);
                }
            }
            (KeyPress::Char(_), None) => return self.option_for_key(key),
            _ => (),
        }
        None
    }

    /// Whether a letter, digit or space chooses something.
    pub fn takes(&self, key: &KeyPress) -> bool {
        self.option_for_key(key).is_some() || *key == KeyPress::Char(' ') && self.checked.is_some()
    }

    /// The option with the letter or digit, the letter first.
    fn option_for_key(&self, key: &KeyPress) -> Option<usize> {
        let KeyPress::Char(it) = key else { return None };
        let letter = it.to_ascii_lowercase();
        let by_letter = self.options.iter().position(|it| it.letter == Some(letter));
        let digit = it.to_digit(10).and_then(|it| usize::try_from(it).ok()?.checked_sub(1));
        by_letter.or(digit.filter(|it| *it < self.options.len().min(DIGITS)))
    }

    /// The option that a typed line means: a letter, a word for yes or no, or a number.
    pub fn option_for_line(&self, line: &str) -> Option<usize> {
        let line = line.trim().to_lowercase();
        let word = match line.as_str() {
            "yes" => "y",
            "no" => "n",
            it => it,
        };
        let mut chars = word.chars();
        match (chars.next(), chars.next()) {
            (Some(it), None) if !it.is_ascii_digit() => self.option_for_key(&KeyPress::Char(it)),
            _ => word.parse::<usize>().ok()?.checked_sub(1).filter(|it| *it < self.options.len()),
        }
    }

    fn step(&mut self, down: bool) {
        let count = self.options.len();
        self.highlighted = match (self.highlighted, down) {
            (None, true) => Some(0),
            (None, false) => count.checked_sub(1),
            (Some(at), true) => Some((at + 1) % count.max(1)),
            (Some(at), false) => Some((at + count.saturating_sub(1)) % count.max(1)),
        };
    }

    pub fn draw(&self, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        for (at, it) in self.options.iter().enumerate() {
            let is_highlighted = self.highlighted == Some(at);
            let style = if is_highlighted { Style::BOLD } else { Style::PLAIN };
            let mut line = Line::new(if is_highlighted { "› " } else { "  " }, Style::color(Color::Cyan));
            line.push(&format!("{} ", self.key_name(at)), Style { bold: true, ..Style::color(Color::Cyan) });
            if let Some(is_checked) = self.checked.as_ref().and_then(|it| it.get(at)) {
                line.push(if *is_checked { " [x]" } else { " [ ]" }, Style::PLAIN);
            }
            line.push(&format!(" {}", it.label), style);
            if let Some(description) = &it.description {
                line.push(&format!("  {}", clean_line(description, MAX_LABEL)), Style::DIM);
            }
            lines.extend(wrap(&line, width, "     "));
        }
        lines
    }

    /// The keys that choose: `y, a, n`.
    pub fn key_names(&self) -> String {
        let names: Vec<String> = (0..self.options.len()).map(|at| self.key_name(at)).collect();
        names.join(", ")
    }

    pub fn key_name(&self, at: usize) -> String {
        let letter = self.options.get(at).and_then(|it| it.letter);
        letter.map_or_else(|| (at + 1).to_string(), String::from)
    }
}

fn toggle(checked: &mut [bool], at: Option<usize>) {
    if let Some(it) = at.and_then(|at| checked.get_mut(at)) {
        *it = !*it;
    }
}

fn letter(of: &str, taken: &[char]) -> Option<char> {
    let (_, letter) = LETTERS.iter().find(|it| it.0 == of)?;
    (!taken.contains(letter)).then_some(*letter)
}
