//! Optional parameters that models refused lately: kept in castor's home, by address and model, for a week.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use castor_base::{
    model_table::{Parameter, ParameterSet},
    path::AbsPath,
};
use castor_hands::disk;

/// Providers change, too.
const KEPT_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// Larger files are not ours.
const MAX_BYTES: u64 = 1 << 20;
/// The newest so many are kept.
const MAX_ROWS: usize = 1_000;

/// A parameter that a model does not take there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RefusedParameter {
    /// As `--model` takes it.
    pub model: String,
    /// Where the model was asked.
    pub address: String,
    pub parameter: Parameter,
    pub at_ms: u64,
}

impl RefusedParameter {
    /// When castor sends it again.
    pub fn until_ms(&self) -> u64 {
        self.at_ms.saturating_add(KEPT_MS)
    }
}

/// All of them, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedParameters(Vec<RefusedParameter>);

impl RefusedParameters {
    /// As they were kept, without what is older than a week. A file that cannot be read holds nothing: they are learned
    /// again. So does a row.
    pub fn read(home: &AbsPath, now_ms: u64) -> Self {
        let bytes = disk::read_head(&file(home), MAX_BYTES).unwrap_or_default();
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&bytes).unwrap_or_default();
        let rows = rows.into_iter().filter_map(|it| serde_json::from_value(it).ok());
        let is_fresh = |it: &RefusedParameter| it.at_ms <= now_ms && now_ms < it.until_ms();
        Self(rows.filter(is_fresh).collect())
    }

    /// # Errors
    /// The disk's.
    pub fn write(&self, home: &AbsPath) -> std::io::Result<()> {
        disk::write_private(&file(home), &serde_json::to_vec(&self.0)?)
    }

    pub fn rows(&self) -> &[RefusedParameter] {
        &self.0
    }

    pub fn note(&mut self, row: RefusedParameter) {
        let same =
            |it: &RefusedParameter| (&it.model, &it.address, it.parameter) == (&row.model, &row.address, row.parameter);
        self.0.retain(|it| !same(it));
        self.0.push(row);
        self.0.drain(..self.0.len().saturating_sub(MAX_ROWS));
    }

    /// Forgets those of a model, or all; says how many.
    pub fn forget(&mut self, model: Option<&str>) -> usize {
        let before = self.0.len();
        self.0.retain(|it| model.is_some_and(|model| it.model != model));
        before - self.0.len()
    }

    /// By model, of those that are asked at the same address now.
    pub fn by_model(&self, address: impl Fn(&str) -> Option<String>) -> BTreeMap<String, ParameterSet> {
        let mut res: BTreeMap<String, ParameterSet> = BTreeMap::new();
        for it in self.0.iter().filter(|it| address(&it.model).as_ref() == Some(&it.address)) {
            let known = res.entry(it.model.clone()).or_default();
            *known = known.with(it.parameter);
        }
        res
    }
}

/// Adds one to those that are kept.
///
/// # Errors
/// The disk's.
pub fn remember(home: &AbsPath, row: RefusedParameter) -> std::io::Result<()> {
    let mut kept = RefusedParameters::read(home, row.at_ms);
    kept.note(row);
    kept.write(home)
}

fn file(home: &AbsPath) -> AbsPath {
    home.join("refused-parameters.json")
}

#[cfg(test)]
mod tests {
    use super::{KEPT_MS, RefusedParameter, RefusedParameters, file, remember};
    use castor_base::{model_table::Parameter, path::AbsPath};
    use castor_hands::disk;

    fn row(model: &str, parameter: Parameter, at_ms: u64) -> RefusedParameter {
        RefusedParameter { model: model.to_owned(), address: format!("http://{model}"), parameter, at_ms }
    }

    #[test]
    fn parameters_are_kept_for_a_week_by_address_and_model() {
        let folder = tempfile::tempdir().unwrap();
        let home = AbsPath::new(folder.path()).unwrap();
        assert_eq!(RefusedParameters::read(&home, 5), RefusedParameters::default());
        for it in [row("m", Parameter::Store, 10), row("n", Parameter::TopK, 20), row("m", Parameter::Store, 30)] {
            remember(&home, it).unwrap();
        }
        let kept = RefusedParameters::read(&home, 40);
        assert_eq!(kept.rows(), [row("n", Parameter::TopK, 20), row("m", Parameter::Store, 30)]);
        let known = kept.by_model(|it| Some(format!("http://{it}")));
        assert!(known["m"].has(Parameter::Store) && !known["m"].has(Parameter::TopK) && known.len() == 2);
        assert!(kept.by_model(|_| Some("http://elsewhere".to_owned())).is_empty(), "another address may take it");
        assert_eq!(RefusedParameters::read(&home, KEPT_MS + 25).rows().len(), 1, "a week is over");
        assert_eq!(RefusedParameters::read(&home, 25).rows().len(), 1, "the clock went back");
        let mut rest = kept.clone();
        assert_eq!([rest.forget(Some("o")), rest.forget(Some("m")), rest.forget(None)], [0, 1, 1]);
        disk::write_private(
            &file(&home),
            br#"[{"model":1},{"model":"m","address":"a","parameter":"top_p","at_ms":3}]"#,
        )
        .unwrap();
        assert_eq!(RefusedParameters::read(&home, 9).rows().len(), 1, "one bad row costs one row");
        disk::write_private(&file(&home), b"{").unwrap();
        assert_eq!(RefusedParameters::read(&home, 9), RefusedParameters::default());
    }
}
