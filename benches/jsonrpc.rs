//! What a message costs in castor's own JSON-RPC and in jsonrpsee: medians and their ratio, printed one a line.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

mod timing;

use std::{fmt::Write as _, hint::black_box};

use castor_agent::server::method_names;
use castor_models::acp_agent::connection::Peer;
use castor_wire::jsonrpc::{
    frame::{Frame, Framer},
    message::{self, Message},
    write,
};
use jsonrpsee::{
    Extensions, RpcModule,
    types::{Notification, Params, Request, Response},
};
use serde_json::{Value, json, value::RawValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Messages of one measurement.
const N: usize = 1_000;
const TIMES: usize = 101;
/// As large as a pipe of Linux.
const BUFFER: usize = 64 << 10;

fn main() {
    println!("{:>10}  {:>10}  {:>11}", "castor", "jsonrpsee", "ratio");
    let (lines, calls, update) = (client_lines(), calls(), update());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let module = module();
    compare("read a line of a client, of any kind", || own_reading(&lines), || its_reading(&lines));
    let its = || runtime.block_on(its_calls(&module, &calls));
    compare("read a call, find its method, and answer", || own_calls(&calls), its);
    compare("write a session/update of 230 bytes", || _ = own_writing(&update), || _ = its_writing(&update));
    let own = || runtime.block_on(own_sending(&update));
    compare("the same, to a reader; jsonrpsee's client", own, || runtime.block_on(its_sending(&update)));
}

/// Each by turns, so that a busy machine slows both. Prints medians for one message.
fn compare(name: &str, mut own: impl FnMut(), mut its: impl FnMut()) {
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..TIMES {
        all[0].extend(timing::times(1, &mut own));
        all[1].extend(timing::times(1, &mut its));
    }
    all.iter_mut().for_each(|it| it.sort());
    let [own, its] = all.map(|it| timing::percentile(&it, 50) / N as u32);
    println!("{own:>10.2?}  {its:>10.2?}  {:>5.1} times  {name}", its.as_secs_f64() / own.as_secs_f64());
}

/// Of a turn: a prompt, answers to questions, and cancels.
fn client_lines() -> String {
    let mut res = String::new();
    for n in 0..N / 4 {
        let prompt = json!({"jsonrpc": "2.0", "id": n, "method": "session/prompt", "params": {"sessionId": "01a209b9-983f-73b5-a270-902892ed025c",
            "prompt": [{"type": "text", "text": "Find the slow loop in the parser and say what it costs."}]}});
        let answer = json!({"jsonrpc": "2.0", "id": n, "result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}}});
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "01a209b9-983f-73b5-a270-902892ed025c"}});
        let failed = json!({"jsonrpc": "2.0", "id": n, "error": {"code": -32601, "message": "Method not found"}});
        _ = writeln!(res, "{prompt}\n{answer}\n{cancel}\n{failed}");
    }
    res
}

fn own_reading(lines: &str) {
    let mut framer = Framer::default();
    framer.push(lines.as_bytes());
    let mut n = 0;
    while let Some(Frame::Line(line)) = framer.next() {
        n += usize::from(black_box(message::parse(&line)).is_ok());
    }
    assert_eq!(n, N);
}

/// As its servers and clients do: each kind is tried until one fits.
fn its_reading(lines: &str) {
    let is_message = |line: &str| {
        black_box(serde_json::from_str::<Request>(line)).is_ok()
            || black_box(serde_json::from_str::<Notification<Option<&RawValue>>>(line)).is_ok()
            || black_box(serde_json::from_str::<Response<&RawValue>>(line)).is_ok()
    };
    assert_eq!(lines.lines().filter(|it| is_message(it)).count(), N);
}

fn calls() -> String {
    let mut res = String::new();
    for n in 0..N {
        let params = json!({"sessionId": "01a209b9-983f-73b5-a270-902892ed025c", "modeId": "plan"});
        _ = writeln!(res, "{}", json!({"jsonrpc": "2.0", "id": n, "method": "session/set_mode", "params": params}));
    }
    res
}

fn own_calls(calls: &str) {
    let (mut framer, mut out) = (Framer::default(), Vec::new());
    framer.push(calls.as_bytes());
    while let Some(Frame::Line(line)) = framer.next() {
        let Ok(Message::Request { id, method, params }) = message::parse(&line) else { continue };
        let is_known = method_names().any(|it| it == method);
        let params: Value = params.and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default();
        assert!(is_known && black_box(params).is_object());
        write::result(&mut out, &id, &json!({}));
    }
    assert_eq!(n_lines(&out), N);
}

/// All of castor's methods, each of which does nothing.
fn module() -> RpcModule<()> {
    let mut res = RpcModule::new(());
    for name in method_names() {
        let answer = |params: Params<'_>, (): &(), _: &Extensions| {
            assert!(black_box(params.parse::<Value>().unwrap_or_default()).is_object());
            json!({})
        };
        res.register_method(name, answer).unwrap();
    }
    res
}

async fn its_calls(module: &RpcModule<()>, calls: &str) {
    let mut out = Vec::new();
    for line in calls.lines() {
        let (answer, _) = module.raw_json_request(line, 1).await.unwrap();
        out.extend_from_slice(answer.get().as_bytes());
        out.push(b'\n');
    }
    assert_eq!(n_lines(&out), N);
}

fn update() -> Value {
    json!({"sessionId": "01a209b9-983f-73b5-a270-902892ed025c", "update": {"sessionUpdate": "agent_message_chunk",
        "messageId": "md3caac4b6eb8", "content": {"type": "text", "text": "I cannot tell what kind of project this is."}}})
}

fn own_writing(update: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..N {
        write::notification(&mut out, "session/update", update).unwrap();
    }
    black_box(out)
}

fn its_writing(update: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..N {
        serde_json::to_writer(&mut out, &Notification::new("session/update".into(), update)).unwrap();
        out.push(b'\n');
    }
    black_box(out)
}

/// As the loop does: what one of its turns has to say leaves in one write.
async fn own_sending(update: &Value) {
    let (mut near, far) = tokio::io::duplex(BUFFER);
    let send = async { near.write_all(&own_writing(update)).await.unwrap() };
    tokio::join!(send, read_all(far));
}

/// As `castor run` speaks: its client, over a transport of lines.
async fn its_sending(update: &Value) {
    let (near, far) = tokio::io::duplex(BUFFER);
    // The far side never writes, and stays open until all is read.
    let (reader, writer) = tokio::io::split(near);
    let (peer, _requests) = Peer::connect(reader, writer);
    let send = async {
        for _ in 0..N {
            peer.notify("session/update", update.clone()).await;
        }
    };
    tokio::join!(send, read_all(far));
}

async fn read_all(mut far: DuplexStream) {
    let (mut seen, mut buf) = (0, vec![0; BUFFER]);
    while seen < N {
        let n = far.read(&mut buf).await.unwrap();
        seen += n_lines(&buf[..n]);
    }
}

fn n_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|it| **it == b'\n').count()
}
