//! `castor models update`: a newer table of models, from a file or an address that the user names.

use std::{io, sync::Arc};

use clap::Args;
use url::Url;

use super::ModelStreams;
use crate::cli::exits::{EXIT_FAILED, EXIT_INPUT};
use castor_agent::{model::connection::ProcessEnvironment, session::place::load_ground, settings::options::Options};
use castor_base::{model_table::ModelTable, path::AbsPath};
use castor_hands::{
    disk,
    http::{self, Http, safe_host},
    secrets::Env,
};
use castor_tools::workspace::{castor_home, model_file};

/// Replaces what castor knows of models by a newer table.
#[derive(Args, Clone, Debug)]
pub struct UpdateArgs {
    /// A file, or an http(s) address, in the form of castor's own models.toml
    #[arg(value_name = "FILE|URL")]
    pub source: String,
}

/// # Errors
/// The output's.
pub fn run(args: &UpdateArgs, env: &Env, cwd: &AbsPath, streams: &mut ModelStreams<'_>) -> io::Result<u8> {
    match update(&args.source, env, cwd) {
        Ok(said) => writeln!(streams.out, "{said}").map(|()| 0),
        Err((code, why)) => {
            _ = writeln!(streams.err, "castor: {}: {why}. Nothing was changed.", args.source);
            Ok(code)
        }
    }
}

/// What was done, or the exit code and why it was not.
fn update(source: &str, env: &Env, cwd: &AbsPath) -> Result<String, (u8, String)> {
    let home = castor_home(env).ok_or((EXIT_FAILED, "there is no home folder to keep it in".to_owned()))?;
    let bytes = match Url::parse(source).ok().filter(|it| matches!(it.scheme(), "http" | "https")) {
        Some(url) => download(&url, env, cwd).map_err(|it| (EXIT_FAILED, it))?,
        None => disk::read_head(&cwd.join(source), model_file::MAX_BYTES).map_err(|it| (EXIT_INPUT, it.to_string()))?,
    };
    let text = String::from_utf8(bytes).map_err(|_| (EXIT_INPUT, "it is no text in UTF-8".to_owned()))?;
    let table = ModelTable::parse(&text).map_err(|it| (EXIT_INPUT, format!("no table of models: {it}")))?;
    let before = model_file::read(Some(&home), &mut Vec::new()).date();
    if table.date() < before {
        let why = format!("it is of {}, and what castor knows is newer, of {before}", table.date());
        return Err((EXIT_INPUT, why));
    }
    let file = model_file::path(&home);
    model_file::write(&home, &text).map_err(|it| (EXIT_FAILED, format!("{file}: {it}")))?;
    let (n, day) = (table.rows.len(), table.date());
    Ok(format!("{n} rows of {day} replace what castor knew of models, of {before}. They are in {file}."))
}

fn download(url: &Url, env: &Env, cwd: &AbsPath) -> Result<Vec<u8>, String> {
    let (_, settings) = load_ground(&Options::default(), env, cwd);
    let http = Arc::new(Http::new(ProcessEnvironment::of(env).link(&settings.models.connection)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|it| it.to_string())?;
    runtime.block_on(async {
        let client = http.client_for(url, true).map_err(|it| it.message)?;
        let mut response = http.send(client.get(url.clone()), url).await.map_err(|it| it.message)?;
        let status = response.status();
        let max = usize::try_from(model_file::MAX_BYTES).unwrap_or(usize::MAX);
        let body = http::read_head(&mut response, max).await;
        match status.is_success() {
            true => Ok(body),
            false => Err(format!("{} answered with status {}", safe_host(url), status.as_u16())),
        }
    })
}
