//! An open MCP sampling request: it travels as a server's question does, and ends with a model's answer or a clear no.
// The revision of 2026-07-28 deprecates sampling; servers of today ask for it.
#![allow(deprecated)]

use rmcp::{
    ErrorData,
    model::{CreateMessageResult, ErrorCode, SamplingMessage},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{elicitation_call::ServerAsker, sampling};
use castor_base::{
    elicitation::Reply,
    sampling::{SAMPLING, ServerAsk},
};

/// What the protocol has for a user who said no.
const REJECTED: ErrorCode = ErrorCode(-1);

impl ServerAsker {
    /// Has a model answer, if the user lets it.
    ///
    /// # Errors
    /// For the server: why there is no answer.
    pub async fn sample(
        &self,
        params: &Value,
        cancelled: &CancellationToken,
    ) -> Result<CreateMessageResult, ErrorData> {
        if !self.samples {
            let why = format!("{SAMPLING} is off: the user's setting `mcp.sampling.enabled` says so");
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None));
        }
        let wanted = sampling::parse(params).map_err(|why| ErrorData::invalid_params(why.to_string(), None))?;
        match self.put(ServerAsk::Model(Box::new(wanted)), cancelled).await? {
            Reply::Sampled(it) => {
                let reason = match it.is_cut {
                    true => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
                    false => CreateMessageResult::STOP_REASON_END_TURN,
                };
                let message = SamplingMessage::assistant_text(it.text);
                Ok(CreateMessageResult::new(message, it.model).with_stop_reason(reason))
            }
            Reply::Refused(why) => Err(ErrorData::new(REJECTED, why, None)),
            Reply::Declined(why) | Reply::Cancelled(why) => {
                let why = why.unwrap_or_else(|| "the user said no".to_owned());
                Err(ErrorData::new(REJECTED, why, None))
            }
            Reply::Accepted(_) => Err(ErrorData::internal_error("castor has no answer", None)),
        }
    }
}
