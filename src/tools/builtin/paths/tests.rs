//! Real targets of paths, and that nothing else is touched.
#![allow(clippy::disallowed_methods)]

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::{Value, json};

use crate::builtin::{
    Builtin, CallKnowledge, ToolContext, glob::Glob, grep_search::GrepSearch, list_directory::ListDirectory, paths,
    read_file::ReadFile, replace::Replace, testing::ToolFixture, write_file::WriteFile,
};
use castor_base::{
    content::joined_text,
    fs::{BoxFuture, ChangeError, Fs, FsError, PlannedChange},
    path::AbsPath,
    sandbox::ProtectedPaths,
    tool::{Access, Targets, ToolOutput},
};
use castor_hands::disk::DiskFs;

#[test]
fn links_out_of_the_roots_are_reported() {
    let ground = ToolFixture::new(&[("a/in.txt", "x"), ("../outside/secret", "x")]);
    ground.link("a/in.txt", "good");
    ground.link("../outside/secret", "bad");
    ground.link("../outside", "dir");
    ground.link("../outside/not-yet", "dangling");
    ground.link("loop", "loop");
    let check = |path: &str, real: Option<&str>, in_roots: bool| {
        let ctx = ground.ctx();
        let res = ground.block_on(paths::resolve_target(&ctx, &ctx.cwd.join(path), Access::Read, None));
        let got = res.ok().map(|it| {
            assert_eq!(it.in_roots, in_roots, "{path}");
            it.real
        });
        assert_eq!(got, real.map(|it| ctx.cwd.join(it)), "{path}");
    };
    check("a/in.txt", Some("a/in.txt"), true);
    check("good", Some("a/in.txt"), true);
    check("bad", Some("../outside/secret"), false);
    check("dir/new/file", Some("../outside/new/file"), false);
    check("dangling", Some("../outside/not-yet"), false);
    check("new/deep/file", Some("new/deep/file"), true);
    check("../outside/secret", Some("../outside/secret"), false);
    check("../scratch/out", Some("../scratch/out"), true);
    check("loop", None, false);
}

#[test]
fn home_is_where_shells_have_it() {
    let ground = ToolFixture::new(&[("../home/a", "x"), ("~/a", "x")]);
    let home = ground.cwd.join("../home");
    let check = |path: &str, expected: &str| {
        let ctx = ToolContext { env: [("HOME".to_owned(), home.to_string())].to_vec().into(), ..ground.ctx() };
        let (file, dir) = (json!({"file_path": path, "content": "x"}), json!({"dir_path": path}));
        let real = |it: Result<Targets, _>| it.unwrap().paths.first().map(|it| it.real.clone());
        assert_eq!(real(ground.block_on(WriteFile.targets(&file, &ctx))), Some(ctx.cwd.join(expected)), "{path}");
        assert_eq!(real(ground.block_on(ListDirectory.targets(&dir, &ctx))), Some(ctx.cwd.join(expected)), "{path}");
    };
    check("~/a", "../home/a");
    check("~//a", "../home/a");
    check("~/../outside/b", "../outside/b");
    check("~", "../home");
    check("./~/a", "~/a");
    check("~b", "~b");
}

#[test]
fn hints_at_the_nearest_name() {
    let ground = ToolFixture::new(&[("src/main.rs", "x"), ("src/mode.rs", "x")]);
    let check = |path: &str, expected: &str| {
        let cwd = ground.ctx().cwd;
        let message = paths::not_found_error(&cwd.join(path), &ground.ctx()).message;
        assert_eq!(message.replace(&cwd.to_string(), ""), expected);
    };
    check("src/man.rs", "File not found: /src/man.rs. Did you mean src/main.rs?");
    check("srcs/mode.rs", "File not found: /srcs/mode.rs. Did you mean src/mode.rs?");
    check("src/zebra.py", "File not found: /src/zebra.py.");
}

fn said(output: &ToolOutput) -> String {
    output.error.as_ref().map_or_else(|| joined_text(&output.content), |it| it.message.clone())
}

