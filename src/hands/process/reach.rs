//! Paths of a workspace that a program's line names, and starts away from it. No script is read.

use std::{collections::BTreeSet, path::Path};

use crate::disk;
use castor_base::path::AbsPath;

/// Below castor's own folder.
const AWAY: &str = "away";
/// Variables that say where somebody works.
const PLACES: &[&str] = &["PWD", "OLDPWD", "INIT_CWD"];
/// Folders against which a relative word is read, at most.
const MAX_BASES: usize = 8;
/// What ends a word in the lines that shells read, and in words such as `--x=PATH` and `A:B`.
const BETWEEN: &str = "\"'`;&|()<>=:,";

/// A program as settings name it.
#[derive(Clone, Copy)]
pub struct ProgramLine<'a> {
    pub program: &'a str,
    pub args: &'a [String],
    /// Variables of its own.
    pub own_env: &'a [(String, String)],
    /// Where relative words are looked for: the folder that its settings name, or the session's.
    pub folder: &'a AbsPath,
    /// Variables of all children.
    pub env: &'a [(String, String)],
}

impl ProgramLine<'_> {
    /// The roots that it names, as they are now: by its program, wherever links lead, by a word or by a variable.
    pub fn named_roots(&self, roots: &[AbsPath]) -> BTreeSet<AbsPath> {
        let mut res = BTreeSet::new();
        res.extend(self.program_place(&self.expand(self.program), roots).and_then(|it| root_of(&it, roots)));
        let bases = self.bases();
        for word in self.args.iter().chain(self.own_env.iter().map(|it| &it.1)).map(String::as_str) {
            // What a shell would put there cannot be known.
            if word.contains("$(") || word.contains('`') {
                res.extend(roots.iter().cloned());
            }
            let whole = self.expand(word);
            res.extend(roots.iter().filter(|it| whole.contains(&it.to_string())).cloned());
            for piece in whole.split(is_between).chain([whole.as_str()]).filter(|it| !it.is_empty()) {
                // A shell, or a program such as `env`, looks for it as for a program.
                let by_path = Some(piece).filter(|it| !it.contains('/')).and_then(|it| self.program_place(it, roots));
                res.extend(by_path.and_then(|it| root_of(&it, roots)));
                res.extend(places(piece, self.folder, &bases).iter().filter_map(|it| root_of(it, roots)));
            }
        }
        res
    }

    /// What is there of what it names.
    pub fn named_paths(&self) -> Vec<AbsPath> {
        let bases = self.bases();
        let words = self.args.iter().chain(self.own_env.iter().map(|it| &it.1)).map(String::as_str);
        let found = words.chain([self.program]).flat_map(|word| {
            let whole = self.expand(word);
            let pieces = whole.split(is_between).chain([whole.as_str()]).filter(|it| it.contains('/'));
            pieces.flat_map(|it| places(it, self.folder, &bases)).collect::<Vec<_>>()
        });
        found.filter_map(|it| disk::real_path(&it).ok()).collect()
    }

    /// Where a program lies. Away from a root its folders are not on the path, and links on the path still lead there.
    fn program_place(&self, program: &str, roots: &[AbsPath]) -> Option<AbsPath> {
        if program.contains('/') {
            return Some(self.folder.join(program));
        }
        let folders = || self.value("PATH").unwrap_or_default().split(':');
        let place = |folder: &str| Some(self.folder.join(folder).join(program)).filter(is_program);
        folders().filter(|it| is_away(it, roots)).find_map(place).or_else(|| folders().find_map(place))
    }

    fn value(&self, name: &str) -> Option<&str> {
        let all = self.env.iter().chain(self.own_env).rev();
        all.into_iter().find(|it| it.0 == name).map(|it| it.1.as_str())
    }

    /// With the home for `~` and variables for their names, as shells have them.
    fn expand(&self, word: &str) -> String {
        let home = self.value("HOME").unwrap_or_default();
        let mut res = String::new();
        let mut rest = word;
        while let Some((before, after)) = rest.split_once(['~', '$']) {
            let at_start = res.is_empty() && before.is_empty() || before.ends_with(|it: char| !it.is_alphanumeric());
            let is_home = rest.as_bytes().get(before.len()) == Some(&b'~');
            res.push_str(before);
            rest = after;
            if is_home {
                let ends = after.chars().next().is_none_or(|it| it == '/' || is_between(it));
                res.push_str(if at_start && ends { home } else { "~" });
                continue;
            }
            let in_braces = after.strip_prefix('{').and_then(|it| it.split_once('}'));
            let end = after.find(|it: char| !it.is_ascii_alphanumeric() && it != '_').unwrap_or(after.len());
            let (name, next) = in_braces.unwrap_or_else(|| after.split_at(end));
            match (name, self.value(name)) {
                ("PWD" | "OLDPWD" | "INIT_CWD", _) => res.push_str(&self.folder.to_string()),
                (_, Some(value)) => res.push_str(value),
                (_, None) => res.push('$'),
            }
            rest = if name != "PWD" && self.value(name).is_none() { after } else { next };
        }
        res + rest
    }

    /// Folders that a line may go to before it reads a relative word.
    fn bases(&self) -> Vec<AbsPath> {
        let words = self.args.iter().flat_map(|it| {
            let whole = self.expand(it);
            whole.split(is_between).map(str::to_owned).collect::<Vec<_>>()
        });
        let named = words.filter_map(AbsPath::new).filter(|it| disk::metadata(it).is_ok_and(|it| it.is_dir));
        let home = self.value("HOME").and_then(AbsPath::new);
        [self.folder.clone()].into_iter().chain(home).chain(named).take(MAX_BASES).collect()
    }

    /// The variables for a start away from all roots: none that names one, and no such folder on the path.
    pub fn env_away(&self, roots: &[AbsPath]) -> Vec<(String, String)> {
        let names_root = |value: &str| {
            roots.iter().any(|it| value.contains(&it.to_string()))
                || value.split([':', ' ', '=']).filter_map(AbsPath::new).any(|it| root_of(&it, roots).is_some())
        };
        let kept = self.env.iter().filter(|(name, value)| name == "PATH" || !names_root(value));
        let kept = kept.filter(|(name, _)| !PLACES.contains(&name.as_str()));
        kept.map(|(name, value)| match name.as_str() {
            "PATH" => (name.clone(), value.split(':').filter(|it| is_away(it, roots)).collect::<Vec<_>>().join(":")),
            _ => (name.clone(), value.clone()),
        })
        .collect()
    }
}

