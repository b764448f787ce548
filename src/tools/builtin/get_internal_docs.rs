//! The tool `get_internal_docs`: reads a page of castor's own documentation, which the program has with it.

use include_dir::{Dir, DirEntry, include_dir};
use serde_json::Value;

use crate::builtin::{
    Builtin, Task, ToolContext,
    params::{CallArguments, invalid},
    schema,
};
use castor_base::{
    text,
    tool::{BaseHash, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

static DOCS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../docs");

/// Of one answer, in bytes.
const MAX_ANSWER: usize = 24 << 10;

pub struct GetInternalDocs;

impl Builtin for GetInternalDocs {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "get_internal_docs".into(),
            title: "GetInternalDocs".into(),
            description: "Reads castor's own documentation, for questions on how castor works and is set up.".into(),
            kind: ToolKind::Read,
            traits: ToolTraits::LOOKS,
            parameters: schema::object(&[], [("path", schema::text("A page; without it the pages are listed."))]),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, _ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let path = path(args)?;
            let title = path.map_or_else(|| "castor's documentation".to_owned(), |it| format!("castor's docs: {it}"));
            Ok(Targets { title, ..Targets::default() })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, _base: Option<&'a BaseHash>, _ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move {
            match path(args)? {
                None => {
                    let pages = pages();
                    Ok(ToolOutput::told(list(&pages), format!("{} pages", pages.len())))
                }
                Some(path) => read(&path),
            }
        })
    }
}

fn path(args: &Value) -> Result<Option<String>, ToolError> {
    let path = CallArguments::of(args)?.opt_text("path")?.map(str::trim).filter(|it| !it.is_empty());
    let plain = |it: &str| it.trim_start_matches("./").trim_start_matches("docs/").trim_start_matches('/').to_owned();
    Ok(path.map(plain).filter(|it| !it.is_empty()))
}

/// Path and text of each.
fn pages() -> Vec<(String, &'static str)> {
    let mut res = Vec::new();
    collect(&DOCS, &mut res);
    res.sort();
    res
}

fn collect(dir: &'static Dir<'_>, out: &mut Vec<(String, &'static str)>) {
    for entry in dir.entries() {
        match entry {
            DirEntry::Dir(it) => collect(it, out),
            // The pictures are for people.
            DirEntry::File(it) if it.path().extension().is_none_or(|it| it != "md") => (),
            DirEntry::File(it) => {
                out.extend(it.path().to_str().zip(it.contents_utf8()).map(|(path, text)| (path.to_owned(), text)));
            }
        }
    }
}

fn list(pages: &[(String, &str)]) -> String {
    let title = |text: &str| text.lines().find_map(|it| it.strip_prefix("# ")).unwrap_or_default().to_owned();
    pages.iter().map(|(path, text)| format!("- {path}: {}\n", title(text))).collect()
}

fn read(path: &str) -> Result<ToolOutput, ToolError> {
    let name = if path.ends_with(".md") { path.to_owned() } else { format!("{path}.md") };
    let Some(text) = DOCS.get_file(&name).and_then(|it| it.contents_utf8()) else {
        let name = text::first_line(&name, 100);
        return Err(invalid(format!("There is no page {name}. Without 'path' you get the list of pages.")));
    };
    let head = text::head(text, MAX_ANSWER);
    let more = if head.len() < text.len() { "\n(The rest of this page is left out.)" } else { "" };
    Ok(ToolOutput::told(format!("{head}{more}"), format!("{name}, {} lines", head.lines().count())))
}

#[cfg(test)]
mod tests {
    use super::{GetInternalDocs, MAX_ANSWER, list, pages, path, read};
    use crate::builtin::Builtin;

    #[test]
    fn pages_are_listed_and_read() {
        let all = pages();
        let list = list(&all);
        assert!(list.contains("- how-to/undo.md: ") && list.len() < MAX_ANSWER, "{list}");
        assert!(list.lines().all(|it| !it.ends_with(": ")), "each page has a title: {list}");
        for (name, text) in &all {
            let said = format!("{:?}", read(name).unwrap().content);
            assert!(said.len() <= MAX_ANSWER * 2 && said.contains("castor"), "{name}");
            assert!(text.starts_with("# ") || text.starts_with("<!--"), "{name}");
        }
        assert!(read("how-to/undo").is_ok());
    }

    #[test]
    fn a_page_that_is_none_is_refused() {
        for name in ["../Cargo.toml", "/etc/passwd", "how-to", "how-to/../../README.md", "none"] {
            let given = path(&serde_json::json!({ "path": name })).unwrap().unwrap();
            assert!(read(&given).unwrap_err().message.contains("There is no page"), "{name}");
        }
        assert_eq!(path(&serde_json::json!({"path": "docs/how-to/undo.md"})).unwrap().unwrap(), "how-to/undo.md");
        assert_eq!(path(&serde_json::json!({"path": " "})).unwrap(), None);
    }

    /// Each request pays for it.
    #[test]
    fn its_declaration_is_small() {
        let it = GetInternalDocs.spec();
        assert!((it.name.len() + it.description.len() + it.parameters.to_string().len()) / 4 <= 150);
    }
}
