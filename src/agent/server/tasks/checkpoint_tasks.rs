//! Checkpoint tasks: checkpoints around tool calls, and restores that also reach an editor's buffers.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant, UNIX_EPOCH},
};

use super::{editor_client::EditorFs, effect_task::EffectTask, looks};
use crate::{panics, session::session_resources::Files};
use castor_base::{
    checkpoint::{Changes, CheckpointResult, Conflict, OnConflict, RestoreOrder, RestoreResult, Scope},
    fs::{Fs, FsError},
    ids::{CallId, CheckpointId, SessionId},
    path::AbsPath,
    text::{self, grouped},
};
use castor_engine::step::{CallHold, Input};
use castor_hands::{
    checkpoints::{
        self, Buffers, Checkpoints, Content, Failure, FileDiff, FirstWalk, Limits, Retention, Sweep, forget_session,
    },
    disk::{self, DiskFs},
    process::heap::release_free_heap,
    provenance::Unseen,
};
use castor_store::sessions::SessionStore;

/// Most files that a client is asked for before a restore: beyond that the disk alone counts.
const MAX_BUFFERS: usize = 200;
/// A root that was unused for so long is walked anew.
const IDLE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Longest diff that is shown, in bytes.
const MAX_DIFF: usize = 64 * 1024;
/// Names between two looks at the clock.
const PROGRESS_STEP: usize = 256;
/// Most seconds of a look without a word.
const SILENCE: u64 = 20;
/// A look that takes longer had many files.
const LONG_LOOK: Duration = Duration::from_millis(500);
/// Of one file as it is now, in bytes.
const MAX_SHOWN: u64 = 1024 * 1024;

/// Has work done that only blocks; an error: why it could not be done.
async fn block<T: Send + 'static, E: ToString>(
    task: &EffectTask,
    work: impl FnOnce(&Checkpoints, &(dyn Fn() -> bool + Sync)) -> Result<T, E> + Send + 'static,
) -> Result<T, String> {
    let Some(checkpoints) = task.resources.files.checkpoints.clone() else {
        return Err("checkpoints are off".to_owned());
    };
    let cancel = task.cancel.clone();
    let work = move || giving_back(|| work(&checkpoints, &|| cancel.is_cancelled())).map_err(|it| it.to_string());
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|it| Err(it.to_string()))
}

/// The first look at the roots, of which the user hears before the first edit. Blocks.
pub fn open_checkpoints(task: &EffectTask) {
    let Some(checkpoints) = task.resources.files.checkpoints.clone() else { return };
    let progress = WalkProgress::new(task);
    let cancel = || {
        progress.note_entry();
        task.cancel.is_cancelled()
    };
    let tell = |walk: &FirstWalk| {
        let notices = walk.notices.iter().cloned().map(Input::Notice);
        // Its session may be closed, and one that is opened again would take this for its own. The loop is gone only at exit.
        let all = notices.chain(walk.full.iter().map(full_notice)).filter(|_| !task.cancel.is_cancelled());
        all.for_each(|it| _ = task.answers.blocking_send(task.event(it)));
    };
    let look = std::panic::AssertUnwindSafe(|| giving_back(|| checkpoints.open_and_tell(&cancel, tell)));
    let opened = std::panic::catch_unwind(look).map_err(|it| panics::panic_message(&*it));
    if !task.cancel.is_cancelled() {
        let result = opened.and_then(|it| it.map(|it| it.held).map_err(|it| it.to_string()));
        _ = task.answers.blocking_send(task.event(Input::Checkpointed { effect: task.id, result }));
    }
}

/// What can be taken back in a folder that has too much.
fn full_notice(root: &AbsPath) -> Input {
    let Limits { root_files, root_bytes, .. } = Limits::default();
    let most = format!("{} files or {} GiB", grouped(root_files as u64), root_bytes >> 30);
    Input::Announce(format!(
        "{root} has more than {most}, so castor cannot hold all of it. Undo reverts what castor's own tools write there; \
         it does not revert what commands change beyond the limit."
    ))
}

