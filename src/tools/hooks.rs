//! Runs a hook command: JSON on stdin, the answer on stdout and in the exit code.

use std::{io, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    sync::oneshot,
    time::timeout,
};

use castor_base::{
    fs::BoxFuture,
    held_program::{HeldProgram, HoldReason, ProgramName},
    hook::{Hook, HookEnd, HookReport, HookRun, HookSource},
    path::AbsPath,
    sandbox::Confinement,
};
use castor_hands::{
    disk,
    process::{
        Exit, Groups, PipedProcess, Spawn, Stdin,
        outside::OutsideGate,
        program_rights::{ProgramRights, find_lack},
        sandbox,
    },
};

/// Most that a hook may print on stdout, in bytes: a changed request has to fit.
const MAX_OUTPUT: usize = 4 << 20;
/// What is kept of its stderr.
const MAX_STDERR: usize = 16 << 10;
/// Children that a hook leaves behind may hold its pipes open: after its end they are read this long.
const PIPE_GRACE: Duration = Duration::from_millis(100);

/// The folder, environment and confinement of a hook.
#[derive(Clone, Debug)]
pub struct HookPlace {
    pub cwd: AbsPath,
    /// All of it: nothing else is passed on.
    pub env: Vec<(String, String)>,
    pub confinement: Option<Confinement>,
    /// The user wants it outside: where the gate is open, nothing holds it.
    pub gate: Option<OutsideGate>,
    pub rights: ProgramRights,
}

/// Takes what the user is to know, also long after the run.
pub type Notice = Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>;

/// Runs it to its end, or its timeout; all its processes end with this future. What became of configuration that other
/// programs obey its report says; `notice` is told what is found later, or under one that was cut short.
pub async fn run(run: &HookRun, place: &HookPlace, groups: &Groups, notice: &Notice) -> HookReport {
    if let Some(why) = changed_script(&run.hook).await {
        return HookReport::from_end(HookEnd::NotStarted(why));
    }
    let limit = Duration::from_millis(run.hook.timeout_ms);
    let ended = timeout(limit, run_process(run, place, groups, notice)).await;
    match ended {
        Err(_) => HookReport::from_end(HookEnd::TimedOut),
        Ok(Err(why)) => HookReport::from_end(HookEnd::NotStarted(why.to_string())),
        Ok(Ok(report)) => report,
    }
}

/// Why a script is not what was trusted.
async fn changed_script(hook: &Hook) -> Option<String> {
    let scripts = hook.scripts.clone();
    tokio::task::spawn_blocking(move || disk::changed_file(&scripts)).await.unwrap_or_else(|it| Some(it.to_string()))
}

async fn run_process(run: &HookRun, place: &HookPlace, groups: &Groups, notice: &Notice) -> io::Result<HookReport> {
    let args = ["-c", run.hook.command.as_str()];
    let (confined, refusal) = hold(place).await;
    let confined = confined.as_ref();
    let env: Vec<(String, String)> = place.env.iter().chain(&run.hook.env).cloned().collect();
    let spawn = Spawn { program: "bash", args: &args, cwd: &place.cwd, env: &env, stdin: Stdin::Piped, confined };
    let PipedProcess { mut life, mut stdin, stdout, stderr } = spawn.start_piped(groups)?;
    // Gone with this future, also where that is cut short.
    let (_talking, over) = oneshot::channel::<()>();
    if confined.is_some() {
        let (gone, whose, notice) = (life.final_findings(), format!("the hook {:?}", run.hook.key()), notice.clone());
        tokio::spawn(async move {
            _ = over.await;
            if let Some(it) = gone.await.in_words(&whose) {
                notice(it).await;
            }
        });
    }
    let input = Value::Object(run.input.clone()).to_string();
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let mut over = None;
    let exit = {
        let tell = async {
            // A hook that does not listen is none the worse for it.
            _ = stdin.write_all(input.as_bytes()).await;
            drop(stdin);
            Ok(())
        };
        let streams = async { tokio::try_join!(tell, read(stdout, &mut out), drain(stderr, &mut errors)).map(|_| ()) };
        tokio::pin!(streams);
        tokio::select! {
            exit = life.wait() => {
                over = timeout(PIPE_GRACE, &mut streams).await.ok().and_then(Result::err);
                Some(exit)
            }
            end = &mut streams => match end {
                Err(it) => {
                    over = Some(it);
                    None
                }
                Ok(()) => Some(life.wait().await),
            },
        }
    };
    let found = exit.as_ref().and_then(|it| it.findings.in_words("this hook"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&out), text(&errors));
    let said = format!("{stdout}\n{stderr}");
    let (held, kept_in) = held_program(&run.hook, place, (confined.zip(exit.as_ref()), refusal), &said);
    let end = end_of(over.is_some(), exit, confined.is_some());
    let sandbox_note = found.into_iter().chain(kept_in).reduce(|one, other| format!("{one}\n{other}"));
    Ok(HookReport { end, stdout, stderr, sandbox_note, held, changes: None })
}

