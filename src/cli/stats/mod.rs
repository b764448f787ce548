//! `castor stats`: what all sessions cost, did, asked and took.

mod csv;
mod fold;
pub mod json;
mod page;
mod period;
mod read;
mod sums;
mod text;
mod words;

use std::{io::Write, ops::Range};

use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;

use self::{
    sums::{StatsGroup, StatsTable},
    text::StatsScreen,
};
use crate::cli::{
    render::ansi::paint,
    sessions::{CommandContext, CommandError},
    terminal_text,
};
use castor_base::path::AbsPath;
use castor_hands::secrets::Env;

/// Sums up cost, tokens, tools, questions and time of all sessions.
#[derive(Args, Clone, Debug)]
pub struct StatsArgs {
    /// What happened from then on: a day, or how long ago (12h, 7d, 4w)
    #[arg(long, value_name = "DATE|7d")]
    pub since: Option<String>,
    /// What happened until then; a day counts whole
    #[arg(long, value_name = "DATE|7d")]
    pub until: Option<String>,
    /// Only for each of these: model, tool, folder, day [default: all four]
    #[arg(long, value_name = "GROUP", value_enum, hide_possible_values = true)]
    pub by: Option<StatsGroup>,
    /// text, html, json, csv
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t, hide_possible_values = true)]
    pub output_format: StatsFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum StatsFormat {
    /// Tables with bars
    #[default]
    Text,
    /// One file for a browser
    Html,
    /// One object, for programs
    Json,
    /// A row for each name
    Csv,
}

/// Sums, and how they are told.
pub struct StatsReport<'a> {
    table: &'a StatsTable,
    /// Logs that are not in it, in words.
    unread: &'a [String],
    groups: Vec<StatsGroup>,
    /// Unix times in milliseconds.
    period: Range<u64>,
    zone: &'a TimeZone,
    home: Option<&'a AbsPath>,
}

/// Writes the sums; what could not be read goes to `err`.
///
/// # Errors
/// With the line for stderr.
pub fn run(
    args: &StatsArgs,
    context: &mut CommandContext<'_>,
    has_blocks: bool,
    err: &mut dyn Write,
) -> Result<(), CommandError> {
    let (now, look) = (context.now, &context.look);
    let period = period::period(args.since.as_deref(), args.until.as_deref(), now, &look.zone);
    let period = period.map_err(CommandError::input)?;
    let reading = read::read(context.store, &period, &look.zone)?;
    for it in &reading.unread {
        writeln!(err, "castor: not counted: {}", terminal_text::clean(it))?;
    }
    let report = StatsReport {
        table: &reading.table,
        unread: &reading.unread,
        // A table of CSV has one kind of rows.
        groups: match (args.by, args.output_format) {
            (Some(it), _) => vec![it],
            (None, StatsFormat::Csv) => vec![StatsGroup::Day],
            (None, _) => StatsGroup::ALL.to_vec(),
        },
        period,
        zone: &look.zone,
        home: look.home.as_ref(),
    };
    let text = match args.output_format {
        StatsFormat::Text => {
            let lines = text::lines(&report, StatsScreen { width: look.width, has_blocks });
            let mut out = String::new();
            for it in &lines {
                paint(it, look.color, &mut out);
                out.push('\n');
            }
            out
        }
        StatsFormat::Html => page::html(&report, now.unix_ms),
        StatsFormat::Json => json::json(&report),
        StatsFormat::Csv => csv::csv(&report),
    };
    Ok(context.out.write_all(text.as_bytes())?)
}

/// Whether the terminal draws blocks: its texts are UTF-8, and it is not dumb.
pub fn draws_blocks(env: &Env) -> bool {
    let variable = |name: &str| env.get(name).filter(|it| !it.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    let is_utf8 = locale.is_none_or(|it| {
        let it = it.to_ascii_lowercase();
        it.contains("utf-8") || it.contains("utf8")
    });
    is_utf8 && variable("TERM") != Some("dumb")
}

#[cfg(test)]
mod tests;
