//! Programs that obey files of the folder they run in, without a word that names one: `make check`, `npm run check`,
//! `node hooks`, `python3 -m tools.check`.

/// What runs scripts in JavaScript.
const NODES: &[&str] = &["node", "nodejs", "bun", "bunx", "tsx", "ts-node"];
/// What runs scripts that import each other by dots.
const PYTHONS: &[&str] = &[
    "python",
    "pypy",
    "uv",
    "uvx",
    "poetry",
    "pdm",
    "hatch",
    "pipenv",
    "uvicorn",
    "gunicorn",
    "hypercorn",
    "flask",
    "celery",
    "fastmcp",
    "mcp",
    "pytest",
];
/// Variables that name folders where programs and modules are looked for.
pub const SEARCH: &[&str] = &["PATH", "PYTHONPATH", "NODE_PATH", "RUBYLIB", "PERL5LIB"];

const NPM: &[&str] = &[
    "package.json",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    "pnpm-workspace.yaml",
    "bunfig.toml",
];
const ESLINT: &[&str] = &[
    "eslint.config.js",
    "eslint.config.mjs",
    "eslint.config.cjs",
    "eslint.config.ts",
    ".eslintrc.js",
    ".eslintrc.cjs",
    ".eslintrc.json",
    ".eslintrc.yml",
    ".eslintrc.yaml",
    ".eslintrc",
];
const PRETTIER: &[&str] = &[
    ".prettierrc",
    ".prettierrc.json",
    ".prettierrc.yml",
    ".prettierrc.yaml",
    ".prettierrc.js",
    ".prettierrc.mjs",
    ".prettierrc.cjs",
    ".prettierrc.ts",
    ".prettierrc.toml",
    "prettier.config.js",
    "prettier.config.mjs",
    "prettier.config.cjs",
    "prettier.config.ts",
];
const VITE: &[&str] = &[
    "vite.config.js",
    "vite.config.mjs",
    "vite.config.ts",
    "vite.config.mts",
    "vitest.config.js",
    "vitest.config.mjs",
    "vitest.config.ts",
    "vitest.config.mts",
    "vitest.workspace.ts",
];
const GRADLE: &[&str] = &[
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "gradle.properties",
    "init.gradle",
    "gradle/wrapper/gradle-wrapper.properties",
];
const MAVEN: &[&str] = &[
    "pom.xml",
    ".mvn/extensions.xml",
    ".mvn/jvm.config",
    ".mvn/maven.config",
    ".mvn/wrapper/maven-wrapper.properties",
];
const PYTHON_PROJECT: &[&str] = &["pyproject.toml", "uv.toml", "setup.py", "setup.cfg", "hatch.toml", "Pipfile"];

