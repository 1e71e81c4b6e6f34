"use strict";
// Starts tensorc-lsp for TC texts and shows what it says. It uses no library, so that copying the folder installs it.
const { spawn } = require("child_process");
const vscode = require("vscode");

const LANGUAGE = "tc";
const MOST_STARTS = 4; // a server that always fails is not started for ever

/** JSON-RPC with a process, over its standard input and output. */
class Connection {
  constructor(command, onNotification, onEnd) {
    this.waiting = new Map(); // by id: how to go on
    this.next = 1;
    this.received = Buffer.alloc(0);
    this.onNotification = onNotification;
    this.process = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "ignore"] });
    this.ended = false;
    const end = (reason) => {
      if (this.ended) return;
      this.ended = true;
      for (const { reject } of this.waiting.values()) reject(new Error(reason));
      this.waiting.clear();
      onEnd(reason);
    };
    this.process.on("error", (error) => end(error.message));
    this.process.on("exit", (code) => end(`${command[0]} has ended with exit code ${code}`));
    this.process.stdin.on("error", () => {}); // "exit" says it
    this.process.stdout.on("data", (data) => this.receive(data));
  }

  receive(data) {
    this.received = Buffer.concat([this.received, data]);
    for (;;) {
      const head = this.received.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/Content-Length: (\d+)/i.exec(this.received.toString("latin1", 0, head))[1]);
      if (this.received.length < head + 4 + length) return;
      const message = JSON.parse(this.received.toString("utf8", head + 4, head + 4 + length));
      this.received = this.received.subarray(head + 4 + length);
      this.take(message);
    }
  }

  take(message) {
    if (message.method !== undefined) {
      if (message.id === undefined) this.onNotification(message.method, message.params);
      else this.send({ id: message.id, result: null }); // a request of the server's; none matters here
      return;
    }
    const waiting = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (!waiting) return;
    if (message.error) waiting.reject(new Error(message.error.message));
    else waiting.resolve(message.result);
  }

  send(message) {
    if (this.ended) return;
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.process.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.process.stdin.write(body);
  }

  notify(method, params) {
    this.send({ method, params });
  }

  request(method, params) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      if (this.ended) return reject(new Error("the server has ended"));
      this.waiting.set(id, { resolve, reject });
      this.send({ id, method, params });
    });
  }
}

// --- the protocol's values as VS Code's -------------------------------------------------------------------------

const positionOf = (at) => new vscode.Position(at.line, at.character);
const rangeOf = (range) => new vscode.Range(positionOf(range.start), positionOf(range.end));
const locationOf = (location) => new vscode.Location(vscode.Uri.parse(location.uri), rangeOf(location.range));
const place = (document, position) => ({
  textDocument: { uri: document.uri.toString() },
  position: { line: position.line, character: position.character },
});

function diagnosticOf(one) {
  // VS Code counts severities and kinds from 0, the protocol from 1.
  const diagnostic = new vscode.Diagnostic(rangeOf(one.range), one.message, one.severity - 1);
  diagnostic.source = one.source;
  diagnostic.relatedInformation = (one.relatedInformation || []).map(
    (note) => new vscode.DiagnosticRelatedInformation(locationOf(note.location), note.message)
  );
  return diagnostic;
}

function symbolOf(one) {
  const range = rangeOf(one.range);
  const symbol = new vscode.DocumentSymbol(one.name, one.detail || "", one.kind - 1, range, rangeOf(one.selectionRange));
  symbol.children = (one.children || []).map(symbolOf);
  return symbol;
}

function completionOf(one) {
  const item = new vscode.CompletionItem(one.label, one.kind - 1);
  item.detail = one.detail;
  if (one.documentation) item.documentation = new vscode.MarkdownString(one.documentation.value);
  return item;
}

function fixOf(one) {
  const fix = new vscode.CodeAction(one.title, vscode.CodeActionKind.QuickFix);
  fix.isPreferred = true;
  fix.diagnostics = one.diagnostics.map(diagnosticOf);
  fix.edit = new vscode.WorkspaceEdit();
  for (const [uri, edits] of Object.entries(one.edit.changes)) {
    for (const edit of edits) fix.edit.replace(vscode.Uri.parse(uri), rangeOf(edit.range), edit.newText);
  }
  return fix;
}

// --- the client -------------------------------------------------------------------------------------------------

class Client {
  constructor(command) {
    this.command = command;
    this.starts = 0;
    this.stopping = false;
    this.diagnostics = vscode.languages.createDiagnosticCollection(LANGUAGE);
  }

