//! Scripts that a line writes and runs: what it writes is judged with what runs it.

mod builds;
mod packages;
mod runs;

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use runs::{is_started, run_by, run_by_shell};

use super::{Command, Input, Script, Unparsed, Word, base_name, starts};

/// Who writes to a file among its words what stands nowhere in the line.
const FETCH: &[&str] = &["curl", "wget"];

/// Who puts a file under another name.
const CARRY: &[&str] = &["cp", "gcp", "install", "ln", "mv", "rsync"];
/// Programs lie in such folders.
const PROGRAMS: &[&str] = &["/bin/", "/sbin/", "/.cargo/", "/libexec/"];

/// A file by its last name, and what is written to it; `None`: that cannot be seen.
#[derive(Clone)]
struct File {
    name: String,
    /// As far as a look for words goes.
    text: Option<Arc<str>>,
    /// To the letter.
    exact: Option<Arc<str>>,
}

/// What is written to files, by their last names.
type Files = HashMap<String, Vec<File>>;

/// More files that a line writes and runs are not read.
const MAX_FILES: usize = 64;

/// Lists what the scripts run that the line writes and a shell reads: `cat > x.sh <<'E' … bash x.sh`. What cannot be read
/// is hidden.
pub(super) fn list_scripts(script: &mut Script) {
    let (mut files, mut by_name) = (written(script), runs::sets_path(script));
    let (mut listed, mut n_read, mut at) = (HashSet::new(), 0, 0);
    let mut built = HashSet::new();
    list_built(script, &files, &mut built);
    while let Some(command) = script.commands.get(at).filter(|_| !files.is_empty()) {
        let names = run_by(command, by_name).into_iter().filter(|it| files.contains_key(it.as_ref()));
        let names: BTreeSet<String> = names.map(Cow::into_owned).filter(|it| !listed.contains(it)).collect();
        for name in names {
            n_read += 1;
            match files.get(&name).filter(|_| n_read <= MAX_FILES) {
                Some(texts) if list_file(script, at, texts) => _ = listed.insert(name),
                Some(_) => (),
                None => hide(script.commands.get_mut(at)),
            }
            // What it writes it may run.
            if n_read <= MAX_FILES {
                (files, by_name) = (written(script), runs::sets_path(script));
                list_built(script, &files, &mut built);
            }
        }
        at += 1;
    }
    packages::list(script, &files);
}

/// Lists what stands for sources that a tool runs, each once.
fn list_built(script: &mut Script, files: &Files, built: &mut HashSet<String>) {
    let started = builds::started(script, files);
    let new: Vec<Vec<Word>> = started.into_iter().filter_map(|(name, it)| built.insert(name).then_some(it)).collect();
    if script.list(new, true, (None, false)).is_err() {
        hide(script.commands.first_mut());
    }
}

/// Lists what the command at `at` runs by the file; false: what reads it is listed, and comes later.
fn list_file(script: &mut Script, at: usize, run: &[File]) -> bool {
    const UNSEEN: Unparsed = Unparsed("it is not seen what is written");
    let name = run.first().map_or("", |it| it.name.as_str());
    let exact = run.iter().map(|it| it.exact.as_deref()).collect::<Option<String>>();
    let exact = exact.filter(|_| !is_changed(script, name));
    let seen = || run.iter().filter_map(|it| it.text.as_deref()).collect::<Vec<_>>().join("\n");
    let Some(command) = script.commands.get(at) else { return true };
    let (language, started) = (language(exact.as_deref()), is_started(command));
    let (read, done) = match (run_by_shell(command, language.as_deref()), language, exact) {
        (true, _, Some(text)) => (script.add(&text, 1), true),
        (true, _, None) => (Err(UNSEEN), true),
        (_, Some(program), _) if !started => {
            let words = vec![Word::literally(&program), Word::literally(name)];
            (script.list(vec![words], true, (None, false)), false)
        }
        (_, _, text) => (script.started(starts::find(&text.unwrap_or_else(seen)), at, 1), true),
    };
    hide(script.commands.get_mut(at).filter(|_| read.is_err()));
    done
}

/// `sed -i s/a/b/ x.sh`: what is in it then is not what was written.
fn is_changed(script: &Script, file: &str) -> bool {
    const EDITORS: &[&str] = &["ed", "ex", "patch", "vi", "vim"];
    const IN_PLACE: &[&str] = &["gsed", "perl", "ruby", "sed"];
    let named = |it: &Command| it.args().iter().any(|it| base_name(&it.text) == file);
    let in_place = |it: &Command| it.args().iter().any(|it| it.text.starts_with('-') && it.text.contains('i'));
    script.commands.iter().any(|it| {
        let name = it.name().map(base_name).unwrap_or_default();
        named(it) && (EDITORS.contains(&name) || IN_PLACE.contains(&name) && in_place(it))
    })
}

