//! The policy decision on a shell command line: each command alone, then the strictest verdict of all.

use std::collections::BTreeSet;

use super::{
    danger,
    guards::{self, Guard, GuardedWords},
    patterns::{CommandSpelling, MatchCertainty},
    persistent, plans, prefixes,
    query::{Query, SandboxFacts, check_auto_available},
    rule::{Rule, Tier},
    rules::RuleSet,
    safe,
    shell::{self, CommandRole, Script, ShellCommand, ShellLine, ShellWord, WordKind},
    verdict::{PartialVerdict, Verdict, unasked_denial},
};
use castor_base::{
    check::Denier,
    log::{Decision, Grant, Mode},
};

/// The rule that a yes for this session goes by.
pub const SESSION_GRANT_RULE: &str = "allowed for this session";
const LOOKS: &str = "it only looks";

/// Decides on `text`, or on a call whose command is not known.
pub fn decide(rules: &RuleSet, query: &Query, text: Result<&str, &'static str>) -> Verdict {
    let (text, line) = match text {
        Ok(it) => (it, shell::parse(it)),
        Err(why) => ("", ShellLine::Opaque { why, seen: Script::default() }),
    };
    let judge = LineJudge::new(rules, query, text, line);
    let (worst, asked) = judge.worst();
    let worst = judge.with_folder(judge.check_output_files(worst));
    let grant = if worst.decision == Decision::Ask { judge.grant(&asked) } else { None };
    let ordinary = worst.is_ordinary_question();
    let verdict = Verdict::of(query, worst, grant);
    let careful = matches!(query.mode, Mode::Default | Mode::AutoEdit);
    let asks = verdict.decision == Decision::Ask && ordinary;
    let network = query.mode == Mode::Yolo && query.sandbox.gives_network();
    let network = network && !judge.guarded.guards.iter().any(|it| it.1.is_secret());
    let is_asked = verdict.decision == Decision::Ask && judge.line.why_opaque().is_none();
    let start = query.roots.first().filter(|_| is_asked);
    let writes = start.iter().flat_map(|start| judge.guarded.config_writes.iter().map(|it| start.join(it))).collect();
    Verdict {
        writes,
        // With the network it sees no secrets; what only looks sees them, and has none.
        read_only: judge.read_only && !network,
        network,
        offers_auto: asks && careful && check_auto_available(query.sandbox).is_ok(),
        ..verdict
    }
}

/// The verdict on each command in `text` by itself.
pub fn parts(rules: &RuleSet, query: &Query, text: &str) -> Vec<(String, PartialVerdict)> {
    let judge = LineJudge::new(rules, query, text, shell::parse(text));
    let script = judge.line.script();
    let mut res: Vec<(String, PartialVerdict)> =
        judge.commands().iter().enumerate().map(|(at, it)| (it.text.clone(), judge.part(at, it))).collect();
    let asked = judge.check_output_files(WorstVerdict { worst: judge.worst().0.worst, redirection: false });
    let target = script.redirects.iter().find(|it| it.writes && asked.rule.ends_with(&it.target.text));
    res.extend(target.map(|it| (format!("> {}", it.target.text), asked)));
    res
}

/// The worst verdict on any command of a line.
struct WorstVerdict {
    worst: PartialVerdict,
    /// Output may go to files.
    redirection: bool,
}

/// A line with what was found out about it.
struct LineJudge<'a> {
    query: &'a Query<'a>,
    rules: &'a RuleSet,
    text: &'a str,
    line: ShellLine,
    /// All of it only looks.
    read_only: bool,
    /// The guarded words of it.
    guarded: GuardedWords,
    /// It goes to folders that are not the session's.
    leaves_roots: bool,
    /// Rules that allow count though it is opaque.
    trusts_opaque: bool,
}

/// The first rule that speaks of a command, and one before it that may, or that cannot be read.
#[derive(Clone, Copy, Default)]
struct RuleMatch<'a> {
    rule: Option<&'a Rule>,
    possible: Option<&'a Rule>,
    broken: Option<&'a Rule>,
    /// castor's own, for the mode.
    mode_rule: Option<&'a Rule>,
}

