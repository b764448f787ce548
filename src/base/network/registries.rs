//! Hosts that package managers read from, which one choice opens. Hosts that take uploads alone are not among them.

pub(super) const NAME: &str = "registries";
/// For the user.
pub(super) const NAMED: &str = "npm, PyPI, crates.io, Go, RubyGems, Maven";

/// npm and Yarn, PyPI, crates.io, Go's proxy, RubyGems, Maven and Gradle.
pub(super) const HOSTS: &[&str] = &[
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "pypi.org",
    "files.pythonhosted.org",
    "index.crates.io",
    "static.crates.io",
    "proxy.golang.org",
    "sum.golang.org",
    "rubygems.org",
    "index.rubygems.org",
    "repo.maven.apache.org",
    "repo1.maven.org",
    "plugins.gradle.org",
    "services.gradle.org",
];

/// All of them speak TLS.
pub(super) const PORT: u16 = 443;