/// Each tool, with a path that was a file of the workspace when it was decided about, and leads outside now.
#[test]
fn path_swapped_after_the_decision_is_not_touched() {
    let calls: [(&dyn Builtin, Value); 6] = [
        (&ReadFile, json!({"file_path": "d/f"})),
        (&WriteFile, json!({"file_path": "d/f", "content": "mine"})),
        (&Replace, json!({"file_path": "d/f", "old_string": "word", "new_string": "mine"})),
        (&ListDirectory, json!({"dir_path": "d"})),
        (&GrepSearch, json!({"pattern": "word", "dir_path": "d"})),
        (&Glob, json!({"pattern": "*", "dir_path": "d"})),
    ];
    for (tool, args) in calls {
        let ground =
            ToolFixture::new(&[("d/f", "inner word\n"), ("../outside/f", "outer word\n"), ("../outside/g", "")]);
        let ctx = ground.decided_ctx(tool, &args);
        fs::rename(ground.cwd.join("d"), ground.cwd.join("aside")).unwrap();
        ground.link("../outside", "d");
        let text = said(&ground.block_on(tool.run(&args, None, &ctx)).unwrap_or_else(ToolOutput::failed));
        let name = tool.spec().name;
        assert!(!text.contains("outer") && !text.contains("/g"), "{name}: {text}");
        assert_eq!(ground.read("../outside/f"), b"outer word\n", "{name}");
        assert_eq!(fs::read_dir(ground.cwd.join("../outside")).unwrap().count(), 2, "{name}");
    }
}

/// A thread flips a folder and a link to outside while the tool is asked, shown and run.
#[cfg(target_os = "linux")]
#[test]
fn a_race_of_links_never_writes_outside() {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    let ground = ToolFixture::new(&[("d/f", "a"), ("../outside/keep", "")]);
    ground.link("../outside", "aside");
    let done = AtomicBool::new(false);
    let (from, to) = (ground.cwd.join("d"), ground.cwd.join("aside"));
    let flip = || {
        while !done.load(Ordering::Relaxed) {
            renameat2(AT_FDCWD, from.as_path(), AT_FDCWD, to.as_path(), RenameFlags::RENAME_EXCHANGE).unwrap();
        }
    };
    let (mut written, mut stopped) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(flip);
        for round in 0..2_000 {
            let args = json!({"file_path": "d/f", "content": format!("{round}")});
            let ctx = ground.decided_ctx(&WriteFile, &args);
            // What policy would deny.
            if ctx.known.decided_targets.iter().any(|it| !it.in_roots) {
                stopped += 1;
                continue;
            }
            let output = ground.block_on(WriteFile.run(&args, None, &ctx));
            written += usize::from(output.is_ok_and(|it| it.error.is_none()));
        }
        done.store(true, Ordering::Relaxed);
    });
    println!("{written} written, {stopped} stopped by policy");
    assert_eq!(fs::read_dir(ground.cwd.join("../outside")).unwrap().count(), 1);
    assert!(written > 0);
}

/// An editor with other text than the disk.
struct Buffer(&'static str);

impl Fs for Buffer {
    fn read<'a>(&'a self, _path: &'a AbsPath) -> BoxFuture<'a, Result<Vec<u8>, FsError>> {
        Box::pin(async { Ok(self.0.as_bytes().to_vec()) })
    }

    fn has_buffers(&self) -> bool {
        true
    }

    fn write<'a>(&'a self, path: &'a AbsPath, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), FsError>> {
        Box::pin(async move { DiskFs.write(path, bytes).await })
    }

    fn change(&self, changes: Vec<PlannedChange>) -> BoxFuture<'_, Result<(), ChangeError>> {
        DiskFs.change(changes)
    }
}

/// The model learns that an editor's buffer differs from the disk.
#[test]
fn unsaved_buffer_is_reported() {
    let ground = ToolFixture::new(&[("a.txt", "one\r\ntwo\r\n")]);
    let run = |tool: &dyn Builtin, args: &Value, buffer: &'static str| {
        let ctx = ToolContext { fs: std::sync::Arc::new(Buffer(buffer)), ..ground.decided_ctx(tool, args) };
        said(&ground.block_on(tool.run(args, None, &ctx)).unwrap_or_else(ToolOutput::failed))
    };
    let read = json!({"file_path": "a.txt"});
    assert!(run(&ReadFile, &read, "one\nnew\n").starts_with("[The editor has unsaved changes"));
    assert_eq!(run(&ReadFile, &read, "one\ntwo\n"), "one\ntwo\n");
    // The same text: line ends are the disk's.
    let edit = json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"});
    assert!(!run(&Replace, &edit, "one\ntwo\n").contains("unsaved"));
    assert_eq!(ground.read("a.txt"), b"one\r\n2\r\n");
    let edit = json!({"file_path": "a.txt", "old_string": "new", "new_string": "n"});
    assert!(run(&Replace, &edit, "one\nnew\n").contains("The editor had unsaved changes of this file"));
    assert_eq!(ground.read("a.txt"), b"one\nn\n");
}

