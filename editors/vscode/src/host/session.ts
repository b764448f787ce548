// One open session: prompts, options, undo. It asks the agent, and tells the conversation.
import type { ClientContext, SessionConfigOption, SessionNotification } from "@agentclientprotocol/sdk";
import { type Attachment, promptBlocks } from "../model/compose";
import { readBlocks } from "../model/content";
import { Conversation } from "../model/conversation";
import { failure } from "../model/errors";
import { optionViews } from "../model/options";
import type { EndItem, UserItem } from "../model/types";
import {
  checkpoints,
  firstMessage,
  type Offers,
  promptMeta,
  type RewindParams,
  type RewindResult,
  rewind,
  steer,
} from "./extensions";

const REASONS: Record<string, string> = {
  end_turn: "",
  cancelled: "Cancelled.",
  max_tokens: "The answer reached the limit of tokens.",
  max_turn_requests: "The turn reached a limit.",
  refusal: "The provider stopped the answer.",
};

export class Session {
  readonly conversation = new Conversation();
  options: SessionConfigOption[] = [];
  /** The chat has shown it: it is open and complete. */
  opened = false;
  private prompts = 0;
  private knownCheckpoints = new Set<string>();

  constructor(
    readonly id: string,
    private readonly agent: ClientContext,
    private readonly offers: Offers,
    private readonly changed: () => void,
  ) {
    this.conversation.setHead({ canRewind: offers.rewind, canFork: offers.fork });
  }

  get running(): boolean {
    return this.prompts > 0;
  }

  setOptions(options: SessionConfigOption[] | null | undefined): void {
    this.options = options ?? this.options;
    this.conversation.setHead({ options: optionViews(this.options) });
    this.changed();
  }

  update({ update }: SessionNotification): void {
    if (update.sessionUpdate === "config_option_update") {
      return this.setOptions(update.configOptions);
    }
    if (update.sessionUpdate === "current_mode_update") {
      const mode = this.options.find((it) => it.category === "mode");
      if (mode?.type === "select") {
        mode.currentValue = update.currentModeId;
      }
      return this.setOptions(this.options);
    }
    this.conversation.apply(update);
    this.changed();
  }

  /** After a load: what its calls had changed is known, and each turn with changes can be taken back. */
  async readHistory(): Promise<void> {
    if (!this.offers.checkpoints) {
      return;
    }
    const byMessage = new Map<string, EndItem["files"]>();
    for (const it of await checkpoints(this.agent, this.id)) {
      this.knownCheckpoints.add(it.id);
      if (it.messageId) {
        byMessage.set(it.messageId, [...(byMessage.get(it.messageId) ?? []), ...it.files]);
      }
    }
    this.conversation.insertEnds(byMessage);
    this.changed();
  }

  async prompt(text: string, attachments: Attachment[]): Promise<void> {
    const blocks = promptBlocks(text, attachments);
    if (blocks.length === 0) {
      return;
    }
    const steering = this.running && this.offers.steering && !text.startsWith("/");
    const item: UserItem = { kind: "user", id: this.conversation.newId("user"), ...readBlocks(blocks), steering };
    this.conversation.put(item);
    this.changed();
    if (steering && (await this.steered(blocks))) {
      return;
    }
    item.steering = false;
    await this.turn(blocks);
  }

  private async steered(blocks: ReturnType<typeof promptBlocks>): Promise<boolean> {
    try {
      return await steer(this.agent, this.id, blocks);
    } catch (error) {
      this.fail(error);
      return true;
    }
  }

  private async turn(prompt: ReturnType<typeof promptBlocks>): Promise<void> {
    this.setRunning(1);
    try {
      const answer = await this.agent.request("session/prompt", { sessionId: this.id, prompt });
      const { streamId, cost } = promptMeta(answer);
      const end = this.conversation.addEnd(REASONS[answer.stopReason] ?? answer.stopReason, cost);
      await this.readTurn(end, streamId).catch(() => {
        // Without it the turn has no undo button; the commands are still there.
      });
    } catch (error) {
      this.fail(error);
    } finally {
      this.setRunning(-1);
    }
  }

  private setRunning(change: 1 | -1): void {
    this.prompts += change;
    this.conversation.setHead({ running: this.running });
    this.changed();
  }

  private async readTurn(end: EndItem, streamId: string | undefined): Promise<void> {
    const messageId = streamId ? await firstMessage(this.agent, this.id, streamId) : undefined;
    if (!messageId || !this.offers.checkpoints) {
      return;
    }
    this.conversation.nameLastUser(messageId);
    const found = (await checkpoints(this.agent, this.id)).filter((it) => !this.knownCheckpoints.has(it.id));
    for (const it of found) {
      this.knownCheckpoints.add(it.id);
    }
    const files = found.filter((it) => it.messageId === messageId).flatMap((it) => it.files);
    this.conversation.setFiles(end, messageId, files);
  }

  cancel(): void {
    if (this.running) {
      void this.agent.notify("session/cancel", { sessionId: this.id });
    }
  }

  async setOption(id: string, value: string | boolean): Promise<void> {
    const params = typeof value === "boolean" ? { type: "boolean" as const, value } : { value };
    const answer = await this.agent.request("session/set_config_option", {
      sessionId: this.id,
      configId: id,
      ...params,
    });
    this.setOptions(answer.configOptions);
  }

  rewind(params: Omit<RewindParams, "sessionId">): Promise<RewindResult> {
    return rewind(this.agent, { ...params, sessionId: this.id });
  }

  /** castor says that this message and all after it are taken back. */
  rewound(messageId: string): void {
    this.conversation.cutAt(messageId);
    this.changed();
  }

  fail(error: unknown): void {
    const { title, text, action } = failure(error);
    this.conversation.addNotice("error", title, text, action);
    this.changed();
  }
}
