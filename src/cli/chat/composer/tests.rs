//! Tests of the composer: keys and screens as data, and random keys.

use super::Composer;
use crate::cli::chat::{
    lower::{Action, Key, News, Panel, SlashCommand, Theme},
    testing::check,
};

/// Answers as the frame would.
fn answer(action: &Action) -> Option<News> {
    let command = |name: &str, description: &str, hint: Option<&str>| SlashCommand {
        name: name.to_owned(),
        description: description.to_owned(),
        hint: hint.map(str::to_owned),
    };
    match action {
        Action::NeedFiles { query } => {
            let paths = ["src/", "src/main.rs", "src/app/main_loop.rs", "docs/my notes.md"].map(str::to_owned).into();
            Some(News::Files { query: query.clone(), paths })
        }
        Action::NeedCommands => Some(News::Commands(vec![
            command("memory", "shows and adds what castor remembers", Some("add TEXT")),
            command("model", "chooses the model", Some("NAME")),
            command("undo", "takes the last changes back", None),
        ])),
        _ => None,
    }
}

fn make(scenario: &str) -> Box<dyn Panel> {
    let mut composer = Composer::new(scenario.contains("vi"));
    let history = vec!["fix the parser".to_owned(), "why is add() wrong?".to_owned()];
    composer.tell(&News::History(history), &mut Vec::new());
    Box::new(composer)
}

#[test]
fn keys_give_screens_and_actions() {
    check("src/cli/chat/composer/scenarios.txt", make, answer);
}

/// Also where there is hardly any room: the text is somewhere, and the cursor in it.
#[test]
fn the_smallest_screens_have_room_for_the_cursor() {
    let text = "one 日本語 two\nthree 👩\u{200d}🚀 four five six seven eight nine ten";
    for is_vi in [false, true] {
        let mut composer = Composer::new(is_vi);
        composer.key(&Key::Paste("x\n".repeat(20)), &mut Vec::new());
        for it in text.chars() {
            let key = if it == '\n' { Key::LineBreak } else { Key::Char(it) };
            composer.key(&key, &mut Vec::new());
        }
        for (width, height) in (0..50).flat_map(|width| (0..8).map(move |height| (width, height))) {
            let drawn = composer.draw(width, height, &Theme::default());
            assert!(drawn.lines.len() <= height.into());
            assert!(drawn.lines.iter().all(|it| it.width() <= width.into()), "{width}x{height}: {:?}", drawn.lines);
            let is_on_screen = |(row, column): (u16, u16)| usize::from(row) < drawn.lines.len() && column < width;
            assert!(drawn.cursor.is_none_or(is_on_screen), "{width}x{height}: {:?}", drawn.cursor);
        }
    }
}
