//! Token counts per model: corrects the estimates and learns context windows from what providers report.

use std::collections::BTreeMap;

/// In thousandths of the rule's count. Beyond this somebody counts something else, such as a server that reports what
/// was new only.
const LEAST: u64 = 500;
const MOST: u64 = 3_000;
/// Where nothing is known.
const EVEN: u64 = 1_000;
/// Smaller requests say more about frames than about texts.
const TOO_SMALL: u64 = 200;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenScale {
    /// The request that is under way: its model, and its size by the rule.
    pending_request: Option<(String, u64)>,
    /// By model, in thousandths.
    ratios: BTreeMap<String, u64>,
    /// By model: the largest request that it took, by the rule.
    taken: BTreeMap<String, u64>,
    /// By model, where it refused what was longer.
    windows: BTreeMap<String, u64>,
}

impl TokenScale {
    pub fn note_request(&mut self, model: &str, tokens: u64) {
        self.pending_request = Some((model.to_owned(), tokens));
    }

    /// The provider's count of the request.
    pub fn note_count(&mut self, model: &str, input: u64) {
        let Some((_, tokens)) = self.pending_request.take().filter(|(it, _)| it == model) else { return };
        let taken = self.taken.entry(model.to_owned()).or_default();
        *taken = tokens.max(*taken);
        if tokens < TOO_SMALL || input == 0 {
            return;
        }
        let found = ratio(input, tokens);
        // One odd answer does not turn everything upside down; what stays so counts soon.
        let ratio = self.ratios.get(model).map_or(found, |it| it.midpoint(found));
        self.ratios.insert(model.to_owned(), ratio);
    }

    /// The size of the request that is under way.
    pub fn pending_size(&self, model: &str) -> Option<u64> {
        self.pending_request.as_ref().filter(|(it, _)| it == model).map(|(_, tokens)| *tokens)
    }

    /// The largest request that the model took, by the rule; 0: none yet.
    pub fn largest_taken(&self, model: &str) -> u64 {
        self.taken.get(model).copied().unwrap_or_default()
    }

    /// The model took a request of this size for one of `size` tokens, and reads no more than `window`.
    pub fn note_refusal(&mut self, model: &str, window: u64, size: u64, tokens: u64) {
        self.windows.insert(model.to_owned(), window);
        if tokens >= TOO_SMALL {
            // What was refused once is not sent again to find the middle.
            let ratio = ratio(size, tokens).max(self.of(model));
            self.ratios.insert(model.to_owned(), ratio);
        }
    }

    /// How much the model reads at once, where it said so when it refused a request.
    pub fn window(&self, model: &str) -> Option<u64> {
        self.windows.get(model).copied()
    }

    /// The user chose a model: a server may have been started anew, with more room.
    pub fn forget_windows(&mut self) {
        self.windows.clear();
    }

    /// What the model would count, where the rule says `tokens`.
    pub fn model_tokens(&self, model: &str, tokens: u64) -> u64 {
        scaled(tokens, self.of(model), EVEN)
    }

    /// What the rule says of as much as the model counts as `tokens`.
    pub fn estimated_tokens(&self, model: &str, tokens: u64) -> u64 {
        scaled(tokens, EVEN, self.of(model))
    }

    fn of(&self, model: &str) -> u64 {
        self.ratios.get(model).copied().unwrap_or(EVEN)
    }
}

/// Of a count to the rule's, within bounds.
fn ratio(count: u64, tokens: u64) -> u64 {
    scaled(count, EVEN, tokens).clamp(LEAST, MOST)
}

fn scaled(tokens: u64, by: u64, of: u64) -> u64 {
    u64::try_from(u128::from(tokens) * u128::from(by) / u128::from(of.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::TokenScale;

    #[test]
    fn what_the_provider_counts_is_learned_within_bounds() {
        let mut scale = TokenScale::default();
        assert_eq!([scale.model_tokens("m", 900), scale.estimated_tokens("m", u64::MAX)], [900, u64::MAX]);
        let mut learn = |tokens, input| {
            scale.note_request("m", tokens);
            scale.note_count("m", input);
            (scale.model_tokens("m", 1_000), scale.estimated_tokens("m", 16_000))
        };
        assert_eq!(learn(1_000, 2_000), (2_000, 8_000));
        assert_eq!(learn(1_000, 1_000), (1_500, 10_666), "half of the way");
        assert_eq!(learn(1_000, 1_000_000), (2_250, 7_111), "not more than three times as much");
        assert_eq!(learn(1_000_000, 1), (1_375, 11_636), "not less than half");
        assert_eq!([learn(1_000, 0), learn(10, 500)], [(1_375, 11_636); 2], "that says nothing");
        scale.note_count("m", 9_000);
        scale.note_request("n", 1_000);
        scale.note_count("m", 9_000);
        assert_eq!(
            [scale.model_tokens("m", 1_000), scale.model_tokens("n", 1_000)],
            [1_375, 1_000],
            "of another request"
        );
    }

    #[test]
    fn what_was_refused_is_not_sent_again() {
        let mut scale = TokenScale::default();
        scale.note_request("m", 1_000);
        assert_eq!([scale.pending_size("m"), scale.pending_size("n"), scale.window("m")], [Some(1_000), None, None]);
        scale.note_refusal("m", 800, 1_600, 1_000);
        assert_eq!(
            (scale.window("m"), scale.model_tokens("m", 1_000), scale.estimated_tokens("m", 800)),
            (Some(800), 1_600, 500)
        );
        scale.note_refusal("m", 800, 900, 1_000);
        assert_eq!(scale.model_tokens("m", 1_000), 1_600, "nothing is unlearned by it");
        scale.note_refusal("m", 800, 90_000, 1_000);
        assert_eq!(scale.model_tokens("m", 1_000), 3_000, "within bounds");
        scale.forget_windows();
        assert_eq!((scale.window("m"), scale.model_tokens("m", 1_000)), (None, 3_000));
    }
}
