// The chat's page alone: a long conversation, and what axe says of all that it can show.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { accessibility, startBrowser, unfold } from "./harness.mjs";

const here = new URL("..", import.meta.url);
const SCRIPT = readFileSync(new URL("dist/webview.js", here), "utf8");
const STYLE = readFileSync(new URL("media/chat.css", here), "utf8");

const HEAD = {
  title: "A title",
  running: false,
  plan: [],
  options: [{ id: "mode", name: "Mode", value: "Default" }],
  commands: [{ name: "undo", description: "Takes files back", hint: "[turns]" }],
  used: 1000,
  size: 10_000,
  cost: "$0.12",
  canRewind: true,
  canFork: true,
};

let browser;
let page;

before(async () => {
  browser = await startBrowser();
});

after(() => browser?.close());

/** The page, with an editor that only keeps what it is told. */
async function open() {
  page = await browser.newPage({ viewport: { width: 360, height: 800 } });
  await page.setContent(`<!DOCTYPE html><html lang="en"><head><title>castor</title><style>${STYLE}
    :root { --vscode-foreground: #3b3b3b; --vscode-sideBar-background: #f8f8f8; --vscode-descriptionForeground: #595959;
      --vscode-textLink-foreground: #005fb8; --vscode-button-background: #005fb8; --vscode-button-foreground: #ffffff;
      --vscode-button-secondaryBackground: #e5e5e5; --vscode-button-secondaryForeground: #3b3b3b;
      --vscode-input-background: #ffffff; --vscode-input-foreground: #3b3b3b; --vscode-input-placeholderForeground: #6b6b6b;
      --vscode-textCodeBlock-background: #ffffff; --vscode-editorSuggestWidget-background: #ffffff; }</style></head><body></body></html>`);
  await page.evaluate(() => {
    window.sent = [];
    window.acquireVsCodeApi = () => ({
      postMessage: (it) => window.sent.push(it),
      getState: () => undefined,
      setState: () => {},
    });
  });
  await page.addScriptTag({ content: SCRIPT });
}

const post = (message) => page.evaluate((it) => window.postMessage(it, "*"), message);

/** The page with a conversation in it. */
async function openWith(items, head = {}, banner = undefined) {
  await open();
  await post({ type: "reset", sessionId: "s", items, head: { ...HEAD, ...head }, ...(banner ? { banner } : {}) });
}

/** What the editor was told last. */
async function assertSent(expected) {
  assert.deepEqual(await page.evaluate(() => window.sent.at(-1)), expected);
}

function turns(count) {
  const items = [];
  for (let turn = 0; turn < count; turn++) {
    items.push({
      kind: "user",
      id: `u${turn}`,
      messageId: `m${turn}`,
      text: `Question ${turn}`,
      images: [],
      chips: [],
    });
    items.push({ kind: "thought", id: `t${turn}`, text: "**Thinking**\nAbout it.", images: [] });
    items.push({
      kind: "answer",
      id: `a${turn}`,
      text: `Answer ${turn}\n\n- one\n- \`two\`\n\n\`\`\`rust\nlet a = 1;\n\`\`\``,
      images: [],
    });
    items.push({
      kind: "end",
      id: `e${turn}`,
      reason: "",
      messageId: `m${turn}`,
      files: [{ path: "/w/a.md", change: "changed", added: 1, removed: 0 }],
      cost: "",
    });
  }
  return items;
}

test("1,000 turns open fast, scroll to the first, and stay smooth while an answer comes", {
  timeout: 60_000,
}, async () => {
  await open();
  const items = turns(1000);
  const first = await page.evaluate(
    async (message) => {
      const start = performance.now();
      window.postMessage(message, "*");
      await new Promise((resolve) => setTimeout(resolve));
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      return performance.now() - start;
    },
    { type: "reset", sessionId: "s", items, head: HEAD },
  );
  assert.ok(first < 1500, `first picture after ${first} ms`);
  assert.ok(await page.getByText("Answer 999", { exact: true }).isVisible());

  await page.evaluate(async () => {
    const log = document.querySelector(".log");
    for (let step = 0; step < 100 && !document.querySelector('[data-id="u0"]'); step++) {
      log.scrollTop = 0;
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    }
  });
  assert.equal(await page.locator(".item").count(), 4000);

  const frames = await page.evaluate(async () => {
    const log = document.querySelector(".log");
    log.scrollTop = log.scrollHeight;
    const times = [];
    let last = performance.now();
    for (let frame = 0; frame < 60; frame++) {
      const item = { kind: "answer", id: "a999", text: "words of an answer ".repeat(10 + frame), images: [] };
      window.postMessage({ type: "patch", sessionId: "s", items: [item], removed: [] }, "*");
      await new Promise((resolve) => requestAnimationFrame(resolve));
      times.push(performance.now() - last);
      last = performance.now();
    }
    return times.sort((a, b) => a - b);
  });
  const median = frames[30];
  assert.ok(median < 50, `a frame takes ${median} ms`);
  console.log(
    `# 1,000 turns: first picture ${Math.round(first)} ms, a frame while it streams ${Math.round(median)} ms`,
  );
});

