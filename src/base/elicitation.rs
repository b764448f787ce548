//! MCP elicitation: questions of a server to the user in the middle of a call, and the replies.

use serde_json::{Map, Value};

use crate::{
    question::{Field, FieldKind, Form},
    text::is_deceptive,
};

/// The question of a server to the user.
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitationRequest {
    Form(Form),
    /// A page to visit. `id` is the server's own name for it: it says later that what the page was for is done.
    Page {
        message: String,
        url: String,
        id: String,
    },
}

/// Forms that the user's client can show, and servers may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElicitationSupport {
    pub forms: bool,
    pub pages: bool,
}

/// What a model answered to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledAnswer {
    pub text: String,
    pub model: String,
    /// It ends where the tokens did.
    pub is_cut: bool,
}

/// The reply to a server, with the reason where the user did not give it.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The content of a form; nothing for a page.
    Accepted(Option<Map<String, Value>>),
    Declined(Option<String>),
    Cancelled(Option<String>),
    /// It must not ask like this.
    Refused(String),
    /// What a model answered.
    Sampled(SampledAnswer),
}

/// Words for secrets, which would pass through castor and the client in the clear.
const SECRETS: &[&str] = &[
    "2fa code",
    "access key",
    "access token",
    "api key",
    "api keys",
    "api token",
    "auth code",
    "auth token",
    "authentication code",
    "authenticator app",
    "backup code",
    "backup codes",
    "bearer token",
    "card number",
    "client secret",
    "code sent to",
    "code we sent",
    "credit card",
    "cvc",
    "cvv",
    "digit code",
    "login code",
    "mfa code",
    "mnemonic phrase",
    "one time code",
    "one time passcode",
    "onetime code",
    "otp",
    "passcode",
    "passphrase",
    "password",
    "passwords",
    "pin code",
    "pin number",
    "pincode",
    "private key",
    "recovery code",
    "recovery codes",
    "recovery phrase",
    "refresh token",
    "secret key",
    "secret phrase",
    "security code",
    "seed phrase",
    "seed words",
    "session cookie",
    "session token",
    "sms code",
    "totp",
    "two factor code",
    "verification code",
];

/// Words that mean a secret only in a request for it: tokens are also talked about.
const HANDED_OVER: &[&str] =
    &["2fa", "credentials", "mfa", "mnemonic", "passwd", "pin", "pwd", "secret", "secrets", "token", "tokens"];
/// Words of such a request, at most this many words before.
const ASKING: &[&str] = &["enter", "input", "paste", "provide", "submit", "your"];
const BEFORE: usize = 3;
/// Verbs that a text forbids, at most this many words before.
const GIVING: &[&str] = &["enter", "give", "paste", "provide", "send", "share", "type"];
const FORBIDDEN_BEFORE: usize = 10;

/// The same for the name of a field: there a single word says what is to be typed.
const SECRET_NAMES: &[&str] = &[
    "2fa",
    "apikey",
    "credential",
    "credentials",
    "encryption key",
    "iban",
    "license key",
    "mfa",
    "mnemonic",
    "passwd",
    "pwd",
    "secret",
    "secrets",
    "signing key",
    "ssh key",
    "token",
];
/// Names that say so only by themselves, or at their end: `issue_key` and `pin_to_top` are something else.
const WHOLE_NAMES: &[&str] = &[" key ", " seed ", " ssn "];
const LAST_WORDS: &[&str] = &[" pin "];

impl Form {
    /// The first field that asks for a secret by its description. A choice field cannot.
    pub fn secret_field(&self) -> Option<&Field> {
        let is_typed = |it: &&Field| {
            matches!(it.kind, FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Integer { .. })
        };
        let asks = asks_for_secret(&self.message);
        self.fields.iter().filter(is_typed).find(|it| asks || is_secret(it))
    }
}

fn is_secret(it: &Field) -> bool {
    let names = [Some(&it.name), it.title.as_ref()];
    let mut names = names.into_iter().flatten().map(|it| words(it));
    let is_name = |it: String| {
        WHOLE_NAMES.contains(&it.as_str())
            || LAST_WORDS.iter().any(|end| it.ends_with(end))
            || has_one(&it, SECRET_NAMES)
            || has_one(&it, SECRETS)
    };
    names.any(is_name) || it.description.as_deref().is_some_and(asks_for_secret)
}

/// Tells whether these words ask for a secret.
pub fn asks_for_secret(text: &str) -> bool {
    let text = words(text);
    let all: Vec<&str> = text.split_whitespace().collect();
    let is_asked = |at: usize| {
        let before = all.get(at.saturating_sub(BEFORE)..at).unwrap_or_default();
        before.iter().any(|it| ASKING.contains(it)) && !is_forbidden(all.get(..at).unwrap_or_default())
    };
    has_one(&text, SECRETS)
        || (0..all.len()).any(|at| all.get(at).is_some_and(|it| HANDED_OVER.contains(it)) && is_asked(at))
}

/// Words that say not to type it: `do not give us your pin`.
fn is_forbidden(before: &[&str]) -> bool {
    let near = before.get(before.len().saturating_sub(FORBIDDEN_BEFORE)..).unwrap_or_default();
    near.windows(3).any(|it| matches!(it, ["do", "not", verb] | ["don", "t", verb] if GIVING.contains(verb)))
}

fn has_one(words: &str, of: &[&str]) -> bool {
    of.iter().any(|it| words.contains(&format!(" {it} ")))
}

