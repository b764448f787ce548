//! Where tools keep what they downloaded: folders that are offered as a whole, as each package has others below them.

use std::path::Path;

use crate::base::path::AbsPath;

/// Below the home folder; `*` is any one name. Not here is what the tools obey or run and lies beside their caches
/// (`~/.yarn/bin`, `~/.bundle/config`, `~/.nuget/NuGet`, `~/.gradle/init.d`), nor what is below a folder that is kept (`~/.local`).
const CACHES: &[&str] = &[
    ".bun/install/cache",
    ".bundle/cache",
    ".cache/*",
    ".cargo/git",
    ".cargo/registry",
    ".ccache",
    ".composer/cache",
    ".gradle/caches",
    ".ivy2/cache",
    ".m2/repository",
    ".m2/wrapper",
    ".npm",
    ".nuget/packages",
    ".pnpm-store",
    ".pub-cache/hosted",
    ".rustup/downloads",
    ".rustup/tmp",
    ".yarn/berry",
    "Library/Caches/*",
    "go/pkg/mod",
];

/// Whose caches they are.
const OF: &[(&str, &str)] = &[
    ("cargo", ".cargo/registry"),
    ("npm", ".npm"),
    ("pip", ".cache/pip"),
    ("pip3", ".cache/pip"),
    ("yarn", ".cache/yarn"),
];

/// The cache of a program.
pub fn of(program: &str, home: &AbsPath) -> Option<AbsPath> {
    OF.iter().find(|it| it.0 == program).map(|it| home.join(it.1))
}

/// The cache that a path lies in, or is.
pub(super) fn around(path: &AbsPath, home: &AbsPath) -> Option<AbsPath> {
    let below = path.as_path().strip_prefix(home.as_path()).ok()?;
    let cache = CACHES.iter().find_map(|entry| cache(below, Path::new(entry)))?;
    Some(home.join(cache))
}

fn cache<'p>(below: &'p Path, entry: &Path) -> Option<&'p Path> {
    let is_any = entry.file_name().is_some_and(|it| it == "*");
    let len = entry.iter().count();
    // What lies beside the caches themselves is none.
    let found = below.ancestors().find(|it| it.iter().count() == len).filter(|it| !is_any || *it != below)?;
    found.iter().zip(entry.iter()).all(|(name, want)| want == "*" || name == want).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::around;
    use crate::base::path::AbsPath;

    #[test]
    fn a_path_in_a_cache_leads_to_it() {
        let home = AbsPath::new("/h/u").unwrap();
        for (path, want) in [
            ("/h/u/.npm/_cacache/index-v5/c4/f7", "/h/u/.npm"),
            ("/h/u/.npm", "/h/u/.npm"),
            ("/h/u/.cache/pip/http/a", "/h/u/.cache/pip"),
            ("/h/u/.cargo/registry/index", "/h/u/.cargo/registry"),
            ("/h/u/go/pkg/mod/cache/lock", "/h/u/go/pkg/mod"),
        ] {
            let found = around(&AbsPath::new(path).unwrap(), &home).map(|it| it.to_string());
            assert_eq!(found.as_deref(), Some(want), "{path}");
        }
        let none = ["/h/u", "/h/u/.cache", "/h/u/.cache/lock", "/h/u/.cargo/bin/x", "/h/u/.npmrc", "/h/u/.yarn/bin/x"];
        for path in none.into_iter().chain(["/h/u/go/bin/x", "/h/other/.npm/x", "/.npm/x"]) {
            assert_eq!(around(&AbsPath::new(path).unwrap(), &home), None, "{path}");
        }
    }
}
