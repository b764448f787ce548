//! OpenTelemetry settings from the standard environment variables.

use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;

use castor_hands::{
    http::{HttpLink, Proxies},
    secrets::Env,
};

#[derive(Clone, Debug)]
pub struct ExportSettings {
    pub url: Url,
    /// Values may be secrets.
    pub headers: Vec<(String, SecretString)>,
    /// What the spans are of: `service.name` and more.
    pub resource: Vec<(String, String)>,
    pub link: HttpLink,
}

/// What castor cannot do, or read; never holds a value that may be a secret.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("{name}: {value:?} is not known; use {known}")]
    Unknown { name: &'static str, value: String, known: &'static str },
    #[error("OTEL_EXPORTER_OTLP_ENDPOINT is no http URL; write http://host:4318")]
    NotHttp,
    #[error("telemetry.otlpEndpoint is no http URL; write http://host:4318")]
    NoEndpoint,
    #[error(
        "telemetry.target is gcp: castor exports to a collector or a file; run a collector for Google Cloud, and set local"
    )]
    NoCloud,
    #[error(
        "telemetry.otlpProtocol is grpc: castor speaks OTLP over HTTP; set http, and the collector's port for it (4318)"
    )]
    NoGrpc,
    #[error("telemetry.outfile: {name} cannot be written: {why}")]
    NoFile { name: String, why: std::io::Error },
}

/// Where the standard says a collector is.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
const MAX_TIMEOUT_MS: u64 = 10_000;

/// `None`: the environment asks for no spans.
///
/// # Errors
/// A variable that says something else.
pub fn read(env: &Env) -> Result<Option<ExportSettings>, SettingsError> {
    let of_traces = |name: &str| env.get(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"));
    let either = |name: &str| of_traces(name).or_else(|| env.get(&format!("OTEL_EXPORTER_OTLP_{name}")));
    let exporter = env.get("OTEL_TRACES_EXPORTER");
    let is_off = env.get("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"));
    if is_off || exporter == Some("none") || exporter.is_none() && either("ENDPOINT").is_none() {
        return Ok(None);
    }
    let unknown = |name, value: &str, known| Err(SettingsError::Unknown { name, value: value.to_owned(), known });
    if let Some(other) = exporter.filter(|it| *it != "otlp") {
        return unknown("OTEL_TRACES_EXPORTER", other, "otlp or none");
    }
    // Collectors take JSON wherever they take protobuf over HTTP: these two mean the same here.
    if let Some(other) = either("PROTOCOL").filter(|it| !matches!(*it, "http/json" | "http/protobuf")) {
        return unknown("OTEL_EXPORTER_OTLP_PROTOCOL", other, "http/json");
    }
    let url = match of_traces("ENDPOINT") {
        Some(it) => it.to_owned(),
        None => format!("{}/v1/traces", either("ENDPOINT").unwrap_or(DEFAULT_ENDPOINT).trim_end_matches('/')),
    };
    let url = http_url(&url).ok_or(SettingsError::NotHttp)?;
    Ok(Some(link(env, url, either("HEADERS"), either("TIMEOUT"))))
}

/// A collector for Gemini CLI's telemetry, with the standard's headers. The URL has no path of a signal.
///
/// # Errors
/// An address that is none.
pub fn collector(env: &Env, endpoint: Option<&str>) -> Result<ExportSettings, SettingsError> {
    let of = |name: &str| env.get(&format!("OTEL_EXPORTER_OTLP_{name}"));
    let endpoint = endpoint.unwrap_or(DEFAULT_ENDPOINT);
    let url = http_url(&format!("{}/", endpoint.trim_end_matches('/'))).ok_or(SettingsError::NoEndpoint)?;
    Ok(link(env, url, of("HEADERS"), of("TIMEOUT")))
}

fn http_url(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|it| matches!(it.scheme(), "http" | "https") && it.has_host())
}

