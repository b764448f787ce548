//! `castor policy`: checks a call against the rules, and lists the rules.

mod checked_call;
mod touched_files;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use checked_call::CheckedCall;
use clap::{Args, Subcommand};

use crate::cli::{
    approval_mode::ApprovalMode,
    exits::{self, EXIT_INPUT},
    folder::folder,
    output::write_warnings,
    terminal_text::escape_line,
};
use castor_agent::{
    session::{confinement, modes::allow_mode, place::settings_of, policies},
    settings::{self, McpSettings, Settings, Sources, options::Options},
};
use castor_base::{
    log::{Decision, Mode},
    path::AbsPath,
    sandbox::{ProtectedPaths, SandboxLevel, SandboxState},
    tool::ToolKind,
    trust::{Trust, TrustedFileKind},
};
use castor_client::failure::plain;
use castor_engine::policy::{self, CallOrigin, Query, Rule, RuleSet, SandboxFacts};
use castor_hands::{disk, secrets::Env};
use castor_tools::workspace::{
    self, Warning,
    folder_config::{self, FolderConfig},
};

/// Asks the rules.
#[derive(Args, Clone, Debug)]
pub struct PolicyArgs {
    #[command(subcommand)]
    pub verb: PolicyVerb,
}

#[derive(Subcommand, Clone, Debug)]
pub enum PolicyVerb {
    /// Says whether a shell command, or a tool's call, would run, and by which rule
    #[command(after_help = exits::help("policy check"))]
    Check {
        /// The command; or a tool's name, followed by its arguments as JSON
        what: String,
        /// The arguments of a tool, such as '{"file_path": "a"}'
        args: Option<String>,
        /// It is a shell command, even if a tool is called like that
        #[arg(long, conflicts_with_all = ["args", "server"])]
        command: bool,
        /// The MCP server that the tool is of, as it is configured
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// The mode of the session
        #[arg(
            long,
            alias = "approval-mode",
            value_name = "MODE",
            value_enum,
            default_value = "default",
            hide_possible_values = true
        )]
        mode: ApprovalMode,
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
        /// As without a terminal, where castor cannot ask
        #[arg(long)]
        headless: bool,
    },
    /// Prints every rule, in the order in which they are asked
    List {
        /// The folder of the session [default: the current one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
}

/// Returns the exit code.
pub fn run(args: &PolicyArgs, env: &Env, here: &AbsPath, out: &mut dyn Write) -> io::Result<u8> {
    let dir = match &args.verb {
        PolicyVerb::Check { cwd, .. } | PolicyVerb::List { cwd } => cwd,
    };
    let cwd = match folder(here, dir.as_ref()) {
        Ok(it) => it,
        Err(why) => return writeln!(out, "castor: {why}").map(|()| EXIT_INPUT),
    };
    let ground = folder_config::load(env, &cwd);
    let policies::FolderRules { rules, warnings, .. } = policies::rules(&ground, &[]);
    let mut refused = None;
    let code = match &args.verb {
        PolicyVerb::List { .. } => list(&rules, out)?,
        PolicyVerb::Check { what, args, command, server, mode, headless, .. } => {
            let servers = servers(&ground);
            let asked = match command {
                true => Ok(CheckedCall::command(what)),
                false => checked_call::read(what, args.as_deref(), server.as_deref(), &servers),
            };
            let (mode, why_not) = mode_of(&ground, mode.mode());
            refused = why_not;
            match asked {
                Ok(it) => {
                    let settings = settings_of(&Options::default(), &ground);
                    let hold = confinement::sandbox_state(&ground, &settings);
                    let home = workspace::castor_home(env);
                    let context = CheckContext {
                        rules: &rules,
                        cwd: &cwd,
                        env,
                        mode,
                        interactive: !headless,
                        hold: (it.kind == ToolKind::Execute).then_some(hold),
                        sandbox: confinement::policy_sandbox(hold, &ground, &settings),
                        protected: home.map(|it| confinement::protected_paths(env, &it, &settings)).unwrap_or_default(),
                    };
                    check(context, &it, out)?
                }
                Err(why) => writeln!(out, "castor: {why}").map(|()| EXIT_INPUT)?,
            }
        }
    };
    if let Some(why) = refused {
        writeln!(out, "\nNo session in {} is in that mode now, and this is what default says: {why}", ground.folder)?;
    }
    if brings_policies(&ground) {
        writeln!(out, "\n{cwd} is not trusted: its own policies were not read.")?;
    }
    let warnings: Vec<String> = settings_rules(&ground).into_iter().chain(warnings).collect();
    write_warnings(&warnings, out)?;
    Ok(code)
}

