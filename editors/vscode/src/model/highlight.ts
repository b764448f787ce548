// Colours code a little: comments, texts, numbers and the words of the usual languages.
import { escapeHtml } from "./inline";

/** Longer code stays plain: colours are not worth the wait. */
const MOST = 50_000;

const WORDS = new Set(
  (
    "abstract as assert async await bool boolean break case catch char class const continue crate def default defer del do " +
    "done double dyn elif else end enum esac except export extends extern false fi final finally float fn for from func " +
    "function global go goto if impl implements import in instanceof int interface is lambda let long loop match mod module " +
    "move mut namespace new nil none None not null or override package pass private protected pub public raise ref return " +
    "self Self short static string struct super switch template then this throw throws trait true True False try type " +
    "typedef typeof undefined union unsafe use using val var virtual void volatile when where while with yield"
  ).split(" "),
);

const HASH = /^(py|python|sh|bash|zsh|shell|rb|ruby|toml|yaml|yml|makefile|dockerfile|r|perl|nix|ini|conf)$/i;
const DASH = /^(sql|lua|haskell|hs|ada)$/i;
const MARKUP = /^(html|xml|svg|vue|md|markdown|text|txt|plain)$/i;

function tokens(language: string): RegExp {
  const comment = HASH.test(language)
    ? "#[^\\n]*"
    : DASH.test(language)
      ? "--[^\\n]*"
      : "\\/\\/[^\\n]*|\\/\\*[\\s\\S]*?(?:\\*\\/|$)";
  const texts = "\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'|`(?:\\\\.|[^`\\\\])*`?";
  return new RegExp(`(${comment})|(${texts})|(\\b\\d[\\w.]*\\b)|([A-Za-z_][A-Za-z0-9_]*)`, "g");
}

function diff(code: string): string {
  const kinds: Record<string, string> = { "+": "added", "-": "removed", "@": "number" };
  return code
    .split("\n")
    .map((line) => {
      const kind = kinds[line[0] ?? ""];
      return kind ? `<span class="t-${kind}">${escapeHtml(line)}</span>` : escapeHtml(line);
    })
    .join("\n");
}

/** The code as HTML. */
export function highlight(code: string, language: string): string {
  if (code.length > MOST || language === "" || MARKUP.test(language)) {
    return escapeHtml(code);
  }
  if (/^(diff|patch)$/i.test(language)) {
    return diff(code);
  }
  let html = "";
  let at = 0;
  for (const match of code.matchAll(tokens(language))) {
    const [text, comment, quoted, number, word] = match;
    const kind = comment ? "comment" : quoted ? "text" : number ? "number" : word && WORDS.has(word) ? "word" : "";
    html += escapeHtml(code.slice(at, match.index));
    html += kind ? `<span class="t-${kind}">${escapeHtml(text)}</span>` : escapeHtml(text);
    at = match.index + text.length;
  }
  return html + escapeHtml(code.slice(at));
}
