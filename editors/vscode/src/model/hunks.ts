// The difference of two texts by lines, as hunks with some lines around each.
import type { DiffRow, DiffView, Hunk } from "./types";

const CONTEXT = 3;
/** Further apart than this, two texts are shown as one replaced by the other. */
const MOST_EDITS = 1500;
/** Rows that a card shows; the diff editor has all. */
export const MOST_ROWS = 120;

function lines(text: string): string[] {
  if (text === "") {
    return [];
  }
  const parts = text.split("\n");
  if (parts.at(-1) === "") {
    parts.pop();
  }
  return parts;
}

/** The furthest x of each diagonal, after each number of edits; undefined if the texts are too different. */
function trace(a: string[], b: string[]): Int32Array[] | undefined {
  const most = Math.min(a.length + b.length, MOST_EDITS);
  const offset = most + 1;
  const reach = new Int32Array(2 * offset + 1);
  const history: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits++) {
    history.push(reach.slice());
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && reach[offset + k - 1]! < reach[offset + k + 1]!);
      let x = down ? reach[offset + k + 1]! : reach[offset + k - 1]! + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) {
        x++;
      }
      reach[offset + k] = x;
      if (x >= a.length && x - k >= b.length) {
        return history;
      }
    }
  }
  return undefined;
}

/** Myers' shortest edit, read backwards from its end. */
function shortest(a: string[], b: string[]): DiffRow[] | undefined {
  const history = trace(a, b);
  if (!history) {
    return undefined;
  }
  const offset = Math.min(a.length + b.length, MOST_EDITS) + 1;
  const rows: DiffRow[] = [];
  let x = a.length;
  let y = b.length;
  for (let edits = history.length - 1; edits >= 0; edits--) {
    const reach = history[edits]!;
    const k = x - y;
    const down = k === -edits || (k !== edits && reach[offset + k - 1]! < reach[offset + k + 1]!);
    const before = edits === 0 ? 0 : down ? reach[offset + k + 1]! : reach[offset + k - 1]!;
    const above = edits === 0 ? 0 : before - (down ? k + 1 : k - 1);
    while (x > before && y > above) {
      rows.push({ kind: "same", text: a[--x]! });
      y--;
    }
    if (edits > 0) {
      rows.push(down ? { kind: "added", text: b[--y]! } : { kind: "removed", text: a[--x]! });
    }
  }
  return rows.reverse();
}

/** All rows of the difference. */
export function diffRows(before: string, after: string): DiffRow[] {
  const a = lines(before);
  const b = lines(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) {
    start++;
  }
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) {
    end++;
  }
  const middleA = a.slice(start, a.length - end);
  const middleB = b.slice(start, b.length - end);
  const middle: DiffRow[] = shortest(middleA, middleB) ?? [
    ...middleA.map((text): DiffRow => ({ kind: "removed", text })),
    ...middleB.map((text): DiffRow => ({ kind: "added", text })),
  ];
  const same = (text: string): DiffRow => ({ kind: "same", text });
  return [...a.slice(0, start).map(same), ...middle, ...a.slice(a.length - end).map(same)];
}

/** Groups rows: changes with CONTEXT lines around them, merged where they touch. */
export function hunks(rows: DiffRow[]): Hunk[] {
  const found: Hunk[] = [];
  let current: Hunk | undefined;
  let sinceChange = 0;
  let oldLine = 1;
  let newLine = 1;
  rows.forEach((row, index) => {
    const near = row.kind !== "same" || rows.slice(index + 1, index + 1 + CONTEXT).some((it) => it.kind !== "same");
    sinceChange = row.kind === "same" ? sinceChange + 1 : 0;
    if (!current && near) {
      current = { oldStart: oldLine, newStart: newLine, rows: [] };
      found.push(current);
    }
    if (current && (near || sinceChange <= CONTEXT)) {
      current.rows.push(row);
    } else {
      current = undefined;
    }
    oldLine += row.kind === "added" ? 0 : 1;
    newLine += row.kind === "removed" ? 0 : 1;
  });
  return found;
}

/** Whether two texts differ in nothing but the ends of their lines, which an editor makes alike. */
export function sameText(a: string, b: string): boolean {
  const plain = (text: string): string => text.replace(/^\ufeff/, "").replaceAll("\r\n", "\n");
  return plain(a) === plain(b);
}

const SIGNS = { same: " ", removed: "-", added: "+" } as const;

/** The difference as text, at most `most` lines. */
export function unifiedDiff(before: string, after: string, most: number): string {
  const plain = (text: string): string => text.replaceAll("\r\n", "\n");
  const lines = hunks(diffRows(plain(before), plain(after))).flatMap(({ oldStart, newStart, rows }) => {
    const count = (kind: DiffRow["kind"]): number => rows.filter((row) => row.kind !== kind).length;
    const head = `@@ -${oldStart},${count("added")} +${newStart},${count("removed")} @@`;
    return [head, ...rows.map((row) => `${SIGNS[row.kind]}${row.text}`)];
  });
  return (lines.length > most ? [...lines.slice(0, most), "…"] : lines).join("\n");
}

const indentation = (text: string): string => /^[ \t]*/.exec(text)![0];

/** The rows, with an arrow at each tab that lines begin with, where lines that come begin otherwise than those that go. */
export function withTabsShown(rows: DiffRow[]): DiffRow[] {
  const shown = [...rows];
  for (let from = 0; from < rows.length; from++) {
    let to = from;
    while (to < rows.length && rows[to]!.kind !== "same") {
      to++;
    }
    const indents = (kind: DiffRow["kind"]): Set<string> =>
      new Set(
        rows
          .slice(from, to)
          .filter((row) => row.kind === kind && row.text.trim() !== "")
          .map((row) => indentation(row.text)),
      );
    const [removed, added] = [indents("removed"), indents("added")];
    const isChanged = [...removed].some((it) => !added.has(it)) || [...added].some((it) => !removed.has(it));
    if (removed.size > 0 && added.size > 0 && isChanged) {
      for (let at = from; at < to; at++) {
        const { kind, text } = rows[at]!;
        const indent = indentation(text);
        shown[at] = { kind, text: indent.replaceAll("\t", "→\t") + text.slice(indent.length) };
      }
    }
    from = to;
  }
  return shown;
}

/** What a card shows of a change. */
export function diffView(path: string, before: string, after: string): DiffView {
  const rows = withTabsShown(diffRows(before, after));
  let left = MOST_ROWS;
  const shown: Hunk[] = [];
  for (const hunk of hunks(rows)) {
    if (left <= 0) {
      break;
    }
    shown.push({ ...hunk, rows: hunk.rows.slice(0, left) });
    left -= hunk.rows.length;
  }
  return {
    path,
    added: rows.filter((row) => row.kind === "added").length,
    removed: rows.filter((row) => row.kind === "removed").length,
    hunks: shown,
    cut: left < 0,
  };
}
