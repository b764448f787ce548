// What the user does in the chat: each message of its page, and the commands that are more than one line.
import * as vscode from "vscode";
import { failure } from "../model/errors";
import { choices } from "../model/options";
import type { FromView } from "../model/protocol";
import { restoredWords } from "../model/restored";
import { FileNames, fileAttachment, pickFiles } from "./attach";
import type { Castor } from "./castor";
import type { ChatView } from "./chatView";
import type { Diffs } from "./diffs";
import type { RewindParams } from "./extensions";
import type { Questions } from "./questions";
import type { Terminals } from "./terminals";

export interface Parts {
  castor: Castor;
  questions: Questions;
  terminals: Terminals;
  diffs: Diffs;
  /** Asks for a key in a terminal; `done` where it is stored. */
  signIn(done: () => unknown): void;
  /** Set after the view is made, which needs the actions itself. */
  view(): ChatView;
}

/** Commands that the page may run. */
const COMMANDS = new Set([
  "castor.restart",
  "castor.login",
  "castor.demo",
  "castor.log",
  "castor.settings",
  "castor.undo",
  "castor.redo",
]);

export class Actions {
  private readonly names = new FileNames();

  constructor(private readonly parts: Parts) {}

  async handle(message: FromView): Promise<void> {
    try {
      await this.run(message);
    } catch (error) {
      this.tell(error);
    }
  }

  tell(error: unknown): void {
    const { title, text } = failure(error);
    void vscode.window.showErrorMessage([title, text].filter(Boolean).join(" "));
  }

  private run(message: FromView): unknown {
    const { castor, questions, diffs, terminals } = this.parts;
    switch (message.type) {
      case "prompt":
        return this.prompt(message);
      case "cancel":
        return castor.current?.cancel();
      case "permission":
        return questions.answerPermission(message.id, message.optionId);
      case "form":
        return this.form(message);
      case "signIn":
        return this.parts.signIn(() => questions.answerForm(message.id, true, {}));
      case "openDiff":
        return diffs.openCall(message.callId, message.index);
      case "openTurn":
        return diffs.openTurn(message.endId);
      case "terminal":
        return terminals.show(message.terminalId);
      case "option":
        return this.chooseOption(message.id);
      case "undo":
        return this.undo(message.messageId, message.what);
      case "fork":
        return castor.current && castor.fork(castor.current.id, message.messageId);
      case "command":
        return COMMANDS.has(message.command) ? vscode.commands.executeCommand(message.command) : undefined;
      default:
        return this.runFiles(message);
    }
  }

  private async runFiles(message: FromView): Promise<unknown> {
    const { castor } = this.parts;
    switch (message.type) {
      case "files":
        return this.parts.view().post({
          type: "files",
          query: message.query,
          paths: await this.names.find(message.query, castor.cwd),
        });
      case "attachFile":
        return this.attach([this.uriOf(message.path)]);
      case "attachDropped":
        // castor runs where the files are, so that a remote address is a file here.
        return this.attach(message.uris.map((uri) => vscode.Uri.file(vscode.Uri.parse(uri).path)));
      case "refused":
        return vscode.window.showWarningMessage(`${message.label} was not added: ${message.reason}.`);
      case "pickFile":
        return this.attach(await pickFiles());
      case "openFile":
        return this.openFile(message.path, message.line);
      case "openUrl":
        return /^(https?|mailto):/i.test(message.url)
          ? vscode.env.openExternal(vscode.Uri.parse(message.url))
          : undefined;
      default:
        return undefined;
    }
  }

  private async prompt({ text, attachments }: Extract<FromView, { type: "prompt" }>): Promise<void> {
    const { castor } = this.parts;
    await castor.begin();
    if (castor.ready) {
      await castor.current?.prompt(text, attachments);
    } else {
      // The banner says why.
      this.parts.view().post({ type: "unsent", text, attachments });
    }
  }

  private form(message: Extract<FromView, { type: "form" }>): void {
    const { questions } = this.parts;
    const url = questions.urlOf(message.id);
    const errors = questions.answerForm(message.id, message.action === "accept", message.values);
    this.parts.view().post({ type: "formErrors", id: message.id, errors });
    if (url && message.action === "accept" && /^https?:/i.test(url)) {
      void vscode.env.openExternal(vscode.Uri.parse(url));
    }
  }

