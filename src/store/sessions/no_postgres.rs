//! Without the feature `postgres` there is no shared store, and none of these can be made.

use std::{collections::HashMap, convert::Infallible, ops::Range, sync::Arc, time::Duration};

use tokio::sync::Notify;

use super::{AppendError, StoreError, shared_row::SharedRow};
use castor_base::ids::SessionId;

#[derive(Debug)]
pub struct SharedStore(Infallible);

#[derive(Debug)]
pub struct SharedLog(Infallible);

#[derive(Debug)]
#[allow(dead_code)]
pub struct AppendOrder(Infallible);

#[derive(Debug)]
pub struct PendingAppend(Infallible);

impl SharedStore {
    pub fn connect(_: &str, _: Option<&str>) -> Result<Self, StoreError> {
        let why = "is Postgres, which this castor was built without; take one that was built with the feature postgres";
        Err(StoreError::Shared(why.to_owned()))
    }

    pub fn set_client(&self, _: Option<String>) {
        match self.0 {}
    }

    pub fn create(self: &Arc<Self>, _: &SessionId) -> Result<SharedLog, StoreError> {
        match self.0 {}
    }

    pub fn begin(self: &Arc<Self>, _: &SessionId) -> Result<SharedLog, StoreError> {
        match self.0 {}
    }

    pub fn hold(self: &Arc<Self>, _: &SessionId) -> Result<SharedLog, StoreError> {
        match self.0 {}
    }

    pub fn read(&self, _: &SessionId, _: Range<u64>) -> Result<Vec<u8>, StoreError> {
        match self.0 {}
    }

    pub fn row(&self, _: &SessionId) -> Result<SharedRow, StoreError> {
        match self.0 {}
    }

    pub fn rows(&self) -> Result<Vec<SharedRow>, StoreError> {
        match self.0 {}
    }

    pub fn heads(&self, _: &[SessionId], _: u64) -> Result<HashMap<SessionId, Vec<u8>>, StoreError> {
        match self.0 {}
    }

    pub fn children(&self, _: &SessionId) -> Vec<SessionId> {
        match self.0 {}
    }

    pub fn set_metadata(&self, _: &SessionId, _: &[u8]) -> Result<(), StoreError> {
        match self.0 {}
    }

    pub fn delete(&self, _: &SessionId) -> Result<(), StoreError> {
        match self.0 {}
    }

    pub fn start(&self, _: Vec<AppendOrder>) -> PendingAppend {
        match self.0 {}
    }

    pub fn news(&self, _: &SessionId) -> u64 {
        match self.0 {}
    }

    pub fn stored(&self) -> Arc<Notify> {
        match self.0 {}
    }

    pub fn leave(&self) {
        match self.0 {}
    }
}

impl SharedLog {
    pub fn moved_from(&self) -> Option<&str> {
        match self.0 {}
    }

    pub fn order(&self, _: u64, _: Vec<u8>) -> Result<AppendOrder, AppendError> {
        match self.0 {}
    }

    pub fn start(&self, _: Vec<AppendOrder>) -> PendingAppend {
        match self.0 {}
    }

    pub fn set_quiet(&self, _: u64) {
        match self.0 {}
    }

    pub fn is_lost(&self) -> bool {
        match self.0 {}
    }

    pub fn set_lost(&mut self) {
        match self.0 {}
    }
}

impl PendingAppend {
    pub fn within(&mut self, _: Duration) -> Option<Vec<(SessionId, AppendError)>> {
        match self.0 {}
    }

    pub fn wait(&mut self) -> Vec<(SessionId, AppendError)> {
        match self.0 {}
    }
}
