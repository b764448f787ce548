//! Calls that a server makes only after the user was on a page (MCP error -32042): asks the user, then calls again.

use std::time::Duration;

use rmcp::model::{ElicitationAction, ErrorData};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::elicitation_call::ServerAsker;

/// The server's word for it.
const PAGE_REQUIRED: i32 = -32042;
/// Pages that one call may want.
const MAX_PAGES: usize = 3;
/// How long its word is waited for that the user is done there. It need not say so.
const DONE_WAIT: Duration = Duration::from_secs(20);

/// What has to be asked before the call; `None`: the error says something else.
pub(super) fn required_pages(error: &ErrorData) -> Option<Vec<Value>> {
    if error.code.0 != PAGE_REQUIRED {
        return None;
    }
    let pages = error.data.as_ref()?.get("elicitations")?.as_array()?;
    let pages = pages.iter().take(MAX_PAGES).filter_map(Value::as_object).cloned();
    let as_page = |mut it: serde_json::Map<String, Value>| {
        // Nothing but a page can be wanted here.
        it.insert("mode".to_owned(), json!("url"));
        Value::Object(it)
    };
    Some(pages.map(as_page).collect::<Vec<_>>()).filter(|it| !it.is_empty())
}

impl ServerAsker {
    /// Sends the user to the pages, one after the other. The error says why that came to nothing.
    pub(super) async fn visit(&self, pages: &[Value], cancel: &CancellationToken) -> Result<(), String> {
        let mut done = self.pages_done.subscribe();
        for page in pages {
            let said = self.ask(page, cancel).await.map_err(|it| it.message.into_owned())?;
            if said.action != ElicitationAction::Accept {
                return Err("the user did not open the page that it needs".to_owned());
            }
        }
        let mut open: Vec<&str> = pages.iter().filter_map(|it| it.get("elicitationId")?.as_str()).collect();
        let until = Instant::now() + DONE_WAIT;
        while !open.is_empty() {
            let next = cancel.run_until_cancelled(timeout_at(until, done.recv())).await;
            let Some(Ok(Ok(page))) = next else { break };
            open.retain(|it| *it != page);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ErrorCode, ErrorData};
    use serde_json::{Value, json};

    use super::required_pages;

    fn check(code: i32, data: Value, expected: Option<Value>) {
        let error = ErrorData::new(ErrorCode(code), "m", Some(data.clone()));
        assert_eq!(required_pages(&error).map(Value::from), expected, "{data}");
    }

    #[test]
    fn pages_are_read_from_the_error() {
        let page = json!({"elicitationId": "1", "url": "https://a.b", "message": "m"});
        let asked = json!({"mode": "url", "elicitationId": "1", "url": "https://a.b", "message": "m"});
        check(-32042, json!({"elicitations": [page]}), Some(json!([asked])));
        let form = json!({"mode": "form", "url": "https://a.b"});
        check(-32042, json!({"elicitations": [form, 5]}), Some(json!([{"mode": "url", "url": "https://a.b"}])));
        check(-32042, json!({"elicitations": [page, page, page, page]}), Some(json!([asked, asked, asked])));
        check(-32042, json!({"elicitations": []}), None);
        check(-32042, json!({}), None);
        check(-32602, json!({"elicitations": [page]}), None);
    }
}
