// The tools of the editor as castor's model sees them: over the wire, with the castor that $CASTOR names.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { test } from "node:test";
import * as acp from "@agentclientprotocol/sdk";
import { Conversation } from "../src/model/conversation";
import { answerMcp, EDITOR_SERVER, readMessage, type ToolSource } from "../src/model/tools";

const CASTOR = process.env.CASTOR;

const source: ToolSource = {
  tools: () => [{ name: "mcp_add", description: "Adds.", inputSchema: { properties: { a: { type: "number" } } } }],
  call: async (_name, args) => [`called with ${JSON.stringify(args)}`],
};

function line(part: object): string {
  const response = [{ candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP" }] }];
  return `${JSON.stringify({ method: "generateContentStream", response })}\n`;
}

test("castor's model calls a tool of the editor", { skip: !CASTOR, timeout: 30_000 }, async () => {
  const home = mkdtempSync(join(tmpdir(), "castor-wire-"));
  const script = join(home, "script.jsonl");
  const call = { functionCall: { name: "mcp_vscode_mcp_add", args: { a: 3 } } };
  writeFileSync(script, line(call) + line({ text: "Done." }));
  const env = { PATH: process.env.PATH, HOME: home };
  const stdio: ["pipe", "pipe", "inherit"] = ["pipe", "pipe", "inherit"];
  const child = spawn(String(CASTOR), ["acp", "--fake-responses", script], { cwd: home, env, stdio });
  try {
    const conversation = new Conversation();
    const asked: string[] = [];
    const client = acp
      .client({ name: "wire" })
      .onNotification(acp.methods.client.session.update, ({ params }) => conversation.apply(params.update))
      .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
        asked.push(params.toolCall.title ?? "");
        return { outcome: { outcome: "selected", optionId: "allow_once" } };
      })
      .onRequest("mcp/message", readMessage, ({ params, signal }) => answerMcp(params, source, signal));
    const output = Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>;
    await client.connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), output), async (agent) => {
      await agent.request(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
      const server = { type: "acp", name: "vscode", serverId: EDITOR_SERVER } as unknown as acp.McpServer;
      const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd: home, mcpServers: [server] });
      await agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "Add." }] });
    });
    const calls = [...conversation.items.values()].flatMap((it) => (it.kind === "call" ? [it] : []));
    assert.deepEqual(
      calls.map((it) => it.status),
      ["completed"],
    );
    assert.match(calls[0]?.text ?? "", /called with \{"a":3\}/);
    assert.equal(asked.length, 1);
  } finally {
    child.stdin.end();
    await once(child, "exit");
    rmSync(home, { recursive: true });
  }
});
