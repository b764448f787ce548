//! Rights of programs that castor starts by itself: what the sandbox refused them, and what the user gave them since.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Exit, record::SandboxRecord, sandbox::denial::find_denial};
use crate::door::SharedRecord;
use castor_base::{
    held_program::ProgramName,
    path::AbsPath,
    sandbox::{Confinement, Denial, Refusal, Refused, SandboxGrant},
};

/// Rights of a session's programs beyond their settings, and of which programs the user heard. Cheap to clone: all of a
/// session hold the same.
#[derive(Clone, Debug, Default)]
pub struct ProgramRights(Arc<Mutex<GivenRights>>);

#[derive(Debug, Default)]
struct GivenRights {
    grants: BTreeMap<ProgramName, SandboxGrant>,
    told: BTreeSet<ProgramName>,
}

impl ProgramRights {
    /// Whether the user did not hear of this program before. They do now.
    pub fn note_told(&self, program: &ProgramName) -> bool {
        self.lock().told.insert(program.clone())
    }

    /// The user gives a program more.
    pub fn widen(&self, program: ProgramName, grant: &SandboxGrant) {
        let mut all = self.lock();
        let own = all.grants.remove(&program).unwrap_or_default();
        all.grants.insert(program, own.union(grant));
    }

    /// What holds a program, with what the user gave it.
    pub fn widened(&self, program: &ProgramName, it: Confinement) -> Confinement {
        let all = self.lock();
        all.grants.get(program).and_then(|more| it.with_grant(more)).unwrap_or(it)
    }

    fn lock(&self) -> MutexGuard<'_, GivenRights> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the sandbox refused a process and its children, while it runs and afterwards. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ProcessRefusals {
    pub record: Option<Arc<SandboxRecord>>,
    pub network: SharedRecord,
}

impl ProcessRefusals {
    /// As the end of a process that ended with this code.
    pub fn read(&self, code: Option<i32>) -> Exit {
        let refusals = self.record.as_ref().and_then(|it| it.read());
        Exit { code, refusals, network: Box::new(self.network.read()), ..Exit::default() }
    }

    /// What a program lacked whose work failed, without an end of its own. `said`: its log and its answer.
    pub fn lack_of_failure(&self, it: &Confinement, said: &str) -> Option<Denial> {
        let mut end = self.read(Some(1));
        end.refusals.iter_mut().flatten().for_each(|it| it.failed = true);
        find_lack(it, it.roots.first()?, "", &end, said)
    }

    /// The same of one that goes on: what its failed children met counts, and what it speaks of.
    pub fn lack_of_work(&self, it: &Confinement, said: &str) -> Option<Denial> {
        find_lack(it, it.roots.first()?, "", &self.read(Some(0)), said)
    }
}

/// What a confined program was denied, where that did harm. A refusal did harm where a process that met it failed, or where
/// the program speaks of it. `line`: what was started, where a shell reads it.
pub fn find_lack(it: &Confinement, cwd: &AbsPath, line: &str, end: &Exit, said: &str) -> Option<Denial> {
    let hosts = end.network.wanted();
    if !hosts.is_empty() && end.failed_at_door(line.contains(['|', ';', '&', '\n'])) {
        return Some(Denial::Hosts { hosts });
    }
    let is_spoken_of = |what: &Refused| matches!(what, Refused::Write(path) if said.contains(&path.to_string()));
    let refusals: Option<Vec<Refusal>> = end.refusals.as_ref().map(|all| {
        all.iter().map(|it| Refusal { failed: it.failed || is_spoken_of(&it.what), ..it.clone() }).collect()
    });
    let denial = find_denial(it, cwd, line, (end.code, refusals.as_deref()), said)?;
    // What ends well may print anything: without a record it counts where it names a place.
    let names_place = matches!(denial, Denial::Write { .. } | Denial::UntrustedFolder { .. });
    let counts = end.code != Some(0) || refusals.is_some() || names_place;
    counts.then_some(denial)
}
