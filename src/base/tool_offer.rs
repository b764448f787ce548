//! The tools that a model is told of: a list that requests share.

use std::{collections::BTreeSet, ops::Deref, sync::Arc};

use bytes::Bytes;

use crate::base::{
    one_entry_cache::OneEntryCache,
    tool::{PolicyClass, ToolSpec},
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
