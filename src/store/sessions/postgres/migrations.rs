//! The tables of the store, step by step, and the version that they have. Steps go forward only, and are never changed.

use tokio_postgres::Client;

use super::fault::Fault;

/// A step is a version; the first one is 1.
const STEPS: &[&str] = &[
    // A line of a log is a row; `seq` is where the line begins in its log, in bytes. A session holds its lease: `owner`
    // may write, with `epoch`; `host` is where it was last. What was under way up to `quiet` is over. An owner is a process.
    "create sequence castor_epochs;
     create table castor_owners (
        id text primary key,
        host text not null,
        pid bigint not null,
        client text,
        heartbeat timestamptz not null
     );
     create table castor_sessions (
        id text primary key,
        root text not null,
        epoch bigint not null,
        owner text,
        host text,
        len bigint not null,
        quiet bigint not null,
        changed timestamptz not null,
        metadata text
     );
     create index castor_sessions_by_root on castor_sessions (root);
     create index castor_sessions_by_owner on castor_sessions (owner) where owner is not null;
     create table castor_entries (
        session text not null references castor_sessions (id) on delete cascade,
        seq bigint not null,
        line text not null,
        primary key (session, seq)
     );",
    // What a line ends with in a file: the checksums of the line before and of its own. Lines of old have none.
    "alter table castor_entries add column sum text;",
];
/// One castor at a time changes the tables.
const LOCK: i64 = 0x6361_7374_6f72;

/// Brings the tables to the version that this castor knows.
pub async fn migrate(client: &mut Client) -> Result<(), Fault> {
    apply(client, STEPS).await
}

async fn apply(client: &mut Client, steps: &[&str]) -> Result<(), Fault> {
    // Whoever may only read and write rows can use tables that are there.
    if version(client).await? == Some(steps.len()) {
        return Ok(());
    }
    let work = client.transaction().await?;
    work.execute("select pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    work.batch_execute(
        "create table if not exists castor_versions (version integer primary key, applied timestamptz not null default now())",
    )
    .await?;
    let row = work.query_one("select coalesce(max(version), 0) from castor_versions", &[]).await?;
    let found: i32 = row.try_get(0)?;
    let found = usize::try_from(found).unwrap_or_default();
    if found > steps.len() {
        let known = steps.len();
        return Err(Fault::Refused(format!(
            "was set up by a newer castor (version {found} of its tables); this one knows {known}: update castor"
        )));
    }
    for (at, step) in steps.iter().enumerate().skip(found) {
        work.batch_execute(step).await?;
        let version = i32::try_from(at + 1).unwrap_or(i32::MAX);
        work.execute("insert into castor_versions (version) values ($1)", &[&version]).await?;
    }
    Ok(work.commit().await?)
}

/// `None`: there are no tables.
async fn version(client: &Client) -> Result<Option<usize>, Fault> {
    let row = client.query_one("select to_regclass('castor_versions') is not null", &[]).await?;
    if !row.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let row = client.query_one("select coalesce(max(version), 0) from castor_versions", &[]).await?;
    Ok(usize::try_from(row.try_get::<_, i32>(0)?).ok())
}
