//! The exit codes of `castor run`, each from the real processes; 52 is in `run.rs`.

use std::{
    io::Write as _,
    process::{Child, Command, Output, Stdio},
    thread,
    time::Instant,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    client::{Sandbox, WATCHDOG},
    conversation::model,
};

#[test]
fn done() {
    check(Case::answers(&[r#"text "fine""#]), 0, "fine");
}

/// As in `castor run … | head`.
#[test]
fn closed_stdout_pipe_is_no_error() {
    let case = Case::answers(&[r#"text "fine""#]);
    let mut run = case.command().spawn().unwrap();
    drop(run.stdout.take());
    ends_with(run, 0, "");
}

/// A full disk under stdout: the answer is lost, and that is said.
#[test]
#[cfg(target_os = "linux")]
fn not_written() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for format in ["text", "json", "stream-json", "events"] {
        let case = Case::answers(&[r#"text "fine""#]);
        let mut command = case.command();
        let run = command.args(["-o", format]).stdout(full()).spawn().unwrap();
        ends_with(run, 1, "could not be written");
    }
}

/// What every verb prints is lost: that is said in one line. Nobody reads it: nothing is said.
#[test]
#[cfg(target_os = "linux")]
fn verbs_say_that_their_output_is_lost() {
    let case = Case::answers(&[r#"text "fine""#]);
    ends_with(case.command().spawn().unwrap(), 0, "fine");
    let mut sandbox = case.sandbox;
    let verbs = [
        "--help",
        "agents list",
        "auth status",
        "config explain model",
        "doctor",
        "hooks list",
        "permissions",
        "policy list",
        "schema settings",
        "sessions list --all",
        "sessions show latest",
        "sessions export latest",
        "trust list",
    ];
    for verb in verbs {
        sandbox.args = verb.split(' ').map(Into::into).collect();
        let run = |stdout: Stdio| {
            let mut command = sandbox.command();
            let done = command.stdin(Stdio::null()).stdout(stdout).output().unwrap();
            (done.status.code(), String::from_utf8(done.stderr).unwrap())
        };
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (code, said) = run(full.into());
        let why = "castor: the output could not be written: No space left on device (os error 28)\n";
        assert_eq!((code, said.as_str()), (Some(1), why), "{verb}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (code, said) = run(writer.into());
        assert_eq!((code, said.as_str()), (Some(0), ""), "{verb}");
    }
}

/// An agent whose answers are lost says so, and does not pretend that all was well.
#[test]
#[cfg(target_os = "linux")]
fn an_agent_without_room_for_its_answers() {
    let sandbox = Sandbox::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = sandbox.command();
    let agent = command.stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    writeln!(agent.stdin.as_ref().unwrap(), "{hello}").unwrap();
    ends_with(agent, 1, "castor: cannot serve: No space left on device");
}

/// A session goes on in its own mode, which is said; a flag chooses another.
#[test]
fn modes_of_sessions_that_go_on() {
    let touch = |file: &str| format!(r#"call run_shell_command {{"command":"touch {file}"}}"#);
    let case = Case::answers(&[&touch("one"), r#"text "done""#]);
    let run = |flags: &[&str], code: i32, says: &str| {
        ends_with(case.command().args(flags).spawn().unwrap(), code, says);
        case.sandbox.workspace().join("one").exists()
    };
    assert!(run(&["--approval-mode", "yolo"], 0, "touch one"));
    std::fs::remove_file(case.sandbox.workspace().join("one")).unwrap();
    let default = ["--resume", "latest", "--approval-mode", "default"];
    assert!(!run(&default, 56, "needs an approval"));
    // What was not done for want of a user names the way out.
    assert!(!run(&default, 56, "1 call needed an approval, and nobody"));
    assert!(run(&["--resume", "latest", "--approval-mode", "yolo"], 0, "touch one"));
    assert!(run(&["--resume", "latest"], 0, "in the mode yolo"));
}

/// The answer is there, and says what was not done.
#[test]
fn nobody_could_be_asked() {
    let call = r#"call run_shell_command {"command":"npm run build"}"#;
    let case = Case::answers(&[call, r#"text "It was not built.""#]);
    let Output { status, stdout, stderr } = case.command().args(["-o", "json"]).output().unwrap();
    let object: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!((status.code(), &object["response"]), (Some(56), &"It was not built.".into()), "{object}");
    assert_eq!(object["error"]["code"], 56, "{object}");
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(said.matches("nobody could be asked").count(), 1, "{said}");
}

/// What looks like a command and is none was not answered: stdout is empty.
#[test]
fn unknown_command() {
    for format in ["text", "json"] {
        let case = Case::answers(&[]);
        let mut command = case.sandbox.command();
        command.args(["run", "/nope", "-o", format]).args(case.args).stdin(Stdio::null());
        let Output { status, stdout, stderr } = command.output().unwrap();
        let [out, said] = [stdout, stderr].map(|it| String::from_utf8(it).unwrap());
        assert_eq!(status.code(), Some(42), "{said}");
        assert!(said.contains("There is no command `/nope`."), "{said}");
        match format {
            "json" => {
                let object: serde_json::Value = serde_json::from_str(&out).unwrap();
                assert_eq!((&object["response"], &object["error"]["code"]), (&"".into(), &42.into()), "{object}");
            }
            _ => assert_eq!(out, ""),
        }
    }
}

/// A sign-in of another kind than the enforced one is an error in Gemini CLI's shape, too.
#[test]
fn a_sign_in_of_the_wrong_kind_in_json() {
    let settings = r#"{"security": {"auth": {"enforcedType": "vertex-ai"}}}"#;
    let mut case = Case { args: &["-o", "json", "--model", "gemini-3.8-flash"], settings, ..Case::answers(&[]) };
    case.sandbox.env.push(("GEMINI_API_KEY".into(), "canary".into()));
    let Output { status, stdout, stderr } = case.command().output().unwrap();
    let [out, said] = [stdout, stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(status.code(), Some(41), "{out}{said}");
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    let message = object["error"]["message"].as_str().unwrap();
    assert!(
        object["error"]["code"] == 41 && message.contains("security.auth.enforcedType: vertex-ai is the only"),
        "{object}"
    );
    assert!(!out.contains("canary") && !said.contains("canary"), "{out}{said}");
}

/// A program that reads events learns from the last of them how the run failed.
#[test]
fn events_of_a_run_that_does_not_begin() {
    let mut case = Case { args: &["-o", "events", "--model", "gemini-3.8-flash"], ..Case::answers(&[]) };
    case.sandbox.env.clear();
    let Output { status, stdout, stderr } = case.command().output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    let lines: Vec<&str> = std::str::from_utf8(&stdout).unwrap().lines().collect();
    assert_eq!((status.code(), lines.len()), (Some(41), 1), "{said}");
    let object: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!((&object["type"], &object["_meta"]["exitCode"]), (&"error".into(), &41.into()), "{object}");
}

/// One's own limit and the model's have one code and two texts.
#[test]
fn output_limit_of_the_model() {
    check(Case::answers(&[r#"text "All of" + finish MAX_TOKENS"#]), 53, "the model reached its own output limit");
}

/// A command that ran and failed is no call that failed, and not done either.
#[test]
fn sessions_show_exit_codes_of_commands() {
    let call = r#"call run_shell_command {"command":"false"} + call run_shell_command {"command":"sh -c 'exit 128'"}"#;
    let mut case = Case::answers(&[call, r#"text "fine""#]);
    ends_with(case.command().args(["--approval-mode", "yolo"]).spawn().unwrap(), 0, "fine");
    let mut says = |line: &str, parts: &[&str]| {
        case.sandbox.args = line.split(' ').map(Into::into).collect();
        let done = case.sandbox.command().stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(done.stdout).unwrap();
        parts.iter().for_each(|it| assert!(said.contains(it), "{it} in {said}"));
    };
    let exits = ["  ! run_shell_command: false (exit code 1)\n", "exit 128' (exit code 128)\n"];
    says("sessions show latest", &exits);
    says("sessions export latest", &["*(exit code 1", "*(exit code 128"]);
    says("sessions export latest --format html", &["exit code 1"]);
}

#[test]
fn failed() {
    check(Case::answers(&[]), 1, "No more mock responses");
}

/// A stream that ends without a reason is no answer, and what was said of it is not in the output.
#[test]
fn broken_off() {
    let run = |answers: &[&str], attempts: u32, format: &str| {
        let case = Case::answers(answers);
        let mut command = case.command();
        let settings = format!(r#"{{"general": {{"maxAttempts": {attempts}}}}}"#);
        case.sandbox.write("home/.castor/settings.json", &settings);
        let Output { status, stdout, stderr } = command.args(["-o", format]).output().unwrap();
        (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    };
    let half = r#"text "Half of" + finish none"#;
    for format in ["text", "json"] {
        let (code, out, said) = run(&[half], 1, format);
        assert_eq!(code, 1, "{out}{said}");
        assert!(!out.contains("Half") && said.contains("broke off"), "{out}{said}");
        let (code, out, said) = run(&[half, r#"text "Whole.""#], 2, format);
        assert_eq!(code, 0, "{out}{said}");
        assert!(out.contains("Whole.") && !out.contains("Half") && said.contains("does not count"), "{out}{said}");
    }
    // What was said before a call stands.
    let call = r#"text "I look." + call list_directory {"dir_path":"."}"#;
    let (code, out, said) = run(&[call, half], 1, "text");
    assert_eq!((code, out.as_str()), (1, "I look.\n"), "{said}");
    let (code, out, said) = run(&[r#"text """#], 1, "text");
    assert_eq!((code, out.as_str()), (1, ""), "{said}");
}

#[test]
fn not_signed_in() {
    check(Case { args: &["--model", "gemini-4-hydrogen"], ..Case::answers(&[]) }, 41, "castor auth login");
}

/// One line, with a command that fits: fallback models without a key are no news then.
#[test]
fn a_missing_key_takes_one_line() {
    let mut sandbox = Sandbox::new();
    sandbox.args = ["run", "-m", "gemini-3.8-flash", "hi"].map(Into::into).to_vec();
    let Output { status, stderr, .. } = sandbox.command().stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    let expected = "castor: No API key for Gemini. Run `castor auth login` (free key: \
                    https://aistudio.google.com/apikey), or start castor with `-m demo` to try it without one.\n";
    assert_eq!((status.code(), said.as_str()), (Some(41), expected));
}

/// A refusal is no answer: it is not on stdout, the exit code says so, and the model is asked once.
#[test]
fn refused_by_the_provider() {
    for answer in [r#"text "" + finish SAFETY"#, r#"text "I cannot" + finish SAFETY"#] {
        let case = Case::answers(&[answer, r#"text "asked again""#]);
        let Output { status, stdout, stderr } = case.command().output().unwrap();
        let (out, said) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert_eq!(status.code(), Some(1), "{out}{said}");
        assert!(!out.contains("asked again") && !out.contains("stopped this answer"), "{out}");
        assert!(said.contains("The model's provider stopped this answer (SAFETY)."), "{said}");
        assert!(!said.contains("Trying again"), "{said}");
    }
}

/// What was chosen and is not there is said: no model that nobody asked for answers in its place.
#[test]
fn chosen_and_not_there() {
    let google = r#"{"security": {"auth": {"selectedType": "oauth-personal"}}}"#;
    let vertex = ("GOOGLE_GENAI_USE_VERTEXAI", "true");
    let key = ("GEMINI_API_KEY", "canary");
    let enforced = r#"{"security": {"auth": {"enforcedType": "vertex-ai"}}}"#;
    for (settings, env, args, code, says) in [
        (
            enforced,
            &[key][..],
            &[][..],
            41,
            "vertex-ai is the only allowed way to sign in, but castor is signed in by gemini-api-key",
        ),
        (enforced, &[], &[], 41, "vertex-ai is the only allowed way to sign in, and nobody is signed in"),
        (google, &[], &[], 41, "selectedType (oauth-personal) wants Google's login"),
        (google, &[], &[], 41, "Run `castor auth login` (free key: https://aistudio.google.com/apikey)."),
        (google, &[("OPENAI_API_KEY", "x")], &[], 41, "--model openai/NAME"),
        ("{}", &[("GOOGLE_GENAI_USE_GCA", "true")], &[], 41, "castor auth login"),
        ("{}", &[vertex], &[], 41, "Vertex AI is not configured: set GOOGLE_API_KEY"),
        ("{}", &[vertex, ("GOOGLE_CLOUD_PROJECT", "p")], &[], 41, "GOOGLE_CLOUD_LOCATION is not set"),
        ("{}", &[], &["--model", "openai/"], 52, "\"openai/\" names no model: write openai/NAME"),
        (r#"{"model": {"name": "ollama/ "}}"#, &[], &[], 52, "names no model"),
        (r#"{"model": {"name": "gemini-4-hydrogen"}}"#, &[], &[], 41, "castor auth login"),
    ] {
        let mut case = Case { settings, args, ..Case::answers(&[]) };
        case.sandbox.env.extend(env.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        check(case, code, says);
    }
}

#[test]
fn bad_input() {
    check(Case { args: &["--no-such-flag"], ..Case::answers(&[]) }, 42, "--no-such-flag");
    check(Case { args: &["--resume", "no-such-session"], ..Case::answers(&[]) }, 42, "no-such-session");
}

/// Gemini CLI's exit code for a turn limit.
#[test]
fn turn_limit() {
    let settings = r#"{"limits": {"turn": {"requests": 1}}}"#;
    let case = Case { settings, ..Case::answers(&[r#"text "Let me look." + call list_directory {"dir_path":"."}"#]) };
    let Output { status, stdout, stderr } = case.command().output().unwrap();
    let [answer, said] = [stdout, stderr].map(|it| String::from_utf8(it).unwrap());
    // Why it stopped is no part of the answer.
    assert_eq!((status.code(), answer.as_str()), (Some(53), "Let me look.\n"), "{said}");
    let why = "Stopped: this turn reached its limit of 1 model call (1 used).";
    assert!(said.contains(why) && said.contains("a limit was reached"), "{said}");
}

/// Without a word in the settings; time is in `limits-time`.
#[test]
fn limits_by_their_flags() {
    const PRICES: &str = r#"{"model": {"prices": {"script": {"input": 2, "output": 10}}}}"#;
    let cases: [(&[&str], &str); 4] = [
        (&["--max-turns", "1", SCRIPT], "this turn reached its limit of 1 model call"),
        (&["--max-tokens", "100", SCRIPT], "this turn reached its limit of 100 tokens"),
        (&["--max-cost", "0.01", SCRIPT], "this turn reached its limit of"),
        (&["--max-cost", "0.01/session", SCRIPT], "this session reached its limit of"),
    ];
    for (args, says) in cases {
        let answer = r#"call list_directory {"dir_path":"."} + usage 9000 100"#;
        check(Case { settings: PRICES, args, ..Case::answers(&[answer]) }, 53, says);
    }
}

/// A full disk while a file is written: no other call would fare better.
#[test]
#[cfg(target_os = "linux")]
fn fatal_tool() {
    let write = r#"call write_file {"file_path":"made.txt","content":"x"}"#;
    let case = Case { args: &["--approval-mode", "yolo", SCRIPT], ..Case::answers(&[write]) };
    let mut command = case.command();
    no_space::on_rename(&mut command);
    ends_with(command.spawn().unwrap(), 54, "made.txt");
    assert!(!case.sandbox.workspace().join("made.txt").exists());
}

#[test]
fn untrusted_folder() {
    let mut case = Case { args: &["--approval-mode", "yolo", SCRIPT], ..Case::answers(&[]) };
    case.sandbox.env.clear();
    check(case, 55, "trusted");
}

#[test]
fn cancelled() {
    let waits = r#"call run_shell_command {"command":"mkfifo go; echo > started; read < go"}"#;
    let case = Case { args: &["--approval-mode", "yolo", SCRIPT], ..Case::answers(&[waits]) };
    let run = case.command().spawn().unwrap();
    let (start, started) = (Instant::now(), case.sandbox.workspace().join("started"));
    while !started.exists() {
        assert!(start.elapsed() < WATCHDOG, "the command was not started");
        thread::yield_now();
    }
    kill(Pid::from_raw(run.id().cast_signed()), Signal::SIGINT).unwrap();
    ends_with(run, 130, "cancelled");
}

pub const SCRIPT: &str = "--fake-responses=script.jsonl";

/// Who is ended leaves the agent a moment: nothing that stood in for configuration stays in the folder.
#[test]
fn terminated_while_a_command_runs() {
    assert_eq!(left_when_terminated(|_| ()), ["script.jsonl", "there"]);
}

/// Nor where the agent does not hear of it, and is killed.
#[cfg(target_os = "linux")]
#[test]
fn terminated_while_the_agent_hangs() {
    let stop = |run: u32| {
        for agent in children(run) {
            kill(agent, Signal::SIGSTOP).unwrap();
        }
    };
    assert_eq!(left_when_terminated(stop), ["script.jsonl", "there"]);
}

/// What is in the folder when `castor run` was ended while a command ran.
fn left_when_terminated(before: impl FnOnce(u32)) -> Vec<std::ffi::OsString> {
    let command = r#"call run_shell_command {"command": "echo > there; sleep 3333"}"#;
    let mut case = Case::answers(&[command]);
    case.args = &[SCRIPT, "--approval-mode", "yolo"];
    let run = case.command().spawn().unwrap();
    let (start, there) = (Instant::now(), case.sandbox.workspace().join("there"));
    while !there.exists() {
        assert!(start.elapsed() < WATCHDOG, "the command does not begin");
        thread::yield_now();
    }
    before(run.id());
    kill(Pid::from_raw(run.id().cast_signed()), Signal::SIGTERM).unwrap();
    ends_with(run, 130, "");
    let mut left: Vec<_> =
        std::fs::read_dir(case.sandbox.workspace()).unwrap().map(|it| it.unwrap().file_name()).collect();
    left.sort();
    left
}

/// The processes that any thread of this one started.
#[cfg(target_os = "linux")]
fn children(pid: u32) -> Vec<Pid> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|it| it.unwrap().path());
    let lists = threads.map(|it| std::fs::read_to_string(it.join("children")).unwrap_or_default());
    lists
        .flat_map(|it| it.split_whitespace().map(|it| Pid::from_raw(it.parse().unwrap())).collect::<Vec<_>>())
        .collect()
}

/// `castor run` with a scripted model.
pub struct Case {
    pub sandbox: Sandbox,
    pub args: &'static [&'static str],
    pub settings: &'static str,
}

impl Case {
    pub fn answers(answers: &[&str]) -> Self {
        let mut sandbox = Sandbox::new();
        sandbox.args.clear();
        let lines: Vec<String> = answers.iter().map(|it| model::response(it).unwrap().to_string() + "\n").collect();
        sandbox.write("ws/script.jsonl", &lines.concat());
        Self { sandbox, args: &[SCRIPT], settings: "{}" }
    }

    pub fn command(&self) -> Command {
        self.sandbox.write("home/.castor/settings.json", self.settings);
        let mut command = self.sandbox.command();
        command.args(["run", "go"]).args(self.args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn check(case: Case, code: i32, says: &str) {
    ends_with(case.command().spawn().unwrap(), code, says);
}

fn ends_with(run: Child, code: i32, says: &str) {
    let Output { status, stdout, stderr } = run.wait_with_output().unwrap();
    let said = String::from_utf8([stdout, stderr].concat()).unwrap();
    assert_eq!(status.code(), Some(code), "{said}");
    assert!(said.contains(says), "{said}");
}

/// A kernel that has no space left for a new name, as a full disk's has not; for one process and its children.
#[cfg(target_os = "linux")]
mod no_space {
    use std::{io, os::unix::process::CommandExt, process::Command};

    use libc::{
        BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, sock_filter,
    };

    fn line(code: u32, jump: u8, k: u32) -> sock_filter {
        sock_filter { code: code as u16, jt: jump, jf: 0, k }
    }

    pub fn on_rename(command: &mut Command) {
        let calls = [
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename,
            #[cfg(not(target_arch = "riscv64"))]
            libc::SYS_renameat,
            libc::SYS_renameat2,
        ];
        // The number of the call is the first thing that a filter is shown.
        let mut filter = vec![line(BPF_LD | BPF_W | BPF_ABS, 0, 0)];
        for (at, call) in calls.iter().enumerate() {
            let to_no = (calls.len() - at) as u8;
            filter.push(line(BPF_JMP | BPF_JEQ | BPF_K, to_no, *call as u32));
        }
        filter.push(line(BPF_RET | BPF_K, 0, SECCOMP_RET_ALLOW));
        filter.push(line(BPF_RET | BPF_K, 0, SECCOMP_RET_ERRNO | libc::ENOSPC as u32));
        let install = move || {
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
            // SAFETY: two system calls; the filter lives in the closure, and the kernel copies it.
            let set = unsafe {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                    && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
            };
            if set { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        // SAFETY: nothing between fork and exec but those calls.
        unsafe { command.pre_exec(install) };
    }
}
