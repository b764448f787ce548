//! The tool `propose_memory`: puts a fact into the memory inbox, where it waits until the user accepts it.
//!
//! Only agents have it whose definition says `memory_inbox`.

use std::io::Write;

use serde_json::Value;

use crate::builtin::{
    Builtin, Task, ToolContext,
    fact_arguments::{FactArguments, fact_schema},
    paths,
};
use castor_base::{
    agent_right::AgentRight,
    content::Part,
    path::AbsPath,
    saved_memory::{MAX_INBOX, ProposedFact, inbox_text, read_inbox},
    secret,
    tool::{BaseHash, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};
use castor_hands::disk;

pub struct ProposeMemory;

/// More of an inbox file is not read.
const MAX_BYTES: u64 = 512 << 10;

impl Builtin for ProposeMemory {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "propose_memory".into(),
            title: "ProposeMemory".into(),
            description: "Proposes a fact for later sessions. The user decides about it later; no secrets.".into(),
            kind: ToolKind::Think,
            // One after the other: each looks at what waits already.
            traits: ToolTraits { is_exclusive: true, right: Some(AgentRight::MemoryInbox), ..ToolTraits::TELLS },
            parameters: fact_schema(),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            FactArguments::parse(args, ctx)?;
            Ok(Targets { title: "Proposing a memory".to_owned(), ..Targets::default() })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, _base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move {
            let FactArguments { saved, scope, fact } = FactArguments::parse(args, ctx)?;
            if let Some(mark) = secret::find_new_mark(&fact, "") {
                let why = format!("{mark} stands for a value that you were not shown: leave it out.");
                return Err(ToolError::new("secret_mark", why));
            }
            let (file, proposed) = (saved.inbox.clone(), ProposedFact { scope, fact });
            let done = paths::run_blocking(move || propose(&file, &proposed)).await?;
            done.map(|it| ToolOutput { content: vec![Part::text(it)], ..ToolOutput::default() })
        })
    }
}

fn propose(file: &AbsPath, it: &ProposedFact) -> Result<&'static str, ToolError> {
    let waiting = disk::read_head(file, MAX_BYTES).unwrap_or_default();
    let waiting = read_inbox(&String::from_utf8_lossy(&waiting));
    if waiting.contains(it) {
        return Ok("That is proposed already.");
    }
    if waiting.len() >= MAX_INBOX {
        let why = format!("{MAX_INBOX} facts wait for the user already; propose no more.");
        return Err(ToolError::new("memory_inbox_full", why));
    }
    let line = inbox_text(std::slice::from_ref(it));
    let written = disk::open_append_private(file).and_then(|mut file| file.write_all(line.as_bytes()));
    match written {
        Ok(()) => Ok("Proposed. The user decides about it later."),
        Err(it) => Err(ToolError::new("memory_failure", format!("The inbox cannot be written: {it}."))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ProposeMemory;
    use crate::builtin::{Builtin, testing::ToolFixture};
    use castor_base::content::joined_text;

    #[test]
    fn facts_wait_once_and_not_for_ever() {
        let fixture = ToolFixture::new(&[]);
        let ctx = fixture.ctx();
        let propose = |n: usize| {
            let args = json!({"fact": format!("fact {n}")});
            fixture.block_on(ProposeMemory.run(&args, None, &ctx)).map(|it| joined_text(&it.content))
        };
        assert_eq!(propose(0).unwrap(), "Proposed. The user decides about it later.");
        assert_eq!(propose(0).unwrap(), "That is proposed already.");
        assert!((1..100).all(|n| propose(n).is_ok()));
        assert_eq!(propose(100).unwrap_err().kind, "memory_inbox_full");
    }
}