/// Two names of one file: what the one says holds for the other.
#[test]
fn hard_link_to_a_secret_is_reported() {
    let ground = ToolFixture::new(&[("sub/.env", "TOKEN=1\n"), ("plain", "TOKEN=2\n")]);
    let hard = |from: &str, to: &str| fs::hard_link(ground.cwd.join(from), ground.cwd.join(to)).unwrap();
    hard("sub/.env", "notes.txt");
    hard("plain", "other.txt");
    let ctx = ground.ctx();
    let secret = ctx.cwd.join("sub/.env");
    let touched = |tool: &dyn Builtin, args: Value| -> Vec<AbsPath> {
        let targets = ground.block_on(tool.targets(&args, &ctx)).unwrap();
        targets.paths.into_iter().skip(1).map(|it| it.real).collect()
    };
    let edit = |path: &str| json!({"file_path": path, "old_string": "a", "new_string": "b", "content": ""});
    for tool in [&ReadFile as &dyn Builtin, &WriteFile, &Replace] {
        assert_eq!(touched(tool, edit("notes.txt")), std::slice::from_ref(&secret));
        assert_eq!(touched(tool, edit("other.txt")), Vec::<AbsPath>::new());
    }
    assert_eq!(touched(&GrepSearch, json!({"pattern": "x", "dir_path": "notes.txt"})), [secret]);
    let said = ground.result_text(&GrepSearch, &json!({"pattern": "TOKEN"}));
    assert!(!said.contains("TOKEN=1") && said.contains("TOKEN=2") && said.contains("2 file(s) left out"), "{said}");
}

#[test]
fn searches_do_not_read_secrets() {
    let ground = ToolFixture::new(&[("a.txt", "TOKEN\n"), (".env", "TOKEN=1\n"), (".ssh/id_rsa", "TOKEN\n")]);
    ground.link(".env", "innocent");
    let said = ground.result_text(&GrepSearch, &json!({"pattern": "TOKEN"}));
    assert!(said.contains("Found 1 match") && said.contains("2 file(s) left out"), "{said}");
    assert!(ground.result_text(&GrepSearch, &json!({"pattern": "TOKEN", "dir_path": ".env"})).contains("TOKEN=1"));
}

/// castor's own folder may lie in the workspace, or a home folder may be one.
#[test]
fn file_tools_respect_masked_and_read_only_paths() {
    let ground = ToolFixture::new(&[
        ("state/c/settings.json", "WORD"),
        ("state/a", "WORD"),
        (".local/bin/ls", "WORD"),
        ("../all/w2/a", ""),
        ("../scratch/out", ""),
    ]);
    ground.link("state/c", "c");
    let at = |it: &str| ground.cwd.join(it);
    let kept = ["state/c", ".local", "../all"].map(at).to_vec();
    let masked = ["state/c", "../all", "../scratch"].map(at).to_vec();
    let held = ProtectedPaths { never_written: kept, masked, ..ProtectedPaths::default() };
    let roots = vec![ground.cwd.clone(), at("../all/w2")];
    let ctx = ToolContext {
        known: CallKnowledge { protected: Arc::new(held), ..CallKnowledge::default() },
        roots,
        ..ground.ctx()
    };
    for (path, reads, writes) in [
        ("state/c/settings.json", true, true),
        ("state/c", true, true),
        ("c/new", true, true),
        ("state", false, false),
        ("state/c2", false, false),
        (".local/bin/ls", false, true),
        (".local/new/deep", false, true),
        ("../all/x", true, true),
        ("../all/w2/a", false, false),
        ("../scratch/out", false, false),
    ] {
        let held = |access| ground.block_on(paths::resolve_target(&ctx, &at(path), access, None)).unwrap().held;
        assert_eq!((held(Access::Read), held(Access::Write)), (reads, writes), "{path}");
    }
    let said =
        |tool: &dyn Builtin, args: &Value| joined_text(&ground.block_on(tool.run(args, None, &ctx)).unwrap().content);
    let found = said(&GrepSearch, &json!({"pattern": "WORD", "dir_path": "state"}));
    assert!(found.contains("Found 1 match") && found.contains("1 file(s) left out"), "{found}");
    let found = said(&Glob, &json!({"pattern": "state/**/*"}));
    assert!(
        found.contains("state/a") && !found.contains("settings.json") && found.contains("1 file(s) left"),
        "{found}"
    );
    // Who was asked about the folder itself sees what is in it.
    let found = said(&GrepSearch, &json!({"pattern": "WORD", "dir_path": "state/c"}));
    assert!(found.contains("Found 1 match") && !found.contains("left out"), "{found}");
}
