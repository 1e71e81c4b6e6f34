"""Runs every fenced block of README and docs, in the order of a page, as a reader would.

The language of a block says what happens to it:

    tc       is checked by 'tensorc check'
    sh       is run by bash, in a folder that looks like the repository
    console  the same for the lines that begin with '$ '; the others are what the command prints
    python   is run; a page's blocks share one interpreter
    cpp      is compiled; if it has a main(), it is linked and run
    cmake    is the end of a CMakeLists.txt that configures against the installed library
    text     is not run, and says why

A comment in the line above changes that. Each has a reason or a name behind the colon:

    <!-- parsed only: REASON -->   the syntax, the tool's flags and the names of files are checked
    <!-- file: NAME -->            the block is this file, which later commands of the page read
    <!-- fails: REASON -->         of tc, sh and console: the tool ends with exit code 1, an error of the user's
    <!-- run with: FLAGS -->       'tensorc tune' gets these flags too, so that it ends in seconds
    <!-- not run: REASON -->       of a text: what it is
    <!-- tests/golden/... -->      of a text: the file that holds it line by line
"""
import ast
import functools
import os
import json
import pathlib
import re
import select
import shlex
import subprocess
import sys

import pytest

from pages import PAGES, ROOT, blocks_of, commands_of, prose_of

BUILD = pathlib.Path(os.environ.get("TC_BUILD", ROOT / "build"))
TOOL = BUILD / "tensorc"
LANGUAGES = {"tc", "sh", "console", "python", "cpp", "cmake", "text"}
MARKS = {"parsed only", "file", "fails", "run with", "not run", "quoted from"}
SECONDS = 120

# Runs the blocks of a page: a JSON string a line comes in, and a line goes out, empty or what was raised.
INTERPRETER = """
import json, linecache, os, sys, traceback
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
names = {"__name__": "__main__"}
for line in sys.stdin:
    name, text = json.loads(line)
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    try:
        exec(compile(text, name, "exec"), names)
        raised = ""
    except BaseException:
        raised = traceback.format_exc()
    print(json.dumps(raised), file=answers, flush=True)
"""

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


