//! External safety checkers: programs with one JSON value on stdin, one on stdout, and exit code 0.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::{CheckError, CheckSite};
use castor_base::{
    check::{Check, CheckFinding},
    held_program::lack_in_words,
    log::Decision,
    path::AbsPath,
    sandbox::Confinement,
    text,
};
use castor_hands::{
    disk,
    process::{Exit, Groups, PipedProcess, Spawn, Stdin, program_rights::find_lack, sandbox},
};

/// Whoever says more is not understood.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;
/// Longest reason, in characters.
const MAX_REASON: usize = 500;

pub async fn ask(
    check: &Check,
    program: &str,
    args: &[String],
    site: &CheckSite,
    groups: &Groups,
) -> Result<CheckFinding, CheckError> {
    let program = find(program, args, site).await?.to_string();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let confined = site.confined.clone().map(|it| sandbox::current_confinement(&Confinement { read_only: true, ..it }));
    let (cwd, env, stdin) = (&site.cwd, site.env.as_slice(), Stdin::Piped);
    let spawn = Spawn { program: &program, args: &args, cwd, env, stdin, confined: confined.as_ref() };
    let PipedProcess { mut life, mut stdin, stdout, stderr } = spawn.start_piped(groups)?;
    let told = request_json(check, site).to_string();
    let tell = async move {
        // Who decides without reading it may.
        _ = stdin.write_all(told.as_bytes()).await;
    };
    // What it prints there is nobody's business: it was given the conversation.
    let mute = async { _ = tokio::io::copy(&mut { stderr }, &mut tokio::io::sink()).await };
    let read = read_answer(stdout);
    tokio::pin!(read);
    let said = tokio::select! {
        it = &mut read => it,
        never = async { tokio::join!(tell, mute); std::future::pending::<Result<Vec<u8>, CheckError>>().await } => never,
    }?;
    let end = life.wait().await;
    // It was muted: only its sandbox says what it lacked.
    let lack = confined.as_ref().and_then(|it| find_lack(it, cwd, "", &end, ""));
    let lack = lack.map(|it| format!(". {}", lack_in_words(&it))).unwrap_or_default();
    match end {
        Exit { code: Some(0), .. } => finding(&said),
        Exit { code: Some(code), .. } => Err(CheckError::Ended(format!("ended with exit code {code}{lack}"))),
        Exit { signal, .. } => Err(CheckError::Ended(format!("was ended by {}{lack}", signal.unwrap_or_default()))),
    }
}

/// The program's real place. What the agent may write must not be what judges it.
async fn find(program: &str, args: &[String], site: &CheckSite) -> Result<AbsPath, CheckError> {
    let at = AbsPath::written(program, site.home().as_ref()).ok_or(CheckError::NoHome)?;
    let (roots, cwd, args) = (site.roots.clone(), site.cwd.clone(), args.to_vec());
    let look = move || {
        let in_roots = |it: &AbsPath| roots.iter().any(|root| it.is_within(root));
        let real = disk::real_path(&at)?;
        let files = args.iter().map(|it| cwd.join(it)).filter(|it| disk::metadata(it).is_ok_and(|it| !it.is_dir));
        let mut files = files.filter_map(|it| disk::real_path(&it).ok()).chain([real]);
        match files.find(in_roots) {
            Some(it) => Err(CheckError::Refused(it)),
            None => Ok(at),
        }
    };
    tokio::task::spawn_blocking(look).await?
}

fn request_json(check: &Check, site: &CheckSite) -> Value {
    let mut context = serde_json::Map::new();
    if check.checker.context.environment {
        context.insert("environment".to_owned(), json!({ "cwd": site.cwd, "workspaces": site.roots }));
    }
    if let Some(turns) = &check.history {
        context.insert("history".to_owned(), json!({ "turns": turns }));
    }
    let call = &check.call;
    let mut res = json!({
        "protocolVersion": "1.0.0",
        "toolCall": { "id": call.id, "name": call.name, "args": call.args },
        "context": context,
    });
    if let (Some(map), false) = (res.as_object_mut(), check.checker.config.is_null()) {
        map.insert("config".to_owned(), check.checker.config.clone());
    }
    res
}

async fn read_answer(stdout: impl AsyncRead + Unpin) -> Result<Vec<u8>, CheckError> {
    let mut res = Vec::new();
    let read = stdout.take(MAX_ANSWER_BYTES + 1).read_to_end(&mut res).await;
    read.map_err(CheckError::Unreadable)?;
    match res.len() as u64 > MAX_ANSWER_BYTES {
        true => Err(CheckError::BadAnswer(format!("it said more than {} KiB", MAX_ANSWER_BYTES / 1024))),
        false => Ok(res),
    }
}

#[derive(Deserialize)]
struct CheckerAnswer {
    decision: CheckerWord,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum CheckerWord {
    Allow,
    Deny,
    AskUser,
}

fn finding(said: &[u8]) -> Result<CheckFinding, CheckError> {
    let said: CheckerAnswer = serde_json::from_slice(said).map_err(|it| {
        let head = escape_line(&String::from_utf8_lossy(said), 60);
        CheckError::BadAnswer(format!("its answer is no verdict ({head}): {it}"))
    })?;
    let decision = match said.decision {
        CheckerWord::Allow => return Ok(CheckFinding::allow()),
        CheckerWord::Deny => Decision::Deny,
        CheckerWord::AskUser => Decision::Ask,
    };
    match escape_line(&said.reason, MAX_REASON) {
        it if it.is_empty() => Err(CheckError::BadAnswer("it gave no reason".to_owned())),
        reason => Ok(CheckFinding { decision, reason }),
    }
}

/// One line, with nothing in it that a terminal would obey.
fn escape_line(text: &str, max: usize) -> String {
    text::first_line(text, max).chars().fold(String::new(), |mut res, it| {
        match it.is_control() {
            true => _ = write!(res, "{}", it.escape_default()),
            false => res.push(it),
        }
        res
    })
}

#[cfg(test)]
mod tests;
