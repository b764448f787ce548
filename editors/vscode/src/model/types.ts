// What the chat shows: items of a conversation, and what stands around them.

/** A row of a diff: kept, removed or added. */
export interface DiffRow {
  kind: "same" | "removed" | "added";
  text: string;
}

/** Neighbouring rows of a diff, with the lines where they begin (from 1). */
export interface Hunk {
  oldStart: number;
  newStart: number;
  rows: DiffRow[];
}

/** A proposed or made change of one file. `hunks` is cut where the change is long. */
export interface DiffView {
  path: string;
  added: number;
  removed: number;
  hunks: Hunk[];
  cut: boolean;
}

export type CallStatus = "pending" | "in_progress" | "completed" | "failed";

export interface CallItem {
  kind: "call";
  id: string;
  callId: string;
  title: string;
  tool: string;
  status: CallStatus;
  /** Text for people: a reason, a result. */
  text: string;
  /** What a command has printed so far. */
  output: string;
  diffs: DiffView[];
  images: ImageView[];
  locations: { path: string; line?: number }[];
  /** A terminal of the editor that shows it, if one does. */
  terminalId?: string;
}

export interface ImageView {
  mimeType: string;
  data: string;
}

/** What the user added to a prompt, beside its text. */
export interface ChipView {
  label: string;
  title: string;
}

export interface UserItem {
  kind: "user";
  id: string;
  messageId?: string;
  text: string;
  images: ImageView[];
  chips: ChipView[];
  /** Said while a turn ran: no turn begins here. */
  steering?: boolean;
}

export interface TextItem {
  kind: "answer" | "thought";
  id: string;
  text: string;
  images: ImageView[];
}

export interface NoticeItem {
  kind: "notice";
  id: string;
  severity: string;
  title: string;
  text: string;
  /** A command of the extension that helps, and its label. */
  action?: { command: string; label: string };
}

export interface PermissionItem {
  kind: "permission";
  id: string;
  callId: string;
  title: string;
  text: string;
  diffs: DiffView[];
  /** The user edited the change in the diff editor: `diffs` show what would be written. */
  edited?: boolean;
  options: { id: string; name: string; kind: string }[];
  /** Absent while it waits; then what became of it. */
  answer?: string;
}

export interface FormItem {
  kind: "form";
  id: string;
  message: string;
  fields: FormField[];
  /** A page to visit, in place of fields. */
  url?: string;
  /** A key was refused, and signing in stores another. */
  signIn?: boolean;
  answer?: string;
}

export interface ChangedFile {
  path: string;
  change: string;
  added: number;
  removed: number;
  /** An agent wrote some of it, as it is now, and nobody looked at that. */
  unseen?: boolean;
}

/** The end of a turn: why it ended, what it changed. */
export interface EndItem {
  kind: "end";
  id: string;
  reason: string;
  /** Of the user's message: a rewind goes there. Absent where the turn changed no file. */
  messageId?: string;
  files: ChangedFile[];
  cost: string;
}

export type Item = UserItem | TextItem | CallItem | NoticeItem | PermissionItem | FormItem | EndItem;

export interface PlanEntry {
  content: string;
  status: string;
}

export interface OptionView {
  id: string;
  name: string;
  value: string;
}

export interface CommandView {
  name: string;
  description: string;
  hint: string;
}

/** What stands around the conversation. */
export interface Head {
  title: string;
  running: boolean;
  plan: PlanEntry[];
  options: OptionView[];
  commands: CommandView[];
  used: number;
  size: number;
  cost: string;
  canRewind: boolean;
  canFork: boolean;
}

export type FieldKind = "text" | "number" | "integer" | "boolean" | "choice" | "choices";

export interface FormField {
  name: string;
  kind: FieldKind;
  title: string;
  description: string;
  required: boolean;
  choices: { value: string; title: string }[];
  initial: string | boolean | string[];
  min?: number;
  max?: number;
  pattern?: string;
  format?: string;
}
