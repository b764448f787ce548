//! MCP servers in settings.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Getter, Sources, mcp_oauth, resolve::at};
use castor_base::{
    mcp::{McpLink, McpServerConfig, McpTransport, ServerRules},
    sampling::SamplingBudget,
    sandbox::ProgramSandbox,
};
use castor_tools::workspace::{Warning, settings::Scope};

/// MCP servers in settings.
#[derive(Clone, Debug, PartialEq)]
pub struct McpSettings {
    /// By name, those that may start.
    pub servers: Vec<McpServerConfig>,
    /// The others: names, and why not.
    pub off: Vec<(String, String)>,
    /// Names that the user takes, wherever a server comes from; `None`: any.
    allowed: Option<Vec<String>>,
    excluded: Vec<String>,
    pub rules: ServerRules,
    pub sampling: SamplingBudget,
}

impl McpSettings {
    pub(super) fn read(get: &Getter<'_>, sources: Sources<'_>, warnings: &mut Vec<Warning>) -> Self {
        let (servers, off) = (Vec::new(), Vec::new());
        let mut res = Self {
            servers,
            off,
            allowed: get.value("mcp.allowed").is_array().then(|| get.texts("mcp.allowed")),
            excluded: get.texts("mcp.excluded"),
            rules: ServerRules {
                start_budget_ms: get.size("mcp.startBudgetMs"),
                max_restarts: get.size("mcp.maxRestarts"),
                samples: get.flag("mcp.sampling.enabled"),
            },
            sampling: SamplingBudget {
                requests: get.size("mcp.sampling.maxRequests"),
                tokens: get.size("mcp.sampling.maxTokens"),
            },
        };
        let all = get.value("mcpServers");
        for (name, it) in all.as_object().into_iter().flatten() {
            if let Some(why) = res.exclusion_reason(name) {
                res.off.push((name.clone(), why.to_owned()));
                continue;
            }
            let read = server(name, &over_extension(name, it, sources));
            match read.and_then(|it| without_users_credentials(it, sources)) {
                // A repository must not answer its own question.
                Ok(it) => {
                    let sandbox = users_sandbox(name, &it.link, sources).unwrap_or_else(|why| {
                        let key = Some(format!("mcpServers.{name}.sandbox"));
                        warnings.push(Warning { origin: "settings".to_owned(), at: None, key, message: why });
                        ProgramSandbox::default()
                    });
                    res.servers.push(match is_of_workspace(name, sources) {
                        true => {
                            let link = it.link.clone().of_workspace();
                            McpServerConfig { link, trust: false, sandbox, of_project: true, ..it }
                        }
                        false => McpServerConfig { sandbox, ..it },
                    });
                }
                Err(why) => {
                    res.off
                        .push((name.clone(), format!("its settings are wrong: {}", why.trim_end_matches("; ignored"))));
                    let key = Some(format!("mcpServers.{name}"));
                    warnings.push(Warning { origin: "settings".to_owned(), at: None, key, message: why });
                }
            }
        }
        res
    }

    /// Why a server of that name must not start, also if the client brings it.
    pub fn exclusion_reason(&self, name: &str) -> Option<&'static str> {
        let has = |list: &Vec<String>| list.iter().any(|it| it.eq_ignore_ascii_case(name));
        match (has(&self.excluded), self.allowed.as_ref().is_none_or(has)) {
            (true, _) => Some("excluded by `mcp.excluded`"),
            (false, false) => Some("not among `mcp.allowed`"),
            (false, true) => None,
        }
    }
}

/// A repository or an extension has no use for the user's keys, nor for what the user is at Google's.
fn without_users_credentials(it: McpServerConfig, sources: Sources<'_>) -> Result<McpServerConfig, String> {
    let is_users = |scope: Scope| !matches!(scope, Scope::Workspace | Scope::Extension);
    let says_how = |it: &Value| ["oauth", "authProviderType"].iter().any(|key| it.get(*key).is_some());
    let says_user = entries(&it.name, sources).any(|(scope, value)| is_users(scope) && says_how(value));
    if says_user && !is_of_workspace(&it.name, sources) { Ok(it) } else { strangers_server(it) }
}

/// A server of somebody who may not use the user's credentials.
pub(super) fn strangers_server(it: McpServerConfig) -> Result<McpServerConfig, String> {
    match &it.link {
        McpLink::Web { oauth: Some(login), .. } if login.grant.takes_users_credentials() => {
            Err("logs in with credentials of yours, which only `mcpServers` of your own settings may say; ignored"
                .to_owned())
        }
        _ => Ok(it),
    }
}

