// Some lines of a text, as fs/read_text_file asks for them.

/** From line `from` (1 is the first) at most `limit` lines; each keeps its end. */
export function cutLines(text: string, from?: number, limit?: number): string {
  if (from === undefined && limit === undefined) {
    return text;
  }
  const lines = text.split(/(?<=\n)/);
  const start = Math.max(0, (from ?? 1) - 1);
  return lines.slice(start, limit === undefined ? undefined : start + limit).join("");
}

/** The end of a text, at most `most` bytes of UTF-8, beginning with a whole character. */
export function lastBytes(text: string, most: number): { text: string; cut: boolean } {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= most) {
    return { text, cut: false };
  }
  let start = bytes.length - most;
  while (start < bytes.length && (bytes[start]! & 0xc0) === 0x80) {
    start++;
  }
  return { text: new TextDecoder().decode(bytes.subarray(start)), cut: true };
}