/// An address to send a user to, as the one who follows it reads it: a host in other letters is in ASCII there, and says
/// so.
///
/// # Errors
/// Why it is none.
pub fn check_page_url(text: &str) -> Result<String, &'static str> {
    // A parser drops some of these, and takes a backslash for a slash: people read another address than is opened.
    if text.chars().any(|it| is_deceptive(it) || it.is_whitespace() || it == '\\') {
        return Err("has characters in it that hide what it is");
    }
    let Ok(url) = url::Url::parse(text) else { return Err("is no address") };
    let is_local = match url.host() {
        Some(url::Host::Domain(it)) => it == "localhost",
        Some(url::Host::Ipv4(it)) => it.is_loopback(),
        Some(url::Host::Ipv6(it)) => it.is_loopback(),
        None => false,
    };
    let rest = text.split_once(':').map_or("", |it| it.1).trim_start_matches('/');
    let has_user = rest.split(['/', '?', '#']).next().is_some_and(|it| it.contains('@'));
    match url.scheme() {
        "http" if !is_local => Err("is not encrypted: use https"),
        "http" | "https" if has_user || !url.username().is_empty() || url.password().is_some() => {
            Err("has a user or a password in it")
        }
        "http" | "https" => Ok(url.into()),
        _ => Err("is no https address"),
    }
}

/// Lower case, each word between two blanks: `apiKey`, `API_KEY` and `api-key` are the same.
fn words(text: &str) -> String {
    let (mut res, mut was_lower) = (" ".to_owned(), false);
    for it in text.chars() {
        let is_word = it.is_alphanumeric();
        if (it.is_uppercase() && was_lower || !is_word) && !res.ends_with(' ') {
            res.push(' ');
        }
        if is_word {
            res.extend(it.to_lowercase());
        }
        was_lower = it.is_lowercase();
    }
    if !res.ends_with(' ') {
        res.push(' ');
    }
    res
}

#[cfg(test)]
mod tests {
    use super::{FieldKind, Form, asks_for_secret, check_page_url};
    use crate::question::Field;

    /// A server must not ask for passwords and keys, whatever it calls them.
    #[test]
    fn secrets_are_known_by_their_words() {
        for it in ["apiKey", "API_KEY", "api-key", "What is your password?", "accessToken", "card number:"] {
            assert!(asks_for_secret(it), "{it}");
        }
        for it in [
            "Enter the PIN",
            "your 4-digit pin",
            "The 2FA code",
            "One-time code:",
            "otpCode",
            "Paste your GitHub token here",
            "passphrase of the key",
            "Seed phrase",
            "CVV",
            "The code we sent to your phone",
            "6-digit code",
        ] {
            assert!(asks_for_secret(it), "{it}");
        }
        for it in [
            "issue_key",
            "How is the token refreshed?",
            "Which type of token does the parser return?",
            "Pin the version?",
            "Which postal code?",
            "Name of the secret to rotate",
            "Your favorite integer (do not give us your phone number, pin, or other sensitive info)",
            "secretary",
            "keyboard",
            "compass word",
            "",
        ] {
            assert!(!asks_for_secret(it), "{it}");
        }
    }

    /// A link is shown as its reader would understand it; unsafe addresses are refused with the reason.
    #[test]
    fn an_address_is_what_it_looks_like() {
        let check = |text: &str, want: Result<&str, &str>| {
            assert_eq!(check_page_url(text).as_deref().map_err(|it| *it), want, "{text:?}");
        };
        let hides = Err("has characters in it that hide what it is");
        let user = Err("has a user or a password in it");
        check("https://a.example/login?x=1#y", Ok("https://a.example/login?x=1#y"));
        check("HTTPS://A.example", Ok("https://a.example/"));
        check("https://\u{430}pple.com/x", Ok("https://xn--pple-43d.com/x"));
        check("https://a.example/\u{e9}", Ok("https://a.example/%C3%A9"));
        check("https://a.example\u{ff0f}@evil.example/", user);
        for it in
            ["https://a\u{202e}b.example", "https://a.example/\u{200b}", "https://a.ex\tample", "https://a.example\\@b"]
        {
            check(it, hides);
        }
        for it in ["https://u@a.example", "https://u:p@a.example", "https://@a.example", "https:/u@a.example"] {
            check(it, user);
        }
        for it in ["http://localhost:1/x", "http://127.0.0.1:8/", "http://[::1]/"] {
            check(it, Ok(it));
        }
        for it in ["http://a.example", "http://localhost.a.example", "http://10.0.0.1"] {
            check(it, Err("is not encrypted: use https"));
        }
        for it in ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "vscode://x"] {
            check(it, Err("is no https address"));
        }
        check("a.example", Err("is no address"));
    }

    #[test]
    fn a_field_is_known_by_what_is_said_of_it() {
        let text = FieldKind::Text { min: None, max: None, format: None };
        let check = |message: &str, name: &str, description: &str, kind: &FieldKind, expected: bool| {
            let (name, description) = (name.to_owned(), Some(description.to_owned()));
            let field = Field { name, title: None, description, required: true, kind: kind.clone(), default: None };
            let form = Form { message: message.to_owned(), fields: vec![field] };
            assert_eq!(form.secret_field().is_some(), expected, "{form:?}");
        };
        check("Log in", "password", "", &text, true);
        check("Log in", "dbPwd", "", &text, true);
        check("Log in", "key", "", &text, true);
        check("Log in", "pin", "", &text, true);
        check("Log in", "cardPin", "", &text, true);
        check("Log in", "pin_to", "", &text, false);
        check("Log in", "code", "from your authenticator app", &text, true);
        check("Which one?", "code", "of the country", &text, false);
        check("Log in", "value", "Your API key", &text, true);
        check("Your password, please", "value", "", &text, true);
        check("Log in", "user", "Who you are", &text, false);
        check("Which issue?", "issue_key", "such as AB-1", &text, false);
        check("How many?", "max_tokens", "", &FieldKind::Integer { min: None, max: None }, false);
        check("Rotate the password?", "token", "", &FieldKind::Bool, false);
    }
}
