// Changes in the editor's own diff view: castor-diff documents, and which of them waits for a decision.
// While a change waits, its right side can be edited and its hunks reverted: what stands there is what is accepted.
import { basename } from "node:path";
import * as vscode from "vscode";
import type { Diff } from "../model/calls";
import type { Conversation } from "../model/conversation";
import { sameText } from "../model/hunks";
import type { PermissionItem } from "../model/types";
import { reviewTitle, unseenPaths } from "../model/unseen";
import type { Castor } from "./castor";
import type { Proposals } from "./proposals";
import type { Questions } from "./questions";

export const SCHEME = "castor-diff";
/** How long after the last key the chat's card shows an edited change. */
const CARD_MS = 250;
/** In front of each text, so that no setting of the editor reads it in another encoding. */
const MARK = "\ufeff";

/** Where the two texts of a change are found: of a call, or of a whole turn. */
interface Place {
  session: string;
  call?: string;
  turn?: string;
  index: number;
  side: "before" | "after";
}

function uriOf(path: string, place: Place): vscode.Uri {
  return vscode.Uri.file(path).with({ scheme: SCHEME, query: JSON.stringify(place) });
}

function placeOf(uri: vscode.Uri): Place | undefined {
  if (uri.scheme !== SCHEME) {
    return undefined;
  }
  try {
    return JSON.parse(uri.query) as Place;
  } catch {
    return undefined;
  }
}

/** The documents on the right side of a call's changes that the editor has open. */
function proposedDocuments(callId: string): { document: vscode.TextDocument; index: number }[] {
  return vscode.workspace.textDocuments.flatMap((document) => {
    const place = document.isClosed ? undefined : placeOf(document.uri);
    return place?.call === callId && place.side === "after" ? [{ document, index: place.index }] : [];
  });
}

