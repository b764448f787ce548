// Marks of files that an agent wrote and nobody looked at.
import type { ChangedFile } from "./types";

export const MARK = "written by an agent, not looked at";

/** Paths with the mark, each once. The newest change of a path tells: each says how the file is now. */
export function unseenPaths(files: ChangedFile[]): string[] {
  const byPath = new Map(files.map((it) => [it.path, it.unseen === true]));
  return [...byPath].filter(([, unseen]) => unseen).map(([path]) => path);
}

/** All paths, a line each, with the marks. */
export function markedList(files: ChangedFile[]): string {
  const unseen = new Set(unseenPaths(files));
  const paths = [...new Set(files.map((it) => it.path))];
  return paths.map((it) => (unseen.has(it) ? `${it}: ${MARK}` : it)).join("\n");
}

/** The title of a review, with the names of the files that have the mark. */
export function reviewTitle(title: string, unseen: string[], name: (path: string) => string): string {
  return unseen.length > 0 ? `${title}, not looked at: ${unseen.map((it) => name(it)).join(", ")}` : title;
}
