// The page's end of the line to the extension, and what it keeps while it is hidden.
import type { FromView } from "../model/protocol";

interface Kept {
  draft?: string;
}

interface Api {
  postMessage(message: FromView): void;
  getState(): Kept | undefined;
  setState(state: Kept): void;
}

declare function acquireVsCodeApi(): Api;

const api = acquireVsCodeApi();

export function send(message: FromView): void {
  api.postMessage(message);
}

export function keptDraft(): string {
  return api.getState()?.draft ?? "";
}

export function keepDraft(draft: string): void {
  api.setState({ draft });
}
