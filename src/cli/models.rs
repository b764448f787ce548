//! `castor models`: lists the models of all providers and caches the lists for editors; replaces what castor knows of
//! models.

pub mod update;

use std::{
    io::{self, Write},
    sync::Arc,
};

use clap::{Args, Subcommand};
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::Serialize;

use self::update::UpdateArgs;
use crate::cli::{
    exits::{EXIT_AUTH, EXIT_FAILED, EXIT_INPUT},
    refused_list::{self, ForgetArgs, RefusedOutput},
};
use castor_agent::{
    model::{
        access::CredentialOverride,
        catalog::{Catalog, GEMINI},
        connection::ProcessEnvironment,
        model_factory::gemini_of,
        providers,
        refused_parameters::RefusedParameters,
    },
    server::event_loop::unix_ms,
    session::place::load_ground,
    settings::{Settings, options::Options},
};
use castor_base::{
    model::{Failure, FailureKind},
    model_table::{ModelTable, service_life::ServiceLife},
    path::AbsPath,
};
use castor_engine::routing::prices::Prices;
use castor_hands::{http::Http, secrets::Env};
use castor_models::providers::{listing::ListedModel, remote::Remote};
use castor_tools::workspace::{self, model_file};
use castor_wire::acp::session::iso_time;

/// Asks providers for their models.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ModelsArgs {
    #[command(subcommand)]
    pub verb: Option<ModelsVerb>,
    /// Only this one, such as openrouter or gemini; else all
    pub provider: Option<String>,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Debug, Subcommand)]
pub enum ModelsVerb {
    Forget(ForgetArgs),
    /// Replace what castor knows of models by a newer table
    Update(UpdateArgs),
}

/// What `castor models --json` writes: one object.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelsOutput<'a> {
    known: ModelTableFacts,
    providers: Vec<ProviderOutput<'a>>,
    /// Parameters that models refused lately: castor leaves them out.
    refused: Vec<RefusedOutput<'a>>,
}

/// Age and source of what castor knows of models by itself.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModelTableFacts {
    /// The day on which its rows were read.
    date: String,
    /// The user's file; absent: castor's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    rows: usize,
    /// Patterns of names that no page of a maker confirms.
    unconfirmed: Vec<String>,
}

/// The answer of a provider, or why there is none.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProviderOutput<'a> {
    provider: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    models: Option<Vec<ModelOutput<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ModelOutput<'a> {
    /// As `--model` takes it.
    id: String,
    name: Option<&'a str>,
    /// In tokens.
    context_window: Option<u64>,
    /// The first day without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    retires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    successor: Option<&'a str>,
}

/// The output streams.
pub struct ModelStreams<'a> {
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
}

type ListedModels = (String, Result<Vec<ListedModel>, Failure>);

