//! Skills in settings: whether there are any, and which are off.

use super::{Getter, Sources};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SkillSettings {
    pub enabled: bool,
    disabled: Vec<String>,
}

impl SkillSettings {
    /// Names are compared as people write them.
    pub fn allows(&self, name: &str) -> bool {
        !self.disabled.iter().any(|it| it.to_lowercase() == name.to_lowercase())
    }
}

pub fn skills(sources: Sources<'_>) -> SkillSettings {
    let get = Getter(sources);
    SkillSettings { enabled: get.flag("skills.enabled"), disabled: get.texts("skills.disabled") }
}
