// The options of a session, as buttons and as lists to choose from.
import type { SessionConfigOption, SessionConfigSelectOption } from "@agentclientprotocol/sdk";
import type { OptionView } from "./types";

export interface Choice {
  value: string | boolean;
  name: string;
  description: string;
  current: boolean;
  /** The heading that stands above it; absent where it is that of the one before. */
  group?: string;
}

function choice(it: SessionConfigSelectOption, current: string): Choice {
  return { value: it.value, name: it.name, description: it.description ?? "", current: it.value === current };
}

export function choices(option: SessionConfigOption): Choice[] {
  if (option.type === "boolean") {
    return [true, false].map((value) => ({
      value,
      name: value ? "On" : "Off",
      description: "",
      current: option.currentValue === value,
    }));
  }
  if (option.type !== "select") {
    return [];
  }
  const current = String(option.currentValue);
  const options = option.options as (
    | SessionConfigSelectOption
    | { name: string; options: SessionConfigSelectOption[] }
  )[];
  return options.flatMap((it) =>
    "options" in it
      ? it.options.map((inner, index) => ({ ...choice(inner, current), ...(index === 0 ? { group: it.name } : {}) }))
      : [choice(it, current)],
  );
}

export function optionViews(options: SessionConfigOption[]): OptionView[] {
  return options.map((it) => ({
    id: it.id,
    name: it.name,
    value: choices(it).find((one) => one.current)?.name ?? String("currentValue" in it ? it.currentValue : ""),
  }));
}
