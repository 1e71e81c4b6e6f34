"""Turn by turn: A B C A B C ... so that heat, clocks and neighbours meet all contestants alike.

On a GPU a turn is one replay of a CUDA graph of launches between two events. The hot column runs on one set of tensors,
the cold column goes around sets that no L2 cache holds together. On a CPU a turn is the least time of some calls.
"""
import dataclasses
import math
import statistics
import time

GRAPH_US = 400  # what one replay should take at least, for the events' resolution
MOST_LAUNCHES = 100
WARM_TURNS = 2
CPU_TURN_S = 0.06
CPU_SETTLE_S = 0.15  # the other side's worker threads spin for a while after their last task


@dataclasses.dataclass
class Contestant:
    """`launch(i)` runs on set i of `sets`."""

    name: str
    launch: object
    sets: int
    graphs: dict = dataclasses.field(default_factory=dict)
    us: dict = dataclasses.field(default_factory=dict)


def event_us(torch, stream, function):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record(stream)
    function()
    end.record(stream)
    end.synchronize()
    return begin.elapsed_time(end) * 1e3


def least_us(torch, stream, function):
    return min(event_us(torch, stream, function) for _ in range(2))


def launches_for(contestant, column, us):
    """How many launches of `us` microseconds fill a turn."""
    filling = max(1, min(MOST_LAUNCHES, math.ceil(GRAPH_US / max(us, 0.1))))
    return filling if column == "hot" else max(filling, contestant.sets)


def graph_of(torch, contestant, column, stream, launches):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="relaxed"):
        for i in range(launches):
            contestant.launch(0 if column == "hot" else i % contestant.sets)
    return graph


def capture(torch, contestant, column, stream):
    """Makes the contestant's graph, and returns how long a replay takes, in microseconds. A launch that is not captured
    takes the host's time as well, so only a replay tells how many launches fill a turn."""
    for i in range(min(3, contestant.sets)):
        contestant.launch(i)
    stream.synchronize()
    launches = launches_for(contestant, column, least_us(torch, stream, lambda: contestant.launch(0)))
    graph = graph_of(torch, contestant, column, stream, launches)
    us = least_us(torch, stream, graph.replay)
    filling = launches_for(contestant, column, us / launches)
    if filling > 1.5 * launches:
        launches, graph = filling, graph_of(torch, contestant, column, stream, filling)
        us = least_us(torch, stream, graph.replay)
    contestant.graphs[column] = (graph, launches)
    return us


def time_column(torch, contestants, column, stream, pairs, seconds):
    """Fills us[column] of every contestant; returns those that could not be captured, with why. Fewer turns than
    `pairs` are made if they would take longer than `seconds`."""
    failed, turn_us = {}, 0.0
    for contestant in contestants:
        try:
            turn_us += capture(torch, contestant, column, stream)
        except Exception as fault:  # a peer that cannot be captured is said to be none
            failed[contestant.name] = f"cannot be captured: {first_line(fault)}"
            stream.synchronize()  # raises if it has brought the device's context down
    pairs = max(3, min(pairs, int(seconds * 1e6 / max(turn_us, 1.0)) - WARM_TURNS))
    racing = [contestant for contestant in contestants if column in contestant.graphs]
    for contestant in racing:
        contestant.us[column] = []
    for turn in range(pairs + WARM_TURNS):
        for contestant in racing:
            graph, launches = contestant.graphs[column]
            us = event_us(torch, stream, graph.replay) / launches
            if turn >= WARM_TURNS:
                contestant.us[column].append(us)
    for contestant in racing:
        contestant.graphs.clear()
    return failed


def cpu_turn_us(launch):
    time.sleep(CPU_SETTLE_S)
    launch(0)
    best, end = math.inf, time.perf_counter() + CPU_TURN_S
    while time.perf_counter() < end:
        begin = time.perf_counter()
        launch(0)
        best = min(best, time.perf_counter() - begin)
    return best * 1e6


def time_on_cpu(contestants, pairs, seconds):
    begin = time.monotonic()
    for contestant in contestants:
        contestant.us["hot"] = []
    for turn in range(pairs):
        if turn >= 3 and time.monotonic() - begin > seconds:
            break
        for contestant in contestants:
            contestant.us["hot"].append(cpu_turn_us(contestant.launch))


def summary(us):
    """Median, quartiles and least of a contestant's turns, in microseconds."""
    low, _, high = statistics.quantiles(us, n=4) if len(us) > 1 else (us[0], ) * 3
    return {"median": statistics.median(us), "low": low, "high": high, "least": min(us), "turns": len(us)}


def first_line(fault):
    return (str(fault).strip().splitlines() or [type(fault).__name__])[0][:200]
