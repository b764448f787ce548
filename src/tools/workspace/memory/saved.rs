//! Changes of saved memory that the user orders: a fact more, and what becomes of the inbox.

use std::io;

use castor_base::{
    path::AbsPath,
    saved_memory::{
        InboxChoice, MemoryOrder, ProposedFact, SavedMemory, fact, inbox_text, read_inbox, shown_fact, with_fact,
    },
};
use castor_hands::disk;

/// More of a file is not read.
const MAX_BYTES: u64 = 1 << 20;

/// Does it, and says what came of it.
///
/// # Errors
/// In words: the fact cannot be kept, there is no such fact, or a file cannot be written.
pub fn change_saved(saved: &SavedMemory, order: &MemoryOrder) -> Result<String, String> {
    match order {
        MemoryOrder::Add(it) => {
            let it = ProposedFact { fact: fact(&it.fact)?, ..it.clone() };
            keep(saved, &it)?;
            Ok(format!("Remembered for later sessions, in `{}`.", saved.file(it.scope)))
        }
        MemoryOrder::Inbox => Ok(list(&waiting(saved)?)),
        MemoryOrder::Accept(which) => settle(saved, *which, "Accepted", keep),
        MemoryOrder::Discard(which) => settle(saved, *which, "Discarded", |_, _| Ok(())),
    }
}

fn list(facts: &[ProposedFact]) -> String {
    if facts.is_empty() {
        return "The memory inbox is empty. Agents that may propose facts put them there.".to_owned();
    }
    let rows: String = facts.iter().enumerate().map(|(n, it)| shown_fact(n + 1, it)).collect();
    format!(
        "Facts that agents propose; none of them counts yet:\n{rows}\n`/memory inbox accept NUMBER|all` keeps them, \
         `/memory inbox discard NUMBER|all` drops them."
    )
}

/// What is chosen leaves the inbox, once `act` is done with it.
fn settle(
    saved: &SavedMemory,
    which: InboxChoice,
    done: &str,
    act: impl Fn(&SavedMemory, &ProposedFact) -> Result<(), String>,
) -> Result<String, String> {
    let (chosen, left): (Vec<_>, Vec<_>) =
        waiting(saved)?.into_iter().enumerate().partition(|(n, _)| which.includes(n + 1));
    if chosen.is_empty() {
        return Err("there is no such fact in the memory inbox; `/memory inbox` lists them".to_owned());
    }
    chosen.iter().try_for_each(|(_, it)| act(saved, it))?;
    let left: Vec<ProposedFact> = left.into_iter().map(|it| it.1).collect();
    write(&saved.inbox, &inbox_text(&left))?;
    let rows: String = chosen.iter().map(|(n, it)| shown_fact(n + 1, it)).collect();
    Ok(format!("{done}:\n{rows}"))
}

fn keep(saved: &SavedMemory, it: &ProposedFact) -> Result<(), String> {
    let file = saved.file(it.scope);
    match with_fact(&text(file)?, &it.fact) {
        Some(after) => write(file, &after),
        None => Ok(()),
    }
}

fn waiting(saved: &SavedMemory) -> Result<Vec<ProposedFact>, String> {
    Ok(read_inbox(&text(&saved.inbox)?))
}

fn text(file: &AbsPath) -> Result<String, String> {
    match disk::read_head(file, MAX_BYTES + 1) {
        Ok(it) if it.len() as u64 > MAX_BYTES => Err(format!("{file} is over {} MiB; shorten it", MAX_BYTES >> 20)),
        Ok(it) => Ok(String::from_utf8_lossy(&it).into_owned()),
        Err(it) if it.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(it) => Err(format!("{file} cannot be read: {it}")),
    }
}

fn write(file: &AbsPath, text: &str) -> Result<(), String> {
    disk::write_private(file, text.as_bytes()).map_err(|it| format!("{file} cannot be written: {it}"))
}
