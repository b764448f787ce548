//! AIR `agentFileChangeReportRequest`: a prompt asks for a report on the files that it changes.

use serde_json::{Map, Value};

use super::air_of;

/// In bytes.
const MAX_ID: usize = 128;

/// The id of the report that a prompt's `_meta` asks for. A request that is malformed asks for nothing.
pub(in crate::acp) fn read_request(meta: Option<&Map<String, Value>>) -> Option<String> {
    let request = air_of(meta?)?.get("agentFileChangeReportRequest")?.as_object()?;
    let id = request.get("requestId")?.as_str()?;
    let fits = |it: char| it.is_ascii_alphanumeric() || "._:-".contains(it);
    let is_request = request.len() == 2 && request.get("version")? == 1;
    (is_request && (1..=MAX_ID).contains(&id.len()) && id.chars().all(fits)).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::read_request;

    #[test]
    fn only_well_formed_requests_ask() {
        let read = |it: Value| {
            let meta = json!({ "jetbrains": { "air": { "agentFileChangeReportRequest": it } } });
            read_request(meta.as_object())
        };
        assert_eq!(read(json!({ "version": 1, "requestId": "a.B_1:-" })).as_deref(), Some("a.B_1:-"));
        for bad in [
            json!({ "version": 2, "requestId": "a" }),
            json!({ "version": 1, "requestId": "" }),
            json!({ "version": 1, "requestId": "a b" }),
            json!({ "version": 1, "requestId": "a".repeat(129) }),
            json!({ "version": 1, "requestId": "a", "more": 1 }),
            json!("a"),
        ] {
            assert_eq!(read(bad.clone()), None, "{bad}");
        }
    }
}
