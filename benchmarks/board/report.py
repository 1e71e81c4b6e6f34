#!/usr/bin/env python3
"""Makes tables and pictures of what run.py measured.

    report.py h200.json h200-tuned.json cpu.json --markdown=docs/board.md --pictures=docs/board

--markdown writes the page with all tables; --pictures draws each machine's rows to docs/board-MACHINE.svg and .png,
which the page shows, and needs matplotlib. Files of one machine are joined; of a row that two have, one with
torch.compile among the peers counts, else a tuned one, else the one that is worse for us: what PyTorch chooses differs
from run to run. Tuned rows that do not count for want of torch.compile have a table of their own.
"""
import argparse
import json
import pathlib
import sys

import rows
from measure import best_of_ours, best_peer

STATUS = {"wrong": "wrong", "refused": "refused", "not expressible": "not expressible", "failed": "failed"}


def number(us):
    """Microseconds with three digits that matter."""
    return f"{us:.3g}" if us < 100 else f"{us:,.0f}"


def ratio(result, column="hot"):
    """The best peer's time over ours; None without one of them."""
    ours, peer = best_of_ours(result, column), best_peer(result, column)
    return peer[1] / ours[1] if ours and peer else None


def spread(result):
    """The quartiles' distance of our turns, as a part of their median."""
    ours = best_of_ours(result)
    if not ours:
        return None
    turns = result["us"][ours[0]]["hot"]
    return (turns["high"] - turns["low"]) / turns["median"]


def of_floor(result):
    ours = best_of_ours(result)
    return result["floor_us"] / ours[1] if ours else None


def reached(result):
    """Whether the goal of the row is reached; None if there is none, or no peer to say so."""
    ours, goal = best_of_ours(result), result["goal"]
    if not goal or (goal[0] == "ratio" and not best_peer(result)):
        return None
    if not ours:
        return False
    return ours[1] <= goal[1] if goal[0] == "us" else ratio(result) >= goal[1]


def without_compile(result):
    """Whether a goal that is reached asks for the best peer, and torch.compile was none of them."""
    return bool(reached(result)) and result["goal"][0] == "ratio" and "compile" not in result["us"]


def goal_text(result):
    goal, done = result["goal"], reached(result)
    if not goal:
        return ""
    said = "" if done is None else ", no" if not done else ", yes*" if without_compile(result) else ", yes"
    return (f"≤ {goal[1]:g} µs" if goal[0] == "us" else f"≥ {goal[1]:g}×") + said


def cells(result):
    """A row's cells as text, in the order of COLUMNS."""

    def time_of(contestant, column="hot"):
        return number(contestant[1]) if contestant else ""

    def part(value, format):
        return "" if value is None else format(value)

    us = result["us"]
    ours = time_of(
        ("ours", us["ours"]["hot"]["median"])) if "hot" in us.get("ours", {}) else STATUS.get(result["status"], "")
    others = [f"{number(us[name]['hot']['median'])}" for name in ("tuned", "given") if "hot" in us.get(name, {})]
    peer = best_peer(result)
    return [
        result["number"], result["name"], ours, ", ".join(others),
        time_of(best_of_ours(result, "cold")),
        time_of(peer), peer[0] if peer else "",
        part(ratio(result), "{:.2f}".format),
        part(ratio(result, "cold"), "{:.2f}".format),
        number(result["floor_us"]),
        part(of_floor(result), "{:.0%}".format),
        part(spread(result), "{:.1%}".format),
        goal_text(result)
    ]


COLUMNS = [
    "row", "workload", "ours", "tuned", "ours, cold", "peer", "which", "peer / ours", "cold", "floor", "of floor",
    "spread", "goal"
]
WIDTHS = [4, 42, 15, 9, 10, 9, 16, 11, 6, 9, 8, 7, 14]


def heading(document):
    facts = document["machine"]
    more = ", ".join(f"{name} {value}" for name, value in facts.items() if name != "name")
    return (f"{facts['name']} ({more}); " +
            ", ".join(f"{name} {value}" for name, value in document["versions"].items()) +
            f"; revision {document['revision']}; {document['date']}")


