//! Keys of an agent file of the kind remote: its card, and what castor proves itself with to the server.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;
use url::Url;

use super::{
    ToolLookup,
    front_matter::{self, FileFault, KeyNames},
    keys::{Draft, checked_name, place},
    values::{AgentName, Amount, Description, Text},
};
use castor_base::{
    agent::{AgentCapability, AgentConstraints, AgentDescriptor, AgentKind, AgentRun},
    peer_agent::{CardSource, KeySource, PeerAgent, RemoteAgent, RemoteAuth},
};

/// Minutes of one run, unless its file says otherwise: as Gemini CLI's.
const MAX_MINUTES: f64 = 30.0;
const API_KEY_HEADER: &str = "X-API-Key";
/// What castor asks Google for.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RemoteKeys {
    #[serde(rename = "kind")]
    _kind: Option<IgnoredAny>,
    name: Spanned<AgentName>,
    display_name: Option<Text>,
    description: Option<Description>,
    agent_card_url: Option<Spanned<String>>,
    agent_card_json: Option<Spanned<String>>,
    auth: Option<Spanned<AuthKeys>>,
    timeout_mins: Option<Amount>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
struct AuthNames {
    auth: Option<KeyNames>,
}

/// The keys of all types: [`AUTH_TYPES`] says which belong together.
#[derive(Deserialize)]
struct AuthKeys {
    #[serde(rename = "type")]
    kind: Spanned<String>,
    key: Option<Text>,
    name: Option<Spanned<Text>>,
    scheme: Option<Spanned<Text>>,
    token: Option<Text>,
    username: Option<Text>,
    password: Option<Text>,
    value: Option<Text>,
    #[serde(default)]
    scopes: Vec<Spanned<String>>,
}

const AUTH_TYPES: &[(&str, &[&str])] = &[
    ("apiKey", &["type", "key", "name"]),
    ("http", &["type", "scheme", "token", "username", "password", "value"]),
    ("google-credentials", &["type", "scopes"]),
];

/// # Errors
/// The first fault.
pub(super) fn read(yaml: &str, tools: ToolLookup<'_>) -> Result<Draft, FileFault> {
    let keys: RemoteKeys = front_matter::read(yaml)?;
    let name = checked_name(&keys.name, tools)?;
    let card = card(&keys)?;
    let auth = match keys.auth {
        Some(it) => {
            let names: AuthNames = front_matter::read(yaml)?;
            Some(auth(it, names.auth.as_ref())?)
        }
        None => None,
    };
    let description = keys.description.map_or_else(|| format!("The remote agent at {}.", card.place()), |it| it.0);
    let descriptor = AgentDescriptor {
        name: name.clone(),
        display_name: keys.display_name.map(|it| it.0),
        description,
        executor: AgentKind::Remote,
        capabilities: vec![AgentCapability::Elicitation, AgentCapability::Streaming],
        constraints: AgentConstraints {
            max_time_minutes: Some(keys.timeout_mins.map_or(MAX_MINUTES, |it| it.0)),
            ..AgentConstraints::default()
        },
        metadata: keys.metadata,
        ..AgentDescriptor::default()
    };
    let run = AgentRun::Peer(Box::new(PeerAgent::Remote(RemoteAgent { name, card, auth })));
    Ok(Draft { descriptor, run, folders: Vec::new(), rights: Vec::new(), notes: Vec::new() })
}

/// A repository gets none of the user's secrets by naming them, and starts nothing: trusted or not, it names the
/// server that they would go to.
///
/// # Errors
/// What it must not name.
pub(super) fn check_workspace(agent: &RemoteAgent) -> Result<(), FileFault> {
    let Some(auth) = &agent.auth else { return Ok(()) };
    let what = auth.sources().into_iter().find_map(|it| match it {
        KeySource::Literal(_) => None,
        KeySource::Variable(name) => Some(format!("the variable {name}")),
        KeySource::Command(_) => Some("a command".to_owned()),
    });
    let what = what.or_else(|| (*auth == RemoteAuth::Google).then(|| "your Google credentials".to_owned()));
    let message = |it| format!("auth takes {it}, which a workspace's file cannot; put the file in ~/.castor/agents");
    what.map_or(Ok(()), |it| Err(FileFault::new(None, message(it))))
}

