//! Opaque programs: interpreters with code, command runners, and builtins that change the shell.

use std::{
    collections::HashMap,
    sync::{LazyLock, OnceLock},
};

use regex::Regex;
use serde::Deserialize;

use super::line::{ShellCommand, base_name};

/// One row of `opaque.toml`.
#[derive(Deserialize)]
struct OpaqueRow {
    /// Names of programs; a star stands for any ending.
    names: Vec<String>,
    /// Over its arguments, joined by blanks: only then; without it always.
    when: Option<String>,
    /// Over the same: then not.
    unless: Option<String>,
    #[serde(skip)]
    compiled: OnceLock<Option<(Option<Regex>, Option<Regex>)>>,
}

impl OpaqueRow {
    /// A pattern that does not compile leaves the row closed.
    fn holds(&self, args: &str) -> bool {
        let compile = |it: &Option<String>| it.as_deref().map(Regex::new).transpose().ok();
        let compiled = self.compiled.get_or_init(|| Some((compile(&self.when)?, compile(&self.unless)?)));
        let Some((when, unless)) = compiled else { return true };
        when.as_ref().is_none_or(|it| it.is_match(args)) && !unless.as_ref().is_some_and(|it| it.is_match(args))
    }
}

struct Table {
    rows: Vec<OpaqueRow>,
    by_name: HashMap<String, Vec<usize>>,
    by_start: Vec<(String, usize)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct File {
        row: Vec<OpaqueRow>,
    }
    let rows = toml::from_str::<File>(include_str!("opaque.toml")).map(|it| it.row).unwrap_or_default();
    let (mut by_name, mut by_start) = (HashMap::<String, Vec<usize>>::new(), Vec::new());
    for (at, row) in rows.iter().enumerate() {
        for name in &row.names {
            match name.strip_suffix('*') {
                Some(start) => by_start.push((start.to_owned(), at)),
                None => by_name.entry(name.clone()).or_default().push(at),
            }
        }
    }
    Table { rows, by_name, by_start }
});

/// Tells whether it runs something that its words do not plainly say.
pub fn hides_what_runs(command: &ShellCommand) -> bool {
    let Some(program) = command.name().map(base_name) else { return true };
    let named = TABLE.by_name.get(program).into_iter().flatten();
    let begun = TABLE.by_start.iter().filter(|it| program.starts_with(&it.0)).map(|it| &it.1);
    let mut rows = named.chain(begun).filter_map(|at| TABLE.rows.get(*at)).peekable();
    if rows.peek().is_none() {
        return false;
    }
    // A blank within a word must not look like one between two.
    let args = command.args().iter().map(|it| it.text.replace(' ', "␣")).collect::<Vec<_>>().join(" ");
    rows.any(|it| it.holds(&args))
}

/// Variables that loaders, shells or programs obey: their value is run, is code, or leads to code.
const OBEYED: &[&str] = &[
    "AR",
    "BASHOPTS",
    "BASH_ENV",
    "BASH_FUNC_*",
    "BROWSER",
    "CARGO_ALIAS_*",
    "CARGO_BUILD_*",
    "CARGO_HOME",
    "CARGO_TARGET_*",
    "CC",
    "CDPATH",
    "CFLAGS",
    "CLASSPATH",
    "CPP",
    "CXX",
    "CXXFLAGS",
    "DYLD_*",
    "EDITOR",
    "ENV",
    "GCC_EXEC_PREFIX",
    "GCONV_PATH",
    "GIT_*",
    "GLOBIGNORE",
    "GOFLAGS",
    "GOTOOLCHAIN",
    "GREP_OPTIONS",
    "HISTFILE",
    "HOME",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LD",
    "LDFLAGS",
    "LD_*",
    "LESS",
    "LESSCLOSE",
    "LESSOPEN",
    "LOCPATH",
    "LUA_*",
    "MAKE",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANPAGER",
    "MAVEN_OPTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NPM_CONFIG_*",
    "OPENSSL_CONF",
    "PAGER",
    "PATH",
    "PERL5*",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PIP_*",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTHON*",
    "RIPGREP_CONFIG_PATH",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_*",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SUDO_*",
    "SVN_SSH",
    "SYSTEMD_*",
    "TERMINFO",
    "UV_*",
    "VISUAL",
    "XDG_*",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
    "npm_config_*",
];
/// Of these, the ones that only say how things are shown or kept.
const HARMLESS: &[&str] = &["PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONWARNINGS"];

/// Tells whether setting the variable may have something run.
pub fn is_obeyed_variable(name: &str) -> bool {
    let fits = |it: &str| match it.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == it,
    };
    let ends = ["_PAGER", "_EDITOR", "_ASKPASS"].iter().any(|it| name.ends_with(it));
    (ends || OBEYED.iter().any(|it| fits(it))) && !HARMLESS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn every_row_is_read_and_compiles() {
        assert!(TABLE.rows.len() > 20);
        for row in &TABLE.rows {
            row.holds("");
            assert!(row.compiled.get().is_some_and(Option::is_some), "{:?}", row.names);
        }
    }
}
