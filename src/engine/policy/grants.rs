//! Grants: the approvals for a session or for ever that an answer creates, never wider than the question.

use serde_json::Value;

use super::{names::current_name, prefixes};
use castor_base::{
    guarded_names, host_pattern,
    log::{Grant, Mode, PersistentGrant},
    network::HostGrant,
    path::AbsPath,
    sandbox::{Denial, OpenSecret, SandboxGrant},
    text::path_in_words,
    tool::{Access, RUN_SHELL_COMMAND, TargetPath, ToolCall, ToolTraits},
};

/// What a yes for ever to this call would be; `None`: it would be too wide, or spare no question.
pub fn persistent_grant(
    call: &ToolCall,
    traits: ToolTraits,
    grant: &Grant,
    server: Option<&str>,
    mode: Mode,
) -> Option<PersistentGrant> {
    let tool = current_name(&call.name).to_owned();
    let modes = Mode::OFFERED.iter().copied().filter(|it| *it >= mode).collect();
    let (prefixes, args_pattern) = match grant {
        // The file that it runs may be another one tomorrow.
        Grant::Commands { prefixes } if prefixes.iter().any(|it| prefixes::runs_a_file(it)) => return None,
        Grant::Commands { prefixes } => (prefixes.clone(), None),
        Grant::Edits => {
            let file = call.args.get("file_path").and_then(Value::as_str)?;
            (Vec::new(), Some(PersistentGrant::file_pattern(file)))
        }
        Grant::Hosts { hosts, .. } => (Vec::new(), Some(host_pattern::of_call(&call.args, hosts)?)),
        Grant::Tool { .. } if traits.narrows_grants => return None,
        Grant::Tool { .. } | Grant::Foreign { .. } => (Vec::new(), None),
        // What the sandbox lets through is no rule: `permission` says what may persist.
        _ => return None,
    };
    let digest = match grant {
        Grant::Foreign { digest, .. } => Some(digest.clone()),
        _ => None,
    };
    Some(PersistentGrant { tool, server: server.map(str::to_owned), prefixes, args_pattern, modes, digest })
}

/// What a yes for ever grants this session: no more than what it says, which for edits is one file.
pub fn grant_for_session(grant: Grant, tool: &str, places: &[TargetPath]) -> Grant {
    match (grant, places.iter().find(|it| it.access == Access::Write)) {
        (Grant::Edits, Some(it)) => Grant::File { tool: tool.to_owned(), path: it.real.clone() },
        (grant, _) => grant,
    }
}

/// For the option that the user sees.
pub fn persistent_in_words(it: &PersistentGrant) -> String {
    let what = match (it.prefixes.as_slice(), &it.args_pattern) {
        ([], None) => it.tool.clone(),
        ([], Some(args)) => format!("{} of {}", it.tool, PersistentGrant::place_in_words(args)),
        (prefixes, _) => format!("`{}`", prefixes.join("`, `")),
    };
    let place = if it.is_local() { " in this folder" } else { "" };
    format!("Allow {what} for this session and in future sessions{place}")
}

/// What a yes for longer to a denial of the sandbox would be, in the session's folder; `None`: not on offer.
pub fn sandbox_permission(call: &ToolCall, denial: &Denial) -> Option<Grant> {
    let grant = match denial {
        Denial::Network => network_for(call)?,
        Denial::Write { folder } => Grant::Write { folder: folder.clone() },
        Denial::Hosts { .. } => denial.session_grant()?,
        Denial::Secrets { files, hosts } => Grant::Secrets { files: files.clone(), hosts: hosts.clone(), line: None },
        _ => return None,
    };
    may_persist(&grant).then_some(grant)
}

/// Secrets together with hosts, for just this line; `None`: it has the whole network, and each time is asked about.
pub fn secrets_for(call: &ToolCall, files: &[AbsPath], hosts: &[HostGrant]) -> Option<Grant> {
    let line = Some(line_of(call)?.to_owned()).filter(|_| !hosts.is_empty());
    line.map(|line| Grant::Secrets { files: files.to_vec(), hosts: hosts.to_vec(), line: Some(line) })
}

/// The network for just this line.
pub fn network_for(call: &ToolCall) -> Option<Grant> {
    Some(Grant::NetworkFor { prefixes: vec![line_of(call)?.to_owned()] })
}

/// Tells whether it may hold for ever. Asked also of what was written down: users edit files.
pub fn may_persist(grant: &Grant) -> bool {
    match grant {
        Grant::NetworkFor { prefixes } => !prefixes.is_empty() && prefixes.iter().all(|it| !it.trim().is_empty()),
        Grant::Write { folder } => is_plain(folder),
        // Another program may listen there tomorrow.
        Grant::Reach { hosts, ports } => !hosts.is_empty() && ports.is_empty(),
        Grant::Secrets { files, hosts, line } => !files.is_empty() && !hosts.is_empty() && line.is_none(),
        Grant::Auto => true,
        _ => false,
    }
}

/// Tells whether it was given by an earlier version, and means nothing any more: the network is for one line only.
pub fn is_void(grant: &Grant) -> bool {
    matches!(grant, Grant::Network)
}

