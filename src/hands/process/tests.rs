//! Real processes: their output, their ends, and that none is left.
#![allow(clippy::disallowed_methods)]

use std::{
    future::Future,
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use tokio::io::AsyncWriteExt;

use super::{Child, CommandEvent, Exit, Groups, Spawn, Stdin};
use castor_base::path::AbsPath;

/// Far more than anything here takes on a slow machine.
const DEADLINE: Duration = Duration::from_secs(20);

fn shell(groups: &Groups, script: &str) -> Child {
    start(groups, "bash", &["-c", script], Stdin::Null)
}

fn start(groups: &Groups, program: &str, args: &[&str], stdin: Stdin) -> Child {
    let path = std::env::var("PATH").unwrap();
    let env = [("PATH".to_owned(), path)];
    let cwd = AbsPath::new("/").unwrap();
    Spawn { program, args, cwd: &cwd, env: &env, stdin, confined: None }.start(groups).unwrap()
}

async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, what).await.expect("took too long")
}

/// Everything printed until the exit.
async fn run(child: &mut Child) -> (String, Exit) {
    let mut text = String::new();
    loop {
        match in_time(child.next()).await {
            CommandEvent::Output(it) => text += &it,
            CommandEvent::Exited(exit) => return (text, exit),
            it => panic!("{it:?} before the exit"),
        }
    }
}

/// Reads until `count` whole lines are there: here, process ids.
async fn ids(child: &mut Child, count: usize) -> Vec<u32> {
    let mut text = String::new();
    while text.matches('\n').count() < count {
        match in_time(child.next()).await {
            CommandEvent::Output(it) => text += &it,
            it => panic!("{it:?} after {text:?}"),
        }
    }
    text.lines().map(|it| it.trim().parse().unwrap()).collect()
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, it)| !it.trim_start().starts_with(['Z', 'X']))
}

async fn all_dead(pids: &[u32]) {
    let mut tick = tokio::time::interval(Duration::from_millis(2));
    let dead = async {
        while pids.iter().any(|it| is_alive(*it)) {
            tick.tick().await;
        }
    };
    in_time(dead).await;
}

#[tokio::test]
async fn both_streams_in_order_and_the_code() {
    let mut child = shell(&Groups::default(), "echo one; echo two >&2; printf 'thr\\303'; printf '\\261e'; exit 3");
    let (text, exit) = run(&mut child).await;
    assert_eq!(text, "one\ntwo\nthrñe");
    assert_eq!(exit, Exit { code: Some(3), ..Exit::default() });
    assert_eq!(in_time(child.next()).await, CommandEvent::Closed);
}

#[tokio::test]
async fn ended_by_a_signal() {
    let (_, exit) = run(&mut shell(&Groups::default(), "kill -9 $$")).await;
    assert_eq!(exit, Exit { signal: Some("SIGKILL".to_owned()), ..Exit::default() });
}

/// Castor outlives its own limits; what it starts has the system's usual ways.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn size_limits_end_commands_and_not_castor() {
    super::survive_size_limits();
    let (_, exit) = run(&mut shell(&Groups::default(), "ulimit -f 0; exec head -c 1 /dev/zero > \"$(mktemp)\"")).await;
    assert_eq!(exit.signal.as_deref(), Some("SIGXFSZ"), "{exit:?}");
}