  start() {
    this.starts++;
    this.connection = new Connection(
      this.command,
      (method, params) => this.heard(method, params),
      (reason) => this.ended(reason)
    );
    this.ready = this.connection
      .request("initialize", {
        processId: process.pid,
        rootUri: null,
        capabilities: {
          general: { positionEncodings: ["utf-16"] },
          textDocument: { publishDiagnostics: { relatedInformation: true } },
        },
      })
      .then(() => {
        this.connection.notify("initialized", {});
        vscode.workspace.textDocuments.forEach((document) => this.opened(document));
      });
    this.ready.catch(() => {}); // ended() says it
  }

  ended(reason) {
    this.diagnostics.clear();
    if (this.stopping) return;
    if (this.starts < MOST_STARTS && !/ENOENT|EACCES/.test(reason)) return this.start();
    vscode.window.showWarningMessage(
      `TC texts are highlighted only: ${reason}. Install the server by pip install 'tensorc[lsp]', or name its ` +
        "command in the setting tensorc.server."
    );
  }

  heard(method, params) {
    if (method === "textDocument/publishDiagnostics") {
      this.diagnostics.set(vscode.Uri.parse(params.uri), params.diagnostics.map(diagnosticOf));
    } else if (method === "window/showMessage") {
      vscode.window.showWarningMessage(params.message);
    }
  }

  opened(document) {
    if (document.languageId !== LANGUAGE) return;
    const { version } = document;
    const uri = document.uri.toString();
    this.connection.notify("textDocument/didOpen", {
      textDocument: { uri, languageId: LANGUAGE, version, text: document.getText() },
    });
  }

  changed(document) {
    if (document.languageId !== LANGUAGE) return;
    this.connection.notify("textDocument/didChange", {
      textDocument: { uri: document.uri.toString(), version: document.version },
      contentChanges: [{ text: document.getText() }],
    });
  }

  closed(document) {
    if (document.languageId !== LANGUAGE) return;
    this.connection.notify("textDocument/didClose", { textDocument: { uri: document.uri.toString() } });
  }

  /** An answer, or nothing where there is no server. */
  async ask(method, params) {
    try {
      await this.ready;
      return await this.connection.request(method, params);
    } catch {
      return null;
    }
  }

  async stop() {
    this.stopping = true;
    await this.ask("shutdown");
    this.connection.notify("exit");
  }
}

let client;

function activate(context) {
  const command = vscode.workspace.getConfiguration("tensorc").get("server");
  if (!Array.isArray(command) || command.length === 0) return;
  client = new Client(command);
  client.start();
  const of = (event) => (document) => client.ready.then(() => client[event](document), () => {});
  const { languages, workspace } = vscode;
  context.subscriptions.push(
    client.diagnostics,
    workspace.onDidOpenTextDocument(of("opened")),
    workspace.onDidChangeTextDocument((event) => of("changed")(event.document)),
    workspace.onDidCloseTextDocument(of("closed")),
    languages.registerHoverProvider(LANGUAGE, {
      async provideHover(document, position) {
        const found = await client.ask("textDocument/hover", place(document, position));
        return found && new vscode.Hover(new vscode.MarkdownString(found.contents.value), rangeOf(found.range));
      },
    }),
    languages.registerDefinitionProvider(LANGUAGE, {
      async provideDefinition(document, position) {
        const found = await client.ask("textDocument/definition", place(document, position));
        return found && locationOf(found);
      },
    }),
    languages.registerDocumentFormattingEditProvider(LANGUAGE, {
      async provideDocumentFormattingEdits(document, options) {
        const edits = await client.ask("textDocument/formatting", {
          textDocument: { uri: document.uri.toString() },
          options: { tabSize: options.tabSize, insertSpaces: options.insertSpaces },
        });
        return (edits || []).map((edit) => new vscode.TextEdit(rangeOf(edit.range), edit.newText));
      },
    }),
    languages.registerDocumentSymbolProvider(LANGUAGE, {
      async provideDocumentSymbols(document) {
        const textDocument = { uri: document.uri.toString() };
        return ((await client.ask("textDocument/documentSymbol", { textDocument })) || []).map(symbolOf);
      },
    }),
    languages.registerCompletionItemProvider(LANGUAGE, {
      async provideCompletionItems(document, position) {
        return ((await client.ask("textDocument/completion", place(document, position))) || []).map(completionOf);
      },
    }),
    languages.registerCodeActionsProvider(LANGUAGE, {
      async provideCodeActions(document, range) {
        const fixes = await client.ask("textDocument/codeAction", {
          textDocument: { uri: document.uri.toString() },
          range: { start: place(document, range.start).position, end: place(document, range.end).position },
          context: { diagnostics: [] },
        });
        return (fixes || []).map(fixOf);
      },
    })
  );
}

function deactivate() {
  return client ? client.stop() : undefined;
}

module.exports = { activate, deactivate };
