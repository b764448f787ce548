// The state of one conversation: updates of the protocol go in, changed items for the view come out.
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { addOutput, beginCall, type Call, callChange, type Diff, type ToolUpdate } from "./calls";
import { contentText, imageOf, readBlocks } from "./content";
import { diffView } from "./hunks";
import type {
  CallItem,
  ChangedFile,
  EndItem,
  Head,
  Item,
  NoticeItem,
  PermissionItem,
  TextItem,
  UserItem,
} from "./types";

export interface Patch {
  /** Changed and new items. A new one stands at the end. */
  items: Item[];
  removed: string[];
  head?: Head;
}

type Chunk = Extract<SessionUpdate, { sessionUpdate: "agent_message_chunk" | "user_message_chunk" }>;

const EMPTY: Head = {
  title: "",
  running: false,
  plan: [],
  options: [],
  commands: [],
  used: 0,
  size: 0,
  cost: "",
  canRewind: false,
  canFork: false,
};

export class Conversation {
  readonly items = new Map<string, Item>();
  private readonly calls = new Map<string, Call>();
  private readonly changed = new Set<string>();
  private removed: string[] = [];
  /** Output of terminals that no call has named yet. */
  private readonly early = new Map<string, string>();
  private headChanged = true;
  private last: Item | undefined;
  private count = 0;
  head: Head = { ...EMPTY };

  setHead(change: Partial<Head>): void {
    this.head = { ...this.head, ...change };
    this.headChanged = true;
  }

  /** What changed since the last call. */
  take(): Patch {
    const items = [...this.changed].flatMap((id) => this.items.get(id) ?? []);
    const patch: Patch = { items, removed: this.removed };
    if (this.headChanged) {
      patch.head = this.head;
    }
    this.changed.clear();
    this.removed = [];
    this.headChanged = false;
    return patch;
  }

  /** Everything, for a view that begins. */
  all(): { items: Item[]; head: Head } {
    this.take();
    return { items: [...this.items.values()], head: this.head };
  }

  /** Forgets the conversation: it is about to be sent again. */
  clear(): void {
    this.removed.push(...this.items.keys());
    this.items.clear();
    this.calls.clear();
    this.changed.clear();
    this.last = undefined;
    this.setHead({ plan: [] });
  }

  newId(kind: string): string {
    return `${kind}-${++this.count}`;
  }

  put(item: Item): void {
    this.items.set(item.id, item);
    this.changed.add(item.id);
    this.last = item;
  }

  /** Changes an item in place; one that is gone is let be. */
  touch<T extends Item>(item: T, change: Partial<T>): void {
    if (this.items.get(item.id) === item) {
      Object.assign(item, change);
      this.changed.add(item.id);
    }
  }

  addNotice(severity: string, title: string, text = "", action?: NoticeItem["action"]): void {
    this.put({ kind: "notice", id: this.newId("notice"), severity, title, text, ...(action ? { action } : {}) });
  }

  addEnd(reason: string, cost: string): EndItem {
    const item: EndItem = { kind: "end", id: this.newId("end"), reason, files: [], cost };
    this.put(item);
    return item;
  }

  setFiles(end: EndItem, messageId: string, files: ChangedFile[]): void {
    this.touch(end, { messageId, files });
  }

  /** After a load: the end of each turn that changed files. The order of items changes, so all are sent anew. */
  insertEnds(filesOf: Map<string, ChangedFile[]>): void {
    const items = [...this.items.values()];
    this.items.clear();
    let turn: string | undefined;
    const close = (): void => {
      const files = turn ? filesOf.get(turn) : undefined;
      if (turn && files) {
        const id = this.newId("end");
        this.items.set(id, { kind: "end", id, reason: "", messageId: turn, files, cost: "" });
      }
    };
    for (const item of items) {
      if (beginsTurn(item)) {
        close();
        turn = item.messageId;
      }
      this.items.set(item.id, item);
    }
    close();
    this.last = [...this.items.values()].at(-1);
  }

  /** What a turn changed, file by file: from before its first change to after its last. */
  turnDiffs(endId: string): Diff[] {
    const items = [...this.items.values()];
    const end = items.findIndex((item) => item.id === endId);
    const start = items.slice(0, Math.max(end, 0)).findLastIndex(beginsTurn);
    const files = new Map<string, Diff>();
    for (const item of items.slice(start + 1, end)) {
      for (const diff of item.kind === "call" && item.status === "completed" ? this.diffsOf(item.callId) : []) {
        files.set(diff.path, { ...diff, before: files.get(diff.path)?.before ?? diff.before });
      }
    }
    return [...files.values()];
  }

  /** A command printed this in a terminal of the editor. castor may name the terminal only later. */
  printed(terminalId: string, text: string): void {
    const call = [...this.calls.values()].find(({ item }) => item.terminalId === terminalId);
    if (call) {
      this.touch(call.item, { output: addOutput(call.item.output, text) });
    } else {
      this.early.set(terminalId, addOutput(this.early.get(terminalId) ?? "", text));
    }
  }

  /** The user accepted another text than castor proposed for a file. */
  editChange(callId: string, path: string, text: string): void {
    const call = this.calls.get(callId);
    if (call) {
      call.edits.set(path, text);
      call.diffs = call.diffs.map((it) => (it.path === path ? { ...it, after: text } : it));
      this.touch(call.item, { diffs: call.diffs.map((it) => diffView(it.path, it.before, it.after)) });
    }
  }

