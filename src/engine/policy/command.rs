//! The verdict on a shell line: every command on its own, then the worst of them.

use std::collections::BTreeSet;

use super::{
    danger,
    guards::{self, Guard, GuardedWords},
    patterns::{Hit, Spelling},
    persistent, plans, prefixes,
    query::{Query, auto_on_offer},
    rule::{Rule, Tier},
    rules::Rules,
    safe,
    shell::{self, Command, Line, Role, Script, Word, WordKind},
    verdict::{PartialVerdict, Verdict, nobody_to_ask},
};
use crate::base::log::{Decision, Grant, Mode};

/// The rule that a yes for this session goes by.
pub const GRANTED: &str = "allowed for this session";
const LOOKS: &str = "it only looks";

/// Decides on `text`, or on a call whose command is not known.
pub fn decide(rules: &Rules, query: &Query, text: Result<&str, &'static str>) -> Verdict {
    let (text, line) = match text {
        Ok(it) => (it, shell::parse(it)),
        Err(why) => ("", Line::Opaque { why, seen: Script::default() }),
    };
    let judge = Judge::new(rules, query, text, line);
    let (worst, asked) = judge.worst();
    let worst = judge.with_folder(judge.as_a_whole(worst));
    let grant = if worst.decision == Decision::Ask { judge.grant(&asked) } else { None };
    let ordinary = worst.is_ordinary_question();
    let verdict = Verdict::of(query, worst, grant);
    let careful = matches!(query.mode, Mode::Default | Mode::AutoEdit);
    let asks = verdict.decision == Decision::Ask && ordinary;
    let network = query.mode == Mode::Yolo && query.sandbox.gives_network();
    let network = network && !judge.named.guards.iter().any(|it| it.1.is_secret());
    let is_asked = verdict.decision == Decision::Ask && judge.line.why_opaque().is_none();
    let start = query.roots.first().filter(|_| is_asked);
    let writes = start.iter().flat_map(|start| judge.named.written.iter().map(|it| start.join(it))).collect();
    Verdict {
        writes,
        // With the network it sees no secrets; what only looks sees them, and has none.
        looks: judge.looks && !network,
        network,
        offers_auto: asks && careful && auto_on_offer(query.sandbox).is_ok(),
        ..verdict
    }
}

/// What is thought of each command in `text` by itself.
pub fn parts(rules: &Rules, query: &Query, text: &str) -> Vec<(String, PartialVerdict)> {
    let judge = Judge::new(rules, query, text, shell::parse(text));
    let script = judge.line.script();
    let mut res: Vec<(String, PartialVerdict)> =
        judge.commands().iter().enumerate().map(|(at, it)| (it.text.clone(), judge.part(at, it))).collect();
    let asked = judge.as_a_whole(Part { worst: judge.worst().0.worst, redirection: false });
    let target = script.redirects.iter().find(|it| it.writes && asked.rule.ends_with(&it.target.text));
    res.extend(target.map(|it| (format!("> {}", it.target.text), asked)));
    res
}

/// The worst verdict on any command of a line.
struct Part {
    worst: PartialVerdict,
    /// Output may go to files.
    redirection: bool,
}

/// A line with what was found out about it.
struct Judge<'a> {
    query: &'a Query<'a>,
    rules: &'a Rules,
    text: &'a str,
    line: Line,
    /// All of it only looks.
    looks: bool,
    /// What of it is guarded.
    named: GuardedWords,
    /// It goes to folders that are not the session's.
    leaves: bool,
    /// Rules that allow count though it is opaque.
    trusts_opaque: bool,
}

/// The first rule that speaks of a command, and one before it that may, or that cannot be read.
#[derive(Clone, Copy, Default)]
struct Speaking<'a> {
    found: Option<&'a Rule>,
    maybe: Option<&'a Rule>,
    broken: Option<&'a Rule>,
    /// castor's own, for the mode.
    row: Option<&'a Rule>,
}

impl<'a> Judge<'a> {
    fn new(rules: &'a Rules, query: &'a Query<'a>, text: &'a str, mut line: Line) -> Self {
        if let Line::Opaque { seen: Script { commands, .. }, .. } = &mut line
            && commands.is_empty()
        {
            // One that stands for all of it.
            commands.push(Command::new(vec![Word::expanded(text)], text.to_owned()));
        }
        let dir = query.args.get("dir_path").and_then(|it| it.as_str()).filter(|it| !it.is_empty());
        let looks = matches!(&line, Line::Plain(it) if safe::only_looks(it) && are_believed(query, it, &it.commands));
        let named = guards::guarded_words(line.script(), dir, query.sandbox.available);
        let goes = |it: &&Command| matches!(it.name(), Some("cd" | "pushd" | "popd"));
        let stays = |it: &Command| it.args().len() == 1 && !persistent::works_elsewhere(it, query.roots);
        let leaves = line.script().commands.iter().filter(goes).any(|it| !stays(it));
        let mut res = Self { query, rules, text, line, looks, named, leaves, trusts_opaque: false };
        res.trusts_opaque = res.line.why_opaque().is_some() && res.is_trusted_though_opaque();
        res
    }

