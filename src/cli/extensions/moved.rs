//! Git repositories that moved: a new address on the same site is taken, one on another site is only named.

use std::time::Duration;

use reqwest::Url;

use castor_base::text;
use castor_hands::{
    http::{Http, HttpLink, Proxies, is_same_site, redirect_of},
    secrets::Env,
};

/// A server may be silent for so long.
const SILENCE: Duration = Duration::from_secs(10);
/// What git asks for first, behind the repository's address.
const ASKED: &str = "/info/refs";
/// Of an address that is named, in characters.
const MAX_ADDRESS: usize = 300;

/// Where a repository is now that git was sent away from with these words. git follows nowhere by itself: an address that
/// the user named must not lead to one of this machine or its network.
///
/// # Errors
/// git's words where it was not sent away; else the other site's address.
pub async fn new_address(env: &Env, url: &str, why: String) -> Result<String, String> {
    if !why.contains("returned error: 30") {
        return Err(why);
    }
    let Some((asked, next)) = ask(env, url).await else { return Err(why) };
    let mut shown = next.clone();
    // The server wrote them.
    if shown.set_username("").and_then(|()| shown.set_password(None)).is_err() {
        return Err(why);
    }
    let shown = text::first_line(shown.as_str(), MAX_ADDRESS);
    match is_same_site(&asked, &next) {
        true => Ok(next.into()),
        false => Err(format!(
            "the repository moved to {shown}, on another site, and castor does not follow; name that address if you \
             mean it"
        )),
    }
}

/// The address that was asked, and the repository's that the server names.
async fn ask(env: &Env, url: &str) -> Option<(Url, Url)> {
    let asked = Url::parse(&format!("{}{ASKED}?service=git-upload-pack", url.trim_end_matches('/'))).ok()?;
    let link = HttpLink { proxies: Proxies::from_env(|name| env.get(name)), ..HttpLink::default() };
    let http = Http::new(link);
    let request = http.client().ok()?.get(asked.clone());
    let response = http.send_within(request, &asked, SILENCE).await.ok()?;
    let mut next = redirect_of(&response, &asked).filter(|it| matches!(it.scheme(), "http" | "https"))?;
    let path = next.path().strip_suffix(ASKED)?.to_owned();
    next.set_path(&path);
    next.set_query(None);
    next.set_fragment(None);
    Some((asked, next))
}