/// What the user hears of a hook that is held: by a question, and at once. `refusal`: why it is, though its settings say
/// outside.
fn held_program(
    hook: &Hook,
    place: &HookPlace,
    (held, refusal): (Option<(&Confinement, &Exit)>, Option<String>),
    said: &str,
) -> (Option<HeldProgram>, Option<String>) {
    let program = ProgramName::Hook(hook.key().to_owned());
    if let Some(refusal) = refusal {
        let told = format!("It runs in the sandbox, though its settings say outside: {refusal}.");
        let told = place.rights.note_told(&program).then_some(told);
        let roots = place.gate.as_ref().map(|it| it.roots.clone()).unwrap_or_default();
        return (Some(HeldProgram { program, why: HoldReason::Unseen(roots) }), told);
    }
    let lack = held.and_then(|it| lack(hook, place, it, said)).filter(|_| place.rights.note_told(&program));
    (lack.map(|why| HeldProgram { program, why }), None)
}

/// What holds it now, and why it is held though the user wants it outside.
async fn hold(place: &HookPlace) -> (Option<Confinement>, Option<String>) {
    let refusal = match &place.gate {
        Some(it) => it.refusal().await,
        None => None,
    };
    let is_outside = place.gate.is_some() && refusal.is_none();
    let confined = place.confinement.as_ref().filter(|_| !is_outside);
    (confined.map(sandbox::current_confinement), refusal)
}

/// What one of the user's lacked: the workspace's have no key to give it.
fn lack(hook: &Hook, place: &HookPlace, (confined, exit): (&Confinement, &Exit), said: &str) -> Option<HoldReason> {
    let is_users = hook.source == HookSource::User;
    let denial = is_users.then(|| find_lack(confined, &place.cwd, &hook.command, exit, said))?;
    denial.map(HoldReason::Lacks)
}

/// How a hook ended. `too_much`: more was printed than may be.
fn end_of(too_much: bool, exit: Option<Exit>, is_confined: bool) -> HookEnd {
    match exit.filter(|_| !too_much) {
        None => HookEnd::TooMuchOutput,
        Some(Exit { code: Some(sandbox::HELPER_FAILED), .. }) if is_confined => {
            HookEnd::NotStarted("it could not be confined".to_owned())
        }
        Some(Exit { code: Some(code), .. }) => HookEnd::Exit(code),
        Some(Exit { signal, .. }) => HookEnd::Signal(signal.unwrap_or_else(|| "a signal".to_owned())),
    }
}

/// More was printed than may be.
struct TooMuchOutput;

async fn read(from: impl AsyncRead + Unpin, to: &mut Vec<u8>) -> Result<(), TooMuchOutput> {
    // What was read before an error counts.
    _ = from.take(MAX_OUTPUT as u64 + 1).read_to_end(to).await;
    if to.len() > MAX_OUTPUT { Err(TooMuchOutput) } else { Ok(()) }
}