    fn commands(&self) -> &[Command] {
        &self.line.script().commands
    }

    /// Whether a rule of the user's that says `opaque = true` names what the line begins with.
    fn is_trusted_though_opaque(&self) -> bool {
        let Some(first) = self.commands().first() else { return false };
        let words: Vec<Word> = self.text.split_whitespace().map(Word::literally).collect();
        let first = if first.name().is_some() { first.clone() } else { Command::new(words, self.text.to_owned()) };
        let spelling = Spelling::new(&first, None, self.query.args);
        let allows = |it: &&Rule| it.decision == Decision::Allow && it.allows.opaque && it.applies(self.query);
        self.rules.iter().filter(allows).any(|it| it.matches_command(&spelling) == Hit::Yes)
    }

    /// The worst verdict, and the commands that are asked about, as far as a yes for longer would spare that.
    fn worst(&self) -> (Part, Vec<&Command>) {
        let (mut worst, mut asked, mut firm): (Option<PartialVerdict>, Vec<&Command>, bool) = (None, Vec::new(), false);
        let (mut may_write, mut must_not, mut by_mode) = (false, false, false);
        // The same command again is judged the same, and there may be thousands.
        let mut seen: BTreeSet<&Command> = BTreeSet::new();
        for (at, command) in self.commands().iter().enumerate() {
            if !seen.insert(command) && self.guard(at).is_none() {
                continue;
            }
            let verdict = self.part(at, command);
            match verdict.decision {
                Decision::Deny => return (Part { worst: verdict, redirection: false }, Vec::new()),
                Decision::Ask => asked.push(command),
                Decision::Allow => {
                    may_write |= verdict.allows_redirection;
                    must_not |= !verdict.allows_redirection && !self.is_harmless(command);
                    by_mode |= verdict.by_mode && !self.is_harmless(command) && !self.is_granted(command, |_| true);
                }
            }
            firm |= verdict.firm;
            // The first question with a reason of its own is the one to show.
            let rank = |it: &PartialVerdict| (it.decision, it.firm, it.why.is_some());
            if worst.as_ref().is_none_or(|it| rank(&verdict) > rank(it)) {
                worst = Some(verdict);
            }
        }
        let worst = worst.unwrap_or_else(|| PartialVerdict::ask("no command"));
        // A yes for longer that leaves one question is none.
        if firm {
            asked.clear();
        }
        (Part { worst: PartialVerdict { by_mode, ..worst }, redirection: may_write && !must_not }, asked)
    }

    fn guard(&self, at: usize) -> Option<Guard> {
        self.named.guards.iter().find(|it| it.0 == at).map(|it| it.1)
    }

    /// Whether a command of a plain line does nothing but look, or run others that are judged themselves.
    fn is_harmless(&self, command: &Command) -> bool {
        let believed = || are_believed(self.query, self.line.script(), std::slice::from_ref(command));
        // What is allowed in one place may do harm in another, and so may what hands on words.
        let stays = (!self.leaves || command.name() != Some("cd")) && command.role != Role::Wrapper;
        // Elsewhere output to files is a question; for plans it is no look.
        let writes = self.query.mode == Mode::Plan && self.line.script().writes_files();
        !writes && self.line.why_opaque().is_none() && (self.looks || safe::looks(command) && believed() && stays)
    }

    /// What is thought of one command.
    fn part(&self, at: usize, command: &Command) -> PartialVerdict {
        let spelling = Spelling::new(command, (at == 0).then_some(self.text), self.query.args);
        let speaking = self.speaking(command, &spelling);
        let Speaking { found, maybe, broken, row } = speaking;
        // 1
        if let Some(it) = found.filter(|it| it.decision == Decision::Deny) {
            return PartialVerdict::of(it, self.query);
        }
        let base = match found {
            Some(rule) if rule.decision == Decision::Ask => self.asked(command, rule, row),
            Some(rule) if self.line.why_opaque().is_none() || self.trusts_opaque => {
                let row = row.filter(|_| !self.is_harmless(command));
                plans::narrow(self.query, PartialVerdict::of(rule, self.query), Some(rule), row)
            }
            _ => self.by_mode(command, row),
        };
        let base = match (maybe, broken) {
            (Some(rule), _) if base.decision < Decision::Deny => self.unsure(rule),
            (None, Some(rule)) if base.decision == Decision::Allow || base.is_ordinary_question() => self.unsure(rule),
            _ => base,
        };
        if base.decision == Decision::Deny {
            return base;
        }
        let question = self.question(at, &spelling, found);
        if let Some(it) = question.as_ref().filter(|it| it.decision == Decision::Deny) {
            return it.clone();
        }
        let firm = base.firm || question.is_some();
        PartialVerdict { firm, ..base.or_ask(question) }
    }

