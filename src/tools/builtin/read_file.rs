//! The tool `read_file`: reads a text file or a part of it, an image, a PDF or audio.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::builtin::{
    Builtin, Task, ToolContext,
    params::{CallArguments, invalid},
    paths,
    schema::{self, count, text},
    texts::{file_lines::file_lines, text_file},
    walk,
};
use castor_base::{
    content::Part,
    file_uri,
    path::AbsPath,
    tool::{Access, BaseHash, READ_FILE, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};
use castor_hands::disk::DiskFs;

const MAX_SVG_BYTES: usize = 1024 * 1024;

/// What models take as it is, by extension.
const MEDIA: &[(&str, &str)] = &[
    ("aac", "audio/aac"),
    ("aiff", "audio/aiff"),
    ("avi", "video/x-msvideo"),
    ("bmp", "image/bmp"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("heic", "image/heic"),
    ("heif", "image/heif"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("m4a", "audio/mp4"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mp3"),
    ("mp4", "video/mp4"),
    ("mpeg", "video/mpeg"),
    ("mpg", "video/mpeg"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
];

/// Sounds that no model takes.
const UNSUPPORTED_AUDIO: &[&str] = &["amr", "mid", "midi", "opus", "ra", "wma"];

pub struct ReadFile;

struct Call {
    path: AbsPath,
    start: Option<usize>,
    end: Option<usize>,
}

impl Call {
    fn parse(args: &Value, ctx: &ToolContext) -> Result<Self, ToolError> {
        let params = CallArguments::of(args)?;
        let path = params.path("file_path", ctx)?;
        let (start, end) = (params.count("start_line", 1)?, params.count("end_line", 1)?);
        match (start, end) {
            (Some(start), Some(end)) if start > end => {
                Err(invalid(format!("start_line ({start}) cannot be greater than end_line ({end})")))
            }
            _ => Ok(Self { path, start, end }),
        }
    }

    fn title(&self, cwd: &AbsPath) -> String {
        let path = self.path.relative_to(cwd);
        match (self.start, self.end) {
            (None, None) => path,
            (Some(start), None) => format!("{path} (from line {start})"),
            (start, Some(end)) => format!("{path} (lines {}-{end})", start.unwrap_or(1)),
        }
    }
}

impl Builtin for ReadFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: READ_FILE.into(),
            title: "ReadFile".into(),
            description: "Reads a text file (up to 2000 lines or 60 KiB; start_line and end_line for more), image, \
                          PDF, audio or video file."
                .into(),
            kind: ToolKind::Read,
            traits: ToolTraits { returns_whole: true, ..ToolTraits::LOOKS },
            parameters: schema::object(
                &["file_path"],
                [
                    ("file_path", text("Path of the file.")),
                    ("start_line", count(1, "First line, 1-based.")),
                    ("end_line", count(1, "Last line, inclusive.")),
                ],
            ),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let call = Call::parse(args, ctx)?;
            let line = call.start.and_then(|it| u32::try_from(it).ok());
            let (path, looker) = (call.path.clone(), ctx.clone());
            let look = move || {
                // Here already: nobody is asked about what will not be done.
                walk::check_ignored(&path, &paths::call_real_path_now(&looker, &path)?, &looker)?;
                paths::content_targets_now(&looker, path, Access::Read, line)
            };
            let paths = paths::run_blocking(look).await??;
            Ok(Targets { title: call.title(&ctx.cwd), paths, ..Targets::default() })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, _base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move { read(args, ctx).await })
    }
}

async fn read(args: &Value, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
    let call = Call::parse(args, ctx)?;
    let shown = call.path.relative_to(&ctx.cwd);
    let extension = call.path.as_path().extension().map(|it| it.to_string_lossy().to_lowercase()).unwrap_or_default();
    let media = MEDIA.iter().find(|it| it.0 == extension).map(|it| it.1);
    let loaded = match media {
        None => text_file::load(ctx, &call.path).await?,
        // From disk, not through `ctx.fs`: an editor hands out text, which spoils bytes.
        Some(_) => text_file::load(&ToolContext { fs: Arc::new(DiskFs), ..ctx.clone() }, &call.path).await?,
    };
    let (unsaved, seen) = (loaded.unsaved, text_file::file_knowledge(&loaded));
    let Some(bytes) = loaded.bytes else {
        let (path, ctx) = (call.path.clone(), ctx.clone());
        return Err(paths::run_blocking(move || paths::not_found_error(&path, &ctx)).await?);
    };
    if extension == "svg" && bytes.len() > MAX_SVG_BYTES {
        return Ok(skipped(format!("Cannot display content of SVG file larger than 1MB: {shown}")));
    }
    let file = text_file::decode(&bytes);
    match (media, file) {
        // A picture that is text is a pointer to one (git-lfs); a PDF may well be all ASCII.
        (Some(mime), file) if file.is_none() || bytes.starts_with(b"%PDF") => {
            Ok(media_output(mime, &bytes, &call.path, &shown))
        }
        (_, None) if UNSUPPORTED_AUDIO.contains(&extension.as_str()) => {
            Err(ToolError::new("read_content_failure", format!("Audio format .{extension} is not supported: {shown}")))
        }
        (_, None) => Ok(skipped(format!("Cannot display content of binary file: {shown}"))),
        (_, Some(file)) => {
            let mut output = file_lines(&file.text, (call.start, call.end), &shown)?;
            let notes = [if unsaved { UNSAVED.to_owned() } else { String::new() }, file.note()].concat();
            output.content.splice(0..0, Some(notes).filter(|it| !it.is_empty()).map(Part::text));
            Ok(ToolOutput { file_knowledge: seen, ..output })
        }
    }
}

const UNSAVED: &str =
    "[The editor has unsaved changes of this file: this is its text, the file on disk is different.]\n";

fn skipped(text: String) -> ToolOutput {
    ToolOutput { summary: Some(text.clone()), ..ToolOutput::text(text) }
}

fn media_output(mime: &str, bytes: &[u8], path: &AbsPath, shown: &str) -> ToolOutput {
    let data = BASE64_STANDARD.encode(bytes).into();
    let what = mime.split('/').next().filter(|it| *it != "application").unwrap_or("pdf");
    ToolOutput {
        content: vec![Part::Media { mime: mime.to_owned(), data, uri: Some(file_uri::from_path(path.as_path())) }],
        summary: Some(format!("Read {what} file: {shown}")),
        ..ToolOutput::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ReadFile;
    use crate::builtin::testing::ToolFixture;
    use castor_base::content::Part;

    fn check(ground: &ToolFixture, args: Value, expected: &str) {
        assert_eq!(ground.result_text(&ReadFile, &args), expected, "{args}");
    }

    #[test]
    fn reads_text() {
        let ground =
            ToolFixture::new(&[("a.txt", "one\r\ntwo\r\n"), ("empty", ""), (".gitignore", "*.o"), ("x.o", "x")]);
        ground.write("wide.txt", b"\xff\xfeh\0i\0");
        ground.write("latin.txt", b"caf\xe9");
        ground.write("a.bin", b"\0\x01\x02");
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
        ground.write("lfs.png", pointer.as_bytes());
        check(&ground, json!({"file_path": "a.txt"}), "one\ntwo\n");
        check(&ground, json!({"file_path": ground.cwd.join("a.txt").to_string()}), "one\ntwo\n");
        check(&ground, json!({"file_path": "empty"}), "");
        check(&ground, json!({"file_path": "wide.txt"}), "hi");
        check(
            &ground,
            json!({"file_path": "latin.txt"}),
            "[The encoding of this file is unknown. It is shown as Latin-1: signs beyond ASCII may be wrong; leave them \
             as they are.]\ncafé",
        );
        let note = "[This is a Git LFS pointer, not the file: its content of 12345 bytes is not here. `git lfs pull` \
                    brings it.]\n";
        check(&ground, json!({"file_path": "lfs.png"}), &format!("{note}{pointer}"));
        check(&ground, json!({"file_path": "a.bin"}), "Cannot display content of binary file: a.bin");
        let ignored = ground.title(&ReadFile, &json!({"file_path": "x.o"}));
        assert!(ignored.ends_with("/x.o' is ignored by configured ignore patterns."), "{ignored}");
        check(&ground, json!({"file_path": "b.txt"}), "file_not_found: File not found: $W/b.txt. Did you mean a.txt?");
        check(&ground, json!({"file_path": "."}), "target_is_directory: Path is a directory, not a file: $W");
        check(
            &ground,
            json!({"file_path": "a.txt", "start_line": 3, "end_line": 2}),
            "invalid_tool_params: start_line (3) cannot be greater than end_line (2)",
        );
        check(
            &ground,
            json!({"file_path": "a.txt", "start_line": 0}),
            "invalid_tool_params: params/start_line must be >= 1",
        );
        check(
            &ground,
            json!({"file_path": "a.txt", "start_line": 3}),
            "invalid_tool_params: start_line 3 is past the end of a.txt, which has 2 lines.",
        );
        check(&ground, json!({}), "invalid_tool_params: params must have required property 'file_path'");
    }

    #[test]
    fn shows_parts() {
        let lines: String = (1..=2500).map(|it| format!("l{it}\n")).collect();
        let long = "x".repeat(2001);
        let ground = ToolFixture::new(&[("many", &lines), ("long", &long), ("fits", &format!("{}\n", &long[1..]))]);
        let said = ground.result_text(&ReadFile, &json!({"file_path": "many"}));
        assert!(said.starts_with(
            "IMPORTANT: The file content has been truncated.\nStatus: Showing lines 1-2000 of 2500 total lines.\n\
             Action: To read more"
        ));
        assert!(said.contains("use start_line: 2001.\n\n--- FILE CONTENT (truncated) ---\nl1\nl2\n"));
        assert!(said.ends_with("\nl2000\n"));
        check(
            &ground,
            json!({"file_path": "many", "start_line": 2499, "end_line": 9999}),
            "IMPORTANT: The file content has been truncated.\nStatus: Showing lines 2499-2500 of 2500 total lines.\n\n\
             --- FILE CONTENT (truncated) ---\nl2499\nl2500\n",
        );
        let output = ground.run(&ReadFile, &json!({"file_path": "long"}));
        assert_eq!(output.summary.unwrap(), "Read lines 1-1 of 1 from long (some lines were shortened)");
        assert!(ground.result_text(&ReadFile, &json!({"file_path": "long"})).ends_with("xx... [truncated]"));
        check(&ground, json!({"file_path": "fits"}), &format!("{}\n", &long[1..]));
        let title = |args| ground.title(&ReadFile, &args);
        assert_eq!(title(json!({"file_path": "many", "start_line": 2, "end_line": 4})), "many (lines 2-4)");
        assert_eq!(title(json!({"file_path": "many", "start_line": 2})), "many (from line 2)");
        assert_eq!(title(json!({"file_path": "many"})), "many");
    }

    #[test]
    fn media_come_as_they_are() {
        let ground = ToolFixture::new(&[("a.pdf", "%PDF-1.4")]);
        ground.write("a.PNG", b"\x89PNG\r\n\x1a\n\0\0");
        ground.write("a.wma", b"\0\0");
        for (name, expected) in [("a.pdf", "application/pdf"), ("a.PNG", "image/png")] {
            let output = ground.run(&ReadFile, &json!({"file_path": name}));
            assert!(matches!(output.content.first().unwrap(), Part::Media { mime, .. } if mime == expected));
        }
        check(
            &ground,
            json!({"file_path": "a.wma"}),
            "read_content_failure: Audio format .wma is not supported: a.wma",
        );
    }

    #[test]
    #[allow(clippy::disallowed_methods)]
    fn giants_and_devices_are_refused_at_once() {
        let ground = ToolFixture::new(&[("sparse", "")]);
        let file = std::fs::File::options().write(true).open(ground.cwd.join("sparse")).unwrap();
        file.set_len(1 << 30).unwrap();
        nix::unistd::mkfifo(ground.cwd.join("pipe").as_path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        check(
            &ground,
            json!({"file_path": "sparse"}),
            "file_too_large: File size exceeds the 20MB limit: $W/sparse (1024.00MB). Use grep_search or a shell command.",
        );
        check(&ground, json!({"file_path": "pipe"}), "read_content_failure: Not a regular file: $W/pipe");
        check(&ground, json!({"file_path": "/dev/zero"}), "read_content_failure: Not a regular file: /dev/zero");
    }
}
