//! Programs that are often told to say nothing, and by which exit code they tell that they reached nobody.

/// curl's for a name that nobody knows, and wget's for any failure of the network.
const CODES: &[(&str, i32)] = &[("curl", 6), ("wget", 4)];
/// Whoever is not reached here was not started.
const HERE: &[&str] = &["localhost", "127.0.0.1", "[::1]"];

/// The exit code by which such a command tells it.
pub fn unreached(command: &str) -> Option<i32> {
    let words = || command.split(|it: char| it.is_whitespace() || ";|&()`\"'".contains(it));
    let near = HERE.iter().any(|it| command.contains(it));
    CODES.iter().filter(|_| !near).find(|it| words().any(|word| word == it.0)).map(|it| it.1)
}

#[cfg(test)]
mod tests {
    use super::unreached;

    #[test]
    fn who_says_nothing_tells_by_a_number() {
        for (command, code) in [
            ("curl -s https://example.com", Some(6)),
            ("x=$(curl -sf https://example.com)", Some(6)),
            ("cd a && wget -q http://example.com", Some(4)),
            ("curl -s http://localhost:3000", None),
            ("wget -q http://127.0.0.1", None),
            ("echo curly", None),
            ("make", None),
        ] {
            assert_eq!(unreached(command), code, "{command}");
        }
    }
}
