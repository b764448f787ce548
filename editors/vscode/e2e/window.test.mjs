// The extension in a real editor: each test goes on where the one before it ended.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { accessibility, castors, folder, script, startEditor, until } from "./harness.mjs";

const NOTES = "# Notes\n\nOne line.\n";
const ws = folder("ws", { "notes.md": NOTES });
const file = (name) => join(ws, name);

let window;
const { step, openWindow } = startEditor(() => window, { height: 900 });

const untrusted = ({ env }) => env.includes("CASTOR_TRUST_WORKSPACE=false");

step("castor starts with the chat, and not before", async () => {
  window = await openWindow(ws);
  assert.deepEqual(castors(), []);
  await window.showChat();
  await until("castor runs", () => castors().length === 1);
});

step("a restricted folder has an untrusted castor, a trusted one has another", async () => {
  const [first] = castors();
  assert.ok(untrusted(first));
  await window.trust();
  await until("castor was started anew", () => {
    const found = castors();
    return found.length === 1 && found[0].pid !== first.pid && !untrusted(found[0]);
  });
  await window.showChat();
});

step("a prompt is answered, with its thoughts folded and the context in the status bar", async () => {
  const chat = await window.ask("What is in this folder?");
  await chat.waitForSelector(".answer .markdown p");
  await window.idle();
  assert.match(await window.text(), /1 file and 0 folders/);
  assert.equal(await chat.locator(".thought[open]").count(), 0);
  assert.match(await window.status(), /castor ▱+ 0%/);
});

