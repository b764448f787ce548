//! Servers that are not there yet, and what is to be said about those that did not come.

use std::collections::BTreeSet;

use crate::engine::step::Starting;

/// What a turn waits for before it asks a model the first time.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    starting: Vec<Starting>,
    notices: Vec<String>,
    /// Servers whose slowness was told.
    told: BTreeSet<String>,
}

impl Arrivals {
    pub fn take(&mut self, starting: Vec<Starting>, notices: Vec<String>) {
        self.starting = starting;
        self.notices.extend(notices);
    }

    /// Until when to wait (Unix, milliseconds); `None`: for nothing.
    pub fn wait_until(&self, now_ms: u64) -> Option<u64> {
        self.starting.iter().map(|it| it.until_ms).filter(|it| *it > now_ms).max()
    }

    /// What user and model should know now. Said once.
    pub fn say(&mut self) -> Option<String> {
        let mut lines = std::mem::take(&mut self.notices);
        // Servers fail side by side.
        lines.sort();
        for it in &self.starting {
            if self.told.insert(it.name.clone()) {
                let what = "is still starting; its tools join when it is ready";
                lines.push(format!("MCP server {:?} {what}.", it.name));
            }
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}
