// The text that is being typed: what it completes, and the blocks that a prompt is made of.
import type { ContentBlock } from "@agentclientprotocol/sdk";

/** Something added to a prompt. */
export type Attachment =
  | { kind: "file"; label: string; path: string; uri: string }
  | { kind: "selection"; label: string; uri: string; text: string }
  | { kind: "image"; label: string; mimeType: string; data: string };

export interface Completion {
  kind: "file" | "command";
  /** What is typed of it so far. */
  query: string;
  /** Where it begins in the text: at its `@` or `/`. */
  start: number;
}

/** What is completed at the caret: `@` in front of a word, or `/` at the beginning. */
export function completionAt(text: string, caret: number): Completion | undefined {
  const before = text.slice(0, caret);
  const command = /^\/([\w:.-]*)$/.exec(before);
  if (command) {
    return { kind: "command", query: command[1]!, start: 0 };
  }
  const file = /(?:^|\s)@([^\s@]*)$/.exec(before);
  return file ? { kind: "file", query: file[1]!, start: caret - file[1]!.length - 1 } : undefined;
}

/** Replaces what was typed of a completion. */
export function complete(text: string, caret: number, it: Completion, by: string): { text: string; caret: number } {
  const head = text.slice(0, it.start) + by;
  return { text: head + text.slice(caret), caret: head.length };
}

/** Orders names for a query: the end of the path first, then letters in order. Undefined: it does not fit. */
export function fit(path: string, query: string): number | undefined {
  if (query === "") {
    return path.length;
  }
  const low = path.toLowerCase();
  const wanted = query.toLowerCase();
  const name = low.slice(low.lastIndexOf("/") + 1);
  if (name.startsWith(wanted)) {
    return path.length;
  }
  const inside = low.indexOf(wanted);
  if (inside >= 0) {
    return 1000 + inside + path.length;
  }
  let at = -1;
  for (const char of wanted) {
    at = low.indexOf(char, at + 1);
    if (at < 0) {
      return undefined;
    }
  }
  return 10_000 + at + path.length;
}

/** The best of many paths. */
export function bestFits(paths: string[], query: string, most: number): string[] {
  const found = paths.flatMap((path) => {
    const score = fit(path, query);
    return score === undefined ? [] : [{ path, score }];
  });
  found.sort((a, b) => a.score - b.score || a.path.localeCompare(b.path));
  return found.slice(0, most).map(({ path }) => path);
}

/** The addresses of what was dropped: the editor's own list of them, or the one that all programs know. */
export function droppedUris(read: (type: string) => string): string[] {
  for (const type of ["application/vnd.code.uri-list", "text/uri-list"]) {
    const lines = read(type).split(/\r?\n/);
    const uris = lines.filter((it) => /^(file|vscode-remote):/.test(it));
    if (uris.length > 0) {
      return uris;
    }
  }
  return [];
}

/** The blocks of a prompt. Slash commands stay alone at the beginning. */
export function promptBlocks(text: string, attachments: Attachment[]): ContentBlock[] {
  const blocks: ContentBlock[] = [];
  if (text.trim() !== "") {
    blocks.push({ type: "text", text });
  }
  for (const it of attachments) {
    if (it.kind === "file") {
      blocks.push({ type: "resource_link", name: it.label, uri: it.uri });
    } else if (it.kind === "selection") {
      blocks.push({ type: "resource", resource: { uri: it.uri, text: it.text, mimeType: "text/plain" } });
    } else {
      blocks.push({ type: "image", mimeType: it.mimeType, data: it.data });
    }
  }
  return blocks;
}
