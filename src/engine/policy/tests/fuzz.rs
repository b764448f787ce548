//! Random commands: nothing panics, and a rule that denies never makes anything allowed.

use super::*;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

const PIECES: &[&str] = &[
    "ls",
    "rm",
    "-rf",
    "x",
    "git",
    "push",
    "log",
    "-c",
    "echo",
    "sh",
    "bash",
    "'",
    "\"",
    "`",
    "$(",
    ")",
    "(",
    "{",
    "}",
    "$",
    "$x",
    "${x@P}",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "\n",
    "\\",
    "\\\n",
    " ",
    " ",
    " ",
    " ",
    "<",
    ">",
    ">>",
    "2>&1",
    "<<EOF\n",
    "\nEOF\n",
    "<(",
    "$'",
    "\u{a0}",
    "é",
    "#",
    "!",
    "[[",
    "]]",
    "((",
    "))",
    "eval",
    "sudo",
    "xargs",
    "env",
    "A=b",
    "for i in a; do",
    "done",
    "if",
    "then",
    "fi",
    "f()",
    "*",
    "~",
    ".env",
    "/dev/null",
    "\0",
    "\r",
    "find",
    "-exec",
];

#[test]
fn never_panics_and_denies_only_narrow() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let base = rule("allow", "commandPrefix=['echo','git log','bash','xargs']\nallowRedirection=true");
    let denies = ["commandPrefix='rm'", "commandPrefix=['git push','ls']", "commandRegex='.*x'", "argsPattern='x'", ""];
    let before = rules(&base);
    let after: Vec<Rules> =
        denies.iter().map(|it| rules(&(base.clone() + &rule("deny", it).replace("100", "50")))).collect();
    let firm: Vec<Rules> =
        denies.iter().map(|it| rules(&(base.clone() + &rule("deny", it).replace("100", "500")))).collect();
    for _ in 0..4000 {
        let command: String = (0..1 + dice.roll(12)).map(|_| PIECES[dice.roll(PIECES.len())]).collect();
        let mode = Mode::OFFERED[dice.roll(3)];
        let interactive = dice.roll(4) > 0;
        let plain = shell(&before, mode, interactive, &command, &[]).decision;
        let at = dice.roll(denies.len());
        for rules in [&after[at], &firm[at]] {
            let narrowed = shell(rules, mode, interactive, &command, &[]).decision;
            assert!(plain == Decision::Allow || narrowed != Decision::Allow, "{command:?} {mode:?} {}", denies[at]);
        }
    }
}
