// The view of the chat: fills the page, sends it what changed, and passes on what the user does there.
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { FromView, ToView } from "../model/protocol";
import type { Castor } from "./castor";
import type { Session } from "./session";

/** Changes are sent together, so that a fast answer does not draw the page a thousand times a second. */
const SEND_MS = 40;

export type Actions = (message: FromView) => void | Promise<void>;

export class ChatView implements vscode.WebviewViewProvider {
  private view: vscode.WebviewView | undefined;
  private ready = false;
  private timer: NodeJS.Timeout | undefined;
  /** Sent once the page is there. */
  private queued: ToView[] = [];

  constructor(
    private readonly extension: vscode.Uri,
    private readonly castor: Castor,
    private readonly act: Actions,
  ) {
    castor.onChange((session) => this.changed(session));
    castor.onSwitch(() => this.reset());
  }

  get visible(): boolean {
    return this.view?.visible === true;
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    this.ready = false;
    view.webview.options = { enableScripts: true, localResourceRoots: [this.extension] };
    view.webview.onDidReceiveMessage((message: FromView) => this.receive(message));
    view.onDidDispose(() => {
      this.view = undefined;
      this.ready = false;
    });
    view.webview.html = this.page(view.webview);
  }

  private receive(message: FromView): void {
    if (message.type !== "ready") {
      void this.act(message);
      return;
    }
    this.ready = true;
    this.reset();
    for (const it of this.queued.splice(0)) {
      this.post(it);
    }
    void this.castor.begin();
  }

  /** Shows the view, and sends this when its page is there. */
  async reveal(message?: ToView): Promise<void> {
    if (message) {
      this.queued.push(message);
    }
    await vscode.commands.executeCommand("castor.chat.focus");
    if (this.ready) {
      for (const it of this.queued.splice(0)) {
        this.post(it);
      }
    }
  }

  post(message: ToView): void {
    if (this.ready) {
      void this.view?.webview.postMessage(message);
    }
  }

  reset(): void {
    const { current, banner } = this.castor;
    const all = current?.conversation.all();
    const empty = { title: "", running: false, plan: [], options: [], commands: [], used: 0, size: 0, cost: "" };
    this.post({
      type: "reset",
      sessionId: current?.id ?? "",
      items: all?.items ?? [],
      head: all?.head ?? { ...empty, canRewind: false, canFork: false },
      ...(banner ? { banner } : {}),
    });
    this.setTitle();
  }

  private changed(session: Session): void {
    if (session !== this.castor.current || this.timer) {
      return;
    }
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.send();
    }, SEND_MS);
  }

  private send(): void {
    const session = this.castor.current;
    if (!session || !this.ready) {
      return;
    }
    const patch = session.conversation.take();
    this.post({ type: "patch", sessionId: session.id, ...patch });
    if (patch.head) {
      this.setTitle();
    }
  }

  private setTitle(): void {
    if (this.view) {
      this.view.description = this.castor.current?.conversation.head.title ?? "";
    }
  }

  setBadge(count: number): void {
    if (this.view) {
      this.view.badge =
        count > 0 ? { value: count, tooltip: `castor waits for ${count} answer${count > 1 ? "s" : ""}` } : undefined;
    }
  }

  private page(webview: vscode.Webview): string {
    const nonce = randomBytes(16).toString("base64");
    const uri = (...parts: string[]): vscode.Uri => webview.asWebviewUri(vscode.Uri.joinPath(this.extension, ...parts));
    const policy = `default-src 'none'; img-src data:; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'`;
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>castor</title>
<link rel="stylesheet" href="${uri("media", "chat.css")}">
</head>
<body>
<script nonce="${nonce}" src="${uri("dist", "webview.js")}"></script>
</body>
</html>`;
  }
}
