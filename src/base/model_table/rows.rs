//! Rows of a model table in the order in which a model is looked up: by the first letter, then the longest pattern.

use std::{collections::BTreeMap, ops::Deref};

use serde::Deserialize;

use super::{name_pattern::ModelName, row::ModelRow};

/// What patterns that fit any first letter begin with.
const ANY: u8 = b'*';

/// Rows as the file has them. Each request looks its model up several times, so no lookup tries them all.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Vec<ModelRow>")]
pub struct ModelRows {
    rows: Vec<ModelRow>,
    /// Places in `rows` by the first letter of the pattern, the row that wins first.
    by_letter: BTreeMap<u8, Vec<usize>>,
}

impl ModelRows {
    /// The row whose pattern fits best: the longest, and of two such the last.
    pub fn of(&self, model: &str) -> Option<&ModelRow> {
        let name = ModelName::of(model);
        let best = |letter: u8| {
            let places = self.by_letter.get(&letter).into_iter().flatten();
            let mut rows = places.filter_map(|it| Some((*it, self.rows.get(*it)?)));
            rows.find(|(_, it)| it.id.fits(&name))
        };
        let both = [best(name.first_letter()), best(ANY)].into_iter().flatten();
        both.max_by_key(|(place, it)| (it.id.weight(), *place)).map(|it| it.1)
    }
}

impl From<Vec<ModelRow>> for ModelRows {
    fn from(rows: Vec<ModelRow>) -> Self {
        let mut order: Vec<_> =
            rows.iter().map(|it| it.id.weight()).enumerate().map(|(at, weight)| (weight, at)).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        let mut by_letter: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
        for (row, place) in order.iter().filter_map(|(_, at)| Some((rows.get(*at)?, *at))) {
            by_letter.entry(row.id.first_letter()).or_default().push(place);
        }
        Self { rows, by_letter }
    }
}

impl Deref for ModelRows {
    type Target = [ModelRow];

    fn deref(&self) -> &[ModelRow] {
        &self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::{super::ModelTable, ModelName};

    /// Looking up by letters finds what trying each row finds.
    #[test]
    fn the_order_changes_no_answer() {
        let rows = |ids: &[&str]| {
            let rows: String = ids.iter().map(|it| format!("[[model]]\nid = \"{it}\"\nfamily = \"a\"\n")).collect();
            ModelTable::parse(&format!("date = \"2026-01-01\"\ndefault = \"{}\"\n[family.a]\n{rows}", ids[0])).unwrap()
        };
        let odd = rows(&["a", "A*", "*b", "*", "a-b", "a-b", "a*b", "", "é*"]);
        for table in [&odd, &ModelTable::built_in()] {
            let ids = table.rows.iter().map(|it| it.id.as_str().replace('*', "x"));
            let more =
                ["", "A", "ab", "x-b", "é", "v1", "-20250514", "openrouter/a/b", "gpt-5-2025-08-07", "claude-opus-4.5"];
            for model in ids.chain(more.map(str::to_owned)) {
                let name = ModelName::of(&model);
                let all = table.rows.iter().enumerate().filter(|(_, it)| it.id.fits(&name));
                let expected = all.max_by_key(|(_, it)| it.id.weight()).map(|it| it.0);
                let found =
                    table.rows.of(&model).and_then(|it| table.rows.iter().position(|row| std::ptr::eq(row, it)));
                assert_eq!(found, expected, "{model}");
            }
        }
    }
}
