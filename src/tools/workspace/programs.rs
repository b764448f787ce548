//! Programs that a folder's settings would run, described for the trust question, with their files.

use std::collections::BTreeSet;

use serde_json::Value;

use castor_base::path::AbsPath;
use castor_hands::{disk, secrets};

/// How deep hooks are looked for.
const MAX_DEPTH: usize = 6;
/// Words of all lines together that are looked for, and folders among them that the others may lie in.
const MAX_WORDS: usize = 2000;
const MAX_FOLDERS: usize = 8;
/// What stands between names within a word, and around them.
const WORD_ENDS: &[char] =
    &[' ', '\t', '\n', '=', ',', ';', ':', '&', '|', '<', '>', '(', ')', '`', '\'', '"', '{', '}'];

/// What settings would start or reach, in words.
pub fn describe_programs(settings: &Value) -> Vec<String> {
    let mut res = Vec::new();
    let members = |key: &str| settings.get(key).and_then(Value::as_object).into_iter().flatten();
    let servers = members("mcpServers").map(|it| ("MCP server", it));
    for (what, (name, it)) in servers.chain(members("agents").filter(is_program).map(|it| ("agent", it))) {
        let text = |key: &str| it.get(key).and_then(Value::as_str);
        let place = ["httpUrl", "url"].into_iter().find_map(text).map(str::to_owned);
        let args = it.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let command = || Some(text("command").into_iter().chain(args).collect::<Vec<_>>().join(" "));
        res.push(format!("{what} {name}: {}{}", variables(it), place.or_else(command).unwrap_or_default()));
    }
    for key in ["discoveryCommand", "callCommand"] {
        let command = settings.get("tools").and_then(|it| it.get(key)).and_then(Value::as_str);
        res.extend(command.map(|it| format!("tools.{key}: {it}")));
    }
    let mut commands = Vec::new();
    if let Some(hooks) = settings.get("hooks") {
        hook_commands(hooks, MAX_DEPTH, &mut commands);
    }
    res.extend(commands.iter().map(|(command, set)| format!("hook: {set}{command}")));
    res
}

/// Settings have other keys under this name.
fn is_program((_, it): &(&String, &Value)) -> bool {
    it.get("command").is_some_and(Value::is_string)
}

/// `NAME=value ` of what it brings along: `BASH_ENV=./x` runs, too. Keys are not shown.
fn variables(it: &Value) -> String {
    let set = it.get("env").and_then(Value::as_object).into_iter().flatten();
    set.filter_map(|(name, it)| Some((name, it.as_str()?)))
        .map(|(name, it)| {
            format!(
                "{name}={} ",
                if secrets::name_looks_secret(name) || secrets::value_looks_secret(it) { "…" } else { it }
            )
        })
        .collect()
}

fn hook_commands(value: &Value, depth: usize, out: &mut Vec<(String, String)>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Object(members) => {
            out.extend(members.get("command").and_then(Value::as_str).map(|it| (it.to_owned(), variables(value))));
            members.values().for_each(|it| hook_commands(it, depth, out));
        }
        Value::Array(items) => items.iter().for_each(|it| hook_commands(it, depth, out)),
        _ => (),
    }
}

/// The files in `root` that are words of these settings. `None`: there are more words than are looked at.
///
/// What `make` or `npm run` would run from there is not among them: the sandbox holds it.
pub fn named_files(settings: &Value, root: &AbsPath) -> Option<BTreeSet<AbsPath>> {
    let mut words = BTreeSet::new();
    let members = |key: &str| settings.get(key).and_then(Value::as_object).into_iter().flatten();
    for (_, it) in members("mcpServers").chain(members("agents").filter(is_program)) {
        let args = it.get("args").and_then(Value::as_array).into_iter().flatten();
        // `NODE_OPTIONS` and its kind name files that run, too.
        let env = it.get("env").and_then(Value::as_object).into_iter().flatten().map(|(_, it)| it);
        let texts = ["command", "cwd"].into_iter().filter_map(|key| it.get(key)).chain(args).chain(env);
        texts.filter_map(Value::as_str).for_each(|it| take_word(it, &mut false, &mut words));
    }
    let mut commands = Vec::new();
    if let Some(hooks) = settings.get("hooks") {
        hook_commands(hooks, MAX_DEPTH, &mut commands);
    }
    let tools =
        ["discoveryCommand", "callCommand"].into_iter().filter_map(|it| settings.get("tools")?.get(it)?.as_str());
    let lines = commands.iter().flat_map(|(line, set)| [set.as_str(), line]).chain(tools);
    lines.for_each(|it| take_line(it, &mut words));
    (words.len() <= MAX_WORDS).then(|| existing_files(&words, root))
}

fn take_line(line: &str, out: &mut BTreeSet<String>) {
    let split = || line.split_whitespace().map(str::to_owned).collect();
    let mut is_written = false;
    shlex::split(line).unwrap_or_else(split).iter().for_each(|it| take_word(it, &mut is_written, out));
}

