//! Libraries by which code does what a program does: git, files, devices.

use super::RUBY;
use crate::engine::policy::destroy::is_device;

/// By what stands in code that uses a library: what it throws away with. Others have methods of these names, too.
const LIBRARIES: &[(&[&str], &[&str])] = &[
    (
        &["boto3", "botocore", "google.cloud"],
        &[".delete(", ".terminate(", "deregister_", "purge_queue(", "release_address(", "schedule_key_deletion("],
    ),
    (
        &["docker.from_env", "DockerClient", "docker.APIClient", "dockerode"],
        &[
            ".prune(",
            ".remove(force",
            ".remove(v=",
            ".remove({",
            "prune_",
            "pruneContainers",
            "pruneImages",
            "pruneVolumes",
            "remove_volume(",
        ],
    ),
    (
        &["ftplib", "paramiko", "pysftp", "asyncssh", "open_fs("],
        &[".delete(", ".remove(", ".removedir(", ".removetree(", ".rmd("],
    ),
    (&["getVolume("], &[".remove("]),
    (&["fsspec", "s3fs", "gcsfs", "adlfs"], &[".delete(", ".rm(", ".rm_file("]),
    (
        &["import redis", "from redis", "ioredis", "redis.createClient", "Redis.new"],
        &[".del ", ".del(", ".delete(", ".flush"],
    ),
    (&["elasticsearch", "opensearch", "Elasticsearch("], &[".delete(", ".delete_by_query("]),
    (&["gitlab.Gitlab"], &[".delete("]),
    (&["alembic"], &["downgrade(cfg, \"base\"", "downgrade(cfg,\"base\""]),
    (&["slack"], &["chat_delete", "chat.delete"]),
    (&["stripe"], &[".del(", ".delete("]),
    (&["octokit", "Octokit"], &[".delete(", ".delete_", "force: true", "force:true"]),
    (
        &["pygit2", "nodegit", "Rugged"],
        &[
            ":force",
            ":hard",
            "CheckoutStrategy.FORCE",
            "GIT_CHECKOUT_FORCE",
            "GIT_RESET_HARD",
            "ResetMode.HARD",
            "TYPE.HARD",
        ],
    ),
    (&["dulwich"], &["\"hard\"", "'hard'", "branch_delete(", "force=True", "remove_branch(", "tag_delete("]),
    (
        &["Sequelize(", "sequelize", "typeorm", "DataSource(", "mikro-orm"],
        &["dropSchema", "synchronize(true", "sync({ force: true", "sync({force: true", "sync({force:true"],
    ),
];

fn of_library(code: &str) -> Option<&'static str> {
    let has = |list: &[&'static str]| list.iter().find(|it| code.contains(**it)).copied();
    LIBRARIES.iter().filter(|it| has(it.0).is_some()).find_map(|it| has(it.1))
}

/// What is thrown away by what a library calls it.
pub(super) fn deletes(code: &str, program: &str) -> Option<&'static str> {
    let has = |text: &str| code.contains(text);
    let by_name = match program {
        "octave" | "octave-cli" | "matlab" => {
            let command = || {
                code.split([';', '\n', ','])
                    .any(|it| it.trim_start_matches("-batch ").trim_start().starts_with("delete "))
            };
            (has("delete(") || command()).then_some("delete(")
        }
        "swipl" => (has("delete_file") || has("delete_directory")).then_some("delete_file"),
        "wolframscript" => (has("DeleteFile") || has("DeleteDirectory")).then_some("DeleteFile"),
        "amm" => (has("rm!") || has("rm.all")).then_some("rm!"),
        "littler" | "r" | "R" | "Rscript" => has("file.remove").then_some("file.remove"),
        _ if RUBY.contains(&program) => {
            let path = has("Pathname") && (has(").delete") || has(".rmtree"));
            let record = has(".destroy!") || has(".destroy(") || of_model(code);
            (path || record).then_some(".delete")
        }
        _ => None,
    };
    let extra = || (has("fs-extra") && (has(".remove(") || has(".emptyDir("))).then_some("fs-extra");
    by_name.or_else(extra).or_else(|| of_library(code)).or_else(|| git(code)).or_else(|| writes_device(code))
}

/// `User.delete(1)`; `ENV.delete("X")` is none of a database.
fn of_model(code: &str) -> bool {
    let name = |before: &str| {
        let from = before.trim_end_matches(|it: char| it.is_alphanumeric() || it == '_').len();
        let name = before.get(from..).unwrap_or_default();
        name.starts_with(|it: char| it.is_uppercase()) && name.contains(|it: char| it.is_lowercase())
    };
    code.match_indices(".delete(").any(|(at, _)| code.get(..at).is_some_and(name))
}

/// GitPython, `sh.git`, simple-git.
fn git(code: &str) -> Option<&'static str> {
    let has = |text: &str| code.contains(text);
    if !(has("import git") || has("simple-git") || has("Repo(") || has("isomorphic-git")) {
        return None;
    }
    let reset = has("reset(") && (has("--hard") || has("\"hard\"") || has("'hard'") || has("working_tree=True"));
    let push = has("push(") && (has("--force") || has("force=True") || has("force: true") || has("\"-f\""));
    let clean = has("clean(") && (has("-f") || has("force"));
    let checkout = has("checkout(") && (has("force=True") || has("force: true"));
    let branch = has("delete_head(") || has("delete_tag(") || has("deleteLocalBranch");
    let found =
        [(reset, "reset("), (push, "push("), (clean, "clean("), (checkout, "checkout("), (branch, "delete_head(")];
    found.into_iter().find(|it| it.0).map(|it| it.1)
}

/// `open("/dev/sda", "wb")`
fn writes_device(code: &str) -> Option<&'static str> {
    let mut pieces = code.split(['"', '\'']);
    let random = |it: &str| it.ends_with("random") || it.starts_with("/dev/tty") || it.starts_with("/dev/pts");
    let named = pieces.any(|it| it.starts_with("/dev/") && is_device(it) && !random(it));
    let modes = ["\"w", "'w", "\"r+", "'r+", "\"a", "'a", "write", "O_WRONLY", "O_RDWR"];
    (named && modes.iter().any(|it| code.contains(it))).then_some("/dev/")
}
