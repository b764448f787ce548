//! Programs that run what one of their options says, or what follows a sub-command of theirs.

use super::{Word, wrap::Inner};
use crate::engine::policy::danger::git_words;

/// Options behind which a command stands. Long ones may be abbreviated, short ones stand among others.
const OPTIONS: &[(&str, &[&str])] = &[
    ("compgen", &["-C", "-F"]),
    ("cargo", &["--config"]),
    ("emacs", &["--eval", "--execute", "--funcall", "--load", "-f", "-l"]),
    ("ex", &["-c", "--cmd", "-S", "+"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("go", &["-exec", "-toolexec"]),
    ("hash", &["-p"]),
    ("less", &["+"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("mapfile", &["-C"]),
    ("nix-shell", &["--run", "--command"]),
    ("nvim", &["-c", "--cmd", "-S", "-l", "+"]),
    ("readarray", &["-C"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-S", "-o"]),
    ("sftp", &["-S", "-o"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    (
        "tar",
        &[
            "-I",
            "-F",
            "--to-command",
            "--use-compress-program",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
    ),
    ("vi", &["-c", "--cmd", "-S", "+"]),
    ("view", &["-c", "--cmd", "-S", "+"]),
    ("vim", &["-c", "--cmd", "-S", "+"]),
    ("vimdiff", &["-c", "--cmd", "-S", "+"]),
    ("zip", &["-TT", "--unzip-command"]),
];

/// Of git's sub-commands: nothing listed means always.
const GIT: &[(&str, &[&str])] = &[
    ("bisect", &["run"]),
    ("difftool", &["-x", "--extcmd"]),
    ("mergetool", &[]),
    ("rebase", &["-x", "--exec"]),
    ("submodule", &["foreach"]),
    ("clone", &["-u", "--upload-pack", "--config", "-c"]),
    ("fetch", &["--upload-pack"]),
    ("fetch-pack", &["--exec", "--upload-pack"]),
    ("ls-remote", &["--exec", "--upload-pack"]),
    ("pull", &["--upload-pack"]),
    ("push", &["--exec", "--receive-pack"]),
    ("archive", &["--exec"]),
    ("grep", &["-O", "--open-files-in-pager"]),
    ("for-each-repo", &[]),
];

/// Settings of git that name no program; beginnings.
const GIT_HARMLESS: &[&str] = &[
    "advice.",
    "color.",
    "commit.gpgsign",
    "core.autocrlf",
    "core.longpaths",
    "core.quotepath",
    "diff.algorithm",
    "diff.context",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renames",
    "gc.auto",
    "init.defaultbranch",
    "log.",
    "merge.conflictstyle",
    "protocol.version",
    "pull.",
    "push.",
    "rebase.autosquash",
    "rebase.autostash",
    "safe.directory",
    "tag.gpgsign",
    "user.",
];

/// Programs that run what comes after their own words, which nobody here tells apart; behind one of these sub-commands,
/// if there are any.
const RUNNERS: &[(&str, &[&str])] = &[
    ("bundle", &["exec"]),
    ("bunx", &[]),
    ("conda", &["run"]),
    ("direnv", &["exec"]),
    ("docker", &["exec", "run"]),
    ("docker-compose", &["exec", "run"]),
    ("hatch", &["run"]),
    ("kubectl", &["exec"]),
    ("mise", &["exec", "x"]),
    ("nerdctl", &["exec", "run"]),
    ("nix", &["develop", "run", "shell"]),
    ("npm", &["exec", "x"]),
    ("npx", &[]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("pnpm", &["dlx", "exec"]),
    ("pnpx", &[]),
    ("podman", &["exec", "run"]),
    ("poetry", &["run"]),
    ("rye", &["run"]),
    ("uv", &["run"]),
    ("uvx", &[]),
    ("yarn", &["dlx", "exec", "run"]),
];

/// More words are not looked at one by one.
const MAX_WORDS: usize = 100;

/// What such a program runs with these words, if it is one.
pub(super) fn inner(name: &str, args: &[Word]) -> Inner {
    let has = |options: &[&str]| args.iter().any(|arg| options.iter().any(|it| names_option(&arg.text, it)));
    let by_option = OPTIONS.iter().any(|it| it.0 == name && has(it.1));
    // `tar xIf prog x`: the first word is its options.
    let bundled =
        name == "tar" && args.first().is_some_and(|it| !it.text.starts_with('-') && it.text.contains(['I', 'F']));
    let hides = match name {
        "git" => git(args),
        "sed" | "gsed" => sed(args),
        "source" | "." => args.first().is_some_and(|it| is_stream(&it.text)),
        _ => by_option || bundled || name.starts_with("ld-linux") || name.starts_with("ld-musl") || name == "ld.so",
    };
    // `npx -c 'a b'`; `npx eslint -c file` is no script.
    let script =
        |it: &(&Word, &Word)| matches!(it.0.text.as_str(), "-c" | "--call" | "--command") && it.1.text.contains(' ');
    let scripted = matches!(name, "npx" | "npm" | "nix") && args.iter().zip(args.iter().skip(1)).any(|it| script(&it));
    if hides || scripted {
        return Inner::Hidden;
    }
    let runs = RUNNERS.iter().find(|it| it.0 == name);
    let told =
        |subs: &[&str]| subs.is_empty() || args.iter().any(|it| it.literal().is_some_and(|it| subs.contains(&it)));
    match runs.filter(|it| told(it.1)) {
        Some(_) if args.len() > MAX_WORDS => Inner::Hidden,
        Some(_) => {
            let starts = (0..args.len()).filter_map(|at| args.get(at..));
            let command =
                |it: &&[Word]| it.first().is_some_and(|it| !it.text.starts_with('-') && it.literal().is_some());
            Inner::Carried(starts.filter(command).map(<[Word]>::to_vec).collect())
        }
        None => Inner::Nothing,
    }
}

/// `-xIf` has `-I`; `--to-c=rm` is `--to-command`.
fn names_option(text: &str, option: &str) -> bool {
    let name = text.split('=').next().unwrap_or_default();
    match option.strip_prefix("--") {
        Some(_) => text.starts_with("--") && name.len() > 3 && option.starts_with(name),
        None if option.len() == 2 && option.starts_with('-') => {
            let mut letters = text.strip_prefix('-').filter(|it| !it.starts_with('-')).unwrap_or_default().chars();
            letters.any(|it| option.ends_with(it))
        }
        None if option == "+" => text.starts_with('+'),
        None => name == option || name.strip_prefix('-') == Some(option),
    }
}

/// A script that stands nowhere.
fn is_stream(path: &str) -> bool {
    path.contains(['(', '`']) || path.starts_with("/dev/") || path.starts_with("/proc/")
}

fn git(args: &[Word]) -> bool {
    let words = git_words(args);
    let globals = args.get(..args.len() - words.len()).unwrap_or_default();
    if globals.iter().any(|it| it.text.starts_with("--exec") || it.text.starts_with("--config-env")) {
        return true;
    }
    let set = globals.iter().zip(globals.iter().skip(1)).filter(|it| it.0.text == "-c").map(|it| it.1);
    if set.into_iter().any(|it| !is_harmless(it)) {
        return true;
    }
    let Some((sub, args)) = words.split_first() else { return false };
    if args.iter().any(|it| it.text.starts_with("ext::")) {
        return true;
    }
    let has = |it: &&str| args.iter().any(|arg| arg.text == *it || it.starts_with('-') && names_option(&arg.text, it));
    GIT.iter().any(|it| it.0 == sub.text && (it.1.is_empty() || it.1.iter().any(&has)))
}

/// `-c user.name=x`, `-c core.pager=cat`: nothing is run that would not be.
fn is_harmless(setting: &Word) -> bool {
    let Some((key, value)) = setting.literal().and_then(|it| it.split_once('=')) else { return false };
    let key = key.to_ascii_lowercase();
    GIT_HARMLESS.iter().any(|it| key.starts_with(it))
        || !key.starts_with("alias.") && matches!(value, "" | "cat" | "false" | "less" | "true" | ":" | "0" | "1")
}

/// Whether a script among the words has the commands `e`, `w` or `W`, or their flags. One that only might is taken for
/// one that has.
fn sed(args: &[Word]) -> bool {
    let given = |it: &&Word| ["-e", "--expression"].iter().any(|option| it.text.starts_with(option));
    let mut scripts: Vec<&str> = args.iter().filter(given).map(|it| it.text.as_str()).collect();
    let after =
        args.iter().zip(args.iter().skip(1)).filter(|it| it.0.text.starts_with('-') && it.0.text.ends_with('e'));
    scripts.extend(after.map(|it| it.1.text.as_str()));
    if scripts.is_empty() {
        scripts.extend(args.iter().find(|it| !it.text.starts_with('-')).map(|it| it.text.as_str()));
    }
    scripts.iter().any(|it| acts(it.trim_start_matches("--expression=")))
}

fn acts(script: &str) -> bool {
    let address = |it: char| it.is_ascii_digit() || it.is_whitespace() || ",$!~+{".contains(it);
    let ends = |rest: &str| rest.is_empty() || rest.starts_with([' ', ';', '}', '\n', '/', '.']);
    let runs = |it: &str| {
        let rest = it.strip_prefix(['e', 'w', 'W']);
        rest.is_some_and(ends)
    };
    let command = |piece: &str| {
        let piece = piece.trim_start_matches(address);
        // `/x/e rm`, `\,x,e rm`
        let behind = piece.strip_prefix('/').and_then(|it| it.rsplit_once('/')).map_or("", |it| it.1);
        runs(piece) || runs(behind.trim_start_matches(address)) || piece.starts_with('\\')
    };
    script.split([';', '\n', '{', '}']).any(command) || substitutes_and_runs(script)
}

/// `s/a/b/e`, `s,a,b,w f`: by the last letters of anything that may be one.
fn substitutes_and_runs(script: &str) -> bool {
    let flags = |it: char| it.is_ascii_digit() || "gpIimM".contains(it);
    script.match_indices(['e', 'w']).any(|(at, letter)| {
        let before = script.get(..at).unwrap_or_default().trim_end_matches(flags);
        let behind = script.get(at + 1..).unwrap_or_default().trim_start_matches(flags);
        let ended =
            behind.is_empty() || behind.starts_with([';', '}', '\n']) || letter == "w" && behind.starts_with(' ');
        let Some(delimiter) = before.chars().next_back() else { return false };
        // The command itself, with the same delimiter twice before.
        let opened = before.split('s').skip(1).any(|it| it.starts_with(delimiter) && it.matches(delimiter).count() > 1);
        ended && !delimiter.is_alphanumeric() && (opened || before.matches(delimiter).count() > 2)
    })
}