/// What is wrong with settings that rules and sandbox are made of: file, line and what it means.
fn settings_rules(ground: &FolderConfig) -> Vec<String> {
    let layers = ground.layers();
    let sources = Sources { layers, env: &ground.env, flags: &[] };
    let (settings, warnings) = Settings::merge(sources);
    let unheld = settings::invalid_deny_lists(sources);
    let is_unheld = |it: &&Warning| {
        let place = it.key.as_ref().map(|key| format!("{}: {key}", it.origin));
        unheld.iter().any(|(_, it)| Some(it) == place.as_ref())
    };
    let warnings = layers.unread_files().chain(warnings.iter().filter(is_unheld)).map(ToString::to_string);
    warnings.chain(settings.children.sandbox.invalid).collect()
}

/// The mode that a session would be in, and why it is not the one that was asked for: what the rules say in that is of
/// no use where no session may be in it.
fn mode_of(ground: &FolderConfig, mode: Mode) -> (Mode, Option<String>) {
    let settings = settings_of(&Options::default(), ground);
    match allow_mode(mode, &ground.trust, &settings) {
        Ok(()) => (mode, None),
        Err(it) => (Mode::Default, Some(plain(it.message()).to_string())),
    }
}

/// Whether an untrusted folder has policies. Unknown for a distrusted one.
fn brings_policies(ground: &FolderConfig) -> bool {
    match &ground.trust {
        Trust::Trusted { .. } => false,
        Trust::Untrusted(_) => true,
        Trust::Unknown => ground.project.all_files().iter().any(|it| it.kind == TrustedFileKind::Policy),
    }
}

fn list(rules: &RuleSet, out: &mut dyn Write) -> io::Result<u8> {
    for rule in rules.iter() {
        list_rule(rule, out)?;
    }
    writeln!(out, "\nAsked about in every mode, unless a rule of yours names the same:")?;
    for rule in policy::danger_rows() {
        list_rule(rule, out)?;
    }
    for it in rules.checkers() {
        let priority = it.effective_priority();
        writeln!(
            out,
            "{}.{:03}  check  {}: {}",
            priority / 1000,
            priority % 1000,
            escape_line(&it.describe()),
            escape_line(&it.describe_tools())
        )?;
    }
    Ok(0)
}

fn list_rule(rule: &Rule, out: &mut dyn Write) -> io::Result<()> {
    let priority = rule.effective_priority();
    let modes: Vec<&str> = rule.modes.iter().map(|it| it.as_str()).collect();
    let modes = if modes.is_empty() { String::new() } else { format!("  in {}", modes.join(", ")) };
    let who = match rule.interactive {
        None => "",
        Some(true) => "  when somebody can be asked",
        Some(false) => "  when nobody can be asked",
    };
    let name = escape_line(&rule.name(&rule.tools.join(", ")));
    writeln!(out, "{}.{:03}  {:5}  {name}{modes}{who}", priority / 1000, priority % 1000, word(rule.decision))
}

/// The MCP servers that the settings name.
fn servers(ground: &FolderConfig) -> Vec<String> {
    let layers = ground.layers();
    let (settings, _) = Settings::merge(Sources { layers, env: &ground.env, flags: &[] });
    let McpSettings { servers, off, .. } = settings.mcp;
    servers.into_iter().map(|it| it.name).chain(off.into_iter().map(|it| it.0)).collect()
}

/// What a session in that folder and mode would go by.
struct CheckContext<'a> {
    rules: &'a RuleSet,
    cwd: &'a AbsPath,
    env: &'a Env,
    mode: Mode,
    interactive: bool,
    /// Of a command.
    hold: Option<SandboxState>,
    sandbox: SandboxFacts,
    protected: ProtectedPaths,
}

