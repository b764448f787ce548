//! Programs that are called otherwise: by the package that brings them, or as a module of Python.

use crate::engine::policy::shell::Word;

/// What packages bring that are not called so: `npx @changesets/cli publish`.
const PACKAGES: &[(&str, &str)] = &[
    ("@changesets/cli", "changeset"),
    ("@expo/cli", "expo"),
    ("@lerna-lite/cli", "lerna"),
    ("@mikro-orm/cli", "mikro-orm"),
    ("@railway/cli", "railway"),
    ("@vscode/vsce", "vsce"),
    ("aws-cdk", "cdk"),
    ("eas-cli", "eas"),
    ("expo-cli", "expo"),
    ("firebase-tools", "firebase"),
    ("lerna-lite", "lerna"),
    ("netlify-cli", "netlify"),
    ("sequelize-cli", "sequelize"),
    ("serverless", "sls"),
];
/// Modules that are not called as their programs.
const MODULES: &[(&str, &str)] = &[
    ("awscli", "aws"),
    ("django", "manage.py"),
    ("git_filter_repo", "git-filter-repo"),
    ("zest.releaser", "fullrelease"),
];

/// What a package brings, whatever version is asked for.
pub(super) fn by_package(name: &str) -> Option<&'static str> {
    let plain = name.char_indices().skip(1).find(|it| it.1 == '@').map_or(name, |it| name.split_at(it.0).0);
    PACKAGES.iter().find(|it| it.0 == plain).map(|it| it.1)
}

/// `python -m poetry publish`: a program, and its words.
pub(super) fn module(args: &[Word]) -> Option<(&str, &[Word])> {
    let at = args.iter().position(|it| it.text == "-m")?;
    let name = args.get(at + 1)?.literal()?;
    let program = MODULES.iter().find(|it| it.0 == name).map_or(name, |it| it.1);
    Some((program, args.get(at + 2..).unwrap_or_default()))
}
