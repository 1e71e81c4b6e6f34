"""The language server by pygls. What it says of a text is in _editor."""
from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
import re
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from . import _core, _editor

MEANT = re.compile(r"did you mean '(\w+)'(?: where '(\w+)' is written)?", re.A)
KINDS = {"keyword": lsp.CompletionItemKind.Keyword, "type": lsp.CompletionItemKind.Class,
         "constant": lsp.CompletionItemKind.Constant, "intrinsic": lsp.CompletionItemKind.Function}


class Document:
    """A text that the client has opened, with what the last checks found."""

    def __init__(self) -> None:
        self.text = ""
        self.version: int | None = None
        self.places = _editor.Places("")
        self.report: _editor.Json | None = None  # of this text; None while it is checked
        self.older: _editor.Json = {"defs": []}  # each def as it was last without errors of syntax, types and names
        self.task: asyncio.Task[None] | None = None

    def take(self, report: _editor.Json) -> None:
        self.report = report
        defs = {_editor.name_of(one): one for one in (*_editor.defs_of(self.older), *_editor.defs_of(report))}
        self.older = {"defs": list(defs.values())}


class Server(LanguageServer):
    def __init__(self, time_limit_ms: int, debounce_s: float) -> None:
        super().__init__("tensorc-lsp", _core.__version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.time_limit_ms = time_limit_ms
        self.debounce_s = debounce_s
        self.documents: dict[str, Document] = {}
        self.checkers = concurrent.futures.ThreadPoolExecutor(max_workers=2, thread_name_prefix="check")

    # --- checking -----------------------------------------------------------------------------------------------

    def update(self, uri: str, delay_s: float) -> None:
        """Takes over the client's text, and checks it unless it changes before `delay_s` is over."""
        document = self.documents.setdefault(uri, Document())
        if document.task:
            document.task.cancel()
        opened = self.workspace.get_text_document(uri)
        document.text = _editor.whole(opened.source)
        document.version = opened.version
        document.places = _editor.Places(document.text, self.unit)
        document.report = None
        document.task = asyncio.get_running_loop().create_task(self.check(uri, document, delay_s))

    def close(self, uri: str) -> None:
        document = self.documents.pop(uri, None)
        if document and document.task:
            document.task.cancel()
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri=uri, diagnostics=[]))

    async def check(self, uri: str, document: Document, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        cancellation = _core.Cancellation()
        try:
            report = json.loads(await asyncio.get_running_loop().run_in_executor(
                self.checkers, _core.check, document.text, uri, {}, {}, {}, True, self.time_limit_ms, cancellation))
        except _core.CancelledError:
            return
        except _core.Error as fault:  # ours: errors of the text are in the report
            report = {"diagnostics": [{"severity": "error", "kind": "internal", "message": str(fault), "range": None,
                                       "notes": []}], "defs": []}
        finally:
            cancellation.cancel()  # the task may have been cancelled while the check runs
        document.take(report)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(
            uri=uri, version=document.version,
            diagnostics=[self.diagnostic(uri, document.places, one) for one in report["diagnostics"]]))

    async def checked(self, uri: str) -> Document | None:
        """The document when no check of it is under way."""
        document = self.documents.get(uri)
        while document and document.task and not document.task.done():
            await asyncio.wait({document.task})
            document = self.documents.get(uri)
        return document

    # --- in the words of the protocol ---------------------------------------------------------------------------

    @property
    def unit(self) -> str:
        return str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding) or "utf-16")

    def span(self, places: _editor.Places, begin: int, end: int) -> lsp.Range:
        return lsp.Range(lsp.Position(*places.position(begin)), lsp.Position(*places.position(end)))

    def range(self, places: _editor.Places, place: _editor.Json | None) -> lsp.Range:
        return self.span(places, place["begin"]["offset"], place["end"]["offset"]) if place else self.span(places, 0, 0)

    def diagnostic(self, uri: str, places: _editor.Places, one: _editor.Json) -> lsp.Diagnostic:
        severity = lsp.DiagnosticSeverity.Information if one["severity"] == "note" else \
            lsp.DiagnosticSeverity.Warning if one["kind"] == "budget" else lsp.DiagnosticSeverity.Error
        message, related = one["message"], None
        capabilities = self.client_capabilities.text_document
        published = capabilities.publish_diagnostics if capabilities else None
        if published and published.related_information:
            related = [lsp.DiagnosticRelatedInformation(
                lsp.Location(uri, self.range(places, note["range"] or one["range"])), note["message"])
                for note in one["notes"]]
        else:
            message = "\n".join([message, *(f"note: {note['message']}" for note in one["notes"])])
        return lsp.Diagnostic(self.range(places, one["range"]), message, severity=severity, source="tensorc",
                              related_information=related)

    def symbol(self, places: _editor.Places, one: _editor.Json, kind: lsp.SymbolKind, detail: str) -> lsp.DocumentSymbol:
        at = self.range(places, one["range"])
        return lsp.DocumentSymbol(one["name"], kind, at, at, detail=detail)

    def symbols(self, document: Document) -> list[lsp.DocumentSymbol]:
        places = document.places
        if not document.report or not document.report["defs"]:  # names are all that is sure
            found = []
            for match in _editor.DEF.finditer(document.text):
                begin = len(document.text[:match.start(1)].encode())
                at = self.span(places, begin, begin + len(match[1]))
                found.append(lsp.DocumentSymbol(match[1], lsp.SymbolKind.Function, at, at))
            return found
        found = []
        for definition in _editor.defs_of(document.report):
            children = [self.symbol(places, tensor, lsp.SymbolKind.Array, f"{tensor['role']} {_editor.shape_text(tensor)}")
                        for tensor in definition["tensors"]
                        if _editor.contains(definition["range"], tensor["range"]["begin"]["offset"])]
            kinds = {"size": lsp.SymbolKind.Constant, "scalar": lsp.SymbolKind.Variable, "type": lsp.SymbolKind.TypeParameter}
            children += [self.symbol(places, one, kinds[one["kind"]], one["kind"]) for one in definition["symbols"]]
            children.sort(key=lambda child: (child.range.start.line, child.range.start.character))
            unique = {child.name: child for child in reversed(children)}  # the compiler's copies have the place of theirs
            found.append(lsp.DocumentSymbol(
                _editor.name_of(definition), lsp.SymbolKind.Function, self.range(places, definition["range"]),
                self.range(places, definition["name_range"]), detail=definition["signature"] or "",
                children=list(reversed(unique.values()))))
        return found

    def shutdown(self) -> None:
        for document in self.documents.values():
            if document.task:
                document.task.cancel()
        super().shutdown()


