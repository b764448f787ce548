// The extension: makes its parts, joins them, and registers what VS Code calls.
import * as vscode from "vscode";
import { Actions } from "./host/actions";
import { fileAttachment, selectionAttachment } from "./host/attach";
import { Castor } from "./host/castor";
import { ChatView } from "./host/chatView";
import { Diffs, SCHEME } from "./host/diffs";
import { notifyHidden } from "./host/notify";
import { Questions } from "./host/questions";
import { registerSessionCommands } from "./host/sessionCommands";
import { SessionTree } from "./host/sessionTree";
import { StatusBar } from "./host/status";
import { runInTerminal } from "./host/terminalCommands";
import { Terminals } from "./host/terminals";

let running: Castor | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("castor", { log: true });
  const terminals = new Terminals((...printed) => castor.printed(...printed));
  const questions = new Questions({
    asked: (conversation, item) => {
      if (!view.visible || castor.current?.conversation !== conversation) {
        void notifyHidden(item, questions, () => view.reveal());
      }
    },
    changed: (conversation) => {
      castor.touched(conversation);
      view.setBadge(questions.count);
      status.draw();
      diffs.refresh();
    },
  });
  const castor = new Castor(context, log, questions, terminals);
  running = castor;
  const diffs = new Diffs(castor, questions);
  const actions = new Actions({ castor, questions, terminals, diffs, view: () => view });
  const view: ChatView = new ChatView(context.extensionUri, castor, (message) => actions.handle(message));
  const status = new StatusBar(castor, questions);
  const tree = new SessionTree(castor);

  castor.onSwitch(() => tree.refresh());
  context.subscriptions.push(
    log,
    terminals,
    status,
    vscode.window.registerWebviewViewProvider("castor.chat", view),
    vscode.window.registerTreeDataProvider("castor.sessions", tree),
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, diffs),
    vscode.window.tabGroups.onDidChangeTabs(() => diffs.refresh()),
    vscode.window.onDidChangeActiveTextEditor(() => diffs.refresh()),
    vscode.workspace.onDidGrantWorkspaceTrust(() => castor.restart()),
  );

  const command = (name: string, run: (...args: unknown[]) => unknown): void => {
    const safe = async (...args: unknown[]): Promise<void> => {
      try {
        await run(...args);
      } catch (error) {
        actions.tell(error);
      }
    };
    context.subscriptions.push(vscode.commands.registerCommand(`castor.${name}`, safe));
  };
  command("focus", () => view.reveal({ type: "focus" }));
  command("new", async () => {
    await view.reveal({ type: "focus" });
    await castor.new();
  });
  command("cancel", () => castor.current?.cancel());
  command("options", () => actions.chooseOption());
  command("undo", () => actions.undo());
  command("redo", () => actions.redo());
  command("restart", () => castor.restart());
  command("log", () => log.show());
  command("settings", () => vscode.commands.executeCommand("workbench.action.openSettings", "castor."));
  command("login", () => {
    const done = (): unknown => castor.restart();
    runInTerminal(context.extensionUri, "castor auth login", ["auth", "login"], castor.cwd, done);
  });
  command("doctor", () => runInTerminal(context.extensionUri, "castor doctor", ["doctor"], castor.cwd));
  command("diff.accept", () => diffs.decide(true));
  command("diff.reject", () => diffs.decide(false));
  command("addSelection", async () => {
    const editor = vscode.window.activeTextEditor;
    const attachment = editor && selectionAttachment(editor);
    if (attachment) {
      await view.reveal({ type: "attach", attachment });
    }
  });
  command("addFile", async (clicked) => {
    const uri = clicked instanceof vscode.Uri ? clicked : vscode.window.activeTextEditor?.document.uri;
    if (uri) {
      await view.reveal({ type: "attach", attachment: await fileAttachment(uri) });
    }
  });
  registerSessionCommands(command, castor, tree);
}

/** castor ends with its window. */
export async function deactivate(): Promise<void> {
  await running?.stop();
}
