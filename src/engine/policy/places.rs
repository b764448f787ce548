//! Where a command works: folders that `cd` and options such as `git -C` lead to.

use super::{
    danger::git_words,
    shell::{Command, Redirect, Script, Word, WordKind, base_name},
};

/// Options behind which the folder stands that a program works in; git's own stand before its sub-command.
const OPTIONS: &[(&str, &[&str])] = &[
    ("bun", &["--cwd"]),
    ("bunx", &["--cwd"]),
    ("cargo", &["--manifest-path"]),
    ("cmake", &["--build", "-S", "-B"]),
    ("composer", &["-d", "--working-dir"]),
    ("conda", &["--cwd"]),
    ("devbox", &["-c", "--config"]),
    ("env", &["-C", "--chdir"]),
    ("git", &["-C", "--git-dir", "--work-tree"]),
    ("gmake", &["-C", "--directory", "-f", "--file", "--makefile", "-I", "--include-dir"]),
    ("go", &["-C"]),
    ("gradle", &["-p", "--project-dir"]),
    ("gradlew", &["-p", "--project-dir"]),
    ("just", &["-d", "--working-directory", "-f", "--justfile"]),
    ("make", &["-C", "--directory", "-f", "--file", "--makefile", "-I", "--include-dir"]),
    ("mamba", &["--cwd"]),
    ("micromamba", &["--cwd"]),
    ("mise", &["-C", "--cd"]),
    ("mvn", &["-f", "--file"]),
    ("ninja", &["-C"]),
    ("npm", &["-C", "--prefix"]),
    ("npx", &["-C", "--prefix"]),
    ("pdm", &["-p", "--project"]),
    ("pixi", &["--manifest-path"]),
    ("pnpm", &["-C", "--dir"]),
    ("poetry", &["-C", "--directory", "-P", "--project"]),
    ("stack", &["--cwd"]),
    ("sudo", &["-D", "--chdir"]),
    ("tar", &["-C", "--directory"]),
    ("turbo", &["--cwd"]),
    ("uv", &["--directory", "--project"]),
    ("uvx", &["--directory", "--project"]),
    ("yarn", &["--cwd"]),
];
/// Short options without a value that stand before one with it: `make -kC x`.
const FLAGS: &[(&str, &str)] = &[("gmake", "BeikLnpqrRsStvw"), ("make", "BeikLnpqrRsStvw")];
/// Of these, what they run works there and is listed on its own.
const CARRIERS: &[&str] = &[
    "bun",
    "bunx",
    "composer",
    "conda",
    "devbox",
    "direnv",
    "env",
    "mamba",
    "micromamba",
    "mise",
    "npm",
    "npx",
    "pdm",
    "pixi",
    "pnpm",
    "poetry",
    "stack",
    "sudo",
    "turbo",
    "uv",
    "uvx",
    "yarn",
];
/// Programs with a sub-command behind which the folder stands by itself.
const OPERANDS: &[(&str, &str)] = &[("direnv", "exec")];
/// Variables that lead `cd` and git elsewhere.
const VARIABLES: &[&str] = &["CDPATH", "GIT_DIR", "GIT_WORK_TREE"];

/// Whether words may count from another folder behind it.
pub(super) fn moves(script: &Script) -> bool {
    let leads = |it: &Command| matches!(it.name(), Some("cd" | "pushd" | "popd")) && !goes_nowhere(it, script);
    script.going.moved || script.commands.iter().any(leads)
}

/// `cd /workspace && make`, as models write it: it is there already, unless another `cd` came before, which counts by itself.
pub(super) fn goes_nowhere(command: &Command, script: &Script) -> bool {
    let [to] = command.args() else { return false };
    let there = |start: &String| to.literal().is_some_and(|it| it == start || it.strip_suffix('/') == Some(start));
    command.name() == Some("cd") && !script.loops.beside && script.going.start.as_ref().is_some_and(there)
}

/// What a relative name is from where the script began: `.git/hooks/x` for the `x` in `cd .git/hooks && cat > x`. `None`:
/// nobody knows, or it is what it says.
pub(super) fn from_start(name: &Word, script: &Script) -> Option<Word> {
    let mut cds = script.commands.iter().filter(|it| matches!(it.name(), Some("cd" | "pushd" | "popd")));
    let (first, text) = (cds.next()?, name.literal().filter(|it| !it.starts_with('/'))?);
    let alone = script.going.chained && cds.next().is_none() && script.commands.first() == Some(first);
    // `~` counts from home, wherever the script is.
    let to =
        target(first).filter(|it| alone && (it.literal().is_some() || it.text.starts_with("~/") || it.text == "~"))?;
    let kind = if to.text.starts_with('~') { WordKind::Pattern } else { WordKind::Literal };
    Some(Word { text: format!("{}/{text}", to.text.trim_end_matches('/')), kind })
}

/// What a redirection may name, from where the script began: what it says, and where the `cd` before it may have led.
pub(super) fn of_redirect(redirect: &Redirect, script: &Script) -> Vec<Word> {
    if redirect.behind.is_empty() {
        return vec![redirect.target.clone()];
    }
    if let Some(it) = from_start(&redirect.target, script) {
        return vec![it];
    }
    let cds = redirect.behind.iter().filter_map(|it| script.commands.get(*it));
    let name = redirect.target.literal().filter(|it| !it.starts_with('/'));
    let led = name.and_then(|it| Some((it, led_by(cds, script)?))).filter(|it| !it.1.is_empty()).map(|(name, to)| {
        let kind = if to.starts_with('~') { WordKind::Pattern } else { WordKind::Literal };
        Word { text: format!("{}/{name}", to.trim_end_matches('/')), kind }
    });
    led.into_iter().chain([redirect.target.clone()]).collect()
}

