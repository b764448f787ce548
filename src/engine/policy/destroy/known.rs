//! Programs whose words are known well enough: what sounds like a verb behind them is a name, a text, a file, or harmless.

use super::{normal, table};
use crate::engine::policy::shell::{base_name, is_language};

/// Those that only look or print, that build, test and run tasks, package managers, editors, compilers, clients of
/// databases (their table looks at what they are told), and builtins.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "7zz", "[", "[[", "ack", "act", "actionlint", "adb", "ag", "air", "alembic", "alias", "allure", "ansible-lint",
    "ant", "apk", "apropos", "apt", "apt-cache", "ar", "artillery", "as", "asciidoctor", "asdf", "aspell", "astro",
    "atom", "atoum", "autoconf", "autoflake", "automake", "autopep8", "ava", "awk", "b2sum", "babel", "banner",
    "base32", "base64", "basename", "bash-completion", "bashunit", "bat", "batcat", "bats", "bazel", "bazelisk",
    "bbedit", "beeline", "behat", "behave", "benchmark", "bibtex", "biome", "black", "bloop", "bower", "break",
    "brew", "buck", "buck2", "buf", "buildah", "bun", "bundle", "bundler", "bunx", "bunzip2", "bzip2", "c++",
    "cabal", "cal", "caniuse", "cargo", "cargo-nextest", "cargo-test", "cargo-watch", "case", "cat", "cc", "ccache",
    "cd", "cheat", "checkov", "chromedriver", "chromium", "cksum", "clang", "clang++", "clang-format", "clang-tidy",
    "clickhouse", "clickhouse-client", "clion", "clip", "cloc", "cmake", "cmp", "code", "code-insiders", "codecept",
    "codeception", "codespell", "codium", "colordiff", "column", "comm", "command", "commitizen", "commitlint",
    "compare", "compgen", "composer", "composite", "concurrently", "conda-lock", "convert", "coverage", "cowsay",
    "cp", "cpan", "cpanm", "cppcheck", "cqlsh", "cross", "crystal", "csplit", "ctags", "ctest", "cucumber", "cue",
    "curl", "curlie", "cursor", "cut", "cypress", "cz", "dart", "date", "ddgr", "delta", "deno", "detox", "dialog", "dict",
    "diff", "diff3", "diffstat", "difft", "difftastic", "dig", "direnv", "dirname", "dirs", "dmesg", "dnf", "docker",
    "docker-compose", "doctest", "doit", "dos2unix", "dotnet", "doxygen", "dpkg-query", "dub", "duckdb", "duty",
    "earthly", "easy_install", "echo", "ed", "egrep", "elinks", "elm", "emacs", "emacsclient", "entr", "envsubst",
    "esbuild", "eslint", "espeak", "ex", "exiftool", "expand", "expect", "expo", "export", "expr", "eza", "fab",
    "factor", "false", "fd", "fdfind", "festival", "ffmpeg", "ffprobe", "fgrep", "figlet", "file", "find", "firefox",
    "fish_indent", "flake8", "flutter", "fmt", "fnm", "fold", "foreman", "fortune", "foundryup", "fpm", "free",
    "fvm", "fzf", "g++", "gatling", "gawk", "gcc", "gedit", "gem", "getconf", "getent", "getfacl", "getopt",
    "getopts", "gh", "ghc", "ghci", "ghcup", "ginkgo", "git", "git-cliff", "glow", "gm", "gmake", "go", "goenv",
    "gofmt", "goland", "golangci-lint", "google-chrome", "googler", "gotestsum", "goyek", "gradle", "gradlew",
    "grep", "groups", "grunt", "gsed", "gulp", "gum", "gunzip", "gvim", "gzip", "hadolint", "hash", "hatch", "head",
    "helix", "helm", "help", "hexdump", "hexyl", "history", "hive", "hivemind", "honcho", "host", "hostname",
    "hspec", "htop", "http", "httpie", "https", "hub", "hugo", "hunspell", "hx", "hygen", "hyperfine", "hypothesis", "icdiff",
    "iconv", "id", "idea", "identify", "infection", "info", "inv", "invoke", "ionic", "iostat", "ipython", "irb",
    "isort", "j", "jar", "jasmine", "java", "javac", "jed", "jekyll", "jenv", "jest", "jless", "jo", "jobs", "joe",
    "join", "journalctl", "jq", "jshint", "julia", "juliaup", "just", "k6", "kahlan", "kak", "kaocha", "karma",
    "kate", "kdialog", "kotlin", "kotlinc", "kubecolor", "kubectl", "lab", "last", "latexmk", "lazygit", "ld", "ldd",
    "lein", "lerna", "less", "let", "link", "links", "lint-staged", "litecli", "local", "locate", "locust", "log",
    "logger", "login", "logname", "lolcat", "look", "ls", "lsblk", "lscpu", "lsd", "lsof", "lspci", "lsusb",
    "luacheck", "luarocks", "lynx", "lz4", "maestro", "mage", "magefile", "magick", "mail", "mailx", "make", "mako",
    "man", "mapfile", "mariadb", "markdownlint", "mate", "maturin", "md5sum", "meson", "micro", "mill", "minitest",
    "mise", "mix", "mkdir", "mkdocs", "mkfifo", "mktemp", "mmdc", "mocha", "mogrify", "mongo", "mongosh", "montage",
    "moon", "more", "msbuild", "msmtp", "mutmut", "mutt", "mvim", "mvn", "mvnd", "mvnw", "mycli", "mypy", "mysql",
    "mysqladmin", "mysqldump", "mysqlimport", "nano", "nbstripout", "nc", "ncat", "neovide", "nerdctl", "newman",
    "nextest", "ng", "nim", "nimble", "ninja", "nix", "nix-build", "nix-env", "nix-shell", "nl", "nm", "node-gyp",
    "nodeenv", "nodenv", "nose2", "nosetests", "notepad", "notify-send", "nox", "npm", "npm-run-all", "npx",
    "nslookup", "numfmt", "nvim", "nvim-qt", "nvm", "nx", "nyc", "objdump", "oc", "od", "opam", "open", "openssl",
    "overmind", "oxlint", "pacman", "pandoc", "pants", "paratest", "paste", "patch", "pathchk", "pbcopy", "pbpaste",
    "pdflatex", "pdm", "pdoc", "perl", "perldoc", "pest", "pg_dump", "pgbench", "pgcli", "phpcs", "phpstan",
    "phpstorm", "phpunit", "pico", "pidof", "ping", "pip", "pip3", "pipenv", "pipx", "pixi", "pkg-config",
    "playwright", "please", "plop", "pluck", "plz", "pnpm", "pnpx", "pod", "podman", "podman-compose", "poe", "poethepoet",
    "poetry", "postcss", "pprof", "pr", "pre-commit", "prettier", "printenv", "printf", "procfile", "prove", "ps",
    "psalm", "psql", "pushd", "pwd", "py.test", "pycharm", "pydoc", "pydoc3", "pyenv", "pyflakes", "pylint",
    "pyright", "pytest", "python2", "qmake", "quarto", "qunit", "rails-test", "rake", "ranger", "rbenv", "read",
    "readarray", "readelf", "readlink", "readonly", "realpath", "rebar3", "rec", "redis-cli", "rename", "return",
    "rev", "rg", "ri", "rider", "rimraf", "robot", "rollup", "roundup", "rspec", "rst2html", "rsync", "rubocop",
    "ruby", "rubymine", "ruff", "run-p", "run-s", "runghc", "runhaskell", "runme", "rush", "rust-analyzer", "rustc",
    "rustdoc", "rustfmt", "rustup", "rye", "sails", "sample", "say", "sbcl", "sbt", "sbt-test", "scala", "scalac",
    "scons", "scp", "sdiff", "sdk", "sdkmanager", "sed", "select", "semgrep", "sendmail", "sensible-browser", "seq",
    "set", "sh", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "shadcn", "shasum", "shellcheck",
    "shellspec", "shfmt", "shift", "shopt", "shuf", "sleep", "snowsql", "socat", "sort", "source", "sox", "spack",
    "spark-sql", "spell", "sphinx-build", "split", "sqlcmd", "sqlfluff", "sqlite3", "sqlplus", "ss", "ssh-add",
    "ssh-copy-id", "ssh-keygen", "stack", "standard", "stat", "stestr", "storybook", "stow", "strings", "strip",
    "stryker", "stty", "stylelint", "subl", "sum", "surfraw", "swc", "swift", "swiftc", "t", "tabs", "tac", "tail",
    "tape", "tar", "task", "taskfile", "taskipy", "tasty", "tcpdump", "tectonic", "tee", "terraform",
    "terraform-docs", "test", "test-unit", "testem", "tex", "textmate", "tfenv", "tic", "tldr", "tmuxinator", "tofu",
    "toilet", "top", "touch", "tox", "tput", "tr", "traceroute", "trap", "trash", "trash-put", "tree", "trial",
    "trino", "true", "tsc", "tsd", "tsort", "tstyche", "ttx", "tup", "turbo", "tusk", "type", "typeset", "typst",
    "ubuntu-drivers", "ulimit", "umask", "unalias", "uname", "unexpand", "uniq", "units", "unittest", "unset",
    "unxz", "unzip", "updatedb", "uptime", "usql", "uv", "uvx", "valgrind", "valkey-cli", "vcpkg", "vi", "view",
    "vim", "vimdiff", "vite", "vitest", "vmstat", "volta", "vscode", "w3m", "wait", "ward", "wasm-opt", "wasm-pack",
    "watchexec", "watchman", "wc", "wdiff", "web-test-runner", "webpack", "webstorm", "wget", "whatis", "whence",
    "whereis", "which", "whiptail", "who", "whoami", "whois", "windsurf", "wireit", "wl-copy", "wn", "wordnet",
    "write", "wtr", "xargo", "xclip", "xcode-select", "xcodebuild", "xctest", "xdg-mime", "xdg-open", "xelatex",
    "xh", "xmessage", "xmllint", "xsel", "xxd", "xz", "yamllint", "yapf", "yarn", "yes", "yq", "yum", "z", "zcat",
    "zed", "zenity", "zgrep", "zig", "zoxide", "zsh", "zstd", "zunit", "zypper",
];

