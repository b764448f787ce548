//! The agent of a principal, as it is started: the user's own as from an editor, any other within a sandbox.
//!
//! The sandbox is around the whole agent: whatever the principal allows, trusts or configures, commands, hooks, servers and
//! file tools see its roots and what every program needs, and write its roots and a home of its own.

use std::ffi::OsString;

use crate::serve::tokens::PrincipalRights;
use castor_agent::{server::serve::STORE_VARIABLE, session::confinement::records_folder};
use castor_base::{
    guarded_names,
    path::AbsPath,
    sandbox::{Confinement, OwnFolders, SandboxGrant},
};
use castor_hands::{disk, process::sandbox, secrets::Env};

/// Where people keep what is theirs: of these a principal sees its roots.
const PLACES: &[&str] =
    &["/home", "/root", "/srv", "/mnt", "/media", "/opt/castor", "/var/lib", "/var/log", "/var/mail"];

/// What of this process every agent needs.
#[derive(Clone)]
pub struct AgentGround {
    pub env: Env,
    /// castor's own folder.
    pub home: AbsPath,
    pub cwd: AbsPath,
    /// castor's own program.
    pub program: String,
    /// Flags that were given to the server for its agents.
    pub flags: Vec<OsString>,
}

/// How an agent is started.
pub struct AgentStart {
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: AbsPath,
    pub confined: Option<Confinement>,
}

impl AgentGround {
    /// The user's own.
    pub fn of_user(&self) -> AgentStart {
        let env = self.env.all().filter(|it| it.0 != super::bridge::TOKEN).collect();
        AgentStart { args: self.args(&[]), env, cwd: self.cwd.clone(), confined: None }
    }

    /// That of another principal.
    ///
    /// # Errors
    /// In words: there is no sandbox that holds it, or a root is not there.
    pub fn of_principal(&self, name: &str, rights: &PrincipalRights) -> Result<AgentStart, String> {
        if !sandbox::has_mounts() {
            let (_, lack) = sandbox::state();
            let lack = lack.unwrap_or("it has no mounts");
            return Err(format!("only the user may work here, as no sandbox holds others: {lack}"));
        }
        let mut roots = Vec::new();
        for it in &rights.roots {
            let root = AbsPath::new(it).and_then(|it| disk::real_path(&it).ok());
            let root = root.filter(|it| disk::metadata(it).is_ok_and(|it| it.is_dir));
            roots.push(root.ok_or_else(|| format!("{it} is a root of {name}, and no folder"))?);
        }
        let cwd = roots.first().cloned().ok_or_else(|| format!("{name} has no root"))?;
        let home = self.home.join("serve").join("principals").join(name);
        let castor = home.join("castor");
        disk::create_private_dir(&castor).map_err(|it| format!("{castor}: {it}"))?;
        let home = disk::real_path(&home).map_err(|it| format!("{home}: {it}"))?;
        // The address of the database opens the sessions of everybody.
        let mut env = self.env.child_env(&rights.env, &[STORE_VARIABLE.to_owned()]);
        for (name, value) in [("HOME", home.to_string()), ("CASTOR_HOME", home.join("castor").to_string())] {
            env.retain(|it| it.0 != name);
            env.push((name.to_owned(), value));
        }
        let mut more: Vec<String> = rights.budgets.clone();
        more.extend(rights.modes.iter().map(|it| format!("--only-mode={it}")));
        more.extend(rights.models.iter().map(|it| format!("--only-model={it}")));
        more.extend(roots.iter().map(|it| format!("--only-root={it}")));
        // Not in its home: what hides folders lies beside it, and is nobody's to write.
        let tmp = self.home.join("serve").join("scratch").join(name).join("tmp");
        // Of its last process.
        _ = disk::remove_tree(&tmp);
        let confined = Some(self.confinement(&roots, &home, tmp));
        Ok(AgentStart { args: self.args(&more), env, cwd, confined })
    }

    fn args(&self, more: &[String]) -> Vec<String> {
        let flags = self.flags.iter().map(|it| it.to_string_lossy().into_owned());
        std::iter::once("acp".to_owned()).chain(flags).chain(more.iter().cloned()).collect()
    }

    /// With the network, for the model is there. Of the user's home it sees nothing but its roots.
    fn confinement(&self, roots: &[AbsPath], home: &AbsPath, tmp: AbsPath) -> Confinement {
        let real = |it: AbsPath| disk::real_path(&it).unwrap_or(it);
        let of_user = self.env.get("HOME").and_then(AbsPath::new).map(real);
        let beside = roots.iter().filter_map(AbsPath::parent).filter(|it| it.parent().is_some());
        let places = PLACES.iter().chain(guarded_names::SYSTEM_SECRETS).filter_map(|it| AbsPath::new(*it));
        let masked = of_user.iter().cloned().chain(beside).chain(places).chain([self.home.clone()]);
        Confinement {
            read_only: false,
            untrusted: false,
            roots: roots.to_vec(),
            // No root: castor's own folder is in it, and what has that name in a root is nobody's to write.
            writable: vec![home.clone()],
            git_dirs: Vec::new(),
            never_written: Vec::new(),
            read_only_paths: Vec::new(),
            masked: masked.map(real).collect(),
            home: of_user,
            grant: SandboxGrant::default(),
            own_folders: OwnFolders { tmp, records: records_folder(&self.home), caches: None },
            network: true,
        }
    }
}
