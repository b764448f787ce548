//! How much a model can read at once.

/// The context window of `model` in tokens. Unknown names get the common size: a provider that has less says so.
pub fn window(model: &str) -> u64 {
    match model.trim_start_matches("models/").starts_with("gemma-4-") {
        true => 256_000,
        false => 1_048_576,
    }
}

#[cfg(test)]
mod tests {
    use super::window;

    #[test]
    fn windows() {
        assert_eq!(window("gemma-4-31b-it"), 256_000);
        assert_eq!(window("models/gemma-4-31b-it"), 256_000);
        assert_eq!(window("gemma-3"), 1_048_576);
        assert_eq!(window("gemini-3-pro-preview"), 1_048_576);
        assert_eq!(window(""), 1_048_576);
    }
}
