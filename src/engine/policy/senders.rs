//! Commands that take folders elsewhere whole: clients of stores and machines, archives. What they take is read.

use super::shell::{Command, Word, base_name};

struct Row {
    program: &'static str,
    /// Behind one of these words, if there are any.
    sub: &'static [&'static str],
    /// Only with one of these options, if there are any.
    with: &'static [&'static str],
    takes: Takes,
}

/// Which words name what it takes.
#[derive(Clone, Copy)]
enum Takes {
    /// Those before the first that lies elsewhere: behind that stands where it comes to.
    Sent,
    /// All but the last.
    Sources,
    /// Those behind the archive, or all that is here.
    Packed,
    /// All.
    Operands,
    /// What stands behind one of these options.
    Options(&'static [&'static str]),
}

const fn row(program: &'static str, sub: &'static [&'static str], takes: Takes) -> Row {
    Row { program, sub, with: &[], takes }
}

const RECURSES: &[&str] = &["-r", "-R", "--recurs"];
const CREATES: &[&str] = &["-c", "--create"];

#[rustfmt::skip]
const SENDERS: &[Row] = &[
    row("7z", &["a", "u"], Takes::Packed),
    row("7za", &["a", "u"], Takes::Packed),
    row("7zr", &["a", "u"], Takes::Packed),
    row("7zz", &["a", "u"], Takes::Packed),
    row("aws", &["sync"], Takes::Sent),
    Row { with: RECURSES, ..row("aws", &["cp", "mv"], Takes::Sent) },
    row("az", &["sync", "upload-batch"], Takes::Options(&["-s", "--source"])),
    Row { with: RECURSES, ..row("az", &["copy"], Takes::Options(&["-s", "--source"])) },
    row("azcopy", &["sync"], Takes::Sent),
    Row { with: RECURSES, ..row("azcopy", &["copy", "cp"], Takes::Sent) },
    row("croc", &["send"], Takes::Operands),
    row("docker", &["cp"], Takes::Sent),
    Row { with: RECURSES, ..row("gcloud", &["cp", "mv", "rsync", "scp"], Takes::Sent) },
    row("gh", &["gist", "upload"], Takes::Operands),
    Row { with: RECURSES, ..row("gsutil", &["cp", "mv", "rsync"], Takes::Sent) },
    row("jar", &["-cf", "-cvf", "--create", "c", "cf", "cfM", "cfe", "cfm", "cv", "cvf", "cvfM", "cvfe", "cvfm"], Takes::Packed),
    row("kubectl", &["cp"], Takes::Sent),
    row("mc", &["mirror"], Takes::Sources),
    Row { with: RECURSES, ..row("mc", &["cp", "mv"], Takes::Sources) },
    row("nerdctl", &["cp"], Takes::Sent),
    row("netlify", &["deploy"], Takes::Options(&["-d", "--dir"])),
    row("oc", &["cp", "rsync"], Takes::Sent),
    row("podman", &["cp"], Takes::Sent),
    Row { with: CREATES, ..row("python", &["tarfile", "zipfile"], Takes::Packed) },
    Row { with: CREATES, ..row("python3", &["tarfile", "zipfile"], Takes::Packed) },
    row("rar", &["a", "m", "u"], Takes::Packed),
    row("rclone", &["bisync", "copy", "copyto", "move", "moveto", "sync"], Takes::Sent),
    row("s3cmd", &["sync"], Takes::Sent),
    Row { with: RECURSES, ..row("s3cmd", &["put"], Takes::Sent) },
    row("s5cmd", &["cp", "mv", "sync"], Takes::Sent),
    row("surge", &[], Takes::Operands),
    row("wormhole", &["send"], Takes::Operands),
    row("wrangler", &["deploy"], Takes::Operands),
];

/// The words that name what the command takes along, if it is one of these. None of them: all that is where it works.
pub(super) fn taken(command: &Command) -> Option<Vec<&Word>> {
    let name = base_name(command.name()?);
    let from = SENDERS.partition_point(|it| it.program < name);
    let rows = SENDERS.get(from..)?.iter().take_while(|it| it.program == name);
    rows.into_iter()
        .find_map(|it| it.taken(command.args()))
        .filter(|it| !it.is_empty() || name.starts_with('7') || name == "rar")
}

impl Row {
    fn taken<'a>(&self, args: &'a [Word]) -> Option<Vec<&'a Word>> {
        let has = |starts: &[&str]| args.iter().any(|it| starts.iter().any(|start| it.text.starts_with(start)));
        if !(self.with.is_empty() || has(self.with)) {
            return None;
        }
        let behind = match self.sub {
            [] => args,
            subs => args.get(args.iter().position(|it| subs.contains(&it.text.as_str()))? + 1..)?,
        };
        let operands = || behind.iter().filter(|it| !it.text.starts_with('-'));
        let skipped = || operands().count().saturating_sub(1);
        Some(match self.takes {
            Takes::Sent if !operands().any(lies_elsewhere) => return None,
            Takes::Sent => operands().take_while(|it| !lies_elsewhere(it)).collect(),
            Takes::Sources => operands().take(skipped()).collect(),
            Takes::Packed => packed(behind).skip(1).collect(),
            Takes::Operands => operands().collect(),
            Takes::Options(options) => {
                let pairs = behind.iter().zip(behind.iter().skip(1));
                pairs.filter(|it| options.contains(&it.0.text.as_str())).map(|it| it.1).collect()
            }
        })
    }
}

/// The archive and what goes into it. Of `-C classes .` the folder counts.
fn packed(args: &[Word]) -> impl Iterator<Item = &Word> {
    let moves = |at: usize| at.checked_sub(2).and_then(|at| args.get(at)).is_some_and(|it| it.text == "-C");
    args.iter().enumerate().filter(move |it| !it.1.text.starts_with('-') && !moves(it.0)).map(|it| it.1)
}

/// `s3://b/x`, `host:x`, `-`: no file of this machine.
fn lies_elsewhere(word: &Word) -> bool {
    word.text.split('/').next().is_some_and(|it| it.contains(':')) || word.text == "-"
}

#[cfg(test)]
mod tests {
    use super::SENDERS;

    #[test]
    fn the_table_is_sorted_by_its_programs() {
        assert!(SENDERS.is_sorted_by_key(|it| it.program));
    }
}
