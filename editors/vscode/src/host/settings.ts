// The extension's settings, and which castor program it starts.
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";

export interface Command {
  program: string;
  args: string[];
  env: NodeJS.ProcessEnv;
  /** Where the program comes from, for the log. */
  origin: string;
}

function setting<T>(name: string, otherwise: T): T {
  return vscode.workspace.getConfiguration("castor").get<T>(name) ?? otherwise;
}

export function notifiesWhenHidden(): boolean {
  return setting("notifyWhenHidden", true);
}

export function passesEditorTools(): boolean {
  return setting("editorTools", true);
}

function programOf(extension: vscode.Uri): { program: string; origin: string } {
  const chosen = setting("path", "").trim();
  if (chosen !== "") {
    return { program: chosen, origin: "the setting castor.path" };
  }
  const bundled = join(extension.fsPath, "bin", process.platform === "win32" ? "castor.exe" : "castor");
  return existsSync(bundled)
    ? { program: bundled, origin: "this extension" }
    : { program: "castor", origin: "the PATH" };
}

const DEMO = ["-m", "demo"];

/** Whether the demo model answers: from the next start of the agent on. */
export async function useDemo(on: boolean): Promise<void> {
  const args = setting<string[]>("args", []);
  const isDemo = args.join(" ") === DEMO.join(" ");
  // Arguments that somebody chose stay.
  if (on ? args.length === 0 : isDemo) {
    const value = on ? DEMO : undefined;
    await vscode.workspace.getConfiguration("castor").update("args", value, vscode.ConfigurationTarget.Global);
  }
}

/** castor with arguments, as the settings say. */
export function castorCommand(extension: vscode.Uri, args: string[]): Command {
  const env: NodeJS.ProcessEnv = { ...process.env, ...setting<Record<string, string>>("env", {}) };
  // A restricted folder: castor trusts it no more than the editor does. Otherwise castor decides and asks itself.
  if (!vscode.workspace.isTrusted) {
    env.CASTOR_TRUST_WORKSPACE = "false";
  }
  return { ...programOf(extension), args, env };
}

export function agentCommand(extension: vscode.Uri): Command {
  return castorCommand(extension, ["acp", ...setting<string[]>("args", [])]);
}
