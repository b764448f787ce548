//! Arguments of tool calls, read by type, with errors that help a model to repair them.

use serde_json::{Map, Value};

use crate::builtin::ToolContext;
use castor_base::{path::AbsPath, tool::ToolError};

/// The arguments of a call. `null` counts as absent: models fill in optional fields with it.
#[derive(Clone, Copy)]
pub struct CallArguments<'a>(&'a Map<String, Value>);

impl<'a> CallArguments<'a> {
    pub fn of(args: &'a Value) -> Result<Self, ToolError> {
        args.as_object().map(Self).ok_or_else(|| invalid("params must be an object"))
    }

    /// A required text; may be empty.
    pub fn text(&self, name: &str) -> Result<&'a str, ToolError> {
        self.opt_text(name)?.ok_or_else(|| invalid(format!("params must have required property '{name}'")))
    }

    pub fn opt_text(&self, name: &str) -> Result<Option<&'a str>, ToolError> {
        self.get(name).map(|it| it.as_str().ok_or_else(|| wrong(name, "string"))).transpose()
    }

    /// A flag. The words are taken too: some models quote everything.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, ToolError> {
        let Some(it) = self.get(name) else { return Ok(None) };
        match (it.as_bool(), it.as_str()) {
            (Some(it), _) => Ok(Some(it)),
            (_, Some("true")) => Ok(Some(true)),
            (_, Some("false")) => Ok(Some(false)),
            _ => Err(wrong(name, "boolean")),
        }
    }

    /// A whole number of at least `min`; `5.0` and `"5"` will do.
    pub fn count(&self, name: &str, min: u64) -> Result<Option<usize>, ToolError> {
        let Some(it) = self.get(name) else { return Ok(None) };
        let number = it.as_f64().or_else(|| it.as_str()?.trim().parse().ok());
        let number = number.filter(|it| it.fract() == 0.0).ok_or_else(|| wrong(name, "integer"))?;
        match number >= min as f64 {
            true => Ok(Some(number as usize)),
            false => Err(invalid(format!("params/{name} must be >= {min}"))),
        }
    }

    pub fn texts(&self, name: &str) -> Result<Vec<&'a str>, ToolError> {
        let Some(it) = self.get(name) else { return Ok(Vec::new()) };
        let items = it.as_array().ok_or_else(|| wrong(name, "array"))?;
        items.iter().map(|it| it.as_str().ok_or_else(|| wrong(name, "array of strings"))).collect()
    }

    pub fn objects(&self, name: &str) -> Result<Vec<Self>, ToolError> {
        let Some(it) = self.get(name) else { return Ok(Vec::new()) };
        let items = it.as_array().ok_or_else(|| wrong(name, "array"))?;
        items.iter().map(|it| it.as_object().map(Self).ok_or_else(|| wrong(name, "array of objects"))).collect()
    }

    pub fn object(&self, name: &str) -> Result<Option<Self>, ToolError> {
        self.get(name).map(|it| it.as_object().map(Self).ok_or_else(|| wrong(name, "object"))).transpose()
    }

    /// A required path, made absolute; `~/` is the home folder.
    pub fn path(&self, name: &str, ctx: &ToolContext) -> Result<AbsPath, ToolError> {
        let text = self.text(name)?.trim();
        match text.is_empty() {
            true => Err(invalid(format!("The '{name}' parameter must be non-empty."))),
            false => Ok(ctx.resolve_path(text)),
        }
    }

    /// An optional path, made absolute; an empty one counts as absent.
    pub fn opt_path(&self, name: &str, ctx: &ToolContext) -> Result<Option<AbsPath>, ToolError> {
        let text = self.opt_text(name)?.map(str::trim).filter(|it| !it.is_empty());
        Ok(text.map(|it| ctx.resolve_path(it)))
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|it| !it.is_null())
    }
}

/// An error of the kind `invalid_tool_params`.
pub fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::new("invalid_tool_params", message)
}

/// # Errors
/// For an empty text.
pub fn not_empty<T: AsRef<str>>(name: &str, text: T) -> Result<T, ToolError> {
    match text.as_ref().is_empty() {
        true => Err(invalid(format!("The '{name}' parameter cannot be empty."))),
        false => Ok(text),
    }
}

fn wrong(name: &str, expected: &str) -> ToolError {
    invalid(format!("params/{name} must be {expected}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::CallArguments;

    #[test]
    fn says_what_is_wrong() {
        let args = json!({"a": 1, "b": null, "n": "7", "f": 2.0, "h": 2.5, "yes": "true", "list": ["x", 1]});
        let params = CallArguments::of(&args).unwrap();
        let message = |it: castor_base::tool::ToolError| {
            assert_eq!(it.kind, "invalid_tool_params");
            it.message
        };
        assert_eq!(message(params.text("a").unwrap_err()), "params/a must be string");
        assert_eq!(message(params.text("b").unwrap_err()), "params must have required property 'b'");
        assert_eq!(params.opt_text("b"), Ok(None));
        assert_eq!(params.count("n", 1), Ok(Some(7)));
        assert_eq!(params.count("f", 1), Ok(Some(2)));
        assert_eq!(message(params.count("h", 1).unwrap_err()), "params/h must be integer");
        assert_eq!(message(params.count("a", 2).unwrap_err()), "params/a must be >= 2");
        assert_eq!(params.flag("yes"), Ok(Some(true)));
        assert_eq!(message(params.flag("a").unwrap_err()), "params/a must be boolean");
        assert_eq!(message(params.texts("list").unwrap_err()), "params/list must be array of strings");
        assert!(CallArguments::of(&json!([])).is_err());
    }
}
