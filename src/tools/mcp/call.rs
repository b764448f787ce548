//! One MCP tool call: its request, and what comes of it.

use std::{sync::Arc, time::Duration};

use rmcp::{
    model::{CallToolRequest, CallToolRequestParams, ClientRequest, ProgressNotificationParam},
    service::ServiceError,
};
use serde_json::Value;
use tokio::{
    sync::{broadcast, watch},
    task::spawn_blocking,
};
use tokio_util::sync::CancellationToken;

use super::{
    auth::{self, LoginTarget},
    client::Listener,
    connection::ServerLink,
    elicitation_call::ServerAsker,
    error::{NoAnswer, innermost_cause, is_unauthorized, missing_scopes},
    output,
    sandbox_findings::PendingFindings,
    subscriptions::Subscriptions,
};
use castor_base::{
    content::Part,
    credential::{Credential, CredentialOwner},
    fs::BoxFuture,
    mcp::McpLink,
    path::AbsPath,
    sandbox::Confinement,
    text,
    tool::{Display, ToolError, ToolOutput},
};
use castor_hands::process::{
    outside::OutsideGate,
    sandbox::{self, Quarantine},
};

/// A server that answers, or is started again when it is called. Cheap to clone.
#[derive(Clone)]
pub struct Connection {
    line: ServerLink,
    pub(super) progress: broadcast::Sender<ProgressNotificationParam>,
    /// How many questions of the server are open.
    pub(super) open_questions: watch::Receiver<usize>,
    process_hold: ProcessHold,
    /// Where a user gets another credential for it.
    address: Option<Arc<str>>,
    /// castor can log in there.
    login: Option<Arc<LoginTarget>>,
    /// Sends the user to pages, and asks for what requests need.
    pub(super) asking: Option<ServerAsker>,
    /// What it may be told of them.
    pub(super) roots: Arc<[AbsPath]>,
    /// What was read of it.
    pub(super) subscriptions: Subscriptions,
}

/// The hold on a server's process.
#[derive(Clone, Default)]
pub struct ProcessHold {
    pub confined: Option<Arc<Confinement>>,
    pub gate: Option<OutsideGate>,
    pub(super) findings: PendingFindings,
}

/// Takes live text.
pub type Show = Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>;

/// How long a request may take, and who hears of it meanwhile.
pub(super) struct Patience<'a> {
    /// Of silence: progress begins it anew, and so does the end of a question to the user.
    pub(super) silence: Duration,
    pub(super) cancel: &'a CancellationToken,
    pub(super) show: Option<&'a Show>,
}

/// One call with its options.
pub struct ServerCall<'a> {
    /// The server's own name for it.
    pub tool: &'a str,
    pub args: &'a Value,
    /// Of silence: progress begins it anew, and so does the end of a question to the user.
    pub timeout: Duration,
    pub cancel: &'a CancellationToken,
    pub show: &'a Show,
}

impl Connection {
    pub fn new(
        line: ServerLink,
        progress: broadcast::Sender<ProgressNotificationParam>,
        asks: watch::Receiver<usize>,
        held: ProcessHold,
        address: Option<String>,
    ) -> Self {
        Self {
            line,
            progress,
            open_questions: asks,
            process_hold: held,
            address: address.map(Into::into),
            login: None,
            asking: None,
            roots: Arc::default(),
            subscriptions: Subscriptions::default(),
        }
    }

    #[must_use]
    pub fn with_login(self, login: Option<LoginTarget>) -> Self {
        Self { login: login.map(Arc::new), ..self }
    }

    /// The user can be sent to pages that calls need, and changes of what is read are heard.
    pub(super) fn with_listener(self, it: &Listener) -> Self {
        let (asking, roots) = (Some(it.asking.clone()), it.roots.clone());
        Self { asking, roots, subscriptions: it.subscriptions.clone(), ..self }
    }

    /// A request to a server outside counts as a start: where it would reach what an agent wrote, the server starts anew,
    /// inside, and the request waits for that.
    pub(super) async fn check_gate(&self) {
        let gate = self.process_hold.gate.as_ref().filter(|_| self.process_hold.findings.is_outside());
        if let Some(it) = gate
            && it.refusal().await.is_some()
            && self.process_hold.findings.note_end_outside()
        {
            self.line.restart();
        }
    }

    /// The user looked: a server that was kept inside starts anew, where its start may let it out.
    pub fn leave_sandbox(&self) {
        let ProcessHold { gate, findings, .. } = &self.process_hold;
        if gate.is_some() && !findings.is_outside() {
            self.line.restart();
        }
    }

    pub(super) fn line(&self) -> ServerLink {
        self.line.clone()
    }

