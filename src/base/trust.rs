//! Folder trust: levels, rules, the files that trust covers, and the question to the user.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    mode::Mode,
    path::AbsPath,
    question::{Choice, Field, FieldKind, Form},
    text::is_deceptive,
};

/// Why a session may not be in a mode: as settings forbid it (`is_off`), or as its folder is not trusted.
pub fn mode_refusal(mode: Mode, is_off: bool) -> String {
    let mode = mode.flag();
    match is_off {
        true => format!("the settings forbid the mode {mode} (security.disableYoloMode); choose another mode"),
        false => {
            format!(
                "the mode {mode} needs a trusted folder: run `castor trust` in it, or set CASTOR_TRUST_WORKSPACE=true"
            )
        }
    }
}

/// The answer with its reason, for the user. Only `Trusted` switches anything on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    Trusted {
        why: String,
        /// The folder that the rule is about; `None`: the environment says so, whatever the folder holds.
        root: Option<AbsPath>,
    },
    Untrusted(String),
    /// The user has not decided about this folder yet.
    Unknown,
}

impl Trust {
    pub fn is_trusted(&self) -> bool {
        matches!(self, Self::Trusted { .. })
    }

    /// Behind `is`, for the user. `home` is what `~` stands for.
    pub fn in_words(&self, home: Option<&AbsPath>) -> String {
        let short = |why: &str| match home.and_then(|it| why.strip_prefix(&format!("{it}/"))) {
            Some(rest) => format!("~/{rest}"),
            None => why.to_owned(),
        };
        match self {
            Self::Trusted { why, .. } => format!("trusted ({})", short(why)),
            Self::Untrusted(why) => format!("not trusted ({})", short(why)),
            Self::Unknown => "not trusted: you have not decided about it yet".to_owned(),
        }
    }
}

/// The trust of a folder in a trust file, in Gemini CLI's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustLevel {
    Folder,
    Parent,
    Never,
}

impl TrustLevel {
    pub const ALL: &[TrustLevel] = &[Self::Folder, Self::Parent, Self::Never];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Folder => "TRUST_FOLDER",
            Self::Parent => "TRUST_PARENT",
            Self::Never => "DO_NOT_TRUST",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.as_str() == text)
    }
}

/// A rule that was found. Paths are real, and folded where the platform's names are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustRule {
    pub path: AbsPath,
    pub level: TrustLevel,
    /// The file that has it.
    pub file: AbsPath,
    /// The path as it is written there.
    pub written: AbsPath,
}

impl TrustRule {
    /// The folder it is about.
    fn root(&self) -> AbsPath {
        let parent = (self.level == TrustLevel::Parent).then(|| self.path.parent()).flatten();
        parent.unwrap_or_else(|| self.path.clone())
    }

    /// Why `folder` is trusted or not: a rule about another folder names that one.
    fn reason(&self, folder: &AbsPath) -> String {
        match self.root() {
            root if root == *folder => self.file.to_string(),
            root => format!("{}, for all of {root}", self.file),
        }
    }
}

/// As in its file.
impl fmt::Display for TrustRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.file, self.written, self.level.as_str())
    }
}

/// The rule for the longest path decides, where a no beats a yes; without one nothing is known.
pub fn decide<'r>(rules: impl IntoIterator<Item = &'r TrustRule>, folder: &AbsPath) -> Trust {
    let fitting = rules.into_iter().filter(|it| folder.is_within(&it.root()));
    let length = |it: &TrustRule| it.root().as_path().components().count();
    match fitting.max_by_key(|it| (length(it), it.level == TrustLevel::Never)) {
        Some(it) if it.level == TrustLevel::Never => Trust::Untrusted(it.reason(folder)),
        Some(it) => Trust::Trusted { why: it.reason(folder), root: Some(it.root()) },
        None => Trust::Unknown,
    }
}

