//! castor under the official Rust SDK as an independent client. `CASTOR_BIN` names the binary.

#![cfg(test)]
#![allow(clippy::disallowed_methods)]

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use agent_client_protocol::{
    AcpAgent, AcpAgentConfig, Agent, Client, Error, on_receive_notification, on_receive_request,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            CancelNotification, ClientCapabilities, ContentBlock, Implementation, InitializeRequest,
            ListSessionsRequest, LoadSessionRequest, NewSessionRequest, PermissionOptionKind, PromptRequest,
            RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
            SessionId, SessionNotification, SessionUpdate, StopReason, TextContent, ToolCallStatus,
        },
    },
};
use futures::{StreamExt, channel::mpsc::UnboundedReceiver, channel::mpsc::unbounded, executor::block_on};
use serde_json::{Value, json};

/// A guard against hanging, not a measurement.
const WATCHDOG: Duration = Duration::from_secs(60);

/// A home, a workspace and the answers of a scripted model.
struct Sandbox(tempfile::TempDir);

impl Sandbox {
    fn new(answers: &[Value]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "ws"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let res = Self(dir);
        res.script(answers);
        res
    }

    /// Each answer is the parts of one chunk or more.
    fn script(&self, answers: &[Value]) {
        let lines = answers.iter().map(|parts| {
            let chunks =
                parts.as_array().unwrap().iter().map(|it| json!({"candidates": [{"content": {"parts": [it]}}]}));
            let mut chunks: Vec<Value> = chunks.collect();
            chunks.last_mut().unwrap()["candidates"][0]["finishReason"] = json!("STOP");
            format!("{}\n", json!({"method": "generateContentStream", "response": chunks}))
        });
        fs::write(self.0.path().join("script.jsonl"), lines.collect::<String>()).unwrap();
    }

    fn workspace(&self) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap().join("ws")
    }

    fn agent(&self) -> AcpAgent {
        let bin = std::env::var_os("CASTOR_BIN").expect("CASTOR_BIN names the castor to test");
        let home = self.0.path().join("home");
        let config = AcpAgentConfig::new(bin)
            .args(["acp".to_owned(), "--fake-responses".to_owned()])
            .arg(self.0.path().join("script.jsonl").display().to_string())
            .env("HOME", home.display().to_string())
            .env("CASTOR_HOME", home.join(".castor").display().to_string());
        AcpAgent::new(config)
    }
}

/// What a test does with a connection; updates arrive in a channel.
struct Editor {
    cx: ConnectionTo<Agent>,
    updates: UnboundedReceiver<SessionNotification>,
    questions: Arc<Mutex<Vec<RequestPermissionRequest>>>,
}

impl Editor {
    async fn initialize(&self) -> Result<(), Error> {
        let request = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(ClientCapabilities::new())
            .client_info(Implementation::new("rust-sdk", "1"));
        let response = self.cx.send_request(request).block_task().await?;
        assert_eq!(response.protocol_version, ProtocolVersion::V1);
        assert!(response.agent_capabilities.load_session);
        assert_eq!(response.agent_info.unwrap().name, "castor");
        Ok(())
    }

    async fn open(&self, workspace: PathBuf) -> Result<SessionId, Error> {
        self.initialize().await?;
        Ok(self.cx.send_request(NewSessionRequest::new(workspace)).block_task().await?.session_id)
    }

    async fn prompt(&self, session: &SessionId, text: &str) -> Result<StopReason, Error> {
        let blocks = vec![ContentBlock::Text(TextContent::new(text))];
        let request = PromptRequest::new(session.clone(), blocks);
        Ok(self.cx.send_request(request).block_task().await?.stop_reason)
    }

    /// What came until now: an answer is handed out after the updates before it.
    fn seen(&mut self) -> Vec<SessionUpdate> {
        std::iter::from_fn(|| self.updates.try_recv().ok()).map(|it| it.update).collect()
    }
}

