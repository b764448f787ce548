//! The table of Gemini CLI's settings: which of them work in castor, which differ, and what there is in place of the others.

use super::keys::{self, Usage, path_below};

/// The release whose settings, flags, commands and files the tables name.
pub const VERSION: &str = "0.61";

/// How something of Gemini CLI is in castor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compatibility {
    Works,
    /// It has an effect, and this is another than there.
    Differs(&'static str),
    /// It has none; this is why, or what there is instead.
    Absent(&'static str),
}

impl Compatibility {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Differs(_) => "differs",
            Self::Absent(_) => "not here",
        }
    }

    /// What is to be said of it.
    pub fn note(self) -> &'static str {
        match self {
            Self::Works => "",
            Self::Differs(note) | Self::Absent(note) => note,
        }
    }
}

const SCREEN: Compatibility =
    Compatibility::Absent("no such setting here: `castor chat` has --theme and --plain, your editor a look of its own");
const VOICE: Compatibility = Compatibility::Absent("castor has no voice input");
const UPDATES: Compatibility = Compatibility::Absent("castor does not update itself");
const NOTIFIES: Compatibility = Compatibility::Absent("your editor notifies you, and `castor chat` rings the bell");
const RUNTIME: Compatibility = Compatibility::Absent("castor has one runtime for all sessions");
const BROWSER: Compatibility = Compatibility::Absent("castor has no browser agent");
const ADMIN: Compatibility =
    Compatibility::Absent("castor has no remote administration: /etc/castor/settings.json goes over all files");
const SWITCH: Compatibility = Compatibility::Absent("castor has no switch for this");
const GEMMA: Compatibility =
    Compatibility::Absent("castor starts no model server: model.routing.local names one that runs");
const ROUTES: Compatibility = Compatibility::Absent(
    "castor has a model catalog of its own: modelConfigs.customAliases, model.routing and model.fallback change it",
);
const MASKS: Compatibility = Compatibility::Absent("castor has limits of its own for this part of the context");
const DISCOVERY: Compatibility = Compatibility::Absent("castor takes tools of MCP servers only");
const MEMORY_WALK: Compatibility =
    Compatibility::Absent("castor looks from the folder up to the root of its repository");
const LICENSED: Compatibility = Compatibility::Absent("castor has API keys and Vertex AI, no plans of Google's");

/// Values that stand for nothing here, of settings that otherwise count.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "telemetry.otlpProtocol",
        "grpc",
        "castor speaks OTLP over HTTP: set http, and the collector's port for it (4318)",
    ),
    (
        "telemetry.target",
        "gcp",
        "castor exports to a collector or a file: run a collector for Google Cloud, and set local",
    ),
];

/// Why a value has no effect; `None`: it has.
pub fn refusal(path: &str, value: &str) -> Option<&'static str> {
    REFUSED.iter().find(|it| (it.0, it.1) == (path, value)).map(|it| it.2)
}

