//! The tools that a model is told of: a list that requests share.

use std::{borrow::Cow, collections::BTreeSet, ops::Deref, sync::Arc};

use bytes::Bytes;

use crate::{
    model_table::edit_tool::EditTool,
    one_entry_cache::OneEntryCache,
    tool::{PolicyClass, REPLACE, ToolSpec},
};

/// The tools of a request. Immutable, so their bytes can be kept. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ToolOffer(Arc<SharedTools>);

#[derive(Debug, Default)]
struct SharedTools {
    tools: Vec<ToolSpec>,
    encoded: OneEntryCache<&'static str, Bytes>,
    /// The list without one class: nearly all requests ask for the same.
    without: OneEntryCache<PolicyClass, ToolOffer>,
    /// The list without those that a provider refused.
    without_names: OneEntryCache<BTreeSet<String>, ToolOffer>,
    /// The list for models that edit in one way.
    edited_by: OneEntryCache<EditTool, ToolOffer>,
}

impl ToolOffer {
    /// Their bytes in a dialect, written once.
    pub fn encoded(&self, dialect: &'static str, encode: impl Fn(&[ToolSpec]) -> Bytes) -> Bytes {
        self.0.encoded.get(dialect, |_| encode(self))
    }

    /// The same without those of a class.
    pub fn without(&self, class: PolicyClass) -> Self {
        self.0.without.get(class, |class| self.iter().filter(|it| it.traits.class != *class).cloned().collect())
    }

    /// The same without those of these names.
    pub fn without_names(&self, names: &BTreeSet<String>) -> Self {
        let rest = |names: &BTreeSet<String>| self.iter().filter(|it| !names.contains(&*it.name)).cloned().collect();
        self.0.without_names.get(names.clone(), rest)
    }
}

impl ToolOffer {
    /// The same with the one tool for edits that a model knows best; the other one, where that is not on offer.
    pub fn for_edits(&self, tool: EditTool) -> Self {
        let has_patch = self.iter().any(|it| it.traits.is_patch);
        let is_left_out = |it: &ToolSpec| match tool {
            EditTool::ApplyPatch if has_patch => it.name == REPLACE,
            EditTool::ApplyPatch | EditTool::Replace => it.traits.is_patch,
        };
        if !self.iter().any(is_left_out) {
            return self.clone();
        }
        let patch = self.iter().find(|it| it.traits.is_patch && tool == EditTool::ApplyPatch).map(|it| &*it.name);
        let told = |it: &ToolSpec| ToolSpec { description: name_edit_tool(it, patch), ..it.clone() };
        self.0.edited_by.get(tool, |_| self.iter().filter(|it| !is_left_out(it)).map(told).collect())
    }
}

/// The tool that writes whole files leads to the one for small changes, by the name that its model knows.
fn name_edit_tool(it: &ToolSpec, patch: Option<&str>) -> Cow<'static, str> {
    match patch.filter(|_| it.traits.overwrites) {
        Some(patch) => it.description.replace(REPLACE, patch).into(),
        None => it.description.clone(),
    }
}

impl Deref for ToolOffer {
    type Target = [ToolSpec];

    fn deref(&self) -> &[ToolSpec] {
        &self.0.tools
    }
}

impl From<Vec<ToolSpec>> for ToolOffer {
    fn from(tools: Vec<ToolSpec>) -> Self {
        Self(Arc::new(SharedTools { tools, ..SharedTools::default() }))
    }
}

impl<const N: usize> From<[ToolSpec; N]> for ToolOffer {
    fn from(tools: [ToolSpec; N]) -> Self {
        Vec::from(tools).into()
    }
}

impl FromIterator<ToolSpec> for ToolOffer {
    fn from_iter<I: IntoIterator<Item = ToolSpec>>(tools: I) -> Self {
        Vec::from_iter(tools).into()
    }
}

impl PartialEq for ToolOffer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{EditTool, ToolOffer};
    use crate::tool::{ToolKind, ToolSpec, ToolTraits};

    #[test]
    fn one_tool_for_edits() {
        let offer = |names: &[&'static str]| -> ToolOffer {
            let spec = |name: &&'static str| ToolSpec {
                name: (*name).into(),
                title: "".into(),
                description: "Use replace for less.".into(),
                kind: ToolKind::Edit,
                traits: ToolTraits {
                    is_patch: *name == "apply_patch",
                    overwrites: *name == "write_file",
                    ..ToolTraits::EDITS
                },
                parameters: json!({}).into(),
            };
            names.iter().map(spec).collect()
        };
        let check = |names: &[&'static str], tool: EditTool, expected: &[&str]| {
            let got = offer(names).for_edits(tool);
            let edits = got.iter().find(|it| it.traits.is_patch || it.name == "replace").map(|it| &*it.name);
            let writes = got.iter().find(|it| it.traits.overwrites);
            assert!(writes.is_none_or(|it| it.description == format!("Use {} for less.", edits.unwrap_or_default())));
            assert_eq!(got.iter().map(|it| &*it.name).collect::<Vec<_>>(), expected, "{names:?} {tool:?}");
        };
        let all = ["apply_patch", "replace", "write_file"];
        check(&all, EditTool::ApplyPatch, &["apply_patch", "write_file"]);
        check(&all, EditTool::Replace, &["replace", "write_file"]);
        // Where rules hide the patch, its model has the other one.
        check(&["replace", "write_file"], EditTool::ApplyPatch, &["replace", "write_file"]);
        check(&["apply_patch"], EditTool::Replace, &[]);
        check(&["read_file"], EditTool::ApplyPatch, &["read_file"]);
    }
}
