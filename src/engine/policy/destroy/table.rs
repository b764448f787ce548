//! The destructive class as data: what cannot be taken back, by program, sub-command and option.

mod databases;
mod elsewhere;
mod files;
mod history;
mod published;
mod starters;
mod system;

use crate::engine::policy::shell::Word;

/// Folders whose content can be made again: what is deleted in them is no loss.
pub(super) const BUILD: &[&str] = &[
    "target",
    "node_modules",
    "dist",
    "build",
    "out",
    "__pycache__",
    "coverage",
    "htmlcov",
    "venv",
    "DerivedData",
    "Pods",
    "_build",
    "_site",
    "bazel-out",
    "cdk.out",
    "dist-newstyle",
    "elm-stuff",
    "playwright-report",
    "storybook-static",
    "test-results",
    "zig-cache",
    "zig-out",
    ".angular",
    ".astro",
    ".aws-sam",
    ".cache",
    ".dart_tool",
    ".docusaurus",
    ".eggs",
    ".expo",
    ".gradle",
    ".hypothesis",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".nyc_output",
    ".output",
    ".parcel-cache",
    ".pytest_cache",
    ".ruff_cache",
    ".sass-cache",
    ".serverless",
    ".stack-work",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    ".vite",
    ".zig-cache",
];

/// Endings of files that are made beside their sources.
pub(super) const MADE: &[&str] = &[".class", ".egg-info", ".o", ".pyc", ".pyo", ".tsbuildinfo", ".DS_Store"];

/// When a command that begins like its row destroys.
pub(super) enum When {
    Always,
    /// With a short option of these letters, or one of these long ones, which may be abbreviated.
    Options(&'static str, &'static [&'static str]),
    /// With one of these words anywhere behind.
    Words(&'static [&'static str]),
    /// With a word behind that begins so.
    Begins(&'static [&'static str]),
    /// Unless one of these is among the words: they only look.
    Unless(&'static [&'static str]),
    /// Unless all its operands lie in build folders.
    OutsideBuild,
    /// What decides, if it does.
    Holds(for<'a> fn(&'a [Word]) -> Option<&'a str>),
    /// What decides, unless all of git's paths lie in build folders.
    HoldsBeside(for<'a> fn(&'a [Word]) -> Option<&'a str>),
    /// git throws something away as it checks that out, as the world found.
    Undone,
    /// The same as `Holds`, unless all its operands before the first option do.
    HoldsOutside(for<'a> fn(&'a [Word]) -> Option<&'a str>),
    /// Its last operand, or all of them, lie outside of the roots.
    OntoOutside,
    /// Some operand may lie outside of the roots.
    Outside,
    /// With one of the first, which may be none, the folder behind one of the second is emptied: `""` is the first
    /// operand, `"$"` the last.
    Clears(&'static [&'static str], &'static [&'static str]),
    /// By the permissions that it gives, and to what.
    Permits,
}

/// One row; a program may have several.
pub(super) struct Row {
    pub program: &'static str,
    /// Words behind the program's own options.
    pub sub: &'static [&'static str],
    pub when: When,
}

/// Each in the order of its programs' names.
const TABLES: [&[Row]; 7] =
    [files::ROWS, history::ROWS, system::ROWS, published::ROWS, elsewhere::ROWS, databases::ROWS, starters::ROWS];

/// All of them.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    TABLES.into_iter().flatten()
}

/// Whether a program is in a table of what is on this machine, where each of its verbs was weighed.
pub(super) fn is_local(program: &str) -> bool {
    [files::ROWS, history::ROWS, system::ROWS]
        .iter()
        .any(|it| it.binary_search_by(|row| row.program.cmp(program)).is_ok())
}

/// The sub-commands with which a program sends something to where others get it, whatever its options.
pub(super) fn published_by(program: &str) -> impl Iterator<Item = &'static [&'static str]> {
    const SENDS: &[&str] = &["deploy", "publish", "push", "submit", "upload"];
    let from = published::ROWS.partition_point(|it| it.program < program);
    let rows = published::ROWS.get(from..).unwrap_or_default().iter().take_while(move |it| it.program == program);
    let sends = |it: &&Row| matches!(it.when, When::Always) && it.sub.last().is_some_and(|it| SENDS.contains(it));
    rows.filter(sends).map(|it| it.sub)
}

/// Those of a program, found without going through all: each command is looked up.
pub(super) fn rows_of(program: &str) -> impl Iterator<Item = &'static Row> {
    TABLES.into_iter().flat_map(move |table| {
        let from = table.partition_point(|it| it.program < program);
        table.get(from..).unwrap_or_default().iter().take_while(move |it| it.program == program)
    })
}

const fn row(program: &'static str, sub: &'static [&'static str], when: When) -> Row {
    Row { program, sub, when }
}

/// What programs in other languages call to delete: looked for in code on the command line.
pub(super) const CODE: &[&str] = &[
    "rmtree",
    "REMOVE_RECURSE",
    "unlink",
    "unlinkSync",
    "rmdir",
    "rmdirSync",
    "rmSync",
    "removedirs",
    "os.remove",
    "rm_rf",
    "rm_r",
    "remove_entry",
    "rimraf",
    "remove_tree",
    "fs.rm",
    ".rm(\"",
    ".rm('",
    ".rm(`",
    "FileUtils.rm",
    "Base.rm",
    "fsPromises.rm",
    "promises.rm",
    "promises').rm",
    "promises\").rm",
    "import remove",
    "remove_dir",
    "remove_file",
    "File.delete",
    "File.rm",
    "Dir.delete",
    "Directory.Delete",
    "File.Delete",
    "Files.delete",
    "Deno.remove",
    "file.remove",
    "file:del",
    "delete-file",
    "delete-directory",
    "deleteRecursively",
    "removeItem(at",
    "os.truncate",
    "file delete",
    "posix.remove",
    "removeSync(",
    "emptyDirSync(",
    "require(\"del\")",
    "require('del')",
    "call delete(",
    "fn.delete(",
    "dir_delete(",
    "file_delete(",
    "Sys.remove",
    "removeFile",
    "removeDirectory",
    "deleteDirectory",
    "rmdirRecurse",
    "os.RemoveAll",
    "fs/delete-tree",
    "FileUtils.remove",
    "FileUtils.chmod_R",
    "FileUtils.chown_R",
    "File]::Delete",
    "Directory]::Delete",
    "CDLL(None).remove",
    "from sh import rm",
];

/// The same where nothing stands before them: many things have a method of that name.
pub(super) const CALLS: &[&str] = &["remove(", "rm("];

#[cfg(test)]
mod tests {
    use super::TABLES;

    #[test]
    fn the_tables_are_sorted_by_their_programs() {
        assert!(TABLES.iter().all(|it| it.is_sorted_by_key(|it| it.program)));
    }
}
