//! Notices about settings and files: what castor does not take as it is written, and what has no effect in it.

use super::place::merged_settings;
use crate::settings::{Settings, Sources, gemini_files, gemini_variables, options::Options, without_effect};
use castor_base::{path::AbsPath, text};
use castor_tools::workspace::{Warning, folder_config::FolderConfig, said_once};

/// The most keys that one file and reason are named with, and the most of these in a notice.
const MAX_KEYS: usize = 12;
const MAX_GROUPS: usize = 10;
/// Longest name of a key, and longest reason, in characters.
const MAX_KEY: usize = 100;
const MAX_WHY: usize = 300;

/// What is to be said of the settings of a folder.
pub struct SettingsFindings {
    /// Not taken as written.
    pub wrong: Vec<Warning>,
    /// Without effect; files and variables that Gemini CLI has, too.
    pub idle: Vec<Warning>,
}

impl SettingsFindings {
    pub fn of_session(options: &Options, ground: &FolderConfig) -> Self {
        let (settings, warnings) = merged_settings(options, ground);
        Self::new(ground, &settings, warnings)
    }

    /// `warnings`: of the merged settings.
    pub fn new(ground: &FolderConfig, settings: &Settings, warnings: Vec<Warning>) -> Self {
        let layers = ground.layers();
        let sources = Sources { layers, env: &ground.env, flags: &[] };
        // The sandbox speaks for itself, and so do flags.
        let of_sandbox = |it: &Warning| settings.children.sandbox.invalid.contains(&it.to_string());
        let wrong = warnings.into_iter().filter(|it| !of_sandbox(it)).collect();
        let mut wrong = ground.locate(wrong);
        wrong.retain(|it| AbsPath::new(&it.origin).is_some());
        let mut idle = ground.locate(without_effect(sources));
        idle.extend(gemini_files::without_effect(ground));
        idle.extend(gemini_variables::without_effect(&ground.env));
        idle.extend(ground.warnings.iter().filter(|it| it.key.is_some()).cloned());
        Self { wrong, idle }
    }

    /// Those of the folder's own files.
    pub fn of_folder(mut self, folder: &AbsPath) -> Self {
        let is_own = |it: &Warning| AbsPath::new(&it.origin).is_some_and(|it| it.is_within(folder));
        self.wrong.retain(is_own);
        self.idle.retain(is_own);
        self
    }

    /// All that there is to say to a session that begins. What has no effect is said once for all.
    pub fn notices(mut self, home: &AbsPath, folder: &AbsPath) -> Vec<String> {
        let subject = |it: &Warning| format!("{}: {}", it.origin, it.key.as_deref().unwrap_or_default());
        let subjects: Vec<String> = self.idle.iter().map(subject).collect();
        let fresh = said_once::unsaid(home, &subjects);
        self.idle.retain(|it| fresh.contains(&subject(it)));
        let wrong = self.wrong_notice(folder);
        let idle = in_words(&self.idle, folder);
        let idle =
            idle.map(|it| format!("No effect in castor: {it}. This is said once; `castor doctor` shows it again."));
        wrong.into_iter().chain(idle).collect()
    }

    /// What is wrong, each time.
    pub fn wrong_notice(&self, folder: &AbsPath) -> Option<String> {
        let it = in_words(&self.wrong, folder)?;
        let hint = "`castor config explain KEY` shows the value that counts.";
        Some(format!("castor does not take these settings as they are written: {it}. {hint}"))
    }
}

