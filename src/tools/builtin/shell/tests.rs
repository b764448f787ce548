//! The tool `run_shell_command` with real commands.
#![allow(clippy::disallowed_methods)]

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::{BackgroundProcesses, ENV, Shell, ShellParams};
use crate::builtin::{Background, Builtin, CallKnowledge, Terminals, ToolContext, ToolSettings};
use castor_base::{
    content::joined_text,
    fs::{BoxFuture, ChangeError, Fs, FsError, PlannedChange},
    path::AbsPath,
    terminal::CommandReport,
    tool::{Access, Display, ToolOutput},
};
use castor_hands::process::Groups;

const DEADLINE: Duration = Duration::from_secs(60);

struct NoFs;

impl Fs for NoFs {
    fn read<'a>(&'a self, path: &'a AbsPath) -> BoxFuture<'a, Result<Vec<u8>, FsError>> {
        Box::pin(async { Err(FsError::NotFound(path.clone())) })
    }

    fn write<'a>(&'a self, path: &'a AbsPath, _bytes: Vec<u8>) -> BoxFuture<'a, Result<(), FsError>> {
        Box::pin(async { Err(FsError::Denied(path.clone())) })
    }

    fn change(&self, _changes: Vec<PlannedChange>) -> BoxFuture<'_, Result<(), ChangeError>> {
        Box::pin(async { Err(FsError::Denied(AbsPath::new("/").unwrap()).into()) })
    }
}

/// A workspace `w` and a scratch folder, gone with the test.
struct Bench {
    dir: TempDir,
    ctx: ToolContext,
    shell: Shell,
    groups: Groups,
    shown: UnboundedReceiver<String>,
    completed: UnboundedReceiver<CommandReport>,
    emptied: UnboundedReceiver<u32>,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir(base.join("w").as_path()).unwrap();
        let (sender, shown) = unbounded_channel();
        let (teller, completed) = unbounded_channel();
        let (parter, emptied) = unbounded_channel();
        let env = vec![("PATH".to_owned(), std::env::var("PATH").unwrap()), ("PAGER".to_owned(), "less".to_owned())];
        let ctx = ToolContext {
            cwd: base.join("w"),
            roots: vec![base.join("w")],
            scratch: base.join("scratch"),
            known: CallKnowledge::default(),
            fs: Arc::new(NoFs),
            cancel: CancellationToken::new(),
            progress: Arc::new(move |text| {
                _ = sender.send(text);
                Box::pin(async {})
            }),
            background: Background {
                completed: Arc::new(move |report| {
                    _ = teller.send(report);
                    Box::pin(async {})
                }),
                on_group_empty: Arc::new(move |pid| {
                    _ = parter.send(pid);
                    Box::pin(async {})
                }),
                ..Background::default()
            },
            settings: Arc::new(ToolSettings::default()),
            env: Arc::new(env),
            terminals: Terminals::default(),
            confined: None,
        };
        let groups = Groups::default();
        Self {
            dir,
            ctx,
            shell: Shell::new(groups.clone(), BackgroundProcesses::default()),
            groups,
            shown,
            completed,
            emptied,
        }
    }

    async fn run(&self, args: Value) -> ToolOutput {
        in_time(self.shell.run(&args, None, &self.ctx)).await.unwrap_or_else(ToolOutput::failed)
    }

    async fn text(&self, command: &str) -> String {
        joined_text(&self.run(json!({ "command": command })).await.content)
    }

    async fn failure(&self, args: Value) -> String {
        let error = self.run(args.clone()).await.error.unwrap();
        assert_eq!(self.shell.targets(&args, &self.ctx).await.unwrap_err(), error);
        format!("{}: {}", error.kind, error.message)
    }

    fn all_shown(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.shown.try_recv().ok()).collect()
    }
}

async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, what).await.expect("took too long")
}

async fn until(mut holds: impl FnMut() -> bool) {
    let mut tick = tokio::time::interval(Duration::from_millis(2));
    let wait = async {
        while !holds() {
            tick.tick().await;
        }
    };
    in_time(wait).await;
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, it)| !it.trim_start().starts_with(['Z', 'X']))
}

