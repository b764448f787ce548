#![doc = include_str!("README.md")]

pub mod cli;
pub mod serve;
