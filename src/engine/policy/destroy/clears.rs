//! Programs that empty the folder which they are told to fill: `vite build --emptyOutDir --outDir src`.

use super::Place;
use crate::engine::policy::shell::{Word, WordKind};

/// The folder that is emptied, unless a build makes it anew. Where none is named it is the program's own.
pub(super) fn outside<'w>(args: &'w [Word], when: &[&str], folders: &[&str], place: &Place) -> Option<Vec<&'w str>> {
    let told = when.is_empty() || args.iter().any(|it| when.contains(&it.text.as_str()));
    let named = folders.iter().filter(|_| told).find_map(|it| named(args, it));
    // Hugo's and MkDocs' own.
    let own = |it: &&(usize, Word)| folders.contains(&"-d") && matches!(it.1.text.as_str(), "public" | "site");
    let (at, folder) = named.filter(|it| !own(&it)).filter(|it| !place.all_build(std::iter::once(&it.1)))?;
    (folder.text != "false").then(|| args.get(at).map(|it| it.text.as_str()).into_iter().collect())
}

/// Where it stands, and what it is.
fn named(args: &[Word], option: &str) -> Option<(usize, Word)> {
    let mut operands = args.iter().enumerate().filter(|it| !it.1.text.starts_with('-'));
    match option {
        "" => operands.next().map(|it| (it.0, it.1.clone())),
        "$" => operands.next_back().map(|it| (it.0, it.1.clone())),
        _ => args.iter().enumerate().find_map(|(at, word)| {
            let rest = word.text.strip_prefix(option)?;
            let short = !option.starts_with("--") && option.len() == 2;
            match rest.strip_prefix('=') {
                Some(value) => Some((at, worded(value, word.kind))),
                None if rest.is_empty() => args.get(at + 1).map(|it| (at + 1, it.clone())),
                None => short.then(|| (at, worded(rest, word.kind))),
            }
        }),
    }
}

fn worded(text: &str, kind: WordKind) -> Word {
    Word { text: text.to_owned(), kind }
}
