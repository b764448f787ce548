// A question as a notification, while the chat is hidden.
import * as vscode from "vscode";
import type { FormItem, PermissionItem } from "../model/types";
import type { Questions } from "./questions";
import { notifiesWhenHidden } from "./settings";

/** More buttons than this do not fit. */
const MOST_BUTTONS = 3;
const SHOW = "Show";

export async function notifyHidden(
  item: PermissionItem | FormItem,
  questions: Questions,
  show: () => Promise<void>,
): Promise<void> {
  if (!notifiesWhenHidden()) {
    return;
  }
  const options = item.kind === "permission" ? item.options.slice(0, MOST_BUTTONS) : [];
  const text = item.kind === "permission" ? `castor asks: ${item.title}` : `castor asks: ${item.message}`;
  const picked = await vscode.window.showInformationMessage(text, ...options.map((it) => it.name), SHOW);
  const option = options.find((it) => it.name === picked);
  if (option) {
    // It may have been answered elsewhere: then nothing happens.
    questions.answerPermission(item.id, option.id);
  } else if (picked === SHOW) {
    await show();
  }
}