impl<'a> LineJudge<'a> {
    fn new(rules: &'a RuleSet, query: &'a Query<'a>, text: &'a str, mut line: ShellLine) -> Self {
        if let ShellLine::Opaque { seen: Script { commands, .. }, .. } = &mut line
            && commands.is_empty()
        {
            // One that stands for all of it.
            commands.push(ShellCommand::new(vec![ShellWord::from_expansion(text)], text.to_owned()));
        }
        let dir = query.args.get("dir_path").and_then(|it| it.as_str()).filter(|it| !it.is_empty());
        let looks = matches!(&line, ShellLine::Plain(it) if safe::is_read_only_script(it) && are_believed(query, it, &it.commands));
        let named = guards::guarded_words(line.script(), dir, query.sandbox.available);
        let goes = |it: &&ShellCommand| matches!(it.name(), Some("cd" | "pushd" | "popd"));
        let stays = |it: &ShellCommand| it.args().len() == 1 && !persistent::works_elsewhere(it, query.roots);
        let leaves = line.script().commands.iter().filter(goes).any(|it| !stays(it));
        let mut res = Self {
            query,
            rules,
            text,
            line,
            read_only: looks,
            guarded: named,
            leaves_roots: leaves,
            trusts_opaque: false,
        };
        res.trusts_opaque = res.line.why_opaque().is_some() && res.is_trusted_though_opaque();
        res
    }

    fn commands(&self) -> &[ShellCommand] {
        &self.line.script().commands
    }

    /// Tells whether a rule of the user's that says `opaque = true` names the beginning of the line.
    fn is_trusted_though_opaque(&self) -> bool {
        let Some(first) = self.commands().first() else { return false };
        let words: Vec<ShellWord> = self.text.split_whitespace().map(ShellWord::from_literal).collect();
        let first = if first.name().is_some() { first.clone() } else { ShellCommand::new(words, self.text.to_owned()) };
        let spelling = CommandSpelling::new(&first, None, self.query.args);
        let allows = |it: &&Rule| it.decision == Decision::Allow && it.allows.opaque && it.applies(self.query);
        self.rules.iter().filter(allows).any(|it| it.matches_command(&spelling) == MatchCertainty::Yes)
    }

    /// The worst verdict, and the commands that are asked about, as far as a yes for longer would spare that.
    fn worst(&self) -> (WorstVerdict, Vec<&ShellCommand>) {
        let (mut worst, mut asked, mut firm): (Option<PartialVerdict>, Vec<&ShellCommand>, bool) =
            (None, Vec::new(), false);
        let (mut may_write, mut must_not, mut by_mode) = (false, false, false);
        // The same command again is judged the same, and there may be thousands.
        let mut seen: BTreeSet<&ShellCommand> = BTreeSet::new();
        for (at, command) in self.commands().iter().enumerate() {
            if !seen.insert(command) && self.guard(at).is_none() {
                continue;
            }
            let verdict = self.part(at, command);
            match verdict.decision {
                Decision::Deny => return (WorstVerdict { worst: verdict, redirection: false }, Vec::new()),
                Decision::Ask => asked.push(command),
                Decision::Allow => {
                    may_write |= verdict.allows_redirection;
                    must_not |= !verdict.allows_redirection && !self.is_harmless(command);
                    by_mode |= verdict.by_mode && !self.is_harmless(command) && !self.is_granted(command, |_| true);
                }
            }
            firm |= verdict.asks_every_time;
            // The first question with a reason of its own is the one to show.
            let rank = |it: &PartialVerdict| (it.decision, it.asks_every_time, it.why.is_some());
            if worst.as_ref().is_none_or(|it| rank(&verdict) > rank(it)) {
                worst = Some(verdict);
            }
        }
        let worst = worst.unwrap_or_else(|| PartialVerdict::ask("no command"));
        // A yes for longer that leaves one question is none.
        if firm {
            asked.clear();
        }
        (WorstVerdict { worst: PartialVerdict { by_mode, ..worst }, redirection: may_write && !must_not }, asked)
    }

    fn guard(&self, at: usize) -> Option<Guard> {
        self.guarded.guards.iter().find(|it| it.0 == at).map(|it| it.1)
    }

