//! Commands that print what is secret from where it is kept: keyrings, managers of passwords, clients of clouds.

use super::shell::{Command, base_name};

struct Row {
    program: &'static str,
    /// Words that follow each other, options aside.
    sub: &'static [&'static str],
    /// One of these begins an option, if there are any.
    with: &'static [&'static str],
    name: &'static str,
}

const fn row(program: &'static str, sub: &'static [&'static str], name: &'static str) -> Row {
    Row { program, sub, with: &[], name }
}

const SHOWN: &[&str] = &["-o", "--output", "--template"];

#[rustfmt::skip]
const VAULTS: &[Row] = &[
    row("ansible-vault", &["decrypt"], "ansible-vault decrypt"),
    row("ansible-vault", &["view"], "ansible-vault view"),
    row("aws", &["configure", "export-credentials"], "aws configure export-credentials"),
    row("aws", &["configure", "get", "aws_secret_access_key"], "aws configure get"),
    row("aws", &["configure", "get", "aws_session_token"], "aws configure get"),
    row("aws", &["ecr", "get-login-password"], "aws ecr get-login-password"),
    row("aws", &["iam", "create-access-key"], "aws iam create-access-key"),
    row("aws", &["secretsmanager", "batch-get-secret-value"], "aws secretsmanager batch-get-secret-value"),
    row("aws", &["secretsmanager", "get-secret-value"], "aws secretsmanager get-secret-value"),
    Row { with: &["--with-d"], ..row("aws", &["ssm"], "aws ssm --with-decryption") },
    row("az", &["account", "get-access-token"], "az account get-access-token"),
    row("az", &["keyvault", "secret", "download"], "az keyvault secret download"),
    row("az", &["keyvault", "secret", "show"], "az keyvault secret show"),
    row("bw", &["export"], "bw export"),
    row("bw", &["get"], "bw get"),
    row("chamber", &["export"], "chamber export"),
    row("chamber", &["read"], "chamber read"),
    row("doppler", &["secrets"], "doppler secrets"),
    row("fly", &["auth", "token"], "fly auth token"),
    row("flyctl", &["auth", "token"], "flyctl auth token"),
    row("gcloud", &["auth", "application-default", "print-access-token"], "gcloud auth application-default print-access-token"),
    row("gcloud", &["auth", "print-access-token"], "gcloud auth print-access-token"),
    row("gcloud", &["auth", "print-identity-token"], "gcloud auth print-identity-token"),
    row("gcloud", &["secrets", "versions", "access"], "gcloud secrets versions access"),
    row("gh", &["auth", "token"], "gh auth token"),
    Row { with: &["-t", "--show-t"], ..row("gh", &["auth", "status"], "gh auth status --show-token") },
    row("git", &["credential", "fill"], "git credential fill"),
    Row { with: &["-t", "--show-t"], ..row("glab", &["auth", "status"], "glab auth status --show-token") },
    row("gopass", &["show"], "gopass show"),
    Row { with: &["--export-secret"], ..row("gpg", &[], "gpg --export-secret-keys") },
    Row { with: &["--export-secret"], ..row("gpg2", &[], "gpg2 --export-secret-keys") },
    row("heroku", &["auth:token"], "heroku auth:token"),
    row("heroku", &["config"], "heroku config"),
    row("heroku", &["config:get"], "heroku config:get"),
    row("infisical", &["export"], "infisical export"),
    row("infisical", &["secrets"], "infisical secrets"),
    row("keyring", &["get"], "keyring get"),
    Row { with: &["--raw"], ..row("kubectl", &["config", "view"], "kubectl config view --raw") },
    Row { with: SHOWN, ..row("kubectl", &["get", "secret"], "kubectl get secret") },
    Row { with: SHOWN, ..row("kubectl", &["get", "secrets"], "kubectl get secrets") },
    row("lpass", &["show"], "lpass show"),
    row("netlify", &["env:get"], "netlify env:get"),
    Row { with: SHOWN, ..row("oc", &["get", "secret"], "oc get secret") },
    Row { with: SHOWN, ..row("oc", &["get", "secrets"], "oc get secrets") },
    row("op", &["item", "get"], "op item get"),
    row("op", &["read"], "op read"),
    row("pass", &["show"], "pass show"),
    row("secret-tool", &["lookup"], "secret-tool lookup"),
    row("security", &["dump-keychain"], "security dump-keychain"),
    Row { with: &["-w", "-g"], ..row("security", &["find-generic-password"], "security find-generic-password") },
    Row { with: &["-w", "-g"], ..row("security", &["find-internet-password"], "security find-internet-password") },
    row("sops", &["decrypt"], "sops decrypt"),
    Row { with: &["-d", "--decrypt"], ..row("sops", &[], "sops --decrypt") },
    row("vault", &["kv", "get"], "vault kv get"),
    row("vault", &["read"], "vault read"),
    row("vercel", &["env", "pull"], "vercel env pull"),
];

/// What the command is called, if it is one of these.
pub(super) fn prints(command: &Command) -> Option<&'static str> {
    let name = base_name(command.name()?);
    let options = || command.args().iter().map(|it| it.text.as_str()).filter(|it| it.starts_with('-'));
    let mut rows = VAULTS.iter().filter(|it| it.program == name).peekable();
    rows.peek()?;
    let operands: Vec<&str> =
        command.args().iter().map(|it| it.text.as_str()).filter(|it| !it.starts_with('-')).collect();
    // `secret/x` is a secret, too.
    let is = |it: &str, want: &str| it.strip_prefix(want).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let follows = |sub: &[&str]| {
        let fits = |at: &[&str]| at.iter().zip(sub).all(|(it, want)| is(it, want));
        sub.is_empty() || operands.windows(sub.len()).any(fits)
    };
    let said = |with: &[&str]| with.is_empty() || options().any(|it| with.iter().any(|start| it.starts_with(start)));
    rows.find(|it| follows(it.sub) && said(it.with)).map(|it| it.name)
}
