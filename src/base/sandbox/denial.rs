//! Sandbox denials: the likely cause of a confined command's failure, and the grant to offer.

use serde::{Deserialize, Serialize};

use super::{OpenSecret, SandboxGrant};
use crate::{
    grant::Grant,
    network::{HostGrant, HostRules, PortGrant, Reach},
    path::AbsPath,
    text,
};

fn shown(path: &AbsPath) -> String {
    text::path_in_words(&path.to_string())
}

/// For model and user.
pub fn in_a_row(hosts: &[HostGrant]) -> String {
    hosts.iter().map(HostGrant::in_words).collect::<Vec<_>>().join(", ")
}

fn reach_in_words(hosts: &[HostGrant]) -> String {
    if hosts.is_empty() { "the network".to_owned() } else { in_a_row(hosts) }
}

fn reaching(allowed: Vec<HostGrant>, ports: Vec<PortGrant>) -> SandboxGrant {
    let hosts = HostRules { allowed, denied: Vec::new() };
    SandboxGrant { reach: Reach { hosts, ports, sockets: Vec::new() }, ..SandboxGrant::default() }
}

/// What a yes for longer opens: of a package manager's hosts all, as it is one choice.
fn with_group(hosts: &[HostGrant]) -> Vec<HostGrant> {
    let others = hosts.iter().filter(|it| !it.is_of_registries()).cloned();
    let group = hosts.iter().any(HostGrant::is_of_registries).then_some(HostGrant::REGISTRIES);
    group.into_iter().chain(others).collect()
}

/// The likely cause of a confined command's failure, with the grant to offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "denied", rename_all = "snake_case")]
pub enum Denial {
    Network,
    /// Hosts that the door refused.
    Hosts {
        hosts: Vec<HostGrant>,
    },
    /// A port of this machine.
    Port {
        port: PortGrant,
    },
    /// A socket of another program.
    Socket {
        path: AbsPath,
    },
    /// Secret files of the workspace, which a command with the network does not see.
    Secrets {
        files: Vec<AbsPath>,
        /// The hosts that the command reaches; none: it has the whole network.
        hosts: Vec<HostGrant>,
    },
    /// A credential that is masked, and the network, which goes with it.
    Credential {
        path: AbsPath,
        /// The hosts that the command reaches, in place of the network.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hosts: Vec<HostGrant>,
    },
    /// Writing below a folder.
    Write {
        folder: AbsPath,
    },
    /// Writing in a workspace that is read-only as nobody trusts it.
    UntrustedFolder {
        folder: AbsPath,
    },
    /// A file or folder in the part of the home folder that commands do not see.
    Hidden {
        folder: AbsPath,
    },
    /// Writing configuration in the workspace.
    Config {
        path: AbsPath,
    },
    /// Writing what no checkpoint can give back.
    NotKept {
        path: AbsPath,
    },
    /// What no question opens by itself: its folder is too wide, or other programs obey what is there.
    Unopenable {
        path: AbsPath,
    },
    /// It was taken for one that only looks, and wanted to write.
    Looks,
    /// Something that is never allowed to a confined command (sockets of other programs, the user's own configuration), or
    /// of which nobody says what it was.
    Other,
}