/// Keeps the beginning and reads the rest, or the hook would wait at a full pipe for ever.
async fn drain(mut from: impl AsyncRead + Unpin, to: &mut Vec<u8>) -> Result<(), TooMuchOutput> {
    _ = (&mut from).take(MAX_STDERR as u64).read_to_end(to).await;
    _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc};

    use serde_json::json;

    use super::{HookPlace, MAX_OUTPUT, Notice, disk, run};
    use castor_base::{
        hook::{Hook, HookEnd, HookEvent, HookReport, HookRun, HookSource},
        path::AbsPath,
        trust::ScriptHashes,
    };
    use castor_hands::process::Groups;

    #[allow(clippy::disallowed_methods)]
    async fn ran(command: &str, scripts: ScriptHashes) -> HookReport {
        let hook = Hook {
            event: HookEvent::BeforeTool,
            matcher: None,
            sequential: false,
            observes: false,
            command: command.to_owned(),
            name: None,
            description: None,
            // Who hangs says so.
            timeout_ms: if command.ends_with("600") { 50 } else { 20_000 },
            env: vec![("B".to_owned(), "own".to_owned())],
            source: HookSource::User,
            scripts,
            sandbox: Default::default(),
        };
        let input = json!({"tool_name": "t"}).as_object().cloned().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let env = [("PATH", path.as_str()), ("A", "given"), ("B", "given")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let place = HookPlace {
            cwd: AbsPath::new("/").unwrap(),
            env,
            confinement: None,
            gate: None,
            rights: super::ProgramRights::default(),
        };
        let nobody: Notice = Arc::new(|_| Box::pin(std::future::ready(())));
        run(&HookRun::new(Arc::new(hook), input), &place, &Groups::default(), &nobody).await
    }

    fn exit(code: i32, stdout: &str, stderr: &str) -> HookReport {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        HookReport { stdout, stderr, ..HookReport::from_end(HookEnd::Exit(code)) }
    }

    #[tokio::test]
    async fn talks_and_ends() {
        assert_eq!(ran("cat; echo e >&2; exit 3", vec![]).await, exit(3, r#"{"tool_name":"t"}"#, "e\n"));
        assert_eq!(ran(r#"echo "$A $B $HOME"; pwd"#, vec![]).await, exit(0, "given own \n/\n", ""));
        // It does not listen, and leaves somebody behind who holds the pipes.
        assert_eq!(ran("exec <&-; sleep 600 & echo out", vec![]).await, exit(0, "out\n", ""));
        assert_eq!(ran("kill -9 $$", vec![]).await.end, HookEnd::Signal("SIGKILL".to_owned()));
        let much = format!("head -c {} /dev/zero; sleep 600; :", MAX_OUTPUT + 1);
        assert_eq!(ran(&much, vec![]).await.end, HookEnd::TooMuchOutput);
        assert_eq!(ran("sleep 600", vec![]).await, HookReport::from_end(HookEnd::TimedOut));
        let errors = ran("head -c 1000000 /dev/zero >&2; echo done", vec![]).await;
        assert_eq!((errors.end, errors.stdout.as_str()), (HookEnd::Exit(0), "done\n"));
    }

    #[tokio::test]
    #[allow(clippy::disallowed_methods)]
    async fn a_changed_script_does_not_run() {
        let temp = tempfile::tempdir().unwrap();
        let script = AbsPath::new(temp.path()).unwrap().join("x.sh");
        fs::write(&script, "echo one").unwrap();
        let hash = disk::hash(b"echo one");
        let command = format!("sh {script}");
        assert_eq!(ran(&command, vec![(script.clone(), hash.clone())]).await, exit(0, "one\n", ""));
        fs::write(&script, "echo two").unwrap();
        let why = format!("{script} has changed since you trusted it");
        assert_eq!(ran(&command, vec![(script, hash)]).await.end, HookEnd::NotStarted(why));
    }
}
