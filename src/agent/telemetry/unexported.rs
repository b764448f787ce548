//! The empty exporter of a castor that was built without the feature `otel`.

use std::{convert::Infallible, time::Duration};

use super::{Boxed, GeminiTelemetry};
use castor_hands::secrets::Env;

/// There is none.
pub struct Exporter(Infallible);

impl Exporter {
    pub fn flush(&self, _limit: Duration) {
        match self.0 {}
    }
}

pub fn wanted(_env: &Env, _wishes: &GeminiTelemetry) -> Option<(Exporter, Boxed)> {
    None
}
