// Changes in the editor's own diff view: castor-diff documents, and which of them waits for a decision.
import { basename } from "node:path";
import * as vscode from "vscode";
import type { Diff } from "../model/calls";
import type { Castor } from "./castor";
import type { Questions } from "./questions";

export const SCHEME = "castor-diff";

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

export class Diffs implements vscode.TextDocumentContentProvider {
  constructor(
    private readonly castor: Castor,
    private readonly questions: Questions,
  ) {}

  provideTextDocumentContent(uri: vscode.Uri): string {
    const place = placeOf(uri);
    const conversation = this.castor.current?.conversation;
    if (!place || !conversation || this.castor.current?.id !== place.session) {
      return "This session is not shown any more.";
    }
    const diffs = place.call ? conversation.diffsOf(place.call) : conversation.turnDiffs(place.turn ?? "");
    return diffs[place.index]?.[place.side] ?? "";
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
    if (pairs.length === 1) {
      await vscode.commands.executeCommand("vscode.diff", ...pairs[0]!, `${basename(diffs[0]!.path)} (castor)`);
      return;
    }
    const files = pairs.map(([before, after], index) => [vscode.Uri.file(diffs[index]!.path), before, after]);
    await vscode.commands.executeCommand("vscode.changes", "Changes of the turn (castor)", files);
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
  }

  async decide(accept: boolean): Promise<void> {
    const shown = this.shown();
    if (!shown || !this.questions.decide(shown.callId, accept)) {
      void vscode.window.showInformationMessage("castor does not wait for a decision about this change.");
      return;
    }
    await vscode.window.tabGroups.close(shown.tab);
  }
}
