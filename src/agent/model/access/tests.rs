//! Model access by variables, files and requests, as tables.

use secrecy::ExposeSecret;

use super::{AccessKind, CredentialOverride, KeySource, custom_headers, is_configured, model_access};
use crate::settings::{Settings, Sources};
use castor_base::path::AbsPath;
use castor_hands::secrets::{Env, credentials};
use castor_tools::workspace::settings::{Layers, WorkspaceFiles};

fn check(pairs: &[(&str, &str)], auth: Option<&str>) -> String {
    check_enforced(pairs, auth, None)
}

fn check_enforced(pairs: &[(&str, &str)], auth: Option<&str>, enforced: Option<&str>) -> String {
    let env = Env::from_pairs(pairs.iter().copied());
    let layers = Layers { layers: Vec::new(), workspace: WorkspaceFiles::Read, warnings: Vec::new() };
    let (mut settings, _) = Settings::merge(Sources { layers: &layers, env: &env, flags: &[] });
    settings.models.auth_type = auth.map(str::to_owned);
    settings.models.enforced_auth = enforced.map(str::to_owned);
    match model_access(&env, &settings, &CredentialOverride::default()) {
        Ok(it) => {
            assert!(!format!("{it:?}").contains("canary"));
            let kind = match it.kind {
                AccessKind::None => "none",
                AccessKind::ApiKey => "key",
                AccessKind::Gateway => "gateway",
                AccessKind::Vertex => "vertex",
            };
            let key = it.key.as_ref().map_or("-", |it| it.expose_secret());
            let url = it.base_url.unwrap_or("-".to_owned());
            format!(
                "{kind} {key} {url} {}{}",
                it.api_version.unwrap_or("-".to_owned()),
                [" ", " bearer"][usize::from(it.bearer)]
            )
            .trim()
            .to_owned()
        }
        Err(it) => it.to_string(),
    }
}

#[test]
fn only_the_enforced_way_is_taken() {
    let (key, gateway) = (("GEMINI_API_KEY", "canary"), ("GOOGLE_GEMINI_BASE_URL", "https://gw.example"));
    let vertex = [("GOOGLE_GENAI_USE_VERTEXAI", "true"), ("GOOGLE_API_KEY", "canary")];
    let refused = |wanted: &str, name: &str, how: &str| {
        format!(
            "security.auth.enforcedType: {wanted} is the only allowed way to sign in, but castor is signed in by {name}: \
             {how}."
        )
    };
    let log_in = "run `castor auth login`, or set GEMINI_API_KEY";
    for (env, enforced, want) in [
        (&[key][..], "gemini-api-key", "key canary - -".to_owned()),
        (&[key], "vertex-ai", refused("vertex-ai", "gemini-api-key", "set GOOGLE_GENAI_USE_VERTEXAI=true")),
        (&[key, gateway], "gemini-api-key", refused("gemini-api-key", "gateway", log_in)),
        (&[gateway], "gateway", "gateway - https://gw.example -".to_owned()),
        (&vertex, "gateway", refused("gateway", "vertex-ai", "set GOOGLE_GEMINI_BASE_URL")),
        (&[], "vertex-ai", "none - - -".to_owned()),
    ] {
        assert_eq!(check_enforced(env, None, Some(enforced)), want, "{env:?}");
    }
    let said = check_enforced(&[key], None, Some("oauth-personal"));
    assert!(
        said.contains("\"oauth-personal\" is the only allowed way to sign in, and castor does not have it"),
        "{said}"
    );
}

#[test]
fn tells_what_is_configured() {
    let url = "GOOGLE_GEMINI_BASE_URL";
    for (env, auth, want) in [
        (&[][..], None, "none - - -"),
        (&[], Some("gemini-api-key"), "none - - -"),
        (&[("GEMINI_API_KEY", " canary\n")], None, "key canary - -"),
        (&[("GEMINI_API_KEY", " ")], None, "none - - -"),
        (&[("GOOGLE_API_KEY", "g"), ("GEMINI_API_KEY", "k")], Some("oauth-personal"), "key k - -"),
        (&[("GOOGLE_API_KEY", "g"), ("GEMINI_API_KEY", "")], None, "key g - -"),
        (&[(url, "https://gw.example/a/")], None, "gateway - https://gw.example/a -"),
        (&[(url, "http://localhost:80"), ("GEMINI_API_KEY", "k")], None, "gateway k http://localhost -"),
        (&[(url, "http://[::1]:8/"), ("GEMINI_API_KEY", "k")], Some("api-key"), "key k http://[::1]:8 -"),
        (&[("GEMINI_API_KEY", "k"), ("GEMINI_API_KEY_AUTH_MECHANISM", "bearer")], None, "key k - - bearer"),
        (&[("GEMINI_API_KEY", "k"), ("GOOGLE_GENAI_API_VERSION", "v1")], None, "key k - v1"),
    ] {
        assert_eq!(check(env, auth), want, "{env:?}");
    }
}

