// castor in this window: its process, its open sessions, and which of them the chat shows.
import { homedir } from "node:os";
import * as acp from "@agentclientprotocol/sdk";
import * as vscode from "vscode";
import type { Conversation } from "../model/conversation";
import { failure } from "../model/errors";
import type { Banner } from "../model/protocol";
import { EDITOR_SERVER } from "../model/tools";
import { Agent } from "./agent";
import { clientApp, folders, initializeRequest } from "./client";
import { editorTools } from "./editorTools";
import { type Offers, offersOf } from "./extensions";
import type { Proposals } from "./proposals";
import type { Questions } from "./questions";
import { Session } from "./session";
import { agentCommand, passesEditorTools } from "./settings";
import type { Terminals } from "./terminals";

const LAST = "castor.session";
/** A window that is loaded anew begins while the old one's castor ends: it still has the session open. */
const LOCKED_TRIES = 12;
const LOCKED_MS = 400;

/** Names in the conditions of menus. */
const CONTEXTS: [string, keyof Offers][] = [
  ["canFork", "fork"],
  ["canRename", "rename"],
  ["canDelete", "delete"],
  ["canRewind", "rewind"],
];

export class Castor {
  private agent: Promise<Agent> | undefined;
  private opening: Promise<void> | undefined;
  private readonly sessions = new Map<string, Session>();
  private readonly changes = new vscode.EventEmitter<Session>();
  private readonly switches = new vscode.EventEmitter<void>();
  readonly onChange = this.changes.event;
  /** Another session is shown, or this one from the beginning, or there is another banner. */
  readonly onSwitch = this.switches.event;
  current: Session | undefined;
  banner: Banner | undefined;
  offers: Offers | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    private readonly questions: Questions,
    private readonly terminals: Terminals,
    private readonly proposals: Proposals,
  ) {}

  get cwd(): string {
    return folders(homedir()).cwd;
  }

  /** It ended by itself, or could not start. */
  get down(): boolean {
    return this.agent === undefined && this.banner?.severity === "error";
  }

  conversationOf(id: string): Conversation | undefined {
    return this.sessions.get(id)?.conversation;
  }

  /** The session that is shown takes prompts. */
  get ready(): boolean {
    return this.current !== undefined && this.sessions.has(this.current.id);
  }

  /** The running agent; starts it, if there is none. */
  running(): Promise<Agent> {
    this.agent ??= this.start().catch((error) => {
      this.agent = undefined;
      throw error;
    });
    return this.agent;
  }

  private async start(): Promise<Agent> {
    const version = String(this.context.extension.packageJSON.version);
    const client = clientApp({
      terminals: this.terminals,
      questions: this.questions,
      proposals: this.proposals,
      // Updates may come before the answer that opens their session.
      session: (id, agent) => this.sessions.get(id) ?? this.keep(id, agent),
    });
    const agent = await Agent.start(
      agentCommand(this.context.extensionUri),
      this.cwd,
      client,
      initializeRequest(version),
      this.log,
      ({ reason }) => this.ended(reason),
    );
    this.offers = offersOf(agent.capabilities);
    for (const [name, offer] of CONTEXTS) {
      void vscode.commands.executeCommand("setContext", `castor.${name}`, this.offers[offer]);
    }
    return agent;
  }

  private keep(id: string, agent: acp.ClientContext): Session {
    if (!this.offers) {
      throw acp.RequestError.resourceNotFound(id);
    }
    const session: Session = new Session(id, agent, this.offers, () => this.changes.fire(session));
    this.sessions.set(id, session);
    return session;
  }

  private ended(reason: string): void {
    this.agent = undefined;
    this.questions.withdraw();
    this.sessions.clear();
    this.setBanner({ severity: "error", text: reason, action: { command: "castor.restart", label: "Restart" } });
  }

  private setBanner(banner: Banner | undefined): void {
    this.banner = banner;
    this.switches.fire();
  }

  private show(session: Session): void {
    this.current = session;
    session.opened = true;
    this.banner = undefined;
    void this.context.workspaceState.update(LAST, session.id);
    this.switches.fire();
  }

  /** A question of this conversation came or went. */
  touched(conversation: Conversation): void {
    const session = [...this.sessions.values()].find((it) => it.conversation === conversation);
    if (session) {
      this.changes.fire(session);
    }
  }

  /** A command of a session printed this in a terminal of the editor. */
  printed(sessionId: string, terminalId: string, text: string): void {
    const session = this.sessions.get(sessionId);
    if (session) {
      session.conversation.printed(terminalId, text);
      this.changes.fire(session);
    }
  }

  /** The session that the window had, or a new one. Called as often as one likes. */
  begin(): Promise<void> {
    const last = this.current?.id ?? this.context.workspaceState.get<string>(LAST);
    return this.inTurn(async () => {
      if (this.ready) {
        return;
      }
      if (!last || !(await this.tryLoad(last))) {
        await this.create();
      }
    });
  }

  /** One after the other: what the user chooses while a session opens is opened next. */
  private inTurn(open: () => Promise<void>): Promise<void> {
    const opening = (this.opening ?? Promise.resolve())
      .then(open)
      .catch((error) => this.failed(error))
      .finally(() => {
        if (this.opening === opening) {
          this.opening = undefined;
        }
      });
    this.opening = opening;
    return opening;
  }

  private failed(error: unknown): void {
    const { title, text, action } = failure(error);
    this.log.error(title, text);
    this.setBanner({ severity: "error", text: [title, text].filter(Boolean).join(" "), ...(action ? { action } : {}) });
  }

  /** False: the session is gone, or another castor keeps it. */
  private async tryLoad(id: string): Promise<boolean> {
    for (let attempt = 0; attempt < LOCKED_TRIES; attempt++) {
      try {
        await this.load(id);
        return true;
      } catch (error) {
        const { kind } = failure(error);
        if (kind !== "locked" && kind !== "not_found") {
          throw error;
        }
        if (kind === "not_found") {
          return false;
        }
        await new Promise((resolve) => setTimeout(resolve, LOCKED_MS));
      }
    }
    return false;
  }

  private params(): acp.NewSessionRequest {
    const tools = passesEditorTools() && this.offers?.editorTools === true && editorTools.tools().length > 0;
    const server = { type: "acp", name: "vscode", serverId: EDITOR_SERVER } as unknown as acp.McpServer;
    return { ...folders(homedir()), mcpServers: tools ? [server] : [] };
  }

  private async create(): Promise<void> {
    const { context } = await this.running();
    const answer = await context.request("session/new", this.params());
    const session = this.sessions.get(answer.sessionId) ?? this.keep(answer.sessionId, context);
    session.setOptions(answer.configOptions);
    this.show(session);
  }

  private async load(id: string): Promise<void> {
    const { context } = await this.running();
    const session = this.keep(id, context);
    try {
      const answer = await context.request("session/load", { sessionId: id, ...this.params() });
      session.setOptions(answer.configOptions);
      await session.readHistory();
    } catch (error) {
      this.sessions.delete(id);
      throw error;
    }
    this.show(session);
  }

  new(): Promise<void> {
    return this.inTurn(() => this.create());
  }

  open(id: string): Promise<void> {
    return this.inTurn(async () => {
      const known = this.sessions.get(id);
      if (known?.opened) {
        this.show(known);
      } else {
        await this.load(id);
      }
    });
  }

  /** A copy of a session, up to a message of it. */
  fork(id: string, messageId?: string): Promise<void> {
    return this.inTurn(async () => {
      const { context } = await this.running();
      const at = messageId ? { _meta: { castor: { fork: { messageId } } } } : {};
      const fork = await context.request<{ sessionId: string }>("session/fork", {
        sessionId: id,
        ...this.params(),
        ...at,
      });
      // The answer has no history: the copy is loaded like any other.
      await context.request("session/close", { sessionId: fork.sessionId });
      await this.load(fork.sessionId);
    });
  }

  /** Closes what is shown of a session, and the session where it is open. */
  async forget(id: string): Promise<void> {
    this.sessions.delete(id);
    if (this.current?.id === id) {
      this.current = undefined;
      await this.context.workspaceState.update(LAST, undefined);
      await this.new();
    }
  }

  async restart(): Promise<void> {
    await this.opening;
    await this.stop();
    await this.begin();
  }

  async stop(): Promise<void> {
    const agent = await this.agent?.catch(() => undefined);
    this.agent = undefined;
    this.questions.withdraw();
    this.sessions.clear();
    await agent?.stop();
  }
}