/// Sub-commands of git whose verbs the tables weigh, and those of well-known extensions. Others are programs of their own.
#[rustfmt::skip]
const GIT: &[&str] = &[
    "absorb", "add", "am", "annotate", "apply", "archive", "backfill", "bisect", "blame", "branch", "bug",
    "bugreport", "bundle", "cat-file", "check-attr", "check-ignore", "check-mailmap", "check-ref-format",
    "checkout", "checkout-index", "cherry", "cherry-pick", "citool", "clean", "cliff", "clone", "column", "commit",
    "commit-graph", "commit-tree", "config", "count-objects", "credential", "crypt", "daemon", "describe",
    "diagnose", "diff", "diff-files", "diff-index", "diff-pairs", "diff-tree", "difftool", "fast-export",
    "fast-import", "fetch", "fetch-pack", "filter-branch", "flow", "fmt-merge-msg", "for-each-ref", "for-each-repo",
    "format-patch", "fsck", "gc", "get-tar-commit-id", "gitk", "grep", "gui", "hash-object", "help", "http-backend",
    "imap-send", "index-pack", "init", "init-db", "instaweb", "interpret-trailers", "last-modified", "lfs", "log",
    "ls-files", "ls-remote", "ls-tree", "mailinfo", "mailsplit", "maintenance", "merge", "merge-base", "merge-file",
    "merge-index", "merge-tree", "mergetool", "mktag", "mktree", "multi-pack-index", "mv", "name-rev", "notes",
    "pack-objects", "pack-refs", "patch-id", "prune", "prune-packed", "pull", "push", "quiltimport", "range-diff",
    "read-tree", "rebase", "reflog", "refs", "remote", "repack", "replace", "replay", "repo", "request-pull",
    "rerere", "reset", "restore", "rev-list", "rev-parse", "revert", "review", "rm", "secret", "send-email",
    "send-pack", "shortlog", "show", "show-branch", "show-index", "show-ref", "sparse-checkout", "stage", "stash",
    "status", "stripspace", "submodule", "subtree", "svn", "switch", "symbolic-ref", "tag", "unpack-file",
    "unpack-objects", "update-index", "update-ref", "update-server-info", "var", "verify-commit", "verify-pack",
    "verify-tag", "version", "whatchanged", "worktree", "write-tree",
];