/// The path as the platform tells names apart: not by their case on macOS and Windows.
pub fn fold_case(path: &AbsPath, folds_case: bool) -> AbsPath {
    let lower = || AbsPath::new(path.as_path().to_str()?.to_lowercase());
    folds_case.then(lower).flatten().unwrap_or_else(|| path.clone())
}

/// The use of a trusted file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrustedFileKind {
    Settings,
    /// What the settings would run.
    Program,
    Policy,
    Env,
    Agent,
    Command,
    Skill,
    /// What lies beside a skill: the model reads it, or runs it.
    SkillFile,
    Memory,
}

impl TrustedFileKind {
    /// In the plural, for lists of what was found.
    pub fn plural_name(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Program => "programs",
            Self::Policy => "policies",
            Self::Env => "environment files",
            Self::Agent => "agents",
            Self::Command => "commands",
            Self::Skill | Self::SkillFile => "skills",
            Self::Memory => "memory files",
        }
    }

    /// Tells whether castor goes by what was hashed. Programs and the model read the others.
    pub fn is_read(self) -> bool {
        !matches!(self, Self::Program | Self::SkillFile)
    }

    /// Tells whether a model goes by what it says.
    pub fn instructs(self) -> bool {
        matches!(self, Self::Agent | Self::Command | Self::Skill | Self::SkillFile | Self::Memory)
    }

    /// Tells whether trust is bound to the content. Memory is text for the model, and changes with every day's work.
    pub fn binds_content(self) -> bool {
        self != Self::Memory
    }
}

/// A file of a folder that trust would let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedFile {
    /// Relative to the folder.
    pub name: String,
    pub kind: TrustedFileKind,
    /// `None`: it cannot be read, or leads out of the folder. It never counts.
    pub hash: Option<String>,
}

/// Files that something of a folder names, with the hashes under which they were trusted.
pub type ScriptHashes = Vec<(AbsPath, String)>;

/// Hashes by name, as they were when the user said yes.
pub type TrustedHashes = BTreeMap<String, String>;

/// The names that a decision covers, and those that it does not (with `true` for those it never saw).
pub fn split_covered(pieces: &[TrustedFile], known: &TrustedHashes) -> (BTreeSet<String>, Vec<(String, bool)>) {
    let (mut covered, mut open) = (BTreeSet::new(), Vec::new());
    for it in pieces {
        match (&it.hash, known.get(&it.name)) {
            _ if !it.kind.binds_content() => _ = covered.insert(it.name.clone()),
            (Some(hash), Some(known)) if hash == known => _ = covered.insert(it.name.clone()),
            (None, _) => (),
            (Some(_), before) => open.push((it.name.clone(), before.is_none())),
        }
    }
    (covered, open)
}

/// What a yes to all of them is written down as.
pub fn trusted_hashes(pieces: &[TrustedFile]) -> TrustedHashes {
    let bound = pieces.iter().filter(|it| it.kind.binds_content());
    bound.filter_map(|it| Some((it.name.clone(), it.hash.clone()?))).collect()
}

/// The user's word on a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrustChoice {
    Folder,
    /// The same, and sessions in it begin in the mode `auto`.
    FolderAuto,
    Parent,
    /// Not in this session; the next one asks again.
    NotNow,
    Never,
}

impl TrustChoice {
    pub const ALL: &[TrustChoice] = &[Self::Folder, Self::FolderAuto, Self::Parent, Self::NotNow, Self::Never];
    /// The field of the form that carries it.
    pub const FIELD: &str = "trust";

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Folder => "trust_folder",
            Self::FolderAuto => "trust_folder_auto",
            Self::Parent => "trust_parent",
            Self::NotNow => "not_now",
            Self::Never => "never",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.as_str() == text)
    }
}

/// The reason for a trust question or notice.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustDoubt {
    pub form: Form,
    /// One line for clients that cannot ask. It holds no text that the folder could have written.
    pub notice: String,
}