/// A word as it is, and the names in it: `--import=./boot.js`, `sh -c 'cd tools && ./run'`. What only a shell knows in front
/// of a name may be the folder: `$CLAUDE_PROJECT_DIR/x.sh`. Where output goes is no program, and changes with every run.
fn take_word(word: &str, is_written: &mut bool, out: &mut BTreeSet<String>) {
    if !*is_written {
        out.insert(word.to_owned());
    }
    for part in word.split_inclusive(WORD_ENDS) {
        let name = part.trim_end_matches(WORD_ENDS);
        if !name.is_empty() && !std::mem::take(is_written) {
            let is_known = name.starts_with(|it: char| it == '.' || it == '_' || it.is_alphanumeric());
            let rest = name.split_once('/').filter(|_| !is_known).map(|it| it.1.to_owned());
            // The home may be anything above the folder: each end of such a path is looked for.
            let parts: Vec<&str> = name.strip_prefix("~/").into_iter().flat_map(|it| it.split('/')).collect();
            let ends = (0..parts.len()).filter_map(|from| Some(parts.get(from..)?.join("/")));
            out.extend(ends.chain(rest).chain([name.to_owned()]));
        }
        *is_written |= part.ends_with('>');
    }
}

/// Those of `words` that are files, in the folder or in one of the folders that they name.
fn existing_files(words: &BTreeSet<String>, root: &AbsPath) -> BTreeSet<AbsPath> {
    let inside = |base: &AbsPath, word: &str| Some(base.join(word)).filter(|it| it.is_within(root));
    let kind = |it: &AbsPath| disk::metadata(it).ok().map(|it| it.is_dir);
    let folders = words.iter().filter_map(|it| inside(root, it)).filter(|it| it != root && kind(it) == Some(true));
    let bases: Vec<AbsPath> = std::iter::once(root.clone()).chain(folders.take(MAX_FOLDERS)).collect();
    let paths = bases.iter().flat_map(|base| words.iter().filter_map(move |it| inside(base, it)));
    paths.filter(|it| kind(it) == Some(false)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::named_files;
    use castor_base::path::AbsPath;
    use castor_hands::disk;

    const FILES: &[&str] =
        &["x.sh", "my script.sh", "scripts/m.sh", "hooks/a.sh", "lib/r.js", "Makefile", "package.json"];

    /// Files that a line names are hashed for trust; what `make` or `npm run` obey is not.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn words_that_are_files() {
        let keep = tempfile::tempdir().unwrap();
        let root = disk::real_path(&AbsPath::new(keep.path()).unwrap()).unwrap().join("w");
        for it in FILES.iter().copied().chain(["../up.sh"]) {
            let file = root.join(it);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, it).unwrap();
        }
        let found = |settings: &serde_json::Value| {
            let names = named_files(settings, &root)?.iter().map(|it| it.relative_to(&root)).collect::<Vec<_>>();
            Some(names.join(", "))
        };
        for (line, want) in [
            (r#""$CLAUDE_PROJECT_DIR"/x.sh"#, "x.sh"),
            (r#"bash "${CLAUDE_PROJECT_DIR:-.}/hooks/a.sh""#, "hooks/a.sh"),
            ("$(git rev-parse --show-toplevel)/x.sh", "x.sh"),
            ("'./my script.sh' --now", "my script.sh"),
            (r"./my\ script.sh", "my script.sh"),
            ("~/x.sh", "x.sh"),
            ("sh ~/code/w/scripts/m.sh", "scripts/m.sh"),
            ("cd scripts && ./m.sh", "scripts/m.sh"),
            (r#"sh -c "cd scripts && bash -c './m.sh'""#, "scripts/m.sh"),
            ("echo $(./x.sh) `cat hooks/a.sh`", "hooks/a.sh, x.sh"),
            ("node --import=./lib/r.js -r ./x.sh; true", "lib/r.js, x.sh"),
            ("sh < x.sh | tee out", "x.sh"),
            ("date >> x.sh 2>&1; true >x.sh &>x.sh", ""),
            ("./x.sh 'open", "x.sh"),
            ("make check && npm run check", ""),
            ("sh ./gone.sh /usr/bin/env ../up.sh scripts", ""),
        ] {
            assert_eq!(found(&json!({"hooks": {"X": [{"hooks": [{"command": line}]}]}})).unwrap(), want, "{line}");
        }
        let hook = json!({"hooks": [{"command": "true", "env": {"BASH_ENV": "./x.sh"}}]});
        assert_eq!(found(&json!({ "hooks": { "X": [hook] } })).unwrap(), "x.sh");
        for (server, want) in [
            (json!({"command": "run", "args": ["-c", "'./x.sh'"]}), "x.sh"),
            (json!({"command": "run", "args": ["my script.sh", "hooks/*"]}), "my script.sh"),
            (json!({"command": "./m.sh", "cwd": "scripts"}), "scripts/m.sh"),
            (json!({"command": "node", "env": {"NODE_OPTIONS": "--require ./lib/r.js"}}), "lib/r.js"),
        ] {
            assert_eq!(found(&json!({"mcpServers": {"s": server}})).unwrap(), want, "{server}");
        }
        let many: String = (0..2001).map(|it| format!("{it} ")).collect();
        assert_eq!(found(&json!({"tools": {"callCommand": many}})), None);
    }
}
