"""Parses the text of Tensor Comprehensions. Shares nothing with the compiler's parser.

Expressions are tuples, so that they can be compared, hashed and rewritten:
    ("int", 3)  ("float", "0.5")  ("name", "i")  ("extent", "T", 0)
    ("call", "A", (subscripts...))  ("cast", "int64", e)
    ("not", c)  ("neg", e)  ("+", a, b) and so on for every binary operator  ("?", condition, yes, no)
"""

import re
from dataclasses import dataclass, field

TYPES = set(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 int uint float8_e4m3 float8_e5m2 "
    "float16 half bfloat16 float32 float float64 double".split()
)
ASSIGNMENTS = ("+=!", "*=!", "min=!", "max=!", "+=", "*=", "min=", "max=", "=")
TOKEN = re.compile(
    r"""(?P<space>(?:\s|\#[^\n]*)+)
      | (?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
      | (?P<int>\d+)
      | (?P<assign>(?:min|max)=!?(?!=)|\+=!?|\*=!?)
      | (?P<word>[^\W\d]\w*)
      | (?P<symbol>->|→|&&|\|\||<=|>=|==|!=|[-+*/%<>!?:=(){},.])""",
    re.VERBOSE,
)
LEVELS = (("||",), ("&&",), ("<", "<=", ">", ">=", "==", "!="), ("+", "-"), ("*", "/", "%"))


class SyntaxProblem(Exception):
    """The text is not in the language, as far as this parser knows it."""


@dataclass
class Tensor:
    name: str
    type: str
    dims: tuple | None  # expressions, or None for a result without annotation
    is_result: bool


@dataclass
class Statement:
    tensor: str
    left: tuple
    assign: str
    right: tuple
    lets: list = field(default_factory=list)  # (name, expression)
    ranges: list = field(default_factory=list)  # (index, low, high)
    exists: list = field(default_factory=list)
    text: str = ""


@dataclass
class Definition:
    name: str
    scalars: dict  # name -> type
    tensors: dict  # name -> Tensor: parameters and results
    sizes: list
    statements: list
    text: str = ""


def tokens_of(text):
    result, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise SyntaxProblem(f"{text[at:at + 10]!r} is no token")
        if match.lastgroup != "space":
            result.append((match.lastgroup, match.group(), at))
        at = match.end()
    return result


class Parser:
    def __init__(self, text):
        self.text, self.tokens, self.at = text, tokens_of(text), 0

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead][1] if self.at + ahead < len(self.tokens) else ""

    def kind(self, ahead=0):
        return self.tokens[self.at + ahead][0] if self.at + ahead < len(self.tokens) else ""

    def next(self):
        self.at += 1
        return self.peek(-1)

    def accept(self, *texts):
        return self.next() if self.peek() in texts else None

    def expect(self, *texts):
        if self.peek() not in texts:
            raise SyntaxProblem(f"expected {' or '.join(texts)}, found {self.peek()!r}")
        return self.next()

    def word(self):
        if self.kind() != "word":
            raise SyntaxProblem(f"expected a name, found {self.peek()!r}")
        return self.next()

    def comma_list(self, close, item):
        result = []
        while self.peek() != close:
            if result:
                self.expect(",")
            result.append(item())
        self.expect(close)
        return result

    # Definitions.

    def program(self):
        result = []
        while self.at < len(self.tokens):
            result.append(self.definition())
        return result

    def definition(self):
        begin = self.tokens[self.at][2]
        self.expect("def")
        name, self.type_variables = self.word(), set()
        if self.accept("<"):
            while not self.accept(">"):
                self.type_variables.add(self.word())
                if self.accept(":"):
                    self.word()
                self.accept(",")
        self.expect("(")
        scalars, tensors = {}, {}
        for kind, dims, parameter in self.comma_list(")", self.parameter):
            if dims is None:
                scalars[parameter] = kind
            else:
                tensors[parameter] = Tensor(parameter, kind, dims, False)
        self.expect("->", "→")
        self.expect("(")
        for kind, dims, result in self.comma_list(")", self.result):
            tensors[result] = Tensor(result, kind, dims, True)
        sizes = sorted({n for t in tensors.values() for d in t.dims or () for n in names_in(d)})
        definition = Definition(name, scalars, tensors, sizes, [])
        self.expect("{")
        while self.peek() != "}":
            definition.statements.append(self.statement())
        self.next()
        definition.text = self.text[begin : self.tokens[self.at - 1][2] + 1]
        return definition

    def parameter(self):
        kind = self.word()
        dims = tuple(self.comma_list(")", self.expression)) if self.accept("(") else None
        return kind, dims, self.word()

    def result(self):
        if self.kind(1) == "word" or self.peek() in TYPES | self.type_variables:
            return self.parameter()
        return None, None, self.word()

    def statement(self):
        begin = self.tokens[self.at][2]
        if self.kind(1) == "word":
            self.word()
        name, left = self.word(), ()
        if self.accept("("):
            left = tuple(self.comma_list(")", self.expression))
        result = Statement(name, left, self.expect(*ASSIGNMENTS), self.expression())
        if self.peek() == "where":
            self.next()
            self.clause(result)
            while self.accept(","):
                self.clause(result)
        end = self.tokens[self.at - 1]
        result.text = self.text[begin : end[2] + len(end[1])]
        return result

    def clause(self, statement):
        if self.peek() == "exists" and self.peek(1) not in ("in", "="):
            self.next()
            statement.exists.append(self.expression())
            return
        name = self.word()
        if self.accept("="):
            statement.lets.append((name, self.expression()))
            return
        self.expect("in")
        low = self.expression()
        self.expect(":")
        statement.ranges.append((name, low, self.expression()))

    # Expressions.

    def expression(self):
        condition = self.binary(0)
        if not self.accept("?"):
            return condition
        yes = self.expression()
        self.expect(":")
        return ("?", condition, yes, self.expression())

    def binary(self, level):
        if level == len(LEVELS):
            return self.unary()
        result = self.binary(level + 1)
        while self.peek() in LEVELS[level]:
            operator = self.next()
            result = (operator, result, self.binary(level + 1))
        return result

    def unary(self):
        if self.accept("-"):
            return ("neg", self.unary())
        if self.accept("!"):
            return ("not", self.unary())
        return self.primary()

    def primary(self):
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            return inner
        if self.kind() == "int":
            return ("int", int(self.next()))
        if self.kind() == "float":
            return ("float", self.next())
        name = self.word()
        if self.peek() == "." and self.kind(1) == "int":
            self.next()
            return ("extent", name, int(self.next()))
        if not self.accept("("):
            return ("name", name)
        arguments = tuple(self.comma_list(")", self.expression))
        if name in TYPES | self.type_variables:
            return ("cast", name, arguments[0])
        return ("call", name, arguments)


