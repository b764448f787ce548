// The extension: makes its parts, joins them, and registers what VS Code calls.
import * as vscode from "vscode";
import { Actions } from "./host/actions";
import { fileAttachment, selectionAttachment } from "./host/attach";
import { Castor } from "./host/castor";
import { ChatView } from "./host/chatView";
import { Diffs, SCHEME } from "./host/diffs";
import { notifyHidden } from "./host/notify";
import { Proposals } from "./host/proposals";
import { Questions } from "./host/questions";
import { registerSessionCommands } from "./host/sessionCommands";
import { SessionTree } from "./host/sessionTree";
import { useDemo } from "./host/settings";
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
    answering: (...answer) => diffs.answering(...answer),
    changed: (conversation) => {
      castor.touched(conversation);
      view.setBadge(questions.count);
      status.draw();
      diffs.refresh();
    },
  });
  const proposals = new Proposals();
  const castor = new Castor(context, log, questions, terminals, proposals);
  running = castor;
  const diffs: Diffs = new Diffs(castor, questions, proposals);
  const signIn = (done: () => unknown): void =>
    runInTerminal(context.extensionUri, "castor auth login", ["auth", "login"], castor.cwd, done);
  const actions = new Actions({ castor, questions, terminals, diffs, signIn, view: () => view });
  const view: ChatView = new ChatView(context.extensionUri, castor, (message) => actions.handle(message));
  const status = new StatusBar(castor, questions);
  const tree = new SessionTree(castor);

  castor.onSwitch(() => tree.refresh());
  castor.onChange(() => proposals.check());
  context.subscriptions.push(
    log,
    terminals,
    status,
    vscode.window.registerWebviewViewProvider("castor.chat", view),
    vscode.window.registerTreeDataProvider("castor.sessions", tree),
    diffs,
    vscode.workspace.registerFileSystemProvider(SCHEME, diffs, { isCaseSensitive: true }),
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
  command("demo", async () => {
    await useDemo(true);
    await castor.restart();
  });
  command("login", () =>
    signIn(async () => {
      await useDemo(false);
      await castor.restart();
    }),
  );
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
