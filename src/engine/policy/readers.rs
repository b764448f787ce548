//! Commands that read more than their words name: all of a folder, or what another command lists. Where the roots hold
//! files of secrets, these come along.

mod find;
mod indexed;
mod listed;
mod looped;
mod mounts;
mod named;

use find::may_find;
pub(super) use indexed::is_listed_by;

use super::{
    safe, senders,
    shell::{Command, Script, Word, WordKind, base_name},
};
use crate::base::{
    guarded::SECRETS,
    path::AbsPath,
    tool::{Lead, Targets},
};

/// Take in a folder whole.
const PACK: &[&str] = &["bsdtar", "gtar", "pax", "rsync", "scp", "tar", "zip"];
/// Print files.
const PRINT: &[&str] = &[
    "awk", "base64", "bat", "cat", "comm", "cut", "egrep", "fgrep", "fold", "grep", "head", "hexdump", "less", "more",
    "nl", "od", "paste", "perl", "pr", "rev", "rg", "sed", "sort", "strings", "tac", "tail", "tee", "tr", "xxd",
];
const GREPS: &[&str] = &["egrep", "fgrep", "grep"];
/// As grep, but leave out hidden files unless they are told not to.
const RGS: &[&str] = &["ack", "ag", "rg"];

/// What there is for what runs in containers: folders are under other names there. `None`: as it is for all.
pub(super) fn in_containers(script: &Script, here: &AbsPath, targets: &Targets) -> Option<Targets> {
    let mounted = mounts::leads(script, here);
    let leads = || targets.leads.iter().cloned().chain(mounted.iter().cloned()).collect();
    (!mounted.is_empty()).then(|| Targets { leads: leads(), ..targets.clone() })
}

/// The entry of the first file of secrets that a command would come upon. `here`: where its words count from, if that is
/// known; `targets`: the secrets that there are, and links to them.
pub(super) fn comes_upon(
    command: &Command,
    script: &Script,
    here: Option<&AbsPath>,
    targets: &Targets,
) -> Option<&'static str> {
    let searches = command.name().map(base_name).is_some_and(|it| GREPS.contains(&it) || RGS.contains(&it));
    // A search passes by links unless it is told to follow them.
    let own_only = searches && !safe::follows_links(command);
    let met: Vec<_> = met(targets).filter(move |it| !own_only || it.0 == it.1).collect();
    let secrets = || met.iter().copied();
    let (name, args) = (base_name(command.name()?), command.args());
    let reads = |word: &Word| word.literal().is_some_and(|it| PRINT.contains(&base_name(it)));
    let hands_on = name == "xargs" || name == "find" && args.iter().any(|it| it.text.starts_with("-exec"));
    let archives = name == "cpio" && args.iter().any(|it| it.text.starts_with("-o") || it.text == "--create");
    let printed = archives || hands_on && args.iter().any(reads);
    let named = named::from_input(name, args);
    let printed_by_itself = matches!(name, "fd" | "fdfind") && named::starts(args).any(reads);
    if takes_home(
        if printed || named { listed_by(command, script).unwrap_or(command) } else { command },
        printed || named,
    ) {
        return Some("~");
    }
    secrets().find_map(entry)?;
    let around =
        || looped::Around { script, here, met: &met, leads: &targets.leads, tracked: targets.tracked.as_deref() };
    if printed_by_itself {
        return around().listed_by(command);
    }
    if named {
        return looped::handed(command, &around());
    }
    // `cat $(ls -a)`: what it reads is what is there.
    if let Some(it) = PRINT.contains(&name).then(|| listed::in_words(command, &around())).flatten() {
        return Some(it);
    }
    // `cat *`, where one of all these is secret.
    let found = |word: &Word| {
        let path = here.filter(|_| word.kind == WordKind::Pattern)?.join(&word.text);
        secrets().filter(|it| finds(&path, it.0)).find_map(entry)
    };
    // `for f in *; do cat "$f"; done` is the same.
    let looped = script.loops.only.iter().flat_map(|it| it.values_in(command));
    if let Some(it) = args.iter().chain(looped).filter(|_| PRINT.contains(&name)).find_map(found) {
        return Some(it);
    }
    if let Some(it) = PRINT.contains(&name).then(|| looped::comes_upon(command, &around())).flatten() {
        return Some(it);
    }
    if printed {
        return listed_for(command, &around(), targets);
    }
    takes_in(command, script, here, &met, &targets.leads)
}

