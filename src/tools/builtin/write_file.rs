//! The tool `write_file`: writes the whole content of a file.

use serde_json::Value;

use crate::builtin::{
    Builtin, Task, ToolContext,
    params::{CallArguments, invalid},
    paths,
    schema::{self, text},
    texts::{
        change::TextChange,
        placeholder,
        text_file::{self, LoadedFile, TextFile},
    },
};
use castor_base::{
    path::AbsPath,
    tool::{Access, BaseHash, Preview, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits, WRITE_FILE},
};

pub struct WriteFile;

struct Call<'a> {
    path: AbsPath,
    content: &'a str,
}

impl<'a> Call<'a> {
    fn parse(args: &'a Value, ctx: &ToolContext) -> Result<Self, ToolError> {
        let params = CallArguments::of(args)?;
        let (path, content) = (params.path("file_path", ctx)?, params.text("content")?);
        match placeholder::has_placeholder(content, "") {
            true => Err(invalid(
                "`content` contains an omission placeholder (for example 'rest of methods ...'). Provide complete \
                 file content.",
            )),
            false => Ok(Self { path, content }),
        }
    }
}

impl Builtin for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: WRITE_FILE.into(),
            title: "WriteFile".into(),
            description: "Writes the complete content of a file; creates it and its folders when missing. Use replace \
                          for small changes."
                .into(),
            kind: ToolKind::Edit,
            traits: ToolTraits { overwrites: true, ..ToolTraits::EDITS },
            parameters: schema::object(
                &["file_path", "content"],
                [("file_path", text("Path of the file.")), ("content", text("All of the content, nothing left out."))],
            ),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let call = Call::parse(args, ctx)?;
            let paths = paths::content_targets(ctx, &call.path, Access::Write, None).await?;
            let title = format!("Writing to {}", call.path.relative_to(&ctx.cwd));
            Ok(Targets { title, paths, ..Targets::default() })
        })
    }

    fn preview<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Preview> {
        Box::pin(async move { Ok(change(args, None, ctx).await?.preview()) })
    }

    fn run<'a>(&'a self, args: &'a Value, base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move { write(args, base, ctx).await })
    }
}

async fn write(args: &Value, base: Option<&BaseHash>, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
    let change = change(args, base, ctx).await?;
    let done = match change.before {
        None => format!("Successfully created and wrote to new file: {}.", change.path),
        Some(_) => format!("Successfully overwrote file: {}.", change.path),
    };
    change.write(ctx, done).await
}

