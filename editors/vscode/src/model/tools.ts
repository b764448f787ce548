// An MCP server over ACP: the tools of the editor's own MCP servers, for castor's model.

export interface EditorTool {
  name: string;
  description: string;
  inputSchema: object | undefined;
}

export interface ToolSource {
  tools(): EditorTool[];
  /** Runs one; rejects where it fails. */
  call(name: string, args: object, signal: AbortSignal): Promise<string[]>;
}

export interface McpMessage {
  serverId: string;
  method: string;
  params?: Record<string, unknown> | null;
}

export type McpOutcome = { result: unknown } | { error: { code: number; message: string } };

export const EDITOR_SERVER = "vscode-tools";
const VERSION = "2025-06-18";

/** The name under which the editor shows tools of MCP servers. */
export function isMcpTool(name: string): boolean {
  return name.startsWith("mcp_");
}

function schemaOf(tool: EditorTool): object {
  const schema = tool.inputSchema;
  return schema && "type" in schema ? schema : { ...schema, type: "object" };
}

/** Reads a message of castor's; throws where it is none. */
export function readMessage(raw: unknown): McpMessage {
  const it = raw as Partial<McpMessage> | null;
  if (typeof it?.serverId !== "string" || typeof it.method !== "string") {
    throw new TypeError("mcp/message needs serverId and method.");
  }
  return { serverId: it.serverId, method: it.method, params: it.params ?? null };
}

export async function answerMcp(message: McpMessage, source: ToolSource, signal: AbortSignal): Promise<McpOutcome> {
  switch (message.method) {
    case "initialize":
      return {
        result: {
          protocolVersion: VERSION,
          capabilities: { tools: {} },
          serverInfo: { name: "vscode", title: "Tools of VS Code", version: "1" },
        },
      };
    case "tools/list": {
      const tools = source.tools().map((it) => ({
        name: it.name,
        description: it.description,
        inputSchema: schemaOf(it),
      }));
      return { result: { tools } };
    }
    case "tools/call":
      return callTool(message, source, signal);
    case "ping":
      return { result: {} };
    default:
      return { error: { code: -32601, message: `VS Code has no ${message.method}.` } };
  }
}

async function callTool(message: McpMessage, source: ToolSource, signal: AbortSignal): Promise<McpOutcome> {
  const name = message.params?.name;
  const known = source.tools().some((it) => it.name === name);
  if (typeof name !== "string" || !known) {
    return { error: { code: -32602, message: `VS Code has no tool ${String(name)}.` } };
  }
  const args = (message.params?.arguments ?? {}) as object;
  try {
    const texts = await source.call(name, args, signal);
    return { result: { content: texts.map((text) => ({ type: "text", text })) } };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { result: { content: [{ type: "text", text }], isError: true } };
  }
}
