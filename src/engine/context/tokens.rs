//! Token estimates by the rule of thumb of Gemini CLI, without a request to a provider.

use castor_base::{
    content::Part,
    history::{Turn, TurnPart},
    model::ModelRequest,
    tool::ToolSpec,
};

/// Longer texts are not looked at character by character.
const LONG: usize = 100_000;
/// A shorter mark names the member of a message that thoughts go back in, which they do beside calls only.
const MEMBER_NAME: usize = 64;
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
        // A thought counts with the mark that follows it: see `of_thoughts`.
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
        it.parts().iter().map(of).sum::<u64>() + of_thoughts(it.parts())
    })
}

/// The thoughts that go back to the provider they came from: pieces, of which the last bears its mark. The mark of a
/// provider is `name:…`. Gemini's marks have no name, and its dialect sends no thoughts back.
fn of_thoughts(parts: &[TurnPart]) -> u64 {
    let has_calls = parts.iter().any(|it| matches!(it, TurnPart::Call { .. }));
    let (mut sum, mut pending) = (0, 0);
    for part in parts {
        let TurnPart::Content(Part::Thought { thought, signature }) = part else { continue };
        pending += of_text(thought);
        let Some(mark) = signature else { continue };
        if let Some((_, sealed)) = mark.split_once(':')
            && (has_calls || sealed.len() > MEMBER_NAME)
        {
            // A seal holds the whole thought, of which the text may be a summary.
            sum += pending.max(sealed.len() as u64 * 3 / 16);
        }
        pending = 0;
    }
    sum
}

pub fn of_request(request: &ModelRequest) -> u64 {
    of_frame(request) + request.contents.iter().map(|it| of_turn(it)).sum::<u64>()
}

/// The tokens of all but the history.
pub fn of_frame(request: &ModelRequest) -> u64 {
    of_text(&request.system) + request.tools.iter().map(of_tool).sum::<u64>()
}

fn of_tool(it: &ToolSpec) -> u64 {
    (it.name.len() + it.description.len() + it.parameters.text().get().len()) as u64 / 4
}

#[cfg(test)]
mod tests {
    use super::{of_text, of_turn};
    use castor_base::{
        content::Part,
        history::{Role, Turn, TurnPart},
        ids::CallId,
        tool::ToolCall,
    };

    #[test]
    fn thoughts_count_where_they_are_sent_back() {
        let check = |pieces: &[(&str, Option<&str>)], has_call: bool, expect: u64| {
            let mut turn = Turn::new(Role::Model);
            let thought =
                |it: &(&str, Option<&str>)| Part::Thought { thought: it.0.to_owned(), signature: it.1.map(Into::into) };
            turn.parts_mut().extend(pieces.iter().map(|it| TurnPart::Content(thought(it))));
            if has_call {
                let call = ToolCall { id: CallId::from("c"), name: "ls".into(), args: serde_json::json!({}) };
                turn.parts_mut().push(TurnPart::Call { call, signature: None });
            }
            assert_eq!(of_turn(&turn), expect + u64::from(has_call), "{pieces:?}");
        };
        let text = "x".repeat(400);
        let seal = format!("anthropic:{}", "s".repeat(3_200));
        check(&[(&text, None)], true, 0);
        check(&[(&text, Some("Q2FuYXJ5"))], true, 0);
        check(&[(&text, None), ("", Some(&seal))], false, 600);
        check(&[(&text.repeat(8), Some(&seal)), (&text, None)], false, 800);
        check(&[(&text, None), ("", Some("deepseek:"))], true, 100);
        check(&[(&text, None), ("", Some("deepseek:"))], false, 0);
    }

    #[test]
    fn texts() {
        assert_eq!([of_text(""), of_text("abcd"), of_text("漢字"), of_text("ab漢")], [0, 1, 3, 2]);
        assert_eq!(of_text(&"漢".repeat(40_000)), 30_000, "long ones by their bytes");
    }
}
