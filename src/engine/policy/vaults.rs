//! Commands that print what is secret from where it is kept: keyrings, managers of passwords, clients of clouds.

use super::shell::{Command, Script, Word, base_name};

struct Row {
    program: &'static str,
    /// Words that follow each other, options aside: `…` is any before the next, or one at the end; `*x` has an `x` in it;
    /// behind `^` stands the first of all, and nothing before `$`; `!x|y` is neither.
    sub: &'static [&'static str],
    /// One of these begins an option, if there are any.
    with: &'static [&'static str],
    /// None of these does.
    unless: &'static [&'static str],
    name: &'static str,
}

const fn row(program: &'static str, sub: &'static [&'static str], name: &'static str) -> Row {
    Row { program, sub, with: &[], unless: &[], name }
}

/// What `pass` and `gopass` call their own; behind any other word they show what is kept under it.
const PASS: &str = "!add|cp|copy|edit|find|generate|git|help|import|init|insert|list|ls|mv|rename|rm|remove|delete|search|\
                    audit|clone|config|create|fsck|history|mounts|new|recipients|setup|sync|templates|update|version";
const SHOWN: &[&str] = &["-o", "--output", "--template"];

#[rustfmt::skip]
const VAULTS: &[Row] = &[
    Row { with: &["-d", "--decrypt"], ..row("age", &[], "age --decrypt") },
    row("akeyless", &["get-secret-value"], "akeyless get-secret-value"),
    row("ansible-vault", &["decrypt"], "ansible-vault decrypt"),
    row("ansible-vault", &["view"], "ansible-vault view"),
    row("ansible-vault", &["edit"], "ansible-vault edit"),
    row("argocd", &["admin", "initial-password"], "argocd admin initial-password"),
    row("argocd", &["account", "generate-token"], "argocd account generate-token"),
    row("artisan", &["env:decrypt"], "artisan env:decrypt"),
    row("aws", &["configure", "export-credentials"], "aws configure export-credentials"),
    row("aws", &["configure", "get", "aws_secret_access_key"], "aws configure get"),
    row("aws", &["configure", "get", "aws_session_token"], "aws configure get"),
    row("aws", &["ecr", "get-login-password"], "aws ecr get-login-password"),
    row("aws", &["iam", "create-access-key"], "aws iam create-access-key"),
    row("aws", &["secretsmanager", "batch-get-secret-value"], "aws secretsmanager batch-get-secret-value"),
    row("aws", &["secretsmanager", "get-secret-value"], "aws secretsmanager get-secret-value"),
    Row { with: &["--with-d"], ..row("aws", &["ssm"], "aws ssm --with-decryption") },
    row("aws", &["sts", "assume-role"], "aws sts assume-role"),
    row("aws", &["sts", "assume-role-with-saml"], "aws sts assume-role-with-saml"),
    row("aws", &["sts", "assume-role-with-web-identity"], "aws sts assume-role-with-web-identity"),
    row("aws", &["sts", "get-federation-token"], "aws sts get-federation-token"),
    row("aws", &["sts", "get-session-token"], "aws sts get-session-token"),
    row("aws", &["sso", "get-role-credentials"], "aws sso get-role-credentials"),
    row("aws", &["codeartifact", "get-authorization-token"], "aws codeartifact get-authorization-token"),
    row("aws", &["ecr", "get-authorization-token"], "aws ecr get-authorization-token"),
    row("aws", &["rds", "generate-db-auth-token"], "aws rds generate-db-auth-token"),
    row("aws", &["redshift", "get-cluster-credentials"], "aws redshift get-cluster-credentials"),
    row("aws", &["ec2", "get-password-data"], "aws ec2 get-password-data"),
    row("aws", &["eks", "get-token"], "aws eks get-token"),
    row("aws", &["kms", "decrypt"], "aws kms decrypt"),
    row("aws-vault", &["export"], "aws-vault export"),
    row("az", &["account", "get-access-token"], "az account get-access-token"),
    row("az", &["keyvault", "secret", "download"], "az keyvault secret download"),
    row("az", &["keyvault", "secret", "show"], "az keyvault secret show"),
    row("az", &["acr", "credential", "show"], "az acr credential show"),
    row("az", &["ad", "app", "credential", "reset"], "az ad app credential reset"),
    row("az", &["ad", "sp", "create-for-rbac"], "az ad sp create-for-rbac"),
    row("az", &["ad", "sp", "credential", "reset"], "az ad sp credential reset"),
    row("az", &["cosmosdb", "keys", "list"], "az cosmosdb keys list"),
    row("az", &["functionapp", "keys", "list"], "az functionapp keys list"),
    row("az", &["redis", "list-keys"], "az redis list-keys"),
    row("az", &["storage", "account", "keys", "list"], "az storage account keys list"),
    row("az", &["storage", "account", "show-connection-string"], "az storage account show-connection-string"),
    row("az", &["webapp", "config", "connection-string", "list"], "az webapp config connection-string list"),
    Row { with: &["--expose-token"], ..row("az", &["acr", "login"], "az acr login --expose-token") },
    row("az", &["functionapp", "config", "appsettings", "list"], "az functionapp config appsettings list"),
    row("az", &["webapp", "config", "appsettings", "list"], "az webapp config appsettings list"),
    row("az", &["webapp", "deployment", "list-publishing-credentials"], "az webapp deployment list-publishing-credentials"),
    row("az", &["webapp", "deployment", "list-publishing-profiles"], "az webapp deployment list-publishing-profiles"),
    row("berglas", &["access"], "berglas access"),
    row("blackbox_cat", &[], "blackbox_cat"),
    row("blackbox_view", &[], "blackbox_view"),
    row("bw", &["export"], "bw export"),
    row("bw", &["get"], "bw get"),
    row("bw", &["list", "items"], "bw list items"),
    row("bw", &["unlock"], "bw unlock"),
    row("chamber", &["export"], "chamber export"),
    row("chamber", &["read"], "chamber read"),
    row("conjur", &["variable", "get"], "conjur variable get"),
    Row { with: &["--reveal"], ..row("console", &["secrets:list"], "console secrets:list --reveal") },
    row("dcli", &["password"], "dcli password"),
    row("docker", &["swarm", "join-token"], "docker swarm join-token"),
    row("docker-credential-desktop", &["get"], "docker-credential-desktop get"),
    row("docker-credential-osxkeychain", &["get"], "docker-credential-osxkeychain get"),
    row("docker-credential-pass", &["get"], "docker-credential-pass get"),
    row("docker-credential-secretservice", &["get"], "docker-credential-secretservice get"),
    row("doctl", &["auth", "token"], "doctl auth token"),
    row("doctl", &["databases", "connection"], "doctl databases connection"),
    Row { unless: &["--only-names"], ..row("doppler", &["secrets"], "doppler secrets") },
    row("doppler", &["configure", "get", "token"], "doppler configure get token"),
    row("dotenv", &["^", "get"], "dotenv get"),
    row("dotenv", &["^", "list"], "dotenv list"),
    row("dotenv", &["^", "run", "env"], "dotenv run env"),
    row("dotenv", &["^", "run", "printenv"], "dotenv run printenv"),
    row("dotenvx", &["decrypt"], "dotenvx decrypt"),
    row("dotenvx", &["get"], "dotenvx get"),
    row("dotenvx", &["run", "env"], "dotenvx run env"),
    row("dotenvx", &["run", "printenv"], "dotenvx run printenv"),
    row("eas", &["env:get"], "eas env:get"),
    row("eas", &["env:pull"], "eas env:pull"),
    row("eyaml", &["decrypt"], "eyaml decrypt"),
    row("firebase", &["functions:config:get"], "firebase functions:config:get"),
    row("firebase", &["functions:secrets:access"], "firebase functions:secrets:access"),
    row("firebase", &["login:ci"], "firebase login:ci"),
    row("fly", &["auth", "token"], "fly auth token"),
    row("fly", &["tokens", "create"], "fly tokens create"),
    row("flyctl", &["auth", "token"], "flyctl auth token"),
    row("flyctl", &["tokens", "create"], "flyctl tokens create"),
    row("gcloud", &["auth", "application-default", "print-access-token"], "gcloud auth application-default print-access-token"),
    row("gcloud", &["auth", "print-access-token"], "gcloud auth print-access-token"),
    row("gcloud", &["auth", "print-identity-token"], "gcloud auth print-identity-token"),
    row("gcloud", &["secrets", "versions", "access"], "gcloud secrets versions access"),
    row("gcloud", &["config", "config-helper"], "gcloud config config-helper"),
    row("gcloud", &["sql", "generate-login-token"], "gcloud sql generate-login-token"),
    row("gcloud", &["kms", "decrypt"], "gcloud kms decrypt"),
    row("gcloud", &["compute", "reset-windows-password"], "gcloud compute reset-windows-password"),
    row("gh", &["auth", "token"], "gh auth token"),
    Row { with: &["-t", "--show-t"], ..row("gh", &["auth", "status"], "gh auth status --show-token") },
    row("gh", &["config", "get", "*token"], "gh config get oauth_token"),
    row("git", &["credential", "fill"], "git credential fill"),
    row("git", &["credential-cache", "get"], "git credential-cache get"),
    row("git", &["credential-libsecret", "get"], "git credential-libsecret get"),
    row("git", &["credential-manager", "get"], "git credential-manager get"),
    row("git", &["credential-osxkeychain", "get"], "git credential-osxkeychain get"),
    row("git", &["credential-store", "get"], "git credential-store get"),
    row("git", &["credential-wincred", "get"], "git credential-wincred get"),
    row("git", &["secret", "cat"], "git secret cat"),
    row("git", &["secret", "reveal"], "git secret reveal"),
    row("git", &["crypt", "export-key"], "git crypt export-key"),
    Row { with: &["--get"], ..row("git", &["config", "*xtra"], "git config --get http.extraheader") },
    row("git", &["config", "get", "*xtra"], "git config get http.extraheader"),
    row("git-crypt", &["export-key"], "git-crypt export-key"),
    Row { with: &["-t", "--show-t"], ..row("glab", &["auth", "status"], "glab auth status --show-token") },
    row("glab", &["config", "get", "token"], "glab config get token"),
    row("gopass", &["show"], "gopass show"),
    row("gopass", &["cat"], "gopass cat"),
    row("gopass", &["^", PASS], "gopass"),
    Row { with: &["--export-secret"], ..row("gpg", &[], "gpg --export-secret-keys") },
    Row { with: &["-d", "-qd", "--decr"], ..row("gpg", &[], "gpg --decrypt") },
    Row { with: &["--export-secret"], ..row("gpg2", &[], "gpg2 --export-secret-keys") },
    Row { with: &["-d", "-qd", "--decr"], ..row("gpg2", &[], "gpg2 --decrypt") },
    row("helm", &["secrets", "decrypt"], "helm secrets decrypt"),
    row("helm", &["secrets", "view"], "helm secrets view"),
    row("heroku", &["auth:token"], "heroku auth:token"),
    row("heroku", &["config"], "heroku config"),
    row("heroku", &["config:get"], "heroku config:get"),
    row("heroku", &["authorizations:create"], "heroku authorizations:create"),
    row("heroku", &["pg:credentials:url"], "heroku pg:credentials:url"),
    row("infisical", &["export"], "infisical export"),
    row("infisical", &["secrets"], "infisical secrets"),
    row("jf", &["config", "export"], "jf config export"),
    row("keepassxc-cli", &["export"], "keepassxc-cli export"),
    row("keepassxc-cli", &["show"], "keepassxc-cli show"),
    row("keyring", &["get"], "keyring get"),
    row("kubeadm", &["token", "create"], "kubeadm token create"),
    Row { with: &["--raw"], ..row("kubectl", &["config", "view"], "kubectl config view --raw") },
    Row { with: SHOWN, ..row("kubectl", &["get", "…", "secret"], "kubectl get secret") },
    Row { with: SHOWN, ..row("kubectl", &["get", "…", "secrets"], "kubectl get secrets") },
    row("kubectl", &["create", "token"], "kubectl create token"),
    row("kubectl", &["view-secret"], "kubectl view-secret"),
    Row { unless: &["-l", "-w"], ..row("kwallet-query", &["…"], "kwallet-query") },
    row("lpass", &["show"], "lpass show"),
    row("lpass", &["export"], "lpass export"),
    Row { with: &["-s", "--show"], ..row("my_print_defaults", &[], "my_print_defaults -s") },
    row("neon", &["connection-string"], "neon connection-string"),
    row("neonctl", &["connection-string"], "neonctl connection-string"),
    row("netlify", &["env:get"], "netlify env:get"),
    Row { with: &["--plain", "--json"], ..row("netlify", &["env:list"], "netlify env:list --plain") },
    row("netsh", &["key=clear"], "netsh wlan show profile key=clear"),
    Row { with: &["-s", "--show-s"], ..row("nmcli", &[], "nmcli --show-secrets") },
    Row { with: &["-p", "--print"], ..row("node", &["*dotenv"], "node -p of dotenv") },
    row("npm", &["config", "get", "*_auth"], "npm config get _auth"),
    row("npm", &["get", "*_auth"], "npm get _auth"),
    Row { with: SHOWN, ..row("oc", &["get", "…", "secret"], "oc get secret") },
    Row { with: SHOWN, ..row("oc", &["get", "…", "secrets"], "oc get secrets") },
    row("op", &["item", "get"], "op item get"),
    row("op", &["read"], "op read"),
    row("op", &["document", "get"], "op document get"),
    row("op", &["inject"], "op inject"),
    Row { with: &["-in"], unless: &["-noout", "-out", "-pub"], ..row("openssl", &["dsa"], "openssl dsa -in") },
    Row { with: &["-text"], unless: &["-out", "-pubin", "-text_pub"], ..row("openssl", &["dsa"], "openssl dsa -text") },
    Row { with: &["-in"], unless: &["-noout", "-out", "-pub"], ..row("openssl", &["ec"], "openssl ec -in") },
    Row { with: &["-text"], unless: &["-out", "-pubin", "-text_pub"], ..row("openssl", &["ec"], "openssl ec -text") },
    Row { with: &["-in"], unless: &["-noout", "-out", "-pub"], ..row("openssl", &["pkey"], "openssl pkey -in") },
    Row { with: &["-text"], unless: &["-out", "-pubin", "-text_pub"], ..row("openssl", &["pkey"], "openssl pkey -text") },
    Row { with: &["-in"], unless: &["-noout", "-out", "-pub"], ..row("openssl", &["rsa"], "openssl rsa -in") },
    Row { with: &["-text"], unless: &["-out", "-pubin", "-text_pub"], ..row("openssl", &["rsa"], "openssl rsa -text") },
    Row { with: &["-in"], unless: &["-out"], ..row("openssl", &["pkcs8"], "openssl pkcs8 -in") },
    Row { with: &["-nodes", "-noenc"], unless: &["-export", "-nokeys", "-out"], ..row("openssl", &["pkcs12"], "openssl pkcs12 -nodes") },
    row("pass", &["show"], "pass show"),
    row("pass", &["^", PASS], "pass"),
    row("passage", &["show"], "passage show"),
    row("php", &["artisan", "env:decrypt"], "php artisan env:decrypt"),
    Row { with: &["--reveal"], ..row("php", &["secrets:list"], "php bin/console secrets:list --reveal") },
    row("pnpm", &["config", "get", "*_auth"], "pnpm config get _auth"),
    row("pnpm", &["get", "*_auth"], "pnpm get _auth"),
    Row { with: &["--show-secrets"], ..row("pulumi", &[], "pulumi --show-secrets") },
    row("pulumi", &["config", "get", "*assw"], "pulumi config get"),
    row("pulumi", &["config", "get", "*ecret"], "pulumi config get"),
    row("pulumi", &["config", "get", "*oken"], "pulumi config get"),
    row("pulumi", &["config", "get", "*ey"], "pulumi config get"),
    row("python", &["^", "dotenv", "get"], "python -m dotenv get"),
    row("python", &["^", "dotenv", "list"], "python -m dotenv list"),
    row("python", &["*print(dotenv_values("], "python of dotenv_values"),
    row("python3", &["^", "dotenv", "get"], "python3 -m dotenv get"),
    row("python3", &["^", "dotenv", "list"], "python3 -m dotenv list"),
    row("python3", &["*print(dotenv_values("], "python3 of dotenv_values"),
    Row { with: &["-d", "--decrypt"], ..row("rage", &[], "rage --decrypt") },
    row("rails", &["credentials:show"], "rails credentials:show"),
    row("rails", &["encrypted:show"], "rails encrypted:show"),
    row("rails", &["secrets:show"], "rails secrets:show"),
    row("rails", &["credentials:edit"], "rails credentials:edit"),
    row("rails", &["encrypted:edit"], "rails encrypted:edit"),
    Row { unless: &["--set"], ..row("railway", &["variables"], "railway variables") },
    row("railway", &["variable", "list"], "railway variable list"),
    row("rbw", &["get"], "rbw get"),
    row("rclone", &["config", "dump"], "rclone config dump"),
    row("rclone", &["config", "show"], "rclone config show"),
    row("sail", &["env:decrypt"], "sail env:decrypt"),
    row("scw", &["config", "get", "secret-key"], "scw config get secret-key"),
    row("secret-tool", &["lookup"], "secret-tool lookup"),
    row("secret-tool", &["search"], "secret-tool search"),
    row("security", &["dump-keychain"], "security dump-keychain"),
    Row { with: &["-w", "-g"], ..row("security", &["find-generic-password"], "security find-generic-password") },
    Row { with: &["-w", "-g"], ..row("security", &["find-internet-password"], "security find-internet-password") },
    row("security", &["export"], "security export"),
    row("sops", &["decrypt"], "sops decrypt"),
    Row { with: &["-d", "--decrypt"], ..row("sops", &[], "sops --decrypt") },
    Row { with: &["--list"], ..row("stripe", &["config"], "stripe config --list") },
    Row { with: &["--reveal"], ..row("symfony", &["secrets:list"], "symfony console secrets:list --reveal") },
    row("teller", &["env"], "teller env"),
    row("teller", &["export"], "teller export"),
    row("teller", &["show"], "teller show"),
    row("terraform", &["output", "…"], "terraform output"),
    Row { with: &["-raw", "--raw", "-json", "--json"], ..row("terraform", &["output"], "terraform output") },
    Row { with: &["-json", "--json"], ..row("terraform", &["show"], "terraform show -json") },
    row("terraform", &["state", "pull"], "terraform state pull"),
    row("terragrunt", &["output", "…"], "terragrunt output"),
    Row { with: &["-raw", "--raw", "-json", "--json"], ..row("terragrunt", &["output"], "terragrunt output") },
    Row { with: &["-json", "--json"], ..row("terragrunt", &["show"], "terragrunt show -json") },
    row("terragrunt", &["state", "pull"], "terragrunt state pull"),
    row("tofu", &["output", "…"], "tofu output"),
    Row { with: &["-raw", "--raw", "-json", "--json"], ..row("tofu", &["output"], "tofu output") },
    Row { with: &["-json", "--json"], ..row("tofu", &["show"], "tofu show -json") },
    row("tofu", &["state", "pull"], "tofu state pull"),
    row("vault", &["kv", "get"], "vault kv get"),
    row("vault", &["read"], "vault read"),
    row("vault", &["print", "token"], "vault print token"),
    row("vault", &["token", "create"], "vault token create"),
    row("vault", &["unwrap"], "vault unwrap"),
    row("vercel", &["env", "pull"], "vercel env pull"),
    row("wg", &["showconf"], "wg showconf"),
    row("wg", &["show", "…", "private-key"], "wg show private-key"),
    row("wp", &["config", "get", "*KEY"], "wp config get"),
    row("wp", &["config", "get", "*PASS"], "wp config get"),
    row("wp", &["config", "get", "*SALT"], "wp config get"),
    row("wp", &["config", "get", "$"], "wp config get"),
    row("wp", &["config", "list"], "wp config list"),
    row("yarn", &["config", "get", "*uth"], "yarn config get npmAuthToken"),
];

/// Programs that hand their words on to a shell, here or elsewhere.
const HANDS_ON: &[&str] = &[
    "adb",
    "eb",
    "fly",
    "flyctl",
    "gcloud",
    "limactl",
    "multipass",
    "rsh",
    "runuser",
    "screen",
    "script",
    "sg",
    "ssh",
    "su",
    "tmux",
    "vagrant",
    "watch",
];

/// More words are not looked at one by one.
const MAX_WORDS: usize = 100;

/// What the command is called, if it is one of these, or hands one on.
pub(super) fn prints(command: &Command) -> Option<&'static str> {
    let name = base_name(command.name()?);
    let hands_on = HANDS_ON.binary_search(&name).is_ok();
    own(name, command.args()).or_else(|| hands_on.then(|| handed(command.args())).flatten())
}

