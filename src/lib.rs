#![doc = include_str!("README.md")]
#![warn(clippy::todo, clippy::dbg_macro)]

pub mod app;
pub mod base;
pub mod client;
pub mod engine;
pub mod wire;
pub mod world;
