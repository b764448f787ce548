//! Secret values of a file: which of its values are redacted.

use std::collections::BTreeSet;

use serde_json::Value;

use castor_base::dotenv;

/// What the name of a secret says, in capitals.
const NAMES: &[&str] = &["KEY", "TOKEN", "SECRET", "PASS", "PWD", "CREDENTIAL", "AUTH", "PRIVATE", "DSN"];
/// What in armour is no secret.
const PUBLIC: &[&str] = &["CERTIFICATE", "CRL", "PARAMETERS", "PUBLIC", "SIGNATURE"];
/// Shorter values are words that stand everywhere.
const MIN: usize = 8;
/// From this length on a value counts that mixes letters and digits, whatever its name says.
const MIN_MIXED: usize = 16;
/// As many characters in a row make it no word with a number, as `python3-slim` is.
const MIN_RUN: usize = 4;
/// How deep JSON is looked into.
const MAX_DEPTH: usize = 12;

/// The secrets in a file with this text.
pub fn secrets(text: &str) -> BTreeSet<String> {
    let mut found = FoundValue::default();
    match serde_json::from_str::<Value>(text) {
        Ok(it @ (Value::Object(_) | Value::Array(_))) => found.json("", &it, MAX_DEPTH),
        _ => {
            dotenv::parse(text).iter().for_each(|(name, value)| found.value(name, value));
            found.lines(text);
        }
    }
    found.0
}

/// Every value of a file that is published in the place of a secret one.
pub fn template_values(text: &str) -> impl Iterator<Item = String> {
    dotenv::parse(text).into_iter().map(|it| it.1)
}

#[derive(Default)]
struct FoundValue(BTreeSet<String>);

impl FoundValue {
    fn json(&mut self, name: &str, value: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match value {
            Value::String(text) => self.value(name, text),
            Value::Array(items) => items.iter().for_each(|it| self.json(name, it, depth)),
            Value::Object(members) => members.iter().for_each(|(name, it)| self.json(name, it, depth)),
            _ => (),
        }
    }

    /// Keys in their armour, and lines that name something. Certificates are public.
    fn lines(&mut self, text: &str) {
        let (mut is_private, mut list) = (None, "");
        for line in text.lines().map(str::trim) {
            match line.split_once("-----BEGIN ") {
                Some((_, kind)) => is_private = Some(!PUBLIC.iter().any(|it| kind.contains(it))),
                None if line.contains("-----END ") => is_private = None,
                None if is_private == Some(true) => self.long(line),
                None if is_private.is_none() => {
                    self.entry(list, line);
                    list = if line.starts_with("- ") { list } else { line.strip_suffix(':').unwrap_or_default() };
                }
                None => (),
            }
        }
    }

    /// A line, or an item of a list with that name.
    fn entry(&mut self, list: &str, line: &str) {
        match line.strip_prefix("- ") {
            None => self.line(line),
            Some(it) if it.contains(": ") || it.trim_end_matches('=').contains('=') => self.line(it),
            Some(it) => self.value(list, plain(it)),
        }
    }

    fn long(&mut self, line: &str) {
        if line.chars().count() >= MIN_MIXED {
            self.0.insert(line.to_owned());
        }
    }

    /// `name = "value"`, `name: value`, `password value`, `define('KEY', 'value')`, or one word alone.
    fn line(&mut self, line: &str) {
        if line.starts_with(['#', ';']) {
            return;
        }
        let equals = line.split_once('=').filter(|(name, _)| !name.contains(": "));
        if let Some((name, value)) = equals.or_else(|| line.split_once(": ")) {
            self.value(name, plain(value));
            return;
        }
        let is_end = |it: char| it.is_whitespace() || "'\",();".contains(it);
        let words: Vec<&str> = line.split(is_end).filter(|it| !it.is_empty()).collect();
        if let [word] = words.as_slice() {
            self.value("", word);
        }
        let pairs = words.windows(2).filter_map(|it| Some((*it.first()?, *it.last()?)));
        pairs.filter(|it| is_secret_name(it.0)).for_each(|(name, value)| self.value(name, value));
    }

