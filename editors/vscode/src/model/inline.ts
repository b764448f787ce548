// The inner parts of a line of Markdown, as safe HTML: code, emphasis, links.

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** Links that may be followed: the web, mail, and files of the workspace. Anything else is text. */
function linkTarget(raw: string): { attribute: "href" | "data-file"; value: string } | undefined {
  if (/^(https?:\/\/|mailto:)/i.test(raw)) {
    return { attribute: "href", value: raw };
  }
  if (raw.startsWith("file://")) {
    return { attribute: "data-file", value: raw.slice("file://".length) };
  }
  // No scheme and no protocol-relative host: a path.
  if (/^[a-z][a-z0-9+.-]*:/i.test(raw) || raw.startsWith("//") || raw.startsWith("#")) {
    return undefined;
  }
  return { attribute: "data-file", value: raw };
}

function link(text: string, raw: string, depth: number): string {
  const target = linkTarget(raw.trim());
  const inner = inline(text, depth + 1);
  if (!target) {
    return inner;
  }
  const href = target.attribute === "data-file" ? ' href="#"' : "";
  return `<a ${target.attribute}="${escapeHtml(target.value)}"${href}>${inner}</a>`;
}

const MOST_DEPTH = 6;
const URL_END = /[.,;:!?'")\]]+$/;

type Rule = [RegExp, (match: RegExpExecArray, depth: number) => string];

/** Tried in order at each place. Each is anchored and linear. */
const RULES: Rule[] = [
  [/\\([!-/:-@[-`{-~])/y, (m) => escapeHtml(m[1]!)],
  [/(`+)([^`]|[^`].*?[^`])\1(?!`)/sy, (m) => `<code>${escapeHtml(m[2]!.replace(/^ (.+) $/, "$1"))}</code>`],
  [/!\[([^\]]{0,500})\]\(([^()\s]{1,2000})[^)]{0,200}\)/y, (m, depth) => link(m[1] || m[2]!, m[2]!, depth)],
  [
    /\[([^[\]]{1,500})\]\(([^()\s]{1,2000}(?:\([^()\s]{0,200}\))?)(?:\s+"[^"]{0,200}")?\)/y,
    (m, d) => link(m[1]!, m[2]!, d),
  ],
  [/<((?:https?:\/\/|mailto:)[^<>\s]{1,2000})>/y, (m, depth) => link(m[1]!, m[1]!, depth)],
  [/\*\*(?=\S)([^*]{1,2000}|.{1,2000}?\S)\*\*/sy, (m, depth) => `<strong>${inline(m[1]!, depth + 1)}</strong>`],
  [/~~(?=\S)([^~]{1,2000})~~/y, (m, depth) => `<del>${inline(m[1]!, depth + 1)}</del>`],
  [/\*(?=[^\s*])([^*]{1,2000})\*(?!\*)/y, (m, depth) => `<em>${inline(m[1]!, depth + 1)}</em>`],
  [/(?<![A-Za-z0-9_])_(?=[^\s_])([^_]{1,2000})_(?![A-Za-z0-9_])/y, (m, d) => `<em>${inline(m[1]!, d + 1)}</em>`],
  [/ {2,}\n|\\\n/y, () => "<br>"],
];

function bareUrl(text: string, at: number, depth: number): { html: string; length: number } | undefined {
  const match = /https?:\/\/[^\s<>`]{1,2000}/y;
  match.lastIndex = at;
  const found = match.exec(text)?.[0].replace(URL_END, "");
  if (!found || depth > 0) {
    return undefined;
  }
  const safe = escapeHtml(found);
  return { html: `<a href="${safe}">${safe}</a>`, length: found.length };
}

function ruleAt(text: string, at: number, depth: number): { html: string; length: number } | undefined {
  for (const [pattern, html] of RULES) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match) {
      return { html: html(match, depth), length: match[0].length };
    }
  }
  return undefined;
}

/** Markdown of one paragraph to HTML. All text is escaped: the result has no tags but its own. */
export function inline(text: string, depth = 0): string {
  if (depth > MOST_DEPTH) {
    return escapeHtml(text);
  }
  let html = "";
  let plain = 0;
  let at = 0;
  while (at < text.length) {
    const special = /[\\`![<*~_ h]/g;
    special.lastIndex = at;
    const next = special.exec(text)?.index;
    if (next === undefined) {
      break;
    }
    at = next;
    const found = text[at] === "h" ? bareUrl(text, at, depth) : ruleAt(text, at, depth);
    if (found) {
      html += escapeHtml(text.slice(plain, at)) + found.html;
      at += found.length;
      plain = at;
    } else {
      at += 1;
    }
  }
  return html + escapeHtml(text.slice(plain));
}
