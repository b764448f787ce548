//! Router state of a turn: the chosen model, and how long the choice holds.

use std::collections::BTreeMap;

use crate::{
    record::Record,
    routing::{
        ModelRoute,
        task_classifier::{Classification, ClassifierModel},
    },
};
use castor_base::log::Mode;

/// Where the requests of a turn go, as far as that is not the session's model itself.
#[derive(Debug, Default)]
pub(in crate::turn) struct Router {
    /// Another model than the configured one, which is named first: for the rest of this turn.
    pub instead: Option<(String, String)>,
    sequence: Option<Sequence>,
    /// Classifications since the last decision.
    pub judged: BTreeMap<ClassifierModel, Result<Classification, String>>,
}

/// A model that was found. A new prompt is a new turn, and has none.
#[derive(Debug)]
struct Sequence {
    route: ModelRoute,
    holds: RouteScope,
}

/// What a decision was made for: it holds as long as this stays so.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RouteScope {
    /// The session's model, as the user calls it.
    model: String,
    /// Plans, and work without questions, are other work.
    plans: bool,
    is_yolo: bool,
}

impl RouteScope {
    fn of(record: &Record) -> Self {
        let (model, mode) = (record.model.clone(), record.mode);
        Self { model, plans: mode == Mode::Plan, is_yolo: mode == Mode::Yolo }
    }
}

impl Router {
    pub fn begin(instead: Option<(String, String)>) -> Self {
        Self { instead, ..Self::default() }
    }

    /// For all calls that follow, until a new prompt, another model or another kind of mode.
    pub fn hold(&mut self, record: &Record, route: ModelRoute) {
        self.judged.clear();
        self.sequence = Some(Sequence { route, holds: RouteScope::of(record) });
    }

    /// What was found, where it still holds.
    pub fn found(&self, record: &Record) -> Option<&ModelRoute> {
        self.sequence.as_ref().filter(|it| it.holds == RouteScope::of(record)).map(|it| &it.route)
    }

    /// What `model` is called where its parameters are looked up.
    pub fn name<'a>(&'a self, record: &'a Record, model: &str) -> &'a str {
        let found = self.found(record).filter(|it| *it.model == *model);
        found.map_or(record.model.as_str(), |it| it.name.as_str())
    }
}