/// For the option that the user sees.
pub fn permission_in_words(it: &Grant) -> Option<String> {
    let what = match it {
        Grant::NetworkFor { prefixes } => format!("`{}` the network", prefixes.join("`, `")),
        Grant::Write { folder } => format!("commands to write below {}", path_in_words(&folder.to_string())),
        Grant::Reach { .. } => format!("commands network access to {}", it.reach_in_words()?),
        Grant::Secrets { .. } => it.secrets_in_words()?,
        _ => return None,
    };
    Some(format!("Always allow {what} in this folder, also in future sessions"))
}

/// What yeses for longer let a call do beyond the sandbox.
pub fn sandbox_grant<'g>(call: &ToolCall, grants: impl IntoIterator<Item = &'g Grant>) -> SandboxGrant {
    let mut res = SandboxGrant::default();
    for grant in grants {
        match grant {
            Grant::NetworkFor { prefixes } => {
                res.network |= line_of(call).is_some_and(|it| prefixes.iter().any(|yes| yes == it))
            }
            Grant::Write { folder } => res.write.push(folder.clone()),
            Grant::Reach { hosts, ports } => {
                res.reach.hosts.allowed.extend(hosts.iter().cloned());
                res.reach.ports.extend(ports.iter().cloned());
            }
            Grant::Secrets { files, hosts, line } if line.is_none() || line_of(call) == line.as_deref() => {
                res.reach.hosts.allowed.extend(hosts.iter().cloned());
                let open = |it: &AbsPath| OpenSecret { path: it.clone(), beside: Some(hosts.clone()) };
                res.credentials.extend(files.iter().map(open));
            }
            Grant::Read { folder } => res.seen.push(folder.clone()),
            _ => (),
        }
    }
    res
}

/// The exact words that run.
fn line_of(call: &ToolCall) -> Option<&str> {
    let command = call.args.get("command").and_then(Value::as_str).map(str::trim);
    command.filter(|it| !it.is_empty() && current_name(&call.name) == RUN_SHELL_COMMAND)
}

/// Neither what programs obey nor where secrets are kept, by any name on the way; and not a whole top folder.
fn is_plain(folder: &AbsPath) -> bool {
    let path = folder.as_path();
    let guarded = [&guarded_names::CONFIG, &guarded_names::SECRETS].iter().any(|it| it.find(path).is_some());
    path.components().count() > 2 && !guarded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{may_persist, sandbox_grant, sandbox_permission, secrets_for};
    use castor_base::{ids::CallId, log::Grant, path::AbsPath, sandbox::Denial, tool::ToolCall};

    fn call(command: &str) -> ToolCall {
        let name = "run_shell_command".to_owned();
        ToolCall { id: CallId::from("c"), name, args: json!({ "command": command }) }
    }

    #[test]
    fn the_network_is_for_the_line_that_asked() {
        let offered = sandbox_permission(&call(" npm install left-pad"), &Denial::Network).unwrap();
        assert_eq!(offered, Grant::NetworkFor { prefixes: vec!["npm install left-pad".to_owned()] });
        assert!(sandbox_grant(&call("npm install left-pad "), [&offered]).network);
        for no in ["npm install", "npm install left-pad x", "npm install left-pad && make", "curl x", "("] {
            assert!(!sandbox_grant(&call(no), [&offered]).network, "{no}");
        }
        // What earlier versions gave.
        for void in [Grant::Network, Grant::NetworkFor { prefixes: vec!["npm".to_owned()] }] {
            assert!(!sandbox_grant(&call("npm install"), [&void]).network);
        }
    }

    #[test]
    fn secrets_with_hosts_are_for_the_line_or_the_folder() {
        let (files, hosts) = (vec![AbsPath::new("/w/.env").unwrap()], vec!["a.test".to_owned().try_into().unwrap()]);
        let of_line = secrets_for(&call("make deploy"), &files, &hosts).unwrap();
        let denial = Denial::Secrets { files: files.clone(), hosts: hosts.clone() };
        let of_folder = sandbox_permission(&call("make deploy"), &denial).unwrap();
        for (grant, command, opens) in [
            (&of_line, " make deploy", true),
            (&of_line, "make deploy all", false),
            (&of_folder, "make deploy all", true),
        ] {
            let given = sandbox_grant(&call(command), [grant]);
            let is_open = given.credentials.iter().any(|it| it.path == files[0] && it.beside == Some(hosts.clone()));
            assert_eq!((is_open, given.reach.hosts.allowed == hosts), (opens, opens), "{command}");
        }
        assert!(may_persist(&of_folder) && !may_persist(&of_line));
        // With the whole network each time is asked about.
        let online = Denial::Secrets { files: files.clone(), hosts: vec![] };
        assert_eq!((secrets_for(&call("x"), &files, &[]), sandbox_permission(&call("x"), &online)), (None, None));
    }

    #[test]
    fn guarded_folders_are_not_kept() {
        let of = |it: &str| {
            let folder = AbsPath::new(it).unwrap();
            sandbox_permission(&call("touch x"), &Denial::Write { folder }).is_some()
        };
        assert!(of("/h/u/.cache/x") && of("/h/u/out"));
        for no in ["/h/u/.ssh", "/h/u/.aws/x", "/w/.git/hooks", "/w/.vscode", "/h/u/.cargo/config", "/h", "/"] {
            assert!(!of(no), "{no}");
        }
        assert_eq!(sandbox_permission(&call("touch x"), &Denial::Other), None);
        assert!(!may_persist(&Grant::Network) && !may_persist(&Grant::NetworkFor { prefixes: vec![] }));
        assert!(!may_persist(&Grant::NetworkFor { prefixes: vec![String::new()] }));
    }
}
