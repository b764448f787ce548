//! An AppArmor profile that lets castor make namespaces, as Ubuntu needs since 24.04. An administrator loads it.

use std::path::Path;

use super::helper::{self, Namespaces};

/// Whether programs without a profile may make namespaces; not there where AppArmor does not say.
const RESTRICTS: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// The profile for this binary, and how it is loaded, in lines; `None`: it would change nothing.
pub(super) fn profile(program: &Path) -> Option<Vec<String>> {
    let restricts = std::fs::read_to_string(RESTRICTS).is_ok_and(|it| it.trim() == "1");
    (restricts && helper::namespaces() != Namespaces::Helper).then(|| lines(program))
}

fn lines(program: &Path) -> Vec<String> {
    let text = format!(
        "AppArmor keeps castor from making namespaces by itself, which takes a third of the time and holds all repositories.
Put this into /etc/apparmor.d/castor, and run: sudo apparmor_parser -r /etc/apparmor.d/castor
  abi <abi/4.0>,
  include <tunables/global>
  profile castor \"{}\" flags=(unconfined) {{
    userns,
  }}",
        program.display()
    );
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_for_this_binary_wherever_it_lies() {
        let text = lines(Path::new("/opt/my tools/castor")).join("\n");
        assert!(
            text.contains("profile castor \"/opt/my tools/castor\" flags=(unconfined) {\n    userns,\n  }"),
            "{text}"
        );
    }
}
