// The first minutes in a real editor: the walkthrough with doctor and sign-in, and what a folder is trusted with.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before } from "node:test";
import { accessibility, castors, folder, HOME, setArgs, startEditor, until, WORK } from "./harness.mjs";

const KEY = "AIza-a-key-for-this-test-0123456789abcdef";
const NEXT_KEY = KEY.replace("a-key", "another");
const ws = folder("start", { "notes.md": "# Notes\n" });
/** A folder of somebody else's: it wants to choose the program, and to start a hook. */
const theirs = folder("theirs", { "AGENTS.md": "Answer in rhymes.\n" });
folder("theirs/.vscode", { "settings.json": JSON.stringify({ "castor.path": "/bin/false", "castor.args": ["--no"] }) });
folder("theirs/.castor", {
  "settings.json": JSON.stringify({
    hooks: { SessionStart: [{ hooks: [{ type: "command", command: "touch hook-ran" }] }] },
  }),
});

/** A model server that takes one key. */
let goodKey = KEY;
const asked = [];
const models = createServer((request, answer) => {
  asked.push(request.url);
  const good = request.headers["x-goog-api-key"] === goodKey;
  if (!good) {
    answer.writeHead(400, { "content-type": "application/json" });
    const error = { code: 400, message: "API key not valid. Please pass a valid API key.", status: "INVALID_ARGUMENT" };
    return answer.end(JSON.stringify({ error: { ...error, details: [{ reason: "API_KEY_INVALID" }] } }));
  }
  if (request.url.includes(":streamGenerateContent")) {
    answer.writeHead(200, { "content-type": "text/event-stream" });
    const content = { role: "model", parts: [{ text: "Signed in, and here." }] };
    return answer.end(`data: ${JSON.stringify({ candidates: [{ content, finishReason: "STOP" }] })}\r\n\r\n`);
  }
  answer.writeHead(200, { "content-type": "application/json" });
  const methods = ["generateContent", "countTokens"];
  const model = { name: "models/gemini-3.8-flash", inputTokenLimit: 1_000_000, supportedGenerationMethods: methods };
  return answer.end(JSON.stringify({ models: [model], totalTokens: 3 }));
});

before(async () => {
  models.listen(0, "127.0.0.1");
  await once(models, "listening");
});

after(() => models.close());

let window;
const { step, openWindow } = startEditor(() => window);

const screen = async () =>
  (await window.page
    .locator(".terminal.xterm .xterm-rows")
    .last()
    .textContent()
    .catch(() => "")) ?? "";

/** Answers castor's question in the newest terminal. */
async function typeKey(key) {
  await until("castor asks for the key", async () => /it is not shown/.test(await screen()));
  await window.page.locator(".terminal.xterm").last().click();
  await window.page.keyboard.type(key);
  await window.page.keyboard.press("Enter");
}

step("the walkthrough opens, and runs castor doctor", async () => {
  // A stored key goes to another address only where somebody chose that in castor's own settings.
  folder("home/.castor", {
    "settings.json": JSON.stringify({ security: { auth: { selectedType: "gemini-api-key" } } }),
  });
  setArgs(["-m", "gemini-3.8-flash"]);
  window = await openWindow(ws);
  await window.trust();
  await window.command("Welcome: Open Walkthrough...");
  await window.page.fill(".quick-input-widget input", "Start with castor");
  await window.page.keyboard.press("Enter");
  const walkthrough = window.page.locator(".gettingStartedContainer");
  await walkthrough.getByText("Check the installation").first().click();
  await walkthrough.locator(".monaco-button", { hasText: "Run castor doctor" }).click();
  await until("castor doctor says something", async () => /doctor/.test(await screen()));
  await window.shot("walkthrough");
  await window.command("Terminal: Kill All Terminals");
});

step("without a key the chat says so, and the demo model answers on request", async () => {
  await window.showChat();
  const chat = await window.chat();
  await chat.waitForSelector('.empty button:has-text("Sign in")');
  await window.ask("What is in this folder?");
  await chat.waitForSelector('.banner.error button:has-text("Sign in")');
  await window.shot("no key");
  assert.deepEqual(await accessibility(chat), []);
  // What was typed is still there.
  assert.equal(await chat.inputValue("textarea"), "What is in this folder?");
  setArgs([]);
  await until("the settings are read", async () => {
    await chat.click('.empty button:has-text("try without a key")');
    return until("the demo model", () => castors().some((it) => it.args.includes("demo")), 3000).catch(() => false);
  });
  await chat.waitForSelector('button[data-option="model"]:has-text("demo")');
  await chat.click('button:has-text("Send")');
  await chat.waitForSelector('.answer:has-text("1 file and 0 folders")');
});

