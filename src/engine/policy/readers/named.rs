//! Names that are not among a command's words: on its input, or of a file that it reads unasked.

use crate::engine::policy::{
    leads::quoted,
    shell::{Command, Word},
};

/// Whether an archive takes in what its input names: `find . | zip x -@`, `ls -A | tar cf x -T -`.
pub(super) fn from_input(name: &str, args: &[Word]) -> bool {
    let texts = || args.iter().map(|it| it.text.as_str());
    let behind = |options: &[&str]| {
        let input = |it: &str| matches!(it, "-" | "/dev/stdin");
        let stuck = |it: &str| {
            options.iter().any(|option| it.strip_prefix(option).is_some_and(|it| input(it.trim_start_matches('='))))
        };
        texts().any(stuck) || texts().zip(texts().skip(1)).any(|it| options.contains(&it.0) && input(it.1))
    };
    match name {
        "bsdtar" | "gtar" | "tar" => {
            let first = texts().next().unwrap_or_default();
            let extracts = !first.starts_with("--") && first.contains(['t', 'x']);
            let extracts = extracts || texts().any(|it| matches!(it, "-t" | "-x" | "--extract" | "--list"));
            !extracts && behind(&["-T", "--files-from"])
        }
        "cpio" => texts().any(|it| it.starts_with("-p") || it == "--pass-through"),
        "pax" => writes(args) && !texts().any(|it| !it.starts_with('-')),
        "rsync" => behind(&["--files-from"]),
        "zip" => texts().any(|it| it.starts_with('-') && it.ends_with('@')),
        _ => false,
    }
}

/// Whether `pax` makes an archive, or a copy.
pub(super) fn writes(args: &[Word]) -> bool {
    args.iter().any(|it| it.text.starts_with('-') && it.text.contains('w'))
}

/// What `fd` starts for what it finds.
pub(super) fn starts(args: &[Word]) -> impl Iterator<Item = &Word> {
    args.iter().zip(args.iter().skip(1)).filter(|it| executes(it.0)).map(|it| it.1)
}

fn executes(word: &Word) -> bool {
    matches!(word.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch")
}

/// Whether `fd` may list a file of that name: by its endings, `-e rs`, and by a pattern that is nothing but one, `'\.rs$'`.
pub(super) fn is_listed(args: &[Word], name: &str) -> bool {
    let texts = || args.iter().take_while(|it| !executes(it)).map(|it| it.text.as_str());
    let pairs = || texts().zip(texts().skip(1));
    let mut endings = pairs().filter(|it| matches!(it.0, "-e" | "--extension")).map(|it| it.1).peekable();
    let ends = |it: &str| name.strip_suffix(it.trim_start_matches('.')).is_some_and(|it| it.ends_with('.'));
    let plain = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric());
    // What stands behind another option may be its value.
    let mut words = texts().skip_while(|it| matches!(*it, "-0" | "-H" | "-I" | "-HI" | "-u" | "--hidden"));
    let pattern = words.next().and_then(|it| it.strip_prefix("\\.")?.strip_suffix('$')).filter(|it| plain(it));
    (endings.peek().is_none() || endings.any(ends)) && pattern.is_none_or(|it| name.ends_with(it))
}

/// Whether the command prints what the `.env` beside it says: `docker compose config`.
pub(super) fn resolves_env(name: &str, args: &[Word]) -> bool {
    const OTHERS: &[&str] =
        &["-q", "--hash", "--help", "--images", "--networks", "--profiles", "--quiet", "--services", "--volumes"];
    let mut words = args.iter().map(|it| it.text.as_str());
    let composes = match name {
        "docker" | "nerdctl" | "podman" => words.next() == Some("compose"),
        _ => matches!(name, "docker-compose" | "podman-compose"),
    };
    // Behind an option its value may stand.
    let mut valued = false;
    let first = words.by_ref().find(|it| {
        let (option, value) = (it.starts_with('-'), valued);
        valued = option && !it.contains('=');
        !option && !value
    });
    composes
        && matches!(first, Some("config" | "convert"))
        && !words.any(|it| OTHERS.iter().any(|start| it.starts_with(start)))
}

/// Calls by which code copies a folder, or packs it.
const PACKS: &[&str] = &["copySync(", "copy_tree(", "copytree(", "cpSync(", "cp_r(", ARCHIVE];
const ARCHIVE: &str = "make_archive(";

pub(super) fn is_packed_by_code(command: &Command) -> bool {
    command.code.as_ref().is_some_and(|it| PACKS.iter().any(|call| it.contains(call)))
}

/// The folders that these calls name: `shutil.make_archive("x", "zip", ".")`, and without the last it is the one here.
pub(super) fn packed_by(command: &Command) -> Vec<Word> {
    let code = command.code.as_deref().unwrap_or_default();
    let inside = |call: &&'static str| code.split(*call).skip(1).map(|it| it.split(')').next().unwrap_or_default());
    let named = PACKS.iter().flat_map(inside).flat_map(quoted);
    let here = code.split(ARCHIVE).skip(1).any(|it| it.split(')').next().unwrap_or_default().matches(',').count() < 2);
    named.chain(here.then_some(".")).map(Word::literally).collect()
}
