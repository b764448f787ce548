// Makes elements.

type Child = Node | string | undefined | false;
type Attributes = Record<string, string | boolean | undefined | ((event: Event) => void)>;

/** An element with attributes, listeners (`onclick`) and children. A false or undefined one is left out. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), value);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (typeof value === "string") {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.filter((it) => it !== undefined && it !== false));
  return element;
}

export function button(label: string, onclick: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return make("button", { type: "button", onclick, ...attributes }, label);
}

/** Text of Markdown as elements: the HTML is made by our own parser, which escapes all text. */
export function html(tag: "div" | "span", className: string, source: string): HTMLElement {
  const element = make(tag, { class: className });
  element.innerHTML = source;
  return element;
}