    /// Tells whether a command of a plain line only looks, or only runs others that are judged themselves.
    fn is_harmless(&self, command: &ShellCommand) -> bool {
        let believed = || are_believed(self.query, self.line.script(), std::slice::from_ref(command));
        // What is allowed in one place may do harm in another, and so may what hands on words.
        let stays = (!self.leaves_roots || command.name() != Some("cd")) && command.role != CommandRole::Wrapper;
        // Elsewhere output to files is a question; for plans it is no look.
        let writes = self.query.mode == Mode::Plan && self.line.script().writes_files();
        !writes
            && self.line.why_opaque().is_none()
            && (self.read_only || safe::is_read_only(command) && believed() && stays)
    }

    /// The verdict on one command.
    fn part(&self, at: usize, command: &ShellCommand) -> PartialVerdict {
        let spelling = CommandSpelling::new(command, (at == 0).then_some(self.text), self.query.args);
        let speaking = self.match_rules(command, &spelling);
        let RuleMatch { rule: found, possible: maybe, broken, mode_rule: row } = speaking;
        // Step 1.
        if let Some(it) = found.filter(|it| it.decision == Decision::Deny) {
            return PartialVerdict::of(it, self.query);
        }
        // Step 6, and where no rule speaks steps 6 to 8.
        let base = match found {
            Some(rule) if rule.decision == Decision::Ask => self.ask_by_rule(command, rule, row),
            Some(rule) if self.line.why_opaque().is_none() || self.trusts_opaque => {
                let row = row.filter(|_| !self.is_harmless(command));
                plans::restrict_in_plan(self.query, PartialVerdict::of(rule, self.query), Some(rule), row)
            }
            _ => self.by_mode(command, row),
        };
        let base = match (maybe, broken) {
            (Some(rule), _) if base.decision < Decision::Deny => self.uncertain_verdict(rule),
            (None, Some(rule)) if base.decision == Decision::Allow || base.is_ordinary_question() => {
                self.uncertain_verdict(rule)
            }
            _ => base,
        };
        if base.decision == Decision::Deny {
            return base;
        }
        // Steps 3 to 5 come before, and only make that stricter.
        let question = self.question(at, &spelling, found);
        if let Some(it) = question.as_ref().filter(|it| it.decision == Decision::Deny) {
            return it.clone();
        }
        let firm = base.asks_every_time || question.is_some();
        PartialVerdict { asks_every_time: firm, ..base.or_ask(question) }
    }

    /// Steps 3 to 5: what is asked about in every mode.
    fn question(&self, at: usize, spelling: &CommandSpelling, found: Option<&Rule>) -> Option<PartialVerdict> {
        // Step 3.
        let guard = self.guard(at).filter(|it| !found.is_some_and(|rule| it.is_named_by(rule)));
        if let Some(it) = guard {
            return Some(PartialVerdict::ask(it.to_string()));
        }
        // Step 4.
        let SandboxFacts { available, undoable, .. } = self.query.sandbox;
        let holds_files = available && undoable && !self.leaves_folders(spelling.command);
        if let Some(row) = danger::find(spelling, found, holds_files) {
            let why = format!("neither a checkpoint nor the sandbox takes it back: {}", spelling.command.text);
            return Some(PartialVerdict { why: Some(why), ..PartialVerdict::ask(row.name(self.query.tool)) });
        }
        // Step 5.
        let denies = |it: &Rule| it.decision == Decision::Deny && it.is_specific() && it.applies(self.query);
        let hidden = self.line.why_opaque().filter(|_| self.rules.iter().any(denies))?;
        let why = format!("castor cannot tell what the line runs: {hidden}; some commands are denied");
        match self.query.mode == Mode::Yolo || !self.query.interactive {
            true => Some(PartialVerdict {
                deny_message: Some(unasked_denial(&why)),
                denier: Denier::Nobody,
                ..PartialVerdict::new(Decision::Deny, why)
            }),
            false => Some(PartialVerdict::ask(why)),
        }
    }