impl TrustDoubt {
    /// The question, with the mode `auto` as one more answer behind the plain yes.
    pub fn form_with_auto(&self) -> Form {
        let mut res = self.form.clone();
        let lists = res.fields.iter_mut().filter_map(|it| match &mut it.kind {
            FieldKind::Choice { options } => Some(options),
            _ => None,
        });
        for options in lists {
            let Some(at) = options.iter().position(|it| it.value == TrustChoice::Folder.as_str()) else { continue };
            let title =
                format!("{}, and work without questions here (mode auto)", options.get(at).map_or("", |it| &it.title));
            let value = TrustChoice::FolderAuto.as_str().to_owned();
            options.insert(at + 1, Choice { value, title, description: None });
        }
        res
    }
}

/// More names than this are counted.
const MAX_NAMES: usize = 20;
/// Longest name or command that is shown, in characters.
const MAX_CHARS: usize = 300;

/// Tells whether to trust a folder is to trust about all that the user has: it is the top of the disk, or a home is in
/// it.
pub fn is_wide(folder: &AbsPath, homes: &[AbsPath]) -> bool {
    folder.parent().is_none() || homes.iter().any(|it| it.is_within(folder))
}

/// The question about a folder that nobody said anything about; `None`: it holds nothing to trust. `starts`: what its
/// settings would start or reach.
pub fn folder_doubt(
    folder: &AbsPath,
    homes: &[AbsPath],
    pieces: &[TrustedFile],
    starts: &[String],
) -> Option<TrustDoubt> {
    if pieces.is_empty() {
        return None;
    }
    let mut message = format!("Do you trust the folder {}? ", plain(&folder.to_string()));
    message += "It brings files that would tell castor what to do; none of them is used before you say yes.\n";
    message += &list(pieces.iter().map(|it| (it.name.as_str(), unreadable_note(it))));
    message += &started_by_trust(starts);
    let is_narrow = |it: &AbsPath| !is_wide(it, homes);
    if !is_narrow(folder) {
        message += &format!(
            "{} That is not a matter of one click: `castor trust` in it asks again.\n",
            wide_folder_warning(folder)
        );
    }
    let width = |it: &AbsPath| if is_narrow(it) { "" } else { ", your home folder included" };
    let parent = folder.parent().filter(|_| is_narrow(folder));
    let rows = [
        (TrustChoice::Folder, is_narrow(folder).then(|| "Trust this folder".to_owned())),
        (TrustChoice::Parent, parent.map(|it| format!("Trust everything in {}{}", plain(&it.to_string()), width(&it)))),
        (TrustChoice::NotNow, Some("Not now".to_owned())),
        (TrustChoice::Never, Some("Never".to_owned())),
    ];
    let kinds: BTreeSet<TrustedFileKind> = pieces.iter().map(|it| it.kind).collect();
    let mut kinds: Vec<&str> = kinds.into_iter().map(TrustedFileKind::plural_name).collect();
    kinds.dedup();
    let kinds = match kinds.as_slice() {
        [more @ .., last] if !more.is_empty() => format!("{} and {last}", more.join(", ")),
        one => one.concat(),
    };
    let notice =
        format!("This folder is not trusted, so its own {kinds} are not used. To use them, run `castor trust` in it.");
    Some(TrustDoubt { form: form(message, rows), notice })
}

/// What a yes to a wide folder says.
pub fn wide_folder_warning(folder: &AbsPath) -> String {
    let folder = plain(&folder.to_string());
    format!(
        "Your home folder is in {folder}: to trust it is to trust every project and every download below it, today's and \
         those to come, with the settings, policies and programs that they bring."
    )
}

/// Names in the notice, which is a line.
const MAX_NAMED: usize = 5;

