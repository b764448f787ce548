//! Agent files as a table, with what comes of each; then folders, duplicates and compositions.

use std::{collections::BTreeMap, io};

use super::{AgentFormat, FoundAgents, parse, read};
use crate::workspace::{Reader, extension_files::ExtensionTier, policies::FolderAccess};
use castor_base::{
    agent::{AgentDefinition, AgentOrigin, AgentRun},
    path::AbsPath,
};
use castor_hands::secrets::Env;

fn tools(name: &str) -> Option<String> {
    let known = ["list_directory", "read_file", "glob", "grep_search", "run_shell_command", "replace"];
    let name = if name == "search_file_content" { "grep_search" } else { name };
    known.contains(&name).then(|| name.to_owned())
}

fn describe(it: &AgentDefinition) -> String {
    let own = &it.descriptor;
    let mut res = format!("{:?} {} ({})", own.executor, own.name, own.description);
    let mut add = |name: &str, value: Option<String>| {
        res += &value.map(|it| format!(" {name}={it}")).unwrap_or_default();
    };
    add("shown", own.display_name.clone());
    add("turns", own.constraints.max_turns.map(|it| it.to_string()));
    add("minutes", own.constraints.max_time_minutes.map(|it| it.to_string()));
    add("usd", own.constraints.max_budget_usd.map(|it| it.to_string()));
    add("input", own.input_schema.as_ref().map(|it| it["properties"].to_string()));
    let names: Vec<&str> = own.sub_agents.iter().map(|it| it.name.as_str()).collect();
    add("sub", (!names.is_empty()).then(|| names.join(",")));
    match &it.run {
        AgentRun::Local(run) => {
            add("tools", run.tools.as_ref().map(|it| format!("{it:?}")));
            add("model", run.model.clone());
            add("temperature", run.temperature.map(|it| it.to_string()));
            add("query", run.query.clone());
            add("output", run.output.as_ref().map(|it| format!("{}:{}", it.name, it.schema["type"])));
            let servers: Vec<String> = run
                .mcp_servers
                .iter()
                .map(|it| format!("{} {:?} trust={} confined={}", it.name, it.link, it.trust, it.of_project))
                .collect();
            add("servers", (!servers.is_empty()).then(|| servers.join(";")));
            add("text", Some(run.instructions.clone()));
        }
        AgentRun::Peer(run) => add("peer", Some(format!("{run:?}"))),
        AgentRun::Composite(run) => {
            add("agents", Some(run.agents.join(",")));
            add("rounds", Some(run.max_iterations.to_string()));
            add("key", run.output_key.clone());
            add("on_failure", Some(format!("{:?}", run.on_failure)));
        }
    }
    res
}

fn outcome(text: &str, format: AgentFormat) -> String {
    let fault = |it: super::FileFault| match it.at {
        Some((line, column)) => format!("{line}:{column}: {}", it.message),
        None => it.message,
    };
    match parse(text.as_bytes(), format, AgentOrigin::Workspace(AbsPath::new("/f").unwrap()), &tools) {
        Ok((it, notes)) => {
            [describe(&it)].into_iter().chain(notes.into_iter().map(fault)).collect::<Vec<_>>().join("\n")
        }
        Err(it) => fault(it),
    }
}

