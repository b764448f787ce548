//! Scripts of sed that write files or run commands.

use super::{Word, carriers};

/// Whether a script among the words has the commands `e`, `w` or `W`, or their flags. One that only might is taken for
/// one that has.
pub(super) fn writes_or_runs(args: &[Word]) -> bool {
    reads_script(args) || scripts(args).iter().any(|it| it.is_unknown() || acts(script_of(it), &['e', 'w', 'W']))
}

/// Whether what it runs are the lines that it reads: `/x/e`, `s/a/b/e`.
pub(super) fn runs_its_input(args: &[Word]) -> bool {
    reads_script(args)
        || scripts(args).iter().any(|it| {
            let script = script_of(it);
            it.is_unknown() || acts(script, &['e']) && runs_lines(script)
        })
}

/// `sed -f -`, `sed -f <(echo x)`
fn reads_script(args: &[Word]) -> bool {
    let is_stream = |it: &str| it == "-" || carriers::is_stream(it);
    let apart = args.iter().zip(args.iter().skip(1)).any(|it| it.0.text == "-f" && is_stream(&it.1.text));
    let stuck = |it: &Word| ["--file=", "-f"].iter().any(|start| it.text.strip_prefix(start).is_some_and(is_stream));
    apart || args.iter().any(stuck)
}

/// The script in such a word, behind its option and without the shell's quotes: `-es/a/b/`.
fn script_of(word: &Word) -> &str {
    let text = word.text.strip_prefix("--expression=").or_else(|| word.text.strip_prefix("-e")).unwrap_or(&word.text);
    text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(text)
}

fn scripts(args: &[Word]) -> Vec<&Word> {
    let given = |it: &&Word| ["-e", "--expression"].iter().any(|option| it.text.starts_with(option));
    let mut scripts: Vec<&Word> = args.iter().filter(given).collect();
    let after =
        args.iter().zip(args.iter().skip(1)).filter(|it| it.0.text.starts_with('-') && it.0.text.ends_with('e'));
    scripts.extend(after.map(|it| it.1));
    if scripts.is_empty() {
        scripts.extend(args.iter().find(|it| !it.text.starts_with('-')));
    }
    scripts
}

/// An `e` with nothing behind it, or behind a substitution.
fn runs_lines(script: &str) -> bool {
    let ends = |it: &str| it.trim_end().ends_with('e');
    script.split([';', '\n', '{', '}']).any(ends) || substitutes_and_runs(script, &['e'])
}

fn acts(script: &str, letters: &[char]) -> bool {
    let address = |it: char| it.is_ascii_digit() || it.is_whitespace() || ",$!~+{".contains(it);
    let ends = |rest: &str| rest.is_empty() || rest.starts_with([' ', ';', '}', '\n', '/', '.']);
    let runs = |it: &str| {
        let rest = it.strip_prefix(letters);
        rest.is_some_and(ends)
    };
    let command = |piece: &str| {
        let piece = piece.trim_start_matches(address);
        // `/x/e rm`, `/x/Ie`, `\,x,e rm`
        let behind = piece.strip_prefix('/').and_then(|it| it.rsplit_once('/')).map_or("", |it| it.1);
        runs(piece)
            || runs(behind.trim_start_matches(|it| address(it) || matches!(it, 'I' | 'M')))
            || piece.starts_with('\\')
    };
    script.split([';', '\n', '{', '}']).any(command) || substitutes_and_runs(script, letters)
}

/// `s/a/b/e`, `s,a,b,w f`: by the last letters of anything that may be one.
fn substitutes_and_runs(script: &str, letters: &[char]) -> bool {
    let flags = |it: char| it.is_ascii_digit() || "gpIimM".contains(it);
    script.match_indices(letters).any(|(at, letter)| {
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