/// `ssh h 'vault read x'`, `ssh h vault read x`
fn handed(args: &[Word]) -> Option<&'static str> {
    let in_line = |line: &str| {
        let line = line.strip_prefix("--").and_then(|it| it.split_once('=')).map_or(line, |it| it.1);
        let script = Script::parse(line).ok()?;
        script.commands.iter().find_map(|it| own(base_name(it.name()?), it.args()))
    };
    let mut lines = args.iter().filter_map(Word::literal).filter(|it| it.contains(' '));
    let mut starts = (0..args.len().min(MAX_WORDS)).filter_map(|at| args.get(at..)?.split_first());
    let by_words = || starts.find_map(|(name, rest)| own(base_name(name.literal()?), rest));
    lines.find_map(in_line).or_else(by_words)
}

fn own(name: &str, args: &[Word]) -> Option<&'static str> {
    let rows = rows_of(name);
    if rows.is_empty() {
        return None;
    }
    let texts = || args.iter().map(|it| it.text.as_str());
    let begins = |starts: &[&str]| {
        texts().filter(|it| it.starts_with('-')).any(|it| starts.iter().any(|start| it.starts_with(start)))
    };
    let operands: Vec<&str> = texts().filter(|it| !it.starts_with('-')).collect();
    let has = |sub: &[&str]| match sub {
        [] => true,
        ["^", first @ ..] => follows(&operands, first),
        _ => (0..operands.len()).any(|at| operands.get(at..).is_some_and(|it| follows(it, sub))),
    };
    let fits = |it: &&Row| has(it.sub) && (it.with.is_empty() || begins(it.with)) && !begins(it.unless);
    rows.iter().find(fits).map(|it| it.name)
}

