// Changes that the user edited before accepting them, until castor writes them: the editor writes the edited text.
import { RequestError, type WriteTextFileRequest } from "@agentclientprotocol/sdk";
import type { Conversation } from "../model/conversation";
import { sameText, unifiedDiff } from "../model/hunks";

/** Lines of a difference that the model is told; it can read the file. */
const MOST_TOLD = 200;

export interface Proposal {
  conversation: Conversation;
  callId: string;
  path: string;
  /** What castor proposed. */
  shown: string;
  /** What the user made of it. */
  text: string;
}

export class Proposals {
  private waiting: Proposal[] = [];

  expect(proposal: Proposal): void {
    this.waiting.push(proposal);
  }

  /** The proposal that castor writes now. Throws where it writes something else: then nobody has seen that. */
  take({ path, content }: WriteTextFileRequest, conversation: Conversation): Proposal | undefined {
    this.forgetEnded();
    // A file behind a link has another name here than in the question.
    const at = this.waiting.findIndex(
      (it) => it.conversation === conversation && (it.path === path || sameText(it.shown, content)),
    );
    const [proposal] = at < 0 ? [] : this.waiting.splice(at, 1);
    if (proposal && !sameText(proposal.shown, content)) {
      throw RequestError.internalError({ path }, "This is not the change that the user saw and edited.");
    }
    return proposal;
  }

  /** Takes away what a call that is over has not written through the editor; returns it. */
  private forgetEnded(): Proposal[] {
    const isOver = ({ conversation, callId }: Proposal): boolean =>
      ["completed", "failed"].includes(conversation.call(callId)?.status ?? "failed");
    const over = this.waiting.filter(isOver);
    this.waiting = this.waiting.filter((it) => !over.includes(it));
    return over;
  }

  /** Says so where castor wrote a whole change by itself, such as that of a file in another encoding. */
  check(): void {
    for (const { conversation, callId, path } of this.forgetEnded()) {
      if (conversation.call(callId)?.status === "completed") {
        conversation.addNotice(
          "error",
          `castor wrote ${path} as it proposed it, without your edits.`,
          "It writes files that are not text in UTF-8 by itself. Undo takes the turn back.",
        );
      }
    }
  }
}

/** What the model is told: its call ended well, but the file has another text. */
export function editedWords({ path, shown, text }: Proposal): string {
  return [
    `I edited your change of ${path} before I accepted it. From your text to what the file has now:`,
    "```diff",
    unifiedDiff(shown, text, MOST_TOLD),
    "```",
    "Keep it that way.",
  ].join("\n");
}
