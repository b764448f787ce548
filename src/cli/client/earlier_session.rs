//! Earlier sessions that `castor run -c` and `-r` continue: short ids, and a list to choose from.

use std::{
    fs::File,
    io::{BufRead, BufReader, Write},
};

use crate::cli::{
    args::{CHOOSE, RunArgs},
    sessions::{self, CommandContext, CommandError, CommandLook, list, numbered},
    terminal_text::{clean_line, typed_line},
};
use castor_agent::server::{event_loop::unix_ms, serve};
use castor_base::{
    clock::Now,
    ids::{MIN_NAMED, SessionId},
    path::AbsPath,
};
use castor_client::failure::{Exit, Failure};
use castor_hands::secrets::Env;
use castor_tools::workspace;

/// Sessions to choose from.
const N_CHOICES: usize = 10;
const LATEST: &str = "latest";
const MAX_WORDS: usize = 200;

/// The user at the terminal: shows a text, and gives the next line, or `None` at the end.
pub type AskLine<'a> = dyn FnMut(&str) -> Option<String> + 'a;

/// Sets `resume` to the id of a session, or to `latest`. castor's own sessions are looked up here, before an agent runs.
pub fn settle(args: &mut RunArgs, cwd: &AbsPath) -> Result<(), Failure> {
    if args.session.continue_last {
        args.session.resume = Some(LATEST.to_owned());
    }
    if let Some(id) = args.gemini.session_id.clone() {
        return check_new_id(&id);
    }
    let Some(word) = args.session.resume.clone().filter(|it| it != LATEST) else { return Ok(()) };
    if word.contains(char::is_whitespace) {
        return Err(Failure::input(taken_for_id(&word)));
    }
    if args.session.agent.is_some() {
        return match word == CHOOSE {
            true => Err(Failure::input("-r needs the id of a session, or latest, where --agent names another agent")),
            false => Ok(()),
        };
    }
    let env = Env::from_process();
    let look = CommandLook::of_process(&env);
    let home = workspace::castor_home(&env).ok_or_else(|| Failure::input(workspace::NO_HOME))?;
    let store = serve::open_store(home, None, &env).map_err(Failure::input)?;
    let mut out = Vec::new();
    let has_prompt = args.typed().is_some() || look.is_piped;
    let now = Now { unix_ms: unix_ms(), seed: 0 };
    let mut context = CommandContext { store: &store, cwd, now, out: &mut out, ask: None, look };
    let chosen = match word == CHOOSE {
        true => choose_on_terminal(&mut context, args),
        false => find_named_session(&context, &word),
    };
    let chosen = chosen.map_err(|it| match word == CHOOSE || has_prompt {
        true => Failure::input(it.why),
        false => Failure::input(taken_for_id(&word)),
    })?;
    if chosen.is_none() {
        return Err(Failure::new(Exit::Quit, "no session was chosen"));
    }
    args.session.resume = chosen;
    Ok(())
}

/// Two sessions of one id would share a log.
fn check_new_id(id: &str) -> Result<(), Failure> {
    let id = SessionId::from(id);
    // A shorter one could not be named: it would be a number, or a slip.
    if !id.is_safe() || id.as_str() == LATEST || id.as_str().len() < MIN_NAMED {
        let why = format!("it needs {MIN_NAMED} characters at least, all of them letters, digits, `-` or `_`");
        return Err(Failure::input(format!("--session-id {:?}: {why}", clean_line(id.as_str(), MAX_WORDS))));
    }
    let env = Env::from_process();
    let home = workspace::castor_home(&env).ok_or_else(|| Failure::input(workspace::NO_HOME))?;
    match serve::open_store(home, None, &env).map_err(Failure::input)?.has(&id) {
        true => Err(Failure::input(format!("there is a session {id} already: -r {id} continues it"))),
        false => Ok(()),
    }
}

fn find_named_session(context: &CommandContext<'_>, word: &str) -> Result<Option<String>, CommandError> {
    match numbered::find(context, word)? {
        Some(id) => Ok(Some(id)),
        None => sessions::find(context, word).map(|it| Some(it.to_string())),
    }
}