  private uriOf(path: string): vscode.Uri {
    const absolute = path.startsWith("/") || /^[A-Za-z]:[\\/]/.test(path);
    return absolute ? vscode.Uri.file(path) : vscode.Uri.joinPath(vscode.Uri.file(this.parts.castor.cwd), path);
  }

  async attach(uris: vscode.Uri[]): Promise<void> {
    for (const uri of uris) {
      await this.parts.view().reveal({ type: "attach", attachment: await fileAttachment(uri) });
    }
  }

  /** A path of an answer, perhaps with a line: `src/main.rs:12`. */
  private async openFile(raw: string, line?: number): Promise<void> {
    const [, path = raw, inPath] = /^(.*?)(?:#L|:)(\d+)(?:[-:]\d+)?$/.exec(raw) ?? [];
    const at = Math.max(0, (line ?? Number(inPath ?? 1)) - 1);
    const selection = new vscode.Range(at, 0, at, 0);
    await vscode.window.showTextDocument(this.uriOf(path), { selection, preview: true });
  }

  /** Lets the user choose one option, and its value. */
  async chooseOption(id?: string): Promise<void> {
    const session = this.parts.castor.current;
    if (!session) {
      return;
    }
    const views = session.conversation.head.options;
    const wanted =
      id ??
      (
        await vscode.window.showQuickPick(
          views.map((it) => ({ label: it.name, description: it.value, id: it.id })),
          { placeHolder: "Option of this session" },
        )
      )?.id;
    const option = session.options.find((it) => it.id === wanted);
    if (!option) {
      return;
    }
    const items = choices(option).flatMap((it) => [
      ...(it.group ? [{ label: it.group, kind: vscode.QuickPickItemKind.Separator, value: undefined }] : []),
      { label: it.name, description: it.current ? "chosen" : "", detail: it.description, value: it.value },
    ]);
    const picked = await vscode.window.showQuickPick(items, {
      placeHolder: option.description ?? option.name,
      title: option.name,
    });
    if (picked?.value !== undefined) {
      await session.setOption(option.id, picked.value);
    }
  }

  /** Takes files back to before a message: the last that changed files, if none is named. */
  async undo(messageId?: string, what: RewindParams["what"] = "files"): Promise<void> {
    const session = this.parts.castor.current;
    const ends = [...(session?.conversation.items.values() ?? [])].filter(
      (it) => it.kind === "end" && it.files.length > 0,
    );
    const last = ends.at(-1);
    const target = messageId ?? (last?.kind === "end" ? last.messageId : undefined);
    if (!session || !target) {
      void vscode.window.showInformationMessage("No turn of this session changed a file.");
      return;
    }
    await this.rewind({ messageId: target, what }, "Undone");
  }

  redo(): Promise<void> {
    return this.rewind({ redo: true }, "Redone");
  }

  private async rewind(params: Omit<RewindParams, "sessionId">, word: string): Promise<void> {
    const session = this.parts.castor.current;
    if (!session) {
      return;
    }
    let result = await session.rewind({ onConflict: "fail", ...params });
    if (result.conflicts.length > 0) {
      const onConflict = await this.askConflict(result.conflicts);
      if (!onConflict) {
        return;
      }
      result = await session.rewind({ ...params, onConflict });
    }
    const kept = result.notKept.length > 0 ? `Not restored, as castor has no copy: ${result.notKept.join(", ")}` : "";
    session.conversation.addNotice(
      "info",
      `${word}: ${restoredWords(result, (path) => vscode.workspace.asRelativePath(path))}`,
      kept,
      {
        command: word === "Undone" ? "castor.redo" : "castor.undo",
        label: word === "Undone" ? "Redo" : "Undo",
      },
    );
    this.parts.view().reset();
  }

  private async askConflict(conflicts: { path: string; reason: string }[]): Promise<"keep" | "restore" | undefined> {
    const detail = conflicts.map((it) => `${vscode.workspace.asRelativePath(it.path)}: ${it.reason}`).join("\n");
    const keep = "Keep these, restore the rest";
    const restore = "Restore all";
    const text = "Files changed since castor changed them.";
    const picked = await vscode.window.showWarningMessage(text, { modal: true, detail }, keep, restore);
    return picked === keep ? "keep" : picked === restore ? "restore" : undefined;
  }
}