/// Findings of one file for one reason stand together: `a, b in FILE:3,7 (why)`.
fn in_words(findings: &[Warning], folder: &AbsPath) -> Option<String> {
    let groups = groups(findings, folder);
    let n_more = groups.len().saturating_sub(MAX_GROUPS);
    let mut parts: Vec<String> = groups.into_iter().take(MAX_GROUPS).collect();
    if n_more > 0 {
        parts.push(format!("{n_more} more, which `castor doctor` lists"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Each file and reason with its keys and lines.
pub fn groups(findings: &[Warning], folder: &AbsPath) -> Vec<String> {
    let mut by_reason: Vec<((&str, &str), Vec<&Warning>)> = Vec::new();
    for it in findings {
        let reason = (it.origin.as_str(), it.message.as_str());
        match by_reason.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, all)) => all.push(it),
            None => by_reason.push((reason, vec![it])),
        }
    }
    by_reason.into_iter().map(|((file, why), all)| one_group(file, why, &all, folder)).collect()
}

fn one_group(file: &str, why: &str, all: &[&Warning], folder: &AbsPath) -> String {
    let file = AbsPath::new(file).map_or_else(|| file.to_owned(), |it| it.relative_to(folder));
    let mut lines: Vec<String> = all.iter().filter_map(|it| Some(it.at?.0.to_string())).collect();
    lines.dedup();
    let keys: Vec<String> = all.iter().filter_map(|it| Some(text::first_line(it.key.as_ref()?, MAX_KEY))).collect();
    let n_more = keys.len().saturating_sub(MAX_KEYS);
    lines.truncate(MAX_KEYS);
    let lines = if lines.is_empty() { String::new() } else { format!(":{}", lines.join(",")) };
    let mut names = keys.into_iter().take(MAX_KEYS).collect::<Vec<_>>().join(", ");
    if n_more > 0 {
        names += &format!(" and {n_more} more");
    }
    let names = if names.is_empty() { names } else { format!("{names} in ") };
    format!("{names}{file}{lines} ({})", text::first_line(why, MAX_WHY))
}

#[cfg(test)]
mod tests {
    use super::SettingsFindings;
    use crate::settings::options::Options;
    use castor_fixtures::Ground;
    use castor_tools::workspace::folder_config;

    /// Those of the environment, and those of a file that only the environment may set.
    #[test]
    fn variables_without_effect_are_said_once() {
        let ground = Ground::new();
        ground.write("h/.gemini/.env", "# mine\nGEMINI_API_KEY=k\nHTTPS_PROXY=p\nGEMINI_SANDBOX=docker\nPORT=1");
        let (folder, home) = (ground.root.join("w"), ground.root.join("castor"));
        let mut env = ground.env("false");
        for (name, value) in
            [("GEMINI_SYSTEM_MD", "1"), ("GEMINI_TELEMETRY_LOG_PROMPTS", "false"), ("GEMINI_TELEMETRY_TARGET", "gcp")]
        {
            env.set_if_absent(name, value, ("", 0));
        }
        let say = || {
            let ground = folder_config::load(&env, &folder);
            SettingsFindings::of_session(&Options::default(), &ground).notices(&home, &ground.folder).join("\n")
        };
        let first = say().replace(&ground.root.to_string(), "$ROOT");
        let want = "No effect in castor: GEMINI_SYSTEM_MD in the environment (castor's instructions are its own: put \
                    yours into GEMINI.md); GEMINI_TELEMETRY_TARGET in the environment (castor exports to a collector \
                    or a file: run a collector for Google Cloud, and set local); HTTPS_PROXY, GEMINI_SANDBOX in $ROOT/h/.gemini/.env:3,4 (a file may not set it \
                    for castor: set it in the environment). This is said once; `castor doctor` shows it again.";
        assert_eq!((first.as_str(), say().as_str()), (want, ""));
    }

    #[test]
    fn each_thing_is_said_with_its_line_and_no_effect_once() {
        let ground = Ground::new();
        ground.write("h/.gemini/oauth_creds.json", "{}");
        ground.write(
            "h/.gemini/settings.json",
            "{\n \"ui\": {\"theme\": \"x\",\n  \"hideTips\": true},\n \"general\": {\"maxAttempts\": \"no\"},\n \"tols\": {}\n}",
        );
        ground.write("w/.gemini/settings.json", "{\n \"tools\": {\n  \"allowed\": [\"x\"], \"useRipgrep\": true}}");
        let (folder, home) = (ground.root.join("w"), ground.root.join("castor"));
        let say = |trust: &str| {
            let ground = folder_config::load(&ground.env(trust), &folder);
            let found = SettingsFindings::of_session(&Options::default(), &ground);
            found.notices(&home, &ground.folder).join("\n")
        };
        let plain = |it: String| it.replace(&ground.root.to_string(), "$ROOT");
        expect_test::expect![[r#"
            castor does not take these settings as they are written: general.maxAttempts in $ROOT/h/.gemini/settings.json:4 (should be a whole number, at least 1; ignored); tols in $ROOT/h/.gemini/settings.json:5 (is not a setting that castor knows; did you mean tools?). `castor config explain KEY` shows the value that counts.
            No effect in castor: ui.theme, ui.hideTips in $ROOT/h/.gemini/settings.json:2,3 (no such setting here: `castor chat` has --theme and --plain, your editor a look of its own); $ROOT/h/.gemini/oauth_creds.json (Google allows this login in its own clients only: use an API key). This is said once; `castor doctor` shows it again."#]]
        .assert_eq(&plain(say("false")));
        // The user's are said; those of the folder count from now on.
        let text = plain(say("true"));
        assert!(
            text.contains("tools.allowed in .gemini/settings.json:3 (a workspace may not set this; ignored)"),
            "{text}"
        );
        assert!(text.contains("No effect in castor: tools.useRipgrep in .gemini/settings.json:3"), "{text}");
        assert!(!text.contains("ui.theme") && text.contains("tols"), "{text}");
        assert!(!say("true").contains("No effect"));
    }
}