/// All of them, and how they are here. Objects whose members users name themselves are one row.
#[rustfmt::skip]
pub const SETTINGS: &[(&str, Compatibility)] = {
    use Compatibility::{Absent, Differs, Works};
    &[
        ("$schema", Works),
        ("admin.extensions.enabled", ADMIN),
        ("admin.mcp.config", ADMIN),
        ("admin.mcp.enabled", ADMIN),
        ("admin.mcp.requiredConfig", ADMIN),
        ("admin.secureModeEnabled", ADMIN),
        ("admin.skills.enabled", ADMIN),
        ("adminPolicyPaths", Works),
        ("advanced.autoConfigureMemory", Absent("castor is no Node program")),
        ("advanced.bugCommand", Absent("castor has no command for reports")),
        ("advanced.dnsResolutionOrder", Absent("castor is no Node program: the system resolves names")),
        ("advanced.excludedEnvVars", Absent("castor takes a short list of variables from a workspace's .env anyway")),
        ("advanced.ignoreLocalEnv", Absent("castor reads no .env of an untrusted folder, and few variables of a trusted one")),
        ("agents.browser.allowedDomains", BROWSER),
        ("agents.browser.blockFileUploads", BROWSER),
        ("agents.browser.confirmSensitiveActions", BROWSER),
        ("agents.browser.disableUserInput", BROWSER),
        ("agents.browser.headless", BROWSER),
        ("agents.browser.maxActionsPerTask", BROWSER),
        ("agents.browser.profilePath", BROWSER),
        ("agents.browser.sessionMode", BROWSER),
        ("agents.browser.visualModel", BROWSER),
        ("agents.overrides", Works),
        ("billing.overageStrategy", LICENSED),
        ("billing.vertexAi.requestType", LICENSED),
        ("billing.vertexAi.sharedRequestType", LICENSED),
        ("context.discoveryMaxDirs", MEMORY_WALK),
        ("context.fileFiltering.customIgnoreFilePaths", Differs("names of files, in any folder; no paths")),
        ("context.fileFiltering.enableFileWatcher", Absent("the editor completes `@` by itself")),
        ("context.fileFiltering.enableFuzzySearch", Absent("the editor completes `@` by itself")),
        ("context.fileFiltering.enableRecursiveFileSearch", Absent("the editor completes `@` by itself")),
        ("context.fileFiltering.respectGeminiIgnore", Differs(".castorignore counts too")),
        ("context.fileFiltering.respectGitIgnore", Works),
        ("context.fileName", Differs("the default is GEMINI.md and AGENTS.md; names end with .md")),
        ("context.importFormat", Absent("castor has one form for imports")),
        ("context.includeDirectories", Absent("the client names more folders of a session")),
        ("context.includeDirectoryTree", Differs("in a trusted folder only, 200 names at most")),
        ("context.loadMemoryFromIncludeDirectories", Absent("castor reads the memory files of all folders of a session")),
        ("context.memoryBoundaryMarkers", MEMORY_WALK),
        ("contextManagement.historyWindow.maxTokens", Absent("model.compressionThreshold says when a conversation is compressed")),
        ("contextManagement.historyWindow.retainedTokens", MASKS),
        ("contextManagement.messageLimits.normalMaxTokens", MASKS),
        ("contextManagement.messageLimits.normalizationHeadRatio", MASKS),
        ("contextManagement.messageLimits.retainedMaxTokens", MASKS),
        ("contextManagement.tools.distillation.maxOutputTokens", Works),
        ("contextManagement.tools.distillation.summarizationThresholdTokens", Works),
        ("contextManagement.tools.outputMasking.minPrunableThresholdTokens", MASKS),
        ("contextManagement.tools.outputMasking.protectLatestTurn", MASKS),
        ("contextManagement.tools.outputMasking.protectionThresholdTokens", MASKS),
        ("experimental.adk.agentSessionInteractiveEnabled", RUNTIME),
        ("experimental.adk.agentSessionNoninteractiveEnabled", RUNTIME),
        ("experimental.adk.agentSessionSubagentEnabled", RUNTIME),
        ("experimental.autoMemory", Differs("a sub-agent that you or the model start, and an inbox")),
        ("experimental.contextManagement", Differs("distils very large results; the rest has no switch")),
        ("experimental.directWebFetch", Absent("web_fetch gives the page itself anyway")),
        ("experimental.dynamicModelConfiguration", ROUTES),
        ("experimental.enableAgents", Works),
        ("experimental.extensionConfig", SWITCH),
        ("experimental.extensionManagement", SWITCH),
        ("experimental.extensionRegistry", SWITCH),
        ("experimental.extensionRegistryURI", SWITCH),
        ("experimental.extensionReloading", SWITCH),
        ("experimental.gemma", Absent("models that castor does not know can be named anyway")),
        ("experimental.gemmaModelRouter.autoStartServer", GEMMA),
        ("experimental.gemmaModelRouter.binaryPath", GEMMA),
        ("experimental.gemmaModelRouter.classifier.host", GEMMA),
        ("experimental.gemmaModelRouter.classifier.model", GEMMA),
        ("experimental.gemmaModelRouter.enabled", GEMMA),
        ("experimental.generalistProfile", MASKS),
        ("experimental.modelSteering", Absent("a prompt during a turn steers it anyway, where the client sends one")),
        ("experimental.powerUserProfile", MASKS),
        ("experimental.stressTestProfile", MASKS),
        ("experimental.taskTracker", Absent("the model keeps a list of tasks")),
        ("experimental.topicUpdateNarration", Absent("castor tells topics as the title of the session")),
        ("experimental.useOSC52Copy", SCREEN),
        ("experimental.useOSC52Paste", SCREEN),
        ("experimental.voice.activationMode", VOICE),
        ("experimental.voice.backend", VOICE),
        ("experimental.voice.stopGracePeriodMs", VOICE),
        ("experimental.voice.whisperModel", VOICE),
        ("experimental.voiceMode", VOICE),
        ("experimental.worktrees", Absent("castor makes no worktrees: start it in one")),
        ("extensions.disabled", Works),
        ("extensions.workspacesWithMigrationNudge", SWITCH),
        ("general.checkpointing.enabled", Differs("on by default, and without git")),
        ("general.debugKeystrokeLogging", SCREEN),
        ("general.defaultApprovalMode", Differs("one mode more: auto")),
        ("general.devtools", Absent("CASTOR_LOG says what castor does")),
        ("general.enableAutoUpdate", UPDATES),
        ("general.enableAutoUpdateNotification", UPDATES),
        ("general.enableNotifications", NOTIFIES),
        ("general.logRagSnippets", LICENSED),
        ("general.maxAttempts", Works),
        ("general.notificationMethod", NOTIFIES),
        ("general.openEditorInNewWindow", SCREEN),
        ("general.plan.directory", Absent("plans lie in castor's folder of the session")),
        ("general.plan.enabled", Absent("the mode plan is always available")),
        ("general.plan.modelRouting", Absent("the model does not change with the mode")),
        ("general.preferredEditor", Absent("`castor chat` opens $VISUAL or $EDITOR")),
        ("general.retryFetchErrors", Works),
        ("general.sessionRetention.enabled", Works),
        ("general.sessionRetention.maxAge", Works),
        ("general.sessionRetention.maxCount", Works),
        ("general.sessionRetention.minRetention", Works),
        ("general.topicUpdateNarration", Absent("castor tells topics as the title of the session")),
        ("general.vimMode", Works),
        ("hooks.AfterAgent", Works),
        ("hooks.AfterModel", Differs("once for an answer, when it is whole")),
        ("hooks.AfterTool", Works),
        ("hooks.BeforeAgent", Works),
        ("hooks.BeforeModel", Works),
        ("hooks.BeforeTool", Works),
        ("hooks.BeforeToolSelection", Works),
        ("hooks.Notification", Differs("for every kind of question, which its matcher can name")),
        ("hooks.PreCompress", Works),
        ("hooks.SessionEnd", Works),
        ("hooks.SessionStart", Differs("over ACP too")),
        ("hooksConfig.disabled", Works),
        ("hooksConfig.enabled", Works),
        ("hooksConfig.notifications", Absent("castor shows what hooks say, and not that they run")),
        ("ide.enabled", Absent("over ACP the editor sends its context itself")),
        ("ide.hasSeenNudge", Absent("over ACP the editor sends its context itself")),
        ("mcp.allowed", Works),
        ("mcp.excluded", Works),
        ("mcp.serverCommand", Absent("name the server in mcpServers")),
        ("mcpServers", Differs("castor asks about a server of the workspace, binds it to what it runs, and confines it")),
        ("model.compressionThreshold", Works),
        ("model.disableLoopDetection", Works),
        ("model.maxSessionTurns", Works),
        ("model.name", Works),
        ("model.skipNextSpeakerCheck", Works),
        ("model.summarizeToolOutput", Absent("long outputs are cut, or distilled with experimental.contextManagement")),
        ("modelConfigs.aliases", Works),
        ("modelConfigs.classifierIdResolutions", ROUTES),
        ("modelConfigs.customAliases", Works),
        ("modelConfigs.customOverrides", Works),
        ("modelConfigs.modelChains", ROUTES),
        ("modelConfigs.modelDefinitions", ROUTES),
        ("modelConfigs.modelIdResolutions", ROUTES),
        ("modelConfigs.overrides", Works),
        ("output.format", Absent("castor run takes --output-format")),
        ("policyPaths", Works),
        ("privacy.usageStatisticsEnabled", Absent("castor sends no usage statistics")),
        ("security.allowedExtensions", Works),
        ("security.auth.enforcedType", Differs("gemini-api-key, gateway and vertex-ai; any other is refused, as castor has no login by Google's page")),
        ("security.auth.selectedType", Differs("gemini-api-key, gateway and vertex-ai; no login by Google's page")),
        ("security.auth.useExternal", Absent("castor authenticates by itself")),
        ("security.autoAddToPolicyByDefault", Absent("no lasting yes is the first choice")),
        ("security.blockGitExtensions", Works),
        ("security.disableAlwaysAllow", Works),
        ("security.disableYoloMode", Differs("takes the mode auto away too")),
        ("security.enableConseca", Absent("no model checks calls: rules can name a safety checker")),
        ("security.enablePermanentToolApproval", Works),
        ("security.environmentVariableRedaction.allowed", Works),
        ("security.environmentVariableRedaction.blocked", Works),
        ("security.environmentVariableRedaction.enabled", Absent("castor always filters what commands see")),
        ("security.folderTrust.enabled", Absent("castor always asks before a folder counts as trusted")),
        ("security.toolSandboxing", Absent("castor confines commands anyway: security.sandbox.level")),
        ("skills.disabled", Works),
        ("skills.enabled", Works),
        ("telemetry.enabled", Differs("the page on telemetry lists events and metrics, and what is missing")),
        ("telemetry.logPrompts", Absent("castor's telemetry holds no prompts and no arguments")),
        ("telemetry.otlpEndpoint", Differs("over HTTP; the default is port 4318")),
        ("telemetry.otlpProtocol", Differs("http, the default; castor refuses grpc")),
        ("telemetry.outfile", Differs("OTLP messages, one a line")),
        ("telemetry.target", Differs("local; castor refuses gcp: run a collector")),
        ("telemetry.traces", Differs("spans without prompts and arguments")),
        ("telemetry.useCliAuth", Absent("castor has no login of Google's")),
        ("telemetry.useCollector", Absent("castor exports to a collector anyway")),
        ("tools.allowed", Works),
        ("tools.callCommand", DISCOVERY),
        ("tools.confirmationRequired", Works),
        ("tools.core", Works),
        ("tools.disableLLMCorrection", Absent("castor repairs edits without a model")),
        ("tools.discoveryCommand", DISCOVERY),
        ("tools.exclude", Works),
        ("tools.sandbox", Absent("castor starts no container, its own sandbox is on: security.sandbox.level")),
        ("tools.sandboxAllowedPaths", Differs("folders that commands may write, as with security.sandbox.writable")),
        ("tools.sandboxNetworkAccess", Works),
        ("tools.shell.backgroundCompletionBehavior", Absent("the model learns with its next request what ended in the background")),
        ("tools.shell.enableInteractiveShell", Absent("commands get no input: tools.shell.terminal lends them the client's terminal")),
        ("tools.shell.enableShellOutputEfficiency", Absent("castor has instructions of its own for the model")),
        ("tools.shell.inactivityTimeout", Works),
        ("tools.shell.pager", Absent("castor sets PAGER to cat")),
        ("tools.shell.showColor", SCREEN),
        ("tools.truncateToolOutputThreshold", Works),
        ("tools.useRipgrep", Absent("castor's search needs no ripgrep")),
        ("ui.accessibility.enableLoadingPhrases", SCREEN),
        ("ui.accessibility.screenReader", SCREEN),
        ("ui.autoThemeSwitching", SCREEN),
        ("ui.collapseDrawerDuringApproval", SCREEN),
        ("ui.compactToolOutput", SCREEN),
        ("ui.customThemes", SCREEN),
        ("ui.customWittyPhrases", SCREEN),
        ("ui.debugRainbow", SCREEN),
        ("ui.dynamicWindowTitle", SCREEN),
        ("ui.errorVerbosity", SCREEN),
        ("ui.escapePastedAtSymbols", SCREEN),
        ("ui.footer.hideCWD", SCREEN),
        ("ui.footer.hideContextPercentage", SCREEN),
        ("ui.footer.hideModelInfo", SCREEN),
        ("ui.footer.hideSandboxStatus", SCREEN),
        ("ui.footer.items", SCREEN),
        ("ui.footer.showLabels", SCREEN),
        ("ui.hideBanner", SCREEN),
        ("ui.hideContextSummary", SCREEN),
        ("ui.hideFooter", SCREEN),
        ("ui.hideTips", SCREEN),
        ("ui.hideWindowTitle", SCREEN),
        ("ui.incrementalRendering", SCREEN),
        ("ui.inlineThinkingMode", SCREEN),
        ("ui.loadingPhrases", SCREEN),
        ("ui.renderProcess", SCREEN),
        ("ui.showCitations", SCREEN),
        ("ui.showCompatibilityWarnings", SCREEN),
        ("ui.showHomeDirectoryWarning", SCREEN),
        ("ui.showLineNumbers", SCREEN),
        ("ui.showMemoryUsage", SCREEN),
        ("ui.showModelInfoInChat", SCREEN),
        ("ui.showShortcutsHint", SCREEN),
        ("ui.showSpinner", SCREEN),
        ("ui.showStatusInTitle", SCREEN),
        ("ui.showUserIdentity", SCREEN),
        ("ui.terminalBackgroundPollingInterval", SCREEN),
        ("ui.terminalBuffer", SCREEN),
        ("ui.theme", SCREEN),
        ("ui.useAlternateBuffer", SCREEN),
        ("ui.useBackgroundColor", SCREEN),
        ("useWriteTodos", Absent("the model may always keep a list of tasks")),
    ]
};

