// Items of the conversation as elements. An item that changes is drawn anew in its place.
import { markdown } from "../model/markdown";
import type {
  CallItem,
  EndItem,
  ImageView,
  Item,
  NoticeItem,
  PermissionItem,
  TextItem,
  UserItem,
} from "../model/types";
import { markedList, unseenPaths } from "../model/unseen";
import { counts, diffCard, shortPath } from "./diffCard";
import { button, html, make } from "./dom";
import { formCard } from "./formCard";
import { send } from "./host";

/** What an item is drawn with. `open` is of the folded part as the user left it. */
export interface Draw {
  open: boolean | undefined;
  canRewind: boolean;
  canFork: boolean;
}

const IMAGE_TYPE = /^image\/(png|jpeg|gif|webp)$/;

function images(list: ImageView[]): HTMLElement[] {
  return list
    .filter((it) => IMAGE_TYPE.test(it.mimeType))
    .map((it) => make("img", { src: `data:${it.mimeType};base64,${it.data}`, alt: "Picture" }));
}

function user(item: UserItem, { canFork }: Draw): HTMLElement {
  const { messageId } = item;
  return make(
    "div",
    { class: "user" },
    make("h2", { class: "hidden" }, "You"),
    make("div", { class: "words" }, item.text),
    ...images(item.images),
    item.chips.length > 0 &&
      make(
        "div",
        { class: "chips" },
        ...item.chips.map((it) => make("span", { class: "chip", title: it.title }, it.label)),
      ),
    messageId !== undefined &&
      canFork &&
      button("Fork from here", () => send({ type: "fork", messageId }), { class: "link quiet" }),
  );
}

function answer(item: TextItem): HTMLElement {
  const element = make(
    "div",
    { class: "answer" },
    make("h2", { class: "hidden" }, "castor"),
    html("div", "markdown", markdown(item.text)),
    ...images(item.images),
  );
  for (const pre of element.querySelectorAll("pre")) {
    const copy = button("Copy", () => void navigator.clipboard.writeText(pre.textContent ?? ""), {
      class: "copy link",
    });
    pre.before(make("div", { class: "code-head" }, make("span", {}, pre.dataset.language ?? ""), copy));
  }
  return element;
}

/** A part that is folded until somebody opens it. */
function folded(className: string, summary: (Node | string)[], body: Node[], open: boolean): HTMLElement {
  return make("details", { class: className, open }, make("summary", {}, ...summary), ...body);
}

function thought(item: TextItem, { open }: Draw): HTMLElement {
  const [, subject = "Thought", rest = item.text] = /^\*\*(.+?)\*\*\s*([\s\S]*)$/.exec(item.text) ?? [];
  return folded("thought", [subject], [html("div", "markdown", markdown(rest))], open === true);
}

const STATUS: Record<CallItem["status"], [string, string]> = {
  pending: ["○", "waits"],
  in_progress: ["◔", "runs"],
  completed: ["✓", "done"],
  failed: ["✗", "failed"],
};

function call(item: CallItem, { open }: Draw): HTMLElement {
  const [sign, word] = STATUS[item.status];
  const added = item.diffs.reduce((sum, it) => sum + it.added, 0);
  const removed = item.diffs.reduce((sum, it) => sum + it.removed, 0);
  const line = [
    make("span", { class: `status ${item.status}`, role: "img", "aria-label": word }, sign),
    make("span", { class: "title" }, item.title),
    ...(item.diffs.length > 0 ? [counts(added, removed)] : []),
  ];
  const { terminalId } = item;
  const body: Node[] = item.diffs.map((it, index) => diffCard(it, item.callId, index, true));
  // The result has the output, too.
  if (item.text !== "" && (item.status !== "in_progress" || item.output === "")) {
    // What was read is shown as it is; the rest is Markdown.
    const plain = item.tool === "read";
    body.push(
      plain
        ? make("pre", { tabindex: "0", "aria-label": "Result" }, item.text)
        : html("div", "markdown result", markdown(item.text)),
    );
  } else if (item.output !== "") {
    body.push(make("pre", { class: "output", tabindex: "0", "aria-label": "Output" }, item.output));
  }
  if (terminalId && item.status === "in_progress") {
    body.push(button("Show terminal", () => send({ type: "terminal", terminalId }), { class: "link" }));
  }
  body.push(...images(item.images), ...places(item));
  // The output of a command that runs is there to be watched.
  return folded(`call ${item.tool}`, line, body, open ?? (item.status === "in_progress" && item.output !== ""));
}

