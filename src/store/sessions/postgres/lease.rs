//! Leases of sessions: pure functions decide from the rows of the database whether an owner may write.
//!
//! A lease has an epoch, which is new with each holder and never used twice. Every append says the epoch and how long the
//! log is by then; the database takes it only if both are so. A clock decides only when a holder that is silent may be
//! followed by another one: one that was believed dead and lives can write nothing.

/// Of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub epoch: i64,
    /// `None`: nobody has it.
    pub owner: Option<String>,
    /// Of its log, in bytes.
    pub len: i64,
}

/// Whether a session can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// With a new epoch.
    Take,
    /// Its holder was heard of lately, or is another part of this process.
    Refuse,
}

/// An append that the database did not take, or of which nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The answer was lost on its way, and not the append.
    Stored,
    /// It can be sent again.
    Again,
    /// Somebody else has the session.
    Lost,
    /// Another length than any that was written at this epoch.
    Broken,
}

/// `is_heard`: the owner said within the time of a lease that it lives. `is_open_here`: this process has the session open.
pub fn claim(lease: &Lease, me: &str, is_heard: bool, is_open_here: bool) -> Claim {
    match &lease.owner {
        None => Claim::Take,
        // What this process took and does not know of was taken by an answer that was lost.
        Some(owner) if owner == me => {
            if is_open_here {
                Claim::Refuse
            } else {
                Claim::Take
            }
        }
        Some(_) if is_heard => Claim::Refuse,
        Some(_) => Claim::Take,
    }
}

/// What became of an append at `epoch` to a log of `start` bytes, which makes it longer by `added`.
pub fn settle(lease: &Lease, epoch: i64, start: i64, added: i64) -> Settlement {
    match lease.len - start {
        _ if lease.epoch != epoch => Settlement::Lost,
        0 => Settlement::Again,
        it if it == added => Settlement::Stored,
        _ => Settlement::Broken,
    }
}

#[cfg(test)]
mod tests;