/// The same for a command that has somebody print what another lists.
fn listed_for(command: &Command, around: &looped::Around, targets: &Targets) -> Option<&'static str> {
    let looped::Around { script, here, met, leads, .. } = *around;
    match listed_by(command, script) {
        Some(it) if it.name().map(base_name) == Some("find") => {
            let begins = begins(it.args(), here);
            let below =
                |secret: &AbsPath| begins.as_ref().is_none_or(|all| all.iter().any(|it| is_in(secret, it, leads)));
            met.iter().copied().filter(|secret| below(secret.0) && may_find(it.args(), secret.0)).find_map(entry)
        }
        Some(it) => comes_upon(it, script, here, targets),
        None => listed::handed(command, around),
    }
}

/// The same for a command that takes in folders, of what is met in them.
fn takes_in(
    command: &Command,
    script: &Script,
    here: Option<&AbsPath>,
    met: &[(&AbsPath, &AbsPath)],
    leads: &[Lead],
) -> Option<&'static str> {
    let (name, args) = (base_name(command.name()?), command.args());
    let around = looped::Around { script, here, met, leads, tracked: None };
    let all_of = |operands: &mut dyn Iterator<Item = &Word>, passes: &dyn Fn(&AbsPath) -> bool| {
        taken(operands, &around).filter(|it| passes(it.0)).find_map(entry)
    };
    let operands = || args.iter().filter(|it| !it.text.starts_with('-'));
    let git = if name == "git" { super::danger::git_words(args) } else { &[] };
    // Files that git does not know, too.
    let unknown = || git.iter().any(|it| it.text.starts_with("--no-i") || it.text.starts_with("--unt"));
    match name {
        "git" if git.first().is_some_and(|it| matches!(it.text.as_str(), "grep" | "diff")) && unknown() => {
            let pattern = git.first().is_some_and(|it| it.text == "grep");
            let skipped = 1 + if pattern { safe::pattern_operands(git) } else { 0 };
            all_of(&mut git.iter().filter(|it| !it.text.starts_with('-')).skip(skipped), &|_| true)
        }
        "diff" if args.iter().any(safe::recurses) => all_of(&mut operands(), &|_| true),
        "cp" if args.iter().any(safe::copies_all) => all_of(&mut sources(args), &|_| true),
        _ if PACK.contains(&name) => {
            let mut packed = packed(name, args).peekable();
            let first = packed.peek()?;
            // Behind what is packed it counts for nothing, and other options may give it another meaning.
            let before = args.iter().position(|it| std::ptr::eq(it, *first)).and_then(|at| args.get(..at));
            let odd = |it: &Word| ["--anchored", "--no-"].iter().any(|start| it.text.starts_with(start));
            let options = before.filter(|_| name == "tar" && !args.iter().any(odd)).unwrap_or_default();
            let passed_by =
                |name_of: &str| is_left_out(options, name_of) || name == "rsync" && is_excluded(args, name_of);
            all_of(&mut packed, &|it| !passed_by(&name_of(it)))
        }
        _ if GREPS.contains(&name) && args.iter().any(safe::recurses) => {
            let passes = |it: &AbsPath| is_searched(args, &name_of(it));
            all_of(&mut operands().skip(safe::pattern_operands(args)), &passes)
        }
        _ if RGS.contains(&name) => {
            const SHOWS: &[&str] = &["-.", "--hidden", "-u", "--unrestricted", "--no-ignore"];
            let all = args.iter().any(|it| SHOWS.iter().any(|show| it.text.starts_with(show)));
            let passes = |it: &AbsPath| all || !is_hidden(it, here);
            all_of(&mut operands().skip(safe::pattern_operands(args)), &passes)
        }
        _ if named::is_packed_by_code(command) => all_of(&mut named::packed_by(command).iter(), &|_| true),
        _ if named::resolves_env(name, args) => {
            let own = |it: &AbsPath| name_of(it) == ".env" && it.as_path().parent() == here.map(AbsPath::as_path);
            met.iter().copied().filter(|it| here.is_none() || own(it.0)).find_map(entry)
        }
        _ => sent(&senders::taken(command)?, here, met, &|it| all_of(it, &|_| true)),
    }
}

