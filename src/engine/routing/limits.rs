//! Context windows by model.

pub fn context_window(model: &str) -> u64 {
    if model.starts_with("gemma-4-") { 256_000 } else { 1_048_576 }
}
