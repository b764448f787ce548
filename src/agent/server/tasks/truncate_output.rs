//! Output that is too long for the model: the rest goes to a file.

use std::sync::Arc;

use crate::session::session_resources::SessionResources;
use castor_base::{
    content::Part,
    tool::{ToolCall, ToolError, ToolOutput},
};
use castor_tools::builtin::truncate;

/// Text beyond the threshold goes to a file that the model can read in pieces.
pub async fn truncate_output(resources: &Arc<SessionResources>, call: &ToolCall, mut output: ToolOutput) -> ToolOutput {
    let max = resources.model_input.truncate_at;
    let long = |it: &Part| it.as_text().is_some_and(|text| text.len() > max);
    if max == 0 || !output.content.iter().any(long) {
        return output;
    }
    let (resources, call) = (resources.clone(), call.id.clone());
    let cutting = tokio::task::spawn_blocking(move || {
        for part in &mut output.content {
            if let Part::Text { text, .. } = part {
                *text = truncate::truncate(text, max, &resources.scratch, &call).into_owned();
            }
        }
        output
    });
    cutting.await.unwrap_or_else(|it| ToolOutput::failed(ToolError::new("unhandled_exception", it.to_string())))
}