#[test]
fn files_of_castor_and_gemini_cli() {
    for (text, want) in [
        ("---\nname: a\ndescription: d\n---\nDo it.\n", "Local a (d) text=Do it."),
        (
            "---\nkind: local\nname: a-b_1\ndisplay_name: A\ndescription: >\n  x: y\n  z\ntools:\n  - read_file\n  - \"mcp_*\"\n  - search_file_content\nmodel: flash\ntemperature: 0.5\nmax_turns: 3\ntimeout_mins: 1.5\nmax_budget_usd: 0.2\n---\nDo\n\nit.\n",
            "Local a-b_1 (x: y z) shown=A turns=3 minutes=1.5 usd=0.2 tools=[\"read_file\", \"mcp_*\", \"grep_search\"] model=flash temperature=0.5 text=Do\n\nit.",
        ),
        (
            "---\nname: a\ndescription: d\nmodel: inherit\ntools: []\nquery: go ${x}\nsub_agents: [b, c, b]\ninput: {type: object, properties: {x: {type: string}}}\noutput: {name: r, schema: {type: array}}\n---\nT",
            "Local a (d) input={\"x\":{\"type\":\"string\"}} sub=b,c tools=[] query=go ${x} output=r:\"array\" text=T",
        ),
        (
            "---\nname: a\ndescription: d\ntools: [web_fetch, read_file]\n---\nT",
            "Local a (d) tools=[\"read_file\"] text=T\n4:9: castor has no tool \"web_fetch\"; it is left out",
        ),
        (
            "---\nname: a\ndescription: d\nmcp_servers:\n  s: {command: x, args: [1], env: {K: v}, trust: true}\n---\nT",
            "Local a (d) servers=s Stdio { command: \"x\", n_args: 1, env: [\"K\"], cwd: None } trust=false confined=true text=T",
        ),
        (
            "---\nname: a\ndescription: d\nmcp_servers:\n  s: {command: x, url: y}\n---\nT",
            "5:6: the server s should have one of command, url and http_url",
        ),
        (
            "---\nname: a\ndescription: d\nmcp_servers:\n  s: {command: x, tcp: y}\n---\nT",
            "5:19: unknown field `tcp`, expected one of command, args, env, cwd, url, http_url, headers, type, timeout, trust, description, include_tools, exclude_tools",
        ),
        (
            "---\nkind: sequential\nname: a\ndescription: d\nagents: [b, b, c]\noutput_key: k\non_failure: continue\n---\n",
            "Sequential a (d) sub=b,c agents=b,b,c rounds=1 key=k on_failure=Continue",
        ),
        (
            "---\nkind: parallel\nname: a\ndescription: d\nagents: [b]\n---\n",
            "Parallel a (d) sub=b agents=b rounds=1 on_failure=Stop",
        ),
        (
            "---\nkind: loop\nname: a\ndescription: d\nagents: [b]\nmax_iterations: 3\n---\nWords for readers.",
            "Loop a (d) sub=b agents=b rounds=3 on_failure=Stop",
        ),
        ("Hello", "1:1: should begin with front matter: keys between a first line --- and another line ---"),
        ("---\nname: a\ndescription: d\n---\n \n", "has no instructions: write them below the front matter"),
        ("---\nname: a\n---\nT", "2:1: missing field `description`"),
        ("---\nname: a\ndescription: ' '\n---\nT", "3:14: should not be empty"),
        (
            "---\nname: A b\ndescription: d\n---\nT",
            "2:7: \"A b\" should have 1 to 64 of the characters a-z, 0-9, _ and -",
        ),
        ("---\nname: read_file\ndescription: d\n---\nT", "2:7: read_file is the name of a tool; choose another one"),
        ("---\nname: mcp_x\ndescription: d\n---\nT", "2:7: mcp_x is the name of a tool; choose another one"),
        (
            "---\nname: a\ndescription: d\nmax_turns: 0\n---\nT",
            "4:1: invalid value: integer `0`, expected a nonzero u32",
        ),
        ("---\nname: a\ndescription: d\ntimeout_mins: 0\n---\nT", "4:15: should be a number above 0"),
        ("---\nname: a\ndescription: d\ntemperature: 3\n---\nT", "4:14: should be a number from 0 to 2"),
        ("---\nname: a\ndescription: d\nname: b\n---\nT", "4:1: duplicate mapping key `name` is not allowed here"),
        ("---\nname: a\ndescription: b: c\n---\nT", "3:15: mapping values are not allowed in this context"),
        (
            "---\nname: a\ndescription: d\ninput: {type: string}\n---\nT",
            "4:8: should be a JSON schema with type: object and properties",
        ),
        ("---\nkind: acp\nname: a\ndescription: d\n---\n", "4:1: missing field `command`"),
        ("---\nname: a\ndescription: d\nworkspace_directories: src\n---\nT", "4:24: expected sequence start"),
        (
            "---\nkind: acp\nname: a\ndescription: d\ncommand: x\nargs: [y]\nenv: {K: v}\nreadable: [~/z]\n---\n",
            "Acp a (d) peer=Program(ProgramAgent { line: \"x y\", env: [\"K\"], sandbox: ProgramSandbox { is_off: false, network: Some(true), writable: [], readable: [\"~/z\"], sockets: [] } })",
        ),
        ("---\nkind: queue\nname: a\n---\nT", "2:7: kind should be local, remote, acp, sequential, parallel or loop"),
        ("---\nkind: remote\nname: a\n---\n", "a remote agent should have one of agent_card_url and agent_card_json"),
        (
            "---\nname: a\nagent_card_url: https://h/c?key=1\nauth: {type: apiKey, key: CANARY}\ntimeout_mins: 5\n---\n",
            "Remote a (The remote agent at https://h/c.) minutes=5 peer=Remote(RemoteAgent { name: \"a\", card: Url(\"https://h/c?key=1\"), auth: Some(ApiKey { header: \"X-API-Key\", key: Literal }) })",
        ),
        (
            "---\nkind: remote\nname: a\ndescription: d\nagent_card_json: '{}'\nauth: {type: http, scheme: Basic, username: $U, password: '!pass'}\n---\n",
            "auth takes the variable U, which a workspace's file cannot; put the file in ~/.castor/agents",
        ),
        (
            "---\nname: a\nagent_card_url: ftp://h\n---\n",
            "3:17: agent_card_url should be an http(s) address, without a user name; secrets go into auth",
        ),
        (
            "---\nname: a\nagent_card_url: http://h\nagent_card_json: '{}'\n---\n",
            "4:18: a remote agent should have one of agent_card_url and agent_card_json",
        ),
        (
            "---\nname: a\nagent_card_url: http://h\nauth: {type: apiKey, key: k, token: t}\n---\n",
            "4:30: unknown field `token`, expected one of type, key, name",
        ),
        (
            "---\nname: a\nagent_card_url: http://h\nauth: {type: oauth, client_id: x}\n---\n",
            "4:14: auth of the type oauth is not supported yet; use http with a token",
        ),
        (
            "---\nname: a\nagent_card_url: http://h\nauth: {type: http, scheme: Bearer}\n---\n",
            "4:7: auth should have a token for Bearer, a username and a password for Basic, or else a value",
        ),
        (
            "---\nname: a\nagent_card_url: http://h\nauth: {type: google-credentials}\n---\n",
            "auth takes your Google credentials, which a workspace's file cannot; put the file in ~/.castor/agents",
        ),
        ("---\n\n- name: a\n- name: b\n---\n", "3:1: lists of remote agents are not supported yet"),
        ("---\nkind: loop\nname: a\ndescription: d\nagents: []\n---\n", "5:9: agents should name 1 to 50 agents"),
        (
            "---\nkind: parallel\nname: a\ndescription: d\nagents: [b]\nmax_iterations: 2\n---\n",
            "6:17: max_iterations is for agents of the kind loop",
        ),
    ] {
        assert_eq!(outcome(text, AgentFormat::Castor), want, "{text}");
    }
    let unknown = outcome("---\nname: a\ndescription: d\nmax_turn: 2\n---\nT", AgentFormat::Castor);
    assert!(unknown.starts_with("4:1: unknown field `max_turn`, expected one of "), "{unknown}");
    let odd = outcome("---\nkind: loop\nname: a\ntools: []\n---\n", AgentFormat::Castor);
    assert!(odd.starts_with("4:1: unknown field `tools`"), "{odd}");
    let program = outcome("---\nkind: acp\nname: a\ndescription: d\ncommand: x\ntools: []\n---\n", AgentFormat::Castor);
    assert!(program.starts_with("6:1: unknown field `tools`"), "{program}");
    let large = format!("---\nname: a\ndescription: d\n---\n{}", "x".repeat(super::MAX_BYTES));
    assert_eq!(outcome(&large, AgentFormat::Castor), "is over 1 MiB");
}