fn taken_for_id(words: &str) -> String {
    let words = clean_line(words, MAX_WORDS);
    format!(
        "-r takes the id of a session, and {words:?} is none. To ask this in the last session: castor run -c {words:?}. \
         To choose the session: castor run {words:?} -r"
    )
}

fn choose_on_terminal(context: &mut CommandContext<'_>, args: &mut RunArgs) -> Result<Option<String>, CommandError> {
    // A script that names no session means the last one.
    let Some(mut terminal) = Terminal::open() else { return Ok(Some(LATEST.to_owned())) };
    choose(context, args, &mut |text| terminal.ask(text))
}

/// Lets the user choose among the latest sessions, and asks for the prompt if there is none yet. `None`: the user left.
fn choose(
    context: &mut CommandContext<'_>,
    args: &mut RunArgs,
    ask: &mut AskLine<'_>,
) -> Result<Option<String>, CommandError> {
    let (ids, lines) = list::choices(context, N_CHOICES)?;
    if ids.is_empty() {
        let why = format!("no session of {}; `castor sessions list --all` has those of other folders", context.cwd);
        return Err(CommandError::input(why));
    }
    let mut text = lines;
    let id = loop {
        text += &format!("Continue which session, 1-{} [1], q leaves: ", ids.len());
        let Some(line) = ask(&text) else { return Ok(None) };
        let typed = line.trim();
        if is_leave(typed) {
            return Ok(None);
        }
        let number = if typed.is_empty() { Ok(1) } else { typed.parse::<usize>() };
        match number.ok().and_then(|it| ids.get(it.checked_sub(1)?)) {
            Some(id) => break id.to_string(),
            None => text = not_in_list(typed),
        }
    };
    if args.typed().is_none() && !context.look.is_piped {
        args.prompt = Some(ask("> ").ok_or_else(|| CommandError::input("nothing to ask"))?);
    }
    Ok(Some(id))
}

/// `q`, `-`, or Esc and whatever follows it.
fn is_leave(typed: &str) -> bool {
    typed.starts_with('\u{1b}') || ["q", "quit", "-"].iter().any(|it| typed.eq_ignore_ascii_case(it))
}

fn not_in_list(typed: &str) -> String {
    let shown = typed_line(typed, MAX_WORDS);
    match shown.trim() {
        "" => "  This is no number of the list. ".to_owned(),
        it => format!("  {it:?} is no number of the list. "),
    }
}

/// The terminal itself: stdin may carry part of the prompt, and stdout the answer.
struct Terminal {
    input: BufReader<File>,
    output: File,
}

