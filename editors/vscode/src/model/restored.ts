// What a restore did to files, in words.

/** `removed` is a part of `restored`. */
export function restoredWords(
  { restored, removed = [] }: { restored: string[]; removed?: string[] },
  short: (path: string) => string,
): string {
  const present = restored.filter((path) => !removed.includes(path));
  const part = (verb: string, paths: string[]) =>
    paths.length > 0 ? [`${verb} ${paths.map((path) => short(path)).join(", ")}`] : [];
  return [...part("restored", present), ...part("removed", removed)].join("; ") || "no file was changed";
}
