// Commands on the list of sessions: open, rename, fork, delete.
import * as vscode from "vscode";
import type { Castor } from "./castor";
import { type SessionTree, sessionOf } from "./sessionTree";

type Register = (name: string, run: (node: unknown) => unknown) => void;

export function registerSessionCommands(command: Register, castor: Castor, tree: SessionTree): void {
  command("sessions.refresh", () => tree.refresh());
  command("sessions.open", async (node) => {
    const session = sessionOf(node);
    if (session) {
      await castor.open(session.sessionId);
      await vscode.commands.executeCommand("castor.focus");
    }
  });
  command("sessions.rename", async (node) => {
    const session = sessionOf(node);
    const title =
      session && (await vscode.window.showInputBox({ prompt: "Title of the session", value: session.title }));
    if (session && title) {
      const { context } = await castor.running();
      await context.request("session/set_title", { sessionId: session.sessionId, title });
      tree.refresh();
    }
  });
  command("sessions.fork", async (node) => {
    const session = sessionOf(node);
    if (session) {
      await castor.fork(session.sessionId);
    }
  });
  command("sessions.delete", async (node) => {
    const session = sessionOf(node);
    const sure = "Delete";
    const text = `Delete the session "${session?.title}"?`;
    const options = { modal: true, detail: "Its conversation and its checkpoints are removed." };
    if (session && (await vscode.window.showWarningMessage(text, options, sure)) === sure) {
      const { context } = await castor.running();
      await context.request("session/delete", { sessionId: session.sessionId });
      await castor.forget(session.sessionId);
      tree.refresh();
    }
  });
}
