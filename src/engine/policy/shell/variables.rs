//! Variables that programs obey: what they are set to is run, or is code, or names a file of code.

use super::carriers::is_harmless_setting;

/// What a program makes of a variable.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Obeyed {
    /// Nothing that runs.
    No,
    /// The value is a command line.
    Command,
    /// Something runs, and the value does not say what.
    Unknown,
}

/// Variables whose value is a command line that programs run; a star stands for any ending, or for what is between.
const RUN_BY_NAME: &[&str] = &[
    "AR",
    "AWS_PAGER",
    "BAT_PAGER",
    "BROWSER",
    "CARGO_ALIAS_*",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTC_*",
    "CARGO_BUILD_RUSTDOC",
    "CARGO_TARGET_*_LINKER",
    "CARGO_TARGET_*_RUNNER",
    "CC",
    "CMAKE_*_COMPILER_LAUNCHER",
    "CPP",
    "CVS_RSH",
    "CXX",
    "DELTA_PAGER",
    "EDITOR",
    "FC",
    "FCEDIT",
    "GH_BROWSER",
    "GH_EDITOR",
    "GH_PAGER",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "HGEDITOR",
    "JJ_EDITOR",
    "KUBE_EDITOR",
    "LD",
    "LESSCLOSE",
    "LESSOPEN",
    "MAKE",
    "MANPAGER",
    "NPM_CONFIG_SCRIPT_SHELL",
    "PAGER",
    "PROMPT_COMMAND",
    "PSQL_EDITOR",
    "PSQL_PAGER",
    "RSYNC_CONNECT_PROG",
    "RSYNC_RSH",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "SHELL",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "SVN_EDITOR",
    "SVN_SSH",
    "SYSTEMD_PAGER",
    "VISUAL",
    "npm_config_script_shell",
];

/// When the value of such a variable is code.
enum When {
    Always,
    /// Unless each of its words is one of these; a star stands for any ending.
    Unless(&'static [&'static str]),
    /// With one of these in it.
    Holding(&'static [&'static str]),
    /// The value names a setting of git.
    Setting,
}

/// make hands these to a shell.
const FLAGS: When = When::Holding(&["-fplugin", "-wrapper", "-specs", ";", "`", "$(", "|", "&", "\n"]);
const JAVA: When = When::Unless(&["-Xm*", "-Xss*", "-D*", "-XX:+Use*", "-XX:Max*", "-ea", "-server"]);
const NODE: When = When::Unless(&[
    "--max-old-space-size=*",
    "--max_old_space_size=*",
    "--max-semi-space-size=*",
    "--max-http-header-size=*",
    "--stack-size=*",
    "--openssl-legacy-provider",
    "--no-openssl-legacy-provider",
    "--no-warnings*",
    "--no-deprecation",
    "--no-experimental-*",
    "--enable-source-maps",
    "--experimental-vm-modules",
    "--experimental-strip-types",
    "--dns-result-order=*",
    "--trace-*",
    "--unhandled-rejections=*",
    "--use-openssl-ca",
    "--use-system-ca",
    "--preserve-symlinks",
]);
const MAKE: When =
    When::Unless(&["-j*", "-k", "-s", "-i", "-l*", "-B", "-w", "--jobs*", "--silent", "--no-print-directory"]);

const CODE: &[(&str, When)] = &[
    ("BASH_ENV", When::Always),
    ("BASH_FUNC_*", When::Always),
    ("CFLAGS", FLAGS),
    ("CPPFLAGS", FLAGS),
    ("CXXFLAGS", FLAGS),
    ("DYLD_INSERT_LIBRARIES", When::Always),
    ("ENV", When::Holding(&["$(", "`"])),
    ("EXINIT", When::Always),
    ("GIT_CONFIG", When::Unless(&["/dev/null"])),
    ("GIT_CONFIG_GLOBAL", When::Unless(&["/dev/null"])),
    ("GIT_CONFIG_KEY_*", When::Setting),
    ("GIT_CONFIG_PARAMETERS", When::Always),
    ("GIT_CONFIG_SYSTEM", When::Unless(&["/dev/null"])),
    ("GIT_EXEC_PATH", When::Always),
    ("GIT_TEMPLATE_DIR", When::Always),
    ("GNUMAKEFLAGS", MAKE),
    ("GOFLAGS", When::Holding(&["exec"])),
    ("GRADLE_OPTS", JAVA),
    ("JAVA_OPTS", JAVA),
    ("JAVA_TOOL_OPTIONS", JAVA),
    ("JDK_JAVA_OPTIONS", JAVA),
    ("LDFLAGS", FLAGS),
    ("LD_AUDIT", When::Always),
    ("LD_PRELOAD", When::Always),
    ("LUA_INIT*", When::Always),
    ("MAKEFILES", When::Always),
    ("MAKEFLAGS", MAKE),
    ("MAVEN_OPTS", JAVA),
    ("NODE_OPTIONS", NODE),
    ("PERL5DB", When::Always),
    ("PERL5OPT", When::Unless(&["-w"])),
    ("PYTHONBREAKPOINT", When::Unless(&["0"])),
    ("PYTHONSTARTUP", When::Always),
    ("RIPGREP_CONFIG_PATH", When::Always),
    ("RUBYOPT", When::Unless(&["-w", "-W*"])),
    ("RUSTDOCFLAGS", When::Holding(&["linker"])),
    ("RUSTFLAGS", When::Holding(&["linker"])),
    ("TAR_OPTIONS", When::Always),
    ("VIMINIT", When::Always),
    ("_JAVA_OPTIONS", JAVA),
    ("npm_config_node_options", NODE),
];

/// What becomes of `name=value`; without a value: of one that nobody knows.
pub(super) fn obeyed(name: &str, value: Option<&str>) -> Obeyed {
    if value.is_some_and(|it| it.trim().is_empty()) {
        return Obeyed::No;
    }
    if RUN_BY_NAME.iter().any(|it| fits(it, name)) {
        return if value.is_some() { Obeyed::Command } else { Obeyed::Unknown };
    }
    let Some((_, when)) = CODE.iter().find(|it| fits(it.0, name)) else { return Obeyed::No };
    let runs = match (when, value) {
        (When::Always, _) => true,
        // `RUSTFLAGS="$RUSTFLAGS -D warnings"`
        (When::Holding(_), None) => false,
        (_, None) => true,
        (When::Unless(list), Some(value)) => !value.split_whitespace().all(|word| list.iter().any(|it| fits(it, word))),
        (When::Holding(list), Some(value)) => list.iter().any(|it| value.contains(it)),
        (When::Setting, Some(value)) => !is_harmless_setting(value),
    };
    if runs { Obeyed::Unknown } else { Obeyed::No }
}

fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => text.len() >= start.len() + end.len() && text.starts_with(start) && text.ends_with(end),
        None => pattern == text,
    }
}
