// The castor process of this window, and the connection to it.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import type * as vscode from "vscode";
import type { Command } from "./settings";

/** How long castor may take to end after the end of its input. */
const END_MS = 3000;
/** What of stderr is told where castor ends by itself. */
const MOST_STDERR = 4000;

export interface AgentEnd {
  /** For people: why there is no agent any more. */
  reason: string;
}

export class Agent {
  private ended = false;
  private stopping = false;
  private stderr = "";

  private constructor(
    private readonly child: ChildProcess,
    private readonly connection: acp.ClientConnection,
    readonly capabilities: acp.InitializeResponse,
  ) {}

  get context(): acp.ClientContext {
    return this.connection.agent;
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  get alive(): boolean {
    return !this.ended;
  }

  /** Starts castor and shakes hands. `onEnd` is called once, if castor ends without being asked to. */
  static async start(
    command: Command,
    cwd: string,
    client: acp.ClientApp,
    request: acp.InitializeRequest,
    log: vscode.LogOutputChannel,
    onEnd: (end: AgentEnd) => void,
  ): Promise<Agent> {
    log.info(`starts ${command.program} ${command.args.join(" ")} (from ${command.origin}) in ${cwd}`);
    const child = spawn(command.program, command.args, { cwd, env: command.env, stdio: ["pipe", "pipe", "pipe"] });
    await once(child, "spawn");
    // castor may be gone before it read everything: the exit says so.
    child.stdin.on("error", () => {});
    const output = Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>;
    const connection = client.connect(acp.ndJsonStream(Writable.toWeb(child.stdin), output));
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(-MOST_STDERR);
      log.info(text.trimEnd());
    });
    const exit = once(child, "exit").then(([code, signal]) => `castor ended (${signal ?? `exit code ${code}`}).`);
    const capabilities = await Promise.race([
      connection.agent.request(acp.methods.agent.initialize, request),
      exit.then((reason) => Promise.reject(new Error([reason, stderr.trim()].filter(Boolean).join("\n")))),
    ]);
    const agent = new Agent(child, connection, capabilities);
    void exit.then((reason) => {
      agent.ended = true;
      agent.stderr = stderr;
      connection.close();
      log.info(reason);
      if (!agent.stopping) {
        onEnd({ reason: [reason, agent.stderr.trim()].filter(Boolean).join("\n") });
      }
    });
    return agent;
  }

  /** Ends castor: at the end of its input it ends by itself, and else it is killed. */
  async stop(): Promise<void> {
    this.stopping = true;
    if (this.ended) {
      return;
    }
    const gone = once(this.child, "exit");
    this.child.stdin?.end();
    const late = setTimeout(() => this.child.kill("SIGKILL"), END_MS);
    await gone;
    clearTimeout(late);
  }
}
