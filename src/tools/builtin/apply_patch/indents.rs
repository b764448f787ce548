//! Indentation of new lines where a file has another one than the patch: by pairs of lines that are there in both.

use std::collections::BTreeMap;

/// Which indentation of a file stands for which one of a patch.
#[derive(Debug, Default)]
pub struct IndentMap<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> IndentMap<'a> {
    /// From lines of the patch, each with its line of the file; `None`: they contradict each other.
    pub fn from_pairs(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut res = Self::default();
        for (own, file) in pairs.filter(|it| !it.0.trim().is_empty()) {
            let (own, file) = (indent(own), indent(file));
            if *res.0.entry(own).or_insert(file) != file {
                return None;
            }
        }
        // What is deeper in the patch is deeper in the file.
        let is_deeper = |a: &str, b: &str| a.len() > b.len() && a.starts_with(b);
        let all = || res.0.iter();
        let contradicts = |a: (&&str, &&str)| all().any(|b| is_deeper(a.0, b.0) != is_deeper(a.1, b.1));
        if all().any(contradicts) { None } else { Some(res) }
    }

    /// `line` with the file's indentation; `None`: nobody can tell which.
    pub fn retype(&self, line: &str) -> Option<String> {
        let own = indent(line);
        let text = line.get(own.len()..)?;
        if text.is_empty() || self.0.iter().all(|(own, file)| own == file) {
            return Some(line.to_owned());
        }
        Some(self.file_indent(own)? + text)
    }

    fn file_indent(&self, own: &str) -> Option<String> {
        if let Some(it) = self.0.get(own) {
            return Some((*it).to_owned());
        }
        let below = self.0.iter().filter_map(|(known, file)| Some((own.strip_prefix(known)?, file)));
        if let Some((rest, file)) = below.min_by_key(|it| it.0.len()) {
            return Some(format!("{file}{}", self.convert(rest)?));
        }
        let above = self.0.iter().filter_map(|(known, file)| Some((known.strip_prefix(own)?, file)));
        let (rest, file) = above.min_by_key(|it| it.0.len())?;
        file.strip_suffix(&*self.convert(rest)?).map(str::to_owned)
    }

    /// A part of an indentation, in the file's characters.
    fn convert(&self, rest: &str) -> Option<String> {
        let own = single_char(self.0.keys().copied().chain([rest]))?;
        let file = single_char(self.0.values().copied())?.or(own)?;
        let (from, to) = self.scale(own != Some(file))?;
        let len = rest.len().checked_mul(to)?;
        (len % from == 0).then(|| file.to_string().repeat(len / from))
    }

    /// So many characters of the patch are so many of the file. One pair alone that has the same characters is a shift.
    fn scale(&self, is_other_char: bool) -> Option<(usize, usize)> {
        let lens: Vec<(usize, usize)> = self.0.iter().map(|(own, file)| (own.len(), file.len())).collect();
        let steps = lens.windows(2).filter_map(|it| match it {
            [a, b] => Some((b.0.checked_sub(a.0)?, b.1.checked_sub(a.1)?)),
            _ => None,
        });
        let mut steps: Vec<(usize, usize)> = steps.collect();
        if let (true, true, [only]) = (steps.is_empty(), is_other_char, lens.as_slice()) {
            steps.push(*only);
        }
        let first = steps.first().copied().or((!is_other_char).then_some((1, 1)))?;
        let is_same = |it: &(usize, usize)| it.0 * first.1 == it.1 * first.0;
        (first.0 > 0 && first.1 > 0 && steps.iter().all(is_same)).then_some(first)
    }
}

/// The one character that the texts have, if any; `None`: they have several.
fn single_char<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Option<char>> {
    let mut chars = texts.flat_map(str::chars);
    let first = chars.next();
    chars.all(|it| Some(it) == first).then_some(first)
}

/// The blanks and tabs that a line begins with.
fn indent(line: &str) -> &str {
    let rest = line.trim_start_matches([' ', '\t']);
    line.get(..line.len() - rest.len()).unwrap_or_default()
}
