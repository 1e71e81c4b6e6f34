"""The page of 'tensorc explain' in a browser: Debian's chromium, which a test needs and users do not.

The page is opened from a file, with no network. What the browser has made of it (its DOM) is compared with the JSON of
the same explanation.
"""
import collections
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = pathlib.Path(os.environ.get("TC_TOOL", ROOT / "build/tensorc"))
BROWSER = shutil.which("chromium")
SECONDS = 60

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no chromium: 'apt-get install chromium'")

PROGRAMS = {
    "sgemm": ["--sizes=N=512,M=512,K=512"],
    "mlp3": ["--sizes=B=128,N=256,O=256,P=128,Q=64"],
    "softmax": ["--sizes=N=64,D=100"],
    "batchnorm": ["--sizes=N=64,C=64,H=56,W=56"],
}


class Dom(html.parser.HTMLParser):
    """Counts elements by tag and class, and keeps the text of those with an id."""

    def __init__(self, text):
        super().__init__()
        self.count = collections.Counter()
        self.texts = collections.defaultdict(str)
        self.links = []
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        self.count[tag] += 1
        for word in (known.get("class") or "").split():
            self.count[f"{tag}.{word}"] += 1
        self.links += [known[name] for name in ("src", "href") if known.get(name)]
        if tag not in ("meta", "link", "br", "img", "input"):
            self.open.append((tag, known.get("id")))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, name in self.open:
            if name:
                self.texts[name] += data


def browse(page, folder, *more):
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
         f"--user-data-dir={folder / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr",
         *more, page.as_uri()],
        capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not said, said
    return done.stdout


def explain(name, backend, page):
    words = [TOOL, "explain", ROOT / f"examples/{name}.tc", *PROGRAMS[name], f"--backend={backend}"]
    subprocess.run([*words, "-o", page], check=True, timeout=SECONDS)
    return json.loads(subprocess.run([*words, "--format=json"], check=True, capture_output=True, timeout=SECONDS).stdout)


def ceil(a, b):
    return -(-a // b)


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_page_shows_what_the_json_says(name, backend, tmp_path):
    page = tmp_path / f"{name}.html"
    known = explain(name, backend, page)
    dom = Dom(browse(page, tmp_path, "--dump-dom"))
    assert dom.count["div.kernel"] == len(known["kernels"])
    assert dom.count["g.frame"] == len(known["kernels"]) + any(s["kernel"] is None for s in known["statements"])
    assert dom.count["g.statement"] == len(known["statements"])
    assert dom.count["g.edge"] == len(known["values"])
    for rung in {value["rung"] for value in known["values"]}:
        assert dom.count[f"g.{rung}"] == sum(value["rung"] == rung for value in known["values"])
    assert len(re.findall("^.", dom.texts["source"], re.M)) >= len((ROOT / f"examples/{name}.tc").read_text().splitlines())
    assert dom.texts["code"] == known["code"]
    for line in known["schedule"].splitlines():
        assert line.strip() in dom.texts["schedule"]
    for apart in known["apart"]:
        assert apart["reason"] in dom.texts["apart"]
    assert not [link for link in dom.links if not link.startswith("data:")]
    assert dom.count["script"] == 0


def test_tiles_are_drawn_to_scale(tmp_path):
    page = tmp_path / "mm.html"
    known = explain("sgemm", "cuda", page)
    text = browse(page, tmp_path, "--dump-dom")
    loops = known["kernels"][0]["tilings"][0]["loops"]
    (i_block, i_thread), (j_block, j_thread) = [[level["size"] for level in loop["levels"]] for loop in loops[:2]]
    panels = re.findall(r'<svg class="tiles".*?</svg>', text, re.S)
    assert len(panels) == 3  # blocks, threads, steps of the reduction
    drawn = [panel.count('class="tile"') for panel in panels]
    assert drawn == [ceil(loops[0]["extent"], i_block) * ceil(loops[1]["extent"], j_block),
                     ceil(i_block, i_thread) * ceil(j_block, j_thread),
                     ceil(loops[2]["extent"], loops[2]["levels"][0]["size"])]

    def side(kind):
        rect = re.search(rf'<rect class="{kind}"[^>]*width="([\d.]+)" height="([\d.]+)"', panels[0])
        return float(rect[1]), float(rect[2])

    whole, first = side("whole"), side("first")
    assert first[0] / whole[0] == pytest.approx(j_block / loops[1]["extent"], rel=0.01)
    assert first[1] / whole[1] == pytest.approx(i_block / loops[0]["extent"], rel=0.01)


def test_the_browser_paints_it(tmp_path):
    page = tmp_path / "mlp3.html"
    explain("mlp3", "cuda", page)
    picture = tmp_path / "page.png"
    browse(page, tmp_path, f"--screenshot={picture}", "--window-size=1400,1600")
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 50_000  # one colour takes 10 kB