/// How a setting of Gemini CLI's is here; `None`: it has none of this name.
pub fn find(path: &str) -> Option<Compatibility> {
    SETTINGS.iter().find(|(name, _)| *name == path).map(|(_, it)| *it)
}

/// Why a setting of Gemini CLI's has no effect; `None`: it has one, or there is no such setting.
pub fn absence(path: &str) -> Option<&'static str> {
    let Compatibility::Absent(why) = find(path)? else { return None };
    (!is_used(path)).then_some(why)
}

/// Tells whether Gemini CLI has settings below this path.
pub fn is_group(path: &str) -> bool {
    SETTINGS.iter().any(|(name, _)| path_below(name, path).is_some())
}

/// Tells whether castor goes by this very key.
fn is_used(path: &str) -> bool {
    keys::find(path).is_some_and(|it| it.usage == Usage::Used)
}

#[cfg(test)]
mod tests {
    use super::{Compatibility, SETTINGS, find, is_group, is_used};
    use crate::settings::keys::{KEYS, KeyKind, Usage, path_below};

    /// Of an object that castor goes by there are members that it does not.
    fn is_in_used_object(path: &str) -> bool {
        let mut rows = KEYS.iter().filter(|it| it.usage == Usage::Used && it.kind == KeyKind::Object);
        rows.any(|it| path_below(path, it.path).is_some())
    }

