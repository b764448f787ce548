// The editor's own client of the Agent Host Protocol: its bridge to `castor serve`, and castor in its chat. No extension.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { environment, folder, freePort, startEditor, until, WORK } from "./harness.mjs";

const ws = folder("hosted", { "notes.md": "# Notes\n" });
const env = { ...environment(), CASTOR_HOME: join(WORK, "serve") };
let castor;
let window;

/** The flags by which the editor's server reaches castor. */
async function startCastor() {
  const token = spawnSync(process.env.CASTOR, ["serve", "token", "add", "editor"], { env, encoding: "utf8" });
  const port = await freePort();
  const args = ["serve", "--listen", `127.0.0.1:${port}`, "-m", "demo"];
  castor = spawn(process.env.CASTOR, args, { cwd: ws, env, stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  castor.stdout.setEncoding("utf8").on("data", (text) => {
    said += text;
  });
  await until("castor listens", () => said.includes("castor serves AHP"), 30_000);
  const settings = {
    "workbench.startupEditor": "none",
    "security.workspace.trust.enabled": false,
    "chat.disableAIFeatures": false,
    "telemetry.telemetryLevel": "off",
    "extensions.autoUpdate": false,
  };
  // Both places: the other tests leave theirs there.
  for (const place of ["User", "Machine"]) {
    writeFileSync(join(folder(join("data", place)), "settings.json"), JSON.stringify(settings));
  }
  const flags = {
    "agent-host-bridge-host": "127.0.0.1",
    "agent-host-bridge-port": port,
    "agent-host-bridge-connection-token": token.stdout.trim(),
  };
  return Object.entries(flags).flatMap(([name, value]) => ["--vscode-option", `${name}=${value}`]);
}

const { step, openWindow } = startEditor(() => window, { vsix: null, prepare: startCastor });
after(() => castor?.kill());

const chat = () => window.page.locator(".interactive-session:visible").first();
const saw = (text) => chat().getByText(text).filter({ visible: true }).first().waitFor();
const click = (label) => window.page.locator(".monaco-button:visible", { hasText: label }).first().click();

async function ask(text) {
  // Away from what shows a hint over the field.
  await window.page.mouse.move(0, 0);
  await chat().locator(".chat-editor-container .view-lines").first().click();
  await window.page.keyboard.type(text);
  await window.page.keyboard.press("Enter");
}

/** Chooses castor beside the editor's own agent. It is in the list when the editor is connected. */
async function chooseCastor() {
  const row = window.page.locator(".action-widget .monaco-list-row", { hasText: /^castor$/ });
  await until("castor can be chosen", async () => {
    await chat().getByText("Local", { exact: true }).click({ timeout: 5000 });
    const found = await row.waitFor({ timeout: 2000 }).then(
      () => true,
      () => false,
    );
    return found || window.page.keyboard.press("Escape").then(() => false);
  });
  await row.click();
  await chat().getByText("demo", { exact: true }).waitFor();
}

step("castor is one of the agents of the chat, with its models", async () => {
  window = await openWindow(ws);
  await window.command("Chat: Open Chat");
  await chooseCastor();
});

step("a turn asks before it writes, and its change is shown", async () => {
  await ask("Write summary.md");
  await saw("Writing to summary.md");
  assert.ok(!existsSync(join(ws, "summary.md")));
  await click("Allow");
  await saw("I wrote");
  assert.ok(existsSync(join(ws, "summary.md")));
  await chat().getByText("1 File", { exact: true }).click();
  await window.page.locator(".multiDiffEntry .view-line", { hasText: "castor demo" }).first().waitFor();
  await window.shot("host-changes");
});

step("a command that is refused does not run", async () => {
  await ask("Please run `touch made`");
  await click("Reject");
  await saw("did not run");
  assert.ok(!existsSync(join(ws, "made")));
});

step("a new window has the session and its history", async () => {
  await window.page.reload({ waitUntil: "domcontentloaded" });
  await window.page.waitForSelector(".monaco-workbench .activitybar");
  await window.command("Chat Agent Sessions: Show Agent Sessions Sidebar");
  await window.page.locator(".agent-sessions-viewer .monaco-list-row", { hasText: "Write summary.md" }).click();
  await saw("did not run");
  await window.shot("host-history");
});