/// Those of a program, found without going through all: each command is looked up.
fn rows_of(program: &str) -> &'static [Row] {
    let from = VAULTS.partition_point(|it| it.program < program);
    let rows = VAULTS.get(from..).unwrap_or_default();
    rows.get(..rows.partition_point(|it| it.program == program)).unwrap_or_default()
}

/// Whether the words begin so.
fn follows(words: &[&str], sub: &[&str]) -> bool {
    let Some((want, more)) = sub.split_first() else { return true };
    if *want == "$" {
        return words.is_empty();
    }
    let Some((first, rest)) = words.split_first() else { return false };
    match *want {
        "…" => (0..words.len()).any(|at| words.get(at..).is_some_and(|it| follows(it, more))),
        _ => is(first, want) && follows(rest, more),
    }
}

/// `secret/x`, `pods,secret` and `secret.v1.` are secrets, too.
fn is(word: &str, want: &str) -> bool {
    if let Some(part) = want.strip_prefix('*') {
        return word.contains(part);
    }
    if let Some(others) = want.strip_prefix('!') {
        return !others.split('|').any(|it| it == word);
    }
    let ends = |it: &str| it.is_empty() || it.starts_with(['/', '.']);
    word.split(',').any(|it| it.strip_prefix(want).is_some_and(ends))
}

#[cfg(test)]
mod tests {
    use super::{HANDS_ON, VAULTS};

    #[test]
    fn the_tables_are_sorted() {
        assert!(VAULTS.is_sorted_by_key(|it| it.program));
        assert!(HANDS_ON.is_sorted());
    }
}