    /// The rules that match a command, in order.
    fn match_rules(&self, command: &ShellCommand, spelling: &CommandSpelling) -> RuleMatch<'a> {
        let mut res = RuleMatch::default();
        let mut saved: Option<&Rule> = None;
        // A yes of one folder is none for another.
        let strays = |it: &Rule| {
            it.decision == Decision::Allow && it.call_pattern.folder.is_some() && self.leaves_folders(command)
        };
        for rule in self.rules.for_command(self.query, spelling) {
            if rule.is_broken() {
                res.broken = res.broken.or(Some(rule));
                continue;
            }
            let hit = rule.matches_command(spelling);
            if hit == MatchCertainty::No || strays(rule) {
                continue;
            }
            if rule.tier == Tier::Default {
                res.mode_rule = Some(rule);
                break;
            }
            match hit {
                _ if res.rule.is_some() => (),
                MatchCertainty::Maybe => res.possible = res.possible.or(Some(rule)),
                // What else would be said of it counts where the yes was none to that.
                _ if rule.is_saved() => saved = saved.or(Some(rule)),
                _ => res.rule = Some(rule),
            }
        }
        if let Some(saved) = saved {
            res.rule = res.rule.filter(|it| it.outranks_saved(saved, Some(spelling))).or(Some(saved));
        }
        res
    }

    fn leaves_folders(&self, command: &ShellCommand) -> bool {
        self.leaves_roots || persistent::works_elsewhere(command, self.query.roots)
    }

    /// A rule that restricts may mean this command: only running it would tell.
    fn uncertain_verdict(&self, rule: &Rule) -> PartialVerdict {
        let decision = if self.query.mode == Mode::Yolo { rule.decision } else { Decision::Ask };
        let name = rule.name(self.query.tool);
        let why = match rule.is_broken() {
            true => name,
            false => format!("{name} (what the command runs is only known when it runs)"),
        };
        PartialVerdict {
            asks_every_time: true,
            deny_message: rule.deny_message.clone(),
            ..PartialVerdict::new(decision, why)
        }
    }

    /// A rule of people's asks: a yes for longer may spare that, and plan mode's own no is stricter.
    fn ask_by_rule(&self, command: &ShellCommand, rule: &Rule, row: Option<&Rule>) -> PartialVerdict {
        let harmless = self.is_harmless(command);
        let asked = PartialVerdict::of(rule, self.query);
        let asked = plans::restrict_in_plan(self.query, asked, Some(rule), row.filter(|_| !harmless));
        let asked = PartialVerdict { asks_every_time: asked.asks_every_time || !rule.allows_grant(command), ..asked };
        match !asked.asks_every_time && self.is_granted(command, |it| rule.asks_about_prefix(it)) {
            true => PartialVerdict::new(Decision::Allow, SESSION_GRANT_RULE),
            false => asked,
        }
    }

    /// Tells whether the user allowed it for this session, by a prefix that `fits`.
    fn is_granted(&self, command: &ShellCommand, fits: impl Fn(&str) -> bool) -> bool {
        let is_simple = matches!(&self.line, ShellLine::Plain(it) if it.is_simple());
        let covers = |it: &Grant| match it {
            Grant::Commands { prefixes } => prefixes::covers_command(command, prefixes.iter().filter(|it| fits(it))),
            _ => false,
        };
        is_simple && !self.leaves_folders(command) && self.query.grants.iter().any(covers)
    }

    /// Steps 6 to 8, where no rule of people's decides.
    fn by_mode(&self, command: &ShellCommand, row: Option<&Rule>) -> PartialVerdict {
        // Step 8, the mode's row. Steps 6 and 7 only make that milder, and so follow.
        let verdict =
            row.map_or_else(|| PartialVerdict::unmatched(self.query), |it| PartialVerdict::of(it, self.query));
        let by_mode = self.ask_unless_undoable(verdict);
        if by_mode.decision == Decision::Allow {
            return by_mode;
        }
        // A script that is listed on its own needs no yes for the shell that runs it.
        if command.role == CommandRole::Transparent && self.line.why_opaque().is_none() {
            return PartialVerdict::new(Decision::Allow, "its script is decided on");
        }
        // Step 6, its grants.
        if by_mode.decision == Decision::Ask && !by_mode.asks_every_time && self.is_granted(command, |_| true) {
            return PartialVerdict::new(Decision::Allow, SESSION_GRANT_RULE);
        }
        // Step 7.
        match self.is_harmless(command) {
            true => PartialVerdict::new(Decision::Allow, LOOKS),
            false => by_mode,
        }
    }

    /// The mode `auto` runs what is confined and can be taken back, and asks about the rest.
    fn ask_unless_undoable(&self, verdict: PartialVerdict) -> PartialVerdict {
        match check_auto_available(self.query.sandbox) {
            Err(why) if self.query.mode == Mode::Auto && verdict.decision == Decision::Allow => {
                PartialVerdict::ask(why)
            }
            _ => verdict,
        }
    }

    /// Output to files is asked about beside the commands.
    fn check_output_files(&self, part: WorstVerdict) -> PartialVerdict {
        let WorstVerdict { worst, redirection } = part;
        let written = self.line.script().redirects.iter().find(|it| it.writes);
        let written = written.filter(|_| worst.decision == Decision::Allow && !redirection && !self.writes_below());
        match written {
            Some(it) => PartialVerdict::ask(format!("its output goes to a file: > {}", it.target.text)),
            None => worst,
        }
    }

    /// Whether, in a mode where edits are allowed, all redirections are edits that would be.
    fn writes_below(&self) -> bool {
        let goes = |it: &ShellCommand| matches!(it.name(), Some("cd" | "pushd" | "popd"));
        let mut written = self.line.script().redirects.iter().filter(|it| it.writes);
        self.query.mode == Mode::AutoEdit
            && !self.commands().iter().any(goes)
            && written.all(|it| guards::is_plain_below(&it.target))
    }

    /// The verdict, with what is thought of the folder it runs in.
    fn with_folder(&self, verdict: PartialVerdict) -> PartialVerdict {
        match verdict.decision {
            Decision::Deny => verdict,
            _ => verdict.or_ask(guards::ask_about_paths(self.query, None)),
        }
    }

    /// The grant that "allow for this session" would make.
    fn grant(&self, asked: &[&ShellCommand]) -> Option<Grant> {
        let is_simple = matches!(&self.line, ShellLine::Plain(it) if it.is_simple());
        // A yes for the session does not read what cannot be read.
        let broken = self.rules.iter().any(|it| it.is_broken() && it.applies(self.query));
        if !is_simple || asked.is_empty() || broken || asked.iter().any(|it| self.leaves_folders(it)) {
            return None;
        }
        prefixes::grantable_prefixes(asked.iter().copied()).map(|prefixes| Grant::Commands { prefixes })
    }
}

