//! Editor snippets of `castor doctor`: the examples of `editors/` with the path of this binary.

/// Name, where it goes, and what.
const SNIPPETS: &[(&str, &str, &str)] = &[
    ("Zed", "settings.json", include_str!("../../../editors/zed.json")),
    ("VS Code", "settings.json, for the extension ACP Client", include_str!("../../../editors/vscode.json")),
    ("JetBrains", "~/.jetbrains/acp.json", include_str!("../../../editors/jetbrains.json")),
    ("Neovim", "init.lua, for CodeCompanion", include_str!("../../../editors/codecompanion.lua")),
    ("Emacs", "init.el, for agent-shell", include_str!("../../../editors/agent-shell.el")),
];

/// The same with `program` in place of the bare command. Its JSON form is a string in all five languages.
pub fn snippets(program: &str) -> impl Iterator<Item = (&'static str, &'static str, String)> {
    let quoted = serde_json::Value::from(program).to_string();
    SNIPPETS
        .iter()
        .map(move |(name, place, text)| (*name, *place, text.replace("\"castor\"", "\"\u{0}\"")))
        .map(move |(name, place, text)| (name, place, with_command(&text, &quoted)))
}

/// The command is the `"castor"` that `"acp"` follows; the others are names.
fn with_command(text: &str, quoted: &str) -> String {
    let acp = text.find("\"acp\"").unwrap_or(text.len());
    let (before, after) = text.split_at(acp);
    let res = match before.rsplit_once("\"\u{0}\"") {
        Some((start, end)) => format!("{start}{quoted}{end}{after}"),
        None => text.to_owned(),
    };
    res.replace('\u{0}', "castor")
}

#[cfg(test)]
mod tests {
    use super::snippets;

    /// Each editor's snippet parses and names the path of this binary.
    #[test]
    fn each_snippet_starts_this_binary() {
        for (name, _, text) in snippets("/opt/a \"b\"/castor") {
            assert_eq!(text.matches(r#""/opt/a \"b\"/castor""#).count(), 1, "{name}: {text}");
            assert!(text.contains("\"acp\"") && !text.contains('\u{0}'), "{name}: {text}");
            if text.starts_with('{') {
                serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|it| panic!("{name}: {it}"));
            }
        }
    }
}