#[tokio::test]
async fn a_command_and_its_words() {
    let mut bench = Bench::new();
    let output =
        bench.run(json!({ "command": "echo hi; echo oops >&2; exit 2", "unknown": 1, "description": null })).await;
    assert_eq!(
        joined_text(&output.content),
        "Output: <untrusted_context>\nhi\noops\n</untrusted_context>\nExit Code: 2"
    );
    assert_eq!(output.error, None);
    assert_eq!(output.data, json!({ "exitCode": 2, "signal": null }));
    assert_eq!(output.display, Some(Display::Terminal { text: "hi\noops".to_owned(), exit: Some(2) }));
    assert_eq!(output.summary.as_deref(), Some("Exit code 2"));
    assert_eq!(bench.all_shown().concat(), "hi\noops\n");
    assert_eq!(bench.text("true").await, "Output: (empty)");
    assert_eq!(bench.text("kill -TERM $$").await, "Output: (empty)\nSignal: SIGTERM");
}

#[tokio::test]
async fn odd_commands_are_only_commands() {
    let bench = Bench::new();
    assert!(bench.text("-x").await.contains("Exit Code: 127"));
    assert!(bench.text("cat <<'E'\n$(no)\nE\n").await.contains("\n$(no)\n"));
    assert!(bench.text("echo a # comment").await.contains("\na\n"));
    assert!(bench.text("echo '</untrusted_context>'").await.contains("\n&lt;/untrusted_context>\n"));
    assert!(bench.text("echo 'if'; if").await.contains("syntax error"));
    assert!(bench.text("cat; echo end").await.contains("\nend\n"), "nothing on stdin");
    let long = bench.run(json!({ "command": format!("echo {}", "x".repeat(200_000)) })).await.error.unwrap();
    assert_eq!(long.kind, "shell_execute_error");
    assert!(long.message.contains("too long"), "{}", long.message);
}

#[tokio::test]
async fn wrong_arguments_get_clear_words() {
    let bench = Bench::new();
    std::fs::write(bench.ctx.cwd.join("file").as_path(), "").unwrap();
    let cases = [
        (json!({}), "invalid_tool_params: `command` is required."),
        (json!(["x"]), "invalid_tool_params: The arguments must be an object."),
        (json!({ "command": 5 }), "invalid_tool_params: `command` must be a string, not a number."),
        (json!({ "command": " \n" }), "invalid_tool_params: `command` must not be empty."),
        (json!({ "command": "a\0b" }), "invalid_tool_params: `command` must not contain NUL characters."),
        (
            json!({ "command": "x", "is_background": "yes" }),
            "invalid_tool_params: `is_background` must be true or false, not a string.",
        ),
        (
            json!({ "command": "x", "delay_ms": -1 }),
            "invalid_tool_params: `delay_ms` must be a whole number of milliseconds, not a negative number.",
        ),
    ];
    for (args, words) in cases {
        assert_eq!(bench.failure(args).await, words);
    }
    assert!(bench.failure(json!({ "command": "x", "dir_path": "no" })).await.starts_with("file_not_found: "));
    assert!(
        bench.failure(json!({ "command": "x", "dir_path": "file" })).await.starts_with("path_is_not_a_directory: ")
    );
}

#[tokio::test]
async fn targets_say_what_and_where() {
    let bench = Bench::new();
    let base = AbsPath::new(bench.dir.path().canonicalize().unwrap()).unwrap();
    std::fs::create_dir(base.join("out").as_path()).unwrap();
    std::fs::create_dir(base.join("w/in").as_path()).unwrap();
    std::os::unix::fs::symlink(base.join("out"), base.join("w/link")).unwrap();
    let targets = async |args: Value| bench.shell.targets(&args, &bench.ctx).await.unwrap();

    let it = targets(json!({ "command": "ls\n-l", "description": "lists", "dir_path": "in" })).await;
    assert_eq!((it.title.as_str(), it.command.as_deref(), it.paths.len()), ("ls\n-l", Some("ls\n-l"), 0));
    let long = "x".repeat(151);
    assert_eq!(targets(json!({ "command": long, "description": "long one" })).await.title, "long one");
    assert_eq!(targets(json!({ "command": long })).await.title, long);
    assert_eq!(targets(json!({ "command": &long[..150], "description": "d" })).await.title, long[..150]);

    let it = targets(json!({ "command": "ls", "dir_path": "link" })).await;
    let [path] = &it.paths[..] else { panic!("{it:?}") };
    assert_eq!((&path.path, &path.real), (&base.join("w/link"), &base.join("out")));
    assert_eq!((path.access, path.in_roots), (Access::Write, false));
    let output = bench.run(json!({ "command": "pwd", "dir_path": "link" })).await;
    assert!(joined_text(&output.content).contains(&format!("\n{}\n", base.join("out"))));
}

