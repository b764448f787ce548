//! AIR `diffPatch`: the change of a file as one Git patch, in place of its whole texts.

use std::path::Path;

use agent_client_protocol_schema::v1::{Diff, SessionUpdate, ToolCallContent};
use serde_json::json;

use super::air_meta;
use crate::acp::git_patch::git_patch;

/// The same update with patches, where there can be one.
pub(in crate::acp) fn patch_update(update: SessionUpdate) -> SessionUpdate {
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

/// `None`: see [`git_patch`].
fn patch(path: &Path, before: Option<&str>, after: &str) -> Option<String> {
    let name = path.to_str()?.replace('\\', "/");
    let name = name.trim_start_matches('/');
    git_patch((&format!("a/{name}"), &format!("b/{name}")), before, after)
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
