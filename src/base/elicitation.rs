//! What an MCP server asks the user in the middle of a call, and what it is told.

use serde_json::{Map, Value};

use crate::base::question::{Field, FieldKind, Form};

/// What is wanted of the user.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    Form(Form),
    /// A page to visit. `id` is the server's own name for it: it says later that what the page was for is done.
    Page {
        message: String,
        url: String,
        id: String,
    },
}

/// What the user's client can show, and servers may ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shows {
    pub forms: bool,
    pub pages: bool,
}

/// What the server is told. Why, where it is not the user's own word.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The content of a form; nothing for a page.
    Accepted(Option<Map<String, Value>>),
    Declined(Option<String>),
    Cancelled(Option<String>),
    /// It must not ask like this.
    Refused(String),
}

/// What a text asks for that would pass through castor, the client and the one who asks in the clear.
const SECRETS: &[&str] = &[
    "password",
    "passwords",
    "passphrase",
    "passcode",
    "api key",
    "api keys",
    "secret key",
    "private key",
    "access key",
    "access token",
    "one time code",
    "verification code",
    "seed phrase",
    "card number",
    "credit card",
];

/// The same for the name of a field: there a single word says what is to be typed.
const SECRET_NAMES: &[&str] = &[
    "passwd",
    "pwd",
    "secret",
    "secrets",
    "token",
    "credential",
    "credentials",
    "apikey",
    "signing key",
    "encryption key",
    "ssh key",
    "license key",
    "recovery key",
    "otp",
    "totp",
    "cvv",
    "cvc",
    "iban",
];

impl Form {
    /// The first field into which a secret would be typed, by what is said of it. Who chooses types nothing.
    pub fn secret(&self) -> Option<&Field> {
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
    // Keys of issues and for sorting are named as such.
    let is_name = |it: String| it == " key " || has_one(&it, SECRET_NAMES) || has_one(&it, SECRETS);
    names.any(is_name) || it.description.as_deref().is_some_and(asks_for_secret)
}

/// Whether somebody is asked for a secret with these words.
pub fn asks_for_secret(text: &str) -> bool {
    has_one(&words(text), SECRETS)
}

fn has_one(words: &str, of: &[&str]) -> bool {
    of.iter().any(|it| words.contains(&format!(" {it} ")))
}

/// Whether that is an address to send a user to.
///
/// # Errors
/// Why it is not.
pub fn check_page(url: &str) -> Result<(), &'static str> {
    let Ok(url) = url::Url::parse(url) else { return Err("is no address") };
    let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match (url.scheme(), url.username(), url.password()) {
        ("http", ..) if !is_local => Err("is not encrypted: use https"),
        ("http" | "https", "", None) => Ok(()),
        ("http" | "https", ..) => Err("has a user or a password in it"),
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
    use super::{FieldKind, Form, asks_for_secret};
    use crate::base::question::Field;

    #[test]
    fn secrets_are_known_by_their_words() {
        for it in ["apiKey", "API_KEY", "api-key", "What is your password?", "accessToken", "card number:"] {
            assert!(asks_for_secret(it), "{it}");
        }
        for it in ["issue_key", "How is the token refreshed?", "secretary", "keyboard", "compass word", ""] {
            assert!(!asks_for_secret(it), "{it}");
        }
    }

    #[test]
    fn a_field_is_known_by_what_is_said_of_it() {
        let text = FieldKind::Text { min: None, max: None, format: None };
        let check = |message: &str, name: &str, description: &str, kind: &FieldKind, expected: bool| {
            let (name, description) = (name.to_owned(), Some(description.to_owned()));
            let field = Field { name, title: None, description, required: true, kind: kind.clone(), default: None };
            let form = Form { message: message.to_owned(), fields: vec![field] };
            assert_eq!(form.secret().is_some(), expected, "{form:?}");
        };
        check("Log in", "password", "", &text, true);
        check("Log in", "dbPwd", "", &text, true);
        check("Log in", "key", "", &text, true);
        check("Log in", "value", "Your API key", &text, true);
        check("Your password, please", "value", "", &text, true);
        check("Log in", "user", "Who you are", &text, false);
        check("Which issue?", "issue_key", "such as AB-1", &text, false);
        check("How many?", "max_tokens", "", &FieldKind::Integer { min: None, max: None }, false);
        check("Rotate the password?", "token", "", &FieldKind::Bool, false);
    }
}
