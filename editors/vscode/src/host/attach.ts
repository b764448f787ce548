// What the user adds to a prompt: files, the selection, pictures.
import { basename, relative } from "node:path";
import * as vscode from "vscode";
import { type Attachment, bestFits } from "../model/compose";

/** Names that one `@` shows. */
const MOST_NAMES = 30;
const MOST_FILES = 20_000;
/** A picture of more bytes is refused: it would not fit into a request. */
const MOST_IMAGE = 10 * 1024 * 1024;
const MOST_SELECTION = 256 * 1024;

const IMAGES: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
};

export function relativePath(path: string, cwd: string): string {
  const short = relative(cwd, path);
  return short.startsWith("..") ? path : short.split("\\").join("/");
}

export async function fileAttachment(uri: vscode.Uri): Promise<Attachment> {
  const mimeType = IMAGES[uri.path.split(".").at(-1)?.toLowerCase() ?? ""];
  const label = basename(uri.fsPath);
  if (!mimeType) {
    return { kind: "file", label, path: uri.fsPath, uri: uri.toString() };
  }
  const bytes = await vscode.workspace.fs.readFile(uri);
  if (bytes.length > MOST_IMAGE) {
    throw new Error(`${label} is larger than 10 MiB.`);
  }
  return { kind: "image", label, mimeType, data: Buffer.from(bytes).toString("base64") };
}

export function selectionAttachment(editor: vscode.TextEditor): Attachment | undefined {
  const { document, selection } = editor;
  if (selection.isEmpty) {
    return undefined;
  }
  const from = selection.start.line + 1;
  // A selection that ends before the first letter of a line does not have that line.
  const to = Math.max(from, selection.end.character === 0 ? selection.end.line : selection.end.line + 1);
  return {
    kind: "selection",
    label: `${basename(document.uri.fsPath)}:${from}-${to}`,
    uri: `${document.uri.toString()}#L${from}-${to}`,
    text: document.getText(selection).slice(0, MOST_SELECTION),
  };
}

/** The files of the folder by name, for a short while: a search on each key would be slow. */
export class FileNames {
  private names: Promise<string[]> | undefined;

  async find(query: string, cwd: string): Promise<string[]> {
    this.names ??= this.read(cwd);
    return bestFits(await this.names, query, MOST_NAMES);
  }

  private async read(cwd: string): Promise<string[]> {
    setTimeout(() => {
      this.names = undefined;
    }, 10_000);
    const uris = await vscode.workspace.findFiles("**/*", undefined, MOST_FILES);
    return uris.map((uri) => relativePath(uri.fsPath, cwd));
  }
}

export async function pickFiles(): Promise<vscode.Uri[]> {
  return (await vscode.window.showOpenDialog({ canSelectMany: true, openLabel: "Add to the chat" })) ?? [];
}
