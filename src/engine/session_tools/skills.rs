//! The tool `activate_skill` as the model is told of it: names and descriptions of skills, within a cap.

use serde_json::{Value, json};

use castor_base::{
    file_prompt::{ACTIVATE_SKILL, Skill},
    text,
    tool::{ToolCall, ToolKind, ToolSpec, ToolTraits},
};

/// What the list of skills may take of the declaration, in bytes: about 600 tokens.
const MAX_LIST: usize = 2_400;
/// The most of one description, in characters; less where there are many.
const MAX_DESCRIPTION: usize = 240;
const LEAST_DESCRIPTION: usize = 16;
const CUT: &str = "…";
const MORE: &str = "\n- and more, which the user can name";

/// `skills`: what the model is told of; none where only the tool itself is meant.
pub fn spec(skills: &[Skill]) -> ToolSpec {
    let about = "Gives you the instructions of a skill. Call it before you begin a task that a skill is about.";
    ToolSpec {
        name: ACTIVATE_SKILL.into(),
        title: "ActivateSkill".into(),
        description: format!("{about}{}", list(skills)).into(),
        kind: ToolKind::Read,
        traits: ToolTraits::ACTIVATES,
        parameters: json!({
            "type": "object",
            "properties": { "name": { "type": "string", "description": "As listed." } },
            "required": ["name"]
        })
        .into(),
    }
}

/// Names and descriptions, cut so that all of them have room as far as they can.
fn list(skills: &[Skill]) -> String {
    let names: usize = skills.iter().map(|it| it.name.len() + 5).sum();
    let room = MAX_LIST.saturating_sub(names + MORE.len()) / skills.len().max(1);
    let max = room.saturating_sub(CUT.len()).clamp(LEAST_DESCRIPTION, MAX_DESCRIPTION);
    let mut res = String::new();
    for it in skills {
        let cut = text::head(&it.description, max);
        let dots = if cut.len() < it.description.len() { CUT } else { "" };
        let line = format!("\n- {}: {}{dots}", it.name, cut.trim_end());
        if res.len() + line.len() + MORE.len() > MAX_LIST {
            return res + MORE;
        }
        res += &line;
    }
    res
}

pub fn title(call: &ToolCall) -> String {
    let name = call.args.get("name").and_then(Value::as_str).unwrap_or_default();
    format!("ActivateSkill {}", text::first_line(name, 100))
}

#[cfg(test)]
mod tests {
    use super::{MAX_LIST, spec};
    use castor_base::{agent::AgentOrigin, file_prompt::Skill, path::AbsPath};

    fn skills(n: usize, description: &str) -> Vec<Skill> {
        let folder = AbsPath::new("/h/.agents/skills/x").unwrap();
        let skill = |at: usize| Skill {
            name: format!("skill-{at}"),
            description: description.to_owned(),
            origin: AgentOrigin::User(folder.join("SKILL.md")),
            enabled: true,
            folder: folder.clone(),
            files: Default::default(),
            instructions: "x".into(),
        };
        (0..n).map(skill).collect()
    }

    /// Whatever is installed: the list is for each request to the model.
    #[test]
    fn the_list_of_skills_has_a_cap() {
        let plain = spec(&[]).description.len();
        for (n, last, cut) in
            [(1, "skill-0", false), (20, "skill-19", true), (60, "skill-59", true), (500, "and more", true)]
        {
            let text = spec(&skills(n, &"what it is for ".repeat(if cut { 60 } else { 2 }))).description;
            assert!(text.len() - plain <= MAX_LIST, "{n}: {}", text.len());
            assert!(text.lines().last().unwrap().contains(last), "{n}: {text}");
            assert_eq!(text.contains('…'), cut, "{n}");
        }
    }
}