#[test]
fn files_of_claude_code() {
    for (text, want) in [
        (
            "---\nname: a\ndescription: Use it when: x\\ny # z\ntools: Read, Grep , Bash(ls:*), mcp__web__get,Task, Read\nmodel: sonnet\ncolor: red\n---\n\nYou.\n",
            "Local a (Use it when: x\\ny # z) tools=[\"read_file\", \"grep_search\", \"mcp_web_get\"] model=sonnet text=You.\n\
             4:8: castor has no tool \"Bash(ls:*)\"; it is left out\n4:8: castor has no tool \"Task\"; it is left out",
        ),
        (
            "---\nname: a\ndescription: \"d\"\ntools: [Edit, MultiEdit]\nmodel: inherit\nmaxTurns: 4\n---\nT",
            "Local a (d) turns=4 tools=[\"replace\"] text=T",
        ),
        ("---\nname: a\ndescription: d\n---\nT", "Local a (d) text=T"),
    ] {
        assert_eq!(outcome(text, AgentFormat::Claude), want, "{text}");
    }
    // What takes rights away there must not be lost on the way.
    for key in ["disallowedTools: Bash", "permissionMode: plan"] {
        let text = format!("---\nname: a\ndescription: d\n{key}\n---\nT");
        let fault = outcome(&text, AgentFormat::Claude);
        assert!(fault.starts_with("4:1: unknown field"), "{fault}");
    }
}

