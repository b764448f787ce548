// Forms that castor asks for: the schema as fields, and the values checked against them.
import type { ElicitationSchema } from "@agentclientprotocol/sdk";
import type { FieldKind, FormField } from "./types";

type Loose = Record<string, unknown>;
export type FormValue = string | number | boolean | string[];

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function choices(property: Loose): FormField["choices"] {
  const items = (property.items ?? {}) as Loose;
  const titled = (property.oneOf ?? items.anyOf ?? items.oneOf) as { const: string; title?: string }[] | undefined;
  if (Array.isArray(titled)) {
    return titled.map((it) => ({ value: it.const, title: it.title ?? it.const }));
  }
  const plain = (property.enum ?? items.enum) as string[] | undefined;
  return Array.isArray(plain) ? plain.map((value) => ({ value, title: value })) : [];
}

function kindOf(property: Loose, options: FormField["choices"]): FieldKind | undefined {
  switch (property.type) {
    case "string":
      return options.length > 0 ? "choice" : "text";
    case "number":
    case "integer":
    case "boolean":
      return property.type;
    case "array":
      return options.length > 0 ? "choices" : undefined;
    default:
      return undefined;
  }
}

function initial(kind: FieldKind, value: unknown): FormField["initial"] {
  if (kind === "boolean") {
    return value === true;
  }
  if (kind === "choices") {
    return Array.isArray(value) ? value.filter((it) => typeof it === "string") : [];
  }
  return typeof value === "number" ? String(value) : text(value);
}

function field(name: string, property: Loose, required: boolean): FormField | undefined {
  const options = choices(property);
  const kind = kindOf(property, options);
  if (!kind) {
    return undefined;
  }
  const limit = (...names: string[]) => names.map((it) => property[it]).find((it) => typeof it === "number");
  const min = limit("minimum", "minLength", "minItems") as number | undefined;
  const max = limit("maximum", "maxLength", "maxItems") as number | undefined;
  return {
    name,
    kind,
    title: text(property.title) || name,
    description: text(property.description),
    required,
    choices: options,
    initial: initial(kind, property.default),
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    ...(text(property.pattern) ? { pattern: text(property.pattern) } : {}),
    ...(text(property.format) ? { format: text(property.format) } : {}),
  };
}

/** The fields of a form, or undefined where it needs one that cannot be shown. */
export function formFields(schema: ElicitationSchema): FormField[] | undefined {
  const required = new Set(schema.required ?? []);
  const fields: FormField[] = [];
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const found = field(name, property as Loose, required.has(name));
    if (found) {
      fields.push(found);
    } else if (required.has(name)) {
      return undefined;
    }
  }
  return fields;
}

const FORMATS: Record<string, [RegExp, string]> = {
  email: [/^[^\s@]+@[^\s@]+\.[^\s@]+$/, "a mail address"],
  uri: [/^[a-z][a-z0-9+.-]*:\S+$/i, "a URI"],
  date: [/^\d{4}-\d{2}-\d{2}$/, "a date such as 2026-01-31"],
  "date-time": [/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/, "a time such as 2026-01-31T12:00:00Z"],
};

function checkText(it: FormField, value: string): string | undefined {
  const long = [...value].length;
  if (it.min !== undefined && long < it.min) {
    return `needs at least ${it.min} characters`;
  }
  if (it.max !== undefined && long > it.max) {
    return `takes at most ${it.max} characters`;
  }
  const format = FORMATS[it.format ?? ""];
  if (format && !format[0].test(value)) {
    return `needs ${format[1]}`;
  }
  return it.pattern && !fits(it.pattern, value) ? `has to match ${it.pattern}` : undefined;
}

function fits(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    // castor checks the answer, too.
    return true;
  }
}

function checkNumber(it: FormField, value: number): string | undefined {
  if (!Number.isFinite(value) || (it.kind === "integer" && !Number.isInteger(value))) {
    return it.kind === "integer" ? "needs a whole number" : "needs a number";
  }
  if (it.min !== undefined && value < it.min) {
    return `needs at least ${it.min}`;
  }
  return it.max !== undefined && value > it.max ? `takes at most ${it.max}` : undefined;
}

function checkCount(it: FormField, count: number): string | undefined {
  if (it.min !== undefined && count < it.min) {
    return `needs at least ${it.min} choices`;
  }
  return it.max !== undefined && count > it.max ? `takes at most ${it.max} choices` : undefined;
}

export interface FormResult {
  content: Record<string, FormValue>;
  /** By field: what is wrong with it. */
  errors: Record<string, string>;
}

/** Checks what was typed, and gives each value its type. */
export function readForm(fields: FormField[], typed: Record<string, FormField["initial"]>): FormResult {
  const result: FormResult = { content: {}, errors: {} };
  for (const it of fields) {
    const raw = typed[it.name] ?? it.initial;
    const empty = raw === "" || (Array.isArray(raw) && raw.length === 0);
    if (empty && it.required) {
      result.errors[it.name] = "is needed";
    } else if (!empty) {
      const value = it.kind === "number" || it.kind === "integer" ? Number(raw) : raw;
      const wrong = check(it, value);
      if (wrong) {
        result.errors[it.name] = wrong;
      } else {
        result.content[it.name] = value;
      }
    }
  }
  return result;
}

function check(it: FormField, value: FormValue): string | undefined {
  if (typeof value === "number") {
    return checkNumber(it, value);
  }
  if (Array.isArray(value)) {
    return checkCount(it, value.length);
  }
  return it.kind === "text" ? checkText(it, String(value)) : undefined;
}
