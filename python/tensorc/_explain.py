"""What the compiler made of a def, and why."""
from __future__ import annotations

import html
import json
import os
import pathlib
from typing import Any


class Explanation:
    """What the compiler made of a def, and why: `print` it, take it as a dict, or save it as a page.

    It says what set the range of each index, which statements run in which kernel, where values wait between them, why
    kernels are apart, and of each kernel the strategy, the options, the tiles, the floor and the estimate. The dict and
    the page have the schedule tree, the generated code and the measurements of a cache too.
    """

    def __init__(self, text: str, json: str, html: str) -> None:
        self._text, self._json, self._html = text, json, html

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        # The page's style must not be the notebook's.
        return (f'<iframe srcdoc="{html.escape(self._html)}" title="tensorc explain" '
                'style="width:100%;height:900px;border:0"></iframe>')

    def to_dict(self) -> dict[str, Any]:
        """All of it; docs/explain.md describes the keys, which `tensorc explain --format=json` prints too."""
        known: dict[str, Any] = json.loads(self._json)
        return known

    def json(self) -> str:
        """The same as a text."""
        return self._json

    def html(self) -> str:
        """One page that needs nothing beside it: no script, no network."""
        return self._html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file: a page if its name ends with .html, else JSON for .json and text for .txt. Raises ValueError for
        another name."""
        path = pathlib.Path(path)
        texts = {".html": self._html, ".json": self._json, ".txt": self._text}
        if path.suffix not in texts:
            raise ValueError(f"the name of a file ends with .html, .json or .txt, not as {path.name!r} does")
        path.write_text(texts[path.suffix], encoding="utf-8")