#[tokio::test]
async fn missing_program_fails_with_not_found() {
    let cwd = AbsPath::new("/").unwrap();
    let spawn =
        Spawn { program: "no-such-program", args: &[], cwd: &cwd, env: &[], stdin: Stdin::Null, confined: None };
    assert_eq!(spawn.start(&Groups::default()).map(drop).unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[tokio::test]
async fn stdin_reaches_it() {
    let mut child = start(&Groups::default(), "cat", &[], Stdin::Piped);
    let mut stdin = child.take_stdin().unwrap();
    stdin.write_all(b"hello").await.unwrap();
    drop(stdin);
    assert_eq!(run(&mut child).await.0, "hello");
}

#[tokio::test]
async fn child_sees_only_the_passed_environment() {
    assert!(std::env::vars_os().count() > 1, "there must be something that could leak");
    let env = [("A", "1"), ("PATH", "/usr/bin:/bin"), ("A", "2")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let cwd = AbsPath::new("/").unwrap();
    let spawn = Spawn { program: "env", args: &[], cwd: &cwd, env: &env, stdin: Stdin::Null, confined: None };
    let (text, _) = run(&mut spawn.start(&Groups::default()).unwrap()).await;
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!((lines[0], lines[2]), ("A=2", "PATH=/usr/bin:/bin"));
    assert!(lines[1].starts_with("CASTOR_COMMAND="));
}

#[tokio::test]
async fn no_descriptor_and_no_terminal_of_ours() {
    let ours = tempfile::NamedTempFile::new().unwrap();
    assert!(ours.as_raw_fd() > 2);
    let script = "readlink /proc/$$/fd/*; cut -d' ' -f5,6,7 /proc/$$/stat; echo $$";
    let (text, _) = run(&mut shell(&Groups::default(), script)).await;
    assert!(!text.contains(ours.path().to_str().unwrap()), "{text}");
    let pipes = text.lines().filter(|it| it.starts_with("pipe:")).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(pipes.len(), 1, "only its own: {text}");
    let [.., ids, pid] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert_eq!(ids, format!("{pid} {pid} 0"), "group, session, and no terminal");
}

#[tokio::test]
async fn dropped_with_its_grandchildren() {
    let groups = Groups::default();
    let mut child = shell(&groups, "sh -c 'sleep 300 & echo $!; echo $$; sleep 300; true' & echo $$; wait");
    let mut pids = ids(&mut child, 3).await;
    pids.push(child.pid());
    assert!(pids.iter().all(|it| is_alive(*it)));
    drop(child);
    all_dead(&pids).await;
}

#[tokio::test]
async fn whoever_ignores_term_is_killed() {
    let groups = Groups::default();
    let mut child = shell(&groups, "trap '' TERM; sleep 300 & echo $!; echo $$; while :; do sleep 300; done");
    let pids = ids(&mut child, 2).await;
    child.end();
    let (_, exit) = run(&mut child).await;
    assert_eq!(exit.signal.as_deref(), Some("SIGKILL"));
    all_dead(&pids).await;
}

#[tokio::test]
async fn whoever_left_the_group_is_found() {
    let groups = Groups::default();
    // setsid forks when it leads a group, as a job under `set -m` does; then its parent is gone before we could see it.
    let script =
        "setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 300; done' & set -m; sleep 300 & echo $!; wait";
    let mut child = shell(&groups, script);
    let pids = ids(&mut child, 2).await;
    drop(child);
    all_dead(&pids).await;
}

/// A daemon, as programs make themselves one: of a session of its own, and its parents are gone.
const DAEMON: &str = "(setsid sh -c 'trap \"\" TERM; echo $$; exec >/dev/null 2>&1; while :; do sleep 300; done' &)";

#[tokio::test]
async fn daemons_are_ended_with_their_command() {
    let groups = Groups::default();
    let (mut other, mut child) = (shell(&groups, DAEMON), shell(&groups, &format!("{DAEMON}; sleep 300")));
    let (mine, others) = (ids(&mut child, 1).await, ids(&mut other, 1).await);
    drop(child);
    all_dead(&mine).await;
    assert!(is_alive(others[0]));
    run(&mut other).await;
    in_time(groups.kill_all()).await;
    all_dead(&others).await;
}

#[tokio::test]
async fn a_background_child_does_not_hold_us() {
    let groups = Groups::default();
    let mut child = shell(&groups, "sleep 300 & echo $!");
    let begin = Instant::now();
    let (text, exit) = run(&mut child).await;
    assert!(begin.elapsed() < Duration::from_secs(5));
    let pid: u32 = text.trim().parse().unwrap();
    assert_eq!((exit.code, &exit.left_running[..]), (Some(0), &[pid][..]));
    assert!(child.is_open());
    drop(child);
    assert!(is_alive(pid), "it ended before it was dropped: what it left may live");
    in_time(groups.kill_all()).await;
    all_dead(&[pid]).await;
}

#[tokio::test]
async fn a_talkative_background_child_does_not_hold_us() {
    let groups = Groups::default();
    let mut child = shell(&groups, "(while :; do echo x; done) & exit 7");
    let (_, exit) = run(&mut child).await;
    assert_eq!((exit.code, exit.left_running.len()), (Some(7), 1));
    assert!(matches!(in_time(child.next()).await, CommandEvent::Output(_)), "it can still be heard");
    child.end();
    all_dead(&exit.left_running).await;
}

#[tokio::test]
async fn silent_background_children_are_found() {
    let groups = Groups::default();
    let mut child = shell(&groups, "set -m; sleep 300 >/dev/null 2>&1 & echo $!");
    let (text, exit) = run(&mut child).await;
    let pid: u32 = text.trim().parse().unwrap();
    assert_eq!(exit.left_running, [pid]);
    child.end();
    all_dead(&[pid]).await;
}

/// Else what was made for it would stay: nobody knows of it before it is added.
#[tokio::test]
async fn kill_all_waits_for_starting_processes() {
    let groups = Groups::default();
    let starting = groups.hold_start();
    let mut end = std::pin::pin!(groups.kill_all());
    for _ in 0..2 {
        let ended = std::future::poll_fn(|cx| std::task::Poll::Ready(end.as_mut().poll(cx).is_ready())).await;
        assert!(!ended);
        // Orders are followed one after the other: by then that of the end was.
        groups.leader_exited(0).await;
    }
    let child = shell(&groups, "sleep 300");
    drop(starting);
    in_time(end).await;
    let pid = child.pid();
    drop(child);
    all_dead(&[pid]).await;
}

#[tokio::test]
async fn kill_all_does_not_wait_for_the_stubborn() {
    let groups = Groups::default();
    in_time(groups.kill_all()).await;
    let stubborn = "trap '' TERM; echo $$; while :; do sleep 300; done";
    let mut children = [shell(&groups, stubborn), shell(&groups, "echo $$; sleep 300; true"), shell(&groups, stubborn)];
    let mut pids = Vec::new();
    for child in &mut children {
        pids.extend(ids(child, 1).await);
    }
    let begin = Instant::now();
    in_time(groups.kill_all()).await;
    let took = begin.elapsed();
    assert!(took < Duration::from_millis(1500), "{took:?}");
    all_dead(&pids).await;
    let late = shell(&groups, "sleep 300");
    all_dead(&[late.pid()]).await;
}

#[tokio::test]
async fn the_last_handle_takes_all_with_it() {
    let groups = Groups::default();
    let mut child = shell(&groups, "sleep 300 & echo $!");
    let (_, exit) = run(&mut child).await;
    drop(child);
    assert!(is_alive(exit.left_running[0]));
    drop(groups);
    all_dead(&exit.left_running).await;
}

#[tokio::test]
async fn dropped_while_the_runtime_goes_away() {
    let pid = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut child = shell(&Groups::default(), "trap '' TERM; echo $$; while :; do sleep 300; done");
            let pid = ids(&mut child, 1).await[0];
            tokio::spawn(async move {
                let _child = child;
                std::future::pending::<()>().await;
            });
            tokio::task::yield_now().await;
            pid
        })
    });
    all_dead(&[pid.join().unwrap()]).await;
}