/// What lies in folders that are named, of what is met; nothing named: in the one where the command runs.
fn taken<'a>(
    operands: &mut dyn Iterator<Item = &Word>,
    around: &looped::Around<'a>,
) -> impl Iterator<Item = (&'a AbsPath, &'a AbsPath)> {
    let looped::Around { script, here, met, leads, .. } = *around;
    let place = |it: &Word| Some(here?.join(it.literal()?));
    // What begins at home counts from there.
    let in_here = |it: &&Word| here.is_some() && it.kind == WordKind::Pattern && !it.text.starts_with('~');
    let (patterns, operands): (Vec<&Word>, Vec<&Word>) = operands.partition(in_here);
    let patterns: Vec<AbsPath> = patterns.iter().filter_map(|it| Some(here?.join(&it.text))).collect();
    let spelt = |it: &Word| super::pieces::told(it, script).filter(|_| it.kind == WordKind::Expanded);
    let places: Vec<Option<AbsPath>> = operands
        .into_iter()
        .flat_map(|it| match spelt(it) {
            Some(told) => told.iter().map(place).collect(),
            None => vec![place(it)],
        })
        .collect();
    met.iter().copied().filter(move |secret| match (places.is_empty(), patterns.is_empty()) {
        (true, true) => here.is_none_or(|it| secret.0.is_within(it)),
        // A place that is not known may be any.
        _ => {
            let named = places.iter().any(|it| it.as_ref().is_none_or(|it| is_in(secret.0, it, leads)));
            named || patterns.iter().any(|it| takes(it, secret.0))
        }
    })
}

/// The same for words that name what is taken along; `all_of`: of folders.
fn sent(
    taken: &[&Word],
    here: Option<&AbsPath>,
    met: &[(&AbsPath, &AbsPath)],
    all_of: &dyn Fn(&mut dyn Iterator<Item = &Word>) -> Option<&'static str>,
) -> Option<&'static str> {
    let (patterns, plain): (Vec<&Word>, Vec<&Word>) = taken.iter().partition(|it| it.kind == WordKind::Pattern);
    let finds = |pattern: &&Word| here.is_none_or(|here| met.iter().any(|met| takes(&here.join(&pattern.text), met.0)));
    let found = patterns.iter().any(finds).then(|| met.iter().copied().find_map(entry)).flatten();
    let rest = patterns.is_empty() || !plain.is_empty();
    found.or_else(|| rest.then(|| all_of(&mut plain.into_iter())).flatten())
}

/// Whether a pattern finds a file, or a folder that it is in.
fn takes(pattern: &AbsPath, file: &AbsPath) -> bool {
    let above = file.as_path().ancestors().filter_map(AbsPath::new);
    above.into_iter().any(|it| finds(pattern, &it))
}

/// Whether grep looks into files of that name.
fn is_searched(args: &[Word], name: &str) -> bool {
    let mut included = args.iter().filter_map(|it| it.text.strip_prefix("--include=")).peekable();
    match included.peek() {
        None => !is_left_out(args, name),
        // Of both, the last one that fits counts.
        Some(_) => included.any(|glob| may_match(glob, name)),
    }
}

/// Whether a file of that name, wherever it is, is passed by: `--exclude=.env`, `--exclude='.env*'`.
fn is_left_out(options: &[Word], name: &str) -> bool {
    let fits = |glob: &str| match glob.strip_suffix('*') {
        Some(start) => !start.contains(['*', '?', '[', '\\', '/']) && name.starts_with(start),
        None => glob == name,
    };
    // Behind an option it may be its value: `grep -e --exclude=.env`.
    let valued = |it: &Word| it.text.starts_with('-') && !it.text.contains('=');
    let options = options.split(|it| it.text == "--").next().unwrap_or_default();
    let before = std::iter::once(None).chain(options.iter().map(Some));
    const FLAGS: &[&str] = &["-r", "-R", "-n", "-rn", "-Rn", "-nr", "-i", "-l", "-rl", "-rni", "-rin", "-c", "-z"];
    let free = |it: Option<&Word>| it.is_none_or(|it| !valued(it) || FLAGS.contains(&it.text.as_str()));
    let globs = options
        .iter()
        .zip(before)
        .filter(|it| free(it.1))
        .map(|it| it.0)
        .filter_map(|it| it.literal().or(Some(&it.text)).filter(|_| it.kind != WordKind::Expanded));
    globs.filter_map(|it| it.strip_prefix("--exclude=")).any(fits)
}