fn link(env: &Env, url: Url, headers: Option<&str>, timeout: Option<&str>) -> ExportSettings {
    let timeout = timeout.and_then(|it| it.parse().ok()).unwrap_or(MAX_TIMEOUT_MS);
    let headers = parse_pairs(headers.unwrap_or_default());
    ExportSettings {
        url,
        headers: headers.into_iter().map(|(name, value)| (name, value.into())).collect(),
        resource: resource(env),
        link: HttpLink {
            proxies: Proxies::from_env(|name| env.get(name)),
            idle: Duration::from_millis(timeout.min(MAX_TIMEOUT_MS)),
            ..HttpLink::default()
        },
    }
}

/// What the messages are of.
pub fn resource(env: &Env) -> Vec<(String, String)> {
    let mut res = vec![("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
    res.extend(parse_pairs(env.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default()));
    let name = env.get("OTEL_SERVICE_NAME").map(str::to_owned);
    let named = res.iter().position(|(key, _)| key == "service.name").map(|at| res.remove(at).1);
    res.push(("service.name".to_owned(), name.or(named).unwrap_or_else(|| "castor".to_owned())));
    res
}

/// `a=b,c=d`, values percent-encoded as in W3C baggage.
fn parse_pairs(text: &str) -> Vec<(String, String)> {
    let pair = |it: &str| {
        let (name, value) = it.split_once('=')?;
        let name = name.trim();
        (!name.is_empty()).then(|| (name.to_owned(), percent_decode(value.trim())))
    };
    text.split(',').filter_map(pair).collect()
}

/// What is no escape stays as it is.
fn percent_decode(text: &str) -> String {
    let (mut res, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, more)) = rest.split_first() {
        let hex = more.get(..2).filter(|_| *first == b'%').and_then(|it| str::from_utf8(it).ok());
        match hex.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(byte) => {
                res.push(byte);
                rest = more.get(2..).unwrap_or_default();
            }
            None => {
                res.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&res).into_owned()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::read;
    use castor_hands::secrets::Env;

    fn check(pairs: &[(&str, &str)], want: &str) {
        let got = match read(&Env::from_pairs(pairs.iter().copied())) {
            Ok(None) => "off".to_owned(),
            Ok(Some(it)) => {
                assert!(!format!("{it:?}").contains("canary"));
                let headers = it.headers.iter().map(|(name, value)| format!(" {name}:{}", value.expose_secret()));
                let name = it.resource.last().map(|(_, it)| it.clone()).unwrap_or_default();
                format!("{} {name} {}ms{}", it.url, it.link.idle.as_millis(), headers.collect::<String>())
            }
            Err(it) => it.to_string(),
        };
        assert_eq!(got, want, "{pairs:?}");
    }

    #[test]
    fn the_standard_variables() {
        let (url, traces) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let (headers, exporter) = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_TRACES_EXPORTER");
        check(&[], "off");
        check(&[(headers, "a=b"), ("OTEL_SERVICE_NAME", "x")], "off");
        check(&[(exporter, "otlp")], "http://localhost:4318/v1/traces castor 10000ms");
        check(&[(url, "https://c.example/otel/")], "https://c.example/otel/v1/traces castor 10000ms");
        check(&[(url, "http://a"), (traces, "http://b/x")], "http://b/x castor 10000ms");
        check(&[(url, "http://a"), (exporter, "none")], "off");
        check(&[(url, "http://a"), ("OTEL_SDK_DISABLED", "TRUE")], "off");
        check(
            &[(url, "http://a"), (headers, "authorization=Bearer%20canary, x=%zz=1,=no,no")],
            "http://a/v1/traces castor 10000ms authorization:Bearer canary x:%zz=1",
        );
        check(
            &[(url, "http://a"), ("OTEL_SERVICE_NAME", "me"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "50")],
            "http://a/v1/traces me 50ms",
        );
        check(
            &[(url, "http://a"), ("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine,team=x")],
            "http://a/v1/traces mine 10000ms",
        );
        check(&[(exporter, "zipkin")], "OTEL_TRACES_EXPORTER: \"zipkin\" is not known; use otlp or none");
        check(
            &[(url, "http://a:4317"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            "OTEL_EXPORTER_OTLP_PROTOCOL: \"grpc\" is not known; use http/json",
        );
        check(&[(url, "canary")], "OTEL_EXPORTER_OTLP_ENDPOINT is no http URL; write http://host:4318");
    }
}
