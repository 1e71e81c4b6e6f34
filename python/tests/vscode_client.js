// Runs the extension of VS Code by a stand-in of VS Code's API: node vscode_client.js EXTENSION COMMAND...
// The stand-in has what the extension uses, and throws for what it has not.
"use strict";
const assert = require("assert");
const Module = require("module");

class Position {
  constructor(line, character) {
    assert(Number.isInteger(line) && Number.isInteger(character));
    Object.assign(this, { line, character });
  }
}
class Range {
  constructor(start, end) {
    assert(start instanceof Position && end instanceof Position);
    Object.assign(this, { start, end });
  }
}
class Uri {
  constructor(text) {
    this.text = text;
  }
  static parse(text) {
    return new Uri(text);
  }
  toString() {
    return this.text;
  }
}
const record = (...names) =>
  class {
    constructor(...values) {
      assert.strictEqual(values.length, names.length);
      names.forEach((name, i) => (this[name] = values[i]));
    }
  };
class WorkspaceEdit {
  constructor() {
    this.edits = [];
  }
  replace(uri, range, text) {
    this.edits.push({ uri: uri.toString(), range, text });
  }
}

const listeners = {};
const providers = {};
const warnings = [];
const shown = new Map(); // diagnostics by uri
let changed = () => {};
const listen = (name) => (listener) => {
  listeners[name] = listener;
  return { dispose() {} };
};
const provide = (name) => (language, provider) => {
  assert.strictEqual(language, "tc");
  providers[name] = provider;
  return { dispose() {} };
};
const strict = (name, object) =>
  new Proxy(object, {
    get(target, key) {
      assert(key in target, `the stand-in has no ${name}.${String(key)}`);
      return target[key];
    },
  });
const documents = [];
const command = process.argv.slice(3);
const vscode = strict("vscode", {
  Position,
  Range,
  Uri,
  WorkspaceEdit,
  Location: record("uri", "range"),
  Diagnostic: record("range", "message", "severity"),
  DiagnosticRelatedInformation: record("location", "message"),
  DocumentSymbol: record("name", "detail", "kind", "range", "selectionRange"),
  CompletionItem: record("label", "kind"),
  MarkdownString: record("value"),
  Hover: record("contents", "range"),
  TextEdit: record("range", "newText"),
  CodeAction: record("title", "kind"),
  CodeActionKind: { QuickFix: "quickfix" },
  window: strict("window", { showWarningMessage: (text) => warnings.push(text) && changed() }),
  workspace: strict("workspace", {
    textDocuments: documents,
    getConfiguration: (section) => ({ get: (key) => (section + "." + key === "tensorc.server" ? command : undefined) }),
    onDidOpenTextDocument: listen("open"),
    onDidChangeTextDocument: listen("change"),
    onDidCloseTextDocument: listen("close"),
  }),
  languages: strict("languages", {
    createDiagnosticCollection: () => ({
      set: (uri, list) => shown.set(uri.toString(), list) && changed(),
      clear: () => shown.clear(),
      dispose() {},
    }),
    registerHoverProvider: provide("hover"),
    registerDefinitionProvider: provide("definition"),
    registerDocumentFormattingEditProvider: provide("formatting"),
    registerDocumentSymbolProvider: provide("symbols"),
    registerCompletionItemProvider: provide("completion"),
    registerCodeActionsProvider: provide("fixes"),
  }),
});
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));

const document = (text) => ({ languageId: "tc", version: 1, text, uri: Uri.parse("file:///a.tc"), getText() { return this.text; } });
const until = async (holds) => {
  while (!holds()) await new Promise((resolve) => (changed = resolve));
};

async function main() {
  const extension = require(process.argv[2]);
  const context = { subscriptions: [] };
  extension.activate(context);
  if (command.length === 0) {
    assert.strictEqual(context.subscriptions.length, 0);
    return;
  }
  if (command[0] === "/no/such/server") {
    await until(() => warnings.length > 0);
    assert.match(warnings[0], /highlighted only: .*ENOENT.*pip install 'tensorc\[lsp\]'/);
    assert.strictEqual(await providers.hover.provideHover(document(""), new Position(0, 0)), null);
    return extension.deactivate();
  }
  // A file that was open before, and one in another language.
  const file = document("def f(float(N) weight) -> (y) {\n  y(i) = wieght(i)\n}\n");
  documents.push(file, { languageId: "cpp" });
  listeners.open({ languageId: "cpp" });
  await until(() => shown.has("file:///a.tc"));
  const [error] = shown.get("file:///a.tc");
  assert.strictEqual(error.severity, 0);
  assert.strictEqual(error.message, "'wieght' is neither a tensor nor an intrinsic");
  assert.deepStrictEqual({ ...error.range.start }, { line: 1, character: 9 });
  const [fix] = await providers.fixes.provideCodeActions(file, error.range);
  assert.strictEqual(fix.title, "Change to 'weight'");
  assert.strictEqual(fix.edit.edits[0].text, "weight");
  shown.clear();
  file.text = file.text.replace("wieght", "weight");
  file.version++;
  listeners.change({ document: file });
  await until(() => shown.has("file:///a.tc"));
  assert.deepStrictEqual(shown.get("file:///a.tc"), []);
  const hover = await providers.hover.provideHover(file, new Position(1, 4));
  assert.match(hover.contents.value, /i in 0:N/);
  const where = await providers.definition.provideDefinition(file, new Position(1, 10));
  assert.deepStrictEqual({ ...where.range.start }, { line: 0, character: 15 });
  const [edit] = await providers.formatting.provideDocumentFormattingEdits(file, { tabSize: 4, insertSpaces: true });
  assert.strictEqual(edit.newText, "def f(float32(N) weight) -> (y) {\n");
  const [symbol] = await providers.symbols.provideDocumentSymbols(file);
  assert.deepStrictEqual([symbol.name, symbol.kind, symbol.children.map((one) => one.name)],
    ["f", 11, ["N", "weight", "y"]]); // 11: SymbolKind.Function
  const items = await providers.completion.provideCompletionItems(file, new Position(1, 2));
  assert(items.some((item) => item.label === "weight") && items.some((item) => item.label === "exp"));
  listeners.close(file);
  await until(() => warnings.length > 0 || shown.get("file:///a.tc").length === 0);
  await extension.deactivate();
  assert.deepStrictEqual(warnings, []);
}

main().then(
  () => console.log("done"),
  (error) => {
    console.error(error);
    process.exit(1);
  }
);