/// What the user says of an extension's server by its name, without a command or an address of its own, is said of that
/// one: it may only take tools away from it.
fn over_extension<'s>(name: &str, it: &'s Value, sources: Sources<'s>) -> Cow<'s, Value> {
    let theirs = entries(name, sources).filter(|(scope, _)| *scope == Scope::Extension).last();
    let is_bare = ["command", "url", "httpUrl"].iter().all(|key| it.get(*key).is_none());
    let (Some((_, theirs)), true) = (theirs.filter(|_| !is_of_workspace(name, sources)), is_bare) else {
        return Cow::Borrowed(it);
    };
    let (Some(theirs), Some(own)) = (theirs.as_object(), it.as_object()) else { return Cow::Borrowed(it) };
    let mut res = theirs.clone();
    for (key, value) in own {
        let joined = match (key.as_str(), theirs.get(key)) {
            ("includeTools", Some(_)) => {
                let wanted = texts(own, key);
                texts(theirs, key).into_iter().filter(|it| wanted.contains(it)).collect::<Vec<_>>().into()
            }
            ("excludeTools", Some(_)) => [texts(theirs, key), texts(own, key)].concat().into(),
            ("env" | "headers", Some(Value::Object(all))) => {
                let more = value.as_object().into_iter().flatten();
                let all = all.iter().chain(more);
                Value::Object(all.map(|(name, it)| (name.clone(), it.clone())).collect())
            }
            _ => value.clone(),
        };
        res.insert(key.clone(), joined);
    }
    Cow::Owned(Value::Object(res))
}

fn is_of_workspace(name: &str, sources: Sources<'_>) -> bool {
    entries(name, sources).any(|(scope, _)| scope == Scope::Workspace)
}

/// What the user says of its sandbox. A word about a server of the user's own is none about what a workspace puts in its
/// place, and neither a workspace nor an extension widens what holds its own.
fn users_sandbox(name: &str, theirs: &McpLink, sources: Sources<'_>) -> Result<ProgramSandbox, String> {
    let is_users = |scope: Scope| !matches!(scope, Scope::Workspace | Scope::Extension);
    let users = entries(name, sources).filter(|(scope, _)| is_users(*scope));
    let same = |it: &Value| it.as_object().is_some_and(|it| link(it).is_ok_and(|it| it == *theirs));
    let bare = |it: &Value| ["command", "url", "httpUrl"].iter().all(|key| it.get(*key).is_none());
    let about_it = users.filter(|(_, it)| bare(it) || same(it));
    ProgramSandbox::read(about_it.filter_map(|(_, it)| it.get("sandbox")).last())
}

fn entries<'s>(name: &'s str, sources: Sources<'s>) -> impl Iterator<Item = (Scope, &'s Value)> {
    let layers = sources.layers.layers.iter();
    layers.filter_map(move |it| Some((it.scope, at(&it.value, "mcpServers")?.get(name)?)))
}

pub(super) fn server(name: &str, it: &Value) -> Result<McpServerConfig, String> {
    let Some(it) = it.as_object() else { return Err("should be an object {…}; ignored".to_owned()) };
    let flag = |key: &str| it.get(key).and_then(Value::as_bool).unwrap_or_default();
    let timeout_ms = it.get("timeout").and_then(Value::as_u64).filter(|it| *it > 0);
    Ok(McpServerConfig {
        timeout_ms: timeout_ms.unwrap_or(McpServerConfig::TIMEOUT_MS),
        trust: flag("trust"),
        include: it.get("includeTools").map(|_| texts(it, "includeTools")),
        exclude: texts(it, "excludeTools"),
        ..McpServerConfig::new(name, link(it)?)
    })
}

fn link(it: &Map<String, Value>) -> Result<McpLink, String> {
    let text = |key: &str| it.get(key).and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty());
    let web = |url: &str, speech| {
        let oauth = mcp_oauth::read(it)?.map(Box::new);
        Ok(McpLink::Web { url: url.to_owned(), headers: pairs(it, "headers"), speech, oauth })
    };
    match (text("httpUrl"), text("url"), text("command")) {
        (Some(url), ..) => web(url, McpTransport::Http),
        (None, Some(url), _) => web(
            url,
            match text("type") {
                Some("http") => McpTransport::Http,
                Some("sse") => McpTransport::Sse,
                _ => McpTransport::Either,
            },
        ),
        (None, None, Some(command)) => Ok(McpLink::Stdio {
            command: command.to_owned(),
            args: texts(it, "args"),
            env: pairs(it, "env"),
            cwd: text("cwd").map(str::to_owned),
        }),
        (None, None, None) => Err("names neither command nor url nor httpUrl; ignored".to_owned()),
    }
}

