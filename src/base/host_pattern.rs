//! Patterns over the arguments of a tool that asks one host: what an approval for ever of it is.

use serde_json::Value;

/// Of a call that asks this one host by https and on the usual port; `None`: it is another.
pub fn of_call(args: &Value, hosts: &[String]) -> Option<String> {
    let [host] = hosts else { return None };
    let rest = args.get("url")?.as_str()?.strip_prefix("https://")?.strip_prefix(host.as_str())?;
    rest.starts_with('/').then(|| of_host(host))
}

pub fn of_host(host: &str) -> String {
    format!("\\x00{}", regex::escape(&format!("\"url\":\"https://{host}/")))
}

/// The host of such a pattern; `None`: it is another.
pub fn host_of(pattern: &str) -> Option<String> {
    let escaped = pattern.strip_prefix(r#"\x00"url":"https://"#)?.strip_suffix('/')?;
    let host = escaped.replace('\\', "");
    (of_host(&host) == pattern).then_some(host)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{host_of, of_call, of_host};

    #[test]
    fn a_pattern_is_for_one_host() {
        assert_eq!(host_of(&of_host("a-b.c")).as_deref(), Some("a-b.c"));
        assert_eq!(host_of(r#"\x00"url":"https://.*/"#), None);
        let of = |url: &str, host: &str| of_call(&json!({ "url": url }), &[host.to_owned()]).is_some();
        assert!(of("https://a.b/c", "a.b"));
        for (url, host) in
            [("http://a.b/", "a.b"), ("https://a.b.c/", "a.b"), ("https://a.b", "a.b"), ("https://x/", "a.b")]
        {
            assert!(!of(url, host), "{url}");
        }
    }
}
