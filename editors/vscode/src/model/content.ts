// Reads content blocks of the protocol: text, pictures, and what stands for a file.
import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { ChipView, ImageView } from "./types";

export function contentText(blocks: readonly ContentBlock[]): string {
  return blocks.map(blockText).join("");
}

function blockText(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "resource_link":
      return block.title ?? block.name;
    case "resource":
      return "text" in block.resource ? block.resource.text : block.resource.uri;
    default:
      return "";
  }
}

export function imageOf(block: ContentBlock): ImageView | undefined {
  return block.type === "image" ? { mimeType: block.mimeType, data: block.data } : undefined;
}

/** A message of the user: its words, and beside them pictures and files. */
export function readBlocks(blocks: readonly ContentBlock[]): { text: string; images: ImageView[]; chips: ChipView[] } {
  const read = { text: "", images: [] as ImageView[], chips: [] as ChipView[] };
  for (const block of blocks) {
    if (block.type === "text") {
      read.text += block.text;
    } else if (block.type === "image") {
      read.images.push({ mimeType: block.mimeType, data: block.data });
    } else if (block.type === "resource_link") {
      read.chips.push({ label: block.title ?? block.name, title: block.uri });
    } else if (block.type === "resource") {
      read.chips.push({ label: uriLabel(block.resource.uri), title: block.resource.uri });
    }
  }
  return read;
}

/** The end of a URI, with the lines that it names: `notes.md#L3-9`. */
export function uriLabel(uri: string): string {
  const tail = uri.split("/").at(-1) ?? uri;
  try {
    return decodeURIComponent(tail);
  } catch {
    return tail;
  }
}
