//! Words with which a tool says which version of it is there, and does nothing else.

use super::Word;

const LONG: &[&str] = &["--version"];
/// `-v` is a version to these, and to others a wish for more words.
const SMALL: &[&str] = &["--version", "-v"];
const CAPITAL: &[&str] = &["--version", "-V"];
const JAVA: &[&str] = &["--version", "-version"];
const PYTHON: &[&str] = &["--version", "-V", "-VV"];
const TERRAFORM: &[&str] = &["--version", "-version", "version"];

/// All the words behind the name. Absent are those that run or load what a file of the folder names before they say
/// anything: yarn (`.yarnrc.yml`), pnpm (`packageManager`), cargo, rustc (`rust-toolchain.toml`) and go (`go.mod`), mvn
/// (`.mvn/jvm.config`), dotnet (`global.json`), poetry and composer (their plugins), and wrappers such as `gradlew`.
const VERSIONS: &[(&str, &[&str])] = &[
    ("bun", SMALL),
    ("clang", SMALL),
    ("clang++", SMALL),
    ("cmake", LONG),
    ("curl", CAPITAL),
    ("deno", CAPITAL),
    ("docker", SMALL),
    ("ffmpeg", &["-version"]),
    ("g++", SMALL),
    ("gcc", SMALL),
    ("gh", LONG),
    ("java", JAVA),
    ("javac", JAVA),
    ("jq", CAPITAL),
    ("kubectl", &["version --client"]),
    ("make", SMALL),
    ("node", SMALL),
    ("npm", SMALL),
    ("npx", SMALL),
    ("perl", SMALL),
    ("php", SMALL),
    ("pip", CAPITAL),
    ("pip3", CAPITAL),
    ("podman", SMALL),
    ("psql", CAPITAL),
    ("python", PYTHON),
    ("python3", PYTHON),
    ("ruby", SMALL),
    ("sqlite3", JAVA),
    ("swift", LONG),
    ("terraform", TERRAFORM),
    ("tofu", TERRAFORM),
    ("uv", CAPITAL),
];

/// Whether the words ask for nothing but the version.
pub(super) fn asks(name: &str, args: &[Word]) -> bool {
    let is = |said: &&str| {
        let mut words = said.split(' ');
        let same = args.iter().all(|it| it.literal().is_some() && it.literal() == words.next());
        same && words.next().is_none()
    };
    let row = VERSIONS.binary_search_by_key(&name, |it| it.0).ok().and_then(|it| VERSIONS.get(it));
    row.is_some_and(|it| it.1.iter().any(is))
}

#[cfg(test)]
pub(in crate::engine::policy) fn names() -> impl Iterator<Item = &'static str> {
    VERSIONS.iter().map(|it| it.0)
}