/// Whether rsync passes by files of that name wherever they are.
fn is_excluded(args: &[Word], name: &str) -> bool {
    let mut excluded = args.iter().filter_map(|it| it.literal()?.strip_prefix("--exclude="));
    // What is taken in before counts first.
    let others = ["--incl", "--filter", "-f", "-F", "--files-from"];
    let plain = !args.iter().any(|it| others.iter().any(|start| it.text.starts_with(start)));
    plain && excluded.any(|it| it == name)
}

/// Where `find` begins; `None`: nobody knows.
fn begins(args: &[Word], here: Option<&AbsPath>) -> Option<Vec<AbsPath>> {
    let options = |it: &&Word| matches!(it.text.as_str(), "-H" | "-L" | "-P");
    if args.iter().any(|it| it.text.starts_with("-files0")) {
        return None;
    }
    let places = args.iter().skip_while(options).take_while(|it| !it.text.starts_with(['-', '(', '!']));
    let mut res = places.map(|it| Some(here?.join(it.literal()?))).collect::<Option<Vec<_>>>()?;
    if res.is_empty() {
        res.push(here?.clone());
    }
    Some(res)
}

/// What is packed: not the archive, nor where it goes to; nothing where one is only read.
fn packed<'a>(name: &str, args: &'a [Word]) -> Box<dyn Iterator<Item = &'a Word> + 'a> {
    let operands = || args.iter().filter(|it| !it.text.starts_with('-'));
    let first = args.first().map_or("", |it| it.text.trim_start_matches('-'));
    let is_cluster = first.bytes().all(|it| it.is_ascii_lowercase()) && first.contains(['c', 'r', 't', 'u', 'x']);
    match name {
        "bsdtar" | "gtar" => packed("tar", args),
        "tar" if is_cluster && !first.contains(['c', 'r', 'u']) => Box::new(std::iter::empty()),
        "tar" if is_cluster && first.ends_with('f') => {
            let names = args.get(2..).unwrap_or_default();
            Box::new(names.iter().filter(|it| !it.text.starts_with('-')))
        }
        "pax" if !named::writes(args) => Box::new(std::iter::empty()),
        "rsync" | "scp" => Box::new(sources(args)),
        _ => Box::new(operands()),
    }
}

/// Whether a file is in a folder, or where that leads.
fn is_in(file: &AbsPath, folder: &AbsPath, leads: &[Lead]) -> bool {
    let led = |it: &Lead| !it.name.is_empty() && it.path == *folder && file.is_within(&it.real);
    file.is_within(folder) || leads.iter().any(led)
}

/// Whether a command takes in all of a home, or of the disk, what is hidden in it too: there lie keys. `printed`: somebody
/// prints what it lists.
fn takes_home(command: &Command, printed: bool) -> bool {
    const SHOWS: &[&str] = &["-.", "--hidden", "-u", "--unrestricted", "--no-ignore"];
    let (name, args) = (command.name().map(base_name).unwrap_or_default(), command.args());
    if let Some(taken) = senders::taken(command) {
        return taken.into_iter().any(is_home);
    }
    let all = match name {
        "find" => printed && !args.iter().any(|it| matches!(it.text.as_str(), "-name" | "-iname" | "-path")),
        "cp" => args.iter().any(safe::copies_all),
        "diff" => args.iter().any(safe::recurses),
        _ if GREPS.contains(&name) => {
            args.iter().any(safe::recurses) && !args.iter().any(|it| it.text.starts_with("--include"))
        }
        _ if RGS.contains(&name) => args.iter().any(|it| SHOWS.iter().any(|show| it.text.starts_with(show))),
        _ => PACK.contains(&name),
    };
    let skipped = if GREPS.contains(&name) || RGS.contains(&name) { safe::pattern_operands(args) } else { 0 };
    let operands = || args.iter().filter(|it| !it.text.starts_with('-'));
    // Where it goes to is not taken in.
    let last = usize::from(matches!(name, "cp" | "rsync" | "scp"));
    let taken = operands().count().saturating_sub(last);
    all && operands().take(taken).skip(skipped).any(is_home)
}

fn is_home(word: &Word) -> bool {
    let text = word.text.trim_matches('"').trim_end_matches(['/', '.', '*']);
    let names: Vec<&str> = text.split('/').collect();
    match names.as_slice() {
        [""] => word.text.starts_with('/'),
        ["$HOME" | "${HOME}"] | ["", "root" | "home" | "Users"] | ["", "home" | "Users", _] => true,
        [name] => name.starts_with('~'),
        _ => false,
    }
}

