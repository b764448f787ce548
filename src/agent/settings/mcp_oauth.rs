//! Logins at MCP servers, as settings write them.

use serde_json::{Map, Value};

use castor_base::{
    mcp::{IdentityProvider, McpGrant, McpOAuth, McpSecret},
    text::head,
};

/// Of the settings of one server; `None`: they say nothing of a login.
///
/// # Errors
/// What is missing, for the user.
pub(super) fn read(server: &Map<String, Value>) -> Result<Option<McpOAuth>, String> {
    let google = google(server)?;
    let Some(it) = server.get("oauth").and_then(Value::as_object) else {
        return Ok(google.map(|grant| McpOAuth { grant, ..McpOAuth::default() }));
    };
    let oauth = McpOAuth {
        is_of_workspace: false,
        is_off: it.get("enabled").and_then(Value::as_bool) == Some(false),
        grant: google.map_or_else(|| grant(it), Ok)?,
        client_id: text(it, "clientId"),
        client_secret: text(it, "clientSecret"),
        client_metadata_url: text(it, "clientMetadataUrl"),
        scopes: list(it, "scopes"),
        audiences: list(it, "audiences"),
        authorization_url: text(it, "authorizationUrl"),
        token_url: text(it, "tokenUrl"),
        registration_url: text(it, "registrationUrl"),
        redirect_uri: text(it, "redirectUri"),
    };
    Ok(Some(oauth))
}

/// `authProviderType`, as Gemini CLI has it.
fn google(server: &Map<String, Value>) -> Result<Option<McpGrant>, String> {
    let needed = |key: &str| {
        text(server, key)
            .ok_or_else(|| format!("`authProviderType` service_account_impersonation needs `{key}`; ignored"))
    };
    Ok(match text(server, "authProviderType").as_deref() {
        None | Some("dynamic_discovery") => None,
        Some("google_credentials") => Some(McpGrant::Google),
        Some("service_account_impersonation") => Some(McpGrant::GoogleAccount {
            account: needed("targetServiceAccount")?,
            audience: needed("targetAudience")?,
        }),
        Some(other) => {
            let known = "dynamic_discovery, google_credentials, service_account_impersonation";
            return Err(format!("`authProviderType` {:?} is not one of {known}; ignored", head(other, 50)));
        }
    })
}

fn grant(it: &Map<String, Value>) -> Result<McpGrant, String> {
    match text(it, "grant").as_deref() {
        None | Some("authorization_code") => Ok(McpGrant::Page),
        Some("client_credentials") => Ok(McpGrant::Client { key: secret(it, "privateKey") }),
        Some("cross_app_access") => provider(it).map(|it| McpGrant::Company(Box::new(it))),
        Some(other) => {
            let known = "authorization_code, client_credentials, cross_app_access";
            Err(format!("`oauth.grant` {:?} is not one of {known}; ignored", head(other, 50)))
        }
    }
}

fn provider(it: &Map<String, Value>) -> Result<IdentityProvider, String> {
    const PLACE: &str = "oauth.identityProvider";
    let missing = |key: &str| format!("`oauth.grant` cross_app_access needs `{PLACE}{key}`; ignored");
    let it = it.get("identityProvider").and_then(Value::as_object).ok_or_else(|| missing(""))?;
    let needed = |key: &str| text(it, key).ok_or_else(|| missing(&format!(".{key}")));
    Ok(IdentityProvider {
        issuer: needed("issuer")?,
        token_url: needed("tokenUrl")?,
        client_id: needed("clientId")?,
        client_secret: text(it, "clientSecret"),
        id_token: secret(it, "idToken").ok_or_else(|| missing(".idTokenFile"))?,
    })
}

/// `NAME` is the secret, as a variable gives it; `NAMEFile` is where it is.
fn secret(it: &Map<String, Value>, name: &str) -> Option<McpSecret> {
    let file = text(it, &format!("{name}File")).map(McpSecret::File);
    file.or_else(|| text(it, name).map(McpSecret::Text))
}

fn list(it: &Map<String, Value>, key: &str) -> Vec<String> {
    let all = it.get(key).and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text(it: &Map<String, Value>, key: &str) -> Option<String> {
    it.get(key).and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::read;
    use castor_base::mcp::{McpGrant, McpSecret};

    fn check(it: Value, want: &str) {
        let secret = |it: &McpSecret| match it {
            McpSecret::Text(it) => format!("text {it}"),
            McpSecret::File(it) => format!("file {it}"),
        };
        let said = match read(it.as_object().unwrap()) {
            Err(why) => why,
            Ok(None) => "none".to_owned(),
            Ok(Some(it)) => match it.grant {
                McpGrant::Page => "page".to_owned(),
                McpGrant::Client { key } => format!("client {:?}", key.as_ref().map(secret)),
                McpGrant::Company(it) => format!("company {} {}", it.issuer, secret(&it.id_token)),
                McpGrant::Google => format!("google {:?}", it.scopes),
                McpGrant::GoogleAccount { account, audience } => format!("account {account} {audience}"),
            },
        };
        assert_eq!(said, want, "{it}");
    }

    #[test]
    fn each_grant_is_read_or_says_what_it_needs() {
        check(json!({}), "none");
        check(json!({"authProviderType": "dynamic_discovery"}), "none");
        check(json!({"oauth": {"clientId": "i"}}), "page");
        check(json!({"oauth": {"grant": "client_credentials"}}), "client None");
        let key =
            |key: Value| json!({"oauth": {"grant": "client_credentials", "privateKey": "K", "privateKeyFile": key}});
        check(key(json!(" ")), "client Some(\"text K\")");
        check(key(json!("~/k.pem")), "client Some(\"file ~/k.pem\")");
        let provider = json!({"issuer": "https://i", "tokenUrl": "https://i/t", "clientId": "c", "idTokenFile": "/t"});
        let company = |it: &Value| json!({"oauth": {"grant": "cross_app_access", "identityProvider": it}});
        check(company(&provider), "company https://i file /t");
        check(company(&json!(5)), "`oauth.grant` cross_app_access needs `oauth.identityProvider`; ignored");
        for name in ["issuer", "tokenUrl", "clientId", "idTokenFile"] {
            let mut less = provider.clone();
            less.as_object_mut().unwrap().remove(name);
            check(
                company(&less),
                &format!("`oauth.grant` cross_app_access needs `oauth.identityProvider.{name}`; ignored"),
            );
        }
        check(
            json!({"oauth": {"grant": "password"}}),
            "`oauth.grant` \"password\" is not one of authorization_code, client_credentials, cross_app_access; ignored",
        );
        check(json!({"authProviderType": "google_credentials", "oauth": {"scopes": ["a"]}}), "google [\"a\"]");
        let account = json!({"authProviderType": "service_account_impersonation", "targetAudience": "a"});
        check(account, "`authProviderType` service_account_impersonation needs `targetServiceAccount`; ignored");
        check(
            json!({"authProviderType": "saml"}),
            "`authProviderType` \"saml\" is not one of dynamic_discovery, google_credentials, \
             service_account_impersonation; ignored",
        );
    }
}
