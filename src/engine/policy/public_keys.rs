//! Keys for everybody in a folder of secrets: `~/.ssh/id_rsa.pub`.

use crate::base::guarded::SECRETS;

/// Whether a word, or a path, names nothing but such keys: a pattern finds no others, either. What has a sign in it at which
/// a word may be two is none: `-v ~/.ssh:/x.pub`.
pub(super) fn is_one(text: &str) -> bool {
    // Asked of each word.
    if !text.trim_end_matches('"').ends_with(".pub") {
        return false;
    }
    let quoted = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(text);
    let Some((folder, name)) = quoted.rsplit_once('/') else { return false };
    let Some(above) = folder.strip_suffix(".ssh").filter(|it| it.is_empty() || it.ends_with('/')) else {
        return false;
    };
    let plain = |it: &str| it.chars().all(|it| it.is_alphanumeric() || "-_./".contains(it));
    let rest = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|it| above.strip_prefix(it)).unwrap_or(above);
    let is_other = SECRETS.find_names(rest.split('/').filter(|it| !it.is_empty()), rest.starts_with('/')).is_some();
    let key = name.trim_end_matches(".pub");
    plain(rest) && !is_other && !key.is_empty() && plain(&key.replace('*', ""))
}