pub(super) fn is_git_command(name: &str) -> bool {
    GIT.binary_search(&name).is_ok()
}

/// What runs tests or looks for faults, by its name: its words are names of tests.
const TESTS: &[&str] = &["bench", "benches", "check", "lint", "spec", "specs", "test", "tests"];

/// What a build just made is the project's own, and `cargo run -- delete x` is not asked about either.
const BUILT: &[&str] = &["target/debug/", "target/release/"];

/// These run code, and beside it commands of their own, which delete by their words.
const FRAMEWORKS: &[&str] = &["django-admin", "drush", "flask", "manage.py", "rails", "wp"];

pub(super) fn is_known(name: &str) -> bool {
    let program = base_name(name).to_ascii_lowercase();
    let program = normal(&program);
    let tests = || program.split(['-', '_', '.']).any(|it| TESTS.contains(&it));
    KNOWN.binary_search(&program).is_ok()
        || table::is_local(program)
        || is_language(program) && !FRAMEWORKS.contains(&program)
        || tests()
        || program.starts_with("create-")
        || BUILT.iter().any(|it| name.contains(it))
}

#[cfg(test)]
mod tests {
    use super::{GIT, KNOWN};

    #[test]
    fn the_known_are_sorted() {
        assert!(KNOWN.is_sorted() && GIT.is_sorted());
    }
}