function places(item: CallItem): HTMLElement[] {
  return item.locations.slice(0, 20).map(({ path, line }) => {
    const label = `${shortPath(path)}${line ? `:${line}` : ""}`;
    return button(label, () => send({ type: "openFile", path, ...(line ? { line } : {}) }), {
      class: "link",
      title: path,
    });
  });
}

function permission(item: PermissionItem): HTMLElement {
  if (item.answer !== undefined) {
    return make(
      "div",
      { class: "card answered" },
      make("p", {}, item.title),
      make("p", { class: "about" }, item.answer),
    );
  }
  const buttons = item.options.map((it) =>
    button(it.name, () => send({ type: "permission", id: item.id, optionId: it.id }), {
      class: it.kind === "allow_once" ? "primary" : "",
      "data-kind": it.kind,
    }),
  );
  return make(
    "div",
    { class: "card question", role: "group", "aria-label": `castor asks: ${item.title}` },
    make("p", { class: "title" }, item.title),
    item.text !== "" && html("div", "markdown", markdown(item.text)),
    item.edited === true && make("p", { class: "about" }, "As you edited it in the diff editor:"),
    ...item.diffs.map((it, index) => diffCard(it, item.callId, index, true)),
    make("div", { class: "buttons" }, ...buttons),
  );
}

function notice(item: NoticeItem): HTMLElement {
  const { action } = item;
  return make(
    "div",
    { class: `notice ${item.severity}`, role: item.severity === "error" ? "alert" : "note" },
    make("p", {}, item.title),
    item.text !== "" && make("p", { class: "about" }, item.text),
    action !== undefined &&
      button(action.label, () => send({ type: "command", command: action.command }), { class: "link" }),
  );
}

function end(item: EndItem, { canRewind }: Draw): HTMLElement {
  const { messageId, files } = item;
  const added = files.reduce((sum, it) => sum + it.added, 0);
  const removed = files.reduce((sum, it) => sum + it.removed, 0);
  const names = new Set(files.map((it) => it.path));
  const unseen = unseenPaths(files);
  const undo = (what: "files" | "both") => (): void => {
    if (messageId) {
      send({ type: "undo", messageId, what });
    }
  };
  return make(
    "div",
    { class: "end" },
    item.reason !== "" && make("span", { class: "reason" }, item.reason),
    names.size > 0 &&
      make("span", { title: markedList(files) }, names.size === 1 ? "1 file changed" : `${names.size} files changed`),
    names.size > 0 && counts(added, removed),
    unseen.length > 0 &&
      make(
        "span",
        { class: "unseen", title: `${unseen.join("\n")}\nTo look at them: castor diff, or /looked` },
        `${unseen.length} not looked at`,
      ),
    names.size > 0 && button("Review", () => send({ type: "openTurn", endId: item.id }), { class: "link" }),
    names.size > 0 &&
      canRewind &&
      button("Undo", undo("files"), { class: "link", title: "Files are as before this turn" }),
    names.size > 0 &&
      canRewind &&
      button("Rewind", undo("both"), { class: "link", title: "Files and conversation are as before this turn" }),
    item.cost !== "" && make("span", { class: "cost" }, item.cost),
  );
}

export function drawItem(item: Item, draw: Draw): HTMLElement {
  switch (item.kind) {
    case "user":
      return user(item, draw);
    case "answer":
      return answer(item);
    case "thought":
      return thought(item, draw);
    case "call":
      return call(item, draw);
    case "permission":
      return permission(item);
    case "form":
      return formCard(item);
    case "notice":
      return notice(item);
    case "end":
      return end(item, draw);
  }
}
