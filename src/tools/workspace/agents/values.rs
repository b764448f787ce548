//! Values in an agent file that check themselves while they are read, so that each fault has its line.

use serde::Deserialize;
use serde_json::Value;

/// It enters each request of the session that may start the agent.
const MAX_DESCRIPTION: usize = 8_000;
const MAX_NAME: usize = 64;

/// `[a-z0-9_-]+`.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct AgentName(pub String);

impl TryFrom<String> for AgentName {
    type Error = String;

    fn try_from(it: String) -> Result<Self, String> {
        let is_plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_' || it == b'-';
        match (1..=MAX_NAME).contains(&it.len()) && it.bytes().all(is_plain) {
            true => Ok(Self(it)),
            false => Err(format!("{it:?} should have 1 to {MAX_NAME} of the characters a-z, 0-9, _ and -")),
        }
    }
}

/// Not empty.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub struct Text(pub String);

impl TryFrom<String> for Text {
    type Error = &'static str;

    fn try_from(it: String) -> Result<Self, Self::Error> {
        let it = it.trim();
        if it.is_empty() { Err("should not be empty") } else { Ok(Self(it.to_owned())) }
    }
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
pub struct Description(pub String);

impl TryFrom<String> for Description {
    type Error = String;

    fn try_from(it: String) -> Result<Self, String> {
        let Text(it) = Text::try_from(it)?;
        match it.chars().nth(MAX_DESCRIPTION) {
            Some(_) => Err(format!("should have at most {MAX_DESCRIPTION} characters")),
            None => Ok(Self(it)),
        }
    }
}

/// Above 0.
#[derive(Deserialize)]
#[serde(try_from = "f64")]
pub struct Amount(pub f64);

impl TryFrom<f64> for Amount {
    type Error = &'static str;

    fn try_from(it: f64) -> Result<Self, Self::Error> {
        if it > 0.0 { Ok(Self(it)) } else { Err("should be a number above 0") }
    }
}

#[derive(Deserialize)]
#[serde(try_from = "f64")]
pub struct Temperature(pub f64);

impl TryFrom<f64> for Temperature {
    type Error = &'static str;

    fn try_from(it: f64) -> Result<Self, Self::Error> {
        if (0.0..=2.0).contains(&it) { Ok(Self(it)) } else { Err("should be a number from 0 to 2") }
    }
}

/// The JSON schema of an object.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
pub struct ObjectSchema(pub Value);

impl TryFrom<Value> for ObjectSchema {
    type Error = &'static str;

    fn try_from(it: Value) -> Result<Self, Self::Error> {
        let is_object = it.get("type").and_then(Value::as_str) == Some("object");
        match is_object && it.get("properties").is_some_and(Value::is_object) {
            true => Ok(Self(it)),
            false => Err("should be a JSON schema with type: object and properties"),
        }
    }
}