const EVERYTHING = [
  {
    kind: "user",
    id: "u",
    messageId: "m",
    text: "Hello",
    images: [{ mimeType: "image/png", data: "iVBORw0KGgo=" }],
    chips: [{ label: "a.md", title: "file:///a.md" }],
  },
  {
    kind: "answer",
    id: "a",
    text: '# Title\n\n|a|b|\n|-|-|\n|1|2|\n\n[link](https://x.example) `code`\n\n```rust\nlet a = "b"; // c\n```',
    images: [],
  },
  {
    kind: "call",
    id: "c",
    callId: "c",
    title: "cargo test",
    tool: "execute",
    status: "in_progress",
    text: "",
    output: "running\n",
    diffs: [],
    images: [],
    locations: [{ path: "/w/a.rs", line: 2 }],
    terminalId: "t1",
  },
  {
    kind: "permission",
    id: "p",
    callId: "c",
    title: "Write a.md",
    text: "no rule",
    diffs: [
      {
        path: "/w/a.md",
        added: 1,
        removed: 1,
        cut: false,
        hunks: [
          {
            oldStart: 1,
            newStart: 1,
            rows: [
              { kind: "removed", text: "a" },
              { kind: "added", text: "b" },
            ],
          },
        ],
      },
    ],
    options: [{ id: "allow_once", name: "Allow", kind: "allow_once" }],
  },
  {
    kind: "form",
    id: "f",
    message: "Which?",
    fields: [
      { name: "a", kind: "text", title: "A", description: "About a", required: true, choices: [], initial: "" },
      {
        name: "b",
        kind: "choices",
        title: "B",
        description: "",
        required: false,
        choices: [{ value: "x", title: "X" }],
        initial: [],
      },
      {
        name: "c",
        kind: "choice",
        title: "C",
        description: "",
        required: true,
        choices: [{ value: "x", title: "X" }],
        initial: "",
      },
      { name: "d", kind: "boolean", title: "D", description: "", required: false, choices: [], initial: false },
    ],
  },
  {
    kind: "notice",
    id: "n",
    severity: "error",
    title: "It failed.",
    text: "Details",
    action: { command: "castor.log", label: "Show the log" },
  },
  {
    kind: "end",
    id: "e",
    reason: "Cancelled.",
    messageId: "m",
    files: [{ path: "/w/a.md", change: "changed", added: 1, removed: 2 }],
    cost: "$0.01",
  },
];

const only = (...kinds) => EVERYTHING.filter((it) => kinds.includes(it.kind));
const with_ = (kind, change) => only(kind).map((it) => ({ ...it, ...change }));
const call = (change) => with_("call", { terminalId: undefined, ...change });
const PLAN = [
  { content: "One", status: "completed" },
  { content: "Two", status: "in_progress" },
  { content: "Three", status: "pending" },
];
const BANNER = { text: "It ended.", severity: "error", action: { command: "castor.restart", label: "Restart" } };
const DIFFS = EVERYTHING.find((it) => it.kind === "permission").diffs;
const image = { mimeType: "image/png", data: "iVBORw0KGgo=" };

