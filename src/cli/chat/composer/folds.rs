//! Folded pastes: a long text, or an image by its path, stands in the edited text as one character with a label.

use unicode_width::UnicodeWidthStr;

use crate::cli::{
    chat::lower::Draft,
    render::words::count,
    terminal_text::{clean, is_unprintable},
};
use castor_base::{file_uri, text::head};

/// The first of the private characters that stand for folds. Typed and pasted text never has one.
const FIRST: u32 = 0xf0000;
const MAX_FOLDS: u32 = 0xfffd;
/// A paste with more lines or characters is folded.
const MAX_LINES: usize = 6;
const MAX_CHARS: usize = 800;
/// Bytes of one paste.
const MAX_PASTE: usize = 1 << 20;
/// Columns of a name in a label.
const MAX_NAME: usize = 24;
const IMAGES: &[&str] = &["png", "jpg", "jpeg", "gif", "webp"];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fold {
    Text { text: String, label: String },
    Image { path: String, label: String },
}

/// What was folded since the last message. A fold that is removed from the text may come back by undo.
#[derive(Debug, Default)]
pub struct Folds {
    all: Vec<Fold>,
}

impl Folds {
    pub fn clear(&mut self) {
        self.all.clear();
    }

    /// Takes a paste; gives what stands in the text for it.
    pub fn paste(&mut self, text: &str) -> String {
        let text = plain(&head(text, MAX_PASTE).replace("\r\n", "\n").replace('\r', "\n"));
        if let Some(paths) = image_paths(&text) {
            let folded: Vec<String> = paths.iter().map(|it| self.fold_image(it)).collect();
            return folded.join(" ");
        }
        let lines = text.trim_end_matches('\n').split('\n').count();
        if lines <= MAX_LINES && text.chars().count() <= MAX_CHARS {
            return text;
        }
        let label = match lines {
            1 => format!("[paste {}]", count(text.chars().count() as u64, "character", "characters")),
            _ => format!("[paste {lines} lines]"),
        };
        self.fold(Fold::Text { text, label })
    }

    pub fn fold_image(&mut self, path: &str) -> String {
        let images = self.all.iter().filter(|it| matches!(it, Fold::Image { .. })).count();
        let name: String = path.rsplit('/').next().unwrap_or(path).chars().take(MAX_NAME).collect();
        let label = format!("[image {}: {name}]", images + 1);
        self.fold(Fold::Image { path: path.to_owned(), label })
    }

    fn fold(&mut self, fold: Fold) -> String {
        let at = u32::try_from(self.all.len()).unwrap_or(MAX_FOLDS);
        match char::from_u32(FIRST + at).filter(|_| at < MAX_FOLDS) {
            Some(it) => {
                self.all.push(fold);
                it.to_string()
            }
            None => String::new(),
        }
    }

    fn get(&self, it: char) -> Option<&Fold> {
        self.all.get(usize::try_from(u32::from(it).checked_sub(FIRST)?).ok()?)
    }

    /// What a grapheme looks like on the screen: a fold is its label, a tab four blanks.
    pub fn grapheme_text<'a>(&'a self, grapheme: &'a str) -> &'a str {
        match grapheme.chars().next() {
            Some('\t') => "    ",
            Some('\n') | None => "",
            Some(it) => match self.get(it) {
                Some(Fold::Text { label, .. } | Fold::Image { label, .. }) => label,
                None => grapheme,
            },
        }
    }

    pub fn width(&self, grapheme: &str) -> usize {
        self.grapheme_text(grapheme).width()
    }

    pub fn is_fold(&self, grapheme: &str) -> bool {
        grapheme.chars().next().is_some_and(|it| self.get(it).is_some())
    }

    /// As it goes to the agent.
    pub fn unfold(&self, text: &str) -> Draft {
        let mut draft = Draft::default();
        for it in text.chars() {
            match self.get(it) {
                Some(Fold::Text { text, .. }) => draft.text.push_str(text),
                Some(Fold::Image { path, label }) => {
                    draft.text.push_str(label);
                    draft.files.push(path.clone());
                }
                None => draft.text.push(it),
            }
        }
        draft
    }

    /// The other way: what stands in a text as a fold gave it is that fold again.
    pub fn refold(&self, text: &str) -> String {
        let mut res = plain(text);
        for (at, fold) in self.all.iter().enumerate() {
            let (Fold::Text { text: given, .. } | Fold::Image { label: given, .. }) = fold;
            let sign = u32::try_from(at).ok().and_then(|it| char::from_u32(FIRST + it));
            if let (Some(sign), Some(found)) = (sign, res.find(given.as_str())) {
                res.replace_range(found..found + given.len(), sign.encode_utf8(&mut [0; 4]));
            }
        }
        res
    }

