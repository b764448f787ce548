//! Arguments of `replace`: a file, and one edit or several.

use serde_json::Value;

use crate::builtin::{
    ToolContext,
    params::{CallArguments, invalid},
    texts::{edit_rule::Replacement, placeholder, text_file},
};
use castor_base::{path::AbsPath, text::first_line, tool::ToolError};

const TITLE_CHARS: usize = 30;

#[derive(Clone)]
pub struct ReplaceCall {
    pub path: AbsPath,
    /// One at least.
    pub edits: Vec<OneEdit>,
    all: bool,
}

/// With LF only, as everything that is compared.
#[derive(Clone)]
pub struct OneEdit {
    pub old: String,
    pub new: String,
}

impl ReplaceCall {
    pub fn parse(args: &Value, ctx: &ToolContext) -> Result<Self, ToolError> {
        let params = CallArguments::of(args)?;
        let path = params.path("file_path", ctx)?;
        let mut edits: Vec<OneEdit> = params.objects("edits")?.iter().map(OneEdit::parse).collect::<Result<_, _>>()?;
        // Some models fill in every argument.
        let is_given = |name: &str| Ok(params.opt_text(name)?.is_some_and(|it| !it.is_empty() || edits.is_empty()));
        match is_given("old_string")? || is_given("new_string")? {
            true if !edits.is_empty() => {
                return Err(invalid("Give either edits, or old_string and new_string, not both."));
            }
            true => edits.push(OneEdit::parse(&params)?),
            false if edits.is_empty() => {
                return Err(invalid("params must have 'old_string' and 'new_string', or 'edits'"));
            }
            false => (),
        }
        if edits.len() > 1 && edits.iter().any(|it| it.old.is_empty()) {
            return Err(invalid("An empty old_string creates a file: give it alone, not as one of several edits."));
        }
        params.opt_text("instruction")?;
        let all = params.flag("allow_multiple")?.unwrap_or(false);
        Ok(Self { path, edits, all })
    }

    /// What creates a file.
    pub fn creation(&self) -> Option<&str> {
        self.edits.first().filter(|it| it.old.is_empty()).map(|it| it.new.as_str())
    }

    pub fn replacements(&self) -> impl Iterator<Item = Replacement<'_>> {
        self.edits.iter().map(|it| Replacement { old: &it.old, new: &it.new, all: self.all })
    }

    pub fn title(&self, cwd: &AbsPath) -> String {
        let path = self.path.relative_to(cwd);
        let Some(first) = self.edits.first().filter(|it| !it.old.is_empty()) else { return format!("Create {path}") };
        let more = match self.edits.len() {
            0 | 1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        format!("{path}: {} => {}{more}", first_line(&first.old, TITLE_CHARS), first_line(&first.new, TITLE_CHARS))
    }
}

impl OneEdit {
    fn parse(params: &CallArguments<'_>) -> Result<Self, ToolError> {
        let (old, new) = (params.text("old_string")?, params.text("new_string")?);
        if placeholder::has_placeholder(new, old) {
            return Err(invalid(
                "`new_string` contains an omission placeholder (for example 'rest of methods ...'). Provide exact \
                 literal replacement text.",
            ));
        }
        Ok(Self { old: text_file::to_lf(old).into_owned(), new: text_file::to_lf(new).into_owned() })
    }
}