/// Runs `test` against a castor of its own, whose questions are answered with an option of the kind `answer`.
fn with_editor<T: Send + 'static>(
    sandbox: &Sandbox,
    answer: PermissionOptionKind,
    test: impl AsyncFnOnce(Editor) -> Result<T, Error> + Send + 'static,
) -> T {
    let (agent, questions) = (sandbox.agent(), Arc::new(Mutex::new(Vec::new())));
    let (sender, updates) = unbounded();
    let asked = questions.clone();
    let client = Client
        .v1()
        .name("rust-sdk")
        .on_receive_notification(
            async move |it: SessionNotification, _cx| {
                let _ = sender.unbounded_send(it);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _cx| {
                let option = request.options.iter().find(|it| it.kind == answer).expect("no such option");
                let option = SelectedPermissionOutcome::new(option.option_id.clone());
                asked.lock().unwrap().push(request);
                responder.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Selected(option)))
            },
            on_receive_request!(),
        );
    let main = async move |cx: ConnectionTo<Agent>| test(Editor { cx, updates, questions }).await;
    guarded(move || block_on(client.connect_with(agent, main)))
}

fn guarded<T: Send + 'static>(test: impl FnOnce() -> Result<T, Error> + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || done.send(test()));
    wait.recv_timeout(WATCHDOG).expect("it hangs or panicked, see above").expect("the SDK found something wrong")
}