    /// A message that comes back, with its images.
    pub fn take_back(&mut self, draft: &Draft) -> String {
        for path in &draft.files {
            if !self.all.iter().any(|it| matches!(it, Fold::Image { path: own, .. } if own == path)) {
                self.fold_image(path);
            }
        }
        let mut text = self.refold(&draft.text);
        // An image whose label is not in the text stands at its end.
        for at in 0..self.all.len() {
            let sign = u32::try_from(at).ok().and_then(|it| char::from_u32(FIRST + it));
            if let (Some(sign), Some(Fold::Image { path, .. })) = (sign, self.all.get(at))
                && draft.files.contains(path)
                && !text.contains(sign)
            {
                text.push(sign);
            }
        }
        text
    }
}

/// Text without what a terminal could obey, what cannot be seen, and what means a fold.
pub fn plain(text: &str) -> String {
    let is_private = |it: char| (FIRST..FIRST + MAX_FOLDS).contains(&u32::from(it));
    clean(text).chars().filter(|it| !is_unprintable(*it) && !is_private(*it)).collect()
}

/// The paths of a paste that names images and nothing else, as terminals write a file that is dropped on them.
fn image_paths(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    if text.is_empty() || text.contains('\n') || text.len() > 4096 {
        return None;
    }
    let words = shlex::split(text)?;
    // Some terminals write a path with blanks as it is.
    words.iter().map(|it| image_path(it)).collect::<Option<_>>().or_else(|| Some(vec![image_path(text)?]))
}

fn image_path(text: &str) -> Option<String> {
    let path = match text.starts_with("file:") {
        true => file_uri::to_path(text)?.to_str()?.to_owned(),
        false => text.to_owned(),
    };
    let is_place = path.starts_with(['/', '.']) || path.starts_with("~/");
    let end = path.rsplit_once('.')?.1.to_ascii_lowercase();
    (is_place && IMAGES.contains(&end.as_str()) && !path.ends_with('/')).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::{Folds, image_paths};

    #[test]
    fn long_pastes_are_one_character_and_go_out_in_whole() {
        let mut folds = Folds::default();
        let long = "line\n".repeat(212);
        assert_eq!(folds.paste("a\r\nb\u{1b}[2J\u{f0000}"), "a\nb");
        let folded = folds.paste(&long);
        assert_eq!((folds.grapheme_text(&folded), folded.chars().count()), ("[paste 212 lines]", 1));
        let wide = folds.paste(&"x".repeat(900));
        assert_eq!(folds.grapheme_text(&wide), "[paste 900 characters]");
        let draft = folds.unfold(&format!("see {folded}!"));
        assert_eq!(draft.text, format!("see {long}!"));
        assert_eq!(folds.refold(&draft.text), format!("see {folded}!"));
    }

    #[test]
    fn paths_of_images_are_found() {
        for (text, expected) in [
            ("/tmp/shot.png", Some(vec!["/tmp/shot.png"])),
            ("'/tmp/my shot.PNG' ", Some(vec!["/tmp/my shot.PNG"])),
            (r"/tmp/my\ shot.png ./b.jpg", Some(vec!["/tmp/my shot.png", "./b.jpg"])),
            ("file:///tmp/my%20shot.png", Some(vec!["/tmp/my shot.png"])),
            ("/tmp/my shot.png", Some(vec!["/tmp/my shot.png"])),
            ("~/a.webp", Some(vec!["~/a.webp"])),
            ("/tmp/a.png /tmp/b.png", Some(vec!["/tmp/a.png", "/tmp/b.png"])),
            ("see /tmp/shot.png", None),
            ("shot.png", None),
            ("/tmp/shot.txt", None),
            ("/tmp/a.png\nx", None),
            ("", None),
        ] {
            let expected = expected.map(|it| it.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(image_paths(text), expected, "{text}");
        }
    }

    #[test]
    fn images_go_as_files_and_come_back() {
        let mut folds = Folds::default();
        let image = folds.paste("/tmp/shot.png");
        let draft = folds.unfold(&format!("why {image}?"));
        assert_eq!(
            (draft.text.as_str(), draft.files.as_slice()),
            ("why [image 1: shot.png]?", &["/tmp/shot.png".into()][..])
        );
        let mut later = Folds::default();
        let text = later.take_back(&draft);
        assert_eq!(later.unfold(&text), draft);
    }
}
