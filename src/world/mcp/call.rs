//! One MCP tool call: progress, result, cancellation and time limit.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{CallToolRequest, CallToolRequestParams, ClientRequest, ProgressNotificationParam, ServerResult},
    service::{PeerRequestOptions, RequestHandle, ServiceError},
};
use serde_json::Value;
use tokio::{
    sync::{broadcast, oneshot::error::RecvError, watch},
    task::spawn_blocking,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    auth::{self, LoginTarget},
    client::Listener,
    connection::ServerLink,
    elicitation_call::ServerAsker,
    error::{is_unauthorized, missing_scopes},
    output,
    output::result_json,
    required_input::{GivenInput, RequiredInput, required_input},
    required_page::required_pages,
    sandbox_findings::PendingFindings,
    subscriptions::Subscriptions,
};
use crate::{
    base::{
        content::Part,
        credential::{Credential, CredentialOwner},
        fs::BoxFuture,
        mcp::McpLink,
        path::AbsPath,
        sandbox::Confinement,
        text,
        tool::{Display, ToolError, ToolOutput},
    },
    world::process::sandbox::{self, Quarantine},
};

/// Progress is shown no more often than this.
const SHOW_EVERY: Duration = Duration::from_millis(200);
/// One report of progress, in characters.
const MAX_PROGRESS: usize = 500;
/// For the model.
const NOT_DONE: &str =
    "the user was sent to a page of the server, and is not done there; make the call again when they are";
/// How often one call is made while the server wants something first.
const MAX_ROUNDS: usize = 8;
/// A server that does not read must not hold up a cancel.
const CANCELLING: Duration = Duration::from_millis(500);

/// A server that answers, or is started again when it is called. Cheap to clone.
#[derive(Clone)]
pub struct Connection {
    line: ServerLink,
    progress: broadcast::Sender<ProgressNotificationParam>,
    /// How many questions of the server are open.
    open_questions: watch::Receiver<usize>,
    process_hold: ProcessHold,
    /// Where a user gets another credential for it.
    address: Option<Arc<str>>,
    /// castor can log in there.
    login: Option<Arc<LoginTarget>>,
    /// Sends the user to pages, and asks for what calls need.
    asking: Option<ServerAsker>,
    /// What it may be told of them.
    roots: Arc<[AbsPath]>,
    /// What was read of it.
    pub(super) subscriptions: Subscriptions,
}

/// The hold on a server's process.
#[derive(Clone, Default)]
pub struct ProcessHold {
    pub confined: Option<Arc<Confinement>>,
    pub(super) findings: PendingFindings,
}