export class Diffs implements vscode.FileSystemProvider, vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changes.event;
  /** Saved texts of changes that wait, by document. */
  private readonly saved = new Map<string, string>();
  private readonly versions = new Map<string, number>();
  /** Documents whose question was answered a moment ago: the editor may still save them. */
  private readonly closing = new Map<string, Promise<void>>();
  private readonly heard: vscode.Disposable[];
  private cardTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly castor: Castor,
    private readonly questions: Questions,
    private readonly proposals: Proposals,
  ) {
    this.heard = [
      castor.onSwitch(() => this.reload()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.edited(document)),
      vscode.window.tabGroups.onDidChangeTabs(() => this.refresh()),
      vscode.window.onDidChangeActiveTextEditor(() => this.refresh()),
    ];
  }

  dispose(): void {
    clearTimeout(this.cardTimer);
    vscode.Disposable.from(...this.heard).dispose();
  }

  private textOf(uri: vscode.Uri): string {
    const saved = this.saved.get(uri.toString());
    if (saved !== undefined) {
      return saved;
    }
    const place = placeOf(uri);
    const conversation = place && this.castor.conversationOf(place.session);
    if (!place || !conversation) {
      return "This session is not open here any more.";
    }
    const diffs = place.call ? conversation.diffsOf(place.call) : conversation.turnDiffs(place.turn ?? "");
    return diffs[place.index]?.[place.side] ?? "";
  }

  private isEditable(uri: vscode.Uri): boolean {
    const place = placeOf(uri);
    if (place?.side !== "after" || place.call === undefined) {
      return false;
    }
    // castor writes the files of the window's folders through the editor, and others by itself.
    const inside = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(uri.path)) !== undefined;
    return this.closing.has(uri.toString()) || (inside && this.questions.ofCall(place.call) !== undefined);
  }

  stat(uri: vscode.Uri): vscode.FileStat {
    const stat: vscode.FileStat = {
      type: vscode.FileType.File,
      ctime: 0,
      mtime: this.versions.get(uri.toString()) ?? 1,
      size: this.readFile(uri).byteLength,
    };
    return this.isEditable(uri) ? stat : { ...stat, permissions: vscode.FilePermission.Readonly };
  }

  readFile(uri: vscode.Uri): Uint8Array {
    return new TextEncoder().encode(MARK + this.textOf(uri));
  }

  writeFile(uri: vscode.Uri, bytes: Uint8Array): void {
    if (!this.isEditable(uri)) {
      throw vscode.FileSystemError.NoPermissions(uri);
    }
    this.saved.set(uri.toString(), new TextDecoder().decode(bytes));
    this.touch(uri);
  }

  private touch(uri: vscode.Uri): void {
    const key = uri.toString();
    this.versions.set(key, (this.versions.get(key) ?? 1) + 1);
    this.changes.fire([{ type: vscode.FileChangeType.Changed, uri }]);
  }

  /** What is shown may be known only now: a session that a loaded window opens again. */
  private reload(): void {
    for (const { uri, isDirty } of vscode.workspace.textDocuments) {
      if (uri.scheme === SCHEME && !isDirty) {
        this.touch(uri);
      }
    }
    this.refresh();
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => {});
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  private pair(diff: Diff, place: Omit<Place, "side">): [vscode.Uri, vscode.Uri] {
    return [uriOf(diff.path, { ...place, side: "before" }), uriOf(diff.path, { ...place, side: "after" })];
  }

  async openCall(callId: string, index: number): Promise<void> {
    const session = this.castor.current;
    const diff = session?.conversation.diffsOf(callId)[index];
    if (session && diff) {
      const [before, after] = this.pair(diff, { session: session.id, call: callId, index });
      const title = `${basename(diff.path)} (castor)`;
      await vscode.commands.executeCommand("vscode.diff", before, after, title, { preview: true });
      this.refresh();
    }
  }

  async openTurn(turn: string): Promise<void> {
    const session = this.castor.current;
    const diffs = session?.conversation.turnDiffs(turn) ?? [];
    if (!session || diffs.length === 0) {
      void vscode.window.showInformationMessage(
        "castor was not told what this turn changed; /diff shows the session's changes.",
      );
      return;
    }
    const pairs = diffs.map((diff, index) => this.pair(diff, { session: session.id, turn, index }));
    const end = session.conversation.items.get(turn);
    const unseen = end?.kind === "end" ? unseenPaths(end.files) : [];
    if (pairs.length === 1) {
      const title = `${basename(diffs[0]!.path)} (castor)`;
      const marked = unseen.length > 0 ? `${title}, not looked at` : title;
      await vscode.commands.executeCommand("vscode.diff", ...pairs[0]!, marked);
      return;
    }
    const files = pairs.map(([before, after], index) => [vscode.Uri.file(diffs[index]!.path), before, after]);
    const title = reviewTitle("Changes of the turn (castor)", unseen, basename);
    await vscode.commands.executeCommand("vscode.changes", title, files);
  }

  private shown(): { tab: vscode.Tab; callId: string } | undefined {
    const tab = vscode.window.tabGroups.activeTabGroup.activeTab;
    const place = tab?.input instanceof vscode.TabInputTextDiff ? placeOf(tab.input.modified) : undefined;
    return tab && place?.call ? { tab, callId: place.call } : undefined;
  }

  /** Shows accept and reject where the diff in front waits for them. */
  refresh(): void {
    const shown = this.shown();
    const pending = shown !== undefined && this.questions.ofCall(shown.callId) !== undefined;
    void vscode.commands.executeCommand("setContext", "castor.diffPending", pending);
    for (const document of vscode.workspace.textDocuments) {
      const callId = placeOf(document.uri)?.call;
      const kept = document.isDirty || this.saved.has(document.uri.toString());
      if (kept && callId !== undefined && this.questions.ofCall(callId) === undefined) {
        void this.settle(document);
      }
    }
  }

  async decide(accept: boolean): Promise<void> {
    const shown = this.shown();
    const documents = shown ? proposedDocuments(shown.callId) : [];
    if (!shown || !this.questions.decide(shown.callId, accept)) {
      void vscode.window.showInformationMessage("castor does not wait for a decision about this change.");
      return;
    }
    await Promise.all(documents.map(({ document }) => this.settle(document)));
    await vscode.window.tabGroups.close(shown.tab);
  }

  /** The user types into a change that waits: the card in the chat shows what would be written. */
  private edited(document: vscode.TextDocument): void {
    const place = placeOf(document.uri);
    const callId = place?.call;
    if (!place || callId === undefined || this.questions.ofCall(callId) === undefined) {
      return;
    }
    clearTimeout(this.cardTimer);
    this.cardTimer = setTimeout(() => {
      const item = this.questions.ofCall(callId);
      const conversation = this.castor.conversationOf(place.session);
      if (item && conversation) {
        conversation.editQuestion(item, this.edits(conversation, callId));
        this.castor.touched(conversation);
      }
    }, CARD_MS);
  }

  /** The changes of a call as they stand in the diff editor, where the user edited them. */
  private edits(conversation: Conversation, callId: string): { diff: Diff; text: string }[] {
    const diffs = conversation.diffsOf(callId);
    const texts = new Map<number, string>();
    for (const [key, text] of this.saved) {
      const place = placeOf(vscode.Uri.parse(key));
      if (place?.call === callId) {
        texts.set(place.index, text);
      }
    }
    for (const { document, index } of proposedDocuments(callId)) {
      texts.set(index, document.getText());
    }
    return diffs.flatMap((diff, index) => {
      const text = texts.get(index);
      return text === undefined || sameText(text, diff.after) ? [] : [{ diff, text }];
    });
  }

  /** An answer is about to be given, here or in the chat: an approval is of the change as the user edited it. */
  answering(conversation: Conversation, item: PermissionItem, kind: string): void {
    const edits = kind.startsWith("allow") ? this.edits(conversation, item.callId) : [];
    for (const { diff, text } of edits) {
      this.proposals.expect({ conversation, callId: item.callId, path: diff.path, shown: diff.after, text });
      conversation.editChange(item.callId, diff.path, text);
    }
  }

  /** The question is answered: the document shows what was decided, and has nothing unsaved. */
  private settle(document: vscode.TextDocument): Promise<void> {
    const key = document.uri.toString();
    const settled = this.closing.get(key) ?? this.forget(document, key);
    this.closing.set(key, settled);
    return settled;
  }

  private async forget(document: vscode.TextDocument, key: string): Promise<void> {
    try {
      // Not at once: the document can be saved only while it is in the list above.
      await Promise.resolve();
      if (document.isDirty) {
        await document.save();
      }
    } finally {
      this.closing.delete(key);
      this.saved.delete(key);
      this.touch(document.uri);
    }
  }
}