def fit(cells_of_row):
    return "  ".join(f"{cell:<{width}}" if place in (0, 1, 6, 12) else f"{cell:>{width}}"
                     for place, (cell, width) in enumerate(zip(cells_of_row, WIDTHS)))


def text_header(document):
    figures = ", ".join(f"{name} {value / 1e12:.4g}" for name, value in document["figures"].items())
    return f"medians in µs; floor of {figures} (TB/s, TFLOP/s; {document['figures_from']})\n" + fit(COLUMNS)


def text_line(result):
    line = fit(cells(result)).rstrip()
    if result["message"]:
        line += "\n     " + result["message"].splitlines()[0]
    return line


def sterner(old, new):
    """Of two runs of a row: one that failed, else one with torch.compile, else one with tuned options, else that of the
    lower peer / ours."""

    def order(result):
        known = ratio(result)
        us = result["us"]
        return (result["status"] == "ok", "compile" not in us, "tuned" not in us,
                float("inf") if known is None else known)

    return min(old, new, key=order)


def read(path):
    """The document that run.py wrote to a file. Where it is none, that ends the command."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["machine"]["name"] and document["rows"] is not None:
            return document
    except OSError as fault:
        sys.exit(f"{path}: {fault.strerror}")
    except (ValueError, TypeError, KeyError):
        pass
    sys.exit(f"{path}: this is no file that run.py wrote")


def searched(document):
    """Rows with tuned options of runs that do not count for the table, in its order."""
    found = {}
    for part in document["parts"]:
        for result in part["rows"]:
            if {"ours", "tuned"} <= result["us"].keys():
                found[result["number"], result["name"]] = result
    counted = [(row["number"], row["name"]) for row in document["rows"] if "tuned" not in row["us"]]
    return [found[key] for key in counted if key in found]


def searched_table(document):
    columns = ["row", "workload", "ours", "tuned", "ours / tuned", "tuned, cold", "peer", "which", "peer / tuned"]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for result in searched(document):
        ours, tuned = (result["us"][name]["hot"]["median"] for name in ("ours", "tuned"))
        cold = result["us"]["tuned"].get("cold")
        peer = best_peer(result)
        cells_of_row = [
            result["number"], result["name"], number(ours), number(tuned), f"{ours / tuned:.2f}",
            number(cold["median"]) if cold else "", number(peer[1]) if peer else "", peer[0] if peer else "",
            f"{peer[1] / tuned:.2f}" if peer else ""
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells_of_row) + " |")
    return lines


def joined(documents):
    """One document for each machine, its rows those of all files, of each the sternest."""
    machines = {}
    for document in documents:
        known = machines.setdefault(document["machine"]["name"], dict(document, rows=[], parts=[]))
        new = {(row["number"], row["name"]): row for row in document["rows"]}
        order = [(row["number"], row["name"]) for row in known["rows"]]
        old = dict(zip(order, known["rows"]))
        known["rows"] = [sterner(old[key], new.pop(key, old[key])) for key in order] + list(new.values())
        known["parts"].append(document)
        known["system"] = document.get("system") or known.get("system", [])
    for known in machines.values():
        known["rows"].sort(key=lambda row: place_of(row, known["device"]))
    return list(machines.values())


def board_titles(device):
    return [f"{entry.number} {entry.name}" for entry in (rows.CPU if device == "cpu" else rows.GPU)]


def place_of(row, device):
    titles = board_titles(device)
    title = f"{row['number']} {row['name']}"
    return titles.index(title) if title in titles else len(titles)


def machine_file(document):
    """What a machine's pictures are called."""
    words = document["machine"]["name"].lower().replace("(r)", "").replace("nvidia", "").split()
    kept = ["".join(c for c in word if c.isalnum()) for word in words[:3]]
    return "-".join(word for word in kept if word)


def markdown_table(document):
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for result in document["rows"]:
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells(result)) + " |")
    return lines


def system_table(document):
    lines = ["| figure | ours | peer | which | goal |", "|---|---|---|---|---|"]
    for figure in document.get("system", []):
        ours = figure.get("message") or f"{figure['ours']:.2f}"
        peer = "" if figure["peer"] is None else f"{figure['peer']:.2f}"
        goal = "" if figure["goal"] is None else f"≤ {figure['goal']:g}"
        lines.append(f"| {figure['name']} | {ours} | {peer} | {figure['which']} | {goal} |")
    return lines if document.get("system") else []