impl Terminal {
    fn open() -> Option<Self> {
        // A terminal is no file of anybody's: there is nothing for the disk's rules to guard.
        #[allow(clippy::disallowed_methods)]
        let output = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { input: BufReader::new(output.try_clone().ok()?), output })
    }

    fn ask(&mut self, text: &str) -> Option<String> {
        self.output.write_all(text.as_bytes()).ok()?;
        let mut line = String::new();
        self.input.read_line(&mut line).ok().filter(|it| *it > 0)?;
        Some(line.trim_end_matches(['\n', '\r']).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{CHOOSE, RunArgs, choose, settle};
    use crate::cli::{
        args::SessionArgs,
        sessions::{CommandContext, CommandLook},
    };
    use castor_base::{clock::Now, ids::SessionId, path::AbsPath};
    use castor_store::sessions::SessionStore;

    fn args(resume: &str) -> RunArgs {
        let session = SessionArgs { resume: Some(resume.to_owned()), ..SessionArgs::default() };
        RunArgs { session, ..RunArgs::default() }
    }

    #[test]
    fn a_prompt_is_no_id() {
        let cwd = AbsPath::new("/w").unwrap();
        let why = settle(&mut args("and now?"), &cwd).unwrap_err();
        assert_eq!(why.exit.code(), 42);
        assert!(why.message.contains("castor run -c \"and now?\""), "{}", why.message);
        let session = SessionArgs { continue_last: true, ..SessionArgs::default() };
        let mut last = RunArgs { session, ..RunArgs::default() };
        settle(&mut last, &cwd).unwrap();
        assert_eq!(last.session.resume.as_deref(), Some("latest"));
        let mut other = args(CHOOSE);
        other.session.agent = Some("cat".to_owned());
        assert_eq!(settle(&mut other, &cwd).unwrap_err().exit.code(), 42);
    }

    /// A session of the folder for each title, and what comes of the typed lines.
    fn chosen(titles: &[&str], typed: &[&str], args: &mut RunArgs) -> (Result<Option<String>, String>, String) {
        let dir = tempfile::tempdir().unwrap();
        let (home, cwd) = (AbsPath::new(dir.path().join("home")).unwrap(), AbsPath::new("/w").unwrap());
        let store = SessionStore::new(home);
        for (n, title) in titles.iter().enumerate() {
            let id = format!("01a20986-0000-{n:05}");
            let event = |kind: serde_json::Value| {
                let mut event = json!({"id": "s-0", "streamId": "s", "timestamp": 2});
                event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
                serde_json::from_value(json!({"at": 2, "fact": "event", "event": event})).unwrap()
            };
            let log = [
                serde_json::from_value(json!({"at": 1, "fact": "created", "version": 1, "castor": "0", "session": id,
                    "cwd": "/w", "roots": ["/w"], "mode": "default", "model": "demo"}))
                .unwrap(),
                event(json!({"type": "message", "role": "user", "messageId": "m1", "content": []})),
                event(json!({"type": "session_update", "title": title})),
            ];
            store.create_with(&SessionId::from(id), &log).unwrap();
        }
        let (mut out, now) = (Vec::new(), Now { unix_ms: 0, seed: 0 });
        let look = CommandLook { width: 60, ..CommandLook::default() };
        let mut context = CommandContext { store: &store, cwd: &cwd, now, out: &mut out, ask: None, look };
        let (mut seen, mut typed) = (String::new(), typed.iter());
        let mut ask = |text: &str| {
            seen.push_str(text);
            typed.next().map(|it| (*it).to_owned())
        };
        let done = choose(&mut context, args, &mut ask).map_err(|it| it.why);
        assert_eq!(typed.next(), None);
        (done, seen)
    }

    #[test]
    fn a_number_chooses_a_session() {
        let mut with_prompt = RunArgs { prompt: Some("go".to_owned()), ..args(CHOOSE) };
        let titles = ["Alpha", "Beta\u{1b}[2J", "Gamma"];
        let (id, seen) = chosen(&titles, &["4", "x", "2"], &mut with_prompt);
        let id = id.unwrap().unwrap();
        assert!(seen.contains("\n 3  ") && seen.contains("1-3 [1], q leaves: ") && !seen.contains('\u{1b}'), "{seen}");
        assert_eq!(seen.matches("is no number of the list").count(), 2, "{seen}");
        let row = seen.lines().find(|it| it.starts_with(" 2  ")).unwrap();
        assert!(row.contains(&id[id.len() - 5..]), "{id} {row}");

        let mut without = args(CHOOSE);
        let (id, _) = chosen(&titles, &["", "and now?"], &mut without);
        assert!(id.is_ok() && without.prompt.as_deref() == Some("and now?"));
        assert_eq!(chosen(&titles, &[], &mut without).0, Ok(None));
        assert!(chosen(&[], &[], &mut without).0.unwrap_err().starts_with("no session of /w"));
    }

    #[test]
    fn a_user_can_leave_the_list() {
        for typed in ["q", "Q", " - ", "\u{1b}", "\u{1b}[A"] {
            let mut args = args(CHOOSE);
            assert_eq!(chosen(&["Alpha"], &["7", typed], &mut args).0, Ok(None), "{typed:?}");
            assert_eq!(args.prompt, None);
        }
        let (_, seen) = chosen(&["Alpha"], &["\u{7}", "q"], &mut args(CHOOSE));
        assert!(seen.contains("  This is no number of the list. ") && !seen.contains("\"\""), "{seen}");
    }
}