    fn value(&mut self, name: &str, value: &str) {
        let value = value.trim();
        if value.contains('\n') {
            let is_plain = is_secret_name(name) && !value.contains("-----BEGIN ");
            return if is_plain { value.lines().for_each(|it| self.value(name, it)) } else { self.lines(value) };
        }
        if let Some((_, rest)) = value.split_once("://").filter(|it| is_scheme(it.0)) {
            return self.url(rest);
        }
        // `Server=x;Password=y` says itself what of it is one.
        let is_named = |it: &str| it.split_once('=').is_some_and(|it| it.0.chars().all(char::is_alphabetic));
        let parts = value.trim_end_matches(';').split(';');
        if value.contains(';') && parts.clone().all(is_named) {
            return parts.for_each(|it| self.line(it));
        }
        let is_long = value.chars().count() >= MIN;
        if is_long && !is_public(value) && (is_secret_name(name) || is_mixed(value)) {
            self.0.insert(value.to_owned());
        }
    }

    /// What stands in front of the host, and parameters that say that they are secrets.
    fn url(&mut self, rest: &str) {
        let (authority, more) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if let Some((user, _)) = authority.rsplit_once('@') {
            self.user(user);
        }
        let parameters = more.split(['?', '#']).skip(1).flat_map(|it| it.split('&'));
        parameters.filter_map(|it| it.split_once('=')).for_each(|(name, it)| self.value(name, it));
    }

    fn user(&mut self, user: &str) {
        match user.split_once(':') {
            Some((name, password)) => {
                // A short one is known by what is behind it: alone, it may stand everywhere.
                let whole = if user.chars().count() < MIN { format!("{user}@") } else { user.to_owned() };
                self.0.insert(whole);
                if password.chars().count() >= MIN && password != name {
                    self.0.insert(password.to_owned());
                }
            }
            None if is_mixed(user) => _ = self.0.insert(user.to_owned()),
            None => (),
        }
    }
}

/// Without quotes, and without what stands behind it.
fn plain(value: &str) -> &str {
    let value = value.trim().trim_end_matches([',', ';']);
    let quote = value.chars().next().filter(|it| "'\"".contains(*it));
    match quote.and_then(|it| value.get(1..)?.split_once(it)) {
        Some((inside, _)) => inside,
        // Quotes that end in another line.
        None => value.strip_prefix(['\'', '"']).unwrap_or(value).split(" #").next().unwrap_or_default().trim(),
    }
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_ascii_alphanumeric() || it == '+' || it == '-')
}

/// Tells whether a name says that its value is a secret. The name `author` does not.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace("AUTHOR", "");
    NAMES.iter().any(|it| name.contains(it))
}

fn is_mixed(value: &str) -> bool {
    let has = |text: &str, is: fn(char) -> bool| text.contains(is);
    let is_run = |it: &str| {
        it.chars().count() >= MIN_RUN && has(it, char::is_alphabetic) && has(it, |it: char| it.is_ascii_digit())
    };
    value.chars().count() >= MIN_MIXED
        && !value.contains(char::is_whitespace)
        && value.split(|it: char| !it.is_alphanumeric()).any(is_run)
}

/// Hosts, paths, numbers, and what only names another value.
fn is_public(value: &str) -> bool {
    is_number(value) || is_path(value) || is_host(value) || is_reference(value)
}

fn is_number(value: &str) -> bool {
    value.chars().all(|it| it.is_ascii_digit() || "+-.,_:/ ".contains(it))
}

fn is_path(value: &str) -> bool {
    let begins = ["/", "./", "../", "~/"].iter().any(|it| value.starts_with(it));
    let last = value.rsplit('/').next().unwrap_or_default();
    let ending = last.rsplit_once('.').map_or("", |it| it.1);
    let ends =
        value.contains('/') && (1..=5).contains(&ending.len()) && ending.chars().all(|it| it.is_ascii_lowercase());
    (begins || ends) && !value.contains(['+', '='])
}

/// In small letters, as people write them: signed tokens have dots, too.
fn is_host(value: &str) -> bool {
    let (host, port) = value.rsplit_once(':').unwrap_or((value, "0"));
    let is_label =
        |it: &str| !it.is_empty() && it.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-');
    let top = host.rsplit_once('.').map_or("", |it| it.1);
    port.chars().all(|it| it.is_ascii_digit())
        && host.split('.').all(is_label)
        && top.len() > 1
        && top.chars().all(|it| it.is_ascii_lowercase())
}

/// `${OTHER}`, `$(pass show x)`, `$OTHER`.
fn is_reference(value: &str) -> bool {
    let name = |it: &str| it.starts_with(['{', '(']) || it.chars().all(|it| it == '_' || it.is_alphabetic());
    value.strip_prefix('$').is_some_and(name)
}

#[cfg(test)]
mod tests {
    use super::secrets;

    fn check(text: &str, want: &[&str]) {
        assert_eq!(secrets(text).iter().map(String::as_str).collect::<Vec<_>>(), want, "{text}");
    }