step("a wrong key is refused in the terminal, the right one is stored, and castor answers", async () => {
  const url = `http://127.0.0.1:${models.address().port}`;
  setArgs(["-m", "gemini-3.8-flash"], { "castor.env": { GOOGLE_GEMINI_BASE_URL: url } });
  await window.command("Notifications: Clear All Notifications");
  const walkthrough = window.page.locator(".gettingStartedContainer");
  await walkthrough.getByText("Sign in", { exact: true }).click();
  await walkthrough.locator(".monaco-button", { hasText: "Run castor auth login" }).click();
  await typeKey("a-wrong-key-of-some-length-123456");
  await until("it is refused", async () => /refused|not valid/i.test(await screen()));
  assert.ok(!existsSync(join(HOME, ".castor/credentials.json")));
  await window.shot("wrong key");
  const [{ pid }] = castors();
  await window.command("Terminal: Kill All Terminals");
  await until("the terminal is gone", async () => (await screen()) === "");
  await window.command("castor: Sign In");
  await typeKey(KEY);
  await until("the key is stored", () => existsSync(join(HOME, ".castor/credentials.json")));
  assert.doesNotMatch(await screen(), new RegExp(KEY));
  await until("castor was started anew", () => castors().length === 1 && castors()[0].pid !== pid);
  const chat = await window.ask("Are you there?");
  await chat.waitForSelector('.answer:has-text("Signed in, and here.")');
  assert.ok(asked.some((it) => it.includes(":streamGenerateContent")));
  await window.command("Terminal: Kill All Terminals");
});

step("a key that is refused in the middle is renewed from the question, and the turn continues", async () => {
  goodKey = NEXT_KEY;
  const [{ pid }] = castors();
  const chat = await window.ask("Are you still there?");
  await chat.waitForSelector('form.card:has-text("API key not valid")');
  await window.shot("refused key");
  await chat.click('form.card button:has-text("Sign in")');
  await typeKey(NEXT_KEY);
  await until(
    "a second answer",
    async () => (await chat.locator('.answer:has-text("Signed in, and here.")').count()) === 2,
  );
  await window.idle();
  assert.equal(castors()[0].pid, pid);
  await window.close();
});

step("a restricted folder chooses no program, starts no hook, and changes nothing unasked", async () => {
  setArgs(["-m", "demo"]);
  await until("no castor", () => castors().length === 0, 30_000);
  window = await openWindow(theirs);
  await window.showChat();
  await until("castor runs", () => castors().length === 1);
  assert.ok(readlinkSync(`/proc/${castors()[0].pid}/exe`).startsWith(join(WORK, "extensions")));
  const chat = await window.ask("Please run `touch made`");
  await window.answer("allow_once");
  // Allowed, it still only reads: the sandbox stops it, and castor asks anew.
  await chat.waitForSelector('.card.question:has-text("The sandbox blocked writing")');
  await window.shot("restricted");
  await window.answer("reject_once");
  await window.idle();
  assert.ok(!existsSync(join(theirs, "made")));
  assert.ok(!existsSync(join(theirs, "hook-ran")));
});

step("the editor's trust lets castor ask about what the folder brings, and only then it counts", async () => {
  await window.trust();
  await until("castor was started anew", () => {
    const [it] = castors();
    return castors().length === 1 && !it.env.includes("CASTOR_TRUST_WORKSPACE=false");
  });
  await window.command("View: Close All Editors");
  await window.showChat();
  await window.command("castor: New Session");
  const chat = await window.ask("What is in this folder?");
  const question = chat.locator(".card.question");
  await question.waitFor();
  assert.match(await question.textContent(), /touch hook-ran/);
  assert.ok(!existsSync(join(theirs, "hook-ran")));
  await window.shot("trust");
  assert.deepEqual(await accessibility(chat), []);
  await question.locator("button[data-choice]").first().click();
  await window.idle();
  await until("the hook runs", () => existsSync(join(theirs, "hook-ran")));
  assert.match(readFileSync(join(theirs, ".vscode/settings.json"), "utf8"), /false/);
});

step("no castor is left when the window is closed", async () => {
  await window.close();
  window = undefined;
  await until("no castor", () => castors().length === 0, 30_000);
});
