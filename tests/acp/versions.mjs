// Drives one scripted session with the TypeScript SDK's clients of version 1 and version 2, and compares the end states.
// Usage: node versions.mjs CASTOR SDK_FOLDER
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [castor, sdk] = process.argv.slice(2);
const load = (version) => import(pathToFileURL(join(sdk, `dist/${version}/stable/acp.js`)).href);

const call = (name, args) => ({ functionCall: { name, args } });
const answer = (...parts) => ({
  method: "generateContentStream",
  response: [{ candidates: [{ content: { role: "model", parts }, finishReason: "STOP" }] }],
});
const todos = (first) => [
  { description: "Write", status: first },
  { description: "Run", status: "pending" },
];
const SCRIPT = [
  answer({ text: "I look.", thought: true }, { text: "I write." }, call("write_todos", { todos: todos("in_progress") })),
  answer(call("write_file", { file_path: "a.txt", content: "new\n" })),
  answer(call("run_shell_command", { command: "printf 'one\\n'; exit 3" })),
  answer(call("write_todos", { todos: todos("completed") })),
  answer({ text: "Done." }),
  answer(call("write_file", { file_path: "b.txt", content: "x" })),
  answer({ text: "As you like." }),
];
// The third prompt finds the script at its end: the model fails.
const PROMPTS = [["write", "allow_once"], ["again", "reject_once"], ["fail", "allow_once"]];

// What a user sees at the end, in one form for both versions.
/** The session is free for the next castor once this one is gone. */
async function ended(child) {
  child.stdin.end();
  if (child.exitCode === null) await once(child, "exit");
}

class Screen {
  constructor() {
    Object.assign(this, { messages: [], calls: new Map(), terminals: new Map(), plan: [], options: {}, stops: [] });
  }
  message(role, id, text, isWhole = false) {
    let it = this.messages.find((it) => it.role === role && it.id === id);
    if (!it) this.messages.push((it = { role, id, text: "" }));
    it.text = isWhole ? text : it.text + text;
  }
  call(update) {
    const { toolCallId: id, title, kind, status, name, content, locations } = update;
    const it = this.calls.get(id) ?? {};
    for (const [key, value] of Object.entries({ title, kind, status, name, content, locations })) {
      if (value === null) delete it[key];
      else if (value !== undefined) it[key] = value;
    }
    this.calls.set(id, it);
  }
  terminal(id, change) {
    this.terminals.set(id, { ...(this.terminals.get(id) ?? { output: "" }), ...change });
  }
  setOptions(all, id) {
    this.options = Object.fromEntries(all.map((it) => [it[id], it.currentValue]));
  }
  content(it) {
    if (it.type === "terminal") return { terminal: this.terminals.get(it.terminalId) };
    // Version 2 has no texts of files, but the patch between them.
    if (it.type === "diff") return { diff: it.path ?? it.changes[0].path };
    return { text: it.content.text };
  }
  end() {
    const calls = [...this.calls.values()].map((it) => ({
      ...it,
      // Version 1 has no word for it.
      status: it.status === "cancelled" ? "failed" : it.status,
      locations: (it.locations ?? []).map((it) => it.path),
      content: (it.content ?? []).map((it) => this.content(it)),
    }));
    const messages = this.messages.map(({ role, text }) => ({ role, text })).filter((it) => it.text);
    return { messages, calls, plan: this.plan, options: this.options, stops: this.stops };
  }
}

const text = (it) => it?.text ?? "";

