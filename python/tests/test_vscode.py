"""The extension of VS Code: its files fit each other, and its client speaks to the server."""
import json
import pathlib
import shutil
import subprocess
import sys
import zipfile
from xml.etree import ElementTree

import pytest

import tensorc

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "editors/vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text())


def test_files_of_the_extension_exist():
    assert PACKAGE["version"] == tensorc.__version__
    contributes = PACKAGE["contributes"]
    for path in (PACKAGE["main"], contributes["grammars"][0]["path"], contributes["languages"][0]["configuration"]):
        assert (FOLDER / path).exists(), path
    grammar = json.loads((FOLDER / contributes["grammars"][0]["path"]).read_text())
    assert contributes["grammars"][0]["scopeName"] == grammar["scopeName"]
    json.loads((FOLDER / contributes["languages"][0]["configuration"]).read_text())


def test_package(tmp_path):
    subprocess.run([sys.executable, ROOT / "editors/vsix", tmp_path / "tensorc.vsix"], check=True)
    with zipfile.ZipFile(tmp_path / "tensorc.vsix") as vsix:
        names = set(vsix.namelist())
        assert {f"extension/{path.relative_to(FOLDER)}" for path in FOLDER.rglob("*") if path.is_file()} <= names
        manifest = ElementTree.fromstring(vsix.read("extension.vsixmanifest"))
        space = {"": "http://schemas.microsoft.com/developer/vsx-schema/2011"}
        identity = manifest.find("Metadata/Identity", space).attrib
        assert (identity["Id"], identity["Version"], identity["Publisher"]) == (
            PACKAGE["name"], PACKAGE["version"], PACKAGE["publisher"])
        assert {asset.attrib["Path"] for asset in manifest.findall("Assets/Asset", space)} <= names
        types = ElementTree.fromstring(vsix.read("[Content_Types].xml"))
        assert {pathlib.Path(name).suffix for name in names} - {".xml"} <= {one.attrib["Extension"] for one in types}


@pytest.mark.skipif(not shutil.which("node"), reason="there is no Node.js")
@pytest.mark.parametrize("command", [[sys.executable, "-m", "tensorc.lsp"], ["/no/such/server"], []],
                         ids=["server", "missing", "none"])
def test_client(command):
    if command[1:]:
        pytest.importorskip("pygls", reason="pygls is not installed for this Python")
    done = subprocess.run(["node", ROOT / "python/tests/vscode_client.js", FOLDER / "extension.js", *command],
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
