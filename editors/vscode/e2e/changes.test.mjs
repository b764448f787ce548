// Changes in a real editor: by hunk, of several files, taken back in each way; dropped files; the colours of each theme.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { accessibility, castors, folder, script, setArgs, startEditor, unfold, until } from "./harness.mjs";

const CALC = `"""A small calculator."""


def add(a, b):
    return a - b


def divide(a, b):
    return a / b


def main():
    print(add(1, 2))
`;
const ADDS = CALC.replace("a - b", "a + b");
const BOTH = ADDS.replace("    return a / b", '    if b == 0:\n        raise ValueError("b is 0")\n    return a / b');
const ALL = BOTH.replace("print(add(1, 2))", 'print("1 + 2 =", add(1, 2))');
const ws = folder("parser", { "calc.py": CALC, "README.md": "# parser\n\nReads numbers, and adds them.\n" });
const file = (name) => join(ws, name);
const read = (name) => readFileSync(file(name), "utf8");

const write = (name, content) => ["write_file", { file_path: name, content }];

let window;
const { step, openWindow } = startEditor(() => window);

/** A new session in which the model says this. */
const begin = (name, answers) => window.startWith(["--fake-responses", script(name, answers)]);

const right = (text) => window.page.locator(`.monaco-diff-editor .editor.modified .view-line:has-text("${text}")`);

step("a hunk is reverted in the diff editor, another is edited, and that is what castor writes", async () => {
  setArgs(["-m", "demo"]);
  window = await openWindow(ws);
  await window.showChat();
  await window.trust();
  await window.command("View: Close All Editors");
  await window.showChat();
  const chat = await begin("hunks", [[write("calc.py", ALL)], "`add` adds now. You kept `main` as it was."]);
  await window.ask("add(1, 2) gives -1. Mend calc.py, please.");
  await chat.click('.card.question button:has-text("Open diff")');
  await right("1 + 2 =").waitFor();
  await window.shot("vscode");
  // The editor's own action, at the cursor.
  await right("1 + 2 =").click();
  await window.command("Diff Editor: Revert");
  await right("1 + 2 =").waitFor({ state: "detached" });
  await right("raise ValueError").click();
  await window.page.keyboard.press("End");
  await window.page.keyboard.type("  # not a number");
  await chat.waitForSelector('.card.question:has-text("As you edited it")');
  await chat.waitForSelector('.card.question .added:has-text("not a number")');
  assert.equal(await chat.locator('.card.question .diff:has-text("1 + 2 =")').count(), 0);
  assert.equal(read("calc.py"), CALC);
  await window.shot("hunks");
  await window.editorAction("Accept the Change");
  const kept = BOTH.replace('("b is 0")', '("b is 0")  # not a number');
  await until("the file is written", () => read("calc.py") === kept);
  await window.page.waitForSelector('.tab:has-text("calc.py (castor)")', { state: "detached" });
  await chat.waitForSelector('.user:has-text("I edited your change of")');
  await window.idle();
  await chat.waitForSelector('.answer:has-text("You kept")');
  assert.match(await window.text(), /-\s+print\("1 \+ 2 =", add\(1, 2\)\)/);
});

step("an edited change is taken back without a question, and Review shows what was kept", async () => {
  const chat = await window.chat();
  await chat.click('.end button:has-text("Review")');
  await right("not a number").waitFor();
  assert.equal(await right("1 + 2 =").count(), 0);
  await window.command("View: Close All Editors");
  await chat.click('.end button:has-text("Undo")');
  await until("the file is as it was", () => read("calc.py") === CALC);
});

