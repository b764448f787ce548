//! The gate to the outside: a program that reaches a workspace starts there only while nothing unseen lies in it.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::{reach::ProgramLine, sandbox::running};
use crate::provenance::Provenance;
use castor_base::{path::AbsPath, sandbox::Confinement};

/// How long a start waits for processes of an agent that may write what it reaches.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);

/// What a program that the user wants outside reaches of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideGate {
    /// Castor's own folder.
    pub castor: AbsPath,
    /// The roots that it works in or names.
    pub roots: Vec<AbsPath>,
}

impl OutsideGate {
    /// For a program that its user lets out: the roots that it works in and those that its line names.
    pub fn of_line(commands: &Confinement, line: &ProgramLine<'_>) -> Option<Self> {
        let castor = commands.own_folders.records.parent().filter(|_| !commands.untrusted)?;
        let mut roots = line.named_roots(&commands.roots);
        roots.extend(commands.roots.iter().filter(|root| line.folder.is_within(root)).cloned());
        Some(Self { castor, roots: roots.into_iter().collect() })
    }

    /// Why it may not start outside now, or be called there; `None`: it may.
    pub async fn refusal(&self) -> Option<String> {
        let end = Instant::now() + PATIENCE;
        while running::write_in(&self.roots) {
            if Instant::now() >= end {
                return Some(BUSY.to_owned());
            }
            sleep(LOOK).await;
        }
        let gate = Arc::new(self.clone());
        let looked = tokio::task::spawn_blocking(move || gate.first_unseen()).await;
        let unseen = looked.unwrap_or_else(|it| Some(it.to_string()));
        // Who began to write meanwhile may have written what was looked at.
        unseen.or_else(|| running::write_in(&self.roots).then(|| BUSY.to_owned()))
    }

    fn first_unseen(&self) -> Option<String> {
        let provenance = Provenance::new(&self.castor, &self.roots);
        self.roots.iter().find_map(|root| match provenance.first_unseen(root) {
            Ok(found) => found.map(|it| {
                let path = it.path.display();
                format!("an agent wrote {path}, and nobody looked at it. `castor looked {path}` says that you did")
            }),
            Err(why) => Some(why.to_string()),
        })
    }
}

const BUSY: &str = "a process of an agent still runs that may write there";
