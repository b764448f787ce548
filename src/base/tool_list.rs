//! The tools that a model is told of, as a list that requests share.

use std::{ops::Deref, sync::Arc};

use bytes::Bytes;

use crate::base::{
    kept_value::KeptValue,
    tool::{PolicyClass, ToolSpec},
};

/// Tools by name. Immutable, so the bytes that they are in a request can be kept. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ToolList(Arc<KeptTools>);

#[derive(Debug, Default)]
struct KeptTools {
    tools: Vec<ToolSpec>,
    encoded: KeptValue<&'static str, Bytes>,
    /// As each prompt asks for it.
    rest: KeptValue<PolicyClass, ToolList>,
}

impl ToolList {
    /// Their bytes in a dialect, written once.
    pub fn encoded(&self, dialect: &'static str, encode: impl Fn(&[ToolSpec]) -> Bytes) -> Bytes {
        self.0.encoded.get(dialect, |_| encode(self))
    }

    /// The rest, without those of a class.
    pub fn without(&self, class: PolicyClass) -> Self {
        self.0.rest.get(class, |class| self.iter().filter(|it| it.traits.class != *class).cloned().collect())
    }
}

impl Deref for ToolList {
    type Target = [ToolSpec];

    fn deref(&self) -> &[ToolSpec] {
        &self.0.tools
    }
}

impl From<Vec<ToolSpec>> for ToolList {
    fn from(tools: Vec<ToolSpec>) -> Self {
        Self(Arc::new(KeptTools { tools, ..KeptTools::default() }))
    }
}

impl<const N: usize> From<[ToolSpec; N]> for ToolList {
    fn from(tools: [ToolSpec; N]) -> Self {
        Vec::from(tools).into()
    }
}

impl FromIterator<ToolSpec> for ToolList {
    fn from_iter<I: IntoIterator<Item = ToolSpec>>(tools: I) -> Self {
        Vec::from_iter(tools).into()
    }
}

impl PartialEq for ToolList {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}
