// castor's own methods that the extension calls, with the parts of their shapes that it reads.
import type { ClientContext, InitializeResponse, PromptResponse, SessionInfo } from "@agentclientprotocol/sdk";
import { money } from "../model/conversation";
import type { ChangedFile } from "../model/types";

export interface Checkpoint {
  id: string;
  messageId?: string | null;
  files: ChangedFile[];
}

export interface RewindParams {
  sessionId: string;
  messageId?: string;
  redo?: boolean;
  what?: "both" | "files" | "conversation";
  onConflict?: "fail" | "keep" | "restore";
}

export interface RewindResult {
  restored: string[];
  /** Of `restored`; an older castor does not say. */
  removed?: string[];
  conflicts: { path: string; reason: string }[];
  notKept: string[];
}

/** What this castor offers beside the protocol's stable part. An older one offers less. */
export interface Offers {
  rewind: boolean;
  checkpoints: boolean;
  steering: boolean;
  fork: boolean;
  rename: boolean;
  list: boolean;
  delete: boolean;
  editorTools: boolean;
}

type Loose = Record<string, unknown> | null | undefined;

export function offersOf({ agentCapabilities: has }: InitializeResponse): Offers {
  const meta = has?._meta as { castor?: { rewind?: boolean; checkpoints?: boolean } } | undefined;
  const steering = (has?._meta as { steering?: { supported?: boolean } } | undefined)?.steering;
  const sessions = has?.sessionCapabilities as Loose;
  return {
    rewind: meta?.castor?.rewind === true,
    checkpoints: meta?.castor?.checkpoints === true,
    steering: steering?.supported === true,
    fork: Boolean(sessions?.fork),
    rename: Boolean(sessions?.title),
    list: Boolean(sessions?.list),
    delete: Boolean(sessions?.delete),
    editorTools: (has?.mcpCapabilities as Loose)?.acp === true,
  };
}

export async function checkpoints(agent: ClientContext, sessionId: string): Promise<Checkpoint[]> {
  const answer = await agent.request<{ checkpoints: Checkpoint[] }>("_castor/session/checkpoints", { sessionId });
  return answer.checkpoints;
}

export function rewind(agent: ClientContext, params: RewindParams): Promise<RewindResult> {
  return agent.request<RewindResult>("_castor/session/rewind", params);
}

/** The id of the user's message that began a stream of events. */
export async function firstMessage(
  agent: ClientContext,
  sessionId: string,
  streamId: string,
): Promise<string | undefined> {
  const { events } = await agent.request<{ events: { role?: string; messageId?: string }[] }>(
    "_castor/session/events",
    {
      sessionId,
      streamId,
      types: ["message"],
      limit: 1,
    },
  );
  return events[0]?.role === "user" ? events[0].messageId : undefined;
}

/** What castor says about a prompt in its answer. */
export function promptMeta(answer: PromptResponse): { streamId?: string; cost: string } {
  const castor = (answer._meta?.castor ?? {}) as { streamId?: string; cost?: { amount: number; currency: string } };
  const cost = castor.cost ? money(castor.cost.amount, castor.cost.currency) : "";
  return { cost, ...(castor.streamId ? { streamId: castor.streamId } : {}) };
}

/** Says words to a turn that runs. False: it is over, and they are a prompt. */
export async function steer(agent: ClientContext, sessionId: string, prompt: unknown[]): Promise<boolean> {
  const { outcome, message } = await agent.request<{ outcome: string; message?: string }>("_session/steering", {
    sessionId,
    prompt,
    _meta: { steering: { idleBehavior: "promptRequired" } },
  });
  if (outcome === "failed") {
    throw new Error(message ?? "castor did not take it.");
  }
  return outcome !== "promptRequired";
}

/** All pages of the list of a folder, up to `most` sessions. */
export async function listSessions(
  agent: ClientContext,
  cwd: string,
  most: number,
): Promise<{ sessions: SessionInfo[]; more: boolean }> {
  const sessions: SessionInfo[] = [];
  let cursor: string | undefined;
  do {
    const page = await agent.request("session/list", cursor ? { cwd, cursor } : { cwd });
    sessions.push(...page.sessions);
    cursor = page.nextCursor ?? undefined;
  } while (cursor && sessions.length < most);
  return { sessions, more: cursor !== undefined };
}
