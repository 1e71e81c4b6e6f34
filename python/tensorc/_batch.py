"""A def over a batch: the same def with one index more, for the batching rules of operators."""
from __future__ import annotations

import dataclasses
import re
from typing import Iterable, Iterator

# Whole tokens first: the extent `T.0` is none of a name and a number, `max=!` none of a name and an assignment.
_TOKEN = re.compile(r"""
    (?P<blank>\s+|\#[^\n]*)
  | (?P<extent>[A-Za-z_]\w*\.\d+)
  | (?P<assign>(?:min|max)=!?(?!=)|[+*]=!?|(?<![=!<>+*])=(?!=))
  | (?P<name>[A-Za-z_]\w*)
  | (?P<other>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|->|[=!<>]=|&&|\|\||.)
""", re.X)


@dataclasses.dataclass
class _Token:
    kind: str
    text: str
    depth: int = 0  # of parentheses around it; a parenthesis is at the depth outside


def _tokens(source: str) -> list[_Token]:
    """Without comments and blanks."""
    tokens, depth = [], 0
    for match in _TOKEN.finditer(source):
        kind, text = str(match.lastgroup), match[0]
        if kind == "blank":
            continue
        depth -= text == ")"
        tokens.append(_Token(kind, text, depth))
        depth += text == "("
    return tokens


def _is(token: _Token, text: str) -> bool:
    return token.text == text


def _closing(tokens: list[_Token], at: int) -> int:
    """The place of the parenthesis that closes the one at a place."""
    return next(i for i in range(at + 1, len(tokens)) if _is(tokens[i], ")") and tokens[i].depth == tokens[at].depth)


def _parts(tokens: list[_Token], depth: int) -> list[list[_Token]]:
    """Between the commas of a depth."""
    parts: list[list[_Token]] = [[]]
    for token in tokens:
        if _is(token, ",") and token.depth == depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


_TYPE = re.compile(r"bool|u?int(8|16|32|64)?|float(8_e4m3|8_e5m2|16|32|64)?|bfloat16|double|half")


def _mark_words(body: list[_Token]) -> None:
    """Gives the words `where` and `in` of clauses a kind of their own: tensors may be called so, too."""
    following = [*body[1:], _Token("other", "")]
    for token, after in zip(body, following):
        if _is(token, "where") and token.depth == 0 and after.kind == "name":
            token.kind = "where"
    for at in range(2, len(body)):
        begins = body[at - 2].kind == "where" or _is(body[at - 2], ",") and body[at - 2].depth == 0
        is_read = _is(body[at - 1], "exists") and _is(following[at], "(")
        if _is(body[at], "in") and begins and body[at - 1].kind == "name" and not is_read:
            body[at].kind = "in"


def _left_sides(body: list[_Token], variables: set[str]) -> list[tuple[int, int]]:
    """Of each statement, where it begins and where its tensor's name is."""
    found = []
    for at, token in enumerate(body):
        if token.kind != "assign" or token.depth:
            continue
        name = at - 1
        if _is(body[name], ")"):
            name = max(i for i in range(name) if _is(body[i], "(") and body[i].depth == 0) - 1
        before = body[name - 1] if name else _Token("other", "")
        if before.kind == "where" or _is(before, ","):
            continue  # a clause `where v = e`
        has_type = before.text in variables or _TYPE.fullmatch(before.text) is not None
        found.append((name - has_type, name))
    return found


def _fresh(wish: str, taken: Iterable[str]) -> str:
    name, number = wish, 1
    while name in taken:
        name, number = f"{wish}{number}", number + 1
    return name


def _with_index(tokens: list[_Token], wide: set[str], index: str) -> Iterator[str]:
    """The words of a statement in which accesses to these tensors have the index in front."""
    opens = False  # the subscripts of such a tensor
    for token, following in zip(tokens, [*tokens[1:], _Token("other", "")]):
        if opens:
            yield f"({index}" if _is(following, ")") else f"({index},"
            opens = False
        elif token.kind == "extent" and token.text.partition(".")[0] in wide:
            name, _, dimension = token.text.partition(".")
            yield f"{name}.{int(dimension) + 1}"
        elif token.kind == "name" and token.text in wide:
            opens = _is(following, "(")
            yield token.text if opens else f"{token.text}({index})"
        else:
            yield token.text


def _declared(part: list[_Token], size: str) -> list[str]:
    """A parameter or a result with a type, with one dimension more in front."""
    words = [token.text for token in part]
    if len(part) > 1 and _is(part[1], "("):
        return [words[0], "(", size, ",", *words[2:]]
    return [words[0], f"({size})", *words[1:]] if len(part) > 1 else words


def batched(source: str, entry: str, names: Iterable[str]) -> tuple[str, set[str]]:
    """The def over a batch of some of its parameters, and which of its tensors then have a dimension for the batch, the
    first: those parameters, and all that is computed of them.

    >>> text = "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }"
    >>> batched(text, "mv", {"x"})[0]
    'def mv ( float ( M , K ) A, float ( B , K ) x ) -> ( y ) { y (b, m ) +=! A ( m , k ) * x (b, k ) where b in 0:B }'
    """
    tokens = _tokens(source)
    begin = next(i for i, token in enumerate(tokens[:-1]) if _is(token, "def") and _is(tokens[i + 1], entry)
                 and tokens[i + 2].text in "(<")
    opened = next(i for i in range(begin, len(tokens)) if _is(tokens[i], "("))
    closed = _closing(tokens, opened)
    results = next(i for i in range(closed, len(tokens)) if _is(tokens[i], "("))
    results_end = _closing(tokens, results)
    body_begin = results_end + 2  # behind the brace
    body = tokens[body_begin:next(i for i in range(body_begin, len(tokens)) if _is(tokens[i], "}"))]

    _mark_words(body)
    variables = {token.text for token in tokens[begin + 2:opened] if token.kind == "name"}
    starts = _left_sides(body, variables)
    ends = [start for start, _ in starts[1:]] + [len(body)]
    statements = [(body[start:end], body[name].text) for (start, name), end in zip(starts, ends)]
    wide = set(names)
    while True:  # what is computed of them, however often
        more = {tensor for statement, tensor in statements
                if any(t.kind == "name" and t.text in wide for t in statement)} - wide
        if not more:
            break
        wide |= more

    taken = {token.text.split(".")[0] for token in tokens}
    size, index = _fresh("B", taken), _fresh("b", taken)

    def in_parentheses(first: int, last: int) -> str:
        parts = _parts(tokens[first + 1:last], tokens[first].depth + 1)
        return ", ".join(" ".join(_declared(p, size) if p and p[-1].text in wide else [t.text for t in p])
                         for p in parts)

    words = [*(token.text for token in tokens[begin:opened]), "(", in_parentheses(opened, closed), ")",
             *(token.text for token in tokens[closed + 1:results]), "(", in_parentheses(results, results_end), ")", "{"]
    for statement, tensor in statements:
        words += _with_index(statement, wide, index)
        if tensor in wide:
            has_clauses = any(token.kind == "where" for token in statement)
            words.append(f"{',' if has_clauses else 'where'} {index} in 0:{size}")
    return " ".join([*words, "}"]), wide
