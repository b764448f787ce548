// Smaller parts: forms, days, completion, options, tools of the editor, errors.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionConfigOption } from "@agentclientprotocol/sdk";
import { bestFits, complete, completionAt, droppedUris, promptBlocks } from "../src/model/compose";
import { byDay, dayLabel } from "../src/model/days";
import { failure } from "../src/model/errors";
import { formFields, readForm } from "../src/model/form";
import { choices, optionViews } from "../src/model/options";
import { answerMcp, readMessage, type ToolSource } from "../src/model/tools";

const FORM = {
  type: "object" as const,
  properties: {
    name: { type: "string", title: "Name", minLength: 2 },
    mail: { type: "string", format: "email" },
    color: { type: "string", oneOf: [{ const: "r", title: "Red" }] },
    count: { type: "integer", minimum: 1, maximum: 3, default: 2 },
    sure: { type: "boolean", default: true },
    many: { type: "array", items: { type: "string", enum: ["a", "b"] }, minItems: 1 },
  },
  required: ["name"],
};

test("a form has its fields, and values get their types", () => {
  const fields = formFields(FORM as never) ?? [];
  assert.deepEqual(
    fields.map((it) => it.kind),
    ["text", "text", "choice", "integer", "boolean", "choices"],
  );
  const good = readForm(fields, { name: "Ada", color: "r", count: "3", sure: false, many: ["a"] });
  assert.deepEqual(good.errors, {});
  assert.deepEqual(good.content, { name: "Ada", color: "r", count: 3, sure: false, many: ["a"] });
});

test("wrong values are named, and nothing is sent of them", () => {
  const fields = formFields(FORM as never) ?? [];
  const bad = readForm(fields, { name: "A", mail: "no", count: "1.5", many: [] });
  assert.deepEqual(Object.keys(bad.errors), ["name", "mail", "count"]);
  assert.equal(readForm(fields, { name: "" }).errors.name, "is needed");
  assert.equal(readForm(fields, { name: "Ada", count: "9" }).errors.count, "takes at most 3");
});

test("a form that needs a field of an unknown kind cannot be shown", () => {
  const schema = { type: "object", properties: { a: { type: "_file" } } };
  assert.deepEqual(formFields(schema as never), []);
  assert.equal(formFields({ ...schema, required: ["a"] } as never), undefined);
});

test("sessions stand under their days", () => {
  const now = new Date(2026, 10, 26, 12);
  assert.equal(dayLabel(new Date(2026, 10, 26, 0, 1), now), "Today");
  assert.equal(dayLabel(new Date(2026, 10, 25, 23, 59), now), "Yesterday");
  assert.equal(dayLabel(new Date(2026, 10, 20, 1), now), "This week");
  assert.equal(dayLabel(new Date(2026, 8, 1), now), "2026-09");
  const session = (sessionId: string, updatedAt: string): { sessionId: string; title: string; updatedAt: string } => ({
    sessionId,
    title: sessionId,
    updatedAt,
  });
  const days = byDay(
    [session("a", "2026-11-26T11:00:00"), session("b", "2026-11-26T10:00:00"), session("c", "?")],
    now,
  );
  assert.deepEqual(
    days.map((it) => [it.label, it.sessions.length]),
    [
      ["Today", 2],
      ["Without a date", 1],
    ],
  );
});

test("what is dropped is the editor's own list of addresses, or everybody's", () => {
  const own = "vscode-remote://host:1/w/a.md\r\nuntitled:Untitled-1";
  const of = (data: Record<string, string>): string[] => droppedUris((type) => data[type] ?? "");
  assert.deepEqual(of({ "application/vnd.code.uri-list": own, "text/uri-list": "file:///b" }), [
    "vscode-remote://host:1/w/a.md",
  ]);
  assert.deepEqual(of({ "text/uri-list": "# a list\r\nfile:///w/b.md\r\nhttps://example.com/c\r\n" }), [
    "file:///w/b.md",
  ]);
  assert.deepEqual(of({ "text/plain": "file:///w/b.md" }), []);
});

