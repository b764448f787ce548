//! The trust question about a session's folder: its time and its text.

use std::sync::Arc;

use super::{confinement, place::settings_of, shown_unseen::unseen_or_changed};
use crate::{session::policies, settings::options::Options};
use castor_base::{
    mode::Mode,
    trust::{Trust, allowed_by_trust},
    unseen_files::{SeenBytes, UnseenFiles},
};
use castor_engine::step::{TrustForm, TrustPrompt};
use castor_hands::{provenance::Provenance, secrets::Env};
use castor_tools::workspace::folder_config::FolderConfig;
use castor_wire::acp::session::SessionFolders;

/// Before the diffs.
const SHOWN: &str = "These instructions for the model were written by an agent, or changed since you trusted them. An approval \
     says that you looked at them:\n";

/// Files as the question shows them: a yes is about these, whatever stands on the disk meanwhile.
pub struct PendingTrust {
    pub ground: FolderConfig,
    pub folders: SessionFolders,
    /// The session was begun before: its model is its own.
    pub is_resumed: bool,
    /// What the question shows of instructions that an agent wrote: a yes is a look at these bytes.
    pub seen: Vec<SeenBytes>,
}

impl PendingTrust {
    /// What the session's next turn asks, or tells where nobody can be asked; `None`: there is nothing to decide.
    pub fn prompt(
        &mut self,
        (options, env): (&Options, &Env),
        provenance: &Provenance,
        is_headless: bool,
    ) -> Option<TrustPrompt> {
        let doubt = self.ground.doubt.clone()?;
        if is_headless {
            return Some(TrustPrompt::Tell(doubt.notice));
        }
        let settings = settings_of(options, &self.ground);
        let offers_auto = !settings.barred_modes.contains(&Mode::Auto)
            && !settings.disable_always_allow
            && confinement::lacks_for_auto(&settings).is_none();
        let mut form = if offers_auto { doubt.form_with_auto() } else { doubt.form };
        form.message += &allowed_by_trust(&policies::allowed_if_trusted(&self.ground, env));
        let files = self.ground.project.instruction_files();
        let UnseenFiles { diffs, bytes } = unseen_or_changed(provenance, &self.ground.folder, &files);
        if !diffs.is_empty() {
            form.message += SHOWN;
        }
        self.seen = bytes;
        Some(TrustPrompt::Ask(TrustForm { form: Arc::new(form), diffs: diffs.into() }))
    }
}

/// What is to be said where no folder counts as trusted, as the list of those cannot be read: nobody is asked then.
pub fn unread_notice(ground: &FolderConfig) -> Option<String> {
    let Trust::Untrusted(why) = &ground.trust else { return None };
    let by_list = ground.warnings.iter().any(|it| it.to_string() == *why);
    by_list.then(|| format!("What this folder brings is not used, settings and instructions too: {why}"))
}
