//! The verdict on a shell command: every part on its own, then the worst of them.

use std::{cell::OnceCell, collections::BTreeSet};

use super::{
    PartVerdict, Query, Verdict, danger,
    decide::{Opinion, unasked, verdict, with_paths},
    destroy::{self, Place, Signs},
    git_settings, made, network,
    outside::Outside,
    paths, places, plans, prefixes, readers,
    reasons::Reasons,
    rules::{Hit, Rule, Rules, Spelt, Tier},
    safe,
    shell::{Command, Script, Unparsed, WordKind},
    shown, standing,
};
use crate::base::{
    log::{Decision, Grant, Mode},
    path::AbsPath,
    tool::Targets,
};

/// More commands in one command's words are not looked into.
const MAX_HANDED: usize = 512;
/// One question speaks of no more commands that a yes opens something for.
const MAX_TOGETHER: usize = 8;

/// A shell call with what was found out about it.
struct Shell<'a> {
    query: &'a Query<'a>,
    /// Those that speak of this tool, here and now, in order.
    rules: Vec<&'a Rule>,
    text: &'a str,
    script: &'a Script,
    place: Place<'a>,
    plain: bool,
    /// Only commands that are known to look.
    all_safe: bool,
    /// Where the words of its commands count from, as far as that is known.
    here: Option<&'a AbsPath>,
    /// What there is for commands in containers, where that is more.
    mounted: Option<Targets>,
}

/// The command of a call that runs one; the arguments must not say another than the targets.
pub(super) fn command_of<'a>(query: &Query<'a>) -> Option<Result<&'a str, Unparsed>> {
    let argument = query.args.get("command").and_then(|it| it.as_str());
    let is_shell = super::names::current_name(query.tool) == "run_shell_command";
    match (query.targets.command.as_deref(), argument) {
        (Some(target), Some(argument)) if is_shell && target.trim() != argument.trim() => {
            Some(Err(Unparsed("its arguments and its targets name different commands")))
        }
        (Some(target), _) => Some(Ok(target)),
        (None, Some(argument)) if is_shell => Some(Ok(argument)),
        (None, _) if is_shell => Some(Err(Unparsed("it names no command"))),
        (None, _) => None,
    }
}

/// Decides on `text`, or on a call whose command is not known.
pub(super) fn decide(rules: &Rules, query: &Query, text: Result<&str, Unparsed>) -> Verdict {
    let parsed = text.and_then(|text| read(query, text).map(|it| (text, it)));
    let shell = match &parsed {
        Ok((text, script)) => Shell::new(rules, query, text, script),
        Err(why) => {
            let rules: Vec<&Rule> = rules.iter().filter(|it| it.applies(query)).collect();
            return verdict(query, with_paths(query, unparsed(&rules, query, why)), None);
        }
    };
    let worst = shell.worst();
    let grant = match worst.opinion.decision {
        Decision::Ask => shell.grant(&worst),
        _ => None,
    };
    network::asked_before(query, verdict(query, with_paths(query, worst.opinion), grant))
}

/// The script, with where it runs.
fn read(query: &Query, text: &str) -> Result<Script, Unparsed> {
    let dir = query.args.get("dir_path").and_then(|it| it.as_str()).filter(|it| !matches!(*it, "" | "." | "./"));
    let start = query.roots.first().filter(|_| dir.is_none()).map(ToString::to_string);
    let mut script = Script::parse(text)?;
    (script.going.moved, script.going.start) = (dir.is_some(), start);
    script.going.wide = script.commands.iter().any(|it| safe::is_wide_cd(it) && !places::goes_nowhere(it, &script));
    Ok(script)
}

/// What is thought of each command in `text` by itself.
pub(super) fn parts(rules: &Rules, query: &Query, text: &str) -> Vec<PartVerdict> {
    let Ok(script) = read(query, text) else { return Vec::new() };
    let shell = Shell::new(rules, query, text, &script);
    let part = |it: &Command| {
        let (opinion, _) = shell.part(it);
        PartVerdict { text: it.text.clone(), decision: opinion.decision, rule: opinion.rule, why: opinion.why }
    };
    let parts = script.commands.iter().map(|it| (it.carried, part(it)));
    // Of words that may be carried only those that count.
    let mut res: Vec<PartVerdict> =
        parts.filter(|it| !(it.0 && it.1.decision == Decision::Allow)).map(|it| it.1).collect();
    // Where the output goes is a reason of its own, unless a rule allows that.
    let asks = shell.worst().opinion.decision == Decision::Ask;
    let whole = shell.as_a_whole(Opinion::new(Decision::Allow, ""));
    let target = script.redirects.iter().find(|it| it.writes && whole.rule.ends_with(&it.target.text));
    let redirect = target.filter(|_| asks && whole.decision == Decision::Ask);
    res.extend(redirect.map(|it| PartVerdict {
        text: format!("> {}", it.target.text),
        decision: whole.decision,
        rule: whole.rule.clone(),
        why: None,
    }));
    res
}

