//! What the sandbox adds to the start of a command: medians of plain and confined spawns of `true`, and their
//! ratio, in a small folder and in castor's own. The helper is this binary, so it has all of castor in it (`main`): what
//! the system must do to start a program grows with it.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use castor_base::{
    guarded_names,
    path::AbsPath,
    sandbox::{Confinement, OwnFolders},
};
use castor_hands::process::{CommandEvent, Groups, Spawn, Stdin, sandbox};

const ROUNDS: usize = 100;

fn main() -> ExitCode {
    // The helper is the running binary, whichever that is.
    #[cfg(target_os = "linux")]
    sandbox::enter_if_asked();
    // Nobody asks for it; but only what may be called is linked.
    if std::env::args().nth(1).is_some_and(|it| it == "run") {
        return castor::cli::main();
    }
    if !sandbox::is_available() {
        println!("skipped: nothing here to confine with");
        return ExitCode::SUCCESS;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
    let small = dir.join("w");
    std::fs::create_dir_all(small.join(".git/hooks")).unwrap();
    let own = AbsPath::new(env!("CARGO_MANIFEST_DIR")).unwrap();
    for (place, cwd) in [("small folder", small), ("castor's own", own)] {
        compare(place, &cwd, &dir.join("home/.castor/tmp/session/tmp"));
    }
    ExitCode::SUCCESS
}

fn compare(place: &str, cwd: &AbsPath, tmp: &AbsPath) {
    let home = AbsPath::new(tmp.as_path().ancestors().nth(4).unwrap()).unwrap();
    let masked = guarded_names::credentials().map(|it| home.join(it)).chain([home.join(".castor")]).collect();
    let offline = Confinement {
        masked,
        home: Some(home.clone()),
        own_folders: OwnFolders { tmp: tmp.clone(), records: home.join(".castor/stand-ins"), caches: None },
        ..Confinement::for_folder(cwd)
    };
    let (online, looking) = (Confinement { network: true, ..offline.clone() }, offline.clone().into_read_only());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let groups = Groups::default();
    let time = |confined| runtime.block_on(median(cwd, confined, &groups));
    let plain = time(None);
    for (name, confined) in [("with network", &online), ("without network", &offline), ("looking", &looking)] {
        let confined = time(Some(confined));
        let more = confined.saturating_sub(plain);
        let ratio = confined.as_secs_f64() / plain.as_secs_f64();
        println!("{place}, {name}: plain {plain:?}, confined {confined:?}, {more:?} more, ratio {ratio:.1}");
    }
}

async fn median(cwd: &AbsPath, confined: Option<&Confinement>, groups: &Groups) -> Duration {
    let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let mut times = Vec::new();
    // The first round is not counted: it finds out what the system can.
    for round in 0..=ROUNDS {
        let start = Instant::now();
        let spawn = Spawn { program: "true", args: &[], cwd, env: &env, stdin: Stdin::Null, confined };
        let mut child = spawn.start(groups).unwrap();
        while !matches!(child.next().await, CommandEvent::Exited(_)) {}
        if round > 0 {
            times.push(start.elapsed());
        }
    }
    times.sort();
    times[ROUNDS / 2]
}
