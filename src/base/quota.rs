//! Rate limits of a provider, as its answers tell of them.

/// One limit of an account at a provider. Nothing is made up: what the provider does not say is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// In the provider's words: `requests`, `tokens`, `input-tokens`.
    pub what: &'static str,
    pub limit: Option<u64>,
    pub remaining: u64,
    /// Unix time in milliseconds.
    pub resets_ms: Option<u64>,
}
