// fs/read_text_file and fs/write_text_file: files as the editor has them, also unsaved ones.
import {
  type ReadTextFileRequest,
  type ReadTextFileResponse,
  RequestError,
  type WriteTextFileRequest,
} from "@agentclientprotocol/sdk";
import * as vscode from "vscode";
import { cutLines } from "../model/lines";

function openDocument(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((it) => !it.isClosed && it.uri.toString() === uri.toString());
}

async function readDisk(uri: vscode.Uri): Promise<string> {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await vscode.workspace.fs.readFile(uri));
  } catch (error) {
    if (error instanceof vscode.FileSystemError && error.code === "FileNotFound") {
      throw RequestError.resourceNotFound(uri.fsPath);
    }
    if (error instanceof TypeError) {
      throw RequestError.invalidParams({ path: uri.fsPath }, "The file is not text in UTF-8.");
    }
    throw RequestError.internalError({ path: uri.fsPath }, String(error));
  }
}

export async function readTextFile(params: ReadTextFileRequest): Promise<ReadTextFileResponse> {
  const uri = vscode.Uri.file(params.path);
  const text = openDocument(uri)?.getText() ?? (await readDisk(uri));
  return { content: cutLines(text, params.line ?? undefined, params.limit ?? undefined) };
}

export async function writeTextFile(params: WriteTextFileRequest): Promise<Record<string, never>> {
  const uri = vscode.Uri.file(params.path);
  const document = openDocument(uri);
  if (!document) {
    await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(params.content));
    return {};
  }
  const edit = new vscode.WorkspaceEdit();
  edit.replace(uri, new vscode.Range(0, 0, document.lineCount, 0), params.content);
  if (!(await vscode.workspace.applyEdit(edit)) || !(await document.save())) {
    throw RequestError.internalError({ path: params.path }, "The editor could not save the file.");
  }
  return {};
}
