//! `castor run`: one prompt to an agent in a child process, over the Agent Client Protocol.

pub mod ask;
pub mod input_args;
mod input_events;
mod json_answer;
mod prompts;
mod raw_answer;
pub mod report;
pub mod screen;
pub mod stream_json;
pub mod text_buffer;
pub mod turn;
mod turn_output;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_report;

use std::{
    io,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use self::{
    ask::{Keyboard, TerminalAsker},
    input_args::InputFormat,
    input_events::EventPrompts,
    json_answer::AnswerSchema,
    prompts::RunPrompts,
    screen::{Screen, ScreenStyle},
    turn::Driver,
};
use super::{
    args::{OutputFormat, RunArgs},
    client::{
        attachments::{self, AttachmentFolder},
        child::{Agent, AgentCommand},
        earlier_session,
        link::AgentLink,
        prompt::{self, Prompt},
        signals::listen_signals,
        start::{
            RunContext, ask_trust, check_sandbox, demo_notes, launch, needs_demo, session_folder, session_request,
            start_agent,
        },
    },
    terminal_text::clean_line,
};
use castor_agent::session::confinement;
use castor_base::{model::DEMO, path::AbsPath};
use castor_client::{
    failure::{self, Exit, Failure},
    machine::ClientRequest,
    opening::SessionRequest,
};
use castor_hands::secrets::Env;

/// Most characters of a note on a file.
const MAX_NOTE: usize = 600;
/// How long the last words may take when the user wants to leave at once.
const HURRY: Duration = Duration::from_millis(200);
const RAW_NOTE: &str =
    "--raw-output: terminal controls of the model reach what shows the answer; --accept-raw-output-risk hides this";

/// Runs to the end and gives the exit code.
pub fn run(args: RunArgs, context: RunContext) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(it) => it,
        Err(error) => {
            eprintln!("castor: cannot start: {error}");
            return ExitCode::from(Exit::Failed.code());
        }
    };
    let exit = runtime.block_on(run_to_exit(args, context));
    // Threads may still wait for the terminal or for stdin; nothing is owed to them.
    runtime.shutdown_background();
    ExitCode::from(exit.code())
}

async fn run_to_exit(mut args: RunArgs, context: RunContext) -> Exit {
    let look = ScreenStyle {
        format: args.output_format,
        stdout_is_terminal: context.stdout_is_terminal,
        stderr_is_terminal: context.stderr_is_terminal,
        is_live: context.is_live,
        stdout_color: context.stdout_color,
        color: context.stderr_color,
        is_raw: args.gemini.raw_output,
        holds_answer: args.input.json_schema.is_some(),
    };
    let look = if look.is_raw { look.unpainted() } else { look };
    let mut screen = Screen::new(look, io::stdout(), io::stderr());
    if look.is_raw && look.format == OutputFormat::Text && !args.gemini.accept_raw_output_risk {
        screen.note(RAW_NOTE);
    }
    let started = Instant::now();
    // Stdin may be a pipe: questions go to the terminal itself.
    let interactive = context.can_ask();
    let prepared = prepare(&mut args, context, &mut screen).await;
    screen.flush();
    let running = prepared.and_then(|it| start_agent(&it.launch).map(|agent| (it, agent)));
    let (prepared, (mut agent, pipes)) = match running {
        Ok(it) => it,
        Err(failure) => {
            let exit = failure.exit;
            screen.conclude(None, &Err(failure), started.elapsed());
            return exit_after_write(screen.finish().await, exit);
        }
    };
    screen.set_cwd(&prepared.request.cwd);
    screen.changes.roots.extend(prepared.request.additional.iter().map(PathBuf::from));
    // Nothing is paid for these, so there is nothing unknown about the cost.
    screen.end.is_free = args.agent_args.script.is_fake() || args.agent_args.model.as_deref() == Some(DEMO);
    let asker =
        TerminalAsker::new(if interactive { Keyboard::Terminal } else { Keyboard::Nobody }, &prepared.request.cwd);
    let signals = match listen_signals() {
        Ok(it) => it,
        Err(error) => {
            eprintln!("castor: signals cannot be heard: {error}");
            return Exit::Failed;
        }
    };
    let mut driver = Driver::new(AgentLink::connect(pipes), signals, screen, asker);
    let request = SessionRequest { interactive, ..prepared.request };
    let end = converse(&mut driver, request, prepared.prompts, Some(&mut agent)).await;
    let exit = conclude(driver, end, started.elapsed()).await;
    // Also who quits leaves it a moment: an agent that is killed cannot tidy up.
    if !agent.wait_or_kill().await {
        confinement::remove_leftovers(&Env::from_process());
    }
    exit
}

/// What is known before anything is started.
struct PreparedRun {
    prompts: RunPrompts,
    launch: AgentCommand,
    request: SessionRequest,
}

