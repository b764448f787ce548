//! Files of secrets that a command makes where there is none: `cp .env.example .env`.

use super::{
    paths,
    shell::{Command, Word, base_name},
};
use crate::base::{
    guarded::{CONFIG, SECRETS},
    path::AbsPath,
    tool::Targets,
};

/// What the name of a file that is published in place of one of secrets has in it.
const TEMPLATES: &[&str] = &["default", "dist", "example", "sample", "template"];
/// Options of `cp` behind which no other file is meant; with the first ones it leaves what there is.
const KEEPS: &[&str] = &["-n", "--no-clobber", "-nv", "-vn"];
const PLAIN: &[&str] = &["-f", "-i", "-p", "-v", "--verbose"];

/// The file of secrets, below where it runs, that a command makes from a template, or overwrites with it.
pub(super) fn target(command: &Command) -> Option<&str> {
    if command.name().map(base_name)? != "cp" {
        return None;
    }
    let (options, operands): (Vec<&Word>, Vec<&Word>) = command.args().iter().partition(|it| it.text.starts_with('-'));
    let plain = |it: &&Word| [KEEPS, PLAIN].iter().any(|all| all.contains(&it.text.as_str()));
    let [from, to] = operands.as_slice() else { return None };
    let (from, to) = (from.literal()?, to.literal()?);
    let names = |it: &str| it.rsplit('/').next().unwrap_or_default().to_lowercase();
    let template = TEMPLATES.iter().any(|it| names(from).contains(it)) && !is_guarded(from);
    // Its folder is none of secrets, or of what programs obey.
    let folder = to.rsplit_once('/').map_or("", |it| it.0);
    let is_env = names(to) == ".env" || names(to).starts_with(".env.");
    let below = !to.starts_with(['/', '~']) && !to.split('/').any(|it| it == "..");
    (options.iter().all(plain) && template && is_env && below && !is_guarded(folder)).then_some(to)
}

/// Whether that is all a command has to do with secrets, and nothing that was there is lost. `here`: where its words count
/// from, if that is known.
pub(super) fn is_new(command: &Command, here: Option<&AbsPath>, targets: &Targets) -> bool {
    let Some(to) = target(command) else { return false };
    let keeps = || command.args().iter().any(|it| KEEPS.contains(&it.text.as_str()));
    keeps() || here.is_some_and(|here| targets.absent.contains(&here.join(to)))
}

fn is_guarded(text: &str) -> bool {
    let word = Word::literally(text);
    [SECRETS, CONFIG].into_iter().any(|it| paths::find_word(it, &word).is_some())
}