    /// What castor goes by has an effect, and nothing else has one.
    #[test]
    fn settings_in_use_are_said_to_work() {
        for (at, (path, standing)) in SETTINGS.iter().enumerate() {
            assert!(at == 0 || SETTINGS[at - 1].0 < *path, "{path} stands twice, or not in order");
            let has_effect = is_used(path) || is_in_used_object(path) || *path == "$schema";
            let says_so = !matches!(standing, Compatibility::Absent(_));
            let member = is_in_used_object(path) && !is_used(path);
            assert!(
                has_effect == says_so || member,
                "{path} is {standing:?}, but KEYS says otherwise: change this table"
            );
            assert!(*standing == Compatibility::Works || !standing.note().is_empty(), "{path}");
        }
        // Rows that castor has for the sake of such files are rows of this table, or groups of it.
        for key in KEYS.iter().filter(|it| it.usage != Usage::Used) {
            let known = find(key.path).is_some() || is_group(key.path);
            assert!(known, "{}: a setting that castor does not act on, and Gemini CLI does not have", key.path);
        }
    }

    /// All of the settings that Gemini CLI documents, by its reference of that release.
    #[test]
    fn no_setting_of_gemini_cli_is_missing() {
        let listed = include_str!("gemini.txt").lines().filter(|it| !it.is_empty() && !it.starts_with('#'));
        let missing: Vec<&str> = listed.filter(|it| find(it).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