/// One call with its options.
pub struct ServerCall<'a> {
    /// The server's own name for it.
    pub tool: &'a str,
    pub args: &'a Value,
    /// Of silence: progress begins it anew, and so does the end of a question to the user.
    pub timeout: Duration,
    pub cancel: &'a CancellationToken,
    /// Takes live text.
    pub show: &'a Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>,
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
        let ProcessHold { confined: Some(confined), findings: found } = self.process_hold.clone() else {
            return self.send(&call).await;
        };
        let before = match spawn_blocking(move || sandbox::snapshot_config(&confined)).await {
            Ok(Err(why)) => return failed_output(call.tool, &why.to_string()),
            Ok(Ok(it)) => Some(it),
            Err(_) => None,
        };
        let mut res = self.send(&call).await;
        let look =
            move |before: Quarantine| found.take().into_iter().chain(before.findings().in_words("this call")).collect();
        if let Some(before) = before
            && let Ok(said) = spawn_blocking(move || -> Vec<String> { look(before) }).await
            && !said.is_empty()
        {
            let said = said.join("\n");
            match &mut res.display {
                Some(Display::Text { text }) => text.push_str(&format!("\n{said}")),
                other => *other = Some(Display::Text { text: said.clone() }),
            }
            res.content.push(Part::text(said));
        }
        res
    }

    /// A server that needs the user on a page first, or an answer, has not done the call: after that it is made once more.
    async fn send(&self, call: &ServerCall<'_>) -> ToolOutput {
        let (mut given, mut was_on_page) = (GivenInput::default(), false);
        for _ in 0..MAX_ROUNDS {
            let (output, needed) = match self.send_request(call, &given).await {
                Ok(it) => return it,
                Err(it) => it,
            };
            let Some(asking) = &self.asking else { return output };
            let provided = match needed {
                Needed::Pages(_) if was_on_page => Err(NOT_DONE.to_owned()),
                Needed::Pages(pages) => asking.visit(&pages, call.cancel).await.map(|()| was_on_page = true),
                Needed::Input(it) => {
                    asking.provide(it, &self.roots, call.cancel).await.map(|provided| given = provided)
                }
            };
            if let Err(why) = provided {
                return failed_output(call.tool, &why);
            }
            if call.cancel.is_cancelled() {
                return ToolOutput::failed(ToolError::new("mcp_tool_error", "The call was cancelled."));
            }
        }
        failed_output(call.tool, "it wants more input again and again")
    }

    /// # Errors
    /// What comes of it where nobody provides what it needs, and that.
    async fn send_request(
        &self,
        call: &ServerCall<'_>,
        given: &GivenInput,
    ) -> Result<ToolOutput, (ToolOutput, Needed)> {
        // Before the request: a report that comes at once must not be missed.
        let mut reports = self.progress.subscribe();
        let mut asks = self.open_questions.clone();
        let mut line = self.line.clone();
        let peer = match line.peer(call.cancel).await {
            Ok(it) => it,
            Err(why) => return Ok(failed_output(call.tool, &why.to_string())),
        };
        let args = call.args.as_object().cloned().unwrap_or_default();
        let params = given.add_to(CallToolRequestParams::new(call.tool.to_owned()).with_arguments(args));
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let mut handle = match sent {
            Ok(it) => it,
            Err(it) => return Ok(self.error_output(call.tool, &mut line, &it).await),
        };
        let mut deadline = Instant::now() + call.timeout;
        let mut next_show = Instant::now();
        loop {
            // People take the time they need.
            let asks_somebody = *asks.borrow_and_update() > 0;
            tokio::select! {
                biased;
                () = call.cancel.cancelled() => return Ok(cancel(handle, "The call was cancelled.").await),
                answer = &mut handle.rx => {
                    let needed = Needed::of(&answer);
                    let output = self.answer_output(call.tool, &mut line, answer).await;
                    return match needed {
                        Some(it) => Err((output, it)),
                        None => Ok(output),
                    };
                }
                Ok(()) = asks.changed() => deadline = Instant::now() + call.timeout,
                () = sleep_until(deadline), if !asks_somebody => {
                    let why = format!("MCP tool '{}' sent nothing for {} s.", call.tool, call.timeout.as_secs_f64());
                    return Ok(cancel(handle, &why).await);
                }
                Ok(report) = reports.recv() => {
                    if report.progress_token != handle.progress_token {
                        continue;
                    }
                    deadline = Instant::now() + call.timeout;
                    if next_show <= Instant::now() {
                        next_show = Instant::now() + SHOW_EVERY;
                        (call.show)(progress_text(&report)).await;
                    }
                }
            }
        }
    }
}

/// What a server needs before it does a call.
enum Needed {
    Pages(Vec<Value>),
    Input(RequiredInput),
}

type Answer = Result<Result<ServerResult, ServiceError>, RecvError>;

impl Needed {
    fn of(answer: &Answer) -> Option<Self> {
        match answer {
            Ok(Ok(result)) => required_input(&result_json(result)).map(Self::Input),
            Ok(Err(ServiceError::McpError(it))) => required_pages(it).map(Self::Pages),
            _ => None,
        }
    }
}

impl Connection {
    async fn answer_output(&self, tool: &str, line: &mut ServerLink, answer: Answer) -> ToolOutput {
        match answer {
            Ok(Ok(result)) => output::output(tool, &result_json(&result)),
            Ok(Err(error)) => self.error_output(tool, line, &error).await,
            Err(_) => self.error_output(tool, line, &ServiceError::TransportClosed).await,
        }
    }

    async fn error_output(&self, tool: &str, line: &mut ServerLink, error: &ServiceError) -> ToolOutput {
        match error {
            ServiceError::McpError(it) => failed_output(tool, &it.message),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                let why = line.end_reason().await.map(|it| format!(": {it}")).unwrap_or_default();
                let why = format!("its server is gone{why}; whether the call took effect is unknown");
                let cause = if let ServiceError::TransportSend(it) = error { Some(it.error.as_ref()) } else { None };
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

async fn cancel(handle: RequestHandle<RoleClient>, why: &str) -> ToolOutput {
    _ = timeout(CANCELLING, handle.cancel(Some(why.to_owned()))).await;
    ToolOutput::failed(ToolError::new("mcp_tool_error", why))
}

fn failed_output(tool: &str, why: &str) -> ToolOutput {
    let why = text::first_line(why, 1_000);
    ToolOutput::failed(ToolError::new("mcp_tool_error", format!("MCP tool '{tool}' failed: {why}")))
}

fn progress_text(it: &ProgressNotificationParam) -> String {
    let count = match it.total {
        Some(total) => format!("{}/{total}", it.progress),
        None => it.progress.to_string(),
    };
    match it.message.as_deref().map(|it| text::first_line(it, MAX_PROGRESS)) {
        Some(message) if !message.is_empty() => format!("[{count}] {message}\n"),
        _ => format!("[{count}]\n"),
    }
}