    /// Steps 3 to 5: what is asked about in every mode.
    fn question(&self, at: usize, spelling: &Spelling, found: Option<&Rule>) -> Option<PartialVerdict> {
        let guard = self.guard(at).filter(|it| !found.is_some_and(|rule| it.is_named_by(rule)));
        if let Some(it) = guard {
            return Some(PartialVerdict::ask(it.to_string()));
        }
        if let Some(row) = danger::find(spelling, found) {
            let why = format!("neither a checkpoint nor the sandbox takes it back: {}", spelling.command.text);
            return Some(PartialVerdict { why: Some(why), ..PartialVerdict::ask(row.name(self.query.tool)) });
        }
        let denies = |it: &Rule| it.decision == Decision::Deny && it.is_specific() && it.applies(self.query);
        let hidden = self.line.why_opaque().filter(|_| self.rules.iter().any(denies))?;
        let why = format!("nobody can tell what the line runs: {hidden}; some commands are denied");
        match self.query.mode == Mode::Yolo || !self.query.interactive {
            true => Some(PartialVerdict {
                deny_message: Some(nobody_to_ask(&why)),
                ..PartialVerdict::new(Decision::Deny, why)
            }),
            false => Some(PartialVerdict::ask(why)),
        }
    }

    /// Who speaks of a command, in the rules' order.
    fn speaking(&self, command: &Command, spelling: &Spelling) -> Speaking<'a> {
        let mut res = Speaking::default();
        let mut saved: Option<&Rule> = None;
        // A yes of one folder is none for another.
        let strays = |it: &Rule| it.decision == Decision::Allow && it.who.folder.is_some() && self.strays(command);
        for rule in self.rules.of_command(self.query, spelling) {
            if rule.is_broken() {
                res.broken = res.broken.or(Some(rule));
                continue;
            }
            let hit = rule.matches_command(spelling);
            if hit == Hit::No || strays(rule) {
                continue;
            }
            if rule.tier == Tier::Default {
                res.row = Some(rule);
                break;
            }
            match hit {
                _ if res.found.is_some() => (),
                Hit::Maybe => res.maybe = res.maybe.or(Some(rule)),
                // What else would be said of it counts where the yes was none to that.
                _ if rule.is_saved() => saved = saved.or(Some(rule)),
                _ => res.found = Some(rule),
            }
        }
        if let Some(saved) = saved {
            res.found = res.found.filter(|it| it.is_before(saved, Some(spelling))).or(Some(saved));
        }
        res
    }

    fn strays(&self, command: &Command) -> bool {
        self.leaves || persistent::works_elsewhere(command, self.query.roots)
    }

    /// A rule that restricts may mean this command: only running it would tell.
    fn unsure(&self, rule: &Rule) -> PartialVerdict {
        let decision = if self.query.mode == Mode::Yolo { rule.decision } else { Decision::Ask };
        let name = rule.name(self.query.tool);
        let why = match rule.is_broken() {
            true => name,
            false => format!("{name} (what the command runs is only known when it runs)"),
        };
        PartialVerdict { firm: true, deny_message: rule.deny_message.clone(), ..PartialVerdict::new(decision, why) }
    }

    /// A rule of people's asks: a yes for longer may spare that, and plan mode's own no is stricter.
    fn asked(&self, command: &Command, rule: &Rule, row: Option<&Rule>) -> PartialVerdict {
        let harmless = self.is_harmless(command);
        let asked = PartialVerdict::of(rule, self.query);
        let asked = plans::narrow(self.query, asked, Some(rule), row.filter(|_| !harmless));
        let asked = PartialVerdict { firm: asked.firm || !rule.is_spared_by_a_yes(command), ..asked };
        match !asked.firm && self.is_granted(command, |it| rule.asks_of(it)) {
            true => PartialVerdict::new(Decision::Allow, GRANTED),
            false => asked,
        }
    }

    /// Whether the user allowed it for this session, by a prefix that `fits`.
    fn is_granted(&self, command: &Command, fits: impl Fn(&str) -> bool) -> bool {
        let is_simple = matches!(&self.line, Line::Plain(it) if it.is_simple());
        let covers = |it: &Grant| match it {
            Grant::Commands { prefixes } => prefixes::covered(command, prefixes.iter().filter(|it| fits(it))),
            _ => false,
        };
        is_simple && !self.strays(command) && self.query.grants.iter().any(covers)
    }

    /// Steps 6 to 8, where no rule of people's decides.
    fn by_mode(&self, command: &Command, row: Option<&Rule>) -> PartialVerdict {
        let verdict =
            row.map_or_else(|| PartialVerdict::unmatched(self.query), |it| PartialVerdict::of(it, self.query));
        let by_mode = self.if_undoable(verdict);
        if by_mode.decision == Decision::Allow {
            return by_mode;
        }
        // A script that is listed on its own needs no yes for the shell that runs it.
        if command.role == Role::Transparent && self.line.why_opaque().is_none() {
            return PartialVerdict::new(Decision::Allow, "its script is decided on");
        }
        if by_mode.decision == Decision::Ask && !by_mode.firm && self.is_granted(command, |_| true) {
            return PartialVerdict::new(Decision::Allow, GRANTED);
        }
        match self.is_harmless(command) {
            true => PartialVerdict::new(Decision::Allow, LOOKS),
            false => by_mode,
        }
    }

    /// The mode `auto` runs what is confined and can be taken back, and asks about the rest.
    fn if_undoable(&self, verdict: PartialVerdict) -> PartialVerdict {
        match auto_on_offer(self.query.sandbox) {
            Err(why) if self.query.mode == Mode::Auto && verdict.decision == Decision::Allow => {
                PartialVerdict::ask(why)
            }
            _ => verdict,
        }
    }

    /// Output to files is asked about beside the commands.
    fn as_a_whole(&self, part: Part) -> PartialVerdict {
        let Part { worst, redirection } = part;
        let written = self.line.script().redirects.iter().find(|it| it.writes);
        let written = written.filter(|_| worst.decision == Decision::Allow && !redirection && !self.writes_below());
        match written {
            Some(it) => PartialVerdict::ask(format!("its output goes to a file: > {}", it.target.text)),
            None => worst,
        }
    }

    /// Whether, in a mode where edits are allowed, all redirections are edits that would be.
    fn writes_below(&self) -> bool {
        let goes = |it: &Command| matches!(it.name(), Some("cd" | "pushd" | "popd"));
        let mut written = self.line.script().redirects.iter().filter(|it| it.writes);
        self.query.mode == Mode::AutoEdit
            && !self.commands().iter().any(goes)
            && written.all(|it| guards::is_plain_below(&it.target))
    }

    /// The verdict, with what is thought of the folder it runs in.
    fn with_folder(&self, verdict: PartialVerdict) -> PartialVerdict {
        match verdict.decision {
            Decision::Deny => verdict,
            _ => verdict.or_ask(guards::question_of_paths(self.query, None)),
        }
    }

    /// What "allow for this session" would grant.
    fn grant(&self, asked: &[&Command]) -> Option<Grant> {
        let is_simple = matches!(&self.line, Line::Plain(it) if it.is_simple());
        // A yes for the session does not read what cannot be read.
        let broken = self.rules.iter().any(|it| it.is_broken() && it.applies(self.query));
        if !is_simple || asked.is_empty() || broken || asked.iter().any(|it| self.strays(it)) {
            return None;
        }
        prefixes::grantable(asked.iter().copied()).map(|prefixes| Grant::Commands { prefixes })
    }
}

