//! `castor sessions list`: a table for people, as wide as the terminal, and JSON for programs.

use std::iter;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    CommandContext, CommandError,
    export::{AgentLogs, plain_title},
    ids::ShortIds,
    time,
    tree::{self, ListedAgent},
};
use crate::cli::{
    render::{
        ansi::paint,
        columns::{self, TableColumn, cut, cut_start, in_home},
        text::{Color, Line, Style},
    },
    terminal_text::{clean_line, escape_line},
};
use castor_base::{ids::SessionId, money::Money, path::AbsPath};
use castor_store::sessions::{LogExtent, SessionDetails, SessionSummary};
use castor_wire::acp::session::iso_time;

/// Sessions that a table shows unless told otherwise.
pub const DEFAULT_ROWS: usize = 20;
/// Columns that a title has at least, before other columns give way to it.
const MIN_TITLE: usize = 20;
const MAX_MODEL: usize = 24;
/// The same on a narrow terminal.
const SHORT_MODEL: usize = 18;
const NARROW: usize = 100;
const MAX_FOLDER: usize = 32;
/// Characters of a title that are looked at.
const MAX_TITLE: usize = 400;
/// Room for a number before a row.
const NUMBER: &str = "    ";

/// Which sessions are listed.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// `None`: of all folders.
    pub cwd: Option<AbsPath>,
    /// Words of the title or of a prompt.
    pub search: Option<String>,
    /// 0: all of them.
    pub n_rows: Option<usize>,
    pub with_agents: bool,
}

/// What `castor sessions list --json` writes: one list, newest first.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
pub struct SessionsOutput<'a>(Vec<SessionOutput<'a>>);

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SessionOutput<'a> {
    session_id: &'a SessionId,
    /// The end of the id that no other session has.
    short_id: &'a str,
    cwd: &'a AbsPath,
    title: Option<&'a str>,
    updated_at: String,
    model: Option<&'a str>,
    /// In US dollars.
    cost: Option<Money>,
    turns: usize,
    /// False: the log is so long that only a part of its turns was counted.
    turns_are_all: bool,
    /// Its sub-agents, with `--tree`.
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<Vec<ListedAgent<'a>>>,
}

/// A session with what the table says of it.
struct ListedSession {
    summary: SessionSummary,
    details: SessionDetails,
    /// Of its sub-agents, where they are wanted.
    agents: Option<AgentLogs>,
}

pub fn list(context: &mut CommandContext<'_>, query: &ListQuery, as_json: bool) -> Result<(), CommandError> {
    let all = context.store.list(None)?;
    let short = ShortIds::new(all.iter().map(|it| it.id.as_str()));
    // Where nothing was asked there is nothing to come back to.
    let is_worth = |it: &SessionSummary| match &query.cwd {
        Some(cwd) => it.cwd == *cwd && it.has_prompts,
        None => true,
    };
    let found: Vec<_> = all.into_iter().filter(is_worth).collect();
    let default = if as_json { 0 } else { DEFAULT_ROWS };
    let n_rows = match query.n_rows.unwrap_or(default) {
        0 => usize::MAX,
        it => it,
    };
    let (mut rows, n_more) = match &query.search {
        Some(words) => search(context, found, words, n_rows),
        None => first_rows(context, found, n_rows),
    };
    for it in rows.iter_mut().filter(|_| query.with_agents) {
        it.agents = Some(AgentLogs::below_session(context.store, &it.summary.id));
    }
    if as_json {
        let rows = SessionsOutput(rows.iter().map(|it| describe(it, &short)).collect());
        // Structs can always be written.
        return Ok(writeln!(context.out, "{}", serde_json::to_string(&rows).unwrap_or_default())?);
    }
    let lines = match rows.is_empty() {
        true => vec![Line::plain(&nothing_found(query))],
        false => table(context, &rows, &short, query.cwd.is_none(), context.look.width),
    };
    let mut out = String::new();
    for line in &lines {
        paint(line, context.look.color, &mut out);
        out.push('\n');
    }
    if n_more > 0 {
        paint(&Line::new(&format!("… {n_more} more: -n 0 shows all"), Style::DIM), context.look.color, &mut out);
        out.push('\n');
    }
    Ok(context.out.write_all(out.as_bytes())?)
}

/// The newest sessions of the folder, with a numbered table of them.
pub fn choices(context: &CommandContext<'_>, n: usize) -> Result<(Vec<SessionId>, String), CommandError> {
    let all = context.store.list(None)?;
    let short = ShortIds::new(all.iter().map(|it| it.id.as_str()));
    let here = all.into_iter().filter(|it| it.cwd == *context.cwd && it.has_prompts).collect();
    let (rows, _) = first_rows(context, here, n);
    let width = context.look.width.saturating_sub(NUMBER.len());
    let lines = table(context, &rows, &short, false, width);
    let mut out = String::new();
    let numbers = (1..=rows.len()).map(|it| format!("{it:>2}  "));
    for (number, line) in iter::once(NUMBER.to_owned()).chain(numbers).zip(lines) {
        out.push_str(&number);
        paint(&line, context.look.color, &mut out);
        out.push('\n');
    }
    Ok((rows.into_iter().map(|it| it.summary.id).collect(), out))
}

