// Texts: Markdown, colours, differences, lines.
import assert from "node:assert/strict";
import { test } from "node:test";
import { highlight } from "../src/model/highlight";
import { diffRows, diffView, hunks, MOST_ROWS } from "../src/model/hunks";
import { cutLines, lastBytes } from "../src/model/lines";
import { markdown } from "../src/model/markdown";
import { restoredWords } from "../src/model/restored";
import type { ChangedFile } from "../src/model/types";
import { markedList, reviewTitle, unseenPaths } from "../src/model/unseen";

/** Markdown, and its HTML. */
const MARKDOWN: [string, string][] = [
  ["a *b* **c** `d<e>`", "<p>a <em>b</em> <strong>c</strong> <code>d&#60;e&#62;</code></p>"],
  ["snake_case_name and _it_", "<p>snake_case_name and <em>it</em></p>"],
  ["# Title", "<h3>Title</h3>"],
  ["- a\n- b\n  - c", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"],
  ["3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'],
  ["- [x] done", '<ul><li><span class="task">☑</span> done</li></ul>'],
  ["> a\n> b", "<blockquote><p>a\nb</p></blockquote>"],
  ["```\na < b\n```", '<pre tabindex="0"><code>a &#60; b</code></pre>'],
  ["```rust\nlet a\n", '<pre tabindex="0" data-language="rust"><code><span class="t-word">let</span> a\n</code></pre>'],
  ["---", "<hr>"],
  ["a  \nb", "<p>a<br>b</p>"],
  [
    "|a|b|\n|-|-|\n|1|x\\|y|",
    '<div class="table" tabindex="0"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>' +
      "<tbody><tr><td>1</td><td>x|y</td></tr></tbody></table></div>",
  ],
  ["[a](https://x.example/b)", '<p><a href="https://x.example/b">a</a></p>'],
  ["[a](src/main.rs:12)", '<p><a data-file="src/main.rs:12" href="#">a</a></p>'],
  ["see https://x.example/a.", '<p>see <a href="https://x.example/a">https://x.example/a</a>.</p>'],
];

test("Markdown becomes HTML", () => {
  for (const [source, wanted] of MARKDOWN) {
    assert.equal(markdown(source), wanted, source);
  }
});

/** Texts that want to become more than text. */
const HOSTILE = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "[a](javascript:alert(1))",
  "[a](JaVaScRiPt:alert(1))",
  "[a](data:text/html,x)",
  "[a](vscode:x)",
  "[a](command:workbench.action.quit)",
  "[a](//evil.example)",
  "![a](javascript:alert(1))",
  '[a](https://x.example/"onmouseover="alert(1))',
  '```"><script>\nx\n```',
  "`</code><script>`",
  "|<b>|\n|-|\n|<i>|",
  "**<b onclick=x>**",
];

test("no text becomes a tag, an event or a link of another kind", () => {
  for (const source of HOSTILE) {
    const html = markdown(source);
    const tags = [...html.matchAll(/<\/?([a-z0-9]+)([^>]*)>/g)];
    for (const [, tag = "", rest = ""] of tags) {
      assert.match(tag, /^(p|a|pre|code|strong|em|div|table|thead|tbody|tr|th|td)$/, `${source}: ${html}`);
      for (const [, name = "", value = ""] of rest.matchAll(/([\w-]+)="([^"]*)"/g)) {
        assert.match(name, /^(href|data-file|data-language|tabindex|class|scope)$/, `${source}: ${html}`);
        assert.ok(name !== "href" || /^(https?:|mailto:|#$)/.test(value), `${source}: ${html}`);
      }
    }
  }
});

test("long hostile texts take no long time", () => {
  const start = performance.now();
  for (const piece of ["*", "[", "`", "**a", "> ", "- ", "_a ", "~~a", "[a](", "|a"]) {
    markdown(piece.repeat(5000));
    markdown(`${piece}\n`.repeat(2000));
  }
  assert.ok(performance.now() - start < 5000, `${performance.now() - start} ms`);
});

test("code is coloured, and all of it stays", () => {
  assert.equal(
    highlight('if x == "a" { } // <b>', "rust"),
    '<span class="t-word">if</span> x == <span class="t-text">&#34;a&#34;</span> { } <span class="t-comment">// &#60;b&#62;</span>',
  );
  assert.equal(highlight("# a", "py"), '<span class="t-comment"># a</span>');
  assert.equal(highlight("+a\n b", "diff"), '<span class="t-added">+a</span>\n b');
  assert.equal(highlight("if", "text"), "if");
});

test("a difference gives both texts back", () => {
  const texts = ["", "a\n", "a\nb\nc\n", "a\nc\n", "x\na\nb\nd\nc\n", "c\nb\na\n", "a\nb\nc\nd\ne\nf\ng\nh\n"];
  for (const before of texts) {
    for (const after of texts) {
      const rows = diffRows(before, after);
      const side = (kind: string): string =>
        rows
          .filter((row) => row.kind === "same" || row.kind === kind)
          .map((row) => `${row.text}\n`)
          .join("");
      assert.equal(side("removed"), before);
      assert.equal(side("added"), after);
    }
  }
});

test("a difference is the shortest", () => {
  const rows = diffRows("a\nb\nc\nd\n", "a\nx\nc\nd\ny\n");
  assert.deepEqual(
    rows.filter((row) => row.kind !== "same").map((row) => row.kind[0] + row.text),
    ["rb", "ax", "ay"],
  );
});

test("tabs have an arrow where the indentation changed", () => {
  const texts = (before: string, after: string): string[] =>
    diffView("/w/Makefile", before, after).hunks.flatMap((hunk) => hunk.rows.map((row) => row.text));
  assert.deepEqual(texts("all:\n\tgcc a\n", "all:\n    gcc a\n"), ["all:", "→\tgcc a", "    gcc a"]);
  assert.deepEqual(texts("\ta\n", "\t\ta\n"), ["→\ta", "→\t→\ta"]);
  assert.deepEqual(texts("\ta\n", "\tb\n"), ["\ta", "\tb"]);
  assert.deepEqual(texts("a\n", "a\n\tb\n"), ["a", "\tb"]);
});

test("hunks have three lines around changes, and their numbers", () => {
  const before = Array.from({ length: 30 }, (_, line) => `${line + 1}\n`).join("");
  const after = before.replace("10\n", "ten\n").replace("25\n", "");
  const found = hunks(diffRows(before, after));
  assert.deepEqual(
    found.map((it) => [it.oldStart, it.newStart, it.rows.length]),
    [
      [7, 7, 8],
      [22, 22, 7],
    ],
  );
});

test("a card cuts a long change, and counts all of it", () => {
  const after = "line\n".repeat(MOST_ROWS + 50);
  const view = diffView("/w/a", "", after);
  assert.deepEqual([view.added, view.cut, view.hunks[0]?.rows.length], [MOST_ROWS + 50, true, MOST_ROWS]);
  assert.equal(diffView("/w/a", "", "a\n").cut, false);
});

test("two texts without a common line are one replaced by the other", () => {
  const many = (word: string): string => Array.from({ length: 3000 }, (_, line) => `${word}${line}\n`).join("");
  const view = diffView("/w/a", many("a"), many("b"));
  assert.deepEqual([view.added, view.removed], [3000, 3000]);
});

test("lines are cut as the protocol counts them", () => {
  assert.equal(cutLines("a\nb\nc", 2, 1), "b\n");
  assert.equal(cutLines("a\nb\nc", 3), "c");
  assert.equal(cutLines("a\nb\nc", undefined, 2), "a\nb\n");
  assert.equal(cutLines("a\nb", 9), "");
});

test("the end of a text begins with a whole character", () => {
  assert.deepEqual(lastBytes("aé", 2), { text: "é", cut: true });
  assert.deepEqual(lastBytes("éa", 2), { text: "a", cut: true });
  assert.deepEqual(lastBytes("ab", 2), { text: "ab", cut: false });
});

test("what was undone says which files are gone", () => {
  const words = (restored: string[], removed?: string[]) =>
    restoredWords({ restored, removed }, (path) => path.replace("/work/", ""));
  assert.equal(words(["/work/a", "/work/b", "/work/c"], ["/work/b"]), "restored a, c; removed b");
  assert.equal(words(["/work/a", "/work/b"], ["/work/a", "/work/b"]), "removed a, b");
  assert.equal(words(["/work/a"]), "restored a");
  assert.equal(words([], []), "no file was changed");
});

test("files that nobody looked at have a mark, as their newest change says", () => {
  const file = (path: string, unseen?: boolean): ChangedFile => ({
    path,
    change: "modified",
    added: 1,
    removed: 0,
    ...(unseen === undefined ? {} : { unseen }),
  });
  const files = [file("/w/a", true), file("/w/b", true), file("/w/c"), file("/w/a", false)];
  assert.deepEqual(unseenPaths(files), ["/w/b"]);
  assert.equal(markedList(files), "/w/a\n/w/b: written by an agent, not looked at\n/w/c");
  const name = (path: string): string => path.replace("/w/", "");
  assert.equal(reviewTitle("T", unseenPaths(files), name), "T, not looked at: b");
  assert.equal(reviewTitle("T", [], name), "T");
});