#[test]
fn says_what_is_wrong_without_the_secret() {
    for (name, value, want) in [
        (
            "GOOGLE_GEMINI_BASE_URL",
            "gw.example",
            "invalid custom base URL: relative URL without a base; write https://host/path",
        ),
        (
            "GOOGLE_GEMINI_BASE_URL",
            "http://gw.example",
            "http://gw.example: http is allowed for this machine only; use https",
        ),
        (
            "GOOGLE_GEMINI_BASE_URL",
            "http://127.0.0.1.evil.example",
            "http://127.0.0.1.evil.example: http is allowed for this machine only; use https",
        ),
        (
            "GOOGLE_GEMINI_BASE_URL",
            "https://u:canary@gw.example",
            "a base URL may not hold a user or password; use GEMINI_CLI_CUSTOM_HEADERS",
        ),
        ("GOOGLE_GEMINI_BASE_URL", "https://gw.example/?key=canary", "a base URL may not have a ? or # part"),
        ("GOOGLE_GEMINI_BASE_URL", "file:///etc/passwd", "file: is not a scheme castor can use; use https"),
        ("GEMINI_API_KEY", "can\nary", "the key has a character in it that no key has; copy it again"),
        ("GOOGLE_GENAI_API_VERSION", "../v1", "\"../v1\" is not a version such as v1beta"),
    ] {
        assert_eq!(check(&[(name, value)], None), format!("{name}: {want}"));
    }
}

#[test]
fn reads_custom_headers() {
    for (text, want) in [
        ("", ""),
        ("A: b, C: d", "A=b|C=d"),
        ("Accept: a, b,c ,X-Y:z:1", "Accept=a, b,c|X-Y=z:1"),
        ("nothing, A: b", "A=b"),
        ("A b: c, D:", "D="),
        ("A: b\r\nEvil: x, C: d", "C=d"),
        (": x, A: b", "A=b"),
    ] {
        let got: Vec<_> =
            custom_headers(text).iter().map(|(name, it)| format!("{name}={}", it.expose_secret())).collect();
        assert_eq!(got.join("|"), want, "{text:?}");
    }
}

fn settings(env: &Env, auth: Option<&str>) -> Settings {
    let layers = Layers { layers: Vec::new(), workspace: WorkspaceFiles::Read, warnings: Vec::new() };
    let (mut settings, _) = Settings::merge(Sources { layers: &layers, env, flags: &[] });
    settings.models.auth_type = auth.map(str::to_owned);
    settings
}

