//! Archive filter of session/list.

use agent_client_protocol_schema::v1::SessionArchiveFilter;

/// The sessions of a list, by their archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchiveFilter {
    /// The request says nothing of archives, and the answer neither.
    #[default]
    Unasked,
    Exclude,
    Include,
    Only,
}

impl ArchiveFilter {
    pub(in crate::acp) fn read(it: Option<SessionArchiveFilter>) -> Result<Self, String> {
        match it {
            None => Ok(Self::Unasked),
            Some(SessionArchiveFilter::Exclude) => Ok(Self::Exclude),
            Some(SessionArchiveFilter::Include) => Ok(Self::Include),
            Some(SessionArchiveFilter::Only) => Ok(Self::Only),
            Some(_) => Err("archived: send \"exclude\", \"include\" or \"only\"".to_owned()),
        }
    }

    pub fn shows(self, archived: bool) -> bool {
        match self {
            Self::Unasked | Self::Exclude => !archived,
            Self::Include => true,
            Self::Only => archived,
        }
    }
}