function updateV1(screen, update) {
  const roles = { agent_message_chunk: "agent", agent_thought_chunk: "thought" };
  const { terminal_info: opened, terminal_output: output, terminal_exit: exit } = update._meta ?? {};
  if (opened) screen.terminal(opened.terminal_id, { cwd: opened.cwd });
  if (output) {
    const before = screen.terminals.get(output.terminal_id)?.output ?? "";
    screen.terminal(output.terminal_id, { output: before + output.data });
  }
  if (exit) screen.terminal(exit.terminal_id, { exit: exit.exit_code });
  const kind = update.sessionUpdate;
  if (roles[kind]) screen.message(roles[kind], update.messageId, text(update.content));
  else if (kind === "tool_call") screen.call({ kind: "other", status: "pending", ...update });
  else if (kind === "tool_call_update") screen.call(update);
  else if (kind === "plan") screen.plan = update.entries;
  else if (kind === "config_option_update") screen.setOptions(update.configOptions, "id");
}

function updateV2(screen, update) {
  const roles = { user: "user", agent: "agent", agent_thought: "thought" };
  const kind = update.sessionUpdate;
  const [, role, chunk] = /^(user|agent|agent_thought)(?:_message)?(_chunk)?$/.exec(kind) ?? [];
  if (role && chunk) screen.message(roles[role], update.messageId, text(update.content));
  else if (role) screen.message(roles[role], update.messageId, (update.content ?? []).map(text).join(""), true);
  else if (kind === "tool_call_update") screen.call(update);
  else if (kind === "terminal_update") {
    const { terminalId: id, cwd, exitStatus, output } = update;
    if (output === null) screen.terminal(id, { output: "" });
    if (cwd) screen.terminal(id, { cwd });
    if (exitStatus) screen.terminal(id, { exit: exitStatus.exitCode });
  } else if (kind === "terminal_output_chunk") {
    const data = Buffer.from(update.data, "base64").toString();
    screen.terminal(update.terminalId, { output: screen.terminals.get(update.terminalId).output + data });
  } else if (kind === "plan_update") screen.plan = update.plan.entries;
  else if (kind === "config_option_update") screen.setOptions(update.configOptions, "configId");
}

function start(acp, work) {
  const env = { PATH: process.env.PATH, HOME: join(work, "home"), CASTOR_TRUST_WORKSPACE: "true" };
  const args = ["acp", "--fake-responses", join(work, "script.jsonl")];
  const child = spawn(castor, args, { cwd: join(work, "ws"), env, stdio: ["pipe", "pipe", "inherit"] });
  return { child, stream: acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)) };
}

const pick = (params, kind) => {
  const option = params.options.find((it) => it.kind === kind);
  return { outcome: { outcome: "selected", optionId: option.optionId } };
};

async function driveV1(work) {
  const acp = await load("v1");
  const screen = new Screen();
  let choice;
  const app = acp
    .client({ name: "versions" })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => pick(params, choice))
    .onNotification(acp.methods.client.session.update, ({ params }) => updateV1(screen, params.update));
  const { child, stream } = start(acp, work);
  await app.connectWith(stream, async (agent) => {
    const M = acp.methods.agent;
    const clientCapabilities = { _meta: { terminal_output: true } };
    await agent.request(M.initialize, { protocolVersion: 1, clientCapabilities });
    const cwd = join(work, "ws");
    const { sessionId, configOptions } = await agent.request(M.session.new, { cwd, mcpServers: [] });
    screen.setOptions(configOptions, "id");
    for (const [words, kind] of PROMPTS) {
      choice = kind;
      screen.message("user", words, words);
      const prompt = [{ type: "text", text: words }];
      const ended = agent.request(M.session.prompt, { sessionId, prompt });
      screen.stops.push(await ended.then((it) => it.stopReason, (error) => `error ${error.code}`));
    }
    const option = { sessionId, configId: "mode", value: "plan" };
    screen.setOptions((await agent.request(M.session.setConfigOption, option)).configOptions, "id");
  });
  await ended(child);
  return screen.end();
}

