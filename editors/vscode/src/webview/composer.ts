// The field in which a prompt is typed, with what is added to it and what completes it.
import { type Attachment, type Completion, complete, completionAt, droppedUris, fit } from "../model/compose";
import type { Head } from "../model/types";
import { button, make } from "./dom";
import { keepDraft, keptDraft, send } from "./host";
import { Suggestions } from "./suggestions";

const MOST_IMAGE = 10 * 1024 * 1024;
/** A text that has no address here goes into the message as it is. */
const MOST_TEXT = 256 * 1024;

export class Composer {
  private readonly text = make("textarea", {
    rows: "3",
    "aria-label": "Message to castor",
    placeholder: "Ask castor, @ adds a file, / shows commands",
    "aria-controls": "suggestions",
    "aria-autocomplete": "list",
  });
  private readonly chips = make("div", { class: "chips", "aria-label": "Added to the message", role: "list" });
  private readonly suggestions = new Suggestions(this.text, (value) => this.accept(value));
  private readonly stop = button("Stop", () => send({ type: "cancel" }), {
    class: "stop",
    title: "Ends the turn (Esc)",
  });
  private readonly submit = button("Send", () => this.send(), { class: "primary" });
  private readonly options = make("div", { class: "options", role: "group", "aria-label": "Options of the session" });
  readonly element = make("div", { class: "composer" });
  private attachments: Attachment[] = [];
  private completion: Completion | undefined;
  private commands: Head["commands"] = [];
  private running = false;

  /** `sent`: something was sent. */
  constructor(private readonly sent: () => void) {
    const add = button("+", () => send({ type: "pickFile" }), {
      class: "icon",
      "aria-label": "Add files",
      title: "Add files",
    });
    const line = make("div", { class: "line" }, add, this.options, this.stop, this.submit);
    this.element.append(this.suggestions.element, this.chips, this.text, line);
    this.text.value = keptDraft();
    this.text.addEventListener("input", () => this.typed());
    this.text.addEventListener("keydown", (event) => this.key(event));
    this.text.addEventListener("paste", (event) => this.paste(event));
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => this.drop(event));
    this.drawChips();
  }

  focus(): void {
    this.text.focus();
  }

  setHead(head: Head): void {
    this.running = head.running;
    this.commands = head.commands;
    this.stop.hidden = !head.running;
    this.submit.textContent = head.running ? "Steer" : "Send";
    const buttons = head.options.map((it) =>
      button(it.value, () => send({ type: "option", id: it.id }), {
        class: "option",
        title: it.name,
        "aria-label": `${it.name}: ${it.value}`,
        "data-option": it.id,
      }),
    );
    this.options.replaceChildren(...buttons);
  }

  setFiles(query: string, paths: string[]): void {
    if (this.completion?.kind === "file" && this.completion.query === query) {
      this.suggestions.show(paths.map((path) => ({ value: path, label: path, about: "" })));
    }
  }

  attach(attachment: Attachment): void {
    this.attachments.push(attachment);
    this.drawChips();
    this.focus();
  }

  /** What could not be sent stands in the field again, before what was typed meanwhile. */
  restore(text: string, attachments: Attachment[]): void {
    this.text.value = [text, this.text.value].filter(Boolean).join("\n");
    this.attachments.unshift(...attachments);
    keepDraft(this.text.value);
    this.drawChips();
  }

  private typed(): void {
    keepDraft(this.text.value);
    this.completion = completionAt(this.text.value, this.text.selectionStart);
    const it = this.completion;
    if (it?.kind === "file") {
      send({ type: "files", query: it.query });
    } else if (it) {
      const found = this.commands.flatMap((command) => {
        const score = fit(command.name, it.query);
        return score === undefined ? [] : [{ command, score }];
      });
      found.sort((a, b) => a.score - b.score);
      this.suggestions.show(
        found.map(({ command }) => ({
          value: command.name,
          label: `/${command.name} ${command.hint}`,
          about: command.description,
        })),
      );
    } else {
      this.suggestions.hide();
    }
  }

  private accept(value: string): void {
    const it = this.completion;
    if (!it) {
      return;
    }
    const by = it.kind === "file" ? "" : `/${value} `;
    const { text, caret } = complete(this.text.value, this.text.selectionStart, it, by);
    this.text.value = text;
    this.text.setSelectionRange(caret, caret);
    keepDraft(text);
    if (it.kind === "file") {
      send({ type: "attachFile", path: value });
    }
    this.completion = undefined;
  }

  private key(event: KeyboardEvent): void {
    if (event.isComposing || this.suggestions.key(event)) {
      return;
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.send();
    } else if (event.key === "Escape" && this.running) {
      event.preventDefault();
      send({ type: "cancel" });
    }
  }

  private send(): void {
    const text = this.text.value.trim();
    if (text === "" && this.attachments.length === 0) {
      return;
    }
    send({ type: "prompt", text, attachments: this.attachments });
    this.sent();
    this.attachments = [];
    this.text.value = "";
    keepDraft("");
    this.suggestions.hide();
    this.drawChips();
  }

  private paste(event: ClipboardEvent): void {
    const files = [...(event.clipboardData?.files ?? [])].filter((it) => it.type.startsWith("image/"));
    if (files.length > 0) {
      event.preventDefault();
      for (const file of files) {
        void this.addImage(file);
      }
    }
  }

  private drop(event: DragEvent): void {
    event.preventDefault();
    const uris = droppedUris((type) => event.dataTransfer?.getData(type) ?? "");
    if (uris.length > 0) {
      send({ type: "attachDropped", uris });
      return;
    }
    for (const file of event.dataTransfer?.files ?? []) {
      void (file.type.startsWith("image/") ? this.addImage(file) : this.addText(file));
    }
  }

  private async addText(file: File): Promise<void> {
    const refused = (reason: string): void => send({ type: "refused", label: file.name, reason });
    if (file.size > MOST_TEXT) {
      return refused("it is larger than 256 KiB");
    }
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      const uri = `attachment:///${encodeURIComponent(file.name)}`;
      this.attach({ kind: "selection", label: file.name, uri, text });
    } catch {
      refused("it is neither a picture nor text in UTF-8");
    }
  }

  private async addImage(file: File): Promise<void> {
    if (file.size > MOST_IMAGE) {
      return send({ type: "refused", label: file.name || "The picture", reason: "it is larger than 10 MiB" });
    }
    const bytes = new Uint8Array(await file.arrayBuffer());
    let binary = "";
    for (let at = 0; at < bytes.length; at += 0x8000) {
      binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    }
    this.attach({ kind: "image", label: file.name || "Picture", mimeType: file.type, data: btoa(binary) });
  }

  private drawChips(): void {
    const chips = this.attachments.map((it, index) => {
      const remove = (): void => {
        this.attachments.splice(index, 1);
        this.drawChips();
        this.focus();
      };
      const cross = button("×", remove, { class: "link", "aria-label": `Remove ${it.label}` });
      return make("span", { class: "chip", role: "listitem" }, it.label, cross);
    });
    this.chips.replaceChildren(...chips);
    this.chips.hidden = chips.length === 0;
  }
}