/// Whether git is all that the folder's files could lead, in a repository whose configuration names no programs.
fn reads_plain_repository(query: &Query, script: &Script) -> bool {
    let is_git = |it: &&Command| it.program() == Some("git");
    let stays = |it: &Word| !["-C", "--git-dir", "--work-tree"].iter().any(|option| it.text.starts_with(option));
    let goes = |it: &Command| matches!(it.name(), Some("cd" | "pushd" | "popd"));
    let mut led = script.commands.iter().filter(|it| safe::is_led_by_the_folder(it));
    query.sandbox.plain_repository
        && query.args.get("dir_path").is_none()
        && !script.commands.iter().any(goes)
        && led.all(|it| is_git(&it) && it.args().iter().all(stays))
}

/// Whether words say enough to call commands looking, in the session's folders. Where no sandbox makes everything read-only, and masks what is
/// secret, only those are believed that are written out.
fn are_believed(query: &Query, script: &Script, commands: &[Command]) -> bool {
    let literal = |it: &Command| it.words.iter().all(|it| it.kind == WordKind::Literal);
    let stays = |it: &Command| literal(it) && !persistent::works_elsewhere(it, query.roots);
    if !query.sandbox.trusted
        && commands.iter().any(safe::is_led_by_the_folder)
        && !reads_plain_repository(query, script)
    {
        return false;
    }
    match query.sandbox.available {
        true => !commands.iter().any(|it| persistent::names_outside(it, query.roots)),
        false => !script.assigns && commands.iter().all(stays),
    }
}
