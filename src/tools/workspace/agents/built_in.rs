//! The agents that castor brings: values, since reading YAML would cost each process milliseconds.

use serde_json::{Map, Value, json};

use castor_base::{
    agent::{
        AgentCapability, AgentConstraints, AgentDefinition, AgentDescriptor, AgentKind, AgentOrigin, AgentOutput,
        AgentRun, LocalAgent,
    },
    agent_right::AgentRight,
};

pub fn all() -> Vec<AgentDefinition> {
    vec![codebase_investigator(), generalist(), memory_extractor()]
}

/// What differs between them.
struct BuiltIn {
    name: &'static str,
    display_name: &'static str,
    description: &'static str,
    max_turns: u32,
    input: Option<Value>,
    rights: Vec<AgentRight>,
    run: LocalAgent,
}

fn codebase_investigator() -> AgentDefinition {
    let objective = "What the user wants in the end, in full, with all names, errors and decisions that are known so \
        far. Not a search term.";
    definition(BuiltIn {
        name: "codebase_investigator",
        display_name: "Codebase investigator",
        description: "Finds out how a part of a code base works: where something is done, what depends on it, why it \
            fails, and which files a change has to touch. It reads only. Use it before larger changes, for bugs whose \
            cause is not plain, and for questions about the structure of a project. Tell it the whole objective; it \
            returns a report with the files and names that count.",
        max_turns: 50,
        input: Some(one_text("objective", objective)),
        rights: Vec::new(),
        run: LocalAgent {
            temperature: Some(0.1),
            // Data: a tool has its name in its own file.
            tools: Some(include_str!("codebase_investigator_tools.txt").lines().map(str::to_owned).collect()),
            output: Some(report()),
            query: Some(
                "Investigate the code base for this objective:\n<objective>\n${objective}\n</objective>".to_owned(),
            ),
            ..with_instructions(include_str!("codebase_investigator.md"))
        },
    })
}

fn generalist() -> AgentDefinition {
    let request = "The task, with all that it has to know, how to tell that it is done, and what to report.";
    definition(BuiltIn {
        name: "generalist",
        display_name: "Generalist",
        description: "Does a whole task by itself, with the same tools as you. Use it for work whose steps would fill \
            your context and whose outcome is short: the same edit in many files, commands with much output, searches \
            with many tries. Tell it everything it has to know, and what to report.",
        max_turns: 20,
        input: Some(one_text("request", request)),
        rights: Vec::new(),
        run: LocalAgent { query: Some("${request}".to_owned()), ..with_instructions(include_str!("generalist.md")) },
    })
}

fn memory_extractor() -> AgentDefinition {
    definition(BuiltIn {
        name: "memory_extractor",
        display_name: "Memory extractor",
        description: "Learns from the earlier sessions of this folder: proposes facts that later sessions should know. \
            The user accepts them with /memory inbox.",
        max_turns: 40,
        input: None,
        rights: vec![AgentRight::MemoryInbox, AgentRight::MemoryExtraction],
        run: LocalAgent { tools: Some(Vec::new()), ..with_instructions(include_str!("memory_extractor.md")) },
    })
}

fn definition(it: BuiltIn) -> AgentDefinition {
    let descriptor = AgentDescriptor {
        name: it.name.to_owned(),
        display_name: Some(it.display_name.to_owned()),
        description: it.description.to_owned(),
        executor: AgentKind::Local,
        input_schema: it.input,
        output_schema: it.run.output.as_ref().map(|it| it.schema.clone()),
        capabilities: vec![AgentCapability::Elicitation, AgentCapability::Streaming],
        required_tools: it.run.tools.clone().unwrap_or_default(),
        constraints: AgentConstraints {
            max_turns: Some(it.max_turns),
            max_time_minutes: Some(10.0),
            max_budget_usd: None,
        },
        own_tools: Vec::new(),
        sub_agents: Vec::new(),
        metadata: Map::new(),
    };
    AgentDefinition {
        descriptor,
        origin: AgentOrigin::BuiltIn,
        enabled: true,
        folders: Vec::new(),
        rights: it.rights,
        run: AgentRun::Local(Box::new(it.run)),
    }
}

fn with_instructions(text: &str) -> LocalAgent {
    LocalAgent {
        instructions: text.trim().to_owned(),
        query: None,
        model: None,
        temperature: None,
        tools: None,
        mcp_servers: Vec::new(),
        output: None,
        output_key: None,
        include_contents: false,
        takes_state: false,
    }
}

/// The schema of arguments that are one text.
fn one_text(name: &str, description: &str) -> Value {
    let properties = json!({ name: { "type": "string", "description": description } });
    json!({ "type": "object", "properties": properties, "required": [name] })
}

fn report() -> AgentOutput {
    let texts = json!({ "type": "string" });
    let location = json!({
        "type": "object",
        "properties": {
            "FilePath": texts,
            "Reasoning": { "type": "string", "description": "Why this file counts." },
            "KeySymbols": { "type": "array", "items": texts },
        },
        "required": ["FilePath", "Reasoning", "KeySymbols"],
    });
    let schema = json!({
        "type": "object",
        "properties": {
            "SummaryOfFindings": {
                "type": "string",
                "description": "The answer, and what to know before the change.",
            },
            "ExplorationTrace": {
                "type": "array",
                "items": texts,
                "description": "What was looked at, step by step, and what it told.",
            },
            "RelevantLocations": { "type": "array", "items": location },
        },
        "required": ["SummaryOfFindings", "ExplorationTrace", "RelevantLocations"],
    });
    AgentOutput { name: "report".to_owned(), description: "What was found, as JSON.".to_owned(), schema }
}