/// What lists the names that `command` hands on, if that says which: a `find` with its tests, a search that prints names.
fn listed_by<'a>(command: &'a Command, script: &'a Script) -> Option<&'a Command> {
    const PASS_ON: &[&str] = &["head", "sort", "tail", "uniq"];
    if command.name().map(base_name) == Some("find") {
        return Some(command);
    }
    let at = script.commands.iter().position(|it| std::ptr::eq(it, command))?;
    let before = script.commands.get(..at)?.iter().rev();
    let mut before = before.skip_while(|it| it.name().is_some_and(|it| PASS_ON.contains(&it)));
    let lister = before.next()?;
    let lists = |it: &Word| it.text.starts_with("--files") || !it.text.starts_with("--") && it.text.contains('l');
    let name = lister.name().map(base_name)?;
    let searches = || GREPS.contains(&name) && lister.args().iter().any(safe::recurses) || RGS.contains(&name);
    let by_search = || searches() && lister.args().iter().any(|it| it.text.starts_with('-') && lists(it));
    (name == "find" || by_search()).then_some(lister)
}

/// Where a file may be met that is one of secrets, and where it really is: by its own name, or by a link.
fn met(targets: &Targets) -> impl Iterator<Item = (&AbsPath, &AbsPath)> {
    targets.secrets.iter().map(|it| (it, it)).chain(targets.leads.iter().map(|it| (&it.path, &it.real)))
}

fn entry((_, real): (&AbsPath, &AbsPath)) -> Option<&'static str> {
    SECRETS.find(real.as_path())
}

/// What is copied: the last operand is where it goes to.
fn sources(args: &[Word]) -> impl Iterator<Item = &Word> {
    let operands = || args.iter().filter(|it| !it.text.starts_with('-'));
    operands().take(operands().count().saturating_sub(1).max(1))
}

fn name_of(path: &AbsPath) -> String {
    path.as_path().file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
}

fn is_hidden(path: &AbsPath, here: Option<&AbsPath>) -> bool {
    let below = here.and_then(|here| path.as_path().strip_prefix(here).ok()).unwrap_or(path.as_path());
    below.components().any(|it| it.as_os_str().to_string_lossy().starts_with('.'))
}

/// Whether a path with patterns in it finds a file, as the shell does it: name by name.
fn finds(pattern: &AbsPath, file: &AbsPath) -> bool {
    let names = |it: &AbsPath| {
        let all = it.as_path().components().map(|it| it.as_os_str().to_string_lossy().into_owned());
        all.collect::<Vec<_>>()
    };
    let (patterns, names) = (names(pattern), names(file));
    // A star at the start leaves out what begins with a dot.
    let fits = |pattern: &str, name: &str| {
        !(name.starts_with('.') && pattern.starts_with(['*', '?', '['])) && may_match(pattern, name)
    };
    patterns.len() == names.len() && patterns.iter().zip(&names).all(|(pattern, name)| fits(pattern, name))
}

/// Whether a pattern of the shell may find this name. Thousands may be asked about: no pattern is compiled for it.
pub(super) fn may_match(pattern: &str, name: &str) -> bool {
    let fixed = pattern.split(['*', '?', '[', '{', '$', '\\']).next().unwrap_or_default();
    // What is in brackets and braces is read by no two programs alike.
    let odd = pattern.contains(['[', '{', '$', '\\']);
    name.starts_with(fixed) && (odd || is_like(pattern.as_bytes(), name.as_bytes()))
}

/// `*` and `?`, and nothing else.
fn is_like(mut pattern: &[u8], mut name: &[u8]) -> bool {
    // Where to go on when it does not fit: behind the last star, one letter later.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => return true,
            (Some((b'*', rest)), _) => {
                again = Some((rest, name));
                pattern = rest;
                continue;
            }
            (Some((want, rest)), Some((it, others))) if want == it || *want == b'?' => {
                (pattern, name) = (rest, others);
                continue;
            }
            _ => (),
        }
        let Some((behind, from)) = again else { return false };
        let Some((_, later)) = from.split_first() else { return false };
        again = Some((behind, later));
        (pattern, name) = (behind, later);
    }
}
