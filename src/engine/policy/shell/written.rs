//! Scripts that a line writes and runs: what it writes is judged with what runs it.

use super::{Command, Script, Word, base_name, interpreters, is_shell};

/// Options behind which a file with code stands.
const OPTIONS: &[&str] =
    &["-f", "--file", "--makefile", "-r", "--require", "--import", "--init-file", "--rcfile", "-S"];
/// Whose options these are, beside shells and interpreters.
const RUNNERS: &[&str] = &["awk", "gawk", "gmake", "make", "mawk", "mysql", "psql", "sed", "vim"];
const MAKES: &[&str] = &["gmake", "make"];
const MAKEFILES: &[&str] = &["GNUmakefile", "Makefile", "makefile"];
/// Who writes to a file among its words what stands nowhere in the line.
const FETCH: &[&str] = &["curl", "wget"];

/// A file by its last name, and what is written to it; `None`: that cannot be seen.
struct File {
    name: String,
    text: Option<String>,
}

/// Gives the commands that run such a file its text for their code, and hides what they run where that is not known.
pub(super) fn mark(script: &mut Script) {
    let files = written(script);
    if files.is_empty() {
        return;
    }
    for command in &mut script.commands {
        let run: Vec<&File> = files.iter().filter(|it| runs(command, &it.name)).collect();
        if run.iter().any(|it| it.text.is_none()) {
            (command.opaque, command.unseen) = (true, true);
        }
        let texts = run.iter().filter_map(|it| it.text.as_deref()).chain(command.code.as_deref());
        let code = texts.collect::<Vec<_>>().join("\n");
        command.code = Some(code).filter(|it| !it.is_empty());
    }
}

fn written(script: &Script) -> Vec<File> {
    let last = |it: &Word| base_name(it.text.trim_matches(['"', '\''])).to_owned();
    let by = |at: usize| script.commands.get(at).and_then(said);
    let redirected = script.redirects.iter().filter(|it| it.writes);
    let mut res: Vec<File> = redirected.map(|it| File { name: last(&it.target), text: it.by.and_then(by) }).collect();
    for command in &script.commands {
        let name = command.name().map(base_name).unwrap_or_default();
        let text = command.input.as_ref().filter(|_| name == "tee").map(|it| it.text.clone());
        if name == "tee" || FETCH.contains(&name) {
            let operands = command.args().iter().map(|it| last(it).trim_start_matches("-o").to_owned());
            res.extend(operands.filter(|it| !it.is_empty()).map(|name| File { name, text: text.clone() }));
        }
    }
    let carried: Vec<File> = script.commands.iter().filter_map(|it| carried(it, &res)).collect();
    res.extend(carried);
    res
}

/// `cp a b`: what was written to the one is in the other.
fn carried(command: &Command, files: &[File]) -> Option<File> {
    const CARRY: &[&str] = &["cp", "install", "ln", "mv"];
    let of_name = |it: &Word| base_name(it.text.trim_matches(['"', '\''])).to_owned();
    command.name().filter(|it| CARRY.contains(&base_name(it)))?;
    let (to, from) = command.args().split_last()?;
    let source = files.iter().find(|file| from.iter().any(|it| of_name(it) == file.name))?;
    Some(File { name: of_name(to), text: source.text.clone() })
}

/// What a command prints, as far as its words and its here-document say it.
fn said(command: &Command) -> Option<String> {
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

fn runs(command: &Command, file: &str) -> bool {
    let Some(name) = command.words.first() else { return false };
    let program = base_name(name.text.trim_matches('"'));
    if name.text.contains('/') && program == file || MAKES.contains(&program) && MAKEFILES.contains(&file) {
        return true;
    }
    let is = |text: &str| base_name(text.trim_matches(['"', '\''])) == file;
    let runs_file = is_shell(program) || interpreters::is_one(program) || matches!(program, "source" | ".");
    if runs_file && interpreters::file(program, command.args()).is_some_and(|it| is(&it.text)) {
        return true;
    }
    let args = command.args();
    let behind = args.iter().zip(args.iter().skip(1)).any(|it| OPTIONS.contains(&it.0.text.as_str()) && is(&it.1.text));
    let stuck = args
        .iter()
        .any(|arg| OPTIONS.iter().any(|it| arg.text.strip_prefix(it).is_some_and(|it| is(it.trim_start_matches('=')))));
    (runs_file || RUNNERS.contains(&program)) && (behind || stuck)
}