/// Where one after the other leads; `None`: nobody knows.
fn led_by<'c>(cds: impl Iterator<Item = &'c Command>, script: &Script) -> Option<String> {
    let mut res = String::new();
    for cd in cds {
        if goes_nowhere(cd, script) {
            res.clear();
            continue;
        }
        let home = cd.args().is_empty() && cd.name() == Some("cd");
        let to = if home { "~" } else { target(cd)?.text.as_str() };
        let at_home = |it: &Word| it.text == "~" || it.text.starts_with("~/");
        let plain = home || target(cd).is_some_and(|it| it.literal().is_some() || at_home(it));
        if !plain || to == "-" || cd.name() == Some("popd") {
            return None;
        }
        res = if res.is_empty() || to.starts_with(['/', '~']) { to.to_owned() } else { format!("{res}/{to}") };
    }
    Some(res)
}

pub(super) fn is_cd(command: &Command) -> bool {
    matches!(command.name(), Some("cd" | "pushd"))
}

/// Where `cd` goes to; `None`: home, back, or nobody knows.
pub(super) fn target(command: &Command) -> Option<&Word> {
    let options = ["-P", "-L", "-e", "-@", "-n", "--"];
    let mut operands = command.args().iter().filter(|it| !it.literal().is_some_and(|it| options.contains(&it)));
    operands.next().filter(|_| operands.next().is_none())
}

/// The folders that a command's options name.
pub(super) fn folders(command: &Command) -> Vec<Word> {
    let (name, args) = (command.name().map(base_name).unwrap_or_default(), command.args());
    if let Some((_, sub)) = OPERANDS.iter().find(|it| it.0 == name) {
        return args.iter().skip_while(|it| it.text != *sub).nth(1).cloned().into_iter().collect();
    }
    let Some((_, options)) = OPTIONS.iter().find(|it| it.0 == name) else { return Vec::new() };
    let args = match name {
        "git" => args.get(..args.len() - git_words(args).len()).unwrap_or_default(),
        _ => args,
    };
    let mut res = Vec::new();
    for (at, arg) in args.iter().enumerate().take_while(|it| it.1.text != "--") {
        let flags = FLAGS.iter().find(|it| it.0 == name).map_or("", |it| it.1);
        let short = arg.text.strip_prefix('-').map(|it| format!("-{}", it.trim_start_matches(|it| flags.contains(it))));
        let text = short.as_ref().filter(|_| !arg.text.starts_with("--")).unwrap_or(&arg.text);
        let Some(rest) = options.iter().find_map(|it| long_or_short(text, it)) else { continue };
        match rest {
            "" => res.extend(args.get(at + 1).cloned()),
            _ => {
                let text = rest.strip_prefix('=').unwrap_or(rest);
                let kind = if text.starts_with('~') { WordKind::Pattern } else { arg.kind };
                res.push(Word { text: text.to_owned(), kind });
            }
        }
    }
    res
}

/// What stands behind the option in one word with it: `-Cx`, `--directory=x`, and `--dir=x`, as options may be cut short.
fn long_or_short<'t>(text: &'t str, option: &str) -> Option<&'t str> {
    if !option.starts_with("--") {
        return text.strip_prefix(option);
    }
    let name = text.split('=').next().unwrap_or_default();
    if name.len() > 3 && option.starts_with(name) { text.get(name.len()..) } else { None }
}

/// The same of one that runs others, which work there.
pub(super) fn folders_of_others(command: &Command) -> Vec<Word> {
    let carries = command.name().is_some_and(|it| CARRIERS.contains(&base_name(it)));
    if carries { folders(command) } else { Vec::new() }
}

/// Where `find -execdir` begins to look for folders in which it runs something.
pub(super) fn folders_of_found(command: &Command) -> impl Iterator<Item = &Word> {
    let name = command.name().map(base_name).unwrap_or_default();
    let runs = |it: &Word| matches!(it.text.as_str(), "-execdir" | "-okdir");
    let moves = matches!(name, "find" | "gfind") && command.args().iter().any(runs);
    let args = if moves { command.args() } else { &[] };
    let flags = |it: &&Word| matches!(it.text.as_str(), "-L" | "-H" | "-P");
    args.iter().skip_while(flags).take_while(|it| !it.text.starts_with(['-', '(', '!']))
}

/// Whether it runs something in a container, where folders are other ones.
pub(super) fn has_container(script: &Script) -> bool {
    const PROGRAMS: &[&str] = &["docker", "docker-compose", "kubectl", "nerdctl", "podman"];
    script.commands.iter().any(|it| {
        let is_one = it.name().is_some_and(|it| PROGRAMS.contains(&base_name(it)));
        is_one && it.args().iter().any(|it| matches!(it.text.as_str(), "exec" | "run"))
    })
}

/// Whether something that is set in the script leads elsewhere.
pub(super) fn set_elsewhere(script: &Script) -> bool {
    let set = |it: &str| VARIABLES.contains(&it.split('=').next().unwrap_or_default());
    let by_env = |it: &Command| it.name().map(base_name) == Some("env") && it.args().iter().any(|it| set(&it.text));
    script.assigned.iter().any(|it| set(it)) || script.commands.iter().any(by_env)
}