/// How far the first look at the roots is, which holds up the first edit.
struct WalkProgress<'a> {
    task: &'a EffectTask,
    start: Instant,
    n: AtomicUsize,
    notices: ProgressNotices,
}

impl<'a> WalkProgress<'a> {
    fn new(task: &'a EffectTask) -> Self {
        Self { task, start: Instant::now(), n: AtomicUsize::new(0), notices: ProgressNotices::default() }
    }

    /// One more name was looked at.
    fn note_entry(&self) {
        let n = self.n.fetch_add(1, Relaxed) + 1;
        let is_step = n.is_multiple_of(PROGRESS_STEP);
        if let Some(text) = is_step.then(|| self.notices.notice(n, self.start.elapsed().as_secs())).flatten() {
            _ = self.task.answers.blocking_send(self.task.event(Input::Announce(text)));
        }
    }
}

/// What the user is told of a look that takes long, ever more seldom.
struct ProgressNotices {
    /// Seconds until the next notice.
    next: AtomicU64,
}

impl Default for ProgressNotices {
    fn default() -> Self {
        Self { next: AtomicU64::new(2) }
    }
}

impl ProgressNotices {
    /// After so many names and seconds; `None`: that is too early.
    fn notice(&self, n: usize, seconds: u64) -> Option<String> {
        let next = self.next.load(Relaxed);
        let is_due = seconds >= next
            && self.next.compare_exchange(next, (seconds * 3).min(seconds + SILENCE), Relaxed, Relaxed).is_ok();
        let (n, most) = (grouped(n as u64), grouped(Limits::default().root_files as u64));
        is_due.then(|| {
            format!(
                "castor saves a checkpoint of this folder before the first change: {n} of at most {most} files, {seconds} s"
            )
        })
    }
}

/// Does what may take much memory for a moment; if it took long, what is free again goes back to the system.
fn giving_back<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let res = work();
    if start.elapsed() > LONG_LOOK {
        release_free_heap();
    }
    res
}

/// Notes what runs in the background wrote since the last walk, so that it is known as an agent's. Blocks.
pub fn note_background_writes(files: &Files, roots: &[AbsPath]) {
    let Some(checkpoints) = &files.checkpoints else { return };
    if !roots.iter().any(|it| files.provenance.has_writers(it).unwrap_or(true)) {
        return;
    }
    // Each plan begins with a walk; this one is for nothing.
    let nothing = RestoreOrder {
        id: CheckpointId::from("memory"),
        undo: Vec::new(),
        on_conflict: OnConflict::Fail,
        paths: Some(Vec::new()),
    };
    // Where it fails, what was known before still holds.
    _ = checkpoints.plan(&nothing, &Buffers::default()).inspect_err(|it| tracing::debug!("{it}"));
}

pub async fn take_checkpoint(task: EffectTask, id: CheckpointId, scope: Scope) {
    let above = &task.resources.files.above;
    if let Some(it) = task.resources.files.checkpoints.as_ref().filter(|_| !above.is_empty()) {
        it.nest(&id, above);
    }
    let work = async {
        match scope {
            Scope::Files(files) if task.is_in_editor(&files) => {
                let contents = task.contents(&files).await?;
                block(&task, move |it, _| it.before_content(&id, &contents)).await
            }
            scope => block(&task, move |it, cancel| it.before(&id, &scope, cancel)).await,
        }
    };
    let result: Result<CheckpointResult, String> = task.catch_panic(work).await.and_then(|it| it);
    task.send_answer(Input::Checkpointed { effect: task.id, result }).await;
}