  /** A question shows a change as the user edited it so far. */
  editQuestion(item: PermissionItem, edits: { diff: Diff; text: string }[]): void {
    const diffs = this.diffsOf(item.callId).map((diff) => {
      const edit = edits.find((it) => it.diff === diff);
      return diffView(diff.path, diff.before, edit ? edit.text : diff.after);
    });
    this.touch(item, { diffs, edited: edits.length > 0 });
  }

  diffsOf(callId: string): Diff[] {
    return this.calls.get(callId)?.diffs ?? [];
  }

  call(callId: string): CallItem | undefined {
    return this.calls.get(callId)?.item;
  }

  /** The message that began the newest turn gets the id under which castor knows it. */
  nameLastUser(messageId: string): void {
    const user = [...this.items.values()].findLast(beginsTurn);
    if (user && user.messageId !== messageId) {
      this.touch(user, { messageId });
    }
  }

  /** A rewind took this message of the user away, and all after it. */
  cutAt(messageId: string): void {
    const ids = [...this.items.values()];
    const at = ids.findIndex((item) => item.kind === "user" && item.messageId === messageId);
    if (at >= 0) {
      this.remove(ids.slice(at).map((item) => item.id));
    }
  }

  private remove(ids: string[]): void {
    for (const id of ids) {
      this.items.delete(id);
      this.changed.delete(id);
      this.removed.push(id);
    }
    this.last = [...this.items.values()].at(-1);
  }

  apply(update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case "user_message_chunk":
        return this.userChunk(update);
      case "agent_message_chunk":
        return this.textChunk("answer", update);
      case "agent_thought_chunk":
        return this.textChunk("thought", update);
      case "tool_call":
      case "tool_call_update":
        return this.toolUpdate(update);
      case "plan":
        return this.setHead({ plan: update.entries.map(({ content, status }) => ({ content, status })) });
      case "usage_update":
        return this.usage(update.used, update.size, update.cost ?? undefined);
      case "session_info_update":
        return update.title === undefined ? undefined : this.setHead({ title: update.title ?? "" });
      case "available_commands_update":
        return this.setHead({
          commands: update.availableCommands.map((it) => ({
            name: it.name,
            description: it.description,
            hint: it.input && "hint" in it.input ? String(it.input.hint) : "",
          })),
        });
      default:
        return this.rarer(update);
    }
  }

  private toolUpdate(update: ToolUpdate): void {
    const known = this.calls.get(update.toolCallId);
    const call = known ?? beginCall(update);
    if (!known) {
      this.calls.set(update.toolCallId, call);
      this.put(call.item);
    }
    this.touch(call.item, callChange(call, update));
    const { terminalId } = call.item;
    const printed = terminalId && this.early.get(terminalId);
    if (terminalId && printed) {
      this.early.delete(terminalId);
      this.touch(call.item, { output: printed + call.item.output });
    }
  }

  private rarer(update: SessionUpdate): void {
    if (update.sessionUpdate === "notice") {
      const discards = (update._meta?.castor as { discards?: string[] } | undefined)?.discards ?? [];
      this.remove(discards.flatMap((id) => [`answer:${id}`, `thought:${id}`]).filter((id) => this.items.has(id)));
      this.addNotice(update.severity, update.title, update.description ?? "");
    } else if (update.sessionUpdate === "compaction_update") {
      const titles: Record<string, string> = {
        in_progress: "castor sums up the older part of this conversation.",
        completed: "The older part of this conversation is summed up.",
        failed: "The conversation could not be summed up.",
        cancelled: "The conversation was not summed up.",
      };
      const id = `compaction:${update.compactionId}`;
      const text = update.summary ? contentText(update.summary) : (update.error ?? "");
      this.put({ kind: "notice", id, severity: "info", title: titles[update.status] ?? update.status, text });
    }
  }

  private usage(used: number, size: number, cost: { amount: number; currency: string } | undefined): void {
    this.setHead(cost ? { used, size, cost: money(cost.amount, cost.currency) } : { used, size });
  }

  private userChunk(update: Chunk): void {
    const id = update.messageId ? `user:${update.messageId}` : undefined;
    const known = id ? this.items.get(id) : this.last;
    const read = readBlocks([update.content]);
    if (known?.kind === "user") {
      this.touch<UserItem>(known, {
        text: known.text + read.text,
        images: [...known.images, ...read.images],
        chips: [...known.chips, ...read.chips],
      });
      return;
    }
    const item: UserItem = { kind: "user", id: id ?? this.newId("user"), ...read };
    this.put(update.messageId ? { ...item, messageId: update.messageId } : item);
  }

  private textChunk(kind: "answer" | "thought", update: Pick<Chunk, "content" | "messageId">): void {
    const id = update.messageId ? `${kind}:${update.messageId}` : undefined;
    const known = id ? this.items.get(id) : this.last;
    const image = imageOf(update.content);
    const text = contentText([update.content]);
    if (known?.kind === kind) {
      const images = image ? [...known.images, image] : known.images;
      this.touch<TextItem>(known, { text: known.text + text, images });
    } else {
      this.put({ kind, id: id ?? this.newId(kind), text, images: image ? [image] : [] });
    }
  }
}

function beginsTurn(item: Item): item is UserItem {
  return item.kind === "user" && item.steering !== true;
}

/** A sum of money for people: `$0.0042`. */
export function money(amount: number, currency: string): string {
  const digits = amount !== 0 && amount < 0.1 ? 4 : 2;
  return currency === "USD" ? `$${amount.toFixed(digits)}` : `${amount.toFixed(digits)} ${currency}`;
}
