// The list above the field: files and commands that fit what is typed.
import { make } from "./dom";

export interface Suggestion {
  value: string;
  label: string;
  about: string;
}

const MOST = 12;

export class Suggestions {
  readonly element = make("ul", {
    class: "suggestions",
    id: "suggestions",
    role: "listbox",
    "aria-label": "Suggestions",
    hidden: true,
  });
  private shown: Suggestion[] = [];
  private chosen = 0;

  constructor(
    private readonly field: HTMLTextAreaElement,
    private readonly accept: (value: string) => void,
  ) {}

  show(all: Suggestion[]): void {
    this.shown = all.slice(0, MOST);
    this.chosen = 0;
    this.draw();
  }

  hide(): void {
    this.show([]);
  }

  private draw(): void {
    const rows = this.shown.map((it, index) =>
      make(
        "li",
        {
          id: `suggestion-${index}`,
          role: "option",
          "aria-selected": String(index === this.chosen),
          onmousedown: (event) => {
            event.preventDefault();
            this.take(index);
          },
        },
        make("span", {}, it.label),
        make("span", { class: "about" }, it.about),
      ),
    );
    this.element.replaceChildren(...rows);
    const open = rows.length > 0;
    this.element.hidden = !open;
    if (open) {
      this.field.setAttribute("aria-activedescendant", `suggestion-${this.chosen}`);
      rows[this.chosen]?.scrollIntoView({ block: "nearest" });
    } else {
      this.field.removeAttribute("aria-activedescendant");
    }
  }

  private take(index: number): void {
    const it = this.shown[index];
    this.hide();
    if (it) {
      this.accept(it.value);
    }
  }

  /** True: the key was for the list. */
  key(event: KeyboardEvent): boolean {
    if (this.shown.length === 0) {
      return false;
    }
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    const step = steps[event.key];
    if (step !== undefined) {
      this.chosen = (this.chosen + step + this.shown.length) % this.shown.length;
      this.draw();
    } else if (event.key === "Enter" || event.key === "Tab") {
      this.take(this.chosen);
    } else if (event.key === "Escape") {
      this.hide();
    } else {
      return false;
    }
    event.preventDefault();
    return true;
  }
}
