//! castor's own names of models: from the table, and on a day: none leads to a model after its last one.

use std::sync::Arc;

use jiff::civil::Date;

use super::{Alias, Aliases, ModelConfig};
use castor_base::model_table::{AliasRow, AutoModels, ModelTable};

impl Aliases {
    /// The same with another table.
    #[must_use]
    pub fn knowing(mut self, models: Arc<ModelTable>) -> Self {
        if !Arc::ptr_eq(&self.models, &models) {
            self.models = models;
            let own = &self.own_names;
            Arc::make_mut(&mut self.aliases).retain(|it, _| own.contains(it));
            self.add_built_in();
        }
        self
    }

    /// The same on a day: castor's own names move on to what is served then.
    #[must_use]
    pub fn on(mut self, day: Date) -> Self {
        if self.day != day {
            self.day = day;
            self.add_built_in();
        }
        self
    }

    /// As of this day.
    pub fn day(&self) -> Date {
        self.day
    }

    pub(super) fn add_built_in(&mut self) {
        let aliases = Arc::make_mut(&mut self.aliases);
        for row in self.models.aliases.iter().filter(|it| !self.own_names.contains(&it.name)) {
            let model = row.model.as_deref().or(row.auto.as_ref().map(|it| it.pro.as_str()));
            // What is for hard work may be a name itself.
            let model = model.map(|it| self.models.alias(it).and_then(|it| it.model.as_deref()).unwrap_or(it));
            let model = model.map(|it| self.models.served(it, self.day).to_owned());
            let config = ModelConfig { model, generation: row.generation.clone() };
            aliases.insert(row.name.clone(), Alias { extends: row.extends.clone(), config });
        }
        let served = |it: &str| match self.models.alias(it) {
            Some(_) => it.to_owned(),
            None => self.models.served(it, self.day).to_owned(),
        };
        let own = |it: &&AliasRow| !self.own_names.contains(&it.name);
        let autos = self.models.aliases.iter().filter(own).filter_map(|row| {
            let AutoModels { pro, flash } = row.auto.as_ref()?;
            Some((row.name.clone(), AutoModels { pro: served(pro), flash: served(flash) }))
        });
        self.autos = autos.collect();
    }

    /// The model where nobody names one.
    pub fn default_model(&self) -> &str {
        self.models.default_model(self.day)
    }

    /// The models on offer where no provider gave its list, best first, and their names.
    pub fn offered_models(&self) -> Vec<(String, String)> {
        self.models.offered(self.day)
    }

    /// castor's own meaning of a name.
    pub fn built_in(&self, name: &str) -> Option<&AliasRow> {
        self.models.alias(name).filter(|_| self.knows(name) && !self.own_names.contains(name))
    }

    /// What the router chooses from, where the name leaves it to that.
    pub fn auto(&self, name: &str) -> Option<&AutoModels> {
        self.autos.get(name)
    }
}
