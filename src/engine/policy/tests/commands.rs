//! Shell commands by the hundred: the rows of `commands.txt`, and some that are too long for a row.

use expect_test::expect_file;

use super::*;

/// `UPDATE_EXPECT=1` rewrites what stands behind the arrows.
#[test]
fn commands() {
    let mut setting = Setting::new();
    let lines = include_str!("commands.txt").lines().map(|line| setting.read(line));
    expect_file!["commands.txt"].assert_eq(&lines.collect::<String>());
}

/// What the rows of a section are decided by.
struct Setting {
    rules: RuleSet,
    grants: Vec<Grant>,
}

impl Setting {
    fn new() -> Self {
        Self { rules: rules(""), grants: Vec::new() }
    }

    /// The line, with what is true behind its arrow.
    fn read(&mut self, line: &str) -> String {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("" | "#", _) => (),
            ("==", _) => *self = Self::new(),
            ("rule", rest) => {
                let (decision, what) = rest.split_once(' ').unwrap_or((rest, ""));
                self.rules = rules(&rule(decision, &unescaped(what)));
            }
            ("grant", rest) => {
                let prefixes = rest.split(", ").map(str::to_owned).collect();
                self.grants.push(Grant::Commands { prefixes });
            }
            _ => {
                let (call, _) = line.rsplit_once(" => ").unwrap();
                let (how, command) = call.split_once("  ").unwrap();
                return format!("{call} => {}\n", self.answer(how, &unescaped(command.trim())));
            }
        }
        format!("{line}\n")
    }

    fn answer(&self, how: &str, command: &str) -> String {
        let joined = |it: Option<Vec<String>>| it.map_or("-".to_owned(), |it| it.join(", "));
        match how {
            "undo" => match shell(&self.rules, Mode::Auto, true, command, &self.grants) {
                Verdict { decision: Decision::Allow, basis, .. } => {
                    if basis == VerdictBasis::Mode { "needed" } else { "-" }.to_owned()
                }
                it => word(it.decision).to_owned(),
            },
            "offer" => match shell(&self.rules, Mode::Default, true, command, &self.grants).grant {
                Some(Grant::Commands { prefixes }) => joined(Some(prefixes)),
                None => joined(None),
                it => format!("{it:?}"),
            },
            mode => word(self.decision(mode, command)).to_owned(),
        }
    }

    fn decision(&self, how: &str, command: &str) -> Decision {
        let (mode, folder) = how.split_once('@').map_or((how, None), |(mode, folder)| (mode, Some(folder)));
        let interactive = !mode.ends_with('!');
        let mode = Mode::parse(mode.trim_end_matches('!')).unwrap();
        let Some(folder) = folder else {
            return shell(&self.rules, mode, interactive, command, &self.grants).decision;
        };
        let folder = (!folder.is_empty()).then_some(folder);
        let args = json!({ "command": command, "dir_path": folder });
        let targets = Targets { command: Some(command.to_owned()), ..Targets::default() };
        let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        let sandbox = SandboxFacts::WHOLE;
        decide(&self.rules, &Query { mode, interactive, grants: &self.grants, sandbox, ..query }).decision
    }
}

/// The number of commands has no limit; a line that is too long is not read, so it is asked about or denied.
#[test]
fn large_ones() {
    let rules = rules(&rule("deny", "commandPrefix='rm'"));
    let decision = |mode, command: &str| shell(&rules, mode, true, command, &[]).decision;
    for separator in [";", "; ", " && ", " | ", "\n"] {
        let many = vec!["ls"; 10_000].join(separator);
        assert_eq!(decision(Mode::Default, &many), Decision::Allow);
        assert_eq!(decision(Mode::Yolo, &format!("{many}{separator}rm x")), Decision::Deny, "{separator:?}");
        assert_eq!(decision(Mode::Default, &format!("{many}{separator}rm x")), Decision::Deny, "{separator:?}");
    }
    let huge = format!("ls {}", "x".repeat(70_000));
    assert_eq!(decision(Mode::Default, &huge), Decision::Ask);
    assert_eq!(decision(Mode::Yolo, &huge), Decision::Deny);
    let deep = |open: &str, close: &str| format!("{}ls{}", open.repeat(3000), close.repeat(3000));
    assert_ne!(decision(Mode::Default, &deep("$(", ")")), Decision::Allow);
    assert_eq!(decision(Mode::Yolo, &deep("$(", ")")), Decision::Deny);
    _ = decision(Mode::Yolo, &deep("( ", ")"));
    _ = decision(Mode::Yolo, &"(".repeat(60_000));
    _ = decision(Mode::Yolo, &"`".repeat(60_000));
    _ = decision(Mode::Yolo, &"<<a ".repeat(9_000));
}

/// At each start they are believed.
#[test]
fn the_shipped_rules_name_tools_as_they_are_called() {
    let shipped = RuleSet::shipped(own_tools());
    let named: Vec<&String> = shipped.iter().flat_map(|it| &it.tools).collect();
    assert!(named.len() > 10, "{named:?}");
    let odd = named.into_iter().filter_map(|it| Some((it, super::super::names::nearest_name(it, own_tools())?)));
    assert_eq!(odd.collect::<Vec<_>>(), []);
}
