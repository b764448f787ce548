//! The trust question about a session's folder: its time and its text.

use std::sync::Arc;

use crate::{
    app::policies,
    base::trust::{Trust, allowed_by_trust},
    engine::step::TrustPrompt,
    wire::acp::session::SessionFolders,
    world::{secrets::Env, workspace::folder_config::FolderConfig},
};

/// Files as the question shows them: a yes is about these, whatever stands on the disk meanwhile.
pub struct PendingTrust {
    pub ground: FolderConfig,
    pub folders: SessionFolders,
    /// The session was begun before: its model is its own.
    pub is_resumed: bool,
}

impl PendingTrust {
    /// What the session's next turn asks, or tells where nobody can be asked; `None`: there is nothing to decide.
    pub fn prompt(&self, env: &Env, is_headless: bool) -> Option<TrustPrompt> {
        let doubt = self.ground.doubt.clone()?;
        if is_headless {
            return Some(TrustPrompt::Tell(doubt.notice));
        }
        let mut form = doubt.form;
        form.message += &allowed_by_trust(&policies::allowed_if_trusted(&self.ground, env));
        Some(TrustPrompt::Ask(Arc::new(form)))
    }
}

/// What is to be said where no folder counts as trusted, as the list of those cannot be read: nobody is asked then.
pub fn unread_notice(ground: &FolderConfig) -> Option<String> {
    let Trust::Untrusted(why) = &ground.trust else { return None };
    let by_list = ground.warnings.iter().any(|it| it.to_string() == *why);
    by_list.then(|| format!("What this folder brings is not used, settings and instructions too: {why}"))
}