/// Before a hook runs; `None`: nothing is held.
pub async fn take_for_hook(task: &EffectTask, hold: Option<(CheckpointId, CallId)>) -> Option<CheckpointId> {
    let (id, _) = hold?;
    let taken = id.clone();
    let work = block(task, move |it, cancel| it.before(&taken, &Scope::Roots, cancel));
    match task.catch_panic(work).await.and_then(|it| it) {
        Ok(_) => Some(id),
        Err(why) => {
            tracing::warn!("what a hook changes cannot be undone: {why}");
            None
        }
    }
}

/// What a call changed, as its checkpoint knows it.
pub async fn changes(task: &EffectTask, id: CheckpointId, written: &[AbsPath]) -> Result<Changes, String> {
    let work = async {
        match task.is_in_editor(written) {
            true => {
                let contents = task.contents(written).await?;
                block(task, move |it, _| it.after_content(&id, &contents)).await
            }
            false => block(task, move |it, _| it.after(&id)).await,
        }
    };
    task.catch_panic(work).await.and_then(|it| it)
}

/// What a call changed. If a person saw its diff and allowed that alone, they looked at it.
pub async fn end_call(task: &EffectTask, hold: CallHold, written: &[AbsPath]) -> Result<Changes, String> {
    let res = changes(task, hold.id.clone(), written).await;
    if hold.is_looked_at && res.is_ok() {
        look_at_call(task, hold.id).await;
    }
    res
}

async fn look_at_call(task: &EffectTask, id: CheckpointId) {
    let provenance = task.resources.files.provenance.clone();
    let work = block(task, move |it, _| {
        let diffs = it.diff(&[id]).map_err(|it| it.to_string())?;
        looks::look_at_diffs(&provenance, &diffs).map_err(|it| it.to_string())
    });
    if let Err(why) = task.catch_panic(work).await.and_then(|it| it) {
        tracing::warn!("an approved edit stays unseen: {why}");
    }
}

/// The user says that they looked at what agents left in a place.
pub async fn look(task: EffectTask, place: String) {
    let (provenance, cwd) = (task.resources.files.provenance.clone(), task.resources.cwd.clone());
    let work = move || {
        let (found, list) = looks::find(&provenance, &cwd.join(place.trim()), &cwd)?;
        if found.is_empty() {
            return Ok("Nothing here was written by an agent and not looked at.".to_owned());
        }
        looks::look(&provenance, &found).map_err(|it| it.to_string())?;
        Ok(format!("It counts as looked at, as it is now:\n{list}"))
    };
    let result = tokio::task::spawn_blocking(work).await.unwrap_or_else(|it| Err(it.to_string()));
    task.send_answer(Input::Diffed { effect: task.id, result }).await;
}

pub async fn compare(task: EffectTask, id: CheckpointId) {
    let changes = changes(&task, id, &[]).await;
    task.send_answer(Input::Compared { effect: task.id, changes }).await;
}

pub async fn restore(task: EffectTask, order: RestoreOrder) {
    let result = task.catch_panic(run_restore(&task, order)).await.and_then(|it| it);
    task.send_answer(Input::Restored { effect: task.id, result }).await;
}

async fn run_restore(task: &EffectTask, order: RestoreOrder) -> Result<(RestoreResult, Vec<String>), String> {
    let fs = task.editor();
    let buffers = editor_buffers(task, fs.as_ref(), &order).await?;
    let outcome = block(task, move |it, _| it.restore(&order, &buffers)).await?;
    let mut files = outcome.restored;
    for (path, bytes) in outcome.to_client {
        let Some(fs) = &fs else { break };
        if let Err(why) = fs.write(&path, bytes).await {
            files.restored.retain(|it| *it != *path.as_path());
            let reason = match why {
                FsError::Other { message, .. } => message,
                other => other.to_string(),
            };
            files.conflicts.push(Conflict { path: path.as_path().to_owned(), reason });
        }
    }
    let tmp = task.resources.children.confined.as_ref().map(|it| it.own_folders.tmp.clone());
    let is_used = move || tmp.is_some_and(|it| disk::has_files(&it, MAX_LOOKED_AT));
    let is_used = tokio::task::spawn_blocking(is_used).await.unwrap_or_default();
    let stays = is_used.then(|| "What lies in the session's own /tmp stays as it is.".to_owned());
    Ok((files, outcome.notes.into_iter().chain(stays).collect()))
}

