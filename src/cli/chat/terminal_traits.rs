//! Traits of the terminal that only its name tells: what it does with lines, and whether it answers questions.

use castor_hands::secrets::Env;

/// Terminals that know nothing beyond the text on their screen.
const BARE: &[&str] = &["dumb", "linux", "vt"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalTraits {
    /// A window that becomes narrower wraps its lines again; elsewhere they are cut.
    pub reflows: bool,
    /// It can be asked for its background. What does not know the question passes it over.
    pub tells_background: bool,
    /// It has a new size up to a quarter of a second before it says so, while the user drags a border.
    pub tells_size_late: bool,
}

impl TerminalTraits {
    pub fn of_env(env: &Env) -> Self {
        let value = |name: &str| env.get(name).unwrap_or_default();
        let term = value("TERM");
        // tmux may call itself so, too.
        let is_tmux = !value("TMUX").is_empty();
        let is_screen = term.starts_with("screen") && !is_tmux;
        let is_simple = is_screen || term.is_empty() || BARE.iter().any(|it| term.starts_with(it));
        Self {
            reflows: !is_simple && value("XTERM_VERSION").is_empty(),
            tells_background: !is_simple,
            tells_size_late: is_tmux,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TerminalTraits;
    use castor_hands::secrets::Env;

    #[test]
    fn names_of_terminals_tell_what_they_do() {
        for (variables, reflows, tells_background, tells_size_late) in [
            (&[("TERM", "xterm-256color")][..], true, true, false),
            (&[("TERM", "xterm-256color"), ("XTERM_VERSION", "XTerm(379)")], false, true, false),
            (&[("TERM", "screen-256color"), ("TMUX", "/tmp/x,1,0")], true, true, true),
            (&[("TERM", "screen")], false, false, false),
            (&[("TERM", "linux")], false, false, false),
            (&[], false, false, false),
        ] {
            let traits = TerminalTraits::of_env(&Env::from_pairs(variables.iter().copied()));
            assert_eq!(traits, TerminalTraits { reflows, tells_background, tells_size_late }, "{variables:?}");
        }
    }
}