async function driveV2(work) {
  const acp = await load("v2");
  const screen = new Screen();
  const states = [];
  let choice, idle;
  const app = acp
    .client({ name: "versions" })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => pick(params, choice))
    .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
      updateV2(screen, update);
      if (update.sessionUpdate !== "state_update") return;
      states.push(update.state);
      if (update.state === "idle") idle?.(update);
    });
  const M = acp.methods.agent;
  const info = { name: "versions", version: "1" };
  const cwd = join(work, "ws");
  const { child, stream } = start(acp, work);
  const sessionId = await app.connectWith(stream, async (agent) => {
    const { protocolVersion } = await agent.request(M.initialize, { protocolVersion: 2, info, capabilities: {} });
    if (protocolVersion !== 2) throw new Error(`castor answered version ${protocolVersion}`);
    const { sessionId, configOptions } = await agent.request(M.session.new, { cwd });
    screen.setOptions(configOptions, "configId");
    for (const [words, kind] of PROMPTS) {
      choice = kind;
      const ended = new Promise((resolve) => (idle = resolve));
      const { messageId } = await agent.request(M.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] });
      const { stopReason, error } = await ended;
      if (!screen.messages.some((it) => it.id === messageId)) throw new Error(`no message ${messageId}`);
      screen.stops.push(stopReason === "error" ? `error ${error.code}` : stopReason);
    }
    const option = { sessionId, configId: "mode", type: "id", value: "plan" };
    screen.setOptions((await agent.request(M.session.setConfigOption, option)).configOptions, "configId");
    return sessionId;
  });
  await ended(child);
  const expected = ["running", "requires_action", "running", "requires_action", "running", "idle",
    "running", "requires_action", "running", "idle", "running", "idle"];
  if (!isDeepStrictEqual(states, expected)) throw new Error(`states: ${states.join(" ")}`);
  return { ...screen.end(), sessionId };
}

// The same session in another process: the conversation comes again, as it was.
async function replayV2(work, sessionId) {
  const acp = await load("v2");
  const screen = new Screen();
  const app = acp
    .client({ name: "versions" })
    .onNotification(acp.methods.client.session.update, ({ params }) => updateV2(screen, params.update));
  const { child, stream } = start(acp, work);
  await app.connectWith(stream, async (agent) => {
    const info = { name: "versions", version: "1" };
    await agent.request(acp.methods.agent.initialize, { protocolVersion: 2, info, capabilities: {} });
    const resumed = { sessionId, cwd: join(work, "ws"), replayFrom: { type: "start" } };
    const { configOptions } = await agent.request(acp.methods.agent.session.resume, resumed);
    screen.setOptions(configOptions, "configId");
  });
  await ended(child);
  return screen.end();
}

function compare(what, one, other) {
  if (isDeepStrictEqual(one, other)) return;
  console.log(`${what}:\n${JSON.stringify(one, null, 1)}\n--- and ---\n${JSON.stringify(other, null, 1)}`);
  process.exitCode = 1;
}

async function inFolder(drive) {
  const work = mkdtempSync(join(tmpdir(), "castor-versions-"));
  try {
    ["home", "ws"].forEach((it) => mkdirSync(join(work, it)));
    writeFileSync(join(work, "ws/a.txt"), "old\n");
    writeFileSync(join(work, "script.jsonl"), SCRIPT.map((it) => JSON.stringify(it) + "\n").join(""));
    const end = await drive(work);
    const files = readdirSync(join(work, "ws")).sort();
    const contents = files.map((it) => [it, readFileSync(join(work, "ws", it), "utf8")]);
    return JSON.parse(JSON.stringify({ ...end, files: contents }).replaceAll(work, "WORK"));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const v1 = await inFolder(driveV1);
const v2 = await inFolder(async (work) => {
  const { sessionId, ...live } = await driveV2(work);
  const { stops: _, ...again } = await replayV2(work, sessionId);
  const { stops: __, ...shown } = live;
  compare("version 2, live and again", shown, again);
  return live;
});
compare("version 1 and version 2", v1, v2);
if (v1.calls.length < 5 || v1.stops.length !== 3) throw new Error(`the session is too short: ${JSON.stringify(v1)}`);
if (!process.exitCode) console.log("ok: versions 1 and 2 of the TypeScript SDK end in the same state");
process.exit();