test("@ and / are completed where they begin a word and a message", () => {
  assert.deepEqual(completionAt("see @src/ma", 11), { kind: "file", query: "src/ma", start: 4 });
  assert.deepEqual(completionAt("/un", 3), { kind: "command", query: "un", start: 0 });
  assert.equal(completionAt("a@b.example", 11), undefined);
  assert.equal(completionAt("/undo 2", 7), undefined);
  assert.deepEqual(complete("see @sr now", 7, { kind: "file", query: "sr", start: 4 }, "x"), {
    text: "see x now",
    caret: 5,
  });
});

test("the best file is the one whose name begins as typed", () => {
  const paths = ["docs/mainly.md", "src/domain.rs", "src/main.rs", "other.md"];
  assert.deepEqual(bestFits(paths, "main", 10), ["src/main.rs", "docs/mainly.md", "src/domain.rs"]);
  assert.equal(bestFits(paths, "", 2).length, 2);
});

test("a prompt is its text, then what was added", () => {
  const blocks = promptBlocks("Explain.", [
    { kind: "file", label: "a.md", path: "/w/a.md", uri: "file:///w/a.md" },
    { kind: "image", label: "p", mimeType: "image/png", data: "AA==" },
  ]);
  assert.deepEqual(
    blocks.map((it) => it.type),
    ["text", "resource_link", "image"],
  );
  assert.deepEqual(promptBlocks("  ", []), []);
});

test("options are lists with the chosen one, also grouped and of two values", () => {
  const options = [
    {
      id: "mode",
      name: "Mode",
      type: "select",
      currentValue: "b",
      options: [
        { value: "a", name: "A" },
        { value: "b", name: "B" },
      ],
    },
    {
      id: "model",
      name: "Model",
      type: "select",
      currentValue: "x",
      options: [{ group: "g", name: "Group", options: [{ value: "x", name: "X" }] }],
    },
    { id: "fast", name: "Fast", type: "boolean", currentValue: true },
  ] as SessionConfigOption[];
  assert.deepEqual(
    optionViews(options).map((it) => it.value),
    ["B", "X", "On"],
  );
  assert.equal(choices(options[1]!)[0]?.group, "Group");
  assert.deepEqual(
    choices(options[2]!).map((it) => it.value),
    [true, false],
  );
});

const source: ToolSource = {
  tools: () => [{ name: "mcp_add", description: "Adds.", inputSchema: { properties: {} } }],
  call: async (_name, args) => {
    if ("bad" in args) {
      throw new Error("It broke.");
    }
    return [JSON.stringify(args)];
  },
};

test("tools of the editor are an MCP server", async () => {
  const ask = (method: string, params: object = {}): Promise<unknown> =>
    answerMcp(readMessage({ serverId: "s", method, params }), source, new AbortController().signal);
  assert.deepEqual(await ask("server/discover"), {
    error: { code: -32601, message: "VS Code has no server/discover." },
  });
  assert.ok("result" in ((await ask("initialize")) as object));
  assert.deepEqual(await ask("tools/list"), {
    result: { tools: [{ name: "mcp_add", description: "Adds.", inputSchema: { properties: {}, type: "object" } }] },
  });
  assert.deepEqual(await ask("tools/call", { name: "mcp_add", arguments: { a: 1 } }), {
    result: { content: [{ type: "text", text: '{"a":1}' }] },
  });
  assert.deepEqual(await ask("tools/call", { name: "mcp_add", arguments: { bad: 1 } }), {
    result: { content: [{ type: "text", text: "It broke." }], isError: true },
  });
  assert.ok("error" in ((await ask("tools/call", { name: "rm" })) as object));
  assert.throws(() => readMessage({ method: "x" }));
});

test("an error says what helps", () => {
  assert.equal(failure({ message: "Sign in first.", code: -32000 }).action?.command, "castor.login");
  assert.equal(failure(Object.assign(new Error("spawn castor ENOENT"), { code: "ENOENT" })).kind, "missing");
  assert.equal(failure({ message: "x", code: -32600, data: { kind: "locked" } }).kind, "locked");
});