/// Nobody knows what it runs: it may destroy, and a rule that denies some commands may mean it.
fn unparsed(rules: &[&Rule], query: &Query, why: &Unparsed) -> Opinion {
    let said = format!("the command cannot be read: {}", why.0);
    let hit = rules.iter().filter(|it| !it.is_broken()).find(|it| match it.is_specific() {
        true => it.matches_args(query.args) && it.decision != Decision::Allow,
        false => true,
    });
    if let Some(rule) = hit.filter(|it| it.decision == Decision::Deny) {
        return Opinion::of(rule, query);
    }
    let runs = query.mode == Mode::Yolo && hit.is_none_or(|it| it.decision == Decision::Allow);
    match runs && rules.iter().any(|it| it.is_specific() && it.decision == Decision::Deny) {
        true => Opinion::new(Decision::Deny, format!("{said}; some commands are denied")),
        false => Opinion::new(Decision::Ask, said),
    }
}

/// The first rule that speaks of a command, one before it that may, and one that cannot be read.
#[derive(Default)]
struct Speaking<'a> {
    found: Option<&'a Rule>,
    maybe: Option<&'a Rule>,
    broken: Option<&'a Rule>,
}

/// The worst opinion on any part of a script.
struct Worst<'a> {
    opinion: Opinion,
    /// The parts that were asked about, as far as a standing yes would spare that.
    asked: Vec<&'a Command>,
    /// Some part has a reason that every mode asks about.
    has_reasons: bool,
    /// Parts of which nobody looked for one.
    unlooked: Vec<&'a Command>,
}

impl<'a> Shell<'a> {
    fn new(rules: &'a Rules, query: &'a Query<'a>, text: &'a str, script: &'a Script) -> Self {
        let rules: Vec<&Rule> = rules.iter().filter(|it| it.applies(query)).collect();
        let dir = query.args.get("dir_path").and_then(|it| it.as_str());
        let plain = safe::is_plain(script) && !query.targets.unseen && !dir.is_some_and(super::paths::is_secret_dir);
        let all_safe = plain && script.commands.iter().all(|it| it.transparent || safe::is_safe(it, script));
        // What a loop's variable stands for is only known where nothing in it might set it.
        let plain = plain && (all_safe || script.loops.only.is_none());
        let place = Place::of(query, script);
        let here = query.roots.first().filter(|_| !places::moves(script));
        let mounted = here.and_then(|it| readers::in_containers(script, it, query.targets));
        Self { query, rules, text, script, place, plain, all_safe, here, mounted }
    }