/// The question about files that changed since the user's yes; `None`: none did.
pub fn change_doubt(folder: &AbsPath, open: &[(String, bool)], starts: &[String]) -> Option<TrustDoubt> {
    if open.is_empty() {
        return None;
    }
    let mut message = format!("Do you still trust the folder {}? ", plain(&folder.to_string()));
    message += "These files are not as they were when you said yes; they are not used before you say it again.\n";
    message += &list(open.iter().map(|(name, is_new)| (name.as_str(), if *is_new { " (new)" } else { " (changed)" })));
    message += &started_by_trust(starts);
    let rows = [
        (TrustChoice::Folder, Some("Trust its current content".to_owned())),
        (TrustChoice::NotNow, Some("Not now".to_owned())),
        (TrustChoice::Never, Some("Never again".to_owned())),
    ];
    let mut names: Vec<String> = open.iter().take(MAX_NAMED).map(|(name, _)| plain(name)).collect();
    if open.len() > MAX_NAMED {
        names.push(format!("{} more", open.len() - MAX_NAMED));
    }
    let (names, are) = (names.join(", "), if open.len() == 1 { "is" } else { "are" });
    let notice = format!(
        "Of this folder's own files {} changed since it was trusted and {are} not used: {names}. To use them, run `castor \
         trust` in it.",
        open.len()
    );
    Some(TrustDoubt { form: form(message, rows), notice })
}

fn form(message: String, rows: impl IntoIterator<Item = (TrustChoice, Option<String>)>) -> Form {
    let option = |(choice, title): (TrustChoice, Option<String>)| {
        Some(Choice { value: choice.as_str().to_owned(), title: title?, description: None })
    };
    let options = rows.into_iter().filter_map(option).collect();
    let name = TrustChoice::FIELD.to_owned();
    let field = Field {
        name,
        title: Some("Trust".to_owned()),
        description: None,
        required: true,
        kind: FieldKind::Choice { options },
        default: None,
    };
    Form { message, fields: vec![field] }
}

fn unreadable_note(it: &TrustedFile) -> &'static str {
    match (it.kind.binds_content(), &it.hash) {
        (true, None) => " (cannot be read, or leads out of the folder: never used)",
        (true, Some(_)) if it.kind == TrustedFileKind::Program => " (would run)",
        _ => "",
    }
}

fn list<'a>(names: impl ExactSizeIterator<Item = (&'a str, &'a str)>) -> String {
    let n_more = names.len().saturating_sub(MAX_NAMES);
    let mut res: String = names.take(MAX_NAMES).map(|(name, what)| format!("- {}{what}\n", plain(name))).collect();
    if n_more > 0 {
        res += &format!("- and {n_more} more\n");
    }
    res
}

/// What trust is not bound to.
pub const UNWATCHED: &str = "castor does not watch what these start in turn, and does not ask when that changes.";

fn started_by_trust(starts: &[String]) -> String {
    let lines = || list(starts.iter().map(|it| (it.as_str(), "")));
    if starts.is_empty() { String::new() } else { format!("They would start or reach:\n{}{UNWATCHED}\n", lines()) }
}

const ALLOW: &str = "They would allow without a question:\n";

/// What a yes would let happen without another one, for the question; nothing where there is nothing of the kind.
pub fn allowed_by_trust(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        them if them.len() > MAX_NAMES => {
            let shown = list(them.iter().take(MAX_NAMES).map(|it| (it.as_str(), "")));
            let more = them.len() - MAX_NAMES;
            format!("{ALLOW}{shown}- and {more} more; `castor trust why` lists all of them\n")
        }
        them => format!("{ALLOW}{}", list(them.iter().map(|it| (it.as_str(), "")))),
    }
}

/// What a repository wrote, so that it can look like nothing else than it is: one line, no characters that hide or
/// turn others.
fn plain(text: &str) -> String {
    let mut res: String =
        text.chars().take(MAX_CHARS).map(|it| if is_deceptive(it) { '\u{fffd}' } else { it }).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        res.push('…');
    }
    res
}

#[cfg(test)]
mod tests;
