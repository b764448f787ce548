//! One request of a client, and how its params are read.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::ahp::{ClientRefusal, WaitingClient};
use castor_wire::acp::client::{read_text, read_value};

/// One request of a client.
pub struct HostCall {
    pub asker: WaitingClient,
    pub channel: String,
    params: Value,
}

/// The member that nearly all params have.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct ChannelParams {
    pub channel: String,
}

impl HostCall {
    pub fn new(asker: WaitingClient, params: Option<&RawValue>) -> Self {
        let params: Value = params.and_then(|it| read_text(it.get())).unwrap_or_default();
        let ChannelParams { channel } = read_value(params.clone()).unwrap_or_default();
        Self { asker, channel, params }
    }

    /// All params, in the protocol's own type.
    ///
    /// # Errors
    /// They have another shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ClientRefusal> {
        T::deserialize(&self.params).map_err(|it| ClientRefusal::params(it.to_string()))
    }

    /// Params of which each may be missing; one that is broken is missing.
    pub fn read_known<T: DeserializeOwned + Default>(&self) -> T {
        read_value(self.params.clone()).unwrap_or_default()
    }

    /// The channel, which has to be there.
    ///
    /// # Errors
    /// It is not, or is no text.
    pub fn channel_uri(&self) -> Result<&str, ClientRefusal> {
        given("channel", &self.channel)
    }
}

/// A text that has to be there.
///
/// # Errors
/// It is not, by its name.
pub fn given<'t>(name: &str, text: &'t str) -> Result<&'t str, ClientRefusal> {
    if text.is_empty() { Err(ClientRefusal::missing(name)) } else { Ok(text) }
}