step("Allow in the chat is of the change as it stands in the diff editor, and Reject forgets it", async () => {
  const chat = await begin("chat", [[write("calc.py", ALL)], "Rejected.", [write("calc.py", BOTH)], "Done."]);
  await window.ask("Mend it.");
  await chat.click('.card.question button:has-text("Open diff")');
  await right("1 + 2 =").click();
  await window.page.keyboard.press("End");
  await window.page.keyboard.type("  # typed");
  await chat.waitForSelector('.card.question .added:has-text("# typed")');
  await window.answer("reject_once");
  await window.idle();
  assert.equal(read("calc.py"), CALC);
  await right("# typed").waitFor({ state: "detached" });
  await window.ask("Again.");
  await chat.click('.card.question button:has-text("Open diff")');
  await right("raise ValueError").click();
  await window.command("Diff Editor: Revert");
  await chat.waitForSelector('.card.question:has-text("As you edited it")');
  await window.answer("allow_once");
  await until("only the other hunk is written", () => read("calc.py") === ADDS);
  await window.idle();
  assert.equal(await window.page.locator(".tab.dirty").count(), 0);
  await window.command("View: Close All Editors");
  await (await window.chat()).locator('.end button:has-text("Undo")').last().click();
  await until("the file is as it was", () => read("calc.py") === CALC);
});

step("several files of one turn are reviewed, undone, redone and rewound together", async () => {
  const calls = [write("one.md", "One.\n"), write("two.md", "Two.\n"), write("calc.py", ADDS)];
  const chat = await begin("several", [calls, "Three files."]);
  await window.ask("Write them.");
  for (const name of ["one.md", "two.md", "calc.py"]) {
    await chat.waitForSelector(`.card.question:has-text("${name}")`);
    await window.answer("allow_once");
    await chat.waitForSelector(`.card.question:has-text("${name}")`, { state: "detached" });
  }
  await chat.waitForSelector('.end:has-text("3 files changed")');
  await chat.click('.end button:has-text("Review")');
  await window.page.waitForSelector('.tab:has-text("Changes of the turn (castor)")');
  await until("three files are shown", async () => (await window.page.locator(".multiDiffEntry").count()) === 3);
  await window.shot("several");
  await window.command("View: Close All Editors");
  const made = () => [existsSync(file("one.md")), existsSync(file("two.md")), read("calc.py") === ADDS].join();
  await chat.click('.end button:has-text("Undo")');
  await until("all are as before", () => made() === "false,false,false");
  await chat.waitForSelector('.notice:has-text("Undone: restored calc.py; removed one.md, two.md")');
  await window.command("castor: Redo What Was Undone");
  await until("all are there again", () => made() === "true,true,true");
  await chat.click('.end button:has-text("Rewind")');
  await until("all are as before", () => made() === "false,false,false");
  await chat.waitForSelector('.user:has-text("Write them.")', { state: "detached" });
  assert.equal(await chat.locator(".answer, .call").count(), 0);
});

step("what somebody changed since is asked about, and kept or restored", async () => {
  const chat = await begin("conflict", [[write("one.md", "One.\n"), write("two.md", "Two.\n")], "Done."]);
  await window.ask("Write them.");
  for (const name of ["one.md", "two.md"]) {
    await chat.waitForSelector(`.card.question:has-text("${name}")`);
    await window.answer("allow_once");
  }
  await chat.waitForSelector('.end:has-text("2 files changed")');
  writeFileSync(file("one.md"), "Mine.\n");
  const dialog = window.page.locator(".monaco-dialog-box");
  await chat.click('.end button:has-text("Undo")');
  await dialog.getByText("Files changed since castor changed them.").waitFor();
  await window.shot("conflict");
  await dialog.locator(".monaco-button", { hasText: "Cancel" }).click();
  assert.equal(read("two.md"), "Two.\n");
  await chat.click('.end button:has-text("Undo")');
  await dialog.locator(".monaco-button", { hasText: "Keep these" }).click();
  await until("the other is gone", () => !existsSync(file("two.md")));
  assert.equal(read("one.md"), "Mine.\n");
  await chat.click('.end button:has-text("Undo")');
  await dialog.locator(".monaco-button", { hasText: "Restore all" }).click();
  await until("both are gone", () => !existsSync(file("one.md")));
});

