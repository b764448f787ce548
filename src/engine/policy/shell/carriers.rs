//! Programs that run what one of their options says, or what follows a sub-command of theirs.

use super::{
    Word, edits,
    wrap::{Inner, runs_by_assignment},
};
use crate::engine::policy::danger::{GIT_VALUED, git_words};

/// Options behind which a command stands. Long ones may be abbreviated, short ones stand among others.
const OPTIONS: &[(&str, &[&str])] = &[
    ("compgen", &["-C", "-F", "-W"]),
    ("cargo", &["--config"]),
    ("docker", &["--entrypoint"]),
    ("docker-compose", &["--entrypoint"]),
    ("dc", &["-e", "--expression"]),
    ("emacsclient", &["-e", "--eval"]),
    ("emacs", &["--script", "--eval", "--execute", "--funcall", "--load", "-f", "-l"]),
    ("ex", &["-c", "--cmd", "-S", "+"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("eslint", &["-c", "--config", "--plugin", "--rulesdir"]),
    ("go", &["-exec", "-overlay", "-toolexec", "-vettool"]),
    ("gradle", &["-I", "--init-script"]),
    ("gradlew", &["-I", "--init-script"]),
    ("hash", &["-p"]),
    ("just", &["-c", "--command"]),
    ("kak", &["-e", "-f"]),
    ("less", &["+"]),
    ("gmake", &["--eval", "-E"]),
    ("make", &["--eval", "-E"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("mapfile", &["-C"]),
    ("nerdctl", &["--entrypoint"]),
    ("nix-shell", &["--run", "--command"]),
    ("npm", &["--script-shell", "--node-options", "--globalconfig", "--userconfig"]),
    ("npx", &["--script-shell", "--node-options", "--globalconfig", "--userconfig"]),
    ("nvim", &["-c", "--cmd", "-S", "-l", "+", "--remote-expr", "--remote-send"]),
    ("pnpm", &["--script-shell", "--node-options", "--config.script-shell", "--globalconfig", "--userconfig"]),
    ("podman", &["--entrypoint"]),
    ("prettier", &["--plugin"]),
    ("pytest", &["-p"]),
    ("readarray", &["-C"]),
    ("r2", &["-c"]),
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
    ("vis", &["-c"]),
    ("yarn", &["--script-shell", "--node-options", "--use-yarnrc", "--userconfig"]),
    ("zip", &["-TT", "--unzip-command"]),
];

/// Programs with a language of their own in their words, and what in it runs something.
const WITHIN: &[(&str, &[&str])] = &[
    ("cargo", &["watch"]),
    ("gnuplot", &["system", "!"]),
    ("mariadb", &["\\!", "system "]),
    ("mysql", &["\\!", "system "]),
    ("psql", &["\\!", "|", "PROGRAM", "program"]),
    ("sqlite3", &[".shell", ".system", "|", ".load", ".excel", ".edit", "edit(", "load_extension", ".read"]),
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
    ("merge-index", &[]),
    ("remote-ext", &[]),
    ("shell", &[]),
    ("send-email", &["--smtp-server", "--sendmail-cmd", "--to-cmd", "--cc-cmd", "--header-cmd"]),
    ("instaweb", &["-b", "--browser", "-d", "--httpd"]),
];

/// Options of git itself that take no word more, and those that do are in `danger`: behind others nobody knows what is
/// git's command.
const GIT_FLAGS: &[&str] = &[
    "-P",
    "-h",
    "-p",
    "-v",
    "--bare",
    "--glob-pathspecs",
    "--help",
    "--html-path",
    "--icase-pathspecs",
    "--info-path",
    "--literal-pathspecs",
    "--man-path",
    "--no-advice",
    "--no-lazy-fetch",
    "--no-optional-locks",
    "--no-pager",
    "--no-replace-objects",
    "--noglob-pathspecs",
    "--paginate",
    "--version",
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
    ("asdf", &["exec"]),
    ("aws-okta", &["exec"]),
    ("aws-vault", &["exec"]),
    ("bun", &["run", "x"]),
    ("bundle", &["exec"]),
    ("bunx", &[]),
    ("cabal", &["exec"]),
    ("chamber", &["exec"]),
    ("choom", &[]),
    ("chpst", &[]),
    ("cmake", &["chdir", "env", "time"]),
    ("conda", &["run"]),
    ("corepack", &[]),
    ("cross-env", &[]),
    ("cross-env-shell", &[]),
    ("devbox", &["run"]),
    ("direnv", &["exec"]),
    ("docker", &["exec", "run"]),
    ("docker-compose", &["exec", "run"]),
    ("doppler", &["run"]),
    ("dotenv", &[]),
    ("dotenvx", &["run"]),
    ("dumb-init", &[]),
    ("eatmydata", &[]),
    ("env-cmd", &[]),
    ("faketime", &[]),
    ("fnm", &["exec"]),
    ("foreman", &["run"]),
    ("gosu", &[]),
    ("hatch", &["run"]),
    ("heroku", &["run"]),
    ("ifne", &[]),
    ("ip", &["exec", "e", "ex", "exe"]),
    ("kubectl", &["exec"]),
    ("mamba", &["run"]),
    ("micromamba", &["run"]),
    ("mise", &["exec", "x"]),
    ("nerdctl", &["exec", "run"]),
    ("nix", &["develop", "run", "shell"]),
    ("npm", &["exec", "x"]),
    ("npx", &[]),
    ("nvm", &["exec", "run"]),
    ("oc", &["exec", "rsh"]),
    ("op", &["run"]),
    ("opam", &["exec"]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("pipx", &["run"]),
    ("pixi", &["run"]),
    ("pnpm", &[]),
    ("pnpx", &[]),
    ("podman", &["exec", "run", "unshare"]),
    ("poetry", &["run"]),
    ("proxychains", &[]),
    ("proxychains4", &[]),
    ("pyenv", &["exec"]),
    ("rbenv", &["exec"]),
    ("runcon", &[]),
    ("rustup", &["run"]),
    ("rye", &["run"]),
    ("sshpass", &[]),
    ("stack", &["exec"]),
    ("su-exec", &[]),
    ("systemd-inhibit", &[]),
    ("tini", &[]),
    ("torify", &[]),
    ("torsocks", &[]),
    ("uv", &["run"]),
    ("uvx", &[]),
    ("volta", &["run"]),
    ("yarn", &[]),
];

/// Behind which of its words such a program runs others; none: behind any.
pub(in crate::engine::policy) fn runs_behind(name: &str) -> Option<&'static [&'static str]> {
    RUNNERS.iter().find(|it| it.0 == name).map(|it| it.1)
}

/// What bun, pnpm and yarn do themselves. All else is a script, or a program of a package.
const OWN: &[&str] = &[
    "add",
    "audit",
    "cache",
    "config",
    "i",
    "info",
    "init",
    "install",
    "link",
    "list",
    "ls",
    "outdated",
    "pack",
    "publish",
    "remove",
    "rm",
    "store",
    "un",
    "uninstall",
    "unlink",
    "up",
    "update",
    "upgrade",
    "why",
];

/// Of these, what xargs appends is taken for names: everybody does that.
const TAKES_NAMES: &[&str] = &["cargo", "go", "gradle", "gradlew", "npm", "npx", "pnpm", "rg", "sort", "tar", "yarn"];

/// Those that take a place before the command.
const PLACED: &[&str] = &["direnv", "docker", "docker-compose", "ip", "kubectl", "nerdctl", "podman", "rustup"];

/// More words are not looked at one by one.
const MAX_WORDS: usize = 100;

/// What such a program runs with these words, if it is one.
pub(super) fn inner(name: &str, args: &[Word]) -> Inner {
    let has = |options: &[&str]| args.iter().any(|arg| options.iter().any(|it| names_option(&arg.text, it)));
    let named =
        |it: &&(&str, &[&str])| it.0 == name && (has(it.1) || !TAKES_NAMES.contains(&name) && may_be_option(args));
    let by_option = OPTIONS.iter().any(|it| named(&it));
    // `tar xIf prog x`: the first word is its options.
    let bundled =
        name == "tar" && args.first().is_some_and(|it| !it.text.starts_with('-') && it.text.contains(['I', 'F']));
    let within =
        WITHIN.iter().any(|it| it.0 == name && args.iter().any(|arg| it.1.iter().any(|it| arg.text.contains(it))));
    let hides = within
        || match name {
            "git" => git(args),
            "sed" | "gsed" => edits::writes_or_runs(args),
            "make" | "gmake" => by_option || reads_makefile(args) || sets_what_runs(args),
            _ if MAKES.contains(&name) => by_option || reads_makefile(args),
            _ => by_option || bundled || name.starts_with("ld-linux") || name.starts_with("ld-musl") || name == "ld.so",
        };
    // `npx -c 'a b'`; `npx eslint -c file` is no script.
    let script =
        |it: &(&Word, &Word)| matches!(it.0.text.as_str(), "-c" | "--call" | "--command") && it.1.text.contains(' ');
    let scripted = matches!(name, "npx" | "npm" | "nix") && args.iter().zip(args.iter().skip(1)).any(|it| script(&it));
    if hides || scripted {
        let unseen = match name {
            "make" | "gmake" => reads_makefile(args),
            _ if MAKES.contains(&name) => reads_makefile(args),
            "sed" | "gsed" => edits::runs_its_input(args),
            _ => false,
        };
        return if unseen { Inner::Unseen } else { Inner::Hidden };
    }
    if matches!(name, "make" | "gmake") {
        let set = args.iter().filter_map(Word::literal).filter(|it| it.contains('=') && !it.starts_with('-'));
        let run: Vec<Vec<Word>> = set.filter_map(|it| runs_by_assignment(it).flatten()).collect();
        return if run.is_empty() { Inner::Nothing } else { Inner::Carried(run) };
    }
    if let Some(sub) = name.strip_prefix("git-").filter(|it| !it.is_empty()) {
        return Inner::Same(["git", sub].into_iter().map(Word::literally).chain(args.iter().cloned()).collect());
    }
    let runs = RUNNERS.iter().find(|it| it.0 == name);
    let told =
        |subs: &[&str]| subs.is_empty() || args.iter().any(|it| it.literal().is_some_and(|it| subs.contains(&it)));
    let own = args.iter().find(|it| !it.text.starts_with('-')).is_some_and(|it| OWN.contains(&it.text.as_str()));
    match runs.filter(|it| told(it.1) && !(own && matches!(it.0, "bun" | "pnpm" | "yarn"))) {
        Some(_) if args.len() > MAX_WORDS => Inner::Hidden,
        // `xargs npx`: the program itself.
        Some(it) if names_before_unknown(args) <= it.1.len().min(1) + usize::from(PLACED.contains(&name)) => {
            Inner::Unseen
        }
        Some(_) => {
            let starts = (0..args.len()).filter_map(|at| args.get(at..));
            let command =
                |it: &&[Word]| it.first().is_some_and(|it| !it.text.starts_with('-') && it.literal().is_some());
            Inner::Carried(starts.filter(command).map(unversioned).collect())
        }
        None => Inner::Nothing,
    }
}

/// `rimraf@5 src` is `rimraf src`.
fn unversioned(words: &[Word]) -> Vec<Word> {
    let mut res = words.to_vec();
    if let Some(first) = res.first_mut() {
        let end = first.text.rfind('@').filter(|it| *it > 0).unwrap_or(first.text.len());
        first.text.truncate(end);
    }
    res
}

/// Whether a word that nobody knows stands where an option may.
fn may_be_option(args: &[Word]) -> bool {
    let options = args.split(|it| it.literal() == Some("--")).next().unwrap_or_default();
    options.iter().any(Word::is_unknown)
}

/// How many names stand before the first word that nobody knows; all too many where there is none.
fn names_before_unknown(args: &[Word]) -> usize {
    match args.iter().position(Word::is_unknown) {
        Some(at) => args.iter().take(at).filter(|it| !it.text.starts_with('-')).count(),
        None => usize::MAX,
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

/// What else is told of a file with commands in it.
const MAKES: &[&str] = &["bmake", "gradle", "gradlew", "just", "ninja", "scons"];

/// `make -f -`
fn reads_makefile(args: &[Word]) -> bool {
    const FILES: &[&str] = &["-I", "-f", "--file", "--init-script", "--justfile", "--makefile"];
    let is_file = |it: &Word| it.text == "-" || is_stream(&it.text);
    let named = args.iter().zip(args.iter().skip(1)).any(|it| FILES.contains(&it.0.text.as_str()) && is_file(it.1));
    let stuck = |it: &Word| {
        let file = ["-f", "--file=", "--makefile="].iter().find_map(|start| it.text.strip_prefix(start));
        file.is_some_and(|it| it == "-" || is_stream(it))
    };
    named || args.iter().any(stuck)
}

/// `make CC='rm x;'`: variables, as make's words.
fn sets_what_runs(args: &[Word]) -> bool {
    let set = args.iter().filter(|it| !it.text.starts_with('-') && it.text.contains('='));
    set.filter_map(Word::literal).any(|it| {
        let value = it.split_once('=').map_or("", |it| it.1);
        runs_by_assignment(it).is_none() || value.contains(['`', ';', '|', '&']) || value.contains("$(")
    })
}

/// A script that stands nowhere.
pub(super) fn is_stream(path: &str) -> bool {
    path.contains(['(', '`']) || path.starts_with("/dev/") || path.starts_with("/proc/")
}

fn git(args: &[Word]) -> bool {
    let words = git_words(args);
    let globals = args.get(..args.len() - words.len()).unwrap_or_default();
    if globals.iter().any(|it| it.text.starts_with("--exec") || it.text.starts_with("--config-env")) {
        return true;
    }
    let known = |it: &str| it.contains('=') || GIT_FLAGS.contains(&it) || GIT_VALUED.contains(&it);
    if globals.iter().any(|it| it.text.starts_with('-') && !known(&it.text)) {
        return true;
    }
    let set = globals.iter().zip(globals.iter().skip(1)).filter(|it| it.0.text == "-c").map(|it| it.1);
    if set.into_iter().any(|it| !is_harmless(it)) {
        return true;
    }
    let Some((sub, args)) = words.split_first() else { return false };
    if sub.text == "config" && args.iter().any(|it| it.text.starts_with("alias.") || it.text.starts_with('!')) {
        return true;
    }
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
    is_harmless_setting(&key)
        || !key.starts_with("alias.") && matches!(value, "" | "cat" | "false" | "less" | "true" | ":" | "0" | "1")
}

/// Whether a setting of git of this name runs nothing, whatever it is.
pub(super) fn is_harmless_setting(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    GIT_HARMLESS.iter().any(|it| key.starts_with(it))
}
