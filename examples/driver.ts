#!/usr/bin/env node
// Asks castor for something, prints the answer as it comes, and approves edits alone.
//
//     npm install @agentclientprotocol/sdk
//     node driver.ts "Write summary.md" -m demo
//
// What follows the prompt goes to `castor acp`. The variable CASTOR names the program, if `castor` is not in the PATH.
// Node runs TypeScript as it is from 22.18 on.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

/** What this program shows of castor's events; `castor schema events` has all of them. */
type AgentEvent =
  | { type: "message"; role: "user" | "agent"; content: { text?: string }[] }
  | { type: "tool_request"; display: { title: string } }
  | { type: "error"; message: string };

function show(event: AgentEvent): void {
  if (event.type === "message" && event.role === "agent") {
    process.stdout.write(event.content.map((it) => it.text ?? "").join(""));
  } else if (event.type === "tool_request") {
    console.error("castor calls", event.display.title);
  } else if (event.type === "error") {
    console.error("castor reports:", event.message);
  }
}

function approveEdits({ toolCall, options }: acp.RequestPermissionRequest): acp.RequestPermissionOutcome {
  const wanted = toolCall.kind === "edit" ? "allow_once" : "reject_once";
  const option = options.find((it) => it.kind === wanted);
  return option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" };
}

/** Runs one prompt in a new session of this folder. Returns why it ended. */
async function ask(agent: acp.ClientContext, text: string): Promise<acp.StopReason> {
  await agent.request(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd: process.cwd(), mcpServers: [] });
  const [, { stopReason }] = await Promise.all([
    // The next stream: this prompt's. castor answers after its last event.
    agent.request("_castor/session/stream", { sessionId }),
    agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] }),
  ]);
  return stopReason;
}

const client = acp
  .client({ name: "driver.ts" })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => ({ outcome: approveEdits(params) }))
  .onNotification("_castor/session/event", (it) => it as { event: AgentEvent }, ({ params }) => show(params.event));

const [text = "What is in this folder?", ...args] = process.argv.slice(2);
try {
  const castor = spawn(process.env.CASTOR ?? "castor", ["acp", ...args], { stdio: ["pipe", "pipe", "inherit"] });
  await once(castor, "spawn");
  const ended = once(castor, "exit");
  const output = Readable.toWeb(castor.stdout) as ReadableStream<Uint8Array>;
  const stream = acp.ndJsonStream(Writable.toWeb(castor.stdin), output);
  console.error("\nended with", await client.connectWith(stream, (agent) => ask(agent, text)));
  // castor ends at the end of its input.
  castor.stdin.end();
  const [code] = await ended;
  process.exit(code ?? 1);
} catch (error) {
  console.error("driver.ts:", error instanceof Error ? error.message : error);
  process.exit(1);
}