/// The texts of the agent's messages.
fn texts(updates: &[SessionUpdate]) -> Vec<&str> {
    let chunks = updates.iter().filter_map(|it| match it {
        SessionUpdate::AgentMessageChunk(it) => Some(&it.content),
        _ => None,
    });
    let texts = chunks.filter_map(|it| match it {
        ContentBlock::Text(it) => Some(it.text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The statuses that the one call of a turn went through.
fn statuses(updates: &[SessionUpdate]) -> Vec<ToolCallStatus> {
    let status = |it: &SessionUpdate| match it {
        SessionUpdate::ToolCall(it) => Some(it.status),
        SessionUpdate::ToolCallUpdate(it) => it.fields.status,
        _ => None,
    };
    updates.iter().filter_map(status).collect()
}

fn shell(command: &str) -> Value {
    json!([{"functionCall": {"name": "run_shell_command", "args": {"command": command}}}])
}

#[test]
fn a_streamed_answer() {
    let sandbox = Sandbox::new(&[json!([{"text": "Hel"}, {"text": "lo."}])]);
    let workspace = sandbox.workspace();
    with_editor(&sandbox, PermissionOptionKind::AllowOnce, async move |mut it| {
        let session = it.open(workspace).await?;
        assert_eq!(it.prompt(&session, "hi").await?, StopReason::EndTurn);
        assert_eq!(texts(&it.seen()), ["Hel", "lo."]);
        Ok(())
    });
}

/// The SDK's own session keeps its updates to itself.
#[test]
fn the_sdks_own_session() {
    let sandbox = Sandbox::new(&[json!([{"text": "Hel"}, {"text": "lo."}])]);
    let (agent, workspace) = (sandbox.agent(), sandbox.workspace());
    let said = guarded(move || {
        let main = async move |cx: ConnectionTo<Agent>| {
            cx.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            let mut session = cx.build_session(workspace).block_task().start_session().await?.session;
            session.send_prompt("hi")?;
            session.read_to_string().await
        };
        block_on(Client.v1().connect_with(agent, main))
    });
    assert_eq!(said, "Hello.");
}

#[test]
fn permission_allowed_and_rejected() {
    let cases = [
        (PermissionOptionKind::AllowOnce, ToolCallStatus::Completed, true),
        (PermissionOptionKind::RejectOnce, ToolCallStatus::Failed, false),
    ];
    for (kind, last, made) in cases {
        let sandbox = Sandbox::new(&[shell("touch made"), json!([{"text": "Done."}])]);
        let workspace = sandbox.workspace();
        let file = workspace.join("made");
        with_editor(&sandbox, kind, async move |mut it| {
            let session = it.open(workspace).await?;
            assert_eq!(it.prompt(&session, "touch").await?, StopReason::EndTurn);
            let updates = it.seen();
            assert_eq!(texts(&updates), ["Done."]);
            assert_eq!(statuses(&updates).last(), Some(&last));
            let questions = it.questions.lock().unwrap();
            assert_eq!(questions.len(), 1);
            assert_eq!(questions[0].tool_call.fields.title.as_deref(), Some("touch made"));
            Ok(())
        });
        assert_eq!(file.exists(), made);
    }
}

#[test]
fn cancel() {
    let sandbox = Sandbox::new(&[shell("touch made; sleep 3333"), json!([{"text": "Next."}])]);
    let workspace = sandbox.workspace();
    with_editor(&sandbox, PermissionOptionKind::AllowOnce, async move |mut it| {
        let session = it.open(workspace).await?;
        let blocks = vec![ContentBlock::Text(TextContent::new("wait"))];
        let answer = it.cx.send_request(PromptRequest::new(session.clone(), blocks));
        let running = |it: &SessionUpdate| statuses(std::slice::from_ref(it)).contains(&ToolCallStatus::InProgress);
        while !running(&it.updates.next().await.expect("the connection ended").update) {}
        it.cx.send_notification(CancelNotification::new(session.clone()))?;
        assert_eq!(answer.block_task().await?.stop_reason, StopReason::Cancelled);
        assert_eq!(statuses(&it.seen()).last(), Some(&ToolCallStatus::Failed));
        assert_eq!(it.prompt(&session, "next").await?, StopReason::EndTurn);
        assert_eq!(texts(&it.seen()), ["Next."]);
        Ok(())
    });
}

#[test]
fn list_and_load() {
    let sandbox = Sandbox::new(&[json!([{"text": "Once."}])]);
    let workspace = sandbox.workspace();
    let cwd = workspace.clone();
    let session = with_editor(&sandbox, PermissionOptionKind::AllowOnce, async move |it| {
        let session = it.open(cwd).await?;
        it.prompt(&session, "remember me").await?;
        Ok(session)
    });
    sandbox.script(&[json!([{"text": "Twice."}])]);
    with_editor(&sandbox, PermissionOptionKind::AllowOnce, async move |mut it| {
        it.initialize().await?;
        let listed = it.cx.send_request(ListSessionsRequest::new()).block_task().await?.sessions;
        assert_eq!(listed.len(), 1);
        assert_eq!((&listed[0].session_id, listed[0].title.as_deref()), (&session, Some("remember me")));
        it.cx.send_request(LoadSessionRequest::new(session.clone(), workspace)).block_task().await?;
        let replayed = it.seen();
        assert!(matches!(replayed.first(), Some(SessionUpdate::UserMessageChunk(_))), "{replayed:?}");
        assert_eq!(texts(&replayed), ["Once."]);
        assert_eq!(it.prompt(&session, "again").await?, StopReason::EndTurn);
        assert_eq!(texts(&it.seen()), ["Twice."]);
        Ok(())
    });
}

#[test]
fn errors_are_errors() {
    let sandbox = Sandbox::new(&[json!([{"text": "Once."}])]);
    let workspace = sandbox.workspace();
    with_editor(&sandbox, PermissionOptionKind::AllowOnce, async move |it| {
        it.initialize().await?;
        let nowhere = it.prompt(&SessionId::new("no-such"), "hi").await.unwrap_err();
        assert!(nowhere.message.contains("not found"), "{nowhere:?}");
        let load = LoadSessionRequest::new("no-such", workspace.clone());
        let nowhere = it.cx.send_request(load).block_task().await.unwrap_err();
        assert!(nowhere.message.contains("not found"), "{nowhere:?}");
        let session = it.cx.send_request(NewSessionRequest::new(workspace)).block_task().await?.session_id;
        assert_eq!(it.prompt(&session, "hi").await?, StopReason::EndTurn);
        let exhausted = it.prompt(&session, "more").await.unwrap_err();
        assert!(exhausted.data.is_some(), "{exhausted:?}");
        Ok(())
    });
}
