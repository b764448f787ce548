//! Faults of the database or of the connection to it, and whether another try may help.

use std::fmt;

use tokio_postgres::error::SqlState;

/// Why a question had no answer, as what follows "the session store".
#[derive(Clone, Debug)]
pub enum Fault {
    /// Of the connection or of a server that restarts: another try may help.
    Passing(String),
    /// The server understood, and says no.
    Refused(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Passing(why) | Self::Refused(why)) = self;
        f.write_str(why)
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(it: tokio_postgres::Error) -> Self {
        let Some(error) = it.as_db_error() else {
            let cause = std::error::Error::source(&it).map(|it| format!(": {it}")).unwrap_or_default();
            return Self::Passing(format!("cannot be reached: {it}{cause}"));
        };
        let why = format!("answered: {}", error.message());
        let passing = [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::T_R_SERIALIZATION_FAILURE,
            // Another castor has the session for long.
            SqlState::LOCK_NOT_AVAILABLE,
        ];
        if passing.contains(error.code()) { Self::Passing(why) } else { Self::Refused(why) }
    }
}
