//! Token estimates by the rule of thumb of Gemini CLI, without a request to a provider.

use crate::base::{
    content::Part,
    history::{Turn, TurnPart},
    model::ModelRequest,
    tool::ToolSpec,
};

/// Longer texts are not looked at character by character.
const LONG: usize = 100_000;
const IMAGE: u64 = 3_000;
const PDF: u64 = 25_800;

/// A quarter of a token for each ASCII character, one and a half for others.
pub fn of_text(text: &str) -> u64 {
    let n_ascii = match text.len() > LONG {
        true => return text.len() as u64 / 4,
        false => text.bytes().filter(u8::is_ascii).count() as u64,
    };
    let n_others = text.chars().count() as u64 - n_ascii;
    (n_ascii + n_others * 6) / 4
}

pub fn of_parts(parts: &[Part]) -> u64 {
    parts.iter().map(of_part).sum()
}

fn of_part(part: &Part) -> u64 {
    match part {
        Part::Text { text, .. } => of_text(text),
        // Thoughts are not sent back.
        Part::Thought { .. } => 0,
        Part::Media { mime, .. } if mime.starts_with("image/") => IMAGE,
        Part::Media { mime, .. } if mime == "application/pdf" => PDF,
        other => serde_json::to_string(other).map_or(0, |it| it.len() as u64 / 4),
    }
}

/// Counted once in a turn's life.
pub fn of_turn(turn: &Turn) -> u64 {
    turn.tokens(|it| {
        let of = |it: &TurnPart| match it {
            TurnPart::Content(part) => of_part(part),
            TurnPart::Call { call, .. } => (call.name.len() + call.args.to_string().len()) as u64 / 4,
            TurnPart::Result(result) => result.name.len() as u64 / 4 + of_parts(&result.content),
        };
        it.parts().iter().map(of).sum()
    })
}

pub fn of_request(request: &ModelRequest) -> u64 {
    of_frame(request) + request.contents.iter().map(|it| of_turn(it)).sum::<u64>()
}

/// Of all but the history.
pub fn of_frame(request: &ModelRequest) -> u64 {
    of_text(&request.system) + request.tools.iter().map(of_tool).sum::<u64>()
}

fn of_tool(it: &ToolSpec) -> u64 {
    (it.name.len() + it.description.len() + it.parameters.text().get().len()) as u64 / 4
}

#[cfg(test)]
mod tests {
    use super::of_text;

    #[test]
    fn texts() {
        assert_eq!([of_text(""), of_text("abcd"), of_text("漢字"), of_text("ab漢")], [0, 1, 3, 2]);
        assert_eq!(of_text(&"漢".repeat(40_000)), 30_000, "long ones by their bytes");
    }
}
