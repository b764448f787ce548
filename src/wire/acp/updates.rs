//! ACP `session/update`: facts as updates for the client, live and in replay.

use std::collections::{BTreeMap, BTreeSet};

use agent_client_protocol_schema::v1::{
    ConfigOptionUpdate, ContentChunk, CurrentModeUpdate, Meta, Plan, SessionNotification, SessionUpdate, ToolCall,
    ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::acp::{
    air::{background_task::BackgroundTask, patches::patch_update},
    content,
    drafts::session_metadata::title_info,
    initialize::{AcpVersion, ClientFeatures},
    meta::messages::{CallMeta, OwnCallMeta},
    options::{self, ChosenOptions, OfferedOptions},
    plans::plan_update,
    session::{iso_time, wire_id},
    terminals,
    update::{
        activities::RecentActivities,
        call_content::{result_content, terminal_result},
        text_chunks::{ChunkKind, TextChunks},
        tool_calls,
    },
    v2,
};
use castor_base::{
    ansi::plain,
    content::{Part, joined_text},
    endings::{CASTOR_ENDED, INTERRUPTED, PENDING_CALLS, interrupted_call},
    event::{
        AgentEvent, COMPACTION, DISCARDS, EXPANSION, EventKind, NOTICE, STOPPED, Speaker, Status, ToolDisplay,
        ToolProgress,
    },
    ids::{CallId, MessageId, SessionId},
    log::Fact,
    money::Money,
    path::AbsPath,
    peer_agent::REPORTED_CALL,
    terminal::Screen,
    text,
    tool::{Display, ToolError, UNASKED},
};

/// Most live output of a call that an update repeats, in bytes: content replaces, so each update carries it all.
const MAX_LIVE: usize = 16 * 1024;

/// The client's view of one session, as far as the next update depends on it.
#[derive(Debug)]
pub struct SessionView {
    pub(super) session: SessionId,
    pub(super) profile: ClientProfile,
    pub(super) chosen: ChosenOptions,
    pub(super) chunks: TextChunks,
    /// Of a sub-agent: what of it is shown.
    pub(super) child: Option<ChildFilter>,
    pub(super) calls: BTreeMap<CallId, CallView>,
    /// A compaction under way.
    pub(super) compacting: Option<String>,
    /// Tokens of the last answer to the conversation, and what the session cost.
    pub(super) context_usage: Option<(u64, Option<Money>)>,
    /// Why the prompt at hand fails.
    pub(super) failure: Option<Status>,
    /// Commands that go on after their calls.
    pub(super) tasks: Vec<BackgroundTask>,
    /// The last message that was shown again.
    pub(super) replayed: Option<MessageId>,
}

/// What is shown of a sub-agent, in the session that the client knows.
#[derive(Debug)]
pub(super) struct ChildFilter {
    pub(super) agent: String,
    /// Calls that the client knows, as it was asked about them.
    pub(super) asked: BTreeSet<CallId>,
}

/// The way in which this client shows things.
#[derive(Clone, Debug, Default)]
pub struct ClientProfile {
    pub offer: OfferedOptions,
    pub features: ClientFeatures,
}

/// A call that the client knows and that has not ended.
#[derive(Debug, Default)]
pub(super) struct CallView {
    pub(super) printed: String,
    /// Of the sub-agent that it started.
    activities: RecentActivities,
    pub(super) proposed: Option<Display>,
    /// As it was told, whole.
    pub(super) call: Option<ToolCall>,
    /// The client's terminal that shows its output.
    pub(super) screen: Option<Screen>,
}

impl CallView {
    /// What it would do, and what it printed.
    fn so_far(&self) -> (Option<&Display>, &str) {
        (self.proposed.as_ref(), &self.printed)
    }

    fn print(&mut self, text: &str) {
        self.printed.push_str(&plain(text).0);
        if self.printed.len() > MAX_LIVE {
            self.printed = text::tail(&self.printed, MAX_LIVE).to_owned();
        }
    }

    fn describe(&mut self, display: &ToolDisplay) {
        if let Some(call) = &mut self.call {
            call.title = tool_calls::title(display.kind, &display.title);
            call.kind = tool_calls::kind(display.kind);
            call.locations = tool_calls::locations(&display.locations);
        }
    }

    /// The id of the terminal that shows its output.
    fn terminal<'a>(&'a self, id: &'a CallId) -> Option<&'a str> {
        self.screen.as_ref().map(|it| match it {
            Screen::Client { terminal } => terminal.as_str(),
            Screen::Drawn { .. } => id.as_str(),
        })
    }
}

/// How a call ended.
struct CallEnd {
    completed: bool,
    is_cancelled: bool,
    content: Vec<ToolCallContent>,
    raw_output: Option<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Playback {
    Live,
    Replay,
}

/// Notices are of their moment, and what a typed command stands for is the model's.
fn is_unseen_note(event: &AgentEvent, way: Playback) -> bool {
    way == Playback::Replay || event.meta.contains_key(EXPANSION)
}

impl SessionView {
    /// `chosen`: as the client knows it, from the response that this view follows.
    pub fn new(session: SessionId, profile: ClientProfile, chosen: ChosenOptions) -> Self {
        let chunks = TextChunks::new(&session, profile.features.version);
        let (calls, child, tasks) = (BTreeMap::new(), None, Vec::new());
        let (compacting, context_usage, failure, replayed) = (None, None, None, None);
        Self { session, profile, chosen, chunks, child, calls, compacting, context_usage, failure, tasks, replayed }
    }

    /// Other models may be on offer now.
    pub fn set_offer(&mut self, offer: OfferedOptions) {
        self.profile.offer = offer;
    }

    /// Appends what the client should be shown of a fact, a line each.
    pub fn show(&mut self, fact: &Fact, lines: &mut Vec<u8>) {
        match self.child {
            Some(_) => self.show_of_child(fact, Playback::Live, lines),
            None => self.push_fact(fact, Playback::Live, lines),
        }
    }

    pub(super) fn push_fact(&mut self, fact: &Fact, way: Playback, lines: &mut Vec<u8>) {
        match fact {
            Fact::Event { event } if self.is_v2() && self.show_event_v2(event, way, lines) => (),
            Fact::Event { event } => self.event(event, way, lines),
            Fact::Mode { mode } if way == Playback::Live => {
                self.chosen.mode = *mode;
                self.push_update(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode.as_str())), lines);
                self.show_options(lines);
            }
            _ if way == Playback::Live && self.chosen.apply_fact(fact) => {
                self.show_options(lines);
                if let Fact::Model { window: size @ 1.., .. } = fact {
                    self.push_usage(*size, lines);
                }
            }
            _ => (),
        }
    }

    pub fn show_options(&self, lines: &mut Vec<u8>) {
        let list = options::config_options(&self.profile.offer, &self.chosen);
        self.push_update(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(list)), lines);
    }

    fn event(&mut self, event: &AgentEvent, way: Playback, lines: &mut Vec<u8>) {
        match &event.kind {
            EventKind::AgentStart {} if way == Playback::Replay => self.interrupt(CASTOR_ENDED, lines),
            // They have their ends with the next prompt.
            EventKind::AgentEnd { data: Some(it), .. } if it.get(PENDING_CALLS).is_some() => self.calls.clear(),
            // Who shows notices can tell it from the answer.
            EventKind::Message { content, .. }
                if event.meta.contains_key(STOPPED) && self.profile.features.notices && way == Playback::Live =>
            {
                self.notice(&event.id, &joined_text(content), None, lines);
            }
            // The client shows a live prompt itself.
            EventKind::Message { role: Speaker::User, .. } if way == Playback::Live => (),
            EventKind::Message { role: Speaker::Developer, .. } if is_unseen_note(event, way) => (),
            EventKind::Message { role, message_id, content, cuts } => {
                self.message(*role, message_id, content, cuts, lines);
            }
            EventKind::ToolRequest { request_id, name, args, display, .. } => {
                self.tool_call(request_id, name, args, display, lines);
            }
            EventKind::ToolUpdate { request_id, update } => self.progress(request_id, update, way, lines),
            EventKind::ToolResponse { request_id, data, .. } => {
                // A call that was interrupted at the start of the next turn, or taken away by a rewind, has its end.
                let has_end = interrupted_call(&event.kind).is_some() && !self.calls.contains_key(request_id);
                let title = self.live_title(request_id, way);
                if way == Playback::Live || !has_end {
                    self.show_result(request_id, &event.kind, way, lines);
                }
                title.into_iter().for_each(|it| self.begin_task(request_id, &it, data, lines));
            }
            EventKind::SessionUpdate { title: Some(title), .. } => {
                let info = title_info(Some(title)).updated_at(iso_time(event.timestamp));
                self.push_update(SessionUpdate::SessionInfoUpdate(info), lines);
            }
            EventKind::Usage { .. } if way == Playback::Live => {
                self.take_usage(&event.kind).into_iter().for_each(|it| self.push_usage(it, lines));
            }
            EventKind::Error { message, fatal: false, .. } if way == Playback::Live => {
                let ids =
                    event.meta.get(DISCARDS).map(|it| Map::from_iter([("castor".to_owned(), json!({ DISCARDS: it }))]));
                self.notice(&event.id, message, ids, lines)
            }
            EventKind::Error { status, .. } if way == Playback::Live => self.failure = Some(*status),
            EventKind::Custom { kind, data } if kind == NOTICE && way == Playback::Live => {
                let text = data.get("text").and_then(Value::as_str).unwrap_or_default();
                self.notice(&event.id, text, None, lines);
            }
            EventKind::Custom { kind, data } if kind == COMPACTION => match way {
                Playback::Live => self.compaction(&event.id, data, lines),
                Playback::Replay => self.past_compaction(data, lines),
            },
            EventKind::Custom { kind, data } if kind == REPORTED_CALL => self.reported_call(data, lines),
            EventKind::Custom { kind, data } if kind == "plan" => {
                if let Ok(plan) = serde_json::from_value::<Plan>(data.clone()) {
                    self.push_update(plan_update(plan, self.profile.features.drafts.plans), lines);
                }
            }
            _ => (),
        }
    }

    fn show_result(&mut self, id: &CallId, response: &EventKind, way: Playback, lines: &mut Vec<u8>) {
        let EventKind::ToolResponse { content, display, summary, error, data, .. } = response else { return };
        let shown = self.calls.remove(id).unwrap_or_default();
        let mut content = match shown.terminal(id) {
            Some(terminal) => terminal_result(terminal, summary.as_deref(), error.as_ref()),
            None => result_content(content, display.as_ref(), summary.as_deref(), error.as_ref(), shown.so_far()),
        };
        // Of an edit that was made otherwise than it was asked for.
        content.extend(data.get("editNote").and_then(Value::as_str).map(tool_calls::text_content));
        let is_cancelled = error.as_ref().is_some_and(|it| it.kind == "cancelled");
        let raw_output = tool_calls::limit_raw(data);
        let end = CallEnd { completed: error.is_none(), is_cancelled, content, raw_output };
        let meta = match shown.screen {
            Some(Screen::Drawn { .. }) => Some(terminals::exit_meta(id, data)),
            _ => match error {
                Some(it) => (it.kind == UNASKED).then(unasked_meta),
                None => self.background_mark(data).filter(|_| way == Playback::Live),
            },
        };
        self.end_call(id, end, meta, lines);
    }

    fn message(&mut self, role: Speaker, id: &MessageId, parts: &[Part], cuts: &[u32], lines: &mut Vec<u8>) {
        if role == Speaker::Developer {
            return self.notice(id.as_str(), &joined_text(parts), None, lines);
        }
        for part in parts {
            match (role, part) {
                (Speaker::Agent, Part::Text { text, .. }) => {
                    self.chunks.write(ChunkKind::Message, id, text, cuts, lines);
                }
                (Speaker::Agent, Part::Thought { thought, .. }) => {
                    self.chunks.write(ChunkKind::Thought, id, thought, cuts, lines);
                }
                (Speaker::User, it) => {
                    let chunk = ContentChunk::new(content::block(it)).message_id(id.as_str());
                    self.push_update(SessionUpdate::UserMessageChunk(chunk), lines);
                }
                (_, it) => {
                    let chunk = ContentChunk::new(content::block(it)).message_id(id.as_str());
                    self.push_update(SessionUpdate::AgentMessageChunk(chunk), lines);
                }
            }
        }
    }

    fn tool_call(&mut self, id: &CallId, name: &str, args: &Value, display: &ToolDisplay, lines: &mut Vec<u8>) {
        let call = ToolCall::new(id.as_str().to_owned(), tool_calls::title(display.kind, &display.title))
            .name(name.to_owned())
            .meta(tool_name_meta(name))
            .kind(tool_calls::kind(display.kind))
            .status(ToolCallStatus::Pending)
            .locations(tool_calls::locations(&display.locations))
            .raw_input(tool_calls::limit_raw(args));
        self.calls.insert(id.clone(), CallView { call: Some(call.clone()), ..CallView::default() });
        self.push_update(SessionUpdate::ToolCall(call), lines);
    }

    fn progress(&mut self, id: &CallId, update: &ToolProgress, way: Playback, lines: &mut Vec<u8>) {
        let is_gone = way == Playback::Replay && !v2::keeps_terminal(self.profile.features, update);
        let shown = self.calls.entry(id.clone()).or_default();
        let (fields, mut meta) = (ToolCallUpdateFields::new(), None);
        let fields = match update {
            ToolProgress::Proposed { display } => {
                shown.proposed = Some(display.clone());
                fields.status(ToolCallStatus::Pending).content(tool_calls::question_content(display))
            }
            ToolProgress::Described { display } | ToolProgress::Started { display: Some(display) } => {
                shown.describe(display);
                let is_known = matches!(update, ToolProgress::Described { .. });
                let status = if is_known { ToolCallStatus::Pending } else { ToolCallStatus::InProgress };
                with_display(fields, display).status(status)
            }
            ToolProgress::Started { display: None } | ToolProgress::Resumed => {
                fields.status(ToolCallStatus::InProgress)
            }
            ToolProgress::Attached { .. } if is_gone => return,
            ToolProgress::Attached { screen } => {
                let before = shown.screen.replace(screen.clone());
                match screen {
                    Screen::Client { terminal } => {
                        fields.status(ToolCallStatus::InProgress).content(vec![terminals::terminal_content(terminal)])
                    }
                    Screen::Drawn { cwd } => {
                        let is_drawn = matches!(before, Some(Screen::Drawn { .. }));
                        let call = shown.call.clone().filter(|_| !is_drawn).map(|it| drawn_call(it, id, cwd));
                        call.into_iter().for_each(|it| self.push_update(SessionUpdate::ToolCall(it), lines));
                        return;
                    }
                }
            }
            ToolProgress::Waiting => fields.status(ToolCallStatus::Pending),
            ToolProgress::Activity { activity } => {
                let text = shown.activities.push(activity);
                fields.status(ToolCallStatus::InProgress).content(vec![tool_calls::text_content(&text)])
            }
            ToolProgress::Printed { text } if matches!(shown.screen, Some(Screen::Drawn { .. })) => {
                meta = Some(terminals::output_meta(id, text));
                fields.status(ToolCallStatus::InProgress)
            }
            ToolProgress::Printed { text } => {
                shown.print(text);
                let fields = fields.status(ToolCallStatus::InProgress);
                if self.profile.features.output_deltas {
                    meta = Some(terminals::output_meta(id, &plain(text).0));
                    fields
                } else {
                    fields.content(vec![tool_calls::output_content(&shown.printed)])
                }
            }
        };
        // In replay only what a call is and how it ended matters; and what castor's own terminals show.
        let is_known = matches!(update, ToolProgress::Described { .. } | ToolProgress::Started { .. });
        if way == Playback::Live || is_known || self.is_v2() && meta.is_some() {
            let update = ToolCallUpdate::new(id.as_str().to_owned(), fields).meta(meta);
            self.push_update(SessionUpdate::ToolCallUpdate(update), lines);
        }
    }

    /// Calls that the client saw no end of fail.
    pub fn interrupt(&mut self, why: &str, lines: &mut Vec<u8>) {
        self.interrupt_compaction(why, lines);
        if let Some(child) = &self.child {
            self.calls.retain(|it, _| child.asked.contains(it));
        }
        let error = ToolError::new(INTERRUPTED, why);
        for (id, shown) in std::mem::take(&mut self.calls) {
            let content = match shown.terminal(&id) {
                Some(terminal) => terminal_result(terminal, None, Some(&error)),
                None => result_content(&[], None, None, Some(&error), shown.so_far()),
            };
            let drawn = matches!(shown.screen, Some(Screen::Drawn { .. }));
            let meta = drawn.then(|| terminals::exit_meta(&id, &Value::Null));
            self.end_call(
                &id,
                CallEnd { completed: false, is_cancelled: false, content, raw_output: None },
                meta,
                lines,
            );
        }
    }

    fn end_call(&self, id: &CallId, end: CallEnd, meta: Option<Meta>, lines: &mut Vec<u8>) {
        let CallEnd { completed, is_cancelled, content, raw_output } = end;
        let status = if completed { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        let fields = ToolCallUpdateFields::new().status(status).content(content).raw_output(raw_output);
        let update = ToolCallUpdate::new(id.as_str().to_owned(), fields).meta(meta);
        match is_cancelled && self.is_v2() {
            true => v2::updates::push_cancelled(&self.session, update, lines),
            false => self.push_update(SessionUpdate::ToolCallUpdate(update), lines),
        }
    }

    pub(super) fn is_v2(&self) -> bool {
        self.profile.features.version == AcpVersion::V2
    }

    pub(super) fn push_update(&self, update: SessionUpdate, lines: &mut Vec<u8>) {
        if self.is_v2() {
            return v2::updates::push(&self.session, update, lines);
        }
        let update = if self.profile.features.air.diff_patch { patch_update(update) } else { update };
        notification("session/update", &SessionNotification::new(wire_id(&self.session), update), lines);
    }
}