/// Prints the lists; 0 if any of the asked providers answered.
///
/// # Errors
/// The output's.
pub fn run(args: &ModelsArgs, env: &Env, cwd: &AbsPath, streams: &mut ModelStreams<'_>) -> io::Result<u8> {
    let home = workspace::castor_home(env);
    match (&args.verb, &home) {
        (Some(ModelsVerb::Update(it)), _) => return update::run(it, env, cwd, streams),
        (Some(ModelsVerb::Forget(it)), Some(home)) => {
            return refused_list::forget(it, (home, unix_ms()), streams.out);
        }
        _ => (),
    }
    let (ground, settings) = load_ground(&Options::default(), env, cwd);
    let http = Arc::new(Http::new(ProcessEnvironment::of(env).link(&settings.models.connection)));
    let mut names: Vec<&str> = settings.models.providers.iter().map(|it| it.name.as_str()).collect();
    names.insert(0, GEMINI);
    if let Some(wanted) = args.provider.as_deref() {
        names.retain(|it| *it == wanted);
    }
    if names.is_empty() {
        let wanted = args.provider.as_deref().unwrap_or_default();
        _ = writeln!(streams.err, "castor: {}", providers::unknown_provider(&settings, wanted));
        return Ok(EXIT_INPUT);
    }
    let asked = names.into_iter().map(|it| ask_provider(it, &settings, &ground.env, http.clone()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let found = match runtime {
        Ok(it) => it.block_on(join_all(asked)),
        Err(it) => {
            _ = writeln!(streams.err, "castor: cannot start: {it}");
            return Ok(EXIT_FAILED);
        }
    };
    let kept = home.as_ref().and_then(|it| Some((Catalog::read(it), Catalog::saved_at_ms(it)?)));
    save_listing(env, &found, streams);
    let refused = home.as_ref().map(|it| RefusedParameters::read(it, unix_ms())).unwrap_or_default();
    let known = ModelKnowledge { models: &ground.models, prices: &settings.models.prices, home };
    let text = match args.json {
        true => as_json(&found, &known, &refused),
        false => as_text(&found, &known) + &refused_list::as_text(&refused),
    };
    streams.out.write_all(text.as_bytes())?;
    if !args.json {
        _ = writeln!(streams.err, "{}", known.in_words());
    }
    for (name, failure) in found.iter().filter_map(|(name, it)| Some((name, it.as_ref().err()?))) {
        _ = writeln!(streams.err, "{name}: {}", failure.message);
        if let Some((_, at)) = kept.as_ref().filter(|(lists, _)| !args.json && lists.has_list(name)) {
            let day = iso_time(*at).split('T').next().unwrap_or_default().to_owned();
            _ = writeln!(streams.err, "{name}: editors offer the list that castor kept before, of {day} or older");
        }
    }
    Ok(exit_code(&found))
}

async fn ask_provider(name: &str, settings: &Settings, env: &Env, http: Arc<Http>) -> ListedModels {
    let remote = remote(name, settings, env, http);
    let listed = match remote.map_err(|it| Failure::new(FailureKind::Auth, it)) {
        Ok(it) => it.list().await,
        Err(it) => Err(it),
    };
    (name.to_owned(), listed)
}

fn remote(name: &str, settings: &Settings, env: &Env, http: Arc<Http>) -> Result<Remote, String> {
    match settings.models.providers.iter().find(|it| it.name == name) {
        Some(it) => providers::generator(it, env, http),
        None => gemini_of(env, settings, &CredentialOverride::default(), http),
    }
}

fn save_listing(env: &Env, found: &[ListedModels], streams: &mut ModelStreams<'_>) {
    let Some(home) = workspace::castor_home(env) else { return };
    let mut catalog = Catalog::read(&home);
    for (name, listed) in found.iter().filter_map(|(name, it)| Some((name, it.as_ref().ok()?))) {
        catalog.set(name, listed.clone());
    }
    if let Err(it) = catalog.write(&home) {
        _ = writeln!(streams.err, "castor: the lists could not be kept: {it}");
    }
}

/// As `--model` takes it.
fn model_flag(provider: &str, id: &str) -> String {
    if provider == GEMINI { id.to_owned() } else { format!("{provider}/{id}") }
}

/// What castor knows of models by itself.
struct ModelKnowledge<'a> {
    models: &'a ModelTable,
    prices: &'a Prices,
    home: Option<AbsPath>,
}

impl ModelKnowledge<'_> {
    /// The end of a model, where it is asked at its maker's own service.
    fn life(&self, model: &str) -> Option<&ServiceLife> {
        let row = self.models.row(model).filter(|it| self.prices.is_makers(model, it, self.models))?;
        row.life.retires.map(|_| &row.life)
    }

    /// Whether no page of a maker confirms what castor knows of a model.
    fn is_unconfirmed(&self, model: &str) -> bool {
        self.models.row(model).is_some_and(|it| !it.source.confirmed)
    }

    fn output(&self) -> ModelTableFacts {
        let unconfirmed = self.models.rows.iter().filter(|it| !it.source.confirmed);
        ModelTableFacts {
            date: self.models.date().to_string(),
            file: self.file().map(|it| it.to_string()),
            rows: self.models.rows.len(),
            unconfirmed: unconfirmed.map(|it| it.id.as_str().to_owned()).collect(),
        }
    }

    fn file(&self) -> Option<AbsPath> {
        let is_own = std::ptr::eq(self.models, &*ModelTable::built_in());
        self.home.as_ref().filter(|_| !is_own).map(model_file::path)
    }

    fn in_words(&self) -> String {
        let ModelTableFacts { date, file, rows, unconfirmed } = self.output();
        let from = file.unwrap_or_else(|| "brought along".to_owned());
        let names = match &unconfirmed[..] {
            [] => String::new(),
            all => format!("; no page of a maker confirms {}", all.join(", ")),
        };
        format!("castor itself knows {rows} rows of models, of {date} ({from}){names}.")
    }
}

fn as_text(found: &[ListedModels], known: &ModelKnowledge<'_>) -> String {
    let line = |provider: &str, it: &ListedModel| {
        let id = model_flag(provider, &it.id);
        let window = it.window.map(|it| format!("  {it} tokens")).unwrap_or_default();
        let name = it.name.as_deref().map(|it| format!("  {it}")).unwrap_or_default();
        let end = known.life(&id).and_then(|it| {
            let then = it.successor.as_deref().map(|it| format!(", then {it}")).unwrap_or_default();
            Some(format!("  until {}{then}", it.retires?))
        });
        let mark = if known.is_unconfirmed(&id) { "  unconfirmed" } else { "" };
        format!("{id:<40}{name}{window}{}{mark}\n", end.unwrap_or_default())
    };
    let listed = found.iter().filter_map(|(name, it)| Some((name, it.as_ref().ok()?)));
    listed.flat_map(|(name, it)| it.iter().map(move |it| line(name, it))).collect()
}

fn as_json(found: &[ListedModels], known: &ModelKnowledge<'_>, refused: &RefusedParameters) -> String {
    let providers = found.iter().map(|(name, it)| ProviderOutput {
        provider: name,
        models: it.as_ref().ok().map(|listed| listed.iter().map(|it| model_output(name, it, known)).collect()),
        error: it.as_ref().err().map(|it| it.message.as_str()),
    });
    let refused = refused_list::as_json(refused);
    // Structs can always be written.
    let output = ModelsOutput { known: known.output(), providers: providers.collect(), refused };
    serde_json::to_string(&output).unwrap_or_default() + "\n"
}

fn model_output<'a>(provider: &str, it: &'a ListedModel, known: &'a ModelKnowledge<'_>) -> ModelOutput<'a> {
    let id = model_flag(provider, &it.id);
    let life = known.life(&id);
    ModelOutput {
        name: it.name.as_deref(),
        context_window: it.window,
        retires: life.and_then(|it| it.retires).map(|it| it.to_string()),
        successor: life.and_then(|it| it.successor.as_deref()),
        id,
    }
}

fn exit_code(found: &[ListedModels]) -> u8 {
    let failures = || found.iter().filter_map(|(_, it)| it.as_ref().err());
    match (found.iter().any(|(_, it)| it.is_ok()), failures().all(|it| it.kind == FailureKind::Auth)) {
        (true, _) => 0,
        (false, true) => EXIT_AUTH,
        (false, false) => EXIT_FAILED,
    }
}
