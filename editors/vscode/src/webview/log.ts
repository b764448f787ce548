// The list of items. Only its end is drawn at first; earlier items follow as one scrolls up.
import type { Head, Item } from "../model/types";
import { button, make } from "./dom";
import { Follow } from "./follow";
import { showFormErrors } from "./formCard";
import { drawItem } from "./items";

/** Drawn at once, in one chunk. The browser skips chunks that are out of sight as a whole. */
const STEP = 80;
/** Nearer to the first drawn item than this, earlier ones are drawn. */
const NEAR_START = 600;

export class Log {
  readonly element = make("div", { class: "log", role: "log", "aria-label": "Conversation", tabindex: "0" });
  private readonly list = make("div", { class: "items" });
  private readonly earlier = button("Show earlier messages", () => this.drawEarlier(), { class: "link earlier" });
  private order: string[] = [];
  private readonly items = new Map<string, Item>();
  private readonly elements = new Map<string, HTMLElement>();
  /** Folded parts as the user left them. */
  private readonly opened = new Map<string, boolean>();
  /** The first item that is drawn. */
  private first = 0;
  private can = { canRewind: false, canFork: false };
  private readonly follow = new Follow();

  constructor() {
    this.element.append(this.earlier, this.list);
    this.earlier.hidden = true;
    // Pictures and diagrams get their height after they were added.
    const sizes = new ResizeObserver(() => this.keepPlace());
    sizes.observe(this.element);
    sizes.observe(this.list);
    this.element.addEventListener("scroll", () => {
      this.follow.scrolled(this.element);
      if (this.element.scrollTop < NEAR_START) {
        this.drawEarlier();
      }
    });
    this.list.addEventListener("click", (event) => this.noteOpened(event));
  }

  private noteOpened(event: Event): void {
    const summary = (event.target as Element).closest("summary");
    const details = summary?.parentElement as HTMLDetailsElement | null;
    const id = details?.closest<HTMLElement>("[data-id]")?.dataset.id;
    if (details && id) {
      // It toggles after the click.
      this.opened.set(id, !details.open);
    }
  }

  reset(items: Item[], head: Head): void {
    this.items.clear();
    this.elements.clear();
    this.list.replaceChildren();
    this.order = items.map((it) => it.id);
    for (const it of items) {
      this.items.set(it.id, it);
    }
    this.can = { canRewind: head.canRewind, canFork: head.canFork };
    this.first = Math.max(0, this.order.length - STEP);
    this.list.append(this.chunk(this.order.slice(this.first)));
    this.earlier.hidden = this.first === 0;
    this.toEnd();
  }

  /** Goes to the end, and stays there. */
  toEnd(): void {
    this.follow.goToEnd();
    this.keepPlace();
  }

  patch(items: Item[], removed: string[]): void {
    if (removed.length > 0) {
      this.remove(new Set(removed));
    }
    for (const it of items) {
      this.put(it);
    }
    this.keepPlace();
  }

  private remove(ids: Set<string>): void {
    const before = this.order.slice(0, this.first).filter((id) => !ids.has(id)).length;
    this.order = this.order.filter((id) => !ids.has(id));
    this.first = before;
    for (const id of ids) {
      this.items.delete(id);
      this.elements.get(id)?.remove();
      this.elements.delete(id);
    }
  }

  private put(item: Item): void {
    const known = this.items.has(item.id);
    this.items.set(item.id, item);
    if (!known) {
      this.order.push(item.id);
      this.append(item.id);
      return;
    }
    const old = this.elements.get(item.id);
    if (!old) {
      // It stands before what is drawn.
      return;
    }
    const hadFocus = old.contains(document.activeElement);
    const fresh = this.draw(item.id);
    old.replaceWith(fresh);
    if (hadFocus) {
      (fresh.querySelector<HTMLElement>("button, summary, [tabindex]") ?? this.element).focus({ preventScroll: true });
    }
  }

  /** A chunk is laid out once, so that its height is known when it is skipped later. */
  private chunk(ids: string[]): HTMLElement {
    const element = make("div", { class: "chunk fresh" }, ...ids.map((id) => this.draw(id)));
    requestAnimationFrame(() => requestAnimationFrame(() => element.classList.remove("fresh")));
    return element;
  }

  private append(id: string): void {
    const last = this.list.lastElementChild;
    if (last && last.childElementCount < STEP) {
      last.append(this.draw(id));
    } else {
      this.list.append(this.chunk([id]));
    }
  }

  private draw(id: string): HTMLElement {
    const item = this.items.get(id)!;
    const element = make("div", { class: `item is-${item.kind}`, "data-id": id });
    element.append(drawItem(item, { ...this.can, open: this.opened.get(id) }));
    this.elements.set(id, element);
    return element;
  }

  private drawEarlier(): void {
    if (this.first === 0) {
      return;
    }
    const from = Math.max(0, this.first - STEP);
    const height = this.element.scrollHeight;
    const top = this.element.scrollTop;
    this.list.prepend(this.chunk(this.order.slice(from, this.first)));
    this.first = from;
    this.earlier.hidden = from === 0;
    // What is read stays where it is.
    this.element.scrollTop = top + this.element.scrollHeight - height;
    this.follow.moved(this.element.scrollTop);
  }

  formErrors(id: string, errors: Record<string, string>): void {
    const element = this.elements.get(id);
    if (element) {
      showFormErrors(element, errors);
    }
  }

  get size(): number {
    return this.order.length;
  }

  private keepPlace(): void {
    const place = this.follow.placeAfterChange(this.element);
    if (place !== undefined) {
      this.element.scrollTop = place;
    }
  }
}