fn check(context: CheckContext<'_>, asked: &CheckedCall, out: &mut dyn Write) -> io::Result<u8> {
    let CheckContext { rules, cwd, env, mode, interactive, hold, sandbox, protected } = context;
    let roots = [disk::real_path(cwd).unwrap_or_else(|_| cwd.clone())];
    let (targets, refused) = touched_files::targets(asked, (cwd, env), &roots, protected)?;
    let CheckedCall { tool, kind, args, server } = asked;
    let server = server.as_deref();
    let origin = CallOrigin { server, ..CallOrigin::default() };
    let query = Query { mode, interactive, roots: &roots, origin, sandbox, ..Query::new(tool, *kind, args, &targets) };
    let answer = policy::explain(rules, &query);
    // What a session would give it.
    let hold = hold.map(|it| SandboxState { network: it.network || answer.verdict.network, ..it });
    let lacks = hold.is_some_and(|it| it.available && it.level != SandboxLevel::Off && !it.network);
    let may_ask = lacks && interactive && answer.verdict.decision == Decision::Allow && !answer.verdict.read_only;
    let asks = if may_ask { "; asks if it needs the network" } else { "" };
    writeln!(out, "{}  {}{asks}", word(answer.verdict.decision), answer.verdict.rule)?;
    let why = answer.verdict.why.as_ref().filter(|_| answer.parts.is_empty() || answer.verdict.network);
    if let Some(it) = why.filter(|it| **it != answer.verdict.rule && !it.ends_with(&answer.verdict.rule)) {
        writeln!(out, "       {it}")?;
    }
    if let Some(it) = &answer.verdict.deny_message {
        writeln!(out, "       the model reads: {it}")?;
    }
    if let Some(it) = refused {
        writeln!(out, "       {tool} does not take these arguments, whatever the rules say: {it}")?;
    }
    for it in &answer.checkers {
        writeln!(out, "       unless a safety checker says otherwise: {it}")?;
    }
    if let Some(server) = server {
        writeln!(
            out,
            "       {tool} of {server}; this check ignores rules about toolAnnotations, which only the server knows"
        )?;
    }
    for part in &answer.parts {
        let text = part.text.replace('\n', "\n         ");
        writeln!(out, "  {:5}  {text}\n         {}", word(part.decision), part.rule)?;
        if let Some(why) = part.why.as_ref().filter(|it| !part.rule.contains(*it) && !it.ends_with(&part.rule)) {
            writeln!(out, "         {why}")?;
        }
    }
    if let Some(it) = hold {
        writeln!(out, "  sandbox: {}", it.in_words())?;
    }
    let is_own = |it: &str| it.starts_with("default/");
    if answer.verdict.decision != Decision::Allow && is_own(&answer.verdict.rule) {
        writeln!(out, "  default/… are castor's own rules; yours, in ~/.castor/policies/*.toml, go before them.")?;
    }
    Ok(match answer.verdict.decision {
        Decision::Allow => 0,
        Decision::Ask => 1,
        Decision::Deny => 2,
    })
}

