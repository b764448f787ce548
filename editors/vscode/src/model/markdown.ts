// Markdown to safe HTML: the blocks. What is not known is shown as text.
import { highlight } from "./highlight";
import { escapeHtml, inline } from "./inline";

/** Deeper lists and quotes are text. */
const MOST_DEPTH = 8;

interface Cursor {
  lines: string[];
  at: number;
  depth: number;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])\s*(\1\s*){2,}$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_RULE = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

export function markdown(text: string): string {
  return blocks({ lines: text.replaceAll("\r\n", "\n").split("\n"), at: 0, depth: 0 });
}

function blocks(cursor: Cursor): string {
  let html = "";
  while (cursor.at < cursor.lines.length) {
    html += block(cursor);
  }
  return html;
}

function block(cursor: Cursor): string {
  const line = cursor.lines[cursor.at]!;
  if (line.trim() === "") {
    cursor.at++;
    return "";
  }
  const heading = HEADING.exec(line);
  if (heading) {
    cursor.at++;
    // The page has its own h1 and h2.
    const level = Math.min(6, heading[1]!.length + 2);
    return `<h${level}>${inline(heading[2]!)}</h${level}>`;
  }
  if (FENCE.test(line)) {
    return fence(cursor);
  }
  if (RULE.test(line)) {
    cursor.at++;
    return "<hr>";
  }
  if (cursor.depth < MOST_DEPTH && QUOTE.test(line)) {
    return quote(cursor);
  }
  if (cursor.depth < MOST_DEPTH && ITEM.test(line)) {
    return list(cursor);
  }
  if (line.includes("|") && TABLE_RULE.test(cursor.lines[cursor.at + 1] ?? "")) {
    return table(cursor);
  }
  return paragraph(cursor);
}

function fence(cursor: Cursor): string {
  const [, mark = "```", language = ""] = FENCE.exec(cursor.lines[cursor.at++]!) ?? [];
  const body: string[] = [];
  while (cursor.at < cursor.lines.length) {
    const line = cursor.lines[cursor.at++]!;
    const end = line.trim();
    if (end.length >= mark.length && end === mark[0]!.repeat(end.length)) {
      break;
    }
    body.push(line);
  }
  const label = language ? ` data-language="${escapeHtml(language)}"` : "";
  return `<pre tabindex="0"${label}><code>${highlight(body.join("\n"), language)}</code></pre>`;
}

function quote(cursor: Cursor): string {
  const inner: string[] = [];
  while (cursor.at < cursor.lines.length) {
    const match = QUOTE.exec(cursor.lines[cursor.at]!);
    if (!match) {
      break;
    }
    inner.push(match[1]!);
    cursor.at++;
  }
  return `<blockquote>${blocks({ lines: inner, at: 0, depth: cursor.depth + 1 })}</blockquote>`;
}

/** The lines of one item without their indent, and whether a blank line is among them. */
function itemLines(cursor: Cursor, indent: number, first: string): string[] {
  const inner = [first];
  while (cursor.at < cursor.lines.length) {
    const line = cursor.lines[cursor.at]!;
    const depth = line.length - line.trimStart().length;
    const blank = line.trim() === "";
    const after = cursor.lines[cursor.at + 1] ?? "";
    const goesOn = blank ? after.startsWith(" ".repeat(indent)) && after.trim() !== "" : depth >= indent;
    const lazy = !blank && !goesOn && inner.at(-1)!.trim() !== "" && !startsBlock(line);
    if (!goesOn && !lazy) {
      break;
    }
    inner.push(lazy ? line.trimStart() : line.slice(indent));
    cursor.at++;
  }
  return inner;
}

function startsBlock(line: string): boolean {
  return [FENCE, HEADING, RULE, ITEM, QUOTE].some((pattern) => pattern.test(line));
}

function list(cursor: Cursor): string {
  const ordered = /\d/.test(ITEM.exec(cursor.lines[cursor.at]!)![2]!);
  const start = Number.parseInt(ITEM.exec(cursor.lines[cursor.at]!)![2]!, 10);
  let html = "";
  while (cursor.at < cursor.lines.length) {
    const match = ITEM.exec(cursor.lines[cursor.at]!);
    if (!match || /\d/.test(match[2]!) !== ordered || RULE.test(cursor.lines[cursor.at]!)) {
      break;
    }
    cursor.at++;
    const [, lead = "", mark = "-", space = " ", first = ""] = match;
    const indent = lead.length + mark.length + Math.min(Math.max(space.length, 1), 4);
    html += item(itemLines(cursor, indent, first), cursor.depth);
    while (cursor.lines[cursor.at]?.trim() === "" && ITEM.test(cursor.lines[cursor.at + 1] ?? "")) {
      cursor.at++;
    }
  }
  const from = ordered && start > 1 ? ` start="${start}"` : "";
  return ordered ? `<ol${from}>${html}</ol>` : `<ul>${html}</ul>`;
}

function item(lines: string[], depth: number): string {
  const task = /^\[([ xX])\]\s+(.*)$/.exec(lines[0]!);
  if (task) {
    lines[0] = task[2]!;
  }
  const box = task ? `<span class="task">${task[1] === " " ? "☐" : "☑"}</span> ` : "";
  const inner = blocks({ lines, at: 0, depth: depth + 1 });
  // A tight item is one line: without the margins of a paragraph.
  const tight = /^<p>((?:(?!<\/p>)[\s\S])*)<\/p>/.exec(inner);
  return `<li>${box}${tight ? tight[1] + inner.slice(tight[0].length) : inner}</li>`;
}

function cells(line: string): string[] {
  const inner = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function table(cursor: Cursor): string {
  const head = cells(cursor.lines[cursor.at++]!);
  cursor.at++;
  let body = "";
  while (cursor.at < cursor.lines.length) {
    const line = cursor.lines[cursor.at]!;
    if (line.trim() === "" || !line.includes("|")) {
      break;
    }
    const row = cells(line);
    body += `<tr>${head.map((_, column) => `<td>${inline(row[column] ?? "")}</td>`).join("")}</tr>`;
    cursor.at++;
  }
  const titles = head.map((cell) => `<th scope="col">${inline(cell)}</th>`).join("");
  return `<div class="table" tabindex="0"><table><thead><tr>${titles}</tr></thead><tbody>${body}</tbody></table></div>`;
}

function paragraph(cursor: Cursor): string {
  const inner: string[] = [];
  while (cursor.at < cursor.lines.length) {
    const line = cursor.lines[cursor.at]!;
    if (line.trim() === "" || (inner.length > 0 && startsBlock(line))) {
      break;
    }
    inner.push(line.trimStart());
    cursor.at++;
  }
  return `<p>${inline(inner.join("\n").trimEnd())}</p>`;
}