fn nothing_found(query: &ListQuery) -> String {
    let cwd = query.cwd.as_ref().map(|it| escape_line(&it.to_string()));
    match (&query.search, cwd) {
        (Some(words), Some(cwd)) => format!("No session of {cwd} says {words:?}; --all searches those of all folders"),
        (Some(words), None) => format!("No session says {words:?}"),
        (None, Some(cwd)) => format!("No session of {cwd}; --all lists those of all folders"),
        (None, None) => "No sessions".to_owned(),
    }
}

/// The newest sessions, and how many more there are.
fn first_rows(context: &CommandContext<'_>, found: Vec<SessionSummary>, n: usize) -> (Vec<ListedSession>, usize) {
    let n_more = found.len().saturating_sub(n);
    let details = |it: &SessionSummary| context.store.details(&it.id, LogExtent::Bounded).unwrap_or_default();
    let rows = found.into_iter().take(n).map(|it| ListedSession { details: details(&it), summary: it, agents: None });
    (rows.collect(), n_more)
}

/// The same of those that say the words, in any case of letters.
fn search(
    context: &CommandContext<'_>,
    found: Vec<SessionSummary>,
    words: &str,
    n: usize,
) -> (Vec<ListedSession>, usize) {
    let words = words.to_lowercase();
    let says = |text: &str| text.to_lowercase().contains(&words);
    let (mut rows, mut n_more) = (Vec::new(), 0);
    for summary in found {
        let details = context.store.details(&summary.id, LogExtent::Whole).unwrap_or_default();
        if !summary.title.as_deref().is_some_and(says) && !details.prompts.iter().any(|it| says(it)) {
            continue;
        }
        match rows.len() < n {
            true => rows.push(ListedSession { summary, details, agents: None }),
            false => n_more += 1,
        }
    }
    (rows, n_more)
}

fn describe<'a>(it: &'a ListedSession, short: &'a ShortIds) -> SessionOutput<'a> {
    let ListedSession { summary, details, agents } = it;
    SessionOutput {
        session_id: &summary.id,
        short_id: short.short(summary.id.as_str()),
        cwd: &summary.cwd,
        title: summary.title.as_deref(),
        updated_at: iso_time(summary.updated_ms),
        model: details.model.as_deref(),
        cost: details.cost,
        turns: details.prompts.len(),
        turns_are_all: !details.is_partial,
        agents: agents.as_ref().map(|it| tree::outputs(it, &summary.id, 0)),
    }
}

fn table(
    context: &CommandContext<'_>,
    rows: &[ListedSession],
    short: &ShortIds,
    with_folder: bool,
    width: usize,
) -> Vec<Line> {
    let mut columns = columns(context, rows, short, with_folder);
    let room = columns::fit(&mut columns, MIN_TITLE, width).max(MIN_TITLE);
    let mut heading = columns::headings(&columns);
    heading.push("TITLE", Style::BOLD);
    let mut lines = vec![heading];
    for (at, row) in rows.iter().enumerate() {
        let mut line = columns::row(&columns, at);
        let (title, style) = match (&row.summary.title, row.summary.has_prompts) {
            (Some(title), _) => (clean_line(&plain_title(title), MAX_TITLE), Style::PLAIN),
            (None, true) => ("(no title)".to_owned(), Style::DIM),
            (None, false) => ("(nothing was asked)".to_owned(), Style::DIM),
        };
        line.push(&cut(&title, room), style);
        lines.push(line);
        if let Some(logs) = &row.agents {
            lines.extend(tree::lines(logs, &row.summary.id, 0, width));
        }
    }
    lines
}

fn columns(
    context: &CommandContext<'_>,
    rows: &[ListedSession],
    short: &ShortIds,
    with_folder: bool,
) -> Vec<TableColumn> {
    let cells = |of: &dyn Fn(&ListedSession) -> String| rows.iter().map(of).collect();
    let n_turns =
        |it: &ListedSession| format!("{}{}", it.details.prompts.len(), if it.details.is_partial { "+" } else { "" });
    let max_model = if context.look.width < NARROW { SHORT_MODEL } else { MAX_MODEL };
    let model = |it: &ListedSession| it.details.model.as_deref().map(|it| cut(&clean_line(it, MAX_TITLE), max_model));
    let cost = |it: &ListedSession| it.details.cost.map(|it| it.in_words()).unwrap_or_else(|| "-".to_owned());
    let when = |it: &ListedSession| time::ago(it.summary.updated_ms, context.now.unix_ms, &context.look.zone);
    let id = |it: &ListedSession| short.short(it.summary.id.as_str()).to_owned();
    let mut res = vec![
        TableColumn { is_needed: true, ..TableColumn::new("ID", cells(&id), Style::color(Color::Cyan)) },
        TableColumn { is_needed: true, ..TableColumn::new("WHEN", cells(&when), Style::DIM) },
    ];
    if with_folder {
        let home = context.look.home.as_ref();
        let folder = |it: &ListedSession| cut_start(&escape_line(&in_home(&it.summary.cwd, home)), MAX_FOLDER);
        res.push(TableColumn::new("FOLDER", cells(&folder), Style::DIM));
    }
    res.push(TableColumn { is_number: true, ..TableColumn::new("COST", cells(&cost), Style::PLAIN) });
    res.push(TableColumn::new("MODEL", cells(&|it| model(it).unwrap_or_default()), Style::DIM));
    res.push(TableColumn { is_number: true, ..TableColumn::new("TURNS", cells(&n_turns), Style::PLAIN) });
    res
}