    /// Reaches the server with other headers from now on.
    pub fn renew(&self, link: McpLink) {
        self.line.renew(link);
    }

    /// What appears meanwhile that somebody would obey is put aside: it may be the server's. What was found under its
    /// process before is told, too.
    pub async fn call(&self, call: ServerCall<'_>) -> ToolOutput {
        self.check_gate().await;
        let ProcessHold { confined, findings: found, .. } = self.process_hold.clone();
        let Some(confined) = confined.filter(|_| !found.is_outside()) else {
            return self.send(&call).await;
        };
        let looked = confined.clone();
        let before = match spawn_blocking(move || sandbox::snapshot_config(&looked)).await {
            Ok(Err(why)) => return failed_output(call.tool, &why.to_string()),
            Ok(Ok(it)) => Some(it),
            Err(_) => None,
        };
        let mut res = self.send(&call).await;
        // Behind castor's own words, which name the tool in quotes.
        let failure = res.error.as_ref().and_then(|it| it.message.split_once(": ")).map_or("", |it| it.1);
        if let Some(it) = &self.asking {
            it.report_lack(found.trace().take_lack(&confined, res.error.is_some().then_some(failure))).await;
        }
        let look = move |before: Arc<Quarantine>| {
            found.take().into_iter().chain(before.findings().in_words("this call")).collect()
        };
        if let Some(before) = before
            && let Ok(said) = spawn_blocking(move || -> Vec<String> { look(before) }).await
            && !said.is_empty()
        {
            let said = said.join("\n");
            match (&mut res.error, &mut res.display) {
                (Some(it), _) => {
                    it.for_model.iter_mut().for_each(|it| it.push_str(&format!("\n{said}")));
                    it.message.push_str(&format!("\n{said}"));
                }
                (None, Some(Display::Text { text })) => text.push_str(&format!("\n{said}")),
                (None, other) => *other = Some(Display::Text { text: said.clone() }),
            }
            res.content.push(Part::text(said));
        }
        res
    }

    async fn send(&self, call: &ServerCall<'_>) -> ToolOutput {
        let args = call.args.as_object().cloned().unwrap_or_default();
        let params = CallToolRequestParams::new(call.tool.to_owned()).with_arguments(args);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let patience = Patience { silence: call.timeout, cancel: call.cancel, show: Some(call.show) };
        let mut line = self.line();
        match self.exchange(&mut line, &request, &patience).await {
            Ok(result) => output::output(call.tool, &result),
            Err(NoAnswer::Cancelled) => ToolOutput::failed(ToolError::new("mcp_tool_error", "The call was cancelled.")),
            Err(NoAnswer::Silent(seconds)) => {
                let why = format!("MCP tool '{}' sent nothing for {seconds} s.", call.tool);
                ToolOutput::failed(ToolError::new("mcp_tool_error", why))
            }
            Err(NoAnswer::Failed(it)) => self.error_output(call.tool, &mut line, &it).await,
            Err(it @ (NoAnswer::Nobody(_) | NoAnswer::Unprovided(_))) => failed_output(call.tool, &it.to_string()),
        }
    }

    async fn error_output(&self, tool: &str, line: &mut ServerLink, error: &ServiceError) -> ToolOutput {
        match error {
            ServiceError::McpError(it) => failed_output(tool, &it.message),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                let cause = if let ServiceError::TransportSend(it) = error { Some(it.error.as_ref()) } else { None };
                let why = line.end_reason().await.or_else(|| cause.map(|it| innermost_cause(it)));
                let why = why.map(|it| format!(": {it}")).unwrap_or_default();
                let why = format!("its server is gone{why}; whether the call took effect is unknown");
                let scopes = cause.and_then(|it| missing_scopes(it));
                if let (Some(login), Some(scopes)) = (&self.login, &scopes) {
                    auth::want_scopes(login, scopes);
                }
                let wants_login = scopes.is_some() && self.login.is_some();
                let refused = (wants_login || cause.is_some_and(|it| is_unauthorized(it))).then(|| self.credential());
                ToolOutput { credential: refused, ..failed_output(tool, &why) }
            }
            other => failed_output(tool, &other.to_string()),
        }
    }

    /// Whose it is by name, its sessions know.
    fn credential(&self) -> Box<Credential> {
        let credential = Credential::new(CredentialOwner::Server, "", self.address.as_deref().map(str::to_owned));
        Box::new(Credential { can_log_in: self.login.is_some(), ..credential })
    }
}

fn failed_output(tool: &str, why: &str) -> ToolOutput {
    let why = text::first_line(why, 1_000);
    ToolOutput::failed(ToolError::new("mcp_tool_error", format!("MCP tool '{tool}' failed: {why}")))
}