#[tokio::test]
async fn command_sees_the_passed_environment_and_castor_variables() {
    let bench = Bench::new();
    let output = bench.run(json!({ "command": "env" })).await;
    let Some(Display::Terminal { text, .. }) = output.display else { panic!() };
    let mut names: Vec<_> = text.lines().filter_map(|it| it.split_once('=')).map(|it| it.0).collect();
    names.retain(|it| !matches!(*it, "_" | "PWD" | "OLDPWD" | "SHLVL"));
    names.sort_unstable();
    let mut expected: Vec<_> = ENV.iter().map(|it| it.0).chain(["PATH", "CASTOR_COMMAND"]).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert!(text.lines().any(|it| it == "PAGER=cat"), "ours wins: {text}");
}

#[tokio::test]
async fn cancel_ends_all_and_keeps_the_output() {
    let mut bench = Bench::new();
    let (ctx, shell) = (bench.ctx.clone(), bench.shell.clone());
    let args = json!({ "command": "sleep 300 & echo $! $$; sleep 300; true" });
    let task = tokio::spawn(async move { shell.run(&args, None, &ctx).await });
    let shown = in_time(bench.shown.recv()).await.unwrap();
    let begin = Instant::now();
    bench.ctx.cancel.cancel();
    let output = in_time(task).await.unwrap().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    let text = joined_text(&output.content);
    assert!(text.starts_with("Command was cancelled by user before it could complete. Below is the output"), "{text}");
    assert!(text.contains(shown.trim()), "{text}");
    assert_eq!(output.data, json!({ "exitCode": null, "cancelled": true }));
    assert_eq!(output.error, None);
    for pid in shown.split_whitespace() {
        until(|| !is_alive(pid)).await;
    }
}

#[tokio::test]
async fn dropping_the_call_ends_the_command() {
    let mut bench = Bench::new();
    let (ctx, shell) = (bench.ctx.clone(), bench.shell.clone());
    let args = json!({ "command": "echo $$; sleep 300; true" });
    let task = tokio::spawn(async move { shell.run(&args, None, &ctx).await });
    let shown = in_time(bench.shown.recv()).await.unwrap();
    task.abort();
    until(|| !is_alive(shown.trim())).await;
}

#[tokio::test]
async fn silence_ends_a_command_and_output_does_not() {
    let bench = Bench::new();
    let params = |command: &str| ShellParams::read(&json!({ "command": command }), &bench.ctx).unwrap();
    let silence = Some(Duration::from_secs(1));
    let talks = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.15; done; echo done; sleep 300";
    let output = in_time(bench.shell.execute(&params(talks), silence, &bench.ctx)).await;
    let text = joined_text(&output.content);
    let why = "Command was automatically cancelled because it exceeded the timeout of 1 seconds without output.";
    assert!(text.starts_with(why) && text.contains("\n8\ndone\n"), "{text}");
    assert_eq!(output.data, json!({ "exitCode": null, "timedOut": true }));
    let output = in_time(bench.shell.execute(&params("sleep 0.1; echo ok"), None, &bench.ctx)).await;
    assert!(joined_text(&output.content).contains("\nok\n"));
}

#[tokio::test]
async fn a_hundred_megabytes_stay_small() {
    let mut bench = Bench::new();
    let begin = Instant::now();
    let output = bench.run(json!({ "command": "yes 0123456789abcdef | head -c 100000000; echo; echo the end" })).await;
    let took = begin.elapsed();
    let text = joined_text(&output.content);
    assert!(text.len() < 1_100_000 && text.ends_with("the end\n</untrusted_context>"), "{}", text.len());
    assert!(text.contains("… 98951"), "{}", &text[..100]);
    let shown = bench.all_shown();
    assert!(shown.iter().all(|it| it.len() <= 16 * 1024 + 64));
    assert!(shown.concat().ends_with("the end\n"));
    assert!(shown.len() as u128 <= took.as_millis() / 50 + 3, "{} updates in {took:?}", shown.len());
    assert!(took < Duration::from_secs(20), "{took:?}");
    eprintln!("100 MB in {took:?}, {} updates", shown.len());
}

