//! Network or secrets: a session's commands never get both without a question.

use super::{nested_config, running};
use castor_base::sandbox::Confinement;

const SHARED_NETWORK_NOTE: &str =
    "A command with network access still runs, so this one saw no secret files of the workspace.";

/// The same as it holds now: without secrets beside a command with the network, and without the network by mode
/// where not all secrets are known. Looks at the roots.
pub fn current_confinement(it: &Confinement) -> Confinement {
    let mut res = it.clone();
    let is_asked = it.grant.network || it.grant.is_mcp_server;
    if it.network && !is_asked {
        res.grant.isolation_reason = it.roots.iter().find_map(|root| nested_config::unscanned_note(root.as_path()));
        res.network = res.grant.isolation_reason.is_none();
    } else if !it.network && it.grant.isolation_reason.is_none() && running::is_online(it) {
        let misses = it.roots.iter().any(|root| !nested_config::secrets(root.as_path()).is_empty());
        res.grant.isolation_reason = Some(if misses { SHARED_NETWORK_NOTE.to_owned() } else { String::new() });
    }
    res
}

#[cfg(test)]
mod tests {
    use super::{super::running::RunningProcess, current_confinement};
    use castor_base::{
        path::AbsPath,
        sandbox::{Confinement, SandboxGrant},
    };

    #[test]
    fn beside_who_has_the_network_nobody_of_the_session_sees_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path()).unwrap();
        let mut it = Confinement::for_folder(&root);
        it.own_folders.tmp = root.join("tmp");
        let far = current_confinement(&Confinement { network: true, ..it.clone() });
        assert!(far.network && far.grant.isolation_reason.is_none() && !current_confinement(&it).hides_secrets());
        let (one, two) = (RunningProcess::of(&far), RunningProcess::of(&far));
        assert!(current_confinement(&it).grant.isolation_reason.is_some() && !current_confinement(&it).network);
        let mut other = it.clone();
        other.own_folders.tmp = root.join("other");
        assert!(!current_confinement(&other).hides_secrets(), "of another session");
        drop(one);
        assert!(current_confinement(&it).hides_secrets());
        drop(two);
        assert!(!current_confinement(&it).hides_secrets());
        let grant = SandboxGrant { is_mcp_server: true, ..SandboxGrant::default() };
        let servers = [Confinement { grant, ..far }, it.clone()].map(|it| RunningProcess::of(&it));
        assert!(!current_confinement(&it).hides_secrets(), "beside a server, and one without the network");
        drop(servers);
    }
}
