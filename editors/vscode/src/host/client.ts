// The client's side of the protocol: what castor may ask of the editor.
import * as acp from "@agentclientprotocol/sdk";
import * as vscode from "vscode";
import { answerMcp, EDITOR_SERVER, readMessage } from "../model/tools";
import { editorTools } from "./editorTools";
import { readTextFile, writeTextFile } from "./files";
import { editedWords, type Proposals } from "./proposals";
import type { Questions } from "./questions";
import type { Session } from "./session";
import type { Terminals } from "./terminals";

export interface ClientHands {
  terminals: Terminals;
  questions: Questions;
  proposals: Proposals;
  session(id: string, agent: acp.ClientContext): Session;
}

export function initializeRequest(version: string): acp.InitializeRequest {
  return {
    protocolVersion: 1,
    clientInfo: { name: "castor-vscode", title: "VS Code", version },
    clientCapabilities: {
      fs: { readTextFile: true, writeTextFile: true },
      terminal: true,
      elicitation: { form: {}, url: {} },
      auth: { terminal: true },
      session: { configOptions: { boolean: {} }, notices: {}, compaction: {} },
      _meta: { castor: { outputDeltas: true, rewind: true, streams: true } },
    },
  };
}

const rewoundParams = (raw: unknown): { sessionId: string; messageId: string } => {
  const it = raw as { sessionId?: unknown; messageId?: unknown } | null;
  return { sessionId: String(it?.sessionId), messageId: String(it?.messageId) };
};

export function clientApp(hands: ClientHands): acp.ClientApp {
  const { client } = acp.methods;
  return (
    acp
      .client({ name: "castor-vscode" })
      .onNotification(client.session.update, ({ params, agent }) =>
        hands.session(params.sessionId, agent).update(params),
      )
      .onNotification("_castor/session/rewound", rewoundParams, ({ params, agent }) =>
        hands.session(params.sessionId, agent).rewound(params.messageId),
      )
      // Others of castor's notifications: nothing here needs them.
      .onNotification("*", () => {})
      .onRequest(client.session.requestPermission, ({ params, signal, agent }) =>
        hands.questions.permission(hands.session(params.sessionId, agent).conversation, params, signal),
      )
      .onRequest(client.elicitation.create, ({ params, signal, agent }) => {
        if (!("sessionId" in params)) {
          throw acp.RequestError.invalidParams(undefined, "The question names no session.");
        }
        return hands.questions.form(hands.session(String(params.sessionId), agent).conversation, params, signal);
      })
      .onNotification(client.elicitation.complete, () => {})
      .onRequest(client.fs.readTextFile, ({ params }) => readTextFile(params))
      .onRequest(client.fs.writeTextFile, async ({ params, agent }) => {
        const session = hands.session(params.sessionId, agent);
        const proposal = hands.proposals.take(params, session.conversation);
        const answer = await writeTextFile(proposal ? { ...params, content: proposal.text } : params);
        if (proposal) {
          // Sent before the answer, so that the model reads it together with the result of its call.
          void session.prompt(editedWords(proposal), []);
        }
        return answer;
      })
      .onRequest(client.terminal.create, ({ params }) => hands.terminals.create(params))
      .onRequest(client.terminal.output, ({ params }) => hands.terminals.output(params.terminalId))
      .onRequest(client.terminal.waitForExit, ({ params }) => hands.terminals.waitForExit(params.terminalId))
      .onRequest(client.terminal.kill, ({ params }) => hands.terminals.kill(params.terminalId))
      .onRequest(client.terminal.release, ({ params }) => hands.terminals.release(params.terminalId))
      .onRequest("mcp/message", readMessage, async ({ params, signal }) => {
        if (params.serverId !== EDITOR_SERVER) {
          throw acp.RequestError.resourceNotFound(params.serverId);
        }
        return answerMcp(params, editorTools, signal);
      })
  );
}

/** The folders of the window: the first is the session's, the others are added. */
export function folders(home: string): { cwd: string; additionalDirectories?: string[] } {
  const paths = (vscode.workspace.workspaceFolders ?? [])
    .filter((it) => it.uri.scheme === "file")
    .map((it) => it.uri.fsPath);
  const [cwd = home, ...additionalDirectories] = paths;
  return additionalDirectories.length > 0 ? { cwd, additionalDirectories } : { cwd };
}