fn in_pty(groups: &Groups, script: &str) -> Child {
    let env = [("PATH".to_owned(), std::env::var("PATH").unwrap())];
    let cwd = AbsPath::new("/").unwrap();
    let args = ["-c", script];
    let spawn = Spawn { program: "bash", args: &args, cwd: &cwd, env: &env, stdin: Stdin::Null, confined: None };
    spawn.start_in_pty(groups).unwrap()
}

#[tokio::test]
async fn a_terminal_of_its_own_to_print_to() {
    let script = "[ -t 1 ] && [ -t 2 ] && echo out; [ -t 0 ] || echo no in; stty size <&1; \
                  (: </dev/tty) 2>/dev/null || echo nobody to ask; echo last >&2; exit 3";
    let (text, exit) = run(&mut in_pty(&Groups::default(), script)).await;
    assert_eq!(text, "out\r\nno in\r\n40 120\r\nnobody to ask\r\nlast\r\n");
    assert_eq!(exit, Exit { code: Some(3), ..Exit::default() });
}

#[tokio::test]
async fn much_output_through_a_terminal() {
    let (text, exit) = run(&mut in_pty(&Groups::default(), "seq 1 20000; printf 'thr\\303'; printf '\\261e'")).await;
    assert_eq!(text.lines().count(), 20_001);
    assert!(text.ends_with("20000\r\nthrñe"), "{}", &text[text.len() - 20..]);
    assert_eq!(exit.code, Some(0));
}

#[tokio::test]
async fn in_a_terminal_all_are_ended_too() {
    let mut child = in_pty(&Groups::default(), "sleep 300 & echo $!; echo $$; sleep 300; true");
    let pids = ids(&mut child, 2).await;
    child.end();
    let (_, exit) = run(&mut child).await;
    assert_eq!(exit.signal.as_deref(), Some("SIGTERM"));
    all_dead(&pids).await;
}

#[tokio::test]
async fn background_process_survives_its_terminal() {
    let groups = Groups::default();
    let mut child = in_pty(&groups, "sleep 300 & echo $!");
    let (text, exit) = run(&mut child).await;
    let pid: u32 = text.trim().parse().unwrap();
    assert_eq!(exit.left_running, [pid]);
    drop(child);
    assert!(is_alive(pid), "no SIGHUP");
    in_time(groups.kill_all()).await;
    all_dead(&[pid]).await;
}

#[cfg(target_os = "linux")]
#[test]
fn process_ends_with_its_parent_thread() {
    let pid = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let groups = Groups::default();
            let mut child = shell(&groups, "trap '' TERM; echo $$; exec sleep 300");
            let pid = ids(&mut child, 1).await[0];
            // As after a KILL: nobody ends it.
            std::mem::forget((child, groups));
            pid
        })
    });
    let pid = pid.join().unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(all_dead(&[pid]));
}
