// castor's commands for people, run in a terminal: signing in, and checking the installation.
import * as vscode from "vscode";
import { castorCommand } from "./settings";

/** Runs a castor command in a terminal. With `done`, the terminal closes where the command succeeds, and `done` is called. */
export function runInTerminal(
  extension: vscode.Uri,
  name: string,
  args: string[],
  cwd: string,
  done?: () => void,
): void {
  const { program, args: words, env } = castorCommand(extension, args);
  const own = Object.fromEntries(Object.entries(env).filter(([key, value]) => value !== process.env[key]));
  // A shell that stays: what the command printed can be read, and the shell tells where the program is missing.
  const terminal = vscode.window.createTerminal({ name, cwd, env: own });
  terminal.show();
  const line = [program, ...words].map(quoted).join(" ");
  terminal.sendText(done ? `${line} && exit` : line);
  if (done) {
    const heard = vscode.window.onDidCloseTerminal((closed) => {
      if (closed === terminal) {
        heard.dispose();
        // A terminal that the user closes has signed in nobody.
        if (closed.exitStatus?.code === 0) {
          done();
        }
      }
    });
  }
}

function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) {
    return word;
  }
  return process.platform === "win32" ? `"${word.replaceAll('"', '\\"')}"` : `'${word.replaceAll("'", "'\\''")}'`;
}