    fn worst(&self) -> Worst<'_> {
        let (mut worst, mut asked, mut firm): (Option<Opinion>, Vec<&Command>, bool) = (None, Vec::new(), false);
        let (mut has_reasons, mut unlooked) = (false, Vec::new());
        let (mut opens, mut gives, mut also) = (Vec::new(), Vec::new(), Vec::new());
        // The same command again is judged the same, and there may be thousands.
        let mut seen: BTreeSet<&Command> = BTreeSet::new();
        for command in &self.script.commands {
            if !seen.insert(command) {
                continue;
            }
            let (mut opinion, reasons) = self.part(command);
            if opinion.decision == Decision::Deny {
                return Worst { opinion, asked: Vec::new(), has_reasons, unlooked };
            }
            match reasons {
                Some(it) => has_reasons |= it.is_any(),
                None => unlooked.push(command),
            }
            match opinion.decision {
                Decision::Ask => {
                    firm |= opinion.firm;
                    asked.push(command);
                    let opens = !opinion.opens.is_empty() || opinion.unconfined;
                    let is_one = opens && also.len() < MAX_TOGETHER;
                    also.extend(is_one.then(|| opinion.clone()));
                }
                // What a rule lets it write, whatever is asked of the others.
                _ => {
                    opens.append(&mut opinion.opens);
                    gives.append(&mut opinion.gives);
                }
            }
            // The first question with a reason of its own is the one to show.
            let rank = |it: &Opinion| (severity(it.decision), it.specific, it.why.is_some());
            if worst.as_ref().is_none_or(|it| rank(&opinion) > rank(it)) {
                worst = Some(opinion);
            }
        }
        let mut opinion = worst.unwrap_or_else(|| Opinion::new(Decision::Ask, "no command"));
        also.into_iter().for_each(|it| opinion.take(it));
        opinion.opens.extend(opens);
        opinion.gives.extend(gives);
        // A yes for longer that leaves one question is none.
        if firm {
            asked.clear();
        }
        Worst { opinion: self.as_a_whole(opinion), asked, has_reasons, unlooked }
    }

    /// What makes even an allowed command worth a question.
    fn as_a_whole(&self, opinion: Opinion) -> Opinion {
        if opinion.decision == Decision::Deny {
            return opinion;
        }
        let asked = match (opinion.decision, self.guarded_as_a_whole()) {
            (Decision::Ask, guarded) => opinion.beside(guarded),
            (_, Some(guarded)) => guarded,
            (_, None) => match self.question_of_output(&opinion) {
                Some(it) => it,
                None => return opinion,
            },
        };
        // What is asked is asked once: a yes is for where the output goes, too.
        let outside = Outside::of(self.script, self.query, &self.place.leads, false);
        asked.beside(outside.map(Outside::question))
    }

    /// Of an allowed command.
    fn question_of_output(&self, opinion: &Opinion) -> Option<Opinion> {
        let ask = |it: String| Some(Opinion::new(Decision::Ask, it));
        let outside = |but: bool| Outside::of(self.script, self.query, &self.place.leads, but);
        if self.query.mode == Mode::Yolo {
            let named = opinion.specific && opinion.allow_redirection && opinion.tier >= Some(Tier::User);
            return if named { None } else { outside(true).and_then(|_| outside(false)).map(Outside::question) };
        }
        if let Some(what) = danger::find(self.script) {
            return ask(format!("dangerous: {what}"));
        }
        let written = self.script.redirects.iter().find(|it| it.writes);
        let written = written.filter(|_| !opinion.allow_redirection && !self.writes_below())?;
        let outside = outside(false).filter(Outside::is_known).map(Outside::question);
        outside.or_else(|| ask(format!("its output goes to a file: > {}", written.target.text)))
    }

    /// What every mode asks about, of what no single command says.
    fn guarded_as_a_whole(&self) -> Option<Opinion> {
        let written = self.script.redirects.iter().filter(|it| it.writes);
        let mut places = written.flat_map(|it| places::of_redirect(it, self.script));
        if let Some(it) = places.find(|it| destroy::is_device(&it.text)) {
            return Some(Opinion::new(Decision::Ask, format!("destructive: > {}", it.text)));
        }
        let leads = &self.place.leads;
        let led = || leads.guard_of_redirects(self.script);
        let valued = || paths::guard_of_values(self.script, leads).or_else(|| paths::guard_of_pieces(self.script));
        paths::guard_of_redirects(self.script, self.here).or_else(led).or_else(valued).as_ref().map(Opinion::guarded)
    }

    /// Whether, in a mode where edits are allowed, all redirections are edits that would be.
    fn writes_below(&self) -> bool {
        let leads = |it: &Command| matches!(it.name(), Some("cd" | "pushd" | "popd"));
        let moves = self.script.commands.iter().any(|it| leads(it) && !places::goes_nowhere(it, self.script));
        self.query.mode == Mode::AutoEdit
            && !moves
            && self
                .script
                .redirects
                .iter()
                .all(|it| !it.writes || paths::is_plain_below(&it.target) && !self.place.leads.leave(&it.target))
    }

    /// What is thought of a command, and what was found in it, if anybody looked.
    fn part(&self, command: &Command) -> (Opinion, Option<Reasons>) {
        let spelt = Spelt::new(command, self.text, self.query.args);
        let Speaking { found, maybe, broken } = self.speaking(command, &spelt);
        let opinion = match found {
            Some(rule) => Opinion::of(rule, self.query),
            None => Opinion::unmatched(self.query),
        };
        let is_shipped = |it: &&&Rule| it.tier == Tier::Default;
        let speaks = |it: &&&Rule| it.matches_command(&spelt) == Hit::Yes;
        let shipped = self.rules.iter().filter(is_shipped).find(speaks);
        let opinion = plans::held(self.query, opinion, found, shipped.copied());
        // Only what nothing else restricts: a rule that cannot be read must not soften those that can.
        let broken = maybe.is_none().then_some(broken).flatten();
        let opinion = standing::asked(opinion, found, command);
        let opinion = self.with_effects(command, opinion, (found, maybe.or(broken)));
        let opinion = plans::asked(self.query, opinion, found);
        let named = |signs: &Signs| found.is_some_and(|it| signs.named_by(it));
        let looked = match opinion.decision {
            Decision::Deny => false,
            Decision::Ask => opinion.is_ordinary_question(),
            Decision::Allow => true,
        };
        if !looked {
            return (opinion, None);
        }
        let reasons = self.reasons(command);
        let question = reasons.question(command, self.script, &named);
        let opinion = match (opinion.decision, question) {
            (Decision::Allow, Some(it)) => Opinion { specific: true, firm: true, ..it },
            (Decision::Allow, None) => match reasons.held.as_ref().filter(|it| named(&it.signs)) {
                Some(it) => Opinion { opens: it.places.clone(), gives: it.gives(), ..opinion },
                None => opinion,
            },
            (_, question) => opinion.because(question),
        };
        (opinion, Some(reasons))
    }

    /// Who speaks of a command, in the rules' order.
    fn speaking(&self, command: &Command, spelt: &Spelt) -> Speaking<'a> {
        let mut res = Speaking::default();
        let mut saved: Option<&Rule> = None;
        // A yes of one folder is none for another.
        let elsewhere = destroy::works_elsewhere(command, &self.place);
        let strays = |it: &Rule| elsewhere && it.decision == Decision::Allow && it.who.folder.is_some();
        for rule in self.rules.iter().copied().filter(|it| !strays(it)) {
            if rule.is_broken() {
                res.broken = res.broken.or(Some(rule));
                continue;
            }
            match rule.matches_command(spelt) {
                // What else would be said of it counts where the yes was none to that.
                Hit::Yes if rule.is_saved() => saved = saved.or(Some(rule)),
                Hit::Yes => {
                    res.found = Some(rule);
                    break;
                }
                Hit::Maybe => res.maybe = res.maybe.or(Some(rule)),
                Hit::No => (),
            }
        }
        if let Some(saved) = saved {
            res.found = res.found.filter(|it| it.is_before(saved, Some(spelt))).or(Some(saved));
        }
        res
    }

    fn reasons(&self, command: &Command) -> Reasons {
        let destroys = destroy::signs(command, &self.place);
        let looks = if destroys.is_none() { destroy::looks(command, self.script) } else { None };
        // What it would have git write though a sandbox holds it.
        let held = git_settings::held(command, self.query, self.script, self.here);
        Reasons { destroys, looks, guard: self.guard(command), held }
    }

    fn guard(&self, command: &Command) -> Option<paths::Guard> {
        let here = self.here;
        // Few commands need to know.
        let known = OnceCell::new();
        let looks = || *known.get_or_init(|| safe::is_safe(command, self.script));
        let targets = self.mounted.as_ref().filter(|_| command.carried).unwrap_or(self.query.targets);
        let is_new = made::is_new(command, here, self.query.targets);
        let named = if is_new { None } else { paths::guard_of_command(command, looks, here) };
        let led = || self.place.leads.guard_of_command(command, self.script, looks);
        let told = || paths::guard_of_objects(command, self.script);
        // `cp $(realpath .env) x`: who only looks at a name hands it on.
        let handed = || {
            let words = paths::read_args(command).iter().filter(|it| it.kind == WordKind::Expanded);
            let inner = words.flat_map(|it| self.script.commands_in(&it.text)).take(MAX_HANDED);
            inner.into_iter().find_map(paths::guard_of_names)
        };
        named
            .or_else(led)
            .or_else(handed)
            .or_else(told)
            .or_else(|| paths::guard_of_reader(command, self.script, here, targets))
    }

    /// What a matching rule says, with what is known of the command besides.
    fn with_effects(
        &self,
        command: &Command,
        opinion: Opinion,
        (found, maybe): (Option<&Rule>, Option<&Rule>),
    ) -> Opinion {
        // A script that is listed on its own needs no yes for the shell that runs it.
        if command.transparent && !command.carried && opinion.decision == Decision::Ask && !opinion.specific {
            return Opinion::new(Decision::Allow, "its script is decided on");
        }
        // What a carrier runs needs no yes beside the carrier's own; a no is another matter.
        let opinion = match command.carried && !opinion.specific {
            true => Opinion::new(Decision::Allow, "what runs it is decided on"),
            false => opinion,
        };
        match (opinion.decision, maybe) {
            (Decision::Allow, Some(rule)) => self.unsure(rule),
            (Decision::Ask, Some(rule)) if rule.is_broken() => opinion.because(Some(self.unsure(rule))),
            (Decision::Deny, Some(rule)) if rule.is_broken() && opinion.tier == Some(Tier::Default) => {
                let name = rule.name(self.query.tool);
                Opinion { deny_message: Some(unasked(&name)), rule: name, ..opinion }
            }
            (Decision::Ask, None) => self.upgrade(command, opinion, found),
            // Looking is what plan mode is for, and where nobody can be asked it hurts nobody.
            (Decision::Deny, None) if opinion.tier == Some(Tier::Default) => self.upgrade(command, opinion, found),
            // What may mean it was not asked about by that yes.
            (Decision::Ask, Some(_)) => Opinion { firm: true, ..opinion },
            _ => opinion,
        }
    }

    /// A rule that restricts may mean this command: only running it would tell.
    fn unsure(&self, rule: &Rule) -> Opinion {
        let decision = match (self.query.mode, rule.decision) {
            (Mode::Yolo, it) => it,
            _ => Decision::Ask,
        };
        let name = rule.name(self.query.tool);
        let why = match rule.is_broken() {
            true => name,
            false => format!("{name} (what the command runs is only known when it runs)"),
        };
        Opinion { specific: true, firm: true, deny_message: rule.deny_message.clone(), ..Opinion::new(decision, why) }
    }

    /// Known-safe commands and standing yeses spare the question.
    fn upgrade(&self, command: &Command, opinion: Opinion, found: Option<&Rule>) -> Opinion {
        // A question that the user's own rule wants is not spared by a table.
        let by_default = opinion.tier.is_none_or(|it| it == Tier::Default);
        if opinion.firm || by_default && self.query.mode == Mode::Yolo {
            return opinion;
        }
        let strays = || safe::follows_links(command) && self.query.targets.leads.iter().any(|it| !it.in_roots);
        let leaves = |it: &Command| safe::read_paths(it).any(|it| self.place.is_outside(&it));
        let reads_here = || !safe::readings(command, self.script).iter().any(|it| leaves(it)) && !strays();
        let shown = shown::reason(command, self.here, self.query.targets);
        if shown.is_none() && by_default && self.plain && safe::is_safe(command, self.script) && reads_here() {
            // A program that is allowed in one place may do harm in another.
            let stays = || safe::is_cd_below(command) || places::goes_nowhere(command, self.script);
            if self.all_safe || command.name() != Some("cd") || stays() {
                return Opinion::new(Decision::Allow, "known-safe command");
            }
        }
        let grantable =
            !self.script.has_substitution && !self.script.has_definitions && self.script.redirects.is_empty();
        let grantable = grantable && opinion.decision == Decision::Ask;
        let is_to_this = |it: &&String| by_default || found.is_none_or(|rule| rule.asks_of(it));
        let granted = self.query.grants.iter().any(|it| match it {
            Grant::Commands { prefixes } => prefixes::covered(command, prefixes.iter().filter(is_to_this)),
            _ => false,
        });
        let granted = granted && !destroy::works_elsewhere(command, &self.place);
        match grantable && granted {
            true => Opinion::new(Decision::Allow, "allowed for this session"),
            // In plan mode it would be denied.
            false => match shown.filter(|_| by_default && self.plain && safe::is_safe(command, self.script)) {
                Some(it) => Opinion::new(Decision::Ask, it),
                None => opinion,
            },
        }
    }

    fn grant(&self, worst: &Worst) -> Option<Grant> {
        let (script, asked) = (self.script, &worst.asked);
        let simple = !script.has_substitution && !script.has_definitions && script.redirects.is_empty();
        if !simple || asked.is_empty() || worst.has_reasons {
            return None;
        }
        // A yes for the session does not read what cannot be read.
        let broken = self.rules.iter().any(|it| it.is_broken());
        let elsewhere = asked.iter().any(|it| destroy::works_elsewhere(it, &self.place));
        let has_reasons = || worst.unlooked.iter().any(|it| self.reasons(it).is_any());
        if broken || elsewhere || danger::find(script).is_some() || has_reasons() {
            return None;
        }
        prefixes::grantable(asked.iter().copied()).map(|prefixes| Grant::Commands { prefixes })
    }
}

fn severity(it: Decision) -> u8 {
    match it {
        Decision::Allow => 0,
        Decision::Ask => 1,
        Decision::Deny => 2,
    }
}
