// A form that castor asks to fill in.
import type { FormField, FormItem } from "../model/types";
import { button, make } from "./dom";
import { send } from "./host";

type Values = Record<string, FormField["initial"]>;

/** One choice among so many is a button each: nothing is left to send. */
const MOST_BUTTONS = 5;

function choiceInput(field: FormField, id: string): HTMLElement {
  const select = make("select", { id, name: field.name, required: field.required });
  if (!field.required || field.initial === "") {
    select.append(make("option", { value: "" }, ""));
  }
  for (const it of field.choices) {
    select.append(make("option", { value: it.value, selected: it.value === field.initial }, it.title));
  }
  return select;
}

function choicesInput(field: FormField, id: string): HTMLElement {
  const chosen = new Set(Array.isArray(field.initial) ? field.initial : []);
  const boxes = field.choices.map((it) =>
    make(
      "label",
      { class: "choice" },
      make("input", { type: "checkbox", name: field.name, value: it.value, checked: chosen.has(it.value) }),
      it.title,
    ),
  );
  return make("div", { id, role: "group", "aria-labelledby": `${id}-label` }, ...boxes);
}

function input(field: FormField, id: string): HTMLElement {
  switch (field.kind) {
    case "choice":
      return choiceInput(field, id);
    case "choices":
      return choicesInput(field, id);
    case "boolean":
      return make("input", { type: "checkbox", id, name: field.name, checked: field.initial === true });
    default:
      return make("input", {
        type: field.kind === "text" ? "text" : "number",
        step: field.kind === "integer" ? "1" : "any",
        id,
        name: field.name,
        value: String(field.initial),
        "aria-describedby": `${id}-about`,
      });
  }
}

function row(field: FormField, form: string): HTMLElement {
  const id = `${form}-${field.name}`;
  const label = `${field.title}${field.required ? " *" : ""}`;
  return make(
    "div",
    { class: "field" },
    field.kind === "choices"
      ? make("span", { id: `${id}-label`, class: "label" }, label)
      : make("label", { for: id, class: "label" }, label),
    input(field, id),
    make("div", { id: `${id}-about`, class: "about" }, field.description),
    make("div", { class: "wrong", "data-field": field.name, role: "alert" }),
  );
}

function values(element: HTMLElement, fields: FormField[]): Values {
  const found: Values = {};
  for (const field of fields) {
    const named = [...element.querySelectorAll<HTMLInputElement>(`[name="${CSS.escape(field.name)}"]`)];
    const first = named[0];
    if (field.kind === "choices") {
      found[field.name] = named.filter((it) => it.checked).map((it) => it.value);
    } else if (first) {
      found[field.name] = field.kind === "boolean" ? first.checked : first.value;
    }
  }
  return found;
}

export function showFormErrors(element: HTMLElement, errors: Record<string, string>): void {
  for (const place of element.querySelectorAll<HTMLElement>(".wrong")) {
    const wrong = errors[place.dataset.field ?? ""];
    place.textContent = wrong ? `This ${wrong}.` : "";
  }
}

function choiceCard(item: FormItem, field: FormField): HTMLElement {
  const answer = (action: "accept" | "decline", values: Values) => (): void =>
    send({ type: "form", id: item.id, action, values });
  const buttons = field.choices.map((it) =>
    button(it.title, answer("accept", { [field.name]: it.value }), { "data-choice": it.value }),
  );
  return make(
    "div",
    { class: "card question", role: "group", "aria-label": "castor asks" },
    make("p", { class: "message" }, item.message),
    field.description !== "" && make("p", { class: "about" }, field.description),
    make("div", { class: "buttons" }, ...buttons, button("Decline", answer("decline", {}))),
  );
}

export function formCard(item: FormItem): HTMLElement {
  if (item.answer !== undefined) {
    return make(
      "div",
      { class: "card answered" },
      make("p", {}, item.message),
      make("p", { class: "about" }, item.answer),
    );
  }
  const [only, ...others] = item.fields;
  if (only?.kind === "choice" && others.length === 0 && only.choices.length <= MOST_BUTTONS) {
    return choiceCard(item, only);
  }
  const card = make("form", { class: "card question", "aria-label": "castor asks", novalidate: true });
  const answer = (action: "accept" | "decline") => (): void =>
    send({ type: "form", id: item.id, action, values: values(card, item.fields) });
  card.addEventListener("submit", (event) => {
    event.preventDefault();
    answer("accept")();
  });
  card.append(
    make("p", { class: "message" }, item.message),
    ...(item.url ? [make("p", { class: "about" }, item.url)] : item.fields.map((it) => row(it, item.id))),
    make(
      "div",
      { class: "buttons" },
      item.signIn === true && button("Sign in", () => send({ type: "signIn", id: item.id }), { class: "primary" }),
      make(
        "button",
        { type: "submit", class: item.signIn === true ? "" : "primary" },
        item.url ? "Open the page" : "Send",
      ),
      button("Decline", answer("decline")),
    ),
  );
  return card;
}