/// The names of programs, and the files that they obey: in the folder, and in those above it.
const LAUNCHERS: &[(&[&str], &[&str])] = &[
    (&["make", "gmake", "bmake"], &["GNUmakefile", "makefile", "Makefile", "BSDmakefile"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["task", "go-task"], &["Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml", "Taskfile.dist.yml"]),
    (&["npm", "npx", "pnpm", "pnpx", "yarn", "yarnpkg", "bun", "bunx", "corepack", "lerna", "wireit"], NPM),
    (&["nx", "turbo"], &["nx.json", "turbo.json", "package.json"]),
    (&["deno"], &["deno.json", "deno.jsonc", "package.json"]),
    (&["tsx", "ts-node"], &["tsconfig.json"]),
    (&["eslint"], ESLINT),
    (&["prettier"], PRETTIER),
    (&["vite", "vitest"], VITE),
    (&["jest"], &["jest.config.js", "jest.config.mjs", "jest.config.cjs", "jest.config.ts", "package.json"]),
    (&["stylelint"], &["stylelint.config.js", "stylelint.config.mjs", "stylelint.config.cjs", ".stylelintrc.js"]),
    (&["webpack", "rollup"], &["webpack.config.js", "webpack.config.ts", "rollup.config.js", "rollup.config.mjs"]),
    (&["gulp", "grunt", "jake"], &["gulpfile.js", "gulpfile.mjs", "Gulpfile.js", "Gruntfile.js", "Jakefile.js"]),
    (&["lint-staged"], &["package.json", ".lintstagedrc", ".lintstagedrc.json", "lint-staged.config.js"]),
    (&["husky", "lefthook"], &["lefthook.yml", "lefthook.yaml", ".lefthook.yml", "lefthook.toml", "package.json"]),
    (&["pre-commit", "prek"], &[".pre-commit-config.yaml"]),
    (&["uv", "uvx", "poetry", "pdm", "hatch", "pipenv", "pip", "pipx"], PYTHON_PROJECT),
    (&["pytest"], &["conftest.py", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"]),
    (&["tox", "nox"], &["tox.ini", "noxfile.py", "pyproject.toml", "setup.cfg"]),
    (&["invoke", "inv", "fab", "scons"], &["tasks.py", "tasks/__init__.py", "fabfile.py", "invoke.yaml", "SConstruct"]),
    (&["mypy", "pylint", "flake8"], &["mypy.ini", ".mypy.ini", ".pylintrc", "pylintrc", ".flake8", "setup.cfg"]),
    (&["rake"], &["Rakefile", "rakefile", "Rakefile.rb"]),
    (&["bundle", "bundler"], &["Gemfile", ".bundle/config"]),
    (&["composer"], &["composer.json"]),
    (
        &["cargo", "rustc", "rustup"],
        &[".cargo/config.toml", ".cargo/config", "rust-toolchain.toml", "rust-toolchain", "build.rs"],
    ),
    (&["go"], &["go.mod", "go.work", "main.go"]),
    (&["gradle", "gradlew"], GRADLE),
    (&["mvn", "mvnw", "mvnd"], MAVEN),
    (&["ant", "sbt", "lein", "clojure"], &["build.xml", "build.sbt", "project.clj", "deps.edn"]),
    (&["bazel", "bazelisk"], &["MODULE.bazel", "WORKSPACE", "BUILD", "BUILD.bazel", ".bazelrc", "tools/bazel"]),
    (&["cmake", "ctest", "ninja", "meson"], &["CMakeLists.txt", "CMakePresets.json", "build.ninja", "meson.build"]),
    (&["swift", "zig", "mix", "rebar"], &["Package.swift", "build.zig", "mix.exs", "rebar.config"]),
    (&["dotnet"], &["global.json", "Directory.Build.props", "Directory.Build.targets", "nuget.config"]),
    (&["stack", "cabal", "dune"], &["stack.yaml", "cabal.project", "Setup.hs", "dune-project", "dune"]),
    (&["R", "Rscript"], &[".Rprofile", ".Renviron"]),
    (
        &["docker", "podman", "docker-compose"],
        &["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml", "Dockerfile"],
    ),
    (&["mise"], &["mise.toml", ".mise.toml", ".tool-versions", "mise.local.toml"]),
    (&["direnv", "devbox", "devenv"], &[".envrc", "devbox.json", "devenv.nix"]),
    (&["nix", "nix-shell", "nix-build"], &["flake.nix", "shell.nix", "default.nix"]),
    (&["gdb", "lldb"], &[".gdbinit", ".lldbinit"]),
];
/// What cargo makes of the workspace without running what stands in its manifest as a program or under another name.
const CARGO_KNOWN: &[&str] = &[
    "b", "bench", "build", "c", "check", "clean", "clippy", "d", "deny", "doc", "fmt", "metadata", "nextest", "t",
    "test", "tree",
];
/// Where nothing is in the folder that they would obey.
const PLAIN: &[&str] = &[
    ".",
    ":",
    "[",
    "[[",
    "afplay",
    "awk",
    "basename",
    "black",
    "biome",
    "break",
    "cat",
    "cd",
    "clang-format",
    "command",
    "continue",
    "cp",
    "curl",
    "cut",
    "date",
    "dirname",
    "echo",
    "env",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fd",
    "find",
    "fi",
    "done",
    "esac",
    "git",
    "gofmt",
    "goimports",
    "grep",
    "head",
    "isort",
    "jq",
    "local",
    "ls",
    "mkdir",
    "mktemp",
    "mv",
    "notify-send",
    "osascript",
    "paplay",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readlink",
    "realpath",
    "return",
    "rg",
    "rm",
    "ruff",
    "rustfmt",
    "say",
    "sed",
    "set",
    "shellcheck",
    "shfmt",
    "shift",
    "sleep",
    "sort",
    "source",
    "tail",
    "tee",
    "terminal-notifier",
    "test",
    "touch",
    "tr",
    "trap",
    "true",
    "tsc",
    "tty",
    "uname",
    "uniq",
    "unset",
    "wait",
    "wc",
    "wget",
    "which",
    "whoami",
    "xargs",
    "yq",
    "for",
    "case",
    "function",
    "}",
    "fi",
];

/// A program without its folder and its version.
pub fn name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or_default();
    let short = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    if short.is_empty() { name } else { short }
}

/// What `program` obeys where it is run with `words`; `None`: nobody knows.
pub fn obeys(program: &str, words: &[&str]) -> Option<Vec<&'static str>> {
    let rows = LAUNCHERS.iter().filter(|it| it.0.contains(&program));
    let mut res: Vec<&str> = rows.flat_map(|it| it.1.iter().copied()).collect();
    if program == "cargo" {
        let verb = words.iter().skip_while(|it| name(it) != "cargo").skip(1).find(|it| !it.starts_with(['-', '+']));
        if verb.is_none_or(|it| !CARGO_KNOWN.contains(it)) {
            res.push("Cargo.toml");
        }
    }
    (!res.is_empty()).then_some(res)
}

/// Whether nothing of the folder decides what it does but its words.
pub fn is_plain(program: &str) -> bool {
    PLAIN.contains(&program)
}

/// What a name may end with that its words leave out: `node hooks/check`, `go run ./tools`.
pub fn endings(program: &str) -> &'static [&'static str] {
    match program {
        it if NODES.contains(&it) => &[
            "/package.json",
            "/index.js",
            "/index.cjs",
            "/index.mjs",
            "/index.json",
            "/index.node",
            "/index.ts",
            ".js",
            ".cjs",
            ".mjs",
            ".json",
            ".node",
            ".ts",
            ".mts",
            ".cts",
            ".tsx",
            ".jsx",
        ],
        it if PYTHONS.contains(&it) => &["/__main__.py", "/__init__.py", ".py"],
        "ruby" => &[".rb"],
        "perl" => &[".pl", ".pm"],
        "lua" => &[".lua"],
        "go" => &["/main.go"],
        "cargo" => &["/Cargo.toml"],
        _ => &[],
    }
}

/// Whether its words may be modules: `-m tools.check`, `-c "import check"`, `server:app`.
pub fn imports(program: &str) -> bool {
    PYTHONS.contains(&program)
}

/// The paths, without their endings, that modules in `text` may have: those of packages on the way, too.
pub fn modules(text: &str) -> Vec<String> {
    let is_name = |it: char| it == '_' || it == '.' || it.is_alphanumeric();
    let mut res = Vec::new();
    for it in text.split(|it| !is_name(it)) {
        let parts: Vec<&str> = it.split('.').filter(|it| !it.is_empty()).collect();
        if parts.first().is_some_and(|it| !it.starts_with(|it: char| it.is_ascii_digit())) {
            res.extend((1..=parts.len()).filter_map(|len| Some(parts.get(..len)?.join("/"))));
        }
    }
    res
}

/// The file that a folder's `package.json` names to be run in its stead.
pub fn main_of(manifest: &[u8]) -> Option<String> {
    let manifest: serde_json::Value = serde_json::from_slice(manifest).ok()?;
    Some(manifest.get("main")?.as_str()?.to_owned())
}