/// Tells whether git is all that the folder's files could lead, in a repository whose configuration names no programs.
fn reads_plain_repository(query: &Query, script: &Script) -> bool {
    let is_git = |it: &&ShellCommand| it.program() == Some("git");
    let stays = |it: &ShellWord| !["-C", "--git-dir", "--work-tree"].iter().any(|option| it.text.starts_with(option));
    let goes = |it: &ShellCommand| matches!(it.name(), Some("cd" | "pushd" | "popd"));
    let mut led = script.commands.iter().filter(|it| safe::runs_folder_config(it));
    query.sandbox.plain_repository
        && query.args.get("dir_path").is_none()
        && !script.commands.iter().any(goes)
        && led.all(|it| is_git(&it) && it.args().iter().all(stays))
}

/// Tells whether words say enough to call commands looking, in the session's folders. Where no sandbox makes everything
/// read-only, and masks what is secret, only those are believed that are written out.
fn are_believed(query: &Query, script: &Script, commands: &[ShellCommand]) -> bool {
    let literal = |it: &ShellCommand| it.words.iter().all(|it| it.kind == WordKind::Literal);
    let stays = |it: &ShellCommand| literal(it) && !persistent::works_elsewhere(it, query.roots);
    if !query.sandbox.trusted && commands.iter().any(safe::runs_folder_config) && !reads_plain_repository(query, script)
    {
        return false;
    }
    match query.sandbox.available {
        true => !commands.iter().any(|it| persistent::names_outside(it, query.roots)),
        false => !script.assigns && commands.iter().all(stays),
    }
}
