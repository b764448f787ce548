// terminal/*: commands that castor runs in the editor. A pseudoterminal shows each on demand.
import { type ChildProcess, spawn } from "node:child_process";
import { StringDecoder } from "node:string_decoder";
import {
  type CreateTerminalRequest,
  RequestError,
  type TerminalExitStatus,
  type TerminalOutputResponse,
} from "@agentclientprotocol/sdk";
import * as vscode from "vscode";
import { lastBytes } from "../model/lines";

/** Kept of the output, where castor names no limit. */
const MOST_OUTPUT = 1024 * 1024;

interface Running {
  child: ChildProcess;
  title: string;
  output: string;
  cut: boolean;
  limit: number;
  exit: Promise<TerminalExitStatus>;
  ended?: TerminalExitStatus;
  printed: vscode.EventEmitter<string>;
  closed: vscode.EventEmitter<number>;
}

export class Terminals implements vscode.Disposable {
  private readonly running = new Map<string, Running>();
  private count = 0;

  constructor(private readonly onPrinted: (sessionId: string, terminalId: string, text: string) => void) {}

  create(params: CreateTerminalRequest): { terminalId: string } {
    const env = { ...process.env };
    for (const { name, value } of params.env ?? []) {
      env[name] = value;
    }
    // Without arguments the command is a line for a shell. A group of its own, so that all of it can be ended.
    const args = params.args ?? [];
    const options = { cwd: params.cwd ?? undefined, env, detached: process.platform !== "win32" };
    const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];
    const child = spawn(params.command, args, { ...options, stdio, shell: args.length === 0 });
    // Unique also for a session that is loaded into another window later.
    const terminalId = `vscode-${process.pid}-${++this.count}`;
    const title = [params.command, ...args].join(" ");
    const told = (text: string): void => this.onPrinted(params.sessionId, terminalId, text);
    this.running.set(terminalId, watch(child, title, params.outputByteLimit ?? MOST_OUTPUT, told));
    return { terminalId };
  }

  private get(terminalId: string): Running {
    const it = this.running.get(terminalId);
    if (!it) {
      throw RequestError.resourceNotFound(`terminal ${terminalId}`);
    }
    return it;
  }

  output(terminalId: string): TerminalOutputResponse {
    const it = this.get(terminalId);
    return { output: it.output, truncated: it.cut, exitStatus: it.ended ?? null };
  }

  waitForExit(terminalId: string): Promise<TerminalExitStatus> {
    return this.get(terminalId).exit;
  }

  kill(terminalId: string): Record<string, never> {
    end(this.get(terminalId));
    return {};
  }

  release(terminalId: string): Record<string, never> {
    end(this.get(terminalId));
    this.running.delete(terminalId);
    return {};
  }

  /** Shows a command in the editor's panel. False: it is gone. */
  show(terminalId: string): boolean {
    const it = this.running.get(terminalId);
    if (!it) {
      return false;
    }
    const lines = (text: string): string => text.replace(/\r?\n/g, "\r\n");
    const written = new vscode.EventEmitter<string>();
    const heard = it.printed.event((text) => written.fire(lines(text)));
    const pty: vscode.Pseudoterminal = {
      onDidWrite: written.event,
      open: () => written.fire(lines(it.output)),
      // Only a view: closing it does not end the command.
      close: () => heard.dispose(),
    };
    vscode.window.createTerminal({ name: it.title.slice(0, 40), pty }).show();
    return true;
  }

  dispose(): void {
    for (const it of this.running.values()) {
      end(it);
    }
    this.running.clear();
  }
}

function watch(child: ChildProcess, title: string, limit: number, told: (text: string) => void): Running {
  const printed = new vscode.EventEmitter<string>();
  const closed = new vscode.EventEmitter<number>();
  const exit = new Promise<TerminalExitStatus>((resolve) => {
    child.once("error", (error) => {
      add(`${error.message}\n`);
      resolve({ exitCode: 127, signal: null });
    });
    child.once("close", (exitCode, signal) => resolve({ exitCode, signal }));
  });
  const it: Running = { child, title, output: "", cut: false, limit, exit, printed, closed };
  const add = (text: string): void => {
    const kept = lastBytes(it.output + text, it.limit);
    it.output = kept.text;
    it.cut ||= kept.cut;
    printed.fire(text);
    told(text);
  };
  for (const stream of [child.stdout, child.stderr]) {
    const decoder = new StringDecoder("utf8");
    stream?.on("data", (bytes: Buffer) => add(decoder.write(bytes)));
  }
  void exit.then((status) => {
    it.ended = status;
    closed.fire(status.exitCode ?? 1);
  });
  return it;
}

function end({ child, ended }: Running): void {
  if (ended || child.pid === undefined) {
    return;
  }
  try {
    process.kill(process.platform === "win32" ? child.pid : -child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL");
  }
}