/** What the page shows, and what is done there before axe looks. */
const STATES = {
  "everything at once": [EVERYTHING, { running: true, plan: PLAN }, BANNER, () => page.fill("textarea", "/u")],
  "nothing yet": [[], { options: [], commands: [], size: 0 }],
  "a turn runs, with a plan": [only("user"), { running: true, plan: PLAN }],
  "a banner that only tells": [[], {}, { text: "It starts.", severity: "info" }],
  "a banner with help": [[], {}, BANNER],
  "no undo, no fork": [only("user", "end"), { canRewind: false, canFork: false }],
  "a thought": [with_("answer", { kind: "thought", text: "**About it**\nWords." })],
  "a call that waits": [call({ status: "pending", output: "" })],
  "a call that printed": [call({})],
  "a call in a terminal": [only("call")],
  "a call that read": [call({ status: "completed", tool: "read", text: "# not Markdown" })],
  "a call that changed": [call({ status: "completed", tool: "edit", diffs: DIFFS })],
  "a call with a picture": [call({ status: "completed", images: [image] })],
  "a call that failed": [call({ status: "failed", text: "There is no such file." })],
  "a question": [only("permission")],
  "a question about an edited change": [with_("permission", { edited: true })],
  "a long change": [with_("permission", { diffs: DIFFS.map((it) => ({ ...it, cut: true })) })],
  "a question of all kinds of answers": [
    with_("permission", {
      options: ["allow_once", "allow_always", "reject_once"].map((kind) => ({ id: kind, name: kind, kind })),
    }),
  ],
  "an answered question": [with_("permission", { answer: "Allow" })],
  "a form": [only("form")],
  "a form with one choice": [
    with_("form", {
      message: "Do you trust it?\n- a\n- b",
      fields: [
        {
          name: "c",
          kind: "choice",
          title: "C",
          description: "",
          required: true,
          choices: [{ value: "x", title: "X" }],
          initial: "",
        },
      ],
    }),
  ],
  "a form with faults": [
    only("form"),
    {},
    undefined,
    () => post({ type: "formErrors", id: "f", errors: { a: "is needed", c: "is needed" } }),
  ],
  "a form that is a page": [with_("form", { fields: [], url: "https://example.com/login" })],
  "a refused key": [with_("form", { fields: [], url: "https://example.com/keys", signIn: true })],
  "an answered form": [with_("form", { answer: "Sent" })],
  "notices of each severity": [
    ["info", "warning", "error"].flatMap((severity) => with_("notice", { id: severity, severity })),
  ],
  "the end of a turn": [only("end")],
  "files that fit": [
    [],
    {},
    undefined,
    async () => {
      await page.fill("textarea", "@a");
      await post({ type: "files", query: "a", paths: ["a.md", "b/a.rs"] });
    },
  ],
  "commands that fit": [[], {}, undefined, () => page.fill("textarea", "/")],
  "things added to the message": [
    [],
    {},
    undefined,
    () => post({ type: "attach", attachment: { kind: "file", label: "a.md", path: "/a.md", uri: "file:///a.md" } }),
  ],
};

for (const [name, [items, head = {}, banner, act]] of Object.entries(STATES)) {
  test(`axe finds no fault: ${name}`, { timeout: 30_000 }, async () => {
    await openWith(items, head, banner);
    await act?.();
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    await unfold(page);
    const shown = await page.locator(".item").count();
    assert.equal(shown, items.length);
    assert.deepEqual(await accessibility(page.mainFrame()), []);
    await page.close();
  });
}

test("a question is answered with the keyboard alone", { timeout: 30_000 }, async () => {
  await openWith(only("permission"));
  await page.waitForSelector(".card.question");
  for (let press = 0; press < 12; press++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement?.dataset.kind === "allow_once")) {
      break;
    }
  }
  await page.keyboard.press("Enter");
  await assertSent({ type: "permission", id: "p", optionId: "allow_once" });
});

test("a wrong value of a form is named at its field", { timeout: 30_000 }, async () => {
  await openWith(only("form"));
  await page.click('form.card button[type="submit"]');
  await assertSent({ type: "form", id: "f", action: "accept", values: { a: "", b: [], c: "", d: false } });
  await post({ type: "formErrors", id: "f", errors: { a: "is needed" } });
  await page.waitForSelector('.wrong[data-field="a"]:has-text("This is needed.")');
});

test("a picture is pasted into the message", { timeout: 30_000 }, async () => {
  await openWith([]);
  await page.evaluate(() => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array([1, 2, 3])], "shot.png", { type: "image/png" }));
    document
      .querySelector("textarea")
      .dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  await page.waitForSelector('.composer .chip:has-text("shot.png")');
  await page.press("textarea", "Enter");
  await assertSent({
    type: "prompt",
    text: "",
    attachments: [{ kind: "image", label: "shot.png", mimeType: "image/png", data: "AQID" }],
  });
});

test("the page asks for nothing from elsewhere, and text of an answer is no element", { timeout: 30_000 }, async () => {
  await open();
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  const text =
    '<img src="https://evil.example/x.png"> ![x](https://evil.example/y.png) <script>window.hacked = true</script>';
  await post({
    type: "reset",
    sessionId: "s",
    items: [{ kind: "answer", id: "a", text, images: [{ mimeType: "image/svg+xml", data: "PHN2Zy8+" }] }],
    head: HEAD,
  });
  await page.waitForSelector(".answer");
  assert.equal(await page.locator(".answer img, .answer script").count(), 0);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.deepEqual(asked, []);
});
