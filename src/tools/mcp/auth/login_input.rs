//! Input of logins without a page: the authorization server, and keys and tokens of the settings.

use rmcp::transport::auth::AuthorizationMetadata;
use secrecy::SecretString;

use super::{LoginError, LoginTarget};
use castor_base::{mcp::McpSecret, path::AbsPath};
use castor_hands::disk;

/// Larger files hold something else than a key or a token.
const MAX_SECRET: u64 = 64 << 10;

/// What the authorization server says of itself, and what castor asks it for.
pub(super) struct TokenRequest {
    pub(super) metadata: AuthorizationMetadata,
    pub(super) scopes: Vec<String>,
    pub(super) resource: String,
}

/// A key or a token of the settings.
///
/// # Errors
/// A file that cannot be read; never with what is in it.
pub(super) fn read_secret(target: &LoginTarget, name: &str, it: &McpSecret) -> Result<SecretString, LoginError> {
    let refused = |why: String| LoginError::Refused(format!("`oauth.{name}File`: {why}"));
    let written = match it {
        McpSecret::Text(it) => return Ok(it.as_str().into()),
        McpSecret::File(it) => it,
    };
    let home = target.env.get("HOME").and_then(AbsPath::new);
    let path = AbsPath::written(written, home.as_ref());
    let path = path.ok_or_else(|| refused("it is no absolute path".to_owned()))?;
    let bytes = disk::read_head(&path, MAX_SECRET).map_err(|it| refused(format!("{path}: {it}")))?;
    let text = String::from_utf8(bytes).map_err(|_| refused(format!("{path} is no text")))?;
    Ok(text.trim().into())
}