/// What files define by name, with the file of each, and the warnings.
fn look(files: &[(&str, &str)], workspace: Option<&str>) -> (Vec<String>, Vec<String>) {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let reader = Reader {
        read: &|it| match files.get(it.to_string().as_str()) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => Err(io::ErrorKind::NotFound.into()),
        },
        real_path: &|it| Ok(it.clone()),
    };
    let list = |folder: &AbsPath| {
        let below = files.keys().filter_map(|it| it.strip_prefix(&format!("{folder}/")));
        Ok(below.map(str::to_owned).collect())
    };
    let folders = FolderAccess { list: &list, only_root_can_write: &|_| true };
    let env = Env::from_pairs([("HOME", "/h")]);
    let FoundAgents { definitions, warnings } =
        read(&env, workspace.and_then(AbsPath::new).as_ref(), &ExtensionTier::default(), &tools, (reader, folders));
    let shown = |it: &AgentDefinition| {
        let sub: Vec<&str> = it.descriptor.sub_agents.iter().map(|it| it.description.as_str()).collect();
        let place = match &it.origin {
            AgentOrigin::BuiltIn => "built-in".to_owned(),
            AgentOrigin::Client => "client".to_owned(),
            AgentOrigin::User(file) => format!("user {file}"),
            AgentOrigin::Workspace(file) => format!("workspace {file}"),
            AgentOrigin::Extension(name, file) => format!("extension {name} {file}"),
        };
        format!("{} {place} {sub:?}", it.descriptor.name)
    };
    (definitions.iter().map(shown).collect(), warnings.iter().map(ToString::to_string).collect())
}

fn agent(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: does {name}\n{more}---\nT\n")
}

#[test]
fn the_first_of_a_name_counts() {
    let [a, b, generalist] = ["a", "b", "generalist"].map(|it| agent(it, ""));
    let files = [
        ("/h/.castor/agents/a.md", a.as_str()),
        ("/h/.gemini/agents/b.md", &b),
        ("/h/.claude/agents/c.md", "---\nname: c\ndescription: c: c\n---\nT"),
        ("/w/.castor/agents/a.md", &a),
        ("/w/.castor/agents/_notes.md", "x"),
        ("/w/.castor/agents/notes.txt", "x"),
        ("/w/.gemini/agents/a2.md", &a),
        ("/w/.claude/agents/odd.md", "x"),
        ("/w/.gemini/agents/g.md", &generalist),
    ];
    let (found, warnings) = look(&files, Some("/w"));
    assert_eq!(
        found,
        [
            "codebase_investigator built-in []",
            "generalist built-in []",
            "memory_extractor built-in []",
            "a workspace /w/.castor/agents/a.md []",
            "b user /h/.gemini/agents/b.md []",
            "c user /h/.claude/agents/c.md []",
        ]
    );
    assert_eq!(
        warnings,
        [
            "/w/.gemini/agents/a2.md: the agent a is defined by /w/.castor/agents/a.md; the file is skipped",
            "/w/.gemini/agents/g.md: the agent generalist is defined by castor itself; the file is skipped",
            "/w/.claude/agents/odd.md:1:1: should begin with front matter: keys between a first line --- and another line ---; the file is skipped",
            "/h/.castor/agents/a.md: the agent a is defined by /w/.castor/agents/a.md; the file is skipped",
        ]
    );
    let (found, warnings) = look(&files, None);
    assert!(found.iter().all(|it| !it.contains("/w/")) && warnings.is_empty(), "{found:?} {warnings:?}");
}

#[test]
fn compositions_have_all_their_agents_and_an_end() {
    let a = agent("a", "sub_agents: [b, gone, generalist]\n");
    let composite = |name: &str, agents: &str| agent(name, &format!("kind: sequential\nagents: [{agents}]\n"));
    let [b, whole, lacks, round, wheel] = [
        agent("b", ""),
        composite("whole", "a, b"),
        composite("lacks", "whole, no"),
        composite("round", "b, wheel"),
        composite("wheel", "round"),
    ];
    let files = [
        ("/h/.castor/agents/a.md", a.as_str()),
        ("/h/.castor/agents/b.md", &b),
        ("/h/.castor/agents/c1.md", &whole),
        ("/h/.castor/agents/c2.md", &lacks),
        ("/h/.castor/agents/c3.md", &round),
        ("/h/.castor/agents/c4.md", &wheel),
    ];
    let (found, warnings) = look(&files, None);
    assert_eq!(found[3..].iter().map(|it| it.split(' ').next().unwrap()).collect::<Vec<_>>(), ["a", "b", "whole"]);
    assert!(
        found[3].starts_with("a user /h/.castor/agents/a.md [\"does b\", \"Does a whole task by itself"),
        "{found:?}"
    );
    assert!(found[5].ends_with("[\"does a\", \"does b\"]"), "{found:?}");
    assert_eq!(
        warnings,
        [
            "/h/.castor/agents/c2.md: there is no agent no; the file is skipped",
            "/h/.castor/agents/c3.md: its agents run each other without end: round, wheel, round; the file is skipped",
            "/h/.castor/agents/c4.md: its agents run each other without end: wheel, round, wheel; the file is skipped",
            "/h/.castor/agents/a.md: there is no agent gone; it is left out",
        ]
    );
}
