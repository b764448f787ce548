// The page of the chat: a banner, the plan, the conversation, and the field for prompts.
import type { Banner, ToView } from "../model/protocol";
import type { Head } from "../model/types";
import { Composer } from "./composer";
import { button, make } from "./dom";
import { send } from "./host";
import { Log } from "./log";

const log = new Log();
const composer = new Composer(() => log.toEnd());
const banner = make("div", { class: "banner", role: "alert", hidden: true });
const plan = make("details", { class: "plan", open: true, hidden: true });
const usage = make("div", { class: "usage" });
const title = make("h1", { class: "hidden" }, "castor");
const empty = make(
  "div",
  { class: "empty" },
  make("p", {}, "Say what you want. castor asks before it changes a file or runs a command."),
  button("Sign in", () => send({ type: "command", command: "castor.login" }), { class: "link" }),
  " or ",
  button("try without a key", () => send({ type: "command", command: "castor.demo" }), { class: "link" }),
);
document.body.append(make("main", {}, title, banner, plan, empty, log.element, usage, composer.element));

let session = "";

function drawBanner(it: Banner | undefined): void {
  banner.hidden = !it;
  banner.replaceChildren();
  if (it) {
    banner.className = `banner ${it.severity}`;
    banner.append(make("p", {}, it.text));
    const { action } = it;
    if (action) {
      banner.append(button(action.label, () => send({ type: "command", command: action.command })));
    }
  }
}

const SIGNS: Record<string, [string, string]> = {
  completed: ["☑", "done"],
  in_progress: ["◧", "in progress"],
  pending: ["☐", "to do"],
};

function drawPlan(head: Head): void {
  plan.hidden = head.plan.length === 0;
  const done = head.plan.filter((it) => it.status === "completed").length;
  const rows = head.plan.map((it) => {
    const [sign, word] = SIGNS[it.status] ?? SIGNS.pending!;
    return make("li", { class: it.status }, make("span", { role: "img", "aria-label": word }, sign), ` ${it.content}`);
  });
  plan.replaceChildren(make("summary", {}, `Plan: ${done} of ${head.plan.length}`), make("ul", {}, ...rows));
}

function drawUsage(head: Head): void {
  if (head.size === 0) {
    usage.replaceChildren();
    return;
  }
  const percent = Math.round((head.used / head.size) * 100);
  const label = `${head.used.toLocaleString("en")} of ${head.size.toLocaleString("en")} tokens of context`;
  const meter = make("progress", {
    max: String(head.size),
    value: String(head.used),
    "aria-label": label,
    title: label,
  });
  usage.replaceChildren(meter, make("span", {}, [`${percent}%`, head.cost].filter(Boolean).join(" · ")));
}

function drawHead(head: Head): void {
  title.textContent = head.title || "castor";
  log.element.setAttribute("aria-busy", String(head.running));
  drawPlan(head);
  drawUsage(head);
  composer.setHead(head);
}

function showEmpty(): void {
  empty.hidden = log.size > 0;
}

function receive(message: ToView): void {
  switch (message.type) {
    case "reset":
      session = message.sessionId;
      drawHead(message.head);
      log.reset(message.items, message.head);
      showEmpty();
      return drawBanner(message.banner);
    case "patch":
      if (message.sessionId !== session) {
        return;
      }
      if (message.head) {
        drawHead(message.head);
      }
      log.patch(message.items, message.removed);
      return showEmpty();
    case "banner":
      return drawBanner(message.banner);
    case "files":
      return composer.setFiles(message.query, message.paths);
    case "attach":
      return composer.attach(message.attachment);
    case "unsent":
      return composer.restore(message.text, message.attachments);
    case "formErrors":
      return log.formErrors(message.id, message.errors);
    case "focus":
      return composer.focus();
  }
}

/** The path of a link, which may have `%20` in place of a space. */
function decoded(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/** Links of answers: the page itself goes nowhere. */
document.addEventListener("click", (event) => {
  const link = (event.target as Element).closest("a");
  if (!link) {
    return;
  }
  event.preventDefault();
  const file = link.dataset.file;
  if (file) {
    send({ type: "openFile", path: decoded(file) });
  } else {
    send({ type: "openUrl", url: link.href });
  }
});

window.addEventListener("message", (event: MessageEvent<ToView>) => receive(event.data));
send({ type: "ready" });
