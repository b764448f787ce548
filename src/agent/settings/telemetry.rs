//! The settings `telemetry`, in Gemini CLI's words: what is read of them, before any folder is known.

use super::{Getter, Sources};
use crate::telemetry::GeminiTelemetry;
use castor_base::path::AbsPath;
use castor_hands::secrets::Env;
use castor_tools::workspace::{Reader, settings};

/// What the user and the system say, by files and variables. A workspace has no say.
pub fn telemetry(env: &Env) -> GeminiTelemetry {
    let Some(nowhere) = AbsPath::new("/") else { return GeminiTelemetry::default() };
    let layers = settings::read(env, &nowhere, false, Reader::disk());
    let get = Getter(Sources { layers: &layers, env, flags: &[] });
    GeminiTelemetry {
        enabled: get.flag("telemetry.enabled"),
        traces: get.flag("telemetry.traces"),
        target: get.text("telemetry.target"),
        endpoint: get.text("telemetry.otlpEndpoint"),
        protocol: get.text("telemetry.otlpProtocol"),
        outfile: get.text("telemetry.outfile"),
    }
}