async fn change(args: &Value, base: Option<&BaseHash>, ctx: &ToolContext) -> Result<TextChange, ToolError> {
    let call = Call::parse(args, ctx)?;
    let loaded = text_file::load(ctx, &call.path).await?;
    text_file::check_base(&call.path, base, &loaded)?;
    text_file::check_seen(&call.path, &ctx.known.seen, &loaded)?;
    let base = text_file::hash(&loaded);
    let LoadedFile { real, bytes: old, unsaved } = loaded;
    let file = old.as_deref().and_then(text_file::decode).unwrap_or_else(|| TextFile::new_utf8(String::new()));
    let after = if file.is_crlf() { text_file::to_crlf(call.content) } else { call.content.to_owned() };
    let unfit = |why| ToolError::new("edit_preparation_failure", format!("Failed to write {}: {why}.", call.path));
    let bytes = file.encode(&after, call.content).map_err(unfit)?;
    // A binary file that is overwritten has no text to show.
    let before = old.is_some().then(|| file.text.into());
    TextChange {
        path: call.path,
        real,
        before,
        after: after.into(),
        bytes,
        base,
        unsaved,
        is_partial: false,
        note: None,
    }
    .check_marks()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::WriteFile;
    use crate::builtin::{
        Builtin, list_directory::ListDirectory, read_file::ReadFile, read_many_files::ReadManyFiles, replace::Replace,
        testing::ToolFixture,
    };
    use castor_base::tool::Display;

    #[test]
    fn writes() {
        let ground = ToolFixture::new(&[("dos.txt", "a\r\nb\r\n"), ("bom.txt", "\u{feff}a\n"), ("dir/x", "")]);
        ground.write("latin.txt", b"caf\xe9\n");
        ground.link("dos.txt", "link.txt");
        let check = |path: &str, content: &str, expected: &str, bytes: Option<&[u8]>| {
            let said = ground.result_text(&WriteFile, &json!({"file_path": path, "content": content}));
            assert_eq!(said, expected);
            assert_eq!(bytes.map(|_| ground.read(path)), bytes.map(<[u8]>::to_vec), "{path}");
        };
        let overwrote = |path: &str, code: &str| {
            format!("Successfully overwrote file: $W/{path}. Here is the updated code:\n{code}")
        };
        let created = "Successfully created and wrote to new file: $W/new/deep.txt.";
        check("new/deep.txt", "x\n", created, Some(b"x\n"));
        check("dos.txt", "a\nc\n", &overwrote("dos.txt", "a\nc"), Some(b"a\r\nc\r\n"));
        check("bom.txt", "b\n", &overwrote("bom.txt", "b"), Some(b"\xef\xbb\xbfb\n"));
        check("latin.txt", "th\u{e9}\n", &overwrote("latin.txt", "thé"), Some(b"th\xe9\n"));
        check("link.txt", "a\nd\n", &overwrote("link.txt", "a\nd"), Some(b"a\r\nd\r\n"));
        assert_eq!(ground.read("dos.txt"), b"a\r\nd\r\n");
        check("dir", "x", "target_is_directory: Path is a directory, not a file: $W/dir", None);
        check("/dev/null", "x", "read_content_failure: Not a regular file: /dev/null", None);
        check(
            "a.rs",
            "fn a() {}\n// rest of code ...\n",
            "invalid_tool_params: `content` contains an omission placeholder (for example 'rest of methods ...'). \
             Provide complete file content.",
            None,
        );
        assert_eq!(ground.title(&WriteFile, &json!({"file_path": "a/b", "content": ""})), "Writing to a/b");
    }

    /// Whoever else has the file under a name of its own keeps the text, and the result says so.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn other_names_of_a_file_keep_its_text() {
        let ground = ToolFixture::new(&[("a.txt", "one\n"), ("alone.txt", "one\n"), ("../outside/store", "one\n")]);
        let link = |from: &str, to: &str| std::fs::hard_link(ground.cwd.join(from), ground.cwd.join(to)).unwrap();
        link("a.txt", "b.txt");
        link("../outside/store", "linked.txt");
        ground.link("a.txt", "soft.txt");
        let write = |path: &str, text: &str| {
            let output = ground.run(&WriteFile, &json!({"file_path": path, "content": text}));
            output.summary.unwrap().contains("other names keep the old text")
        };
        assert!(write("soft.txt", "two\n"));
        assert!(write("linked.txt", "two\n"));
        assert_eq!([ground.read("a.txt"), ground.read("b.txt")], [b"two\n", b"one\n"]);
        assert_eq!([ground.read("linked.txt"), ground.read("../outside/store")], [b"two\n", b"one\n"]);
        for path in ["alone.txt", "new.txt", "a.txt", "b.txt"] {
            assert!(!write(path, "three\n"), "{path}");
        }
    }

    /// A name with its accents in another form is the same name to whoever reads it.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn a_name_that_looks_the_same_is_the_same() {
        let (composed, decomposed) = ("d\u{e9}/r\u{e9}sum\u{e9}.txt", "de\u{301}/re\u{301}sume\u{301}.txt");
        for (on_disk, asked) in [(composed, decomposed), (decomposed, composed)] {
            let ground = ToolFixture::new(&[(on_disk, "one\n")]);
            let said = ground.result_text(&WriteFile, &json!({"file_path": asked, "content": "two\n"}));
            assert!(said.starts_with("Successfully overwrote"), "{said}");
            assert_eq!(ground.read(on_disk), b"two\n");
            let said = ground.result_text(&ReadFile, &json!({"file_path": asked}));
            assert_eq!(said, "two\n");
            let edit = json!({"file_path": asked, "old_string": "two", "new_string": "three"});
            assert!(ground.result_text(&Replace, &edit).starts_with("Successfully modified"));
            let said = ground.result_text(&ReadManyFiles, &json!({"include": [asked]}));
            assert!(said.contains("three"), "{said}");
            let folder = asked.split('/').next().unwrap();
            let said = ground.result_text(&ListDirectory, &json!({"dir_path": folder}));
            assert!(said.ends_with(".txt (6 bytes)"), "{said}");
            let all: Vec<_> = std::fs::read_dir(&ground.cwd).unwrap().flatten().collect();
            assert_eq!(all.len(), 1, "no twin: {all:?}");
            assert_eq!(std::fs::read_dir(all[0].path()).unwrap().count(), 1);
        }
    }

    /// The base hash covers path and content, so a file that changed meanwhile stays.
    #[test]
    fn writes_only_what_was_shown() {
        let ground = ToolFixture::new(&[("a.txt", "one\r\n")]);
        let ctx = ground.ctx();
        for (path, before) in [("a.txt", Some("one\r\n")), ("b.txt", None)] {
            let args = json!({"file_path": path, "content": "two\n"});
            let preview = ground.block_on(WriteFile.preview(&args, &ctx)).unwrap();
            let Some(Display::Diff { before: shown, after, .. }) = preview.display else { panic!() };
            assert_eq!((shown.as_deref(), after.contains("two")), (before, true));
            ground.write(path, b"theirs");
            let refused = ground.block_on(WriteFile.run(&args, preview.base.as_ref(), &ctx)).unwrap_err();
            assert_eq!(refused.kind, "file_changed");
            assert_eq!(ground.read(path), b"theirs");
            let preview = ground.block_on(WriteFile.preview(&args, &ctx)).unwrap();
            let output = ground.block_on(WriteFile.run(&args, preview.base.as_ref(), &ctx));
            assert_eq!(output.unwrap().error, None);
            assert_eq!(ground.read(path), b"two\n");
        }
    }

    #[test]
    fn cancelled_writes_nothing() {
        let ground = ToolFixture::new(&[]);
        ground.cancel.cancel();
        let output = ground.run(&WriteFile, &json!({"file_path": "a", "content": "x"}));
        assert_eq!(output.error.unwrap().kind, "cancelled");
        assert!(!ground.cwd.join("a").as_path().exists());
    }
}
