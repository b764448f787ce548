// The status bar: how full the context is, what the session has cost, and whether castor waits.
import * as vscode from "vscode";
import type { Castor } from "./castor";
import type { Questions } from "./questions";

const CELLS = 8;

function bar(share: number): string {
  const full = Math.min(CELLS, Math.round(share * CELLS));
  return "▰".repeat(full) + "▱".repeat(CELLS - full);
}

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("castor.status", vscode.StatusBarAlignment.Right, 90);

  constructor(
    private readonly castor: Castor,
    private readonly questions: Questions,
  ) {
    this.item.name = "castor";
    this.item.command = "castor.focus";
    castor.onChange(() => this.draw());
    castor.onSwitch(() => this.draw());
  }

  draw(): void {
    const head = this.castor.current?.conversation.head;
    if (!head) {
      this.item.hide();
      return;
    }
    const share = head.size > 0 ? head.used / head.size : 0;
    const waits = this.questions.count;
    const icon = waits > 0 ? "$(bell-dot)" : head.running ? "$(sync~spin)" : "$(comment-discussion)";
    this.item.text = [`${icon} castor ${bar(share)} ${Math.round(share * 100)}%`, head.cost]
      .filter(Boolean)
      .join(" · ");
    const tokens = `${head.used.toLocaleString()} of ${head.size.toLocaleString()} tokens of context`;
    const lines = [tokens, head.cost ? `${head.cost} in this session` : "", waits > 0 ? `${waits} questions wait` : ""];
    this.item.tooltip = lines.filter(Boolean).join("\n");
    this.item.accessibilityInformation = { label: `castor: ${lines.filter(Boolean).join(", ")}` };
    this.item.backgroundColor = waits > 0 ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.item.show();
  }

  dispose(): void {
    this.item.dispose();
  }
}