impl Denial {
    /// For model and user.
    pub fn in_words(&self) -> String {
        match self {
            Self::Network => "The sandbox blocked network access.".to_owned(),
            Self::Hosts { hosts } => format!("The sandbox did not let this command reach {}.", in_a_row(hosts)),
            Self::Port { port } => {
                format!("The sandbox gives each command a network of its own, without {}.", port.in_words())
            }
            Self::Socket { path } => {
                format!("The sandbox hid {}, by which another program is spoken to.", shown(path))
            }
            Self::Secrets { files, hosts } => {
                let files: Vec<String> = files.iter().map(shown).collect();
                let (files, hosts) = (files.join(", "), reach_in_words(hosts));
                format!("The sandbox hid {files}, where secrets are kept, from a command that may reach {hosts}.")
            }
            Self::Credential { path, hosts } if !hosts.is_empty() => {
                let (path, hosts) = (shown(path), in_a_row(hosts));
                format!("The sandbox hid {path}, which is a secret, from a command that may reach {hosts}.")
            }
            Self::Credential { path, .. } => {
                format!("The sandbox blocked network access and hid {}, which is a secret.", shown(path))
            }
            Self::Write { folder } => format!("The sandbox blocked writing below {}.", shown(folder)),
            Self::UntrustedFolder { folder } => {
                let folder = shown(folder);
                format!(
                    "The sandbox blocked writing below {folder}, because the folder is not trusted: `castor trust` in it \
                     lets commands write there."
                )
            }
            Self::Hidden { folder } => {
                format!("The sandbox hid {}: of the home folder commands see tools only.", shown(folder))
            }
            Self::Config { path } => {
                let path = shown(path);
                format!("The sandbox blocked writing {path}, which is configuration of editors, git or castor.")
            }
            Self::NotKept { path } => {
                let path = shown(path);
                format!("The sandbox blocked writing {path}, because no checkpoint could restore it.")
            }
            Self::Unopenable { path } => {
                format!("The sandbox kept the command from {}, which it cannot open by itself.", shown(path))
            }
            Self::Looks => "castor ran this command read-only, because it seemed only to read.".to_owned(),
            Self::Other => {
                "The sandbox blocked something that the command does not name, or that no command may use: a file \
                 elsewhere, configuration of editors, git or castor, sockets of other programs, or other processes."
                    .to_owned()
            }
        }
    }

    /// What a yes to running it again comes to, for once.
    pub fn grant_once(&self) -> SandboxGrant {
        match self {
            Self::Network => SandboxGrant { network: true, ..SandboxGrant::default() },
            Self::Hosts { hosts } => reaching(hosts.clone(), Vec::new()),
            Self::Port { port } => reaching(Vec::new(), vec![port.clone()]),
            Self::Socket { path } => {
                let reach = Reach { sockets: vec![path.clone()], ..Reach::default() };
                SandboxGrant { reach, ..SandboxGrant::default() }
            }
            Self::Secrets { files, hosts } => {
                let credentials = files.iter().cloned().map(OpenSecret::once).collect();
                SandboxGrant { network: hosts.is_empty(), credentials, ..reaching(hosts.clone(), Vec::new()) }
            }
            Self::Credential { path, hosts } => {
                let credentials = vec![OpenSecret::once(path.clone())];
                SandboxGrant { network: hosts.is_empty(), credentials, ..reaching(hosts.clone(), Vec::new()) }
            }
            Self::Write { folder } | Self::UntrustedFolder { folder } => {
                SandboxGrant { write: vec![folder.clone()], ..SandboxGrant::default() }
            }
            Self::Hidden { folder } => SandboxGrant { seen: vec![folder.clone()], ..SandboxGrant::default() },
            Self::Config { path } | Self::NotKept { path } => {
                SandboxGrant { config: vec![path.clone()], ..SandboxGrant::default() }
            }
            Self::Looks => SandboxGrant::default(),
            Self::Unopenable { .. } | Self::Other => SandboxGrant { unconfined: true, ..SandboxGrant::default() },
        }
    }

