//! `castor schema`: JSON Schemas of castor's files and messages, generated from the types.

use std::io::{self, Write};

use clap::Args;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use crate::cli::{
    auth::AuthOutput,
    doctor::DoctorOutput,
    exits::EXIT_INPUT,
    models::ModelsOutput,
    run::{report::RunOutput, stream_json::StreamLine},
    sessions::{export::ExportOutput, list::SessionsOutput},
    stats::json::StatsOutput,
};
use castor_agent::settings;
use castor_base::{
    agent::{AgentDescriptor, AgentList},
    event::AgentEvent,
    log::Entry,
};
use castor_wire::acp::{drafts::Drafts, meta::MetaPlaces, own::own_methods::Methods};

/// Prints a JSON Schema.
#[derive(Args, Clone, Debug)]
pub struct SchemaArgs {
    /// Which one; without a name they are listed
    pub name: Option<String>,
}

/// A schema with a name, which is also that of its file in `schema/`.
pub struct PublishedSchema {
    pub name: &'static str,
    pub about: &'static str,
    make: fn() -> Value,
}

pub const SCHEMAS: &[PublishedSchema] = &[
    PublishedSchema { name: "settings", about: "settings.json, for editors", make: settings::schema },
    PublishedSchema { name: "log", about: "each line of a session's log", make: of::<Entry> },
    PublishedSchema {
        name: "events",
        about: "AgentEvents, as `run --output-format events` prints them",
        make: written::<AgentEvent>,
    },
    PublishedSchema {
        name: "run",
        about: "the object that `run --output-format json` prints",
        make: written::<RunOutput>,
    },
    PublishedSchema {
        name: "stream",
        about: "each line that `run --output-format stream-json` prints",
        make: written::<StreamLine>,
    },
    PublishedSchema { name: "doctor", about: "the object that `doctor --json` prints", make: of::<DoctorOutput> },
    PublishedSchema {
        name: "sessions",
        about: "the list that `sessions list --json` prints",
        make: of::<SessionsOutput>,
    },
    PublishedSchema {
        name: "export",
        about: "the object that `sessions export --format json` writes",
        make: of::<ExportOutput>,
    },
    PublishedSchema { name: "stats", about: "the object that `stats -o json` writes", make: of::<StatsOutput> },
    PublishedSchema { name: "auth", about: "the object that `auth status --json` prints", make: of::<AuthOutput> },
    PublishedSchema { name: "models", about: "the object that `models --json` prints", make: of::<ModelsOutput> },
    PublishedSchema {
        name: "agent",
        about: "what hosts, users and models learn of a sub-agent",
        make: of::<AgentDescriptor>,
    },
    PublishedSchema { name: "agents", about: "the object that `agents list --json` prints", make: of::<AgentList> },
    PublishedSchema { name: "meta", about: "what castor reads and writes in _meta", make: of::<MetaPlaces> },
    PublishedSchema { name: "methods", about: "castor's own methods of the protocol", make: of::<Methods> },
    PublishedSchema { name: "drafts", about: "what castor has of drafts of the protocol", make: of::<Drafts> },
];

impl PublishedSchema {
    pub fn text(&self) -> String {
        // Values have no keys that are not texts.
        serde_json::to_string_pretty(&(self.make)()).unwrap_or_default() + "\n"
    }
}

/// The schema of that name; null: there is none.
pub fn value(name: &str) -> Value {
    SCHEMAS.iter().find(|it| it.name == name).map(|it| (it.make)()).unwrap_or_default()
}

fn of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value()
}

/// As castor writes it; what it reads may be of an older one.
fn written<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>().to_value()
}

/// Returns the exit code: 0, or that of bad input for a name that nothing has.
pub fn run(args: &SchemaArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let list: String = SCHEMAS.iter().map(|it| format!("{:<9} {}\n", it.name, it.about)).collect();
    let Some(name) = &args.name else {
        out.write_all(list.as_bytes())?;
        return Ok(0);
    };
    match SCHEMAS.iter().find(|it| it.name == name) {
        Some(it) => out.write_all(it.text().as_bytes()).map(|()| 0),
        None => write!(err, "castor: there is no schema {name:?}; there are:\n{list}").map(|()| EXIT_INPUT),
    }
}
