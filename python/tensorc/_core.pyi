"""The compiler's library. tensorc is what to import."""
from __future__ import annotations

import enum
from typing import Any, Literal, Sequence

__version__: str


class Error(ValueError):
    """What is wrong with a text, its sizes, tensors or options. str() is the whole message, with the line and a marker
    under the place; `diagnostics` lists (line, column, sentence), the first two None where there is no place."""
    diagnostics: list[tuple[int | None, int | None, str]]


class BudgetError(Error):
    """A compilation would take more than its budget allows."""


class CancelledError(Error):
    """A compilation was asked to stop."""


class InternalError(Error):
    """A fault of the compiler: please report it."""


class Fusion(enum.Enum):
    """Which statements share loop nests."""
    MAX = ...
    PRESERVE_3_COINCIDENT = ...
    MIN = ...


class SchedulerOptions:
    """Options of the polyhedral scheduler. Immutable."""

    def __init__(self, *, fusion: Fusion | None = None, allow_skewing: bool = False,
                 positive_orthant: bool = True) -> None: ...
    @property
    def fusion(self) -> Fusion | None: ...
    @property
    def allow_skewing(self) -> bool: ...
    @property
    def positive_orthant(self) -> bool: ...
    def replace(self, **options: Any) -> SchedulerOptions: ...


class CpuOptions:
    """How a def is compiled for the CPU. What is absent is chosen by the compiler. Immutable."""

    def __init__(self, *, scheduler: SchedulerOptions = ..., tile: Sequence[int] = (), vector_width: int | None = None,
                 unroll: int | None = None, parallel: bool | None = None, promote: bool | None = None,
                 strict: bool = False, check_bounds: bool = False) -> None: ...
    @property
    def scheduler(self) -> SchedulerOptions: ...
    @property
    def tile(self) -> list[int]: ...
    @property
    def vector_width(self) -> int | None: ...
    @property
    def unroll(self) -> int | None: ...
    @property
    def parallel(self) -> bool | None: ...
    @property
    def promote(self) -> bool | None: ...
    @property
    def strict(self) -> bool: ...
    @property
    def check_bounds(self) -> bool: ...
    def replace(self, **options: Any) -> CpuOptions:
        """A copy in which some options differ."""
    @staticmethod
    def from_text(text: str) -> CpuOptions:
        """Of the text form, which str() gives."""


class MappingOptions:
    """How a def is mapped to a GPU. What is absent is chosen by the compiler; what it cannot follow is an error.
    Immutable."""

    def __init__(self, *, outer_schedule_options: SchedulerOptions = ...,
                 intra_tile_schedule_options: SchedulerOptions = ...,
                 fix_parameters_before_scheduling: bool | None = None, tile: Sequence[int] = (),
                 unroll: int | None = None, match_library_calls: bool | None = None,
                 map_to_threads: Sequence[int] = (), map_to_blocks: Sequence[int] = (),
                 use_shared_memory: bool | None = None, use_private_memory: bool | None = None,
                 unroll_copy_shared: bool | None = None, max_shared_memory: int | None = None,
                 use_readonly_cache: bool | None = None, shared_depth: int | None = None,
                 private_depth: int | None = None, register_tile: Sequence[int] = (), copy_stages: int | None = None,
                 split_reduction: int | None = None, max_gathered_memory: int | None = None,
                 strict: bool = False) -> None: ...
    @property
    def outer_schedule_options(self) -> SchedulerOptions: ...
    @property
    def intra_tile_schedule_options(self) -> SchedulerOptions: ...
    @property
    def fix_parameters_before_scheduling(self) -> bool | None: ...
    @property
    def tile(self) -> list[int]: ...
    @property
    def unroll(self) -> int | None: ...
    @property
    def match_library_calls(self) -> bool | None: ...
    @property
    def map_to_threads(self) -> list[int]: ...
    @property
    def map_to_blocks(self) -> list[int]: ...
    @property
    def use_shared_memory(self) -> bool | None: ...
    @property
    def use_private_memory(self) -> bool | None: ...
    @property
    def unroll_copy_shared(self) -> bool | None: ...
    @property
    def max_shared_memory(self) -> int | None: ...
    @property
    def use_readonly_cache(self) -> bool | None: ...
    @property
    def shared_depth(self) -> int | None: ...
    @property
    def private_depth(self) -> int | None: ...
    @property
    def register_tile(self) -> list[int]: ...
    @property
    def copy_stages(self) -> int | None: ...
    @property
    def split_reduction(self) -> int | None: ...
    @property
    def max_gathered_memory(self) -> int | None: ...
    @property
    def strict(self) -> bool: ...
    def replace(self, **options: Any) -> MappingOptions:
        """A copy in which some options differ."""
    @staticmethod
    def from_text(text: str) -> MappingOptions:
        """Of the text form, which str() gives."""
    @staticmethod
    def preset(name: str) -> MappingOptions:
        """A starting point by kind of program: naive, single_thread, pointwise, mlp, conv or group_conv."""


