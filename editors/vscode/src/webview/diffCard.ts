// A change of a file as a card: its name, its counts, its hunks.
import type { DiffView } from "../model/types";
import { button, make } from "./dom";
import { send } from "./host";

const SIGNS = { same: " ", removed: "-", added: "+" } as const;

export function shortPath(path: string): string {
  return path.split(/[\\/]/).slice(-2).join("/");
}

export function counts(added: number, removed: number): HTMLElement {
  return make(
    "span",
    { class: "counts", role: "img", "aria-label": `${added} lines added, ${removed} removed` },
    make("span", { class: "t-added", "aria-hidden": "true" }, `+${added}`),
    " ",
    make("span", { class: "t-removed", "aria-hidden": "true" }, `−${removed}`),
  );
}

export function diffCard(diff: DiffView, callId: string, index: number, open: boolean): HTMLElement {
  const body = make("pre", { class: "diff", tabindex: "0", "aria-label": `Change of ${diff.path}` });
  diff.hunks.forEach((hunk, at) => {
    if (at > 0) {
      body.append(make("span", { class: "row gap" }, "⋯\n"));
    }
    for (const row of hunk.rows) {
      body.append(make("span", { class: `row ${row.kind}` }, `${SIGNS[row.kind]} ${row.text}\n`));
    }
  });
  if (diff.cut) {
    body.append(make("span", { class: "row gap" }, "⋯ the diff editor has the rest\n"));
  }
  const openDiff = button("Open diff", () => send({ type: "openDiff", callId, index }), { class: "link" });
  return make(
    "div",
    { class: "file-change" },
    make(
      "div",
      { class: "file-head" },
      make("span", { title: diff.path }, shortPath(diff.path)),
      counts(diff.added, diff.removed),
      openDiff,
    ),
    open && body,
  );
}
