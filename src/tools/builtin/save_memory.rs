//! The tool `save_memory`: keeps a fact for later sessions, in a file of castor's own folder.

use std::sync::Arc;

use serde_json::Value;

use crate::builtin::{
    Builtin, Task, ToolContext,
    fact_arguments::{FactArguments, fact_schema},
    paths,
    texts::{
        change::TextChange,
        text_file::{self, LoadedFile},
    },
};
use castor_base::{
    path::AbsPath,
    saved_memory::{self, MemoryScope},
    tool::{Access, BaseHash, Preview, Targets, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};
use castor_hands::disk::{self, DiskFs};

pub struct SaveMemory;

impl Builtin for SaveMemory {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "save_memory".into(),
            title: "SaveMemory".into(),
            description: "Keeps a fact for later sessions. Only what the user asks you to remember, or a lasting \
                          preference; no secrets, nothing that is for this task alone."
                .into(),
            kind: ToolKind::Edit,
            traits: ToolTraits::EDITS,
            parameters: fact_schema(),
        }
    }

    fn targets<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Targets> {
        Box::pin(async move {
            let call = FactArguments::parse(args, ctx)?;
            let paths = paths::content_targets(ctx, call.saved.file(call.scope), Access::Write, None).await?;
            let title = match call.scope {
                MemoryScope::Global => "Remembering for all projects",
                MemoryScope::Project => "Remembering for this project",
            };
            Ok(Targets { title: title.to_owned(), paths, ..Targets::default() })
        })
    }

    fn preview<'a>(&'a self, args: &'a Value, ctx: &'a ToolContext) -> Task<'a, Preview> {
        Box::pin(async move {
            let ctx = on_disk(ctx);
            Ok(change(args, None, &ctx).await?.map(TextChange::preview).unwrap_or_default())
        })
    }

    fn run<'a>(&'a self, args: &'a Value, base: Option<&'a BaseHash>, ctx: &'a ToolContext) -> Task<'a, ToolOutput> {
        Box::pin(async move { save(args, base, &on_disk(ctx)).await })
    }
}

/// No editor has the file open, and many refuse what lies outside of their folder.
fn on_disk(ctx: &ToolContext) -> ToolContext {
    ToolContext { fs: Arc::new(DiskFs), ..ctx.clone() }
}

async fn save(args: &Value, base: Option<&BaseHash>, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
    let Some(change) = change(args, base, ctx).await? else {
        return Ok(ToolOutput::text("That is remembered already."));
    };
    create_folder(&change.real).await?;
    let done =
        ToolOutput { display: Some(change.display()), ..ToolOutput::text("Remembered, for later sessions too.") };
    change.write(ctx, String::new()).await?;
    Ok(done)
}

async fn create_folder(file: &AbsPath) -> Result<(), ToolError> {
    let Some(folder) = file.parent() else { return Ok(()) };
    let made = paths::run_blocking(move || disk::create_private_dir(&folder)).await?;
    made.map_err(|it| ToolError::new("memory_failure", format!("The folder of the memory cannot be made: {it}.")))
}

/// `None`: the fact is there already.
async fn change(args: &Value, base: Option<&BaseHash>, ctx: &ToolContext) -> Result<Option<TextChange>, ToolError> {
    let call = FactArguments::parse(args, ctx)?;
    let path = call.saved.file(call.scope).clone();
    let loaded = text_file::load(ctx, &path).await?;
    text_file::check_base(&path, base, &loaded)?;
    let base = text_file::hash(&loaded);
    let LoadedFile { real, bytes, unsaved } = loaded;
    let before = bytes.map(|it| String::from_utf8_lossy(&it).into_owned());
    let Some(after) = saved_memory::with_fact(before.as_deref().unwrap_or_default(), &call.fact) else {
        return Ok(None);
    };
    let change = TextChange {
        path,
        real,
        before: before.map(Into::into),
        bytes: after.clone().into_bytes(),
        after: after.into(),
        base,
        unsaved,
        is_partial: true,
        note: None,
    };
    change.check_marks().map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::SaveMemory;
    use crate::builtin::{Builtin, testing::ToolFixture};
    use castor_base::content::joined_text;

    #[test]
    fn facts_are_kept_once_and_shown_before() {
        let fixture = ToolFixture::new(&[]);
        let ctx = fixture.ctx();
        let args = json!({"fact": "Tabs,\nnot spaces.", "scope": "global"});
        let preview = fixture.block_on(SaveMemory.preview(&args, &ctx)).unwrap();
        let shown = serde_json::to_value(preview.display.unwrap()).unwrap();
        assert_eq!(shown["after"], "# Saved memory\n\n- Tabs, not spaces.\n");
        let base = preview.base;
        let run = |args: &Value, base| fixture.block_on(SaveMemory.run(args, base, &ctx));
        let said = |it: &Value| joined_text(&run(it, None).unwrap().content);
        let saved = run(&args, base.as_ref()).unwrap();
        assert_eq!(joined_text(&saved.content), "Remembered, for later sessions too.");
        // What it was shown from holds no longer.
        assert_eq!(run(&args, base.as_ref()).unwrap_err().kind, "file_changed");
        assert_eq!(said(&args), "That is remembered already.");
        let file = &ctx.settings.saved_memory.as_ref().unwrap().global;
        assert_eq!(fixture.read(&file.to_string()), b"# Saved memory\n\n- Tabs, not spaces.\n");
        for (args, why) in [(json!({"fact": " "}), "empty"), (json!({"fact": "a", "scope": "world"}), "scope")] {
            assert!(run(&args, None).unwrap_err().message.contains(why));
        }
    }
}