async fn prepare(args: &mut RunArgs, context: RunContext, screen: &mut Screen) -> Result<PreparedRun, Failure> {
    let can_ask = context.can_ask();
    let cwd = session_folder(args, &context.cwd)?;
    earlier_session::settle(args, &cwd)?;
    let is_piped = !context.stdin_is_terminal && !args.no_stdin;
    let prompts = read_prompts(args, is_piped, &cwd, screen).await?;
    check_sandbox(args)?;
    if can_ask {
        ask_trust(args, &cwd)?.iter().for_each(|it| screen.note(it));
    }
    if let Some(keys) = needs_demo(args, || (context.model_access)(&cwd)) {
        for it in demo_notes(&keys, context.stderr_is_terminal).await {
            screen.note(&it);
        }
        args.agent_args.model = Some("demo".to_owned());
    }
    let request = SessionRequest {
        events: args.output_format == OutputFormat::Events,
        instructions: args.input.instructions(&cwd)?,
        ..session_request(args, &cwd)?
    };
    let launch = launch(args)?;
    Ok(PreparedRun { prompts, launch, request })
}

/// What is asked, and what the answer has to be.
async fn read_prompts(
    args: &RunArgs,
    is_piped: bool,
    cwd: &AbsPath,
    screen: &mut Screen,
) -> Result<RunPrompts, Failure> {
    let schema = args.input.json_schema.as_ref().map(|it| AnswerSchema::load(it, cwd)).transpose()?;
    let images = attachments::read_images(&args.input.image, cwd)?;
    let (mut first, more) = match args.input.input_format {
        InputFormat::Text => (read_prompt(args.typed(), is_piped, cwd, screen).await?, None),
        InputFormat::Events => {
            let (first, more) = EventPrompts::open(args, is_piped).await?;
            (first, Some(more))
        }
    };
    first.attachments.extend(images);
    Ok(RunPrompts { first, more, schema })
}

/// The prompt with the files that it names. `is_piped`: stdin is part of it.
async fn read_prompt(
    typed: Option<&str>,
    is_piped: bool,
    cwd: &AbsPath,
    screen: &mut Screen,
) -> Result<Prompt, Failure> {
    let on_wait = |it: &str| {
        screen.note(it);
        screen.flush();
    };
    let stdin = is_piped.then(io::stdin);
    let (mut prompt, note) = prompt::read(typed, stdin, prompt::PATIENCE, on_wait).await?;
    let mut notes: Vec<String> = note.into_iter().collect();
    if let Some(typed) = typed.filter(|it| attachments::names_files(it))
        && let Some(folder) = AttachmentFolder::load(cwd, &Env::from_process())
    {
        let found = folder.find_files(typed);
        prompt.attachments.extend(found.attachments);
        notes.extend(found.notes.iter().map(|it| clean_line(it, MAX_NOTE)));
    }
    for it in notes {
        screen.note(&it);
    }
    Ok(prompt)
}

/// The whole conversation; gives the stop reason.
async fn converse(
    driver: &mut Driver,
    request: SessionRequest,
    prompts: RunPrompts,
    agent: Option<&mut Agent>,
) -> Result<String, Failure> {
    let is_resumed = request.resume.is_some();
    let reason = match driver.open(request).await? {
        Some(opened) => {
            driver.screen.end.is_free |= opened.is_demo();
            if is_resumed && let Some(listing) = driver.list_changes(ClientRequest::EarlierChanges).await {
                driver.screen.changes.note_known(&listing);
                driver.screen.report.note_known(&listing);
            }
            let reason = prompts::send_all(driver, prompts, opened.capabilities).await;
            if !matches!(&reason, Err(it) if matches!(it.exit, Exit::Quit | Exit::Unread))
                && let Some(listing) = driver.list_changes(ClientRequest::Changes).await
            {
                driver.screen.changes.summarize(&listing);
                driver.screen.report.take_changes(&listing);
            }
            reason?
        }
        None => None,
    };
    let Some(reason) = reason else {
        // The agent left without an answer.
        let why = driver.link.describe_end(agent, " before it answered").await;
        return Err(Failure::new(Exit::Failed, why));
    };
    failure::approval_hint(driver.screen.talk().counts()).map_or(Ok(reason), |it| Err(Failure::new(Exit::Unasked, it)))
}

/// Shows how it ended, and lets go of the agent.
async fn conclude(mut driver: Driver, end: Result<String, Failure>, took: Duration) -> Exit {
    let exit = end.as_ref().err().map_or(Exit::Done, |it| it.exit);
    let session = driver.link.machine.session().map(str::to_owned);
    driver.screen.conclude(session.as_deref(), &end, took);
    let end = match exit {
        Exit::Quit | Exit::Unread => tokio::time::timeout(HURRY, driver.finish()).await.unwrap_or(Ok(())),
        _ => driver.finish().await,
    };
    exit_after_write(end, exit)
}

/// An answer that could not be written was none.
fn exit_after_write(end: io::Result<()>, exit: Exit) -> Exit {
    match (end, exit) {
        (Err(error), Exit::Done | Exit::Unread) => {
            eprintln!("castor: the answer could not be written: {error}");
            Exit::Failed
        }
        (_, exit) => exit,
    }
}
