//! A database for tests: `CASTOR_TEST_POSTGRES` names one that may be written; each test has a schema of its own in it.

use std::sync::Arc;

use tokio_postgres::Row;

use super::{Fault, SharedStore};
use crate::sessions::SessionStore;
use castor_base::path::AbsPath;

/// A schema, and castor's own folder.
pub struct TestStore {
    pub url: String,
    pub home: AbsPath,
    _dir: tempfile::TempDir,
}

impl TestStore {
    /// `None`: there is no database, which is said.
    pub fn new() -> Option<Self> {
        // A test's own, and no setting of castor's.
        #[allow(clippy::disallowed_methods)]
        let Ok(base) = std::env::var("CASTOR_TEST_POSTGRES") else {
            eprintln!("skipped: CASTOR_TEST_POSTGRES names no database; .ci/postgres starts one");
            return None;
        };
        let schema = format!("t{}", uuid::Uuid::now_v7().simple());
        let dir = tempfile::tempdir().unwrap();
        let home = AbsPath::new(dir.path()).unwrap();
        let url = format!("{base}?application_name={schema}&options=-c%20search_path%3D{schema}");
        let res = Self { url, home, _dir: dir };
        res.sql(&format!("create schema {schema}"));
        Some(res)
    }

    pub fn store(&self) -> SessionStore {
        SessionStore { shared: Some(self.shared()), ..SessionStore::new(self.home.clone()) }
    }

    pub fn shared(&self) -> Arc<SharedStore> {
        Arc::new(SharedStore::connect(&self.url, None).unwrap())
    }

    /// Says something to the database that no castor would, and returns the first column of the answer.
    pub fn sql(&self, text: &str) -> Vec<String> {
        let (url, text) = (self.url.clone(), text.to_owned());
        let ask = async move {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
            tokio::spawn(connection);
            let rows = client.query(&text, &[]).await?;
            let first = |it: &Row| it.try_get::<_, Option<String>>(0).map(Option::unwrap_or_default);
            Ok::<Vec<String>, Fault>(rows.iter().map(first).collect::<Result<_, _>>()?)
        };
        runtime().block_on(ask).map_err(|it| it.to_string()).unwrap()
    }

    /// Does something within a transaction that has begun with this.
    pub fn sql_during<T>(&self, text: &str, work: impl FnOnce() -> T) -> T {
        runtime().block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.url, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            client.batch_execute(&format!("begin; {text}")).await.unwrap();
            let res = tokio::task::block_in_place(work);
            client.batch_execute("commit").await.unwrap();
            res
        })
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}
