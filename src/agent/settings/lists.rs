//! Tool and MCP server lists in settings, by layer: a repository may remove, but not allow.

use serde_json::Value;

use super::{
    Getter, Sources, keys,
    resolve::{self, KeyOutcome, Origin},
};
use castor_engine::{policy::ToolLists, scheduler::SavedAnswers};
use castor_tools::workspace::settings::Scope;

/// The lists that become rules.
pub fn lists(sources: Sources<'_>) -> ToolLists {
    let core = ListSetting::of("tools.core", sources);
    let mcp_allowed = ListSetting::of("mcp.allowed", sources);
    ToolLists {
        exclude: ListSetting::of("tools.exclude", sources).all,
        allowed: ListSetting::of("tools.allowed", sources).all,
        core_allows: core.by_user,
        core: core.is_set.then_some(core.all),
        confirm: ListSetting::of("tools.confirmationRequired", sources).all,
        mcp_excluded: ListSetting::of("mcp.excluded", sources).all,
        mcp_allowed: if mcp_allowed.by_user { mcp_allowed.all } else { Vec::new() },
        mcp_trusted: trusted_servers(sources),
    }
}

/// More policies, as written: the user's, an administrator's. A workspace has no say in them.
pub fn policy_paths(sources: Sources<'_>) -> (Vec<String>, Vec<String>) {
    (ListSetting::of("policyPaths", sources).all, ListSetting::of("adminPolicyPaths", sources).all)
}

/// Deny lists that are malformed, with their layer and place. Keys that a workspace may not set are left out.
pub fn invalid_deny_lists(sources: Sources<'_>) -> Vec<(Scope, String)> {
    const DENY: &[&str] = &[
        "adminPolicyPaths",
        "mcp.allowed",
        "mcp.excluded",
        "policyPaths",
        // One that names commands denies all others.
        "tools.allowed",
        "tools.confirmationRequired",
        "tools.core",
        "tools.exclude",
    ];
    let candidates = DENY.iter().filter_map(|it| keys::find(it)).flat_map(|it| {
        let found = resolve::resolve(it, sources).candidates.into_iter();
        found.map(|candidate| (it.path, candidate))
    });
    let unheld = candidates.filter_map(|(path, it)| match (it.origin, it.fate) {
        (Origin::File(scope, file), KeyOutcome::Ignored(_)) if scope != Scope::Workspace => {
            Some((scope, format!("{file}: {path}")))
        }
        _ => None,
    });
    unheld.chain(invalid_groups(sources)).collect()
}

/// What stands where a group of settings should, which may have had such lists in it.
fn invalid_groups(sources: Sources<'_>) -> impl Iterator<Item = (Scope, String)> {
    let layers = sources.layers.layers.iter().filter(|it| it.scope != Scope::Workspace);
    layers.flat_map(|layer| {
        let is_none = |it: &&str| layer.raw.get(it).is_some_and(|it| !it.is_object() && !it.is_null());
        ["mcp", "tools"].into_iter().filter(is_none).map(|it| (layer.scope, format!("{}: {it}", layer.file)))
    })
}

/// Which answers may hold for ever.
pub fn saved_answers(sources: Sources<'_>) -> SavedAnswers {
    let get =
        |path: &str| keys::find(path).and_then(|it| resolve::resolve(it, sources).value) == Some(Value::Bool(true));
    match get("security.enablePermanentToolApproval") {
        _ if bars_saved(sources) => SavedAnswers::Nothing,
        true => SavedAnswers::All,
        false => SavedAnswers::Commands,
    }
}

/// Tells whether what was allowed for ever counts no longer.
pub fn bars_saved(sources: Sources<'_>) -> bool {
    Getter(sources).switched_off("security.disableAlwaysAllow")
}

struct ListSetting {
    all: Vec<String>,
    is_set: bool,
    /// Another layer than the workspace has a part in it.
    by_user: bool,
}

impl ListSetting {
    fn of(path: &str, sources: Sources<'_>) -> Self {
        let Some(key) = keys::find(path) else { return Self { all: Vec::new(), is_set: false, by_user: false } };
        let found = resolve::resolve(key, sources);
        let texts = found.value.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let all: Vec<String> = texts.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect();
        let by_user = found.candidates.iter().any(|it| {
            let counts = matches!(it.fate, KeyOutcome::Wins | KeyOutcome::Contributes);
            counts && !matches!(it.origin, Origin::File(Scope::Workspace, _) | Origin::Default)
        });
        Self { all, is_set: found.value.is_some(), by_user }
    }
}

/// Servers with `trust: true` whose entry is not the workspace's: of one name the last file's entry is taken whole.
fn trusted_servers(sources: Sources<'_>) -> Vec<String> {
    let mut res: Vec<String> = Vec::new();
    for layer in &sources.layers.layers {
        let servers = resolve::at(&layer.value, "mcpServers").and_then(Value::as_object);
        for (name, entry) in servers.into_iter().flatten() {
            res.retain(|it| it != name);
            if layer.scope != Scope::Workspace && entry.get("trust") == Some(&Value::Bool(true)) {
                res.push(name.clone());
            }
        }
    }
    res
}
