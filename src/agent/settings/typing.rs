//! Settings about typing in the chat.

use super::{Getter, Sources};

/// Tells whether the chat takes the keys of vi.
pub fn takes_vi_keys(sources: Sources<'_>) -> bool {
    Getter(sources).flag("general.vimMode")
}