def wrapped(text, indent="  "):
    import textwrap
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def fewest_turns(result):
    return min((us["turns"] for columns in result["us"].values() for us in columns.values()), default=float("inf"))


def remarks(document):
    """What the table's cells are too small for: refusals, rows of fewer turns, and peers that stayed away."""
    lines = []
    for result in document["rows"]:
        if result["message"]:
            text = " ".join(result["message"].split("\n    ")[0].split())
            lines.append(wrapped(f"- {result['number']} {result['name']}: {result['status']}: {text}"))
    short = [
        f"{result['number']} {result['name']}: {fewest_turns(result)}" for result in document["rows"]
        if fewest_turns(result) < document["pairs"]
    ]
    if short:
        lines.append(wrapped(f"- fewer turns than {document['pairs']} in a column: {'; '.join(short)}"))
    for prepared in filter(None, (part.get("prepared") for part in document["parts"])):
        lines.append(
            wrapped(f"- compile: max-autotune ran in {prepared['jobs']} processes, which took turns to time their "
                    f"choices; {prepared['seconds']:.0f} s for {len(prepared['rows'])} rows"))
    absent = {}
    for result in document["rows"]:
        for name, why in result["notes"].items():
            absent.setdefault((name, why), []).append(result["number"])
    for (name, why), numbers in absent.items():
        where = ", ".join(dict.fromkeys(numbers))
        lines.append(wrapped(f"- {name}, row{'s'[:len(set(numbers)) > 1]} {where}: {why}"))
    return lines


def summary_line(document):
    results, of_all = document["rows"], len(board_titles(document["device"]))
    timed = [result for result in results if best_of_ours(result)]
    ahead = sum((ratio(result) or 0) >= 1 for result in timed)
    met, goals = sum(bool(reached(result)) for result in results), sum(bool(result["goal"]) for result in results)
    compiled, doubtful = sum("compile" in result["us"] for result in results), sum(map(without_compile, results))
    return (f"{len(results)} of the board's {of_all} rows were run, {len(timed)} of ours right and timed; {ahead} at "
            f"least as fast as the best peer; {met} of {goals} goals reached. torch.compile is among the peers of "
            f"{compiled} rows; {doubtful} goals (*) are reached without it.")


HOW = """\
`benchmarks/board/report.py` writes this page from the measurements of `run.py`; do not edit it.

- Times are medians in µs. *ours* has the compiler's default options, *tuned* has options that a search found. Ratios and
  goals use the faster one.
- tensorc and its peers run in turn. *peer* is the fastest of them, *which* its name. *peer / ours* above 1 means that
  tensorc is faster.
- On a GPU each turn is a CUDA graph whose launches all take the same tensors. In the two *cold* columns they take turns
  through more than 120 MB of tensors, which no L2 cache holds. On a CPU a turn is the least time of some calls.
- *floor* is the larger of bytes / bandwidth and operations / peak. *of floor* is floor / ours; above 100 % means cache hits,
  or a peak that was measured too low.
- *spread* is the distance of the quartiles of tensorc's turns.
- *goal* is the project's goal for the row, and whether it is reached. * marks a goal reached only because torch.compile was
  not among the peers.
- Every result was compared with float64 before it was timed. A wrong one is not timed."""


def machine_section(document, picture):
    facts = document["machine"]
    parts = {(part["date"], part["revision"]) for part in document["parts"]}
    figures = ", ".join(f"{name} {value / 1e12:.4g}" for name, value in document["figures"].items())
    about = ", ".join(f"{key} {value}" for key, value in list(facts.items())[1:])
    versions = ", ".join(f"{key} {value}" for key, value in document["versions"].items())
    lines = [
        f"## {facts['name']}", "",
        wrapped(f"{about}; {versions}.", ""), "",
        wrapped(
            "Measured " + "; ".join(f"{date} at revision {revision}" for date, revision in sorted(parts)) +
            f", {document['pairs']} turns. Figures for the floor, in TB/s and TFLOP/s " +
            f"({document['figures_from']}): {figures}.", ""), "",
        wrapped(summary_line(document), ""), ""
    ]
    if picture:
        lines += [f"![Ratio to the best peer and to the floor, {facts['name']}]({picture})", ""]
    lines += markdown_table(document)
    if searched(document):
        lines += ["", wrapped("Rows by options that a search found, in a run of their own, without torch.compile among "
                              "the peers:", ""), "", *searched_table(document)]
    if document.get("system"):
        lines += ["", *system_table(document)]
    notes = remarks(document)
    return lines + ([""] + notes if notes else []) + [""]