/// Entries of the folder for temporary files, at most, among which a file is looked for.
const MAX_LOOKED_AT: usize = 1_000;

/// Removes what was held for sessions that are gone, and the oldest where it is too much.
///
/// # Errors
/// When the store of checkpoints cannot be read or written.
pub fn sweep(store: &SessionStore, now_ms: u64) -> Result<Sweep, Failure> {
    let now = UNIX_EPOCH + Duration::from_millis(now_ms);
    let used_since = now.checked_sub(IDLE).unwrap_or(UNIX_EPOCH);
    let retention = Retention { store: Limits::default().store, used_since };
    let is_there = |it: &SessionId| store.has(it);
    checkpoints::sweep(store.home(), &retention, &is_there)
}

/// The session is over.
pub async fn release_checkpoints(checkpoints: Option<Arc<Checkpoints>>, forget: Option<(AbsPath, SessionId)>) {
    let work = move || {
        if checkpoints.inspect(|it| it.close()).is_some() {
            release_free_heap();
        }
        if let Some((home, session)) = forget
            && let Err(it) = forget_session(&home, &session)
        {
            tracing::warn!("the checkpoints of {session} stay: {it}");
        }
    };
    _ = tokio::task::spawn_blocking(work).await;
}

/// What the client says of the files that a restore is about. Those that it says nothing of are the disk's.
async fn editor_buffers(task: &EffectTask, fs: Option<&EditorFs>, order: &RestoreOrder) -> Result<Buffers, String> {
    let mut res = BTreeMap::new();
    let Some(fs) = fs else { return Ok(Buffers(res)) };
    let looked = order.clone();
    let plan = block(task, move |it, _| it.plan(&looked, &Buffers::default())).await?;
    for path in plan.files.into_iter().take(MAX_BUFFERS) {
        if let Some(bytes) = fs.buffer(&path).await {
            res.insert(path, bytes);
        }
    }
    Ok(Buffers(res))
}

/// `paths`: of these only, and as they would be lost now.
pub async fn diff(task: EffectTask, of: Vec<CheckpointId>, paths: Option<Vec<PathBuf>>) {
    let (cwd, provenance) = (task.resources.cwd.clone(), task.resources.files.provenance.clone());
    let work = async {
        let Some(paths) = paths else {
            let show = move |diffs: Vec<FileDiff>| {
                let unseen = provenance.unseen().unwrap_or_default();
                unified_diff(&diffs, cwd.as_path(), &unseen).text
            };
            return block(&task, move |it, _| it.diff(&of).map(show)).await;
        };
        let (id, on_conflict) = (CheckpointId::from("diff"), OnConflict::Restore);
        let order = RestoreOrder { id, undo: of, on_conflict, paths: Some(paths) };
        let buffers = editor_buffers(&task, task.editor().as_ref(), &order).await?;
        block(&task, move |it, _| losses(it, &order, &buffers).map(|it| unified_diff(&it, cwd.as_path(), &[]).text))
            .await
    };
    let result = task.catch_panic(work).await.and_then(|it| it);
    task.send_answer(Input::Diffed { effect: task.id, result }).await;
}

/// What a restore would make of these files, from what they are now.
fn losses(checkpoints: &Checkpoints, order: &RestoreOrder, buffers: &Buffers) -> Result<Vec<FileDiff>, Failure> {
    let plan = checkpoints.plan(order, buffers)?;
    let mut res = Vec::new();
    // What is a conflict even so cannot be restored.
    for it in plan.paths.iter().filter(|it| it.conflict.is_none()) {
        let after = checkpoints.content(it)?;
        let head = |path: AbsPath| disk::read_real_head(&path, MAX_SHOWN).ok();
        let before = AbsPath::new(&it.path).and_then(|it| buffers.0.get(&it).cloned().or_else(|| head(it)));
        res.push(FileDiff { path: it.path.clone(), change: it.change, before, after, too_long: false });
    }
    Ok(res)
}