/// `kind key origin url headers`, of an environment, a stored key and what clients sent, one after the other.
fn found(pairs: &[(&str, &str)], stored: Option<&str>, sent: &[(AccessKind, serde_json::Value)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let home = AbsPath::new(dir.path()).unwrap();
    if let Some(key) = stored {
        credentials::save(&home, &key.into()).unwrap();
    }
    let home = home.to_string();
    let env = Env::from_pairs(pairs.iter().copied().chain([("CASTOR_HOME", home.as_str())]));
    let mut given = CredentialOverride::default();
    for (method, meta) in sent {
        match given.merged_with(*method, meta.as_object()) {
            Ok(it) => given = it,
            Err(why) => return why,
        }
    }
    assert!(!format!("{given:?}").contains("canary"));
    match model_access(&env, &settings(&env, None), &given) {
        Ok(it) => {
            let key = it.key.as_ref().map_or("-", |it| it.expose_secret());
            let from = match it.key_from {
                None => "-",
                Some(KeySource::Client) => "client",
                Some(KeySource::Variable(name)) => name,
                Some(KeySource::Stored) => "stored",
            };
            let headers: Vec<_> =
                it.headers.iter().map(|(name, it)| format!("{name}={}", it.expose_secret())).collect();
            let url = it.base_url.unwrap_or("-".to_owned());
            format!("{:?} {key} {from} {url} {}", it.kind, headers.join(",")).trim().to_owned()
        }
        Err(it) => it.to_string(),
    }
}

#[test]
fn the_client_goes_before_the_environment_and_that_before_the_store() {
    use AccessKind::{ApiKey, Gateway};
    use serde_json::json;
    let (key, url, headers) =
        (("GEMINI_API_KEY", "env"), ("GOOGLE_GEMINI_BASE_URL", "https://e"), ("GEMINI_CLI_CUSTOM_HEADERS", "A: env"));
    let none = || json!({});
    let given = |it: &str| json!({ "api-key": it });
    let gateway = json!({"gateway": {"baseUrl": "https://c/", "headers": {"B": "client"}}});
    let keyed = json!({"api-key": "k", "gateway": {"baseUrl": "https://c"}});
    for (env, stored, sent, want) in [
        (&[][..], Some("s"), vec![], "ApiKey s stored -"),
        (&[key], Some("s"), vec![], "ApiKey env GEMINI_API_KEY -"),
        (&[("GEMINI_API_KEY", " ")], Some("s"), vec![], "ApiKey s stored -"),
        (&[key], Some("s"), vec![(ApiKey, given(" c "))], "ApiKey c client -"),
        (&[key], None, vec![(ApiKey, given("c")), (ApiKey, none())], "ApiKey c client -"),
        (&[key], None, vec![(ApiKey, given(" "))], "ApiKey env GEMINI_API_KEY -"),
        // A stored key is not shown to a gateway, unless the user wants that one by its key.
        (&[url], Some("s"), vec![], "Gateway - - https://e"),
        (&[url], Some("s"), vec![(ApiKey, none())], "ApiKey s stored https://e"),
        (&[url, key], None, vec![(ApiKey, none())], "ApiKey env GEMINI_API_KEY https://e"),
        (&[url, key], None, vec![(ApiKey, given("c")), (Gateway, none())], "Gateway env GEMINI_API_KEY https://e"),
        // The environment's secrets are not for the client's gateway.
        (&[url, key, headers], Some("s"), vec![(Gateway, gateway.clone())], "Gateway - - https://c B=client"),
        (&[key, headers], None, vec![(Gateway, keyed)], "Gateway k client https://c"),
        (&[url, key, headers], None, vec![(Gateway, none())], "Gateway env GEMINI_API_KEY https://e A=env"),
        (&[url], None, vec![(Gateway, json!({"gateway": {"headers": {"B": "c"}}}))], "Gateway - - https://e B=c"),
        (&[key], None, vec![(Gateway, gateway), (ApiKey, none())], "ApiKey env GEMINI_API_KEY -"),
    ] {
        assert_eq!(found(env, stored, &sent), want, "{env:?} {sent:?}");
    }
}

#[test]
fn malformed_requests_say_what_is_wrong_without_the_secret() {
    use AccessKind::{ApiKey, Gateway};
    use serde_json::json;
    let http = "gateway.baseUrl: http://gw.example: http is allowed for this machine only; use https";
    for (method, meta, want) in [
        (ApiKey, json!({"api-key": ["canary"]}), "_meta[\"api-key\"] must be a string"),
        (
            ApiKey,
            json!({"api-key": "can ary"}),
            "_meta[\"api-key\"]: the key has a character in it that no key has; copy it again",
        ),
        (Gateway, json!({"gateway": "canary"}), "it must be an object {baseUrl, headers}"),
        (Gateway, json!({"gateway": {"baseUrl": 1}}), "gateway.baseUrl must be a string"),
        (Gateway, json!({"gateway": {"baseUrl": "http://gw.example"}}), http),
        (Gateway, json!({"gateway": {"headers": ["canary"]}}), "gateway.headers must be an object of strings"),
        (
            Gateway,
            json!({"gateway": {"headers": {"X": 1}}}),
            "gateway.headers[\"X\"] is no header; its value is text of visible characters",
        ),
        (
            Gateway,
            json!({"gateway": {"headers": {"X": "canary\r\n"}}}),
            "gateway.headers[\"X\"] is no header; its value is text of visible characters",
        ),
        (
            Gateway,
            json!({"gateway": {"headers": {"X Y": "canary"}}}),
            "gateway.headers[\"X Y\"] is no header; its value is text of visible characters",
        ),
    ] {
        let prefix = if method == Gateway { "Malformed gateway payload: " } else { "" };
        assert_eq!(found(&[], None, &[(method, meta)]), format!("{prefix}{want}"));
    }
}

#[test]
fn broken_credentials_count_as_configured() {
    let layers = Layers { layers: Vec::new(), workspace: WorkspaceFiles::Read, warnings: Vec::new() };
    for (pairs, want) in [
        (&[][..], false),
        (&[("GEMINI_API_KEY", " ")], false),
        (&[("GEMINI_API_KEY", "k")], true),
        (&[("GEMINI_API_KEY", "k\u{1}")], true),
        (&[("GOOGLE_GEMINI_BASE_URL", "nonsense")], true),
    ] {
        let env = Env::from_pairs(pairs.iter().copied());
        let (settings, _) = Settings::merge(Sources { layers: &layers, env: &env, flags: &[] });
        assert_eq!(is_configured(&env, &settings), want, "{env:?}");
    }
}