/// Appends a notification as one line.
pub fn notification<T: Serialize>(method: &str, params: &T, lines: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Envelope<'a, T> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a T,
    }
    let start = lines.len();
    match serde_json::to_writer(&mut *lines, &Envelope { jsonrpc: "2.0", method, params }) {
        Ok(()) => lines.push(b'\n'),
        Err(_) => lines.truncate(start),
    }
}

fn unasked_meta() -> Map<String, Value> {
    CallMeta { castor: Some(OwnCallMeta { unasked: Some(true), ..OwnCallMeta::default() }), ..CallMeta::default() }
        .into_map()
}

/// The name once more, where clients look that are older than the field for it.
fn tool_name_meta(tool: &str) -> Map<String, Value> {
    CallMeta { tool_name: Some(tool.to_owned()), ..CallMeta::default() }.into_map()
}

fn with_display(fields: ToolCallUpdateFields, display: &ToolDisplay) -> ToolCallUpdateFields {
    fields
        .title(tool_calls::title(display.kind, &display.title))
        .kind(tool_calls::kind(display.kind))
        .locations(tool_calls::locations(&display.locations))
}

/// The call again, whole and with a terminal: only a `tool_call` can begin one.
pub(super) fn drawn_call(call: ToolCall, id: &CallId, cwd: &AbsPath) -> ToolCall {
    call.status(ToolCallStatus::InProgress)
        .content(vec![terminals::terminal_content(id.as_str())])
        .meta(terminals::info_meta(id, cwd))
}