/** Drags with the mouse, as a person does; Shift lets a page take what is dropped on it. */
async function drag(from, to) {
  const [a, b] = [await from.boundingBox(), await to.boundingBox()];
  const { mouse, keyboard } = window.page;
  await mouse.move(a.x + a.width / 2, a.y + a.height / 2);
  await mouse.down();
  await mouse.move(a.x + a.width / 2 - 20, a.y + a.height / 2 + 20, { steps: 5 });
  await keyboard.down("Shift");
  await mouse.move(b.x + b.width / 2, b.y + b.height / 2, { steps: 10 });
  await mouse.move(b.x + b.width / 2, b.y + b.height / 2 + 4, { steps: 3 });
  await mouse.up();
  await keyboard.up("Shift");
}

step("a file of the editor is dropped on the chat", async () => {
  await window.openFile("calc.py");
  const chat = await window.chat();
  await drag(window.page.locator('.tab:has-text("calc.py")'), await chat.$("textarea"));
  await chat.waitForSelector('.composer .chip:has-text("calc.py")');
  await window.shot("dropped");
  await chat.click('.composer .chip button[aria-label^="Remove"]');
});

step("a text from elsewhere is dropped on the chat, and what is no text is refused", async () => {
  const chat = await window.chat();
  await chat.evaluate(() => {
    const data = new DataTransfer();
    data.items.add(new File(["a,b\n1,2\n"], "table.csv", { type: "text/csv" }));
    data.items.add(new File([new Uint8Array([0xff, 0xfe, 0])], "blob.bin"));
    document.querySelector(".log").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
  });
  await chat.waitForSelector('.composer .chip:has-text("table.csv")');
  await window.page
    .locator('.notification-toast:has-text("blob.bin was not added: it is neither a picture nor text")')
    .waitFor();
  await chat.click('.composer .chip button[aria-label^="Remove"]');
  await window.command("Notifications: Clear All Notifications");
});

step("a session that another window has open is not opened twice", async () => {
  await begin("mine", ["Mine."]);
  await window.ask("This is the first window's session.");
  await window.idle();
  const first = window;
  window = await openWindow(ws);
  await window.showChat();
  await until("two castors", () => castors().length === 2);
  await window.showSessions();
  await window.page.locator('.pane .monaco-list-row:has-text("first window")').first().click();
  const chat = await window.chat();
  await chat.waitForSelector(".banner.error:visible", { timeout: 30_000 });
  assert.match(await chat.locator(".banner").textContent(), /open in another window/);
  await window.page.locator('.pane .monaco-list-row:has-text("first window")').first().waitFor();
  await window.shot("locked");
  await window.close();
  window = first;
  await until("the second castor ended", () => castors().length === 1, 30_000);
});

const THEMES = {
  "Light Modern": "vscode-light",
  "Dark Modern": "vscode-dark",
  "Default High Contrast": "vscode-high-contrast",
  "Default High Contrast Light": "vscode-high-contrast-light",
};

async function inEachTheme(chat) {
  const faults = [];
  for (const [theme, name] of Object.entries(THEMES)) {
    setArgs(["-m", "demo"], { "workbench.colorTheme": theme });
    await chat.waitForSelector(`body.${name}`);
    await window.shot(`theme ${name}`);
    faults.push(...(await accessibility(chat)).map((it) => `${theme}: ${it}`));
  }
  assert.deepEqual(faults, []);
}

step("axe finds no fault in the colours of any theme", async () => {
  const calls = [write("one.md", "One.\n"), ["run_shell_command", { command: "echo words" }]];
  const chat = await begin("themes", [
    calls,
    "# Title\n\nA [link](https://example.com), `code`, a table:\n\n|a|b|\n|-|-|\n|1|2|\n\n```js\nlet a = 'b'; // c\n```",
  ]);
  await window.ask("Do both.");
  await chat.waitForSelector('.card.question:has-text("one.md")');
  await inEachTheme(chat);
  await window.answer("allow_once");
  await chat.waitForSelector('.call:has-text("echo words") .status.completed');
  await window.idle();
  await unfold(chat);
  await inEachTheme(chat);
});

step("no castor is left when the window is closed", async () => {
  await window.close();
  window = undefined;
  await until("no castor", () => castors().length === 0, 30_000);
});
