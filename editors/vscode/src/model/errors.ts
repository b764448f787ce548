// Errors of the agent as words for people, with what helps.

export interface Failure {
  title: string;
  text: string;
  /** `data.kind` of castor's errors. */
  kind: string;
  action?: { command: string; label: string };
}

const SIGN_IN = { command: "castor.login", label: "Sign in" };
const LOG = { command: "castor.log", label: "Show the log" };

interface ErrorData {
  kind?: string;
  details?: unknown;
}

export function failure(error: unknown): Failure {
  const it = error as { message?: string; code?: unknown; data?: ErrorData } | null;
  const title = it?.message ?? String(error);
  const details = it?.data?.details;
  const found: Failure = {
    title,
    text: typeof details === "string" ? details : "",
    kind: it?.data?.kind ?? "",
  };
  if (found.kind === "locked") {
    return {
      ...found,
      title: "This session is open in another window, or on the command line.",
      text: "Close it there first.",
    };
  }
  if (it?.code === -32000) {
    return { ...found, kind: "auth", action: SIGN_IN };
  }
  return it?.code === "ENOENT" ? { ...missing(), kind: "missing" } : { ...found, action: LOG };
}

function missing(): Omit<Failure, "kind"> {
  return {
    title: "The castor program is not there.",
    text: "Write its full path into the setting castor.path, or install the extension for your system.",
    action: { command: "castor.settings", label: "Open the settings" },
  };
}