fn word(it: Decision) -> &'static str {
    match it {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
    }
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::cli::testing::{Ground, parse, run_verb};
    use castor_base::path::AbsPath;
    use castor_hands::secrets::Env;

    fn castor_policy(line: &[&str], env: &Env, cwd: &AbsPath) -> (String, u8) {
        run_verb(|out| run(&parse(line), env, cwd, out))
    }

    /// Of settings that rules and sandbox are made of.
    #[test]
    fn settings_that_are_not_understood_are_named() {
        let ground = Ground::new();
        let (ws, env) = (ground.root.join("w"), ground.env("true"));
        let settings = |text: &str| {
            ground.write("h/.castor/settings.json", text);
            let said = |line: &[&str]| castor_policy(line, &env, &ws).0;
            (said(&["check", "npm test"]), said(&["list"]))
        };
        ground.write("w/a", "");
        let file = ground.root.join("h/.castor/settings.json");
        let (check, list) = settings("{\n \"tools\": }");
        for it in [&check, &list] {
            assert!(it.contains(&format!("\nWarnings:\n  {file}:2:11: not valid JSON: expected value")), "{it}");
        }
        let (check, _) = settings(r#"{"tools": {"exclude": "glob"}, "security": {"sandbox": {"level": "readonly"}}}"#);
        assert!(check.contains(&format!("\n  {file}: tools.exclude: should be a list of texts; ignored\n")), "{check}");
        assert!(check.contains("counts as read-only\n"), "{check}");
        assert!(check.contains("\n  sandbox: read-only, ") || check.contains("\n  sandbox: wanted, "), "{check}");
        assert!(!settings("{}").1.contains("Warnings"));
        // A mode that nobody gets allows nothing.
        let yolo = || castor_policy(&["check", "npm test", "--mode", "yolo"], &env, &ws);
        for (text, said) in [
            (r#"{"tools": {"allowed": "x"}}"#, ": tools.allowed: should be a list of texts; ignored\n"),
            (r#"{"tools": [{"exclude": ["x"]}]}"#, ": tools: should be an object {…}"),
        ] {
            let (check, _) = settings(text);
            assert!(check.contains(said), "{check}");
            assert_ne!(yolo().1, 0, "{text}");
        }
        settings("{}");
        assert_eq!(yolo().1, 0);
        // A rule for commands is about them, whatever it calls the shell.
        let misspelt = "[[rule]]\ntoolName='run_shell_comand'\ndecision='deny'\npriority=1\ncommandPrefix='npm'\n";
        ground.write("h/.castor/policies/a.toml", misspelt);
        assert_ne!(yolo().1, 0);
        ground.write("h/.castor/policies/a.toml", "");
        assert_eq!(yolo().1, 0);
        settings(r#"{"security": {"disableYoloMode": true}}"#);
        assert!(yolo().1 == 1 && yolo().0.contains("security.disableYoloMode"), "{}", yolo().0);
    }

    #[test]
    fn check_names_what_the_sandbox_withholds() {
        let ground = Ground::new();
        ground.write("w/a", "");
        let (ws, env) = (ground.root.join("w"), ground.env("true"));
        let check = |line: &str, mode: &str| castor_policy(&["check", line, "--mode", mode], &env, &ws);
        let asks = |text: &str| text.lines().next().is_some_and(|it| it.ends_with("; asks if it needs the network"));
        // Where there is no sandbox with mounts, nobody is in that mode.
        let (text, code) = check("npm install", "auto");
        assert_eq!(asks(&text), code == 0, "{text}");
        assert!(text.contains("without network\n") || code != 0, "{text}");
        assert!(!asks(&check("ls", "auto").0) && !asks(&check("npm install", "default").0));
        let yolo = check("curl http://x", "yolo").0;
        assert_eq!(yolo.contains("with network\n"), code == 0, "{yolo}");
        assert_eq!(asks(&yolo), yolo.contains("workspace-write, without network\n"), "{yolo}");
    }

    /// `castor policy check` finds what a call would touch as a session does.
    #[test]
    fn explains_by_file_and_line() {
        let ground = Ground::new();
        let root = &ground.root;
        let write = |path: &str, text: &str| ground.write(path, text);
        let rule = |decision: &str, prefix: &str| {
            format!(
                "[[rule]]\ntoolName='run_shell_command'\ndecision='{decision}'\npriority=9\ncommandPrefix='{prefix}'\n"
            )
        };
        write("h/.castor/policies/a.toml", &format!("# mine\n{}", rule("deny", "curl")));
        write("h/.gemini/policies/b.toml", "[[rule]]\ntoolName='x'\ndecision='deny'\npriority=1\nargsPattern='('");
        write(
            "h/.castor/settings.json",
            r#"{"tools": {"exclude": ["web_fetch", "glob"]}, "security": {"sandbox": {"level": "off"}}}"#,
        );
        write("w/.castor/policies/c.toml", &rule("allow", "make"));
        let (home, ws) = (root.join("h").to_string(), root.join("w"));
        let env = |trust| ground.env(trust);
        let check = |line: &[&str]| castor_policy(&[&["check"], line].concat(), &env("true"), &ws);

        let (text, code) = check(&["ls && curl x"]);
        assert!(
            text.starts_with(&format!("deny  {home}/.castor/policies/a.toml:2: run_shell_command curl\n")),
            "{text}"
        );
        assert!(text.contains("  allow  ls\n         it only looks\n") && text.contains("  deny   curl x\n"), "{text}");
        assert!(text.contains("b.toml:1: the rule is left out"), "{text}");
        assert_eq!(code, 2);
        assert!(!text.contains("castor's own"), "{text}");
        assert!(check(&["npm test"]).0.contains("\n  default/… are castor's own rules; "));
        assert_eq!(check(&["make"]).1, 0);
        assert!(check(&["make"]).0.contains("\n  sandbox: off; "), "{}", check(&["make"]).0);
        assert!(!check(&["write_file", r#"{"file_path": "a"}"#]).0.contains("sandbox"));
        let part = "  ask    > /tmp/out\n         its output goes to a file: > /tmp/out\n";
        assert!(check(&["ls > /tmp/out"]).0.contains(part) && !check(&["ls 2> /dev/null"]).0.contains("output"));
        let quoted = "castor: a command is one word here: quote it (castor policy check 'rm x')";
        assert!(check(&["rm", "x"]).0.starts_with(quoted));
        assert_eq!(castor_policy(&["check", "make"], &env("false"), &ws).1, 1);
        // Where no session may be in that mode, what the rules say of it is of no use.
        let told = "is in that mode now, and this is what default says: the mode yolo needs a trusted folder";
        for (trusted, is_told) in [("true", false), ("false", true)] {
            let (text, code) = castor_policy(&["check", "npm test", "--mode", "yolo"], &env(trusted), &ws);
            assert_eq!(text.contains(told), is_told, "{text}");
            assert_eq!(code, u8::from(is_told), "{text}");
            assert_eq!(text.contains("its own policies were not read"), is_told, "{text}");
        }
        assert_eq!(check(&["npm test", "--headless"]).1, 2);
        assert_eq!(check(&["git push --force", "--mode", "yolo"]).1, 1);
        assert_eq!(check(&["rm -rf target", "--approval-mode", "yolo"]).1, 0);
        assert_eq!(check(&["write_file", r#"{"file_path": "a"}"#, "--mode", "auto_edit"]).1, 0);
        assert_eq!(check(&["write_file", r#"{"file_path": "../a"}"#, "--mode", "auto_edit"]).1, 1);
        assert_eq!(check(&["glob", "{}"]).1, 2);
        let input = |line: &[&str]| {
            let (text, code) = check(line);
            assert_eq!(code, 42, "{line:?} {text}");
            text
        };
        assert!(input(&["web_fetch", "[]"]).contains("not a JSON object"));
        assert!(input(&["read_file"]).contains("read_file '{…}'") && input(&["read_file"]).contains("--command"));
        assert_eq!(check(&["read_file", "--command"]).1, 1);
        assert_eq!(check(&["edit", r#"{"file_path": "a"}"#, "--mode", "auto_edit"]).1, 0);
        assert!(
            check(&["edit", r#"{"file_path": "a"}"#])
                .0
                .contains("replace does not take these arguments, whatever the rules say: ")
        );
        assert!(input(&["red_file", "{}"]).contains("\"read_file\""));
        assert!(input(&["ls", "--cwd", "gone"]).contains("gone cannot be looked into"));
        assert!(input(&["ls", "--cwd", ".castor/policies/c.toml"]).contains("is not a folder"));
        assert_eq!(check(&["ls ("]).1, 1);

        let (text, _) = check(&["cd ~/.config/gh && cat hosts.yml", "--mode", "yolo"]);
        assert!(text.starts_with("ask  secrets may be kept there: .config/gh/hosts.yml\n"), "{text}");
        write("w/sub/a", "");
        std::os::unix::fs::symlink("../h", ws.join("link").as_path()).unwrap();
        let read = |path: &str| check(&["read_file", &format!(r#"{{"file_path": "{path}"}}"#)]);
        assert_eq!((read("a").1, read("link/.castor/settings.json").1), (0, 1));
        let below = |dir: &str| check(&["run_shell_command", &format!(r#"{{"command": "ls", "dir_path": "{dir}"}}"#)]);
        assert_eq!((below("sub").1, below("link").1), (0, 1));

        let (text, code) = castor_policy(&["list", "--cwd", "../w"], &env("true"), &ws);
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} in {text}"));
        assert!(at("4.400  deny   settings: tools.exclude: web_fetch") < at("4.009  deny"), "{text}");
        assert!(text.contains("  ask    default/danger.toml: run_shell_command cargo publish, "), "{text}");
        assert!(at("4.009  deny") < at("3.009  allow") && at("3.009  allow") < at("1.998  allow"), "{text}");
        assert_eq!(code, 0);
    }
}