fn card(keys: &RemoteKeys) -> Result<CardSource, FileFault> {
    match (&keys.agent_card_url, &keys.agent_card_json) {
        (Some(it), None) => {
            let url = Url::parse(it.value.trim()).ok().filter(|it| matches!(it.scheme(), "http" | "https"));
            let url = url.filter(|it| it.has_host() && it.username().is_empty() && it.password().is_none());
            let why = "agent_card_url should be an http(s) address, without a user name; secrets go into auth";
            url.map(|it| CardSource::Url(it.into())).ok_or_else(|| FileFault::new(Some(place(it)), why))
        }
        (None, Some(it)) => match serde_json::from_str::<Map<String, Value>>(&it.value) {
            Ok(_) => Ok(CardSource::Json(it.value.clone())),
            Err(why) => Err(FileFault::new(Some(place(it)), format!("agent_card_json is no JSON object: {why}"))),
        },
        (_, it) => {
            let at = it.as_ref().map(place);
            Err(FileFault::new(at, "a remote agent should have one of agent_card_url and agent_card_json"))
        }
    }
}

fn auth(keys: Spanned<AuthKeys>, names: Option<&KeyNames>) -> Result<RemoteAuth, FileFault> {
    let at = place(&keys);
    let missing = |what: &str| FileFault::new(Some(at), format!("auth should have {what}"));
    let it = keys.value;
    let kind = it.kind.value.as_str();
    let Some((_, known)) = AUTH_TYPES.iter().find(|(name, _)| *name == kind) else {
        let why = match kind {
            "oauth" | "oauth2" => "auth of the type oauth is not supported yet; use http with a token",
            _ => "type should be apiKey, http or google-credentials",
        };
        return Err(FileFault::new(Some(place(&it.kind)), why));
    };
    names.map_or(Ok(()), |it| it.check(known))?;
    let source = |it: Text| KeySource::parse(&it.0);
    match kind {
        "apiKey" => {
            let header = it.name.map_or_else(|| Ok(API_KEY_HEADER.to_owned()), |it| token(&it, "name"))?;
            let key = it.key.map(source).ok_or_else(|| missing("a key"))?;
            Ok(RemoteAuth::ApiKey { header, key })
        }
        "google-credentials" => match it.scopes.iter().find(|it| it.value != SCOPE) {
            Some(it) => Err(FileFault::new(Some(place(it)), format!("castor asks Google for {SCOPE} only"))),
            None => Ok(RemoteAuth::Google),
        },
        _ => {
            let scheme = it.scheme.map(|it| token(&it, "scheme")).transpose()?.ok_or_else(|| missing("a scheme"))?;
            match (scheme.to_ascii_lowercase().as_str(), it.token, it.username.zip(it.password), it.value) {
                ("bearer", Some(it), None, None) => Ok(RemoteAuth::Http { scheme, credentials: source(it) }),
                ("basic", None, Some((name, word)), None) => {
                    Ok(RemoteAuth::Basic { username: source(name), password: source(word) })
                }
                (_, None, None, Some(it)) => Ok(RemoteAuth::Http { scheme, credentials: source(it) }),
                _ => Err(missing("a token for Bearer, a username and a password for Basic, or else a value")),
            }
        }
    }
}

/// What HTTP takes as a name.
fn token(text: &Spanned<Text>, key: &str) -> Result<String, FileFault> {
    let it = text.value.0.as_str();
    match it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'_') {
        true => Ok(it.to_owned()),
        false => Err(FileFault::new(Some(place(text)), format!("{key} should have letters, digits and - only"))),
    }
}