def markdown(documents, pictures):
    lines = ["# The board", "", HOW, ""]
    for document in documents:
        lines += machine_section(document, pictures.get(document["machine"]["name"]))
    return "\n".join(lines).rstrip() + "\n"


def draw(document, paths):
    """The machine's rows as two columns of bars: the best peer's time over ours, and the floor over ours."""
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "board"  # the same picture for the same numbers
    matplotlib.rcParams["svg.fonttype"] = "none"
    import matplotlib.pyplot as plt
    results = list(reversed(document["rows"]))
    places = range(len(results))
    figure, (left, right) = plt.subplots(1,
                                         2,
                                         figsize=(11, 1.5 + 0.24 * len(results)),
                                         sharey=True,
                                         gridspec_kw={"width_ratios": [3, 2]})
    for place, row in zip(places, results):
        against, part = ratio(row), of_floor(row)
        if against is None:
            left.text(1,
                      place,
                      " " + (STATUS.get(row["status"], "") or "no peer"),
                      va="center",
                      fontsize=7,
                      color="#a33")
        else:
            left.barh(place, against - 1, left=1, color="#2a7f62" if against >= 1 else "#c8553d", height=0.7)
            left.text(max(against, 1) * 1.03, place, f"{against:.2f}", va="center", fontsize=6)
        if part is not None:
            right.barh(place, part, color="#3d5a80", height=0.7)
            right.text(part + 0.01, place, f"{part:.0%}", va="center", fontsize=6)
    left.set_xscale("log")
    known = [value for value in map(ratio, results) if value is not None]
    low, high = min(known + [0.5]) / 1.1, max(known + [2]) * 1.25
    ticks = [tick for power in range(-3, 5) for tick in (10.0**power, 2 * 10.0**power, 5 * 10.0**power)]
    left.set_xlim(low, high)
    left.set_xticks([tick for tick in ticks if low <= tick <= high], minor=False)
    left.xaxis.set_major_formatter("{x:g}")
    left.xaxis.set_minor_formatter("")
    left.axvline(1, color="black", linewidth=0.8)
    left.set_xlabel("best peer's time / ours (above 1: ours is faster)")
    right.axvline(1, color="black", linewidth=0.8)
    right.set_xlim(0, max([1.1] + [(of_floor(row) or 0) + 0.15 for row in results]))
    right.set_xlabel("floor / ours (1: what the machine can do)")
    left.set_yticks(list(places), [f"{row['number']} {row['name']}" for row in results], fontsize=7)
    left.set_ylim(-0.7, len(results) - 0.3)
    left.set_title(f"{document['machine']['name']}, {document['date']}", fontsize=10)
    figure.tight_layout()
    for path in paths:
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path, help="file to write the tables to; otherwise they are printed")
    parser.add_argument("--pictures", type=pathlib.Path, help="beginning of the pictures' names, such as docs/board")
    arguments = parser.parse_args()
    documents = joined([read(path) for path in arguments.files])
    pictures = {}
    for document in documents if arguments.pictures else []:
        base = f"{arguments.pictures}-{machine_file(document)}"
        try:
            draw(document, [pathlib.Path(base + ".svg"), pathlib.Path(base + ".png")])
        except ImportError:
            sys.exit("report.py: pictures need matplotlib (Debian: python3-matplotlib)")
        pictures[document["machine"]["name"]] = pathlib.Path(base + ".svg").name
    if arguments.markdown:
        arguments.markdown.write_text(markdown(documents, pictures), encoding="utf-8")
        return
    for document in documents:
        print(heading(document))
        print(text_header(document))
        for result in document["rows"]:
            print(text_line(result))
        print(summary_line(document))


if __name__ == "__main__":
    main()
