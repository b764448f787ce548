// Changes that the user edited before accepting them: what the editor writes, and what the model is told.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { editedWords, Proposals } from "../src/host/proposals";
import { Conversation } from "../src/model/conversation";
import { sameText, unifiedDiff } from "../src/model/hunks";

const SHOWN = "one\nTWO\nthree\n";
const TEXT = "one\ntwo\nthree\n";

function waiting(status = "in_progress"): { conversation: Conversation; proposals: Proposals } {
  const conversation = new Conversation();
  conversation.apply({ sessionUpdate: "tool_call", toolCallId: "c1", title: "Write", status } as SessionUpdate);
  const proposals = new Proposals();
  proposals.expect({ conversation, callId: "c1", path: "/w/a.md", shown: SHOWN, text: TEXT });
  return { conversation, proposals };
}

const write = (path: string, content: string): { sessionId: string; path: string; content: string } => ({
  sessionId: "s",
  path,
  content,
});

test("the edited text is taken once, also under a file's other name and with other ends of lines", () => {
  const { conversation, proposals } = waiting();
  assert.equal(proposals.take(write("/w/b.md", "something else\n"), conversation), undefined);
  assert.equal(proposals.take(write("/real/a.md", "\ufeffone\r\nTWO\r\nthree\r\n"), conversation)?.text, TEXT);
  assert.equal(proposals.take(write("/w/a.md", SHOWN), conversation), undefined);
});

test("what nobody saw is not written", () => {
  const { conversation, proposals } = waiting();
  assert.throws(
    () => proposals.take(write("/w/a.md", "one\nother\nthree\n"), conversation),
    /not the change that the user saw/,
  );
});

test("a call that is over leaves nothing behind, and a whole change that castor wrote is told", () => {
  const failed = waiting("failed");
  assert.equal(failed.proposals.take(write("/w/a.md", SHOWN), failed.conversation), undefined);
  const { conversation, proposals } = waiting();
  proposals.check();
  conversation.apply({ sessionUpdate: "tool_call_update", toolCallId: "c1", status: "completed" } as SessionUpdate);
  proposals.check();
  const last = [...conversation.items.values()].at(-1);
  assert.match(last?.kind === "notice" ? last.title : "", /without your edits/);
});

test("the model is told the difference, at most 200 lines of it", () => {
  const { conversation } = waiting();
  const words = editedWords({ conversation, callId: "c1", path: "/w/a.md", shown: SHOWN, text: TEXT });
  assert.match(words, /@@ -1,3 \+1,3 @@\n one\n-TWO\n\+two\n three\n```/);
  const many = Array.from({ length: 500 }, (_, at) => `line ${at}`).join("\n");
  assert.equal(unifiedDiff(many, "", 200).split("\n").length, 201);
  assert.ok(sameText("\ufeffa\r\n", "a\n") && !sameText("a\n", "a"));
});
