//! What sessions cost on the disk: listing ten thousand of them, opening one, an export. Prints figures, asserts none.

mod timing;

use castor::cli::sessions::export::{self, Story};
use castor_base::{ids::SessionId, log::Entry, path::AbsPath};
use castor_hands::disk;
use castor_store::sessions::{ListCache, SessionStore};

const N_SESSIONS: usize = 10_000;
const N_ROUNDS: usize = 20;

fn main() {
    let dir = tempfile::tempdir().unwrap_or_else(|it| panic!("{it}"));
    let Some(home) = AbsPath::new(dir.path()) else { return };
    let index = home.join("session-list");
    let store = SessionStore::new(home);
    let entries = facts(include_str!("../tests/data/logs/v1-rich.jsonl"));
    for n in 0..N_SESSIONS {
        let mut log = store.create(&SessionId::from(format!("s{n}"))).unwrap_or_else(|it| panic!("{it}"));
        log.append(&entries).unwrap_or_else(|it| panic!("{it}"));
    }
    let id = SessionId::from("s7");
    say("list, without index", || {
        _ = disk::remove_file(&index);
        drop(store.list(None));
    });
    say("list, first of a process", || drop(store.list(None)));
    let mut cache = ListCache::default();
    _ = store.list_cached(None, &mut cache);
    say("list, again", || drop(store.list_cached(None, &mut cache)));
    say("open and close one", || drop(store.open(&id)));
    say("read one", || drop(store.read(&id)));
    let Some(story) = Story::new(&entries) else { return };
    let agents = export::AgentLogs::read(&store, &entries);
    let exported = export::ExportedStory::new(&story, &agents);
    say("export one as Markdown", || drop(export::markdown(exported, &jiff::tz::TimeZone::UTC)));
    say("export one as HTML", || drop(export::html(exported, &jiff::tz::TimeZone::UTC)));
}

fn facts(lines: &str) -> Vec<Entry> {
    lines.lines().filter_map(|it| serde_json::from_str(it).ok()).collect()
}

fn say(what: &str, act: impl FnMut()) {
    let times = timing::times(N_ROUNDS, act);
    let at = |percent| timing::percentile(&times, percent);
    println!("{what:24} p50 {:>9.3?}  p95 {:>9.3?}  ({N_SESSIONS} sessions)", at(50), at(95));
}