/// A diff as people read it; its beginning, where it is long.
pub struct DiffText {
    pub text: String,
    /// How many of the files are in it to their end, from the first on.
    pub n_whole: usize,
}

pub fn unified_diff(diffs: &[FileDiff], cwd: &Path, unseen: &[Unseen]) -> DiffText {
    let mut res = String::new();
    for (n_whole, it) in diffs.iter().enumerate() {
        let path = it.path.strip_prefix(cwd).unwrap_or(&it.path).display().to_string();
        let is_shown = it.before.is_some() || it.after.is_some() || it.too_long;
        if is_shown && looks::is_marked(unseen, &it.path) {
            res += &format!("{path}: {}\n", looks::MARK);
        }
        let text = |bytes: &Option<Vec<u8>>| match bytes {
            None => Some(String::new()),
            Some(bytes) if bytes.contains(&0) => None,
            Some(bytes) => String::from_utf8(bytes.clone()).ok(),
        };
        match (text(&it.before), text(&it.after)) {
            (Some(before), Some(after)) if !it.too_long => {
                let from = if it.before.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
                let to = if it.after.is_some() { format!("b/{path}") } else { "/dev/null".to_owned() };
                let diff = similar::TextDiff::from_lines(&before, &after);
                res += &diff.unified_diff().header(&from, &to).to_string();
            }
            _ => res += &format!("{path}: it is long, or no text\n"),
        }
        if res.len() > MAX_DIFF {
            let cut = text::head(&res, MAX_DIFF).to_owned();
            return DiffText { text: format!("{cut}\n[and more]"), n_whole };
        }
    }
    DiffText { text: res.trim_end().to_owned(), n_whole: diffs.len() }
}

impl EffectTask {
    /// Tells whether the client says what these files are.
    fn is_in_editor(&self, files: &[AbsPath]) -> bool {
        let it = &self.resources.files;
        it.reads && it.writes && !files.is_empty()
    }

    fn editor(&self) -> Option<EditorFs> {
        let it = &self.resources.files;
        let disk: Arc<dyn Fs> = Arc::new(DiskFs);
        (it.reads && it.writes).then(|| self.editor_fs(disk))
    }

    async fn contents(&self, files: &[AbsPath]) -> Result<Vec<Content>, String> {
        let Some(fs) = self.editor() else { return Ok(Vec::new()) };
        let mut res = Vec::new();
        for path in files {
            let bytes = match fs.read(path).await {
                Ok(it) => Some(it),
                Err(FsError::NotFound(_)) => None,
                Err(it) => return Err(it.to_string()),
            };
            res.push((path.clone(), bytes));
        }
        Ok(res)
    }
}

#[cfg(test)]
mod tests {
    use super::ProgressNotices;

    #[test]
    fn a_long_look_is_told_ever_more_seldom() {
        let notices = ProgressNotices::default();
        let told = [(256, 0), (512, 1), (9_984, 2), (10_240, 2), (20_224, 5), (40_192, 6), (60_160, 17), (84_224, 19)];
        let told: Vec<String> = told.iter().filter_map(|(n, seconds)| notices.notice(*n, *seconds)).collect();
        let want = [
            "9,984 of at most 200,000 files, 2 s",
            "40,192 of at most 200,000 files, 6 s",
            "84,224 of at most 200,000 files, 19 s",
        ];
        assert!(told.len() == 3 && told.iter().zip(want).all(|(told, want)| told.ends_with(want)), "{told:?}");
    }
}
