// Calls of tools: what their updates say, as one item each.
import type { SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk";
import { contentText, imageOf } from "./content";
import { diffView } from "./hunks";
import type { CallItem } from "./types";

/** Most that is kept of what a command prints. */
const MOST_OUTPUT = 64 * 1024;

/** A change of a file, with both texts. */
export interface Diff {
  path: string;
  before: string;
  after: string;
}

export interface Call {
  item: CallItem;
  diffs: Diff[];
  /** What the user made of proposed texts, by path: castor tells its own. */
  edits: Map<string, string>;
}

export type ToolUpdate = Extract<SessionUpdate, { sessionUpdate: "tool_call" | "tool_call_update" }>;

interface TerminalOutput {
  terminal_output?: { data?: string };
}

/** Colours, moves of the cursor, titles: the card shows plain text. */
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

export function addOutput(output: string, text: string): string {
  return (output + text.replace(ESCAPES, "").replaceAll("\r\n", "\n")).slice(-MOST_OUTPUT);
}

export function beginCall(update: ToolUpdate): Call {
  const item: CallItem = {
    kind: "call",
    id: `call:${update.toolCallId}`,
    callId: update.toolCallId,
    title: update.title ?? update.toolCallId,
    tool: update.kind ?? "other",
    status: "pending",
    text: "",
    output: "",
    diffs: [],
    images: [],
    locations: [],
  };
  return { item, diffs: [], edits: new Map() };
}

/** What an update changes of the item. What it leaves out stays as it was. */
export function callChange(call: Call, update: ToolUpdate): Partial<CallItem> {
  const change: Partial<CallItem> = {};
  if (update.title) {
    change.title = update.title;
  }
  if (update.kind) {
    change.tool = update.kind;
  }
  if (update.status) {
    change.status = update.status as CallItem["status"];
  }
  if (update.locations) {
    change.locations = update.locations.map(({ path, line }) => ({ path, ...(line ? { line } : {}) }));
  }
  const printed = (update._meta as TerminalOutput | undefined)?.terminal_output?.data;
  if (printed) {
    change.output = addOutput(call.item.output, printed);
  }
  return update.content ? { ...change, ...contentChange(call, update.content) } : change;
}

function contentChange(call: Call, content: ToolCallContent[]): Partial<CallItem> {
  call.diffs = content.flatMap((it) =>
    it.type === "diff"
      ? [{ path: it.path, before: it.oldText ?? "", after: call.edits.get(it.path) ?? it.newText }]
      : [],
  );
  const blocks = content.flatMap((it) => (it.type === "content" ? [it.content] : []));
  const terminal = content.find((it) => it.type === "terminal");
  return {
    diffs: call.diffs.map(({ path, before, after }) => diffView(path, before, after)),
    text: contentText(blocks),
    images: blocks.flatMap((it) => imageOf(it) ?? []),
    ...(terminal?.type === "terminal" ? { terminalId: terminal.terminalId } : {}),
  };
}
