//! Folders that a container sees under another name: `docker run -v "$PWD:/w" alpine cat /w/x`.

use crate::{
    base::{path::AbsPath, tool::Lead},
    engine::policy::shell::{Command, Script, base_name},
};

const ENGINES: &[&str] = &["docker", "nerdctl", "podman"];
const OPTIONS: &[&str] = &["-v", "--mount", "--volume"];
/// How a line says where it is.
const HERE: &[&str] = &["$PWD", "${PWD}", "$(pwd)", "`pwd`"];

/// Those of all containers of a line.
pub(super) fn leads(script: &Script, here: &AbsPath) -> Vec<Lead> {
    let engine = |it: &&Command| it.name().is_some_and(|it| ENGINES.contains(&base_name(it)));
    script.commands.iter().filter(engine).flat_map(texts).filter_map(|it| lead(it, here)).collect()
}

/// What stands behind such an option, or sticks to it.
fn texts(command: &Command) -> impl Iterator<Item = &str> {
    let words = || command.args().iter().map(|it| it.text.as_str());
    let behind = words().zip(words().skip(1)).filter(|it| OPTIONS.contains(&it.0)).map(|it| it.1);
    let stuck = |it| OPTIONS.iter().find_map(|option| str::strip_prefix(it, *option)).filter(|it| !it.is_empty());
    behind.chain(words().filter_map(stuck)).map(|it| it.trim_start_matches('='))
}

fn lead(text: &str, here: &AbsPath) -> Option<Lead> {
    let text = text.replace(['"', '\''], "");
    let value = |names: &[&str]| {
        text.split(',').find_map(|it| it.split_once('=').filter(|it| names.contains(&it.0)).map(|it| it.1))
    };
    let (from, to) = match text.contains("type=bind") {
        true => (value(&["source", "src"])?, value(&["destination", "dst", "target"])?),
        false => {
            let (from, rest) = text.split_once(':')?;
            (from, rest.split(':').next()?)
        }
    };
    let from = HERE.iter().fold(from.to_owned(), |from, it| from.replace(it, &here.to_string()));
    // A name alone is a volume's.
    let real = here.join(&from);
    let path = AbsPath::new(to)?;
    (from.contains(['/', '.'])).then(|| Lead { name: "mount".to_owned(), path, real, in_roots: true })
}