    /// What a yes does, for the user.
    pub fn offer_text(&self) -> String {
        match self {
            Self::Network => "Run the whole command again with network?".to_owned(),
            Self::Hosts { .. } => {
                "Run the whole command again with that allowed? It sees no secret files then.".to_owned()
            }
            Self::Port { .. } => {
                "Run the whole command again with that port, as long as this program listens there?".to_owned()
            }
            Self::Socket { .. } => {
                "Run the whole command again with that socket, this once? It can have done then what that program may do."
                    .to_owned()
            }
            Self::Secrets { files, hosts } => {
                let those = if files.len() > 1 { "those files" } else { "that file" };
                format!("Run the whole command again with both {those} and {}?", reach_in_words(hosts))
            }
            Self::Write { .. } => "Run the whole command again with write access there?".to_owned(),
            Self::UntrustedFolder { .. } => "Run the whole command again with write access there all the same?".to_owned(),
            Self::Hidden { folder } => {
                format!("Run the whole command again with read access to {}?", shown(folder))
            }
            Self::Credential { .. } => "Run the whole command again with both, this once?".to_owned(),
            Self::Config { path } | Self::NotKept { path } => {
                format!("Run the whole command again with {} writable, this once?", shown(path))
            }
            Self::Looks => "Run it again with write access to the workspace?".to_owned(),
            Self::Unopenable { .. } | Self::Other => {
                "Run the whole command again without the sandbox, with all your rights?".to_owned()
            }
        }
    }

    /// What the user's settings have to say of a hook, a server or an agent that lacked it.
    pub fn settings_key(&self) -> String {
        let one = |key: &str, path: &AbsPath| format!("\"sandbox\": {{\"{key}\": [{:?}]}}", path.to_string());
        match self {
            Self::Network | Self::Hosts { .. } | Self::Port { .. } => "\"sandbox\": {\"network\": true}".to_owned(),
            Self::Credential { path, .. } => {
                format!("\"sandbox\": {{\"network\": true, \"readable\": [{:?}]}}", path.to_string())
            }
            Self::Socket { path } => one("sockets", path),
            Self::Write { folder } | Self::UntrustedFolder { folder } => one("writable", folder),
            Self::Hidden { folder } => one("readable", folder),
            Self::Secrets { files, .. } => {
                let files: Vec<String> = files.iter().map(|it| format!("{:?}", it.to_string())).collect();
                format!("\"sandbox\": {{\"readable\": [{}]}}", files.join(", "))
            }
            Self::Config { .. } | Self::NotKept { .. } | Self::Unopenable { .. } | Self::Looks | Self::Other => {
                "\"sandbox\": false".to_owned()
            }
        }
    }

    /// What a question can give a hook or a server for a session; `None`: only the user's settings can.
    pub fn program_grant(&self) -> Option<SandboxGrant> {
        match self {
            Self::Network
            | Self::Hosts { .. }
            | Self::Port { .. }
            | Self::Write { .. }
            | Self::UntrustedFolder { .. }
            | Self::Hidden { .. } => Some(self.grant_once()),
            // Secrets, other programs' sockets, guarded configuration, and what nobody can name.
            Self::Credential { .. }
            | Self::Secrets { .. }
            | Self::Socket { .. }
            | Self::Config { .. }
            | Self::NotKept { .. }
            | Self::Unopenable { .. }
            | Self::Looks
            | Self::Other => None,
        }
    }

    /// The same as the end of a question that begins with the program.
    pub fn program_offer(&self) -> String {
        match self {
            Self::Hosts { hosts } => format!("reach {}", in_a_row(hosts)),
            Self::Port { port } => format!("use {}", port.in_words()),
            Self::Write { folder } | Self::UntrustedFolder { folder } => format!("write below {}", shown(folder)),
            Self::Hidden { folder } => format!("read {}", shown(folder)),
            _ => "use the network".to_owned(),
        }
    }

    /// The same for the session; `None`: not on offer.
    pub fn session_grant(&self) -> Option<Grant> {
        match self {
            Self::Network => Some(Grant::Network),
            Self::Hosts { hosts } => Some(Grant::Reach { hosts: with_group(hosts), ports: Vec::new() }),
            Self::Port { port } => Some(Grant::Reach { hosts: Vec::new(), ports: vec![port.clone()] }),
            // Of a folder as wide as `/opt` a yes would say too much for longer.
            Self::Write { folder } | Self::UntrustedFolder { folder } if folder.as_path().components().count() > 2 => {
                Some(Grant::Write { folder: folder.clone() })
            }
            Self::Hidden { folder } => Some(Grant::Read { folder: folder.clone() }),
            _ => None,
        }
    }
}
