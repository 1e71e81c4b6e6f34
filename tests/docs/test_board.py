"""Holds the README's table of speeds against the board: each row names the board's rows whose ratios it sums up."""
import re

import pytest

from pages import ROOT

PEERS = {"eager": "PyTorch", "channels_last": "PyTorch", "addmm_activation": "PyTorch", "compile": "torch.compile",
         "avg_pool2d": "PyTorch", "bilinear": "PyTorch", "grouped_mm": "PyTorch", "dequantised": "PyTorch", "cublasLt": "cuBLAS"}


def tables(page):
    """The tables of a page, each a list of rows; a row maps the head's cells to its own, and 'machine' to the heading
    above the table or the row in italics above it."""
    head, rows, machine = None, [], ""
    for line in page.read_text().splitlines():
        if line.startswith("## "):
            machine = line[3:]
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            if rows:
                yield rows
            head, rows = None, []
        elif head is None:
            head = cells
        elif len(cells[0]) > 2 and cells[0].startswith("*") and not cells[0].startswith("**"):
            machine = cells[0].strip("*")
        elif not set(line) <= set("|-: "):
            rows.append(dict(zip(head, cells), machine=machine))


BOARD = [row for table in tables(ROOT / "docs/board.md") for row in table if row.get("peer / ours") and "row" in row]
SPEEDS = [row for table in tables(ROOT / "README.md") for row in table if row.get("rows of the board")]


@pytest.mark.parametrize("row", SPEEDS, ids=lambda row: row["work"].replace(" ", "_"))
def test_speeds_are_the_boards(row):
    numbers = row["rows of the board"].split(", ")
    found = [other for other in BOARD if other["row"] in numbers and row["machine"].startswith(other["machine"])]
    assert {other["row"] for other in found} == set(numbers), "the board has no such row"
    ratios = [float(other["peer / ours"]) for other in found]
    assert row["ratio"] == f"{min(ratios):.2f} to {max(ratios):.2f}"
    peers = {PEERS.get(other["which"], other["which"]) for other in found}
    assert set(row["fastest peers"].split(", ")) == peers
    for quoted in re.findall(r"\d+\.\d\d", row["work"]):
        assert float(quoted) in ratios


def test_the_table_has_every_row_of_the_board_once():
    """That of one machine, where several have it."""
    summed_up = [number for row in SPEEDS for number in row["rows of the board"].split(", ")]
    assert len(BOARD) >= 60
    assert sorted(summed_up) == sorted({row["row"] for row in BOARD})