def parse(text):
    """The definitions of a text. Raises SyntaxProblem."""
    return Parser(text).program()


def children(e):
    """The expressions directly below an expression."""
    if e[0] == "call":
        return e[2]
    if e[0] in ("int", "float", "name", "extent"):
        return ()
    return tuple(c for c in e[1:] if isinstance(c, tuple))


def rebuild(e, change):
    """An expression with change() applied to what is directly below it."""
    if e[0] == "call":
        return ("call", e[1], tuple(change(c) for c in e[2]))
    return tuple(change(c) if isinstance(c, tuple) else c for c in e)


def substitute(e, values):
    """Replaces names by expressions."""
    if e[0] == "name":
        return values.get(e[1], e)
    return rebuild(e, lambda c: substitute(c, values))


def names_in(e):
    if e[0] == "name":
        return {e[1]}
    return set().union(*(names_in(c) for c in children(e))) if children(e) else set()


def to_text(e):
    """The text of an expression, with every parenthesis."""
    kind = e[0]
    if kind in ("int", "float", "name"):
        return str(e[1])
    if kind == "extent":
        return f"{e[1]}.{e[2]}"
    if kind == "call":
        return f"{e[1]}({', '.join(map(to_text, e[2]))})"
    if kind == "cast":
        return f"{e[1]}({to_text(e[2])})"
    if kind in ("neg", "not"):
        return f"({'-' if kind == 'neg' else '!'}{to_text(e[1])})"
    if kind == "?":
        return f"({to_text(e[1])} ? {to_text(e[2])} : {to_text(e[3])})"
    return f"({to_text(e[1])} {kind} {to_text(e[2])})"


def with_numbers(definition, scalars):
    """The definition with numbers in place of scalars."""
    numbers = {name: ("int", v) if v >= 0 else ("neg", ("int", -v)) for name, v in scalars.items()}

    def put(e):
        return substitute(e, numbers)

    statements = [
        Statement(
            s.tensor,
            tuple(map(put, s.left)),
            s.assign,
            put(s.right),
            [(n, put(e)) for n, e in s.lets],
            [(i, put(low), put(high)) for i, low, high in s.ranges],
            list(map(put, s.exists)),
        )
        for s in definition.statements
    ]
    others = {name: kind for name, kind in definition.scalars.items() if name not in scalars}
    return Definition(definition.name, others, definition.tensors, definition.sizes, statements)


def statement_text(s):
    left = f"{s.tensor}({', '.join(map(bare_text, s.left))})" if s.left else s.tensor
    clauses = [f"{name} = {bare_text(e)}" for name, e in s.lets]
    clauses += [f"{i} in {bare_text(low)}:{bare_text(high)}" for i, low, high in s.ranges]
    clauses += [f"exists {bare_text(e)}" for e in s.exists]
    where = f" where {', '.join(clauses)}" if clauses else ""
    return f"{left} {s.assign} {bare_text(s.right)}{where}"


def bare_text(e):
    """to_text() without the outermost parentheses."""
    text = to_text(e)
    return text[1:-1] if text.startswith("(") else text


def definition_text(d):
    """The text of a definition. A parameter that nothing uses is left out."""
    used = set()
    for s in d.statements:
        expressions = [*s.left, s.right, *s.exists, *(e for _, e in s.lets), *(b for r in s.ranges for b in r[1:])]
        for e in expressions:
            used |= all_names(e)
        used.add(s.tensor)
    results = [t for t in d.tensors.values() if t.is_result and t.name in {s.tensor for s in d.statements}]
    inputs = [t for t in d.tensors.values() if not t.is_result and t.name in used]
    sizes = (used & set(d.sizes)) | {n for t in [*results, *inputs] for dim in t.dims or () for n in names_in(dim)}
    alone = {dim[1] for t in inputs for dim in t.dims if dim[0] == "name"}
    parameters = [f"{kind} {name}" for name, kind in d.scalars.items() if name in used]
    parameters += [declared_text(t) for t in inputs]
    parameters += [f"float({size}) A{size}" for size in sorted(sizes - alone)]
    body = "".join(f"  {statement_text(s)}\n" for s in d.statements)
    return f"def {d.name}({', '.join(parameters)}) -> ({', '.join(map(declared_text, results))}) {{\n{body}}}\n"


def declared_text(tensor):
    if tensor.dims is None:
        return tensor.name
    return f"{tensor.type}({', '.join(map(bare_text, tensor.dims))}) {tensor.name}"


def all_names(e):
    """All names in an expression, those of tensors too."""
    own = {e[1]} if e[0] in ("name", "call", "extent") else set()
    return own.union(*(all_names(c) for c in children(e)))
