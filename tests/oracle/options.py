"""Options drawn at random: the text form of proto/options.proto."""
from __future__ import annotations

import random


def _flag(random: random.Random, name: str, percent: float = 50) -> str:
    return f"{name}: {'true' if random.random() * 100 < percent else 'false'}"


def _scheduler(random: random.Random, name: str) -> str:
    parts = []
    if random.random() < 0.6:
        parts.append(f"fusion_strategy: {random.choice(('MAX', 'PRESERVE_3_COINCIDENT', 'MIN'))}")
    if random.random() < 0.2:
        parts.append("allow_skewing: true")
    if random.random() < 0.3:
        parts.append("positive_orthant: false")
    return f"{name} {{ {' '.join(parts)} }}" if parts else ""


def cpu(seed: int) -> str:
    """Options of the CPU."""
    drawn = random.Random(seed)
    parts = [_scheduler(drawn, "scheduler")]
    if drawn.random() < 0.6:
        sizes = [drawn.choice((1, 2, 3, 4, 7, 8, 16, 32)) for _ in range(drawn.randint(1, 3))]
        parts.append(f"tile: [{', '.join(map(str, sizes))}]")
    if drawn.random() < 0.5:
        parts.append(f"vector_width: {drawn.choice((1, 2, 4, 8, 16, 32))}")
    if drawn.random() < 0.5:
        parts.append(f"unroll: {drawn.choice((1, 2, 3, 4, 8))}")
    for name in ("parallel", "promote"):
        if drawn.random() < 0.6:
            parts.append(_flag(drawn, name))
    if drawn.random() < 0.2:
        parts.append("strict: true")
    if drawn.random() < 0.15:
        parts.append("check_bounds: true")
    return " ".join(part for part in parts if part)


def gpu(seed: int) -> str:
    """Options of a GPU, and of the simulator. What a mapping cannot follow is refused."""
    drawn = random.Random(seed)
    parts = []
    if drawn.random() < 0.5:
        parts.append(_scheduler(drawn, "outer_schedule_options"))
    for name in ("use_shared_memory", "use_private_memory", "unroll_copy_shared", "use_readonly_cache",
                 "fix_parameters_before_scheduling", "match_library_calls"):
        if drawn.random() < 0.25:
            parts.append(_flag(drawn, name, 30 if name == "match_library_calls" else 50))
    if drawn.random() < 0.4:
        sizes = [drawn.choice((1, 2, 3, 4, 8, 16, 32)) for _ in range(drawn.randint(1, 3))]
        parts.append(f"tile: [{', '.join(map(str, sizes))}]")
    if drawn.random() < 0.3:
        parts.append(f"map_to_threads: [{', '.join(str(drawn.choice((1, 2, 3, 5, 8, 10))) for _ in range(drawn.randint(1, 3)))}]")
    if drawn.random() < 0.3:
        parts.append(f"map_to_blocks: [{', '.join(str(drawn.choice((1, 2, 3, 7, 100))) for _ in range(drawn.randint(1, 3)))}]")
    if drawn.random() < 0.25:
        parts.append(f"unroll: {drawn.choice((1, 2, 4, 16, 64))}")
    if drawn.random() < 0.15:
        parts.append(f"split_reduction: {drawn.randint(2, 8)}")
        parts.append(_flag(drawn, "atomic_reduction", 70))
    if drawn.random() < 0.15:
        parts.append(f"copy_stages: {drawn.randint(1, 4)}")
    if drawn.random() < 0.15:
        parts.append(f"max_shared_memory: {drawn.randint(0, 100000)}")
    if drawn.random() < 0.2:
        parts.append("strict: true")
    return " ".join(part for part in parts if part)


SINGLE_THREAD = "map_to_threads: [1] map_to_blocks: [1]"
