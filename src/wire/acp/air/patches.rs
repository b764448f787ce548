//! AIR `diffPatch`: the change of a file as one Git patch, in place of its whole texts.

use std::path::Path;

use agent_client_protocol_schema::v1::{Diff, SessionUpdate, ToolCallContent};
use serde_json::json;
use similar::TextDiff;

use super::air_meta;

/// Longest patch, in bytes.
const MAX_PATCH: usize = 1 << 20;
/// A NUL among so many first characters: the file is no text.
const LOOKED_AT: usize = 8_000;
const CONTEXT: usize = 3;

/// The same update with patches, where there can be one.
pub(in crate::wire::acp) fn patch_update(update: SessionUpdate) -> SessionUpdate {
    match update {
        SessionUpdate::ToolCall(mut it) => {
            it.content.iter_mut().for_each(patch_content);
            SessionUpdate::ToolCall(it)
        }
        SessionUpdate::ToolCallUpdate(mut it) => {
            it.fields.content.iter_mut().flatten().for_each(patch_content);
            SessionUpdate::ToolCallUpdate(it)
        }
        other => other,
    }
}

fn patch_content(content: &mut ToolCallContent) {
    if let ToolCallContent::Diff(diff) = content
        && let Some(text) = patch(&diff.path, diff.old_text.as_deref(), &diff.new_text)
    {
        let mut meta = air_meta("diffPatch", json!({ "version": 1, "format": "git_patch", "text": text }));
        let kind = if diff.old_text.is_some() { "update" } else { "add" };
        meta.insert("kind".to_owned(), kind.into());
        *content = ToolCallContent::Diff(Diff::new(diff.path.clone(), String::new()).meta(meta));
    }
}

/// `None`: it is no text, too large, or has no line that changed.
fn patch(path: &Path, before: Option<&str>, after: &str) -> Option<String> {
    let is_binary = |it: &str| it.chars().take(LOOKED_AT).any(|it| it == '\0');
    if is_binary(after) || before.is_some_and(is_binary) {
        return None;
    }
    let diff = TextDiff::from_lines(before.unwrap_or_default(), after);
    let hunks = diff.unified_diff().context_radius(CONTEXT).to_string();
    let name = path.to_str()?.replace('\\', "/");
    let name = name.trim_start_matches('/');
    let (old, new) = (header_path("a", name), header_path("b", name));
    let (mode, from) = match before {
        Some(_) => ("", tabbed(&old)),
        None => ("new file mode 100644\n", "/dev/null".to_owned()),
    };
    let text = format!("diff --git {old} {new}\n{mode}--- {from}\n+++ {}\n{hunks}", tabbed(&new));
    (!hunks.is_empty() && text.len() <= MAX_PATCH).then_some(text)
}

/// As Git quotes it.
fn header_path(side: &str, name: &str) -> String {
    let path = format!("{side}/{name}");
    if !path.contains(|it: char| it == '"' || it.is_control()) {
        return path;
    }
    let mut res = String::from("\"");
    for it in path.chars() {
        match it {
            '"' => res.push_str("\\\""),
            '\n' => res.push_str("\\n"),
            '\t' => res.push_str("\\t"),
            it if it.is_control() => res.push_str(&format!("\\{:03o}", it as u32)),
            it => res.push(it),
        }
    }
    res + "\""
}

/// So that a reader sees where a path with spaces ends.
fn tabbed(path: &str) -> String {
    if path.contains(' ') && !path.starts_with('"') { format!("{path}\t") } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::patch;

    fn check(path: &str, before: Option<&str>, after: &str, expected: Option<&str>) {
        assert_eq!(patch(Path::new(path), before, after).as_deref(), expected, "{path}");
    }

    #[test]
    fn patches_are_as_git_writes_them() {
        check(
            "/w/a b.txt",
            Some("old\n"),
            "new\n",
            Some("diff --git a/w/a b.txt b/w/a b.txt\n--- a/w/a b.txt\t\n+++ b/w/a b.txt\t\n@@ -1 +1 @@\n-old\n+new\n"),
        );
        check(
            "/w/n",
            None,
            "x",
            Some(
                "diff --git a/w/n b/w/n\nnew file mode 100644\n--- /dev/null\n+++ b/w/n\n@@ -0,0 +1 @@\n+x\n\\ No newline at \
                 end of file\n",
            ),
        );
        check(
            "/w/\"q\"",
            Some("a\n"),
            "",
            Some(
                "diff --git \"a/w/\\\"q\\\"\" \"b/w/\\\"q\\\"\"\n--- \"a/w/\\\"q\\\"\"\n+++ \"b/w/\\\"q\\\"\"\n@@ -1 +0,0 @@\n-a\n",
            ),
        );
        check("/w/same", Some("a\n"), "a\n", None);
        check("/w/empty", None, "", None);
        check("/w/binary", Some("\0"), "a\n", None);
        check("/w/large", None, &"line\n".repeat(1 << 18), None);
    }
}