class Argument:
    """One argument of a def, as its text declares or implies it."""
    @property
    def name(self) -> str: ...
    @property
    def role(self) -> Literal["input", "result", "inout", "scalar"]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> list[str]:
        """Extents over size names, outermost first."""
    @property
    def compiled_in(self) -> bool:
        """Of an integer scalar: its value decides a shape, a range or a subscript."""


class Signature:
    """The arguments of a def."""
    @property
    def entry(self) -> str: ...
    @property
    def parameters(self) -> list[Argument]: ...
    @property
    def results(self) -> list[Argument]: ...
    @property
    def sizes(self) -> list[str]: ...


class TensorSpec:
    """Type, shape and strides (in elements) of a tensor; without strides, dense and row-major."""

    def __init__(self, dtype: str, shape: Sequence[int], strides: Sequence[int] = ()) -> None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...


class Engine:
    """A checked text."""

    def __init__(self, text: str, name: str, cache: str, read_only: bool, nearest: bool, keep_text: bool) -> None: ...
    @staticmethod
    def production(cache: str, text: str, name: str) -> Engine: ...
    def statistics(self) -> dict[str, int]: ...
    def entries(self) -> list[str]: ...
    def signature(self, entry: str) -> Signature: ...
    def gradient(self, entry: str) -> str: ...
    def infer(self, request: dict[str, Any]) -> tuple[list[TensorSpec], list[TensorSpec]]: ...
    def compile(self, request: dict[str, Any]) -> Kernel: ...
    def emit(self, request: dict[str, Any], stage: str, arch: str) -> str: ...


class Function:
    """A def as a function of arrays. Compiled once for each set of shapes, strides, types and devices.

    Arguments are the def's parameters in the order of the text, or by name. Results are new arrays of the first
    array's library, or those of `out=` (an array, or a list or tuple with None for those to be made) or given by name.
    `stream=` is a stream of PyTorch or CuPy, or its address; by default the current one. Sizes that no array determines
    are given by name. A def's own parameter of the name `out` or `stream` comes before these.
    """

    def __init__(self, engine: Engine, entry: str, backend: str | None, cpu: CpuOptions,
                 mapping: MappingOptions, element_aligned: bool) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def compile(self, *args: Any, **kwargs: Any) -> Kernel:
        """The kernel that a call with these arguments runs."""
    @property
    def signature(self) -> Signature: ...
    @property
    def kernels(self) -> int:
        """How many kernels are held."""
    def clear(self) -> None:
        """Lets go of all kernels."""


class Kernel:
    """A def compiled for fixed shapes; called like a Function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def prepare(self, stream: int) -> None:
        """Allocates what runs on a stream need, before the first that a graph captures. The stream is its address."""
    @property
    def signature(self) -> Signature: ...
    @property
    def inputs(self) -> list[TensorSpec]: ...
    @property
    def outputs(self) -> list[TensorSpec]: ...
    @property
    def device(self) -> str:
        """"cpu" or "cuda:0"."""
    @property
    def pass_times(self) -> list[tuple[str, float]]:
        """The passes of the compilation and their times in milliseconds."""


class Record:
    """What has become of one candidate. Times are of one run."""
    @property
    def generation(self) -> int: ...
    @property
    def options(self) -> str:
        """As text."""
    @property
    def outcome(self) -> str:
        """"done", or why it did not come to that."""
    @property
    def us(self) -> float: ...
    @property
    def cold_us(self) -> float: ...
    @property
    def spread(self) -> float: ...
    @property
    def compile_ms(self) -> float: ...
    @property
    def message(self) -> str: ...
    @property
    def remembered(self) -> bool:
        """Known from a cache: not measured now."""


class Progress:
    """How far a search is."""
    @property
    def done(self) -> int:
        """Candidates, of `planned`."""
    @property
    def planned(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def default_us(self) -> float: ...
    @property
    def best_us(self) -> float: ...
    @property
    def failed(self) -> dict[str, int]:
        """How many by reason."""
    @property
    def rejected(self) -> int:
        """Drawn, and turned down before any compilation."""
    @property
    def seconds_left(self) -> float | None: ...


class Tuned:
    """The end of a search; tensorc.Tuned has the options as a value."""
    @property
    def ending(self) -> str: ...
    @property
    def best(self) -> str: ...
    @property
    def best_us(self) -> float: ...
    @property
    def best_cold_us(self) -> float: ...
    @property
    def default_us(self) -> float: ...
    @property
    def speedup(self) -> float: ...
    @property
    def device(self) -> str: ...
    @property
    def reference(self) -> str:
        """What results were compared with."""
    @property
    def rejected(self) -> int: ...
    @property
    def history(self) -> list[Record]: ...


def tune(text: str, request: dict[str, Any], config: dict[str, Any], progress: Any) -> Tuned: ...
def run_tune_job(job: bytes, limit_s: float, worker: Sequence[str]) -> tuple[int, bytes]: ...
def serve_tune_jobs() -> int: ...
