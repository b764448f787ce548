// The tools of the editor's MCP servers, as vscode.lm has them.
import * as vscode from "vscode";
import { isMcpTool, type ToolSource } from "../model/tools";

export const editorTools: ToolSource = {
  tools() {
    // Other tools are made for the editor's own chat: castor has its own for files and commands.
    return vscode.lm.tools
      .filter((it) => isMcpTool(it.name))
      .map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  },
  async call(name, input, signal) {
    const cancel = new vscode.CancellationTokenSource();
    signal.addEventListener("abort", () => cancel.cancel(), { once: true });
    try {
      const options = { input, toolInvocationToken: undefined };
      const { content } = await vscode.lm.invokeTool(name, options, cancel.token);
      return content.flatMap((it) => (it instanceof vscode.LanguageModelTextPart ? [it.value] : []));
    } finally {
      cancel.dispose();
    }
  },
};