    #[test]
    fn names_and_shapes_say_what_counts() {
        check(
            "API_KEY=short7\nDB_PASS=hunter2hunter2\nexport MY_TOKEN='tok-en-ab' # c",
            &["hunter2hunter2", "tok-en-ab"],
        );
        check("AUTHOR=Ada Lovelace\nAUTHORITY=example-of-one", &[]);
        check("X=abcdefgh12345678\nY=abcdefgh1234567\nZ=abcdefghabcdefgh", &["abcdefgh12345678"]);
        check(
            "A=my app in version 2 of 3\nB=gemini-2.5-flash-lite-06-17\nC=python3-slim-bullseye",
            &["python3-slim-bullseye"],
        );
        check("ID=9b2d4c1e-77aa-4f0e-8a51-0c1d2e3f4a5b", &["9b2d4c1e-77aa-4f0e-8a51-0c1d2e3f4a5b"]);
        check("AUTH_HOST=auth1.example.com:8443\nKEY_FILE=/etc/keys/server1.pem\nPASS_FILE=conf/pass1.txt", &[]);
        check("TOKEN_TTL=360000000\nPWD=~/src/some-project\nSECRET=${OTHER_SECRET}\nPASSWORD=$(pass show x)", &[]);
        check("AWS_SECRET=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", &["wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"]);
        check("HASH_PASS=$2b$10$abcdefghijk", &["$2b$10$abcdefghijk"]);
        check("JWT=eyJhbGciOiJI.eyJzdWIi0iIx.SflKxwRJSM", &["eyJhbGciOiJI.eyJzdWIi0iIx.SflKxwRJSM"]);
    }

    #[test]
    fn addresses_have_users_and_parameters() {
        check("DATABASE_URL=postgres://app:s3cr3tpw@db/x", &["app:s3cr3tpw", "s3cr3tpw"]);
        check("DATABASE_URL=postgres://postgres:postgres@localhost:5432/x", &["postgres:postgres"]);
        check("A=redis://u:pw@h", &["u:pw@"]);
        check("AUTH_URL=https://auth.example.com/v1/login12345\nB=ssh://git@github.com/x", &[]);
        check("S_DSN=https://0123456789abcdef0123@o1.ingest.io/1", &["0123456789abcdef0123"]);
        check("U=https://h/p?user=ada&access_token=abcdefgh#x", &["abcdefgh"]);
        check("C=Server=db;User=sa;Password=hunter22;", &["hunter22"]);
    }

    #[test]
    fn files_of_other_forms() {
        check(
            r#"{"type": "x", "private_key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG\n-----END PRIVATE KEY-----\n"}"#,
            &["MIIEvQIBADANBgkq"],
        );
        check(r#"{"a": {"client_secret": ["GOCSPX-abc"]}, "n": 1234567890}"#, &["GOCSPX-abc"]);
        let pem = "-----BEGIN CERTIFICATE-----\nMIIBxTCCAWugAwIBAgIR\n-----END CERTIFICATE-----\n-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIabcdefgh12\nAwEH\n-----END EC PRIVATE KEY-----\n";
        check(pem, &["MHcCAQEEIIabcdefgh12"]);
        check(&format!("CERT=\"{pem}\""), &["MHcCAQEEIIabcdefgh12"]);
        let armour = "MULTI_KEY=\"-----BEGIN X-----\nMIIEowIBAAKCAQEAxyz123\nline3abcdefgh9876\n-----END X-----\"\nA_KEY='one-of-two\ntwo-of-two'";
        check(armour, &["MIIEowIBAAKCAQEAxyz123", "line3abcdefgh9876", "one-of-two", "two-of-two"]);
        let list = "db:\n  list:\n    - listsecret12345678\n    - short\n  passwords:\n  - open-sesame # x\n  - name: a\n  - X_KEY=pass-word-x\n  more: 1";
        check(list, &["listsecret12345678", "open-sesame", "pass-word-x"]);
        check("machine h.example.com login ada password open-sesame", &["open-sesame"]);
        check("https://ada:ghp_abcdef@github.com", &["ada:ghp_abcdef", "ghp_abcdef"]);
        check("//registry.npmjs.org/:_authToken=npm_abcdef\nsave-exact=true", &["npm_abcdef"]);
        check("db:\n  password: \"open-sesame\" # x\n  host: db1.internal.example.com\n", &["open-sesame"]);
        check("define('DB_PASSWORD', 'open-sesame');\ndefine('DB_NAME', 'wordpress');", &["open-sesame"]);
        check("hvs.CAESIJ0123456789abcd\n", &["hvs.CAESIJ0123456789abcd"]);
    }
}
