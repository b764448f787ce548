//! What code asks a server to delete.

use super::has;

/// Calls that ask for it.
const SENT: &[&str] = &[
    "Faraday.delete",
    "HTTParty.delete",
    "Http::delete(",
    "Net::HTTP::Delete",
    "RestClient.delete",
    "axios').delete(",
    "axios.delete(",
    "axios\").delete(",
    "got.delete(",
    "httpx.delete(",
    "ky.delete(",
    "requests, 'delete'",
    "requests, \"delete\"",
    "requests.delete(",
    "superagent.delete(",
];
/// Clients that are made before they are told.
const SESSIONS: &[&str] = &[
    "ClientSession(",
    "axios.create(",
    "httpx.AsyncClient(",
    "httpx.Client(",
    "requests.Session(",
    "requests.session(",
    "urllib3.PoolManager(",
];
/// How a method is told, where it stands in quotes.
const METHODS: &[&str] = &["method:", "method=", "request(", "Request(", "CUSTOMREQUEST", "fetch("];

/// To another machine than this one.
pub(super) fn deletes(code: &str) -> Option<&'static str> {
    const VERBS: &[&str] =
        &["\"DELETE\"", "'DELETE'", "`DELETE`", "'delete'", "\"delete\"", "\"DELETE /", "'DELETE /", "`DELETE /"];
    let quoted = || VERBS.iter().any(|it| code.contains(it));
    // `q.method === 'DELETE'` only asks.
    let told = |it: &&&str| code.split(**it).skip(1).any(|rest| !rest.starts_with('='));
    let method = || METHODS.iter().find(told).copied().filter(|_| quoted());
    let here = ["localhost", "127.0.0.1", "[::1]"];
    let is_here = |it: &str| here.iter().any(|here| it.strip_prefix(here).is_some_and(|it| it.starts_with([':', '/'])));
    let stays = code.contains("://") && code.split("://").skip(1).all(is_here);
    let by_session = || has(code, SESSIONS).filter(|_| code.contains(".delete("));
    has(code, SENT).or_else(by_session).or_else(method).filter(|_| !stays)
}
