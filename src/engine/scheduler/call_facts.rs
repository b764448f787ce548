//! Facts of a call that policy decides by: tool, arguments, grants and origin.

use serde_json::Value;

use super::toolbox::Toolbox;
use crate::scheduler::resources::resource_tools;
use crate::{policy, record::Record, session_tools::delegate, step::ForeignTool};
use castor_base::{
    host_tools::HostTool,
    log::{Grant, Mode},
    policy_answer::{PolicyAnswer, PolicyPart},
    tool::{PolicyClass, Targets, ToolCall, ToolKind},
};

/// Facts of one call; a query borrows from it.
pub struct CallFacts<'a> {
    tool: String,
    args: Value,
    grants: Vec<Grant>,
    outside: Option<&'a ForeignTool>,
    /// The tool's, or that of the resource.
    server: Option<String>,
    digest: Option<String>,
    /// The host's, of its own tool.
    of_host: Option<Value>,
}

impl<'a> CallFacts<'a> {
    pub fn new(tools: &'a Toolbox, record: &Record, call: &ToolCall, class: PolicyClass) -> Self {
        let (tool, args) = delegate::as_rules_see(&tools.agents, call, class);
        let outside = tools.foreign_tool(&call.name);
        let (digest, of_host) =
            (tools.digest(&call.name), tools.host().find(&call.name).map(HostTool::rule_annotations));
        let server = outside.map(|it| it.server.clone()).or_else(|| tools.server_of_resource(call));
        Self { tool, args, server, grants: tools.grants(&record.grants), outside, digest, of_host }
    }

    /// The query in the session as it is now. The tool's kind is the caller's matter, and so are the reviews.
    pub fn query<'q>(&'q self, tools: &'q Toolbox, record: &'q Record, targets: &'q Targets) -> policy::Query<'q> {
        let outside = self.outside;
        let of_server = outside.map(|it| policy::Annotations { members: &it.annotations, trusted: it.trusted });
        // A host counts for its own session, and would answer a question about its tool itself: it is believed.
        let of_host = self.of_host.as_ref().map(|members| policy::Annotations { members, trusted: true });
        let is_of_resource = outside.is_none() && self.server.is_some();
        let members = resource_tools::annotations();
        let of_resource = is_of_resource.then_some(policy::Annotations { members, trusted: false });
        policy::Query {
            tool: &self.tool,
            kind: ToolKind::Other,
            args: &self.args,
            targets,
            mode: record.mode,
            interactive: tools.interactive,
            grants: &self.grants,
            roots: &record.roots,
            origin: policy::CallOrigin {
                server: self.server.as_deref(),
                annotations: of_server.or(of_host).or(of_resource),
                digest: self.digest.as_deref(),
                subagent: record.principal.agent(),
                called: None,
            },
            checker_verdicts: &[],
            plans: tools.planning.folder.as_ref(),
            sandbox: policy::SandboxFacts {
                exposed: tools.sandbox.facts.exposed || record.secrets_exposed(),
                ..tools.sandbox.facts
            },
        }
    }
}

/// The verdict of policy on a call that nobody makes. No checker is asked, and not the client.
pub fn evaluate(
    tools: &Toolbox,
    record: &Record,
    (call, mode, principal): (&ToolCall, Option<Mode>, Option<&str>),
    targets: &Targets,
) -> PolicyAnswer {
    let facts = CallFacts::new(tools, record, call, tools.traits(&call.name).class);
    let query = facts.query(tools, record, targets);
    let origin = policy::CallOrigin { subagent: principal.or(query.origin.subagent), ..query.origin };
    let kind = tools.known_tool(&call.name).map_or(ToolKind::Other, |it| it.kind);
    let query = policy::Query { kind, mode: mode.unwrap_or(query.mode), origin, ..query };
    let policy::Explanation { verdict, parts, checkers } = policy::explain(&tools.rules, &query);
    let part = |it: policy::PartVerdict| PolicyPart { command: it.text, decision: it.decision, rule: it.rule };
    PolicyAnswer {
        decision: verdict.decision,
        reason: verdict.why.or(verdict.deny_message).filter(|it| *it != verdict.rule),
        rule: verdict.rule,
        parts: parts.into_iter().map(part).collect(),
        checkers,
    }
}