/// Where programs work that have nothing to do with a workspace: a folder of castor's own, which no command sees.
pub fn away(castor: &AbsPath, roots: &[AbsPath]) -> AbsPath {
    let own = castor.join(AWAY);
    match (root_of(&own, roots), AbsPath::new("/")) {
        (Some(_), Some(top)) => top,
        _ => own,
    }
}

/// Makes that folder, where it is the one.
pub fn make_away(cwd: &AbsPath) {
    if cwd.as_path().file_name().is_some_and(|it| it == AWAY) {
        // Without it nothing starts, which is said then.
        _ = disk::create_private_dir(cwd);
    }
}

fn is_program(it: &AbsPath) -> bool {
    disk::metadata(it).is_ok_and(|it| !it.is_dir)
}

/// Whether a folder on the path stays there for a start away from all roots.
fn is_away(entry: &str, roots: &[AbsPath]) -> bool {
    AbsPath::new(entry).is_some_and(|it| root_of(&it, roots).is_none())
}

fn is_between(it: char) -> bool {
    it.is_whitespace() || BETWEEN.contains(it)
}

/// Where a word may lead. What it names need not be there yet, if its folder is.
fn places(word: &str, folder: &AbsPath, bases: &[AbsPath]) -> Vec<AbsPath> {
    if let Some(it) = AbsPath::new(word) {
        return vec![it];
    }
    let plain = word.starts_with("./") || word.starts_with("../") || matches!(word, "." | "..");
    let is_there = |it: &AbsPath| it.as_path().symlink_metadata().is_ok();
    let in_folder = |it: &AbsPath| word.contains('/') && it.parent().is_some_and(|it| is_there(&it));
    let there = bases.iter().map(|it| it.join(word)).filter(|it| is_there(it) || in_folder(it));
    there.chain(plain.then(|| folder.join(word))).collect()
}

