//! AIR `agentFileChangeReport`: the files that one prompt changed, where the client asks for them.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::{SessionInfoUpdate, SessionUpdate};
use serde_json::json;

use super::air_meta;
use crate::acp::updates::SessionView;
use castor_base::path_text;

const MAX_PATHS: usize = 1_024;
/// In characters.
const MAX_PATH: usize = 4_096;
/// Of all paths together, in bytes; the report has at most 256 KiB.
const MAX_BYTES: usize = 240 << 10;

const UNCERTAINTY: &str = "Commands that go on in the background, and programs that castor did not start, may change more \
                           files.";

/// What is known of the files of a prompt.
pub enum FileReport {
    Reported(Vec<PathBuf>),
    /// `cancelled`, `notReported` or `providerError`.
    Unavailable(&'static str),
}

impl SessionView {
    /// Appends the report.
    pub fn report_files(&self, request: &str, report: FileReport, lines: &mut Vec<u8>) {
        let payload = match report {
            FileReport::Unavailable(reason) => {
                json!({ "version": 1, "requestId": request, "status": "unavailable", "reason": reason })
            }
            FileReport::Reported(paths) => {
                let n_all = paths.len();
                let paths = shown_paths(paths);
                json!({
                    "version": 1, "requestId": request, "status": "reported", "declaredComplete": false,
                    "truncated": paths.len() < n_all, "paths": paths, "uncertainty": UNCERTAINTY,
                })
            }
        };
        let info = SessionInfoUpdate::new().meta(air_meta("agentFileChangeReport", payload));
        self.push_update(SessionUpdate::SessionInfoUpdate(info), lines);
    }
}

fn shown_paths(paths: Vec<PathBuf>) -> Vec<String> {
    let texts = paths.iter().map(|it| path_text::to_text(it).into_owned());
    let mut left = MAX_BYTES;
    texts
        .filter(|it| it.chars().count() <= MAX_PATH)
        .take(MAX_PATHS)
        .take_while(|it| {
            let fits = it.len() + 16 <= left;
            left = left.saturating_sub(it.len() + 16);
            fits
        })
        .collect()
}
