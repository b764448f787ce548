// The state of a conversation: updates in, items out.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { Conversation } from "../src/model/conversation";
import type { CallItem, EndItem, TextItem, UserItem } from "../src/model/types";

function chunk(kind: string, messageId: string | undefined, text: string): SessionUpdate {
  return { sessionUpdate: kind, messageId, content: { type: "text", text } } as SessionUpdate;
}

function conversation(...updates: SessionUpdate[]): Conversation {
  const it = new Conversation();
  for (const update of updates) {
    it.apply(update);
  }
  return it;
}

function call(id: string, change: object): SessionUpdate {
  return { sessionUpdate: "tool_call_update", toolCallId: id, ...change } as SessionUpdate;
}

const kinds = (it: Conversation): string[] => [...it.items.values()].map((item) => item.kind);

test("pieces of one message are one item, also with a call between them", () => {
  const it = conversation(
    chunk("agent_message_chunk", "m1", "One "),
    call("c1", { title: "ls" }),
    chunk("agent_message_chunk", "m1", "file."),
    chunk("agent_message_chunk", "m2", "Two."),
  );
  assert.deepEqual(kinds(it), ["answer", "call", "answer"]);
  assert.equal((it.items.get("answer:m1") as TextItem).text, "One file.");
});

test("pieces without an id are one item as long as nothing comes between", () => {
  const it = conversation(
    chunk("agent_thought_chunk", undefined, "a"),
    chunk("agent_thought_chunk", undefined, "b"),
    chunk("agent_message_chunk", undefined, "c"),
    chunk("agent_thought_chunk", undefined, "d"),
  );
  assert.deepEqual(kinds(it), ["thought", "answer", "thought"]);
});

test("a call is one item that changes in place, and null changes nothing", () => {
  const it = conversation(
    call("c1", { title: "WriteFile a.md", kind: "edit" }),
    call("c1", { status: "pending", content: [{ type: "diff", path: "/w/a.md", oldText: "a\n", newText: "a\nb\n" }] }),
    call("c1", { status: "completed", title: null, content: null }),
  );
  const item = it.items.get("call:c1") as CallItem;
  assert.deepEqual(kinds(it), ["call"]);
  assert.equal(item.status, "completed");
  assert.equal(item.title, "WriteFile a.md");
  assert.deepEqual([item.diffs[0]?.added, item.diffs[0]?.removed], [1, 0]);
  assert.deepEqual(it.diffsOf("c1"), [{ path: "/w/a.md", before: "a\n", after: "a\nb\n" }]);
});

test("output is appended, and only its end is kept", () => {
  const it = conversation(call("c1", { title: "yes" }));
  const printed = (data: string): SessionUpdate => call("c1", { _meta: { terminal_output: { data } } });
  it.apply(printed("one\r\n"));
  it.apply(printed("two\n"));
  assert.equal(it.call("c1")?.output, "one\ntwo\n");
  it.apply(printed("x".repeat(70_000)));
  assert.equal(it.call("c1")?.output.length, 64 * 1024);
});

test("what a terminal of the editor prints is on the card of its call, without colours", () => {
  const it = conversation(
    call("c1", { title: "ls", content: [{ type: "terminal", terminalId: "t1" }] }),
    call("c2", { title: "pwd" }),
  );
  it.printed("t1", "\u001b[32mgreen\u001b[0m\u001b]0;title\u0007\r\n");
  it.printed("t2", "of another");
  it.apply(call("c2", { content: [{ type: "terminal", terminalId: "t2" }] }));
  it.printed("t2", "!");
  assert.deepEqual([it.call("c1")?.output, it.call("c2")?.output], ["green\n", "of another!"]);
});

test("a patch has what changed since the last one, once", () => {
  const it = conversation(chunk("agent_message_chunk", "m1", "a"), chunk("agent_message_chunk", "m2", "b"));
  assert.equal(it.take().items.length, 2);
  it.apply(chunk("agent_message_chunk", "m1", "c"));
  const patch = it.take();
  assert.deepEqual(
    patch.items.map((item) => item.id),
    ["answer:m1"],
  );
  assert.equal(patch.head, undefined);
  assert.equal(it.take().items.length, 0);
});

test("messages that do not count any more disappear", () => {
  const it = conversation(chunk("agent_message_chunk", "m1", "half of"), {
    sessionUpdate: "notice",
    severity: "warning",
    title: "The answer broke off.",
    _meta: { castor: { discards: ["m1", "unknown"] } },
  } as SessionUpdate);
  assert.deepEqual(kinds(it), ["notice"]);
  assert.deepEqual(it.take().removed, ["answer:m1"]);
});