fn hide(command: Option<&mut Command>) {
    command.into_iter().for_each(|it| (it.opaque, it.unseen) = (true, true));
}

/// The program that a script's first line names.
fn language(text: Option<&str>) -> Option<String> {
    let line = text?.strip_prefix("#!")?.lines().next()?;
    let mut words = line.split_whitespace().filter(|it| !it.starts_with('-')).map(base_name);
    let first = words.next()?;
    Some(if first == "env" { words.next()? } else { first }.to_owned())
}

/// Gives the commands that run such a file its text for their code, and hides what they run where that is not known.
pub(super) fn mark(script: &mut Script) {
    let files = written(script);
    if files.is_empty() {
        return;
    }
    let by_name = runs::sets_path(script);
    for command in &mut script.commands {
        let names: BTreeSet<Cow<'_, str>> = run_by(command, by_name).into_iter().collect();
        let run = names.iter().filter_map(|it| files.get(it.as_ref())).flatten();
        let run: Vec<&File> =
            run.filter(|it| !run_by_shell(command, language(it.exact.as_deref()).as_deref())).collect();
        if run.iter().any(|it| it.text.is_none()) {
            (command.opaque, command.unseen) = (true, true);
        }
        let texts = run.iter().filter_map(|it| it.text.as_deref()).chain(command.code.as_deref());
        let code = texts.collect::<Vec<_>>().join("\n");
        command.code = Some(code).filter(|it| !it.is_empty());
    }
}

/// Lists what a program is called as where the line gave it another name: `cp /bin/rm y && ./y -rf src`.
pub(super) fn list_copies(script: &mut Script) -> Result<(), Unparsed> {
    let copies = copies(script);
    if copies.is_empty() {
        return Ok(());
    }
    let found_by_name = script.assigned.iter().any(|it| it == "PATH");
    let original = |it: &Command| {
        let (name, args) = it.words.split_first()?;
        let program = base_name(name.text.trim_matches('"'));
        let copy = copies.iter().find(|it| it.0 == program && (found_by_name || name.text.contains('/')))?;
        Some(std::iter::once(Word::literally(&copy.1)).chain(args.iter().cloned()).collect())
    };
    let called: Vec<Vec<Word>> = script.commands.iter().filter_map(original).collect();
    let mut at = script.commands.len();
    script.list(called, true, (None, false))?;
    while at < script.commands.len() {
        script.unwrap_at(at, 0)?;
        at += 1;
    }
    Ok(())
}

/// Names that programs get, and which they are.
fn copies(script: &Script) -> Vec<(String, String)> {
    let mut res: Vec<(String, String)> = Vec::new();
    for command in &script.commands {
        if !command.name().is_some_and(|it| CARRY.contains(&base_name(it))) {
            continue;
        }
        let operands = command.args().iter().filter(|it| !it.text.starts_with('-'));
        let mut names: Vec<&Word> = operands.collect();
        let Some(to) = names.pop() else { continue };
        let to = base_name(to.text.trim_matches(['"', '\''])).to_owned();
        let program = names.iter().find_map(|it| {
            // `$(which rm)`
            let looked_up = it.text.contains("which ") || it.text.contains("command -v ");
            let name = base_name(it.text.rsplit(' ').next().unwrap_or_default().trim_end_matches([')', '"', '`']));
            let program = looked_up || PROGRAMS.iter().any(|folder| it.text.contains(folder));
            let copied = res.iter().find(|copy| copy.0 == name).map(|copy| copy.1.clone());
            copied.or_else(|| program.then(|| name.to_owned()))
        });
        res.extend(program.filter(|it| *it != to && !to.is_empty()).map(|it| (to, it)));
    }
    res
}

fn written(script: &Script) -> Files {
    let mut res = Files::new();
    let mut add = |it: File| res.entry(it.name.clone()).or_default().push(it);
    let texts = |it: Option<&Command>| (it.and_then(said).map(Arc::from), it.and_then(printed).map(Arc::from));
    for it in script.redirects.iter().filter(|it| it.writes) {
        let (text, exact) = texts(it.by.and_then(|at| script.commands.get(at)));
        add(File { name: name_of(&it.target), text, exact });
    }
    for command in &script.commands {
        let name = command.name().map(base_name).unwrap_or_default();
        if name != "tee" && !FETCH.contains(&name) {
            continue;
        }
        let input = command.input.as_ref().filter(|_| name == "tee");
        let text: Option<Arc<str>> = input.map(|it| it.text.as_str().into());
        let exact: Option<Arc<str>> = input.and_then(expanded).map(Arc::from);
        let operands = command.args().iter().map(|it| name_of(it).trim_start_matches("-o").to_owned());
        operands
            .filter(|it| !it.is_empty())
            .for_each(|name| add(File { name, text: text.clone(), exact: exact.clone() }));
    }
    let carried: Vec<File> = script.commands.iter().filter_map(|it| carried(it, &res)).collect();
    carried.into_iter().for_each(|it| res.entry(it.name.clone()).or_default().push(it));
    res
}

