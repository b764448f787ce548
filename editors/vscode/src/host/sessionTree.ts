// The list of saved sessions in the side bar, by day.
import * as vscode from "vscode";
import { byDay, type Day, type SavedSession } from "../model/days";
import type { Castor } from "./castor";
import { listSessions } from "./extensions";

/** More are a matter for `castor sessions list`. */
const MOST = 500;

type Node = { kind: "day"; day: Day } | { kind: "session"; session: SavedSession } | { kind: "more" };

export class SessionTree implements vscode.TreeDataProvider<Node> {
  private readonly changes = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changes.event;

  constructor(private readonly castor: Castor) {}

  refresh(): void {
    this.changes.fire();
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (node) {
      return node.kind === "day" ? node.day.sessions.map((session) => ({ kind: "session", session })) : [];
    }
    // A castor that ended is started on request alone: otherwise one that crashes would be started for ever.
    if (this.castor.down) {
      return [];
    }
    const agent = await this.castor.running();
    if (!this.castor.offers?.list) {
      return [];
    }
    const { sessions, more } = await listSessions(agent.context, this.castor.cwd, MOST);
    const saved = sessions.map(({ sessionId, title, updatedAt }) => ({
      sessionId,
      title: title || "Without a title",
      ...(updatedAt ? { updatedAt } : {}),
    }));
    const days = byDay(saved, new Date()).map((day): Node => ({ kind: "day", day }));
    return more ? [...days, { kind: "more" }] : days;
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if (node.kind === "day") {
      return new vscode.TreeItem(node.day.label, vscode.TreeItemCollapsibleState.Expanded);
    }
    if (node.kind === "more") {
      return new vscode.TreeItem(`The newest ${MOST} sessions are shown.`);
    }
    const { session } = node;
    const item = new vscode.TreeItem(session.title);
    item.id = session.sessionId;
    item.contextValue = "castor.session";
    const open = session.sessionId === this.castor.current?.id;
    item.iconPath = new vscode.ThemeIcon(open ? "comment-discussion" : "comment");
    if (session.updatedAt) {
      const time = new Date(session.updatedAt);
      item.description = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
      item.tooltip = `${session.title}\n${time.toLocaleString()}`;
    }
    item.command = { command: "castor.sessions.open", title: "Open Session", arguments: [node] };
    return item;
  }
}

/** The session of a node; commands get the node. */
export function sessionOf(node: unknown): SavedSession | undefined {
  const it = node as Partial<Node> | undefined;
  return it?.kind === "session" ? (it as { session: SavedSession }).session : undefined;
}