test("a rewind removes its message and all after it", () => {
  const it = conversation(
    chunk("user_message_chunk", "u1", "first"),
    chunk("agent_message_chunk", "m1", "a"),
    chunk("user_message_chunk", "u2", "second"),
    chunk("agent_message_chunk", "m2", "b"),
  );
  it.cutAt("u2");
  assert.deepEqual(kinds(it), ["user", "answer"]);
  it.cutAt("unknown");
  assert.deepEqual(kinds(it), ["user", "answer"]);
});

test("the newest message of the user gets its id", () => {
  const it = new Conversation();
  it.put({ kind: "user", id: it.newId("user"), text: "a", images: [], chips: [] });
  it.put({ kind: "user", id: it.newId("user"), text: "b", images: [], chips: [] });
  it.nameLastUser("u9");
  const ids = [...it.items.values()].map((item) => (item as UserItem).messageId);
  assert.deepEqual(ids, [undefined, "u9"]);
});

test("after a load each turn that changed files has its end, in its place", () => {
  const it = conversation(
    chunk("user_message_chunk", "u1", "first"),
    chunk("agent_message_chunk", "m1", "a"),
    chunk("user_message_chunk", "u2", "second"),
    chunk("agent_message_chunk", "m2", "b"),
  );
  it.insertEnds(new Map([["u1", [{ path: "/w/a.md", change: "added", added: 1, removed: 0 }]]]));
  assert.deepEqual(kinds(it), ["user", "answer", "end", "user", "answer"]);
  assert.equal((([...it.items.values()][2] as EndItem).messageId ?? "") === "u1", true);
});

test("the changes of a turn go from before its first call to after its last", () => {
  const diff = (oldText: string | null, newText: string): object => ({
    status: "completed",
    content: [{ type: "diff", path: "/w/a.md", oldText, newText }],
  });
  const it = conversation(
    chunk("user_message_chunk", "u1", "go"),
    call("c1", { title: "1", ...diff(null, "a\n") }),
    call("c2", { title: "2", ...diff("a\n", "b\n") }),
    call("c3", { title: "3", ...diff("b\n", "c\n"), status: "failed" }),
  );
  const end = it.addEnd("", "");
  assert.deepEqual(it.turnDiffs(end.id), [{ path: "/w/a.md", before: "", after: "b\n" }]);
});

test("usage and title are in the head; a null takes the title away", () => {
  const it = conversation(
    { sessionUpdate: "usage_update", used: 5, size: 10, cost: { amount: 0.0042, currency: "USD" } },
    { sessionUpdate: "session_info_update", title: "A title" },
  );
  assert.deepEqual([it.head.used, it.head.size, it.head.cost, it.head.title], [5, 10, "$0.0042", "A title"]);
  it.apply({ sessionUpdate: "session_info_update", title: null });
  assert.equal(it.head.title, "");
});

test("1,000 turns are taken in quickly", () => {
  const it = new Conversation();
  const start = performance.now();
  for (let turn = 0; turn < 1000; turn++) {
    it.apply(chunk("user_message_chunk", `u${turn}`, "What is here?"));
    for (let piece = 0; piece < 20; piece++) {
      it.apply(chunk("agent_message_chunk", `m${turn}`, "some words of it "));
    }
    it.take();
  }
  assert.equal(it.items.size, 2000);
  assert.ok(performance.now() - start < 2000);
});

function proposal(): Conversation {
  const content = [{ type: "diff", path: "/w/a.md", oldText: "a\nb\n", newText: "A\nB\n" }];
  return conversation(chunk("user_message_chunk", "m1", "Go."), call("c1", { status: "pending", content }));
}

test("a change that the user edited stays as the user edited it, whatever castor tells of it", () => {
  const it = proposal();
  it.editChange("c1", "/w/a.md", "A\nb\n");
  const content = [{ type: "diff", path: "/w/a.md", oldText: "a\nb\n", newText: "A\nB\n" }];
  it.apply(call("c1", { status: "completed", content }));
  const item = it.items.get("call:c1") as CallItem;
  assert.deepEqual([item.diffs[0]?.added, item.diffs[0]?.removed], [1, 1]);
  assert.deepEqual(it.diffsOf("c1"), [{ path: "/w/a.md", before: "a\nb\n", after: "A\nb\n" }]);
});

test("words said while a turn runs begin none: Review has what was changed before them", () => {
  const it = proposal();
  it.apply(call("c1", { status: "completed" }));
  it.put({ kind: "user", id: "u2", text: "Tabs.", images: [], chips: [], steering: true });
  const end = it.addEnd("", "");
  assert.deepEqual(
    it.turnDiffs(end.id).map((diff) => diff.after),
    ["A\nB\n"],
  );
  it.nameLastUser("m9");
  assert.equal((it.items.get("u2") as UserItem).messageId, undefined);
  assert.equal((it.items.get("user:m1") as UserItem).messageId, "m9");
});
