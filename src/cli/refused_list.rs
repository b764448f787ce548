//! List of parameters that models refused lately, for `castor models`, and the verb `forget`.

use std::io::{self, Write};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::{exits::EXIT_FAILED, terminal_text::escape_line};
use castor_agent::model::refused_parameters::{RefusedParameter, RefusedParameters};
use castor_base::{clock::Now, model_table::Parameter, path::AbsPath};

/// Forgets which parameters models refused: castor sends them again
#[derive(Args, Clone, Debug)]
pub struct ForgetArgs {
    /// Of this model only, as `--model` takes it; else of all
    pub model: Option<String>,
}

/// A parameter that a model refused, in `castor models --json`.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusedOutput<'a> {
    model: &'a str,
    address: &'a str,
    parameter: Parameter,
    /// The day until which castor leaves it out.
    until: String,
}

pub fn as_json(kept: &RefusedParameters) -> Vec<RefusedOutput<'_>> {
    let row = |it: &'_ RefusedParameter| until(it);
    let rows = kept.rows().iter();
    rows.map(|it| RefusedOutput { model: &it.model, address: &it.address, parameter: it.parameter, until: row(it) })
        .collect()
}

pub fn as_text(kept: &RefusedParameters) -> String {
    let line = |it: &RefusedParameter| {
        let model = escape_line(&it.model);
        format!("{model:<40}  is asked without `{}` until {}\n", it.parameter.as_str(), until(it))
    };
    let lines: String = kept.rows().iter().map(line).collect();
    let hint = "`castor models forget MODEL` ends this.\n";
    if lines.is_empty() { lines } else { format!("\nWhat models refused lately:\n{lines}{hint}") }
}

fn until(it: &RefusedParameter) -> String {
    Now { unix_ms: it.until_ms(), seed: 0 }.date()
}

/// # Errors
/// The output's.
pub fn forget(args: &ForgetArgs, (home, now_ms): (&AbsPath, u64), out: &mut dyn Write) -> io::Result<u8> {
    let mut kept = RefusedParameters::read(home, now_ms);
    let n = kept.forget(args.model.as_deref());
    if n > 0
        && let Err(why) = kept.write(home)
    {
        return writeln!(out, "castor: the list could not be written: {why}").map(|()| EXIT_FAILED);
    }
    let of = args.model.as_deref().map(|it| format!(" of {}", escape_line(it))).unwrap_or_default();
    match n {
        0 => writeln!(out, "No refused parameter{of} is kept; `castor models` lists them."),
        1 => writeln!(out, "1 refused parameter{of} is forgotten. Sessions that run keep what they know."),
        n => writeln!(out, "{n} refused parameters{of} are forgotten. Sessions that run keep what they know."),
    }
    .map(|()| 0)
}