class Folder:
    """A scratch folder in which every entry of the repository is found, and nothing of it is written to."""

    def __init__(self, path):
        self.path = path
        (path / "bin").mkdir()
        (path / "bin/tensorc").symlink_to(TOOL)
        for entry in ROOT.iterdir():
            if entry.name not in (".git", "build") and not entry.name.startswith("build-"):
                (path / entry.name).symlink_to(entry)
        (path / "build").symlink_to(BUILD)
        self.environment = {**os.environ, "PATH": f"{path / 'bin'}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1",
                            "PYTHONPATH": str(BUILD / "python"),
                            "TORCHINDUCTOR_COMPILE_THREADS": "1"}  # else each is a process that imports PyTorch
        self.files = set()  # that the page made
        self.interpreter = None

    def write(self, name, text):
        target = self.path / name
        assert not target.is_symlink(), f"{name} is a file of the repository"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        self.files.add(name)

    def run(self, words, **kind):
        return subprocess.run(words, cwd=self.path, env=self.environment, capture_output=True, text=True,
                              timeout=SECONDS, stdin=subprocess.DEVNULL, **kind)

    def python(self, block):
        """Runs a block in the page's interpreter, which starts with the first one."""
        if not self.interpreter:
            self.interpreter = subprocess.Popen([sys.executable, "-c", INTERPRETER], cwd=self.path, env=self.environment,
                                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        print(json.dumps([block.name, block.text]), file=self.interpreter.stdin, flush=True)
        ready, _, _ = select.select([self.interpreter.stdout], [], [], SECONDS)
        assert ready, f"{block.name}: not done after {SECONDS} s"
        answer = self.interpreter.stdout.readline()
        assert answer, f"{block.name}: the interpreter died with exit code {self.interpreter.wait()}"
        raised = json.loads(answer)
        assert not raised, f"{block.name}:\n{raised}"

    def close(self):
        if self.interpreter:
            self.interpreter.kill()
            self.interpreter.communicate()

    def must(self, block, words):
        done = self.run(words)
        expected = 1 if "fails" in block.marks else 0
        assert done.returncode == expected, f"{block.name}: exit code {done.returncode} of {words}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@functools.cache
def flags_of(command):
    """The flags in a command's help, or None where there is no such command."""
    done = subprocess.run([TOOL, *command.split(), "--help"], capture_output=True, text=True)
    found = re.findall(r"^  --(\w+)(=?)", done.stdout, re.M)
    return {name: value for name, value in found} if done.returncode == 0 and "usage:" in done.stdout else None


@functools.cache
def flags_of_log():
    """The flags that every command takes."""
    done = subprocess.run([TOOL, "help", "logging"], capture_output=True, text=True, check=True)
    return set(re.findall(r"^  --(\w+)", done.stdout, re.M))


def check_tool_words(block, words):
    """That a line 'tensorc COMMAND ...' has a known command and known flags."""
    command = words[0]
    if command.startswith("-") or command == "help":
        return
    rest = words[1:]
    if command == "cache" and rest and not rest[0].startswith("-"):
        command, rest = f"cache {rest[0]}", rest[1:]
    flags = flags_of(command)
    assert flags is not None or command == "cache", f"{block.name}: there is no command '{command}'"
    for word in rest:
        if word.startswith("--") and word != "--help" and flags is not None:
            name = word[2:].split("=")[0]
            known = {name, name.removeprefix("no")} & (flags.keys() | flags_of_log())
            assert known, f"{block.name}: '{command}' has no flag --{name}"


def files_in(words):
    """Words, and values of flags, that name a file to read: with a folder of ours, or with an ending of ours."""
    for word in words:
        for part in re.split(r"[=,]", word):
            if re.search(r"\.(tc|cu|shapes)$", part) or re.match(r"(scripts|examples|benchmarks|tests|docs)/", part):
                yield part


def check_command(block, folder, text):
    """What is true of a command without running it."""
    done = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, f"{block.name}: {done.stderr}"
    for line in text.replace("\\\n", " ").splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # a here-document, say
            continue
        for at, word in enumerate(words):
            if re.search(r"(^|/)tensorc$", word) and at + 1 < len(words) and words[at - 1] not in ("cd", "import"):
                check_tool_words(block, [w for w in words[at + 1:]])
        for name in files_in(words):
            exists = name in folder.files or (folder.path / name).exists() or list(ROOT.glob(name.lstrip("/")))
            assert exists, f"{block.name}: there is no file '{name}'"


def sized(block, command):
    extra = block.marks.get("run with", "")
    return re.sub(r"^((?:\S*/)?tensorc tune .*?)(?=\s+#|$)", rf"\1 {extra}", command, flags=re.M) if extra else command


def printed_matches(expected, printed):
    """Each line that the page shows stands in what was printed, in that order; '…' is anything, numbers with a unit
    of time are any number."""
    lines = iter(re.sub(r"\s+", " ", line).strip() for line in printed.splitlines())
    for line in expected.splitlines():
        pattern = re.escape(re.sub(r"\s+", " ", line).strip())
        pattern = pattern.replace("…", ".*")
        pattern = re.sub(r"[0-9]+(\\\.[0-9]+)?\\ (us|ms|s)\b", r"[0-9.e+]+ (us|ms|s)", pattern)
        if line.strip() and not any(re.fullmatch(pattern, candidate) for candidate in lines):
            return line
    return None


def run_tc(block, folder):
    folder.must(block, ["tensorc", "check", folder.write("block.tc", block.text) or "block.tc"])


def run_sh(block, folder):
    check_command(block, folder, block.text)
    if "parsed only" not in block.marks:
        folder.must(block, ["bash", "-euo", "pipefail", "-c", sized(block, block.text)])


def run_console(block, folder):
    for command, expected in commands_of(block):
        check_command(block, folder, command)
        if "parsed only" in block.marks:
            continue
        printed = folder.must(block, ["bash", "-euo", "pipefail", "-c", sized(block, command)])
        missing = printed_matches(expected, printed)
        assert missing is None, f"{block.name}: '{command}' does not print '{missing}', but\n{printed}"


@functools.cache
def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0


def run_python(block, folder):
    ast.parse(block.text)
    if "parsed only" in block.marks:
        return None
    if not list((BUILD / "python/tensorc").glob("_core.*.so")):
        return "the Python package is not built (scripts/test_python builds it)"
    if "torch" in block.text and not has_torch():
        return "PyTorch is not installed for this Python"
    folder.python(block)
    return None


def run_cpp(block, folder):
    compiler = [os.environ.get("CXX", "c++"), "-std=c++20", f"-I{ROOT}", "-x", "c++"]
    folder.write("block.cc", block.text)
    if "parsed only" in block.marks or "int main(" not in block.text:
        folder.must(block, [*compiler, "-fsyntax-only", "block.cc"])
        return
    folder.must(block, [*compiler, "block.cc", "-o", "block", f"-L{BUILD}", "-ltensorc", f"-Wl,-rpath,{BUILD}"])
    folder.must(block, ["./block"])


def run_cmake(block, folder):
    folder.must(block, ["cmake", "--install", "build", "--prefix", "prefix"])
    folder.write("project/program.cc", "#include <tc/api/tc.h>\nint main() { return *tc::api::version() == 0; }\n")
    folder.write("project/CMakeLists.txt", "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\n"
                 "add_executable(program program.cc)\n" + block.text)
    # By Ninja, as this project is built: Debian has no make unless somebody installs it.
    folder.must(block, ["cmake", "-G", "Ninja", "-S", "project", "-B", "project/build",
                        f"-DCMAKE_PREFIX_PATH={folder.path}/prefix"])


def run_text(block, folder):
    if "quoted from" in block.marks:
        golden = {line.rstrip() for line in (ROOT / block.marks["quoted from"]).read_text().splitlines()}
        missing = [line for line in block.text.splitlines() if line.rstrip() not in golden]
        assert not missing, f"{block.name}: {block.marks['quoted from']} has no line '{missing[0]}'"
    elif "file" not in block.marks:
        assert "not run" in block.marks, f"{block.name}: a text says what it is: <!-- not run: ... -->"


def test_marks_and_languages():
    for page in PAGES:
        for block in blocks_of(page):
            assert block.language in LANGUAGES, f"{block.name}: the language is '{block.language}', not one of {LANGUAGES}"
            assert set(block.marks) <= MARKS, f"{block.name}: {set(block.marks) - MARKS}"
            assert all(block.marks.values()), f"{block.name}: a comment without its reason"


def file_of_skipped(block, folder, missing):
    """Why a command cannot run: it names a file that only a skipped block of Python would have written."""
    if block.language not in ("sh", "console") or "parsed only" in block.marks:
        return None
    for name, writer in missing.items():
        if re.search(rf"(?<![\w./]){re.escape(name)}(?![\w/])", block.text) and not (folder.path / name).exists():
            return f"'{name}' is written by {writer}, which is skipped"
    return None


@by_page
def test_blocks(page, tmp_path):
    """The page from top to bottom. A block that cannot run here stops only those below it that need its files."""
    folder, skipped, missing = Folder(tmp_path), [], {}
    try:
        for block in blocks_of(page):
            reason = file_of_skipped(block, folder, missing)
            if reason := reason or globals()[f"run_{block.language}"](block, folder):
                skipped.append(f"{block.name}: {reason}")
                if block.language == "python":
                    missing |= dict.fromkeys(re.findall(r"""["']([^"'\s]+\.\w+)["']""", block.text), block.name)
            if "file" in block.marks:
                folder.write(block.marks["file"], block.text)
    finally:
        folder.close()
    if skipped:
        pytest.skip("; ".join(skipped))


def test_the_table_of_ranges():
    """The tool finds the range that the table gives, of each example that is a statement with a read."""
    rows = re.findall(r"^\|[^|]*\| `(y\(i\) = [^`]*x\([^`]*)` \| ([^|]*?) \|$", (ROOT / "docs/ranges.md").read_text(), re.M)
    assert len(rows) == 3
    for statement, wanted in rows:
        text = f"def f(float(N) x) -> (y) {{ {statement} }}"
        done = subprocess.run([TOOL, "check", "-"], input=text, capture_output=True, text=True, timeout=SECONDS)
        assert f"map i in {wanted}\n" in done.stdout, f"{statement}\n{done.stdout}{done.stderr}"


# Names in a page's text that look like files of the repository.
NAMED = re.compile(r"`((?:tc|docs|scripts|tests|python|examples|benchmarks|proto|cmake|third_party)/[^`\s]*)")


@by_page
def test_named_files_exist(page):
    names = [name.rstrip(".,:") for name in NAMED.findall(prose_of(page))]
    for name in names:
        pattern = re.sub(r"\{.*?\}|<[^>]*>|[A-Z]{4,}", "*", name)
        assert any(list(folder.glob(pattern + end)) for folder in (ROOT, page.parent) for end in ("", "*")), \
            f"{page.relative_to(ROOT)}: there is no '{name}'"


@by_page
def test_named_flags_exist(page):
    """`--flag` in a page is a flag of the tool, or of a script that the sentence names."""
    known = {"help", "version"} | flags_of_log()
    for command in COMMANDS():
        known |= set(flags_of(command) or ())
    if page.name == "editors.md":  # the language server has flags of its own
        known |= set(re.findall(r'"--(\w+)"', (ROOT / "python/tensorc/lsp.py").read_text()))
    prose = prose_of(page) if page.parent.name != "design" else ""  # decisions are of their time
    for paragraph in re.split(r"\n\s*\n", prose):
        if re.search(r"cmake|scripts/|benchmarks/|python/|git |ssh|pip |OpenMP|configure", paragraph):
            continue
        for name in re.findall(r"`(?:tensorc [^`]*?)?--(\w+)", paragraph):
            assert name in known or name.removeprefix("no") in known, f"{page.relative_to(ROOT)}: no command has --{name}"


@functools.cache
def COMMANDS():
    text = subprocess.run([TOOL, "--help"], capture_output=True, text=True, check=True).stdout
    return tuple(re.findall(r"^  ((?:cache )?\w+)  ", text.split("commands:")[1], re.M))


@pytest.mark.parametrize("command", COMMANDS())
def test_help_speaks_of_its_own_command(command):
    """A flag is explained in words of the command that has it."""
    text = subprocess.run([TOOL, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
    flags = re.sub(r"\s+", " ", text.partition("\nflags:\n")[2].partition("\nexamples:\n")[0])
    for other in (other for other in COMMANDS() if other != command):
        for pattern in (rf"(?<!-){other}:", rf"\bof {other}\b", rf"\b{other} (takes|searches)\b", rf"'tensorc {other}\b"):
            found = re.search(pattern, flags)
            assert not found, f"tensorc {command} --help: '{found[0]}' is about another command"
    foreign = set(re.findall(r"(?<!run )(?<!emit )--(\w+)", flags)) - set(flags_of(command))
    assert not foreign, f"tensorc {command} --help: it has no flag --{min(foreign)}"


@pytest.mark.parametrize("command", COMMANDS())
def test_examples_of_help_have_known_flags(command):
    text = subprocess.run([TOOL, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
    for line in text.partition("\nexamples:\n")[2].splitlines():
        words = shlex.split(line)
        at = words.index("tensorc")

        class Help:
            name = f"tensorc {command} --help"

        check_tool_words(Help, words[at + 1:])


def anchors_of(page):
    """What the headings of a page are called in links, as GitHub makes it."""
    headings = re.findall(r"^#+ +(.*)$", prose_of(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@by_page
def test_anchors_exist(page):
    """A link to a heading, here or in another page, names one that is there."""
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", prose_of(page)):
        if not target.startswith("http"):
            other = (page.parent / target).resolve() if target else page
            assert anchor in anchors_of(other), f"{page.relative_to(ROOT)}: {other.name} has no heading '#{anchor}'"