step("an edit is allowed in the chat, taken back, and made again", async () => {
  const chat = await window.ask("Write summary.md");
  await chat.waitForSelector(".card.question .diff .added");
  assert.ok(!existsSync(file("summary.md")));
  await window.shot("approval");
  await window.answer("allow_once");
  await chat.waitForSelector('.end:has-text("1 file changed")');
  assert.match(readFileSync(file("summary.md"), "utf8"), /^# castor demo/);
  await chat.click('.end button:has-text("Undo")');
  await until("the file is gone", () => !existsSync(file("summary.md")));
  await chat.click('.notice button:has-text("Redo")');
  await until("the file is back", () => existsSync(file("summary.md")));
  await window.command("castor: Undo the Files of the Last Turn");
  await until("the file is gone again", () => !existsSync(file("summary.md")));
});

step("a diff opens in the editor, and its buttons accept the call", async () => {
  const chat = await window.ask("Write accepted.md");
  await chat.click('.card.question button:has-text("Open diff")');
  await window.page.waitForSelector('.tab:has-text("accepted.md (castor)")');
  await window.page.waitForSelector(".monaco-diff-editor .line-insert");
  await window.shot("diff");
  await window.editorAction("Accept the Change");
  await until("the file is written", () => existsSync(file("accepted.md")));
  await window.page.waitForSelector('.tab:has-text("accepted.md (castor)")', { state: "detached" });
  await window.idle();
});

step("the same buttons reject a call, and then they are gone", async () => {
  const chat = await window.ask("Write rejected.md");
  await chat.click('.card.question button:has-text("Open diff")');
  await window.editorAction("Reject the Change");
  await chat.waitForSelector('.card.answered:has-text("Reject")');
  await window.idle();
  assert.ok(!existsSync(file("rejected.md")));
  const call = chat.locator('.call:has-text("rejected.md")').last();
  await call.locator("summary").click();
  await call.locator('button:has-text("Open diff")').click();
  await window.page.waitForSelector('.tab:has-text("rejected.md (castor)")');
  assert.equal(await window.page.locator('.editor-actions a[aria-label^="Accept the Change"]').count(), 0);
});

step("a command runs only if it is allowed, and its output comes while it runs", async () => {
  await window.ask("Please run `touch forbidden`");
  await window.answer("reject_once");
  await window.idle();
  assert.ok(!existsSync(file("forbidden")));
  const chat = await window.ask("Please run `echo first; sleep 3; echo last`");
  await window.answer("allow_once");
  const output = await chat.waitForSelector(".call[open] .output");
  assert.equal((await output.textContent()).trim(), "first");
  await window.idle();
  assert.match(await window.text(), /last/);
});

step("Escape ends a turn", async () => {
  const chat = await window.ask("Please run `sleep 60`");
  await window.answer("allow_once");
  await chat.waitForSelector(".status.in_progress");
  await chat.press("textarea", "Escape");
  await chat.waitForSelector('.end:has-text("Cancelled.")');
  await window.idle();
});

step("options are chosen in a list", async () => {
  const chat = await window.chat();
  await chat.click('button[data-option="mode"]');
  await window.page.waitForSelector('.quick-input-list .monaco-list-row:has-text("Plan")');
  await window.page.keyboard.type("Plan");
  await window.page.keyboard.press("Enter");
  await chat.waitForSelector('button[data-option="mode"]:has-text("Plan")');
  await chat.click('button[data-option="mode"]');
  await window.page.keyboard.type("Asks before");
  await window.page.keyboard.press("Escape");
  await window.page.keyboard.press("Escape");
});

step("a file is added by @ with the keyboard alone", async () => {
  const chat = await window.chat();
  await chat.click("textarea");
  await window.page.keyboard.type("Look at @note");
  await chat.waitForSelector('.suggestions li:has-text("notes.md")');
  await window.page.keyboard.press("Enter");
  await chat.waitForSelector('.composer .chip:has-text("notes.md")');
  await window.page.keyboard.type("please");
  await window.page.keyboard.press("Enter");
  await chat.waitForSelector('.user .chip:has-text("notes.md")');
  await window.idle();
});

step("the selection is added to the message", async () => {
  await window.openFile("notes.md");
  await window.page.click(".editor-instance .view-lines");
  await window.page.keyboard.press("Control+A");
  await window.command("castor: Add the Selection to the Chat");
  const chat = await window.chat();
  await chat.waitForSelector('.composer .chip:has-text("notes.md:1-3")');
  await chat.click('.composer .chip button[aria-label^="Remove"]');
  await chat.waitForSelector(".composer .chip", { state: "detached" });
});

step("the installation is checked in a terminal", async () => {
  await window.command("castor: Check the Installation");
  const screen = window.page.locator(".terminal.xterm .xterm-rows");
  await until("castor doctor says something", async () =>
    /doctor/.test((await screen.textContent().catch(() => "")) ?? ""),
  );
  await window.shot("doctor");
  await window.command("Terminal: Kill the Active Terminal Instance");
});

step("the page has no fault that axe finds", async () => {
  assert.deepEqual(await accessibility(await window.chat()), []);
});

step("a window that is loaded anew has the conversation, and one castor", async () => {
  const [{ pid }] = castors();
  await window.page.reload();
  await window.page.waitForSelector(".monaco-workbench .activitybar");
  const chat = await window.chat();
  await chat.waitForSelector('.user:has-text("Write summary.md")');
  await chat.waitForSelector('.end:has-text("1 file changed")');
  await until("one castor, a new one", () => castors().length === 1 && castors()[0].pid !== pid);
});

step("a crash is told, and a restart brings the conversation back", async () => {
  await window.showSessions();
  process.kill(castors()[0].pid, "SIGKILL");
  const chat = await window.chat();
  await chat.waitForSelector('.banner.error:has-text("SIGKILL")');
  // Nothing starts it by itself, not even the list of sessions.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.deepEqual(castors(), []);
  await window.shot("crash");
  await chat.click('.banner button:has-text("Restart")');
  await chat.waitForSelector(".banner", { state: "hidden" });
  await chat.waitForSelector('.user:has-text("Write summary.md")');
  await until("castor runs", () => castors().length === 1);
  await window.showSessions();
});

step("two windows on one folder have a castor and a session each", async () => {
  const second = await openWindow(ws);
  await second.showChat();
  await until("two castors", () => castors().length === 2);
  await second.ask("Please run `pwd`");
  await (await second.chat()).waitForSelector(".answer", { timeout: 40_000 });
  assert.doesNotMatch(await second.text(), /Write summary\.md/);
  await second.shot("second window");
  await second.close();
  await until("the second castor ended with its window", () => castors().length === 1, 30_000);
});

step("a question becomes a notification while the chat is hidden", async () => {
  const answers = [
    [["run_shell_command", { command: "sleep 3" }]],
    [["write_file", { file_path: "hidden.md", content: "a\n" }]],
    "Done.",
  ];
  await window.startWith(["--fake-responses", script("hidden", answers)]);
  const chat = await window.ask("Go.");
  await window.answer("allow_once");
  await chat.waitForSelector(".status.in_progress");
  await window.page.click('.activitybar a[aria-label^="Explorer"]');
  const toast = window.page.locator('.notification-toast:has-text("castor asks: Writing to hidden.md")');
  await toast.waitFor();
  await window.shot("notification");
  await toast.locator(".monaco-button", { hasText: /^Allow$/ }).click();
  await until("the file is written", () => existsSync(file("hidden.md")));
  await window.showChat();
  await (await window.chat()).waitForSelector('.end:has-text("1 file changed")');
});

step("the list of sessions opens, renames, forks and deletes", async () => {
  await window.showSessions();
  const row = (title) => window.page.locator(`.pane .monaco-list-row:has-text("${title}")`);
  await row("What is in this folder?").first().hover();
  await row("What is in this folder?").first().locator('a[aria-label^="Rename Session"]').click();
  await window.page.fill(".quick-input-widget input", "The first one");
  await window.page.keyboard.press("Enter");
  await row("The first one").click();
  const chat = await window.chat();
  await chat.waitForSelector('.user:has-text("Write summary.md")');
  await window.shot("sessions");
  const count = await row("The first one").count();
  await window.menu(row("The first one").first(), "Fork Session");
  await until("the fork is listed", async () => (await row("The first one").count()) === count + 1);
  await window.menu(row("The first one").first(), "Delete Session…");
  await window.page.click('.monaco-dialog-box .monaco-button:has-text("Delete")');
  await until("it is not listed", async () => (await row("The first one").count()) === count);
  await window.showSessions();
});

step("castor reads what is not saved, asks by a form, and shows its plan", async () => {
  const answers = [
    [
      [
        "write_todos",
        {
          todos: [
            { description: "Ask", status: "in_progress" },
            { description: "Do", status: "pending" },
          ],
        },
      ],
    ],
    [
      [
        "ask_user",
        {
          questions: [
            {
              question: "Which database?",
              header: "Database",
              type: "choice",
              options: [
                { label: "SQLite", description: "one file" },
                { label: "Postgres", description: "a server" },
              ],
            },
            { question: "Which name has it?", header: "Name", type: "text" },
          ],
        },
      ],
    ],
    [["read_file", { file_path: "notes.md" }]],
    "Read.",
    [
      [
        "replace",
        { file_path: "notes.md", instruction: "Change it.", old_string: "unsaved words", new_string: "new words" },
      ],
    ],
    "Changed.",
  ];
  await window.openFile("notes.md");
  await window.page.keyboard.press("Control+End");
  await window.page.keyboard.type("unsaved words");
  await window.page.waitForSelector('.editor-instance .view-line:has-text("unsaved words")');
  await window.startWith(["--fake-responses", script("script", answers)]);
  const chat = await window.ask("Go.");
  await chat.waitForSelector('.plan:has-text("Plan: 0 of 2")');
  await chat.waitForSelector("form.card");
  await window.shot("form");
  assert.deepEqual(await accessibility(chat), []);
  await chat.selectOption("form.card select", { index: 2 });
  await chat.fill('form.card input[type="text"]', "books");
  await chat.click('form.card button[type="submit"]');
  await chat.waitForSelector('.card.answered:has-text("Sent")');
  await window.idle();
  const read = chat.locator('.call:has-text("notes.md")');
  await read.locator("summary").click();
  assert.match(await read.textContent(), /One line\.\nunsaved words/);
  assert.equal(readFileSync(file("notes.md"), "utf8"), NOTES);
  await window.shot("unsaved");
  await window.ask("Change it.");
  await window.answer("allow_once");
  await window.idle();
  assert.equal(readFileSync(file("notes.md"), "utf8"), `${NOTES}new words`);
  await window.page.waitForSelector('.editor-instance .view-line:has-text("new words")');
});

step("commands run in the editor's terminals, if castor's settings say so", async () => {
  folder("home/.castor", { "settings.json": JSON.stringify({ tools: { shell: { terminal: "client" } } }) });
  await window.startWith(["-m", "demo"]);
  const chat = await window.ask("Please run `echo in the editor; sleep 10`");
  await window.answer("allow_once");
  await chat.click('.call button:has-text("Show terminal")');
  // An earlier one may be there, and hidden.
  await window.page.waitForSelector(".terminal.xterm:visible");
  await window.shot("terminal");
  await window.idle();
  assert.match(await window.text(), /in the editor/);
});

step("no castor is left when the windows are closed", async () => {
  await window.close();
  window = undefined;
  await until("no castor", () => castors().length === 0, 30_000);
});
