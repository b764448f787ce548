//! Parameters that fit a model: the nearest that it has, and nothing that it refuses.

use super::{ModelTable, thinking::ThinkingKind};
use crate::model::ModelParams;

impl ModelTable {
    /// Makes `params` what the model takes.
    pub fn fit(&self, model: &str, params: &mut ModelParams) {
        let Some(row) = self.row(model) else { return };
        params.thinking = params.thinking.take().and_then(|it| row.thinking.nearest(it));
        params.include_thoughts &= row.thinking.kind != ThinkingKind::None;
        let most = row.limits.output.unwrap_or(u32::MAX);
        params.max_output_tokens = params.max_output_tokens.map(|it| it.min(most));
        params.leave_out(row.refused);
    }
}
