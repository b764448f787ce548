//! Errors of refused edits: what to do next for the model, what happened for the person.

use std::fmt::Write;

use super::nearest;
use crate::builtin::texts::edit_rule::{EditRefusal, Lines, Replacement};
use castor_base::{path::AbsPath, tool::ToolError};

/// How many places of an ambiguous text are named.
const MAX_PLACES: usize = 20;
const COPY: &str = "Copy the lines from the file, which has:";

pub fn no_change(path: &AbsPath, why: &str) -> ToolError {
    let for_model = format!("No changes to apply. {why} file: {path}");
    ToolError::new("edit_no_change", format!("The edit would change nothing in {path}.")).with_model_text(for_model)
}

pub fn refused(path: &AbsPath, file: &Lines<'_>, asked: Replacement<'_>, refusal: &EditRefusal) -> ToolError {
    let lines = |first: usize, count: usize| nearest::numbered(file, first.saturating_sub(1), count);
    let (kind, for_person, for_model) = match refusal {
        EditRefusal::Absent => {
            let for_model = format!(
                "Failed to edit, 0 occurrences found for old_string in {path}. Ensure you're not escaping content \
                 incorrectly and check whitespace, indentation, and context. Use read_file tool to verify.{}",
                nearest::hint(file, asked)
            );
            ("edit_no_occurrence_found", format!("The text to replace is not in {path}."), for_model)
        }
        EditRefusal::Ambiguous { places } => {
            let (count, places) = (places.len(), named(places));
            let for_model = format!(
                "Failed to edit, Expected 1 occurrence but found {count} for old_string in file: {path}, at lines \
                 {places}. Add context that names one of them, or, to replace them all, set 'allow_multiple' to true."
            );
            let for_person = format!("The text to replace is in {path} {count} times, not once.");
            ("edit_expected_occurrence_mismatch", for_person, for_model)
        }
        EditRefusal::Contradiction { first, line, count } => {
            let for_model = format!(
                "Failed to edit {path}: the indentation of old_string differs from the file's in more than one way, from \
                 line {line} on otherwise than before. Nothing was changed. {COPY}\n{}",
                lines(*first, *count)
            );
            let for_person = format!("The text to replace is indented in another way in {path}.");
            ("edit_indentation_mismatch", for_person, for_model)
        }
        EditRefusal::UnknownDepth { first, count, new } => {
            let for_model = format!(
                "Failed to edit {path}: old_string is indented otherwise than the file, and that does not tell how deep \
                 this line of new_string has to go: {new}\nNothing was changed. {COPY}\n{}",
                lines(*first, *count)
            );
            let for_person = format!("The text to replace is indented in another way in {path}.");
            ("edit_indentation_mismatch", for_person, for_model)
        }
        EditRefusal::Stale { first, line, count, old } => {
            let for_model = format!(
                "Failed to edit {path}: line {line} is not the line of old_string that new_string would keep: {old}\n\
                 Nothing was changed. {COPY}\n{}",
                lines(*first, *count)
            );
            ("edit_stale_text", format!("Line {line} of {path} is not what the edit takes it for."), for_model)
        }
    };
    ToolError::new(kind, for_person).with_model_text(for_model)
}

/// `error` of the edit `n` of `count`, of which none was made.
pub fn of_several(mut error: ToolError, n: usize, count: usize) -> ToolError {
    if count > 1 {
        let place = format!("Edit {n} of {count}, so none was made: ");
        let for_model = error.for_model.take().unwrap_or_else(|| error.message.clone());
        error.for_model = Some(place.clone() + &for_model);
        error.message = place + &error.message;
    }
    error
}

pub fn named(places: &[usize]) -> String {
    let mut res = places.iter().take(MAX_PLACES).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if places.len() > MAX_PLACES {
        _ = write!(res, ", …");
    }
    res
}