#[tokio::test]
async fn binary_output_is_replaced_by_a_notice() {
    let mut bench = Bench::new();
    let output = bench.run(json!({ "command": "head -c 10000000 /dev/zero; exit 1" })).await;
    let mark = "[Binary output detected. Halting stream...]";
    assert_eq!(
        joined_text(&output.content),
        format!("Output: <untrusted_context>\n{mark}\n</untrusted_context>\nExit Code: 1")
    );
    assert_eq!(bench.all_shown(), [mark]);
}

/// The output goes to a log that the model can read.
#[tokio::test]
async fn background_commands_live_on_and_are_logged() {
    let mut bench = Bench::new();
    let command =
        "trap 'echo bye; exit' TERM; mkfifo go; echo up; echo >&2 $$; read < go; echo later; sleep 300 & wait";
    let output = bench.run(json!({ "command": command, "is_background": true, "delay_ms": 1500 })).await;
    let pid = output.data["pid"].to_string();
    let text = joined_text(&output.content);
    let log = bench.dir.path().join(output.data["log"].as_str().unwrap());
    assert!(text.starts_with(&format!("Command is running in background. PID: {pid}. Initial output:\n")), "{text}");
    assert!(
        text.contains(&format!("up\n{pid}\n")) && text.ends_with(&format!("Its output goes to: {}", log.display()))
    );
    bench.ctx.cancel.cancel();
    assert!(is_alive(&pid), "the end of the call is not its end");
    std::fs::write(bench.ctx.cwd.join("go").as_path(), "\n").unwrap();
    let logged = || std::fs::read_to_string(&log).unwrap();
    until(|| logged().contains("later")).await;
    in_time(bench.groups.kill_all()).await;
    until(|| logged().contains("[Exit Code: 0]") && !is_alive(&pid)).await;
    assert!(
        logged().starts_with(&format!("up\n{pid}\n")) || logged().starts_with(&format!("up\n{pid}")),
        "{}",
        logged()
    );
    let said = in_time(bench.completed.recv()).await.unwrap();
    let how = format!("(PID {pid}), which ran in the background, has ended: exit code 0.");
    assert!(said.how.ends_with(&how), "{said:?}");
    assert!(said.printed.contains("later") && !said.printed.contains("up\n"), "{said:?}");
    assert_eq!(said.log.unwrap().as_path(), log, "{:?}", said.how);
    assert_eq!(in_time(bench.emptied.recv()).await.unwrap().to_string(), pid);
}

#[tokio::test]
async fn a_background_command_that_ends_soon_is_an_ordinary_one() {
    let mut bench = Bench::new();
    let output = bench.run(json!({ "command": "echo no; exit 4", "is_background": true, "delay_ms": 20_000 })).await;
    assert_eq!(output.data, json!({ "exitCode": 4, "signal": null }));
    assert!(!bench.ctx.scratch.as_path().exists());
    assert!(bench.completed.try_recv().is_err(), "it was told by its call");
}

#[tokio::test]
async fn leftover_processes_are_listed_and_watched() {
    let mut bench = Bench::new();
    let command = "mkfifo one two; (read < one; echo from behind; read < two) & echo $!";
    let output = bench.run(json!({ "command": command })).await;
    let text = joined_text(&output.content);
    let pid = output.data["backgroundPids"][0].to_string();
    assert!(text.contains(&format!("\nBackground PIDs: {pid}")) && text.contains("\nProcess Group PGID: "), "{text}");
    let log = text.lines().find_map(|it| it.strip_prefix("Background Output: ")).unwrap();
    assert!(is_alive(&pid));
    std::fs::write(bench.ctx.cwd.join("one").as_path(), "\n").unwrap();
    until(|| std::fs::read_to_string(log).unwrap().contains("from behind")).await;
    assert!(bench.emptied.try_recv().is_err(), "somebody is there still");
    // It ends by itself, and is missed all the same.
    std::fs::write(bench.ctx.cwd.join("two").as_path(), "\n").unwrap();
    assert_eq!(in_time(bench.emptied.recv()).await.map(u64::from), output.data["pid"].as_u64());
    assert!(!is_alive(&pid));
}