fn name_of(word: &Word) -> String {
    base_name(word.text.trim_matches(['"', '\''])).to_owned()
}

/// `cp a b`: what was written to the one is in the other.
fn carried(command: &Command, files: &Files) -> Option<File> {
    command.name().filter(|it| CARRY.contains(&base_name(it)))?;
    let (to, from) = command.args().split_last()?;
    let source = from.iter().find_map(|it| files.get(&name_of(it))?.first())?;
    Some(File { name: name_of(to), ..source.clone() })
}

/// The files that a command writes as a redirection would: those of `tee`, and what `cp /dev/null x` empties.
pub(in crate::engine::policy) fn filled(command: &Command) -> Vec<&Word> {
    let args = command.args();
    let operands = || args.iter().filter(|it| !it.text.starts_with('-'));
    let empties = || args.iter().any(|it| it.text == "/dev/null");
    match command.name().map(base_name) {
        Some("tee") => operands().collect(),
        Some("cp" | "install") if empties() => operands().next_back().into_iter().collect(),
        Some("sort") if empties() => {
            args.iter().zip(args.iter().skip(1)).filter(|it| it.0.text == "-o").map(|it| it.1).collect()
        }
        _ => Vec::new(),
    }
}

/// What a command prints, to the letter.
fn printed(command: &Command) -> Option<String> {
    let args = command.args().iter().map(Word::literal).collect::<Option<Vec<&str>>>()?;
    match command.name()? {
        "cat" if args.iter().all(|it| *it == "-") => command.input.as_ref().and_then(expanded),
        "echo" => {
            let flags = args.iter().take_while(|it| matches!(**it, "-n" | "-e" | "-E" | "-ne" | "-en")).count();
            let text = args.get(flags..)?.join(" ");
            let coded = args.iter().take(flags).any(|it| it.contains('e'));
            let ends = if args.iter().take(flags).any(|it| it.contains('n')) { "" } else { "\n" };
            let text = if coded { unescaped(&text)? } else { text };
            Some(text + ends)
        }
        "printf" => {
            let (format, rest) = args.split_first()?;
            let format = unescaped(format)?;
            match (format.contains('%'), rest) {
                (false, _) => Some(format),
                (true, rest) if format == "%s" || format == "%s\n" => {
                    Some(rest.iter().map(|it| format.replace("%s", it)).collect())
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// With its `\n` and `\t` as they are printed; `None`: it has others.
fn unescaped(text: &str) -> Option<String> {
    let plain = text.replace("\\n", "\n").replace("\\t", "\t");
    (!plain.contains('\\')).then_some(plain)
}

/// A here-document, unless the shell puts something into it.
fn expanded(input: &Input) -> Option<String> {
    if input.literal {
        return Some(input.text.clone());
    }
    let (mut res, mut chars) = (String::new(), input.text.chars().peekable());
    while let Some(it) = chars.next() {
        match (it, chars.peek()) {
            ('\\', Some('$' | '`' | '\\')) => res.extend(chars.next()),
            ('\\', Some('\n')) => _ = chars.next(),
            ('`', _) | ('$', Some('{' | '(' | '_' | '[' | '*' | '@' | '#' | '?' | '!' | '-' | '$')) => return None,
            ('$', Some(next)) if next.is_ascii_alphanumeric() => return None,
            _ => res.push(it),
        }
    }
    Some(res)
}

/// What a command prints, as far as its words and its here-document say it.
pub(in crate::engine::policy) fn said(command: &Command) -> Option<String> {
    let operands = command.args().iter().filter(|it| it.text != "-").count();
    match command.name()? {
        "echo" | "printf" => {
            // With `\x6d` it writes more than it says.
            let coded = ["\\x", "\\0", "\\1", "\\u", "\\U", "\\b"].iter().any(|it| command.text.contains(it));
            let parted = command.text.replace("\\n", "\n").replace("\\t", " ");
            (!coded).then_some(parted)
        }
        "cat" if operands == 0 => command.input.as_ref().map(|it| it.text.clone()),
        _ => None,
    }
}