/// The root that a path lies in, by its name or as it really is.
fn root_of(path: &AbsPath, roots: &[AbsPath]) -> Option<AbsPath> {
    let real = disk::real_path(path).ok();
    let lies_in = |it: &AbsPath, root: &AbsPath| it.is_within(root);
    let found = roots.iter().find(|root| lies_in(path, root) || real.as_ref().is_some_and(|it| lies_in(it, root)));
    // A root that is all of the machine has everything in it.
    found.or_else(|| roots.iter().find(|it| it.as_path() == Path::new("/"))).cloned()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::ProgramLine;
    use castor_base::path::AbsPath;

    #[test]
    #[allow(clippy::disallowed_methods)]
    fn a_line_names_a_root_by_program_word_or_variable() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        for it in ["ws/sub", "ws/pkg", "ws/node_modules/.bin", "home/bin", "sys", "other"] {
            fs::create_dir_all(top.join(it).as_path()).unwrap();
        }
        for it in ["ws/srv.py", "ws/sub/x", "ws/node_modules/.bin/tool", "sys/npx", "sys/python3", "other/srv.py"] {
            fs::write(top.join(it).as_path(), "").unwrap();
        }
        symlink(top.join("ws/sub/x").as_path(), top.join("home/bin/linked").as_path()).unwrap();
        symlink(top.join("ws").as_path(), top.join("home/proj").as_path()).unwrap();
        // Another of that name further on does not help.
        symlink(top.join("ws/sub/x").as_path(), top.join("home/bin/both").as_path()).unwrap();
        fs::write(top.join("sys/both").as_path(), "").unwrap();
        let (ws, at) = (top.join("ws"), |it: &str| top.join(it).to_string());
        let path = [at("ws/node_modules/.bin"), at("home/bin"), at("sys")].join(":");
        let env = [("PATH", path), ("HOME", at("home")), ("PWD", at("ws")), ("LANG", "C".to_owned())];
        let env: Vec<(String, String)> = env.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
        let fill = |it: &str| it.replace("TOP", &top.to_string());
        let check = |line: &str, own: &[(&str, &str)], want: bool| {
            let words: Vec<String> = line.split(' ').map(|it| fill(it).replace('_', " ")).collect();
            let own: Vec<(String, String)> = own.iter().map(|(name, it)| ((*name).to_owned(), fill(it))).collect();
            let line = ProgramLine { program: &words[0], args: &words[1..], own_env: &own, folder: &ws, env: &env };
            assert_eq!(!line.named_roots(std::slice::from_ref(&ws)).is_empty(), want, "{words:?}");
        };
        for line in [
            "./srv.py",
            "python3 ./srv.py",
            "python3 srv.py",
            "python3 -m pkg",
            "python3 TOP/ws/srv.py",
            "python3 --file=sub/x",
            "npx server .",
            "npx server --root=TOP/ws",
            "npx server $PWD/x",
            "npx server ${PWD}",
            "npx server ~/proj/new.js",
            "npx server $HOME/proj/x",
            "linked",
            "tool",
            "TOP/home/proj/sub/x",
            "sh -c linked",
            "sh -c true;linked_x",
            "env linked",
            "both",
            "sh -c cd_sub_&&_./x",
            "sh -c cd_TOP/ws;_./new",
            "sh -c cd_~;_proj/x",
            "sh -c exec_$(cat_~/.name)",
            "node ../ws/x",
        ] {
            check(line, &[], true);
        }
        for line in [
            "npx -y some-server",
            "python3 -m http.server",
            "npx",
            "python3 TOP/other/srv.py",
            "sh -c echo_a",
            "sh -c npx_>$HOME/x;_npx_a",
        ] {
            check(line, &[], false);
        }
        check("npx some-server", &[("NODE_OPTIONS", "--require TOP/ws/x.js")], true);
        check("npx some-server", &[("TOKEN", "abc")], false);
        let line = ProgramLine { program: "npx", args: &[], own_env: &[], folder: &ws, env: &env };
        let away = line.env_away(std::slice::from_ref(&ws));
        let away: Vec<String> = away.iter().map(|(name, it)| format!("{name}={it}")).collect();
        assert_eq!(
            away,
            [format!("PATH={}:{}", at("home/bin"), at("sys")), format!("HOME={}", at("home")), "LANG=C".into()]
        );
    }
}