def quick_fixes(server: Server, document: Document, uri: str, wanted: lsp.Range) -> list[lsp.CodeAction]:
    """For each misspelt name in a range, the one that was meant."""
    fixes = []
    first = document.places.offset(wanted.start.line, wanted.start.character)
    last = document.places.offset(wanted.end.line, wanted.end.character)
    for one in document.report["diagnostics"] if document.report else ():
        if not one["range"]:
            continue
        begin, end = one["range"]["begin"]["offset"], one["range"]["end"]["offset"]
        found = document.places.name_at(begin)
        if end < first or last < begin or not found or found[1:] != (begin, end):
            continue
        for note in one["notes"]:
            match = MEANT.search(note["message"])
            if not match or match[2] not in (None, found[0]):
                continue
            at = server.span(document.places, begin, end)
            fixes.append(lsp.CodeAction(
                f"Change to '{match[1]}'", kind=lsp.CodeActionKind.QuickFix, is_preferred=True,
                diagnostics=[server.diagnostic(uri, document.places, one)],
                edit=lsp.WorkspaceEdit({uri: [lsp.TextEdit(at, match[1])]})))
    return fixes


def completions(document: Document | None, offset: int) -> list[lsp.CompletionItem]:
    items = {name: lsp.CompletionItem(name, kind=KINDS[word["kind"]],
                                      documentation=lsp.MarkupContent(lsp.MarkupKind.Markdown, _editor.word_hover(name) or ""))
             for name, word in _editor.words().items()}
    definition = document and _editor.find_older(document.older, document.places, offset)
    if definition:
        for tensor in definition["tensors"]:
            items[tensor["name"]] = lsp.CompletionItem(tensor["name"], kind=lsp.CompletionItemKind.Variable,
                                                       detail=f"{tensor['role']} {_editor.shape_text(tensor)}")
        for one in definition["symbols"]:
            items[one["name"]] = lsp.CompletionItem(one["name"], kind=lsp.CompletionItemKind.Variable, detail=one["kind"])
    return list(items.values())


def server_of(time_limit_ms: int, debounce_s: float) -> Server:
    server = Server(time_limit_ms, debounce_s)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        server.update(params.text_document.uri, 0)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        server.update(params.text_document.uri, server.debounce_s)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        server.close(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        document = await server.checked(params.text_document.uri)
        if not document:
            return None
        offset = document.places.offset(params.position.line, params.position.character)
        found = _editor.hover(document.report, document.older, document.places, offset)
        if not found:
            return None
        text, begin, end = found
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), server.span(document.places, begin, end))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        document = await server.checked(params.text_document.uri)
        if not document or not document.report:
            return None
        offset = document.places.offset(params.position.line, params.position.character)
        place = _editor.declaration(document.report, document.places, offset)
        return lsp.Location(params.text_document.uri, server.range(document.places, place)) if place else None

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    async def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        document = server.documents.get(params.text_document.uri)
        if not document:
            return None
        try:
            changed = _editor.changed_lines(document.text, _core.format(document.text, params.text_document.uri))
        except _core.Error:
            return None  # its diagnostics say why
        if not changed:
            return []
        first, last, text = changed
        end = server.span(document.places, len(document.places.bytes), len(document.places.bytes)).end
        last_line = lsp.Position(last, 0) if last < len(document.places.starts) else end
        return [lsp.TextEdit(lsp.Range(lsp.Position(first, 0), last_line), text)]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def document_symbol(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        document = await server.checked(params.text_document.uri)
        return server.symbols(document) if document else []

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION)
    async def completion(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        document = server.documents.get(params.text_document.uri)
        offset = document.places.offset(params.position.line, params.position.character) if document else 0
        return completions(document, offset)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]))
    async def code_action(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = await server.checked(params.text_document.uri)
        return quick_fixes(server, document, params.text_document.uri, params.range) if document else []

    return server


def serve(**options: Any) -> None:
    """Serves standard input and output until the client is done."""
    logging.basicConfig(level=logging.WARNING, format="tensorc-lsp: %(message)s")  # to standard error
    server = server_of(**options)
    try:
        server.start_io()
    finally:
        server.checkers.shutdown(wait=False, cancel_futures=True)
