// Questions of castor that wait for the user: approvals and forms. The first answer counts, wherever it comes from.
import type {
  CreateElicitationRequest,
  CreateElicitationResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from "@agentclientprotocol/sdk";
import { RequestError } from "@agentclientprotocol/sdk";
import { contentText } from "../model/content";
import type { Conversation } from "../model/conversation";
import { type FormValue, formFields, readForm } from "../model/form";
import { diffView } from "../model/hunks";
import type { FormField, FormItem, PermissionItem } from "../model/types";

interface Waiting {
  conversation: Conversation;
  item: PermissionItem | FormItem;
  settle(answer: string, value: unknown): void;
}

export interface QuestionEvents {
  asked(conversation: Conversation, item: PermissionItem | FormItem): void;
  /** An option of this kind is about to be the answer. */
  answering(conversation: Conversation, item: PermissionItem, kind: string): void;
  changed(conversation: Conversation): void;
}

export class Questions {
  private readonly waiting = new Map<string, Waiting>();

  constructor(private readonly events: QuestionEvents) {}

  get count(): number {
    return this.waiting.size;
  }

  /** The approval that a call waits for. */
  ofCall(callId: string): PermissionItem | undefined {
    for (const { item } of this.waiting.values()) {
      if (item.kind === "permission" && item.callId === callId) {
        return item;
      }
    }
    return undefined;
  }

  permission(
    conversation: Conversation,
    params: RequestPermissionRequest,
    signal: AbortSignal,
  ): Promise<RequestPermissionResponse> {
    const call = params.toolCall;
    const content = call.content ?? [];
    // The card of the call shows the change, too: so it can be opened before the answer and after it.
    conversation.apply({ sessionUpdate: "tool_call_update", ...call });
    const item: PermissionItem = {
      kind: "permission",
      id: conversation.newId("permission"),
      callId: call.toolCallId,
      title: call.title ?? conversation.call(call.toolCallId)?.title ?? "May castor do this?",
      text: contentText(content.flatMap((it) => (it.type === "content" ? [it.content] : []))),
      diffs: content.flatMap((it) => (it.type === "diff" ? [diffView(it.path, it.oldText ?? "", it.newText)] : [])),
      options: params.options.map(({ optionId, name, kind }) => ({ id: optionId, name, kind })),
    };
    const none: RequestPermissionResponse = { outcome: { outcome: "cancelled" } };
    return this.ask(conversation, item, signal, none);
  }

  form(
    conversation: Conversation,
    params: CreateElicitationRequest,
    signal: AbortSignal,
  ): Promise<CreateElicitationResponse> {
    const item: FormItem = {
      kind: "form",
      id: conversation.newId("form"),
      message: params.message,
      fields: [],
    };
    if ("requestedSchema" in params) {
      const fields = formFields(params.requestedSchema as Parameters<typeof formFields>[0]);
      if (!fields) {
        throw RequestError.invalidParams(undefined, "The form needs a field of a kind that is not known here.");
      }
      item.fields = fields;
    } else if ("url" in params) {
      item.url = String(params.url);
      const refused = (params._meta?.castor as { authRequired?: { methodId?: string } } | undefined)?.authRequired;
      item.signIn = refused?.methodId !== undefined;
    }
    return this.ask<CreateElicitationResponse>(conversation, item, signal, { action: "cancel" });
  }

  private ask<T>(
    conversation: Conversation,
    item: PermissionItem | FormItem,
    signal: AbortSignal,
    none: T,
  ): Promise<T> {
    return new Promise((resolve) => {
      const settle = (answer: string, value: unknown): void => {
        this.waiting.delete(item.id);
        conversation.touch(item, { answer });
        this.events.changed(conversation);
        resolve(value as T);
      };
      this.waiting.set(item.id, { conversation, item, settle });
      conversation.put(item);
      signal.addEventListener("abort", () => this.waiting.get(item.id)?.settle("Withdrawn", none), { once: true });
      this.events.asked(conversation, item);
      this.events.changed(conversation);
    });
  }

  /** False: nobody waits for it any more. */
  answerPermission(id: string, optionId: string): boolean {
    const it = this.waiting.get(id);
    const option = it?.item.kind === "permission" ? it.item.options.find((o) => o.id === optionId) : undefined;
    if (it?.item.kind !== "permission" || !option) {
      return false;
    }
    this.events.answering(it.conversation, it.item, option.kind);
    it.settle(option.name, { outcome: { outcome: "selected", optionId } } satisfies RequestPermissionResponse);
    return true;
  }

  /** Decides once about a call, from the diff editor. */
  decide(callId: string, accept: boolean): boolean {
    const item = this.ofCall(callId);
    const kind = accept ? "allow_once" : "reject_once";
    const option = item?.options.find((it) => it.kind === kind);
    return item !== undefined && option !== undefined && this.answerPermission(item.id, option.id);
  }

  /** Answers a form. Returns what is wrong with it; nothing: it is sent. */
  answerForm(id: string, accept: boolean, typed: Record<string, FormField["initial"]>): Record<string, string> {
    const it = this.waiting.get(id);
    if (it?.item.kind !== "form") {
      return {};
    }
    if (!accept) {
      it.settle("Declined", { action: "decline" });
      return {};
    }
    const { content, errors } = readForm(it.item.fields, typed);
    if (Object.keys(errors).length === 0) {
      const answer = it.item.url
        ? { action: "accept" }
        : { action: "accept", content: content satisfies Record<string, FormValue> };
      it.settle(it.item.url ? "Opened" : "Sent", answer);
    }
    return errors;
  }

  urlOf(id: string): string | undefined {
    const item = this.waiting.get(id)?.item;
    return item?.kind === "form" ? item.url : undefined;
  }

  /** The agent is gone: nobody takes an answer. */
  withdraw(conversation?: Conversation): void {
    for (const it of [...this.waiting.values()]) {
      if (!conversation || it.conversation === conversation) {
        const none = it.item.kind === "form" ? { action: "cancel" } : { outcome: { outcome: "cancelled" } };
        it.settle("Withdrawn", none);
      }
    }
  }
}
