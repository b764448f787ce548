//! Origin of a model's address and key: where both are configured, and what to change when they fail.

use castor_base::{
    credential::Credential,
    model::{Failure, FailureKind},
};

/// Of a shorter key not even the end is shown.
const MIN_SHOWN: usize = 16;

/// Where an endpoint's address and key come from, for people.
#[derive(Clone, Debug, Default)]
pub struct EndpointOrigin {
    /// The API that is expected there: `the Gemini API`.
    pub api: String,
    /// The variable or setting of its address; `None`: the provider's own address.
    pub address: Option<String>,
    /// The key, as `the key in GEMINI_API_KEY`; `None`: no key is sent.
    pub key: Option<String>,
    /// How to change the key, in a sentence; empty: nothing is said of the key.
    pub change: String,
    /// What a refusal is about. `None`: the user is asked for no other key.
    pub credential: Option<Credential>,
}

impl EndpointOrigin {
    /// What to look at after `failure`; empty where its message says it. `key` is the key itself.
    pub fn advice(&self, failure: &Failure, key: &str) -> String {
        match (failure.kind, failure.status) {
            (FailureKind::Auth, Some(_)) if !self.change.is_empty() => self.key_advice(key),
            (FailureKind::Garbage, _) => self.address_advice(),
            _ => String::new(),
        }
    }

    fn key_advice(&self, key: &str) -> String {
        let sent = match (&self.key, key_end(key)) {
            (None, _) => "castor sent no key.".to_owned(),
            (Some(it), None) => format!("castor sent {it}."),
            (Some(it), Some(end)) => format!("castor sent {it}, which ends in …{end}."),
        };
        format!("{sent} {}", self.change)
    }

    fn address_advice(&self) -> String {
        match &self.address {
            Some(place) => format!("Check {place}."),
            None => "Check the network: a proxy or a login page may answer in its place.".to_owned(),
        }
    }
}

/// The last four characters of a key that is long enough.
pub fn key_end(key: &str) -> Option<&str> {
    key.get(key.len().checked_sub(4)?..).filter(|_| key.len() >= MIN_SHOWN)
}

#[cfg(test)]
mod tests {
    use super::EndpointOrigin;
    use castor_base::model::{Failure, FailureKind};

    #[test]
    fn advice_names_the_key_and_its_end() {
        let check = |origin: EndpointOrigin, kind, status, key: &str, expected: &str| {
            let failure = Failure { status, ..Failure::new(kind, "m") };
            assert_eq!(origin.advice(&failure, key), expected);
        };
        let own = || EndpointOrigin {
            key: Some("the key in GEMINI_API_KEY".to_owned()),
            change: "Set another there.".to_owned(),
            ..EndpointOrigin::default()
        };
        let long = "castor sent the key in GEMINI_API_KEY, which ends in …cBad. Set another there.";
        check(own(), FailureKind::Auth, Some(401), "AIzaSyabcdefgcBad", long);
        check(
            own(),
            FailureKind::Auth,
            Some(400),
            "short",
            "castor sent the key in GEMINI_API_KEY. Set another there.",
        );
        check(own(), FailureKind::Auth, None, "AIzaSyabcdefgcBad", "");
        check(own(), FailureKind::Status, Some(404), "AIzaSyabcdefgcBad", "");
        let keyless = EndpointOrigin { key: None, ..own() };
        check(keyless, FailureKind::Auth, Some(401), "", "castor sent no key. Set another there.");
        check(EndpointOrigin::default(), FailureKind::Auth, Some(401), "AIzaSyabcdefgcBad", "");
        let address = EndpointOrigin { address: Some("GOOGLE_GEMINI_BASE_URL".to_owned()), ..own() };
        check(address, FailureKind::Garbage, Some(404), "", "Check GOOGLE_GEMINI_BASE_URL.");
    }
}
