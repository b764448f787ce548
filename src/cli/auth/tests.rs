//! `castor auth` in an empty home, with pipes.

use clap::Parser;

use super::{AuthArgs, AuthStreams, KeyCheck, run};
use castor_base::path::AbsPath;
use castor_hands::{disk, secrets::Env};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: AuthArgs,
}

struct Home {
    _dir: tempfile::TempDir,
    path: AbsPath,
    vars: Vec<(&'static str, &'static str)>,
}

impl Home {
    fn new(vars: &[(&'static str, &'static str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = disk::real_path(&AbsPath::new(dir.path()).unwrap()).unwrap();
        Self { _dir: dir, path, vars: vars.to_vec() }
    }

    /// Exit code, stdout and stderr, with `$HOME` for the folder.
    fn auth(&self, line: &str, stdin: &str) -> String {
        let args =
            Line::try_parse_from(["auth"].into_iter().chain(line.split(' '))).unwrap_or_else(|it| panic!("{it}"));
        let home = self.path.to_string();
        let env = Env::from_pairs(self.vars.iter().copied().chain([("HOME", home.as_str())]));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut streams = AuthStreams {
            stdin: Box::new(stdin.as_bytes()),
            is_terminal: false,
            out: Box::new(&mut out),
            err: Box::new(&mut err),
            check: |_, _, key| match secrecy::ExposeSecret::expose_secret(key) {
                it if it.contains("bad") => KeyCheck::Refused("API key not valid".to_owned()),
                it if it.contains("offline") => KeyCheck::Unknown("no network".to_owned()),
                _ => KeyCheck::Works,
            },
        };
        let code = run(&args.args, &env, &self.path, &mut streams).unwrap();
        drop(streams);
        let all = format!("{code} {}{}", String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap());
        assert!(!all.contains("canary"), "{all}");
        all.replace(&home, "$HOME").trim_end().to_owned()
    }
}

const NOTHING: &str = "41 gemini-api-key  not configured\ngateway         not configured\n\
                       vertex-ai       not configured\nopenai          not configured\nanthropic       not configured\n\
                       openrouter      not configured\n\nNo API key for Gemini. Run `castor auth login` (free key: https://aistudio.google.com/apikey), or start castor with `-m demo` to try it without one.";

#[test]
fn login_status_logout() {
    let home = Home::new(&[]);
    assert_eq!(home.auth("status", ""), NOTHING);
    let stored = home.auth("login --key-stdin", " canary-canary-1234\n");
    assert_eq!(
        stored,
        "0 Stored the key that ends in 1234 in $HOME/.castor/credentials.json, and it works.\nTry: castor run \"What does this folder do?\""
    );
    let status = "0 gemini-api-key  $HOME/.castor/credentials.json, the key ends in 1234 (in use)\n\
                  gateway         not configured\nvertex-ai       not configured\n\
                  openai          not configured\nanthropic       not configured\n\
                  openrouter      not configured";
    assert_eq!(home.auth("status", ""), status);
    let json = r#"0 {"active":"gemini-api-key","methods":[{"id":"gemini-api-key","configured":true,"source":"stored","place":"$HOME/.castor/credentials.json","keyEndsIn":"1234"},{"id":"gateway","configured":false,"source":"none","place":null,"keyEndsIn":null},{"id":"vertex-ai","configured":false,"source":"none","place":null,"keyEndsIn":null},{"id":"openai","configured":false,"source":"none","place":null,"keyEndsIn":null},{"id":"anthropic","configured":false,"source":"none","place":null,"keyEndsIn":null},{"id":"openrouter","configured":false,"source":"none","place":null,"keyEndsIn":null}]}"#;
    assert_eq!(home.auth("status --json", ""), json);
    assert_eq!(home.auth("logout", ""), "0 Removed the key from $HOME/.castor/credentials.json.");
    assert_eq!(home.auth("logout", ""), "0 No key was stored in $HOME/.castor/credentials.json.");
    assert_eq!(home.auth("status", ""), NOTHING);
}

#[test]
fn says_which_variable_is_in_the_way() {
    let home =
        Home::new(&[("GOOGLE_API_KEY", "canary-from-env-9876"), ("GOOGLE_GEMINI_BASE_URL", "https://gw.example")]);
    let stored = "0 Stored the key in $HOME/.castor/credentials.json, and it works.\n\
                  Note: GOOGLE_API_KEY is set in this environment, and castor uses that key.\n\
                  Try: castor run \"What does this folder do?\"";
    assert_eq!(home.auth("login --key-stdin", "canary"), stored, "nothing of a short key is shown");
    let status = "0 gemini-api-key  GOOGLE_API_KEY in the environment, the key ends in 9876\n\
                  gateway         GOOGLE_GEMINI_BASE_URL in the environment, the key ends in 9876 (in use)\n\
                  vertex-ai       GOOGLE_API_KEY in the environment, the key ends in 9876\n\
                  openai          not configured\nanthropic       not configured\n\
                  openrouter      not configured";
    assert_eq!(home.auth("status", ""), status);
    let out = "0 Removed the key from $HOME/.castor/credentials.json.\n\
               Note: GOOGLE_API_KEY is still set in this environment.";
    assert_eq!(home.auth("logout", ""), out);
}

#[test]
fn refuses_what_is_no_key() {
    let home = Home::new(&[]);
    let none = "41 castor: no key was given; get one at https://aistudio.google.com/apikey";
    assert_eq!(home.auth("login --key-stdin", " \n"), none);
    let odd = "41 castor: the key has a character in it that no key has; copy it again";
    assert_eq!(home.auth("login --key-stdin", "canary\ncanary\n"), odd);
    assert_eq!(home.auth("login", "canary"), "41 castor: stdin is no terminal; pipe the key and add --key-stdin");
    assert_eq!(home.auth("status", ""), NOTHING);
}

#[test]
fn a_key_is_checked_before_it_is_stored() {
    let home = Home::new(&[]);
    let refused = home.auth("login --key-stdin", "bad-canary-canary");
    let why = "41 castor: the provider refuses this key: API key not valid. Nothing was stored. Get a key at \
               https://aistudio.google.com/apikey";
    assert_eq!(refused, why);
    assert_eq!(home.auth("status", ""), NOTHING);
    let unsure = home.auth("login --key-stdin", "offline-canary-1234");
    assert!(unsure.contains("\nWarning: castor could not check the key: no network.\nTry: "), "{unsure}");
    let unchecked = home.auth("login --key-stdin --no-check", "bad-canary-canary-9876");
    assert!(unchecked.starts_with("0 Stored the key that ends in 9876 in $HOME/"), "{unchecked}");
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new(&[]);
    home.auth("login --key-stdin", "canary-canary-1234");
    let file = home.path.join(".castor/credentials.json");
    std::fs::set_permissions(file.as_path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let why = "41 castor: $HOME/.castor/credentials.json: others can read it; run: chmod 600 \
               '$HOME/.castor/credentials.json'";
    assert_eq!(home.auth("status", ""), why);
    assert!(home.auth("login --key-stdin", "canary-canary-1234").starts_with("0 "));
    assert!(home.auth("status", "").starts_with("0 "));
}

/// A key of a `.env` file is named by that file; a provider without a key is there when somebody named it.
#[test]
fn files_and_providers_of_the_settings() {
    let home = Home::new(&[]);
    let write = |name: &str, text: &str| disk::write_private(&home.path.join(name), text.as_bytes()).unwrap();
    write(".castor/.env", "ANTHROPIC_API_KEY=canary-canary-5678\n");
    write(
        ".castor/settings.json",
        r#"{"providers": {"near": {"baseUrl": "http://u:canary@near.test:9/v1?k=canary"}, "far": {"baseUrl": "http://far.test", "apiKeyEnv": "FAR"}}, "model": {"name": "near/m"}}"#,
    );
    let said = home.auth("status", "");
    let rows: Vec<&str> = said.lines().skip(4).collect();
    assert!(said.starts_with("0 gemini-api-key  not configured"), "{said}");
    let anthropic = "anthropic       ANTHROPIC_API_KEY in $HOME/.castor/.env, the key ends in 5678";
    let near = "near            near.test:9, without a key (in use)";
    assert_eq!(rows, [anthropic, "openrouter      not configured", near, "far             not configured"]);
    let json = home.auth("status --json", "");
    assert!(json.contains(r#""source":"file","place":"ANTHROPIC_API_KEY in $HOME/.castor/.env""#), "{json}");
    write(".castor/settings.json", "{\"model\": ");
    let said = home.auth("status", "");
    assert!(said.starts_with("41 ") && said.contains("castor: $HOME/.castor/settings.json:1:"), "{said}");
}
