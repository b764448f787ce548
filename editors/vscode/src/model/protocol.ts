// What the extension and the page of the chat say to each other.
import type { Attachment } from "./compose";
import type { FormField, Head, Item } from "./types";

export interface Banner {
  text: string;
  severity: "info" | "error";
  action?: { command: string; label: string };
}

export type ToView =
  | { type: "reset"; sessionId: string; items: Item[]; head: Head; banner?: Banner }
  | { type: "patch"; sessionId: string; items: Item[]; removed: string[]; head?: Head }
  | { type: "banner"; banner?: Banner }
  | { type: "files"; query: string; paths: string[] }
  | { type: "attach"; attachment: Attachment }
  /** A message that could not be sent: it goes back into the field. */
  | { type: "unsent"; text: string; attachments: Attachment[] }
  | { type: "formErrors"; id: string; errors: Record<string, string> }
  | { type: "focus" };

export type FromView =
  | { type: "ready" }
  | { type: "prompt"; text: string; attachments: Attachment[] }
  | { type: "cancel" }
  | { type: "permission"; id: string; optionId: string }
  | { type: "form"; id: string; action: "accept" | "decline"; values: Record<string, FormField["initial"]> }
  /** Signs in, and then accepts the question about a refused key. */
  | { type: "signIn"; id: string }
  | { type: "files"; query: string }
  | { type: "attachFile"; path: string }
  | { type: "attachDropped"; uris: string[] }
  | { type: "pickFile" }
  /** What was dropped or pasted cannot be added. */
  | { type: "refused"; label: string; reason: string }
  | { type: "openDiff"; callId: string; index: number }
  | { type: "openTurn"; endId: string }
  | { type: "openFile"; path: string; line?: number }
  | { type: "openUrl"; url: string }
  | { type: "terminal"; terminalId: string }
  | { type: "option"; id: string }
  | { type: "undo"; messageId: string; what: "files" | "both" }
  | { type: "fork"; messageId: string }
  | { type: "command"; command: string };
