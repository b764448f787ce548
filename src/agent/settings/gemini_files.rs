//! The table of Gemini CLI's files: which of them castor reads, and what there is in place of the others.

use super::gemini::Compatibility;
use castor_base::path::AbsPath;
use castor_hands::disk;
use castor_tools::workspace::{Warning, folder_config::FolderConfig, gemini_home};

/// Whose folder `.gemini` a file lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOwner {
    User,
    Workspace,
    /// It may lie in both.
    Both,
}

impl FileOwner {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "you",
            Self::Workspace => "the workspace",
            Self::Both => "you, the workspace",
        }
    }
}

/// Below `.gemini`, whose, and how it is here.
#[rustfmt::skip]
pub const FILES: &[(&str, FileOwner, Compatibility)] = {
    use FileOwner::{Both, User, Workspace};
    use Compatibility::{Absent, Differs, Works};
    &[
        ("settings.json", Both, Differs("castor's own file beside it is stronger; one with an error is skipped")),
        ("GEMINI.md", User, Works),
        ("../GEMINI.md", Workspace, Differs("AGENTS.md counts too")),
        ("../.geminiignore", Workspace, Works),
        (".env", Both, Differs("a short list of variables")),
        ("policies/*.toml", Both, Differs("an error in a file makes castor ask, and does not drop the file")),
        ("policies/auto-saved.toml", User, Works),
        ("trustedFolders.json", User, Works),
        ("trusted_hooks.json", User, Differs("castor binds trust to the content of hooks, in its own folder")),
        ("agents/*.md", Both, Works),
        ("commands/**/*.toml", Both, Works),
        ("skills/*/SKILL.md", Both, Works),
        ("tmp/*/chats/session-*.jsonl", User, Differs("`castor sessions import FILE` takes one over")),
        ("extensions", User, Absent("`castor extensions install` copies one from there, once you have seen what it brings")),
        ("hooks.json", Both, Absent("settings.json has the hooks")),
        ("sandbox.toml", User, Absent("castor's sandbox has settings: security.sandbox")),
        ("policies/sandbox.toml", User, Absent("castor's sandbox has settings: security.sandbox")),
        ("sandbox.Dockerfile", Workspace, Absent("castor starts no container")),
        ("sandbox.bashrc", Workspace, Absent("castor starts no container")),
        ("system.md", Both, Absent("castor's instructions are its own: put yours into GEMINI.md")),
        ("keybindings.json", User, Absent("the keys of `castor chat` are fixed: `?` shows them")),
        ("oauth_creds.json", User, Absent("Google allows this login in its own clients only: use an API key")),
        ("mcp-oauth-tokens.json", User, Absent("castor keeps tokens of its own")),
        ("a2a-oauth-tokens.json", User, Absent("castor keeps tokens of its own")),
        ("mcp-server-enablement.json", User, Absent("mcp.excluded turns a server off")),
        ("telemetry.log", Both, Absent("castor writes none there")),
    ]
};

/// Those of the user, and of a folder that is trusted, that are there for nothing. What Gemini CLI keeps for itself is
/// nobody's wish, and is passed over.
pub fn without_effect(ground: &FolderConfig) -> Vec<Warning> {
    const OF_THE_PROGRAM: &[&str] = &["mcp-oauth-tokens.json", "a2a-oauth-tokens.json", "telemetry.log"];
    let user = gemini_home(&ground.env);
    let own = ground.trust.is_trusted().then(|| ground.folder.join(".gemini")).filter(|it| Some(it) != user.as_ref());
    let mut res = Vec::new();
    for (name, owner, compatibility) in FILES.iter().filter(|it| !OF_THE_PROGRAM.contains(&it.0)) {
        let Compatibility::Absent(why) = compatibility else { continue };
        let of_user = user.as_ref().filter(|_| *owner != FileOwner::Workspace);
        let of_folder = own.as_ref().filter(|_| *owner != FileOwner::User);
        let there = of_user.into_iter().chain(of_folder).map(|it| it.join(name)).filter(is_there);
        res.extend(there.map(|it| Warning { origin: it.to_string(), at: None, key: None, message: (*why).to_owned() }));
    }
    res
}

/// A folder without anything in it is nobody's wish either.
fn is_there(path: &AbsPath) -> bool {
    disk::metadata(path)
        .is_ok_and(|it| !it.is_dir || disk::names(path.as_path(), 1).is_ok_and(|it| it.is_none_or(|it| !it.is_empty())))
}
