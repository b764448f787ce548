//! The report of `/mcp` on a server: how it is, how it fared, and what it offers.

use crate::{
    scheduler::Toolbox,
    step::{Server, ServerHealth, ServerStatus},
};
use castor_base::{server_offer::ServerOffer, text};

/// A line for the server, and one for each tool of the first `told`.
pub fn server_in_words(server: &Server, toolbox: &Toolbox, told: usize, now_ms: u64) -> String {
    let n_tools = toolbox.tools_of_server(&server.name).count();
    let standing = match &server.status {
        ServerStatus::Starting { .. } => "connecting".to_owned(),
        ServerStatus::Ready => {
            format!("ready, {}{}", offer_in_words(n_tools, &server.offer), health_in_words(&server.health))
        }
        ServerStatus::Down(it) => {
            let seconds = it.retry_ms.saturating_sub(now_ms).div_ceil(1_000);
            let why = it.why.strip_prefix("it ").unwrap_or(&it.why);
            format!("{why}; try {} to start it again is in {seconds} s", it.number)
        }
        ServerStatus::Lost(why) | ServerStatus::Unauthorized { why, .. } => format!("failed: {why}"),
        ServerStatus::Off(why) => format!("off: {why}"),
        ServerStatus::Untrusted => "off: the folder is not trusted".to_owned(),
    };
    let mut res = format!("- `{}`: {standing}\n", text::first_line(&server.name, 100));
    for it in toolbox.tools_of_server(&server.name).take(told) {
        res += &format!("  - `{}`: {}\n", it.name, text::first_line(&it.description, 200));
    }
    if told > 0 && n_tools > told {
        res += &format!("  - and {} more\n", n_tools - told);
    }
    if server.is_there() {
        let prompts = server.offer.prompts.iter().map(|it| (format!("/{}", it.command(&server.name)), &it.description));
        let resources = server.offer.resources.iter().map(|it| (format!("@{}:{}", server.name, it.uri), &it.name));
        for (what, about) in prompts.take(told).chain(resources.take(told)) {
            res += &format!("  - `{}`: {}\n", text::first_line(&what, 300), text::first_line(about, 200));
        }
    }
    res
}

/// Nothing of a server that never ended.
fn health_in_words(it: &ServerHealth) -> String {
    let count = match it.n_restarts {
        0 => return String::new(),
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    let why = it.last_end.as_ref().map(|it| format!(", last as {it}")).unwrap_or_default();
    format!("; started again {count}{why}")
}

/// Counts of what it offers.
pub fn offer_in_words(n_tools: usize, offer: &ServerOffer) -> String {
    let count = |n: usize, what: &str| match n {
        0 => None,
        1 => Some(format!("1 {what}")),
        n => Some(format!("{n} {what}s")),
    };
    let tools = count(n_tools, "tool").unwrap_or_else(|| "without tools".to_owned());
    let more = [count(offer.prompts.len(), "prompt"), count(offer.resources.len(), "resource")];
    [Some(tools)].into_iter().chain(more).flatten().collect::<Vec<_>>().join(", ")
}
