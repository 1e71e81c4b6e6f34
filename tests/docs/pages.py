"""The fenced blocks of a Markdown page, and the comment above each that says how it is tested."""
import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "python/README.md",
         *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if page.exists()]

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\S*)\s*$")
COMMENT = re.compile(r"^ *<!-- (?P<key>[a-z ]+): (?P<value>.*) -->$")
QUOTE = re.compile(r"^ *<!-- (?P<file>\S+/\S+) -->$")


@dataclasses.dataclass
class Block:
    page: pathlib.Path
    line: int  # of the fence
    language: str
    text: str
    marks: dict  # of the comments above: "parsed only", "file", "fails", "run with", "not run", "quoted from"

    @property
    def name(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page):
    blocks, marks, opened = [], {}, None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if opened is not None:
            if fence:
                opened.text = "".join(text + "\n" for text in lines)
                blocks.append(opened)
                opened, marks = None, {}
            else:
                lines.append(line[indent:])
        elif fence:
            opened, lines, indent = Block(page, number, fence["language"], "", marks), [], len(fence["indent"])
        elif comment := COMMENT.match(line):
            marks[comment["key"]] = comment["value"]
        elif quote := QUOTE.match(line):
            marks["quoted from"] = quote["file"]
        elif line.strip():
            marks = {}
    assert opened is None, f"{opened.name}: the block does not end"
    return blocks


def commands_of(block):
    """(command, what it prints) of a console's block, whose commands begin with '$ '; a command's other lines with '> '."""
    commands = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append([line[2:], ""])
        elif line.startswith("> ") and commands and not commands[-1][1]:
            commands[-1][0] += "\n" + line[2:]
        else:
            assert commands, f"{block.name}: the first line of a console is a command, '$ ...'"
            commands[-1][1] += line + "\n"
    return commands


def prose_of(page):
    """The page without its fenced blocks."""
    kept, inside = [], False
    for line in page.read_text().splitlines():
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)