pub(super) fn texts(it: &Map<String, Value>, key: &str) -> Vec<String> {
    let all = it.get(key).and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Numbers and such are written without quotes by many.
pub(super) fn pairs(it: &Map<String, Value>, key: &str) -> Vec<(String, String)> {
    let text = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
    let all = it.get(key).and_then(Value::as_object);
    all.into_iter().flatten().map(|(name, it)| (name.clone(), text(it))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{over_extension, server, users_sandbox};
    use crate::settings::Sources;
    use castor_base::{mcp::McpLink, path::AbsPath};
    use castor_hands::secrets::Env;
    use castor_tools::workspace::settings::{Layer, Layers, Scope, WorkspaceFiles};

    fn check(it: Value, expected: &str) {
        let actual = match server("s", &it) {
            Ok(it) => {
                let link = match it.link {
                    McpLink::Stdio { command, args, env, cwd } => format!("{command} {args:?} {env:?} {cwd:?}"),
                    McpLink::Web { url, headers, speech, .. } => format!("{url} {headers:?} {speech:?}"),
                    McpLink::Client { server_id } => server_id,
                };
                format!("{link} {} {} {:?} {:?}", it.timeout_ms, it.trust, it.include, it.exclude)
            }
            Err(why) => why,
        };
        assert_eq!(actual, expected, "{it}");
    }

    #[test]
    fn reads_each_kind_of_server() {
        let rest = "600000 false None []";
        check(json!({"command": "c"}), &format!("c [] [] None {rest}"));
        check(
            json!({"command": "c", "args": ["a"], "env": {"A": "1", "B": 2}, "cwd": "d", "timeout": 5, "trust": true,
                "includeTools": ["x"], "excludeTools": ["y"]}),
            r#"c ["a"] [("A", "1"), ("B", "2")] Some("d") 5 true Some(["x"]) ["y"]"#,
        );
        check(json!({"httpUrl": "http://h", "url": "u", "command": "c"}), &format!("http://h [] Http {rest}"));
        let headers = json!({"url": "http://s", "headers": {"A": "b"}});
        check(headers, &format!(r#"http://s [("A", "b")] Either {rest}"#));
        check(json!({"url": "http://s", "type": "sse"}), &format!("http://s [] Sse {rest}"));
        check(json!({"url": "http://s", "type": "http"}), &format!("http://s [] Http {rest}"));
        check(json!({"command": " "}), "names neither command nor url nor httpUrl; ignored");
        check(json!(5), "should be an object {…}; ignored");
    }

    /// Only less of it, and only by the user's own files.
    #[test]
    fn the_users_word_on_an_extensions_server_counts() {
        let theirs = json!({"command": "c", "includeTools": ["a", "b"], "excludeTools": ["x"], "env": {"A": "1"}});
        let read = |scope: Scope, own: Value| {
            let layer = |scope, value: &Value| {
                let value = json!({ "mcpServers": { "s": value } });
                Layer { scope, file: AbsPath::new("/f").unwrap(), raw: value.clone(), value }
            };
            let layers = vec![layer(Scope::Extension, &theirs), layer(scope, &own)];
            let layers = Layers { layers, workspace: WorkspaceFiles::Read, warnings: Vec::new() };
            let sources = Sources { layers: &layers, env: &Env::default(), flags: &[] };
            over_extension("s", &own, sources).into_owned()
        };
        let own = json!({"includeTools": ["b", "c"], "excludeTools": ["y"], "env": {"B": "2"}});
        let merged =
            json!({"command": "c", "includeTools": ["b"], "excludeTools": ["x", "y"], "env": {"A": "1", "B": "2"}});
        assert_eq!(read(Scope::User, own.clone()), merged);
        assert_eq!(read(Scope::Workspace, own.clone()), own);
        let another = json!({"command": "mine"});
        assert_eq!(read(Scope::User, another.clone()), another);
    }

    /// A user who lets a server out of the sandbox does not mean another server of the same name.
    #[test]
    fn another_server_of_the_same_name_stays_in() {
        let theirs = json!({"command": "sh", "args": ["-c", "x"]});
        let link = server("s", &theirs).unwrap().link;
        let check = |users: Value, want: bool| {
            let layer = |scope, value: Value| {
                let value = json!({ "mcpServers": { "s": value } });
                Layer { scope, file: AbsPath::new("/f").unwrap(), raw: value.clone(), value }
            };
            let layers = vec![layer(Scope::User, users), layer(Scope::Workspace, theirs.clone())];
            let layers = Layers { layers, workspace: WorkspaceFiles::Read, warnings: Vec::new() };
            let sources = Sources { layers: &layers, env: &Env::default(), flags: &[] };
            assert_eq!(users_sandbox("s", &link, sources).unwrap().is_off, want);
        };
        check(json!({"sandbox": false}), true);
        check(json!({"command": "sh", "args": ["-c", "x"], "sandbox": false}), true);
        check(json!({"command": "sh", "args": ["-c", "y"], "sandbox": false}), false);
        check(json!({"httpUrl": "http://h", "sandbox": false}), false);
        check(json!({"command": "sh", "args": ["-c", "x"]}), false);
    }
}
