"""The compiler's library. tensorc is what to import."""
from __future__ import annotations

import enum
from typing import Any, Callable, Literal, Sequence

from ._explain import Explanation

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
    def fusion(self) -> Fusion | None:
        """Which statements share loop nests; None: chosen."""
    @property
    def allow_skewing(self) -> bool:
        """Whether loops may run over sums of indices, so that a band becomes permutable."""
    @property
    def positive_orthant(self) -> bool:
        """Whether no loop runs against an index: the coefficients of schedules are not negative."""
    def replace(self, **options: Any) -> SchedulerOptions:
        """A copy in which some options differ. Raises TypeError and Error as the constructor."""


class CpuOptions:
    """How a def is compiled for the CPU. The compiler chooses absent options. Immutable. Raises TypeError for a name
    or type that no option has, Error for values out of their bounds."""

    def __init__(self, *, scheduler: SchedulerOptions = ..., tile: Sequence[int] = (), vector_width: int | None = None,
                 unroll: int | None = None, parallel: bool | None = None, promote: bool | None = None,
                 strict: bool = False, check_bounds: bool = False) -> None: ...
    @property
    def scheduler(self) -> SchedulerOptions:
        """Options of the polyhedral scheduler."""
    @property
    def tile(self) -> list[int]:
        """Sizes of tiles of the outermost band, in iterations, outermost member first; []: chosen."""
    @property
    def vector_width(self) -> int | None:
        """Elements of a vector, a power of two; None: chosen."""
    @property
    def unroll(self) -> int | None:
        """Iterations of the innermost loop laid out one after another; None: chosen."""
    @property
    def parallel(self) -> bool | None:
        """Whether loops are spread over the cores; None: chosen."""
    @property
    def promote(self) -> bool | None:
        """Whether tiles of tensors are copied into buffers of their own; None: chosen."""
    @property
    def strict(self) -> bool:
        """Whether reductions keep the order of the text, without extra precision and without contraction to FMA."""
    @property
    def check_bounds(self) -> bool:
        """Whether each run checks data-dependent subscripts. A subscript outside its tensor is an Error."""
    def replace(self, **options: Any) -> CpuOptions:
        """A copy in which some options differ. Raises TypeError and Error as the constructor."""
    @staticmethod
    def from_text(text: str) -> CpuOptions:
        """Parses the text form, which str() gives. Raises Error with the place in the text."""


class KernelOptions:
    """Options of one kernel of a def. Immutable. Raises TypeError for a name or type that no option has, Error for
    values out of their bounds or if 'writes' is missing."""

    def __init__(self, *, writes: str, occurrence: int | None = None, tile: Sequence[int] = (),
                 register_tile: Sequence[int] = (), map_to_threads: Sequence[int] = (),
                 map_to_blocks: Sequence[int] = (), copy_stages: int | None = None, cluster: Sequence[int] = (),
                 store_boxes: bool | None = None, persistent: bool | None = None, ping_pong: bool | None = None,
                 tensor_cores: bool | None = None, chain: bool | None = None, split_reduction: int | None = None,
                 split_results: Sequence[int] = (), unroll: int | None = None, unroll_copy_shared: bool | None = None,
                 use_shared_memory: bool | None = None, use_private_memory: bool | None = None,
                 max_shared_memory: int | None = None, shared_depth: int | None = None,
                 private_depth: int | None = None, match_library_calls: bool | None = None) -> None: ...
    @property
    def writes(self) -> str:
        """A tensor that the kernel's product, or else first reduction or statement, writes."""
    @property
    def occurrence(self) -> int | None:
        """Which statement of those that write it, from 1 on; None: there is one kernel that does."""
    @property
    def tile(self) -> list[int]:
        """As MappingOptions.tile."""
    @property
    def register_tile(self) -> list[int]:
        """As MappingOptions.register_tile."""
    @property
    def map_to_threads(self) -> list[int]:
        """As MappingOptions.map_to_threads."""
    @property
    def map_to_blocks(self) -> list[int]:
        """As MappingOptions.map_to_blocks."""
    @property
    def copy_stages(self) -> int | None:
        """As MappingOptions.copy_stages."""
    @property
    def cluster(self) -> list[int]:
        """As MappingOptions.cluster."""
    @property
    def store_boxes(self) -> bool | None:
        """As MappingOptions.store_boxes."""
    @property
    def persistent(self) -> bool | None:
        """As MappingOptions.persistent."""
    @property
    def ping_pong(self) -> bool | None:
        """As MappingOptions.ping_pong."""
    @property
    def tensor_cores(self) -> bool | None:
        """As MappingOptions.tensor_cores."""
    @property
    def chain(self) -> bool | None:
        """As MappingOptions.chain."""
    @property
    def split_reduction(self) -> int | None:
        """As MappingOptions.split_reduction."""
    @property
    def split_results(self) -> list[int]:
        """As MappingOptions.split_results."""
    @property
    def unroll(self) -> int | None:
        """As MappingOptions.unroll."""
    @property
    def unroll_copy_shared(self) -> bool | None:
        """As MappingOptions.unroll_copy_shared."""
    @property
    def use_shared_memory(self) -> bool | None:
        """As MappingOptions.use_shared_memory."""
    @property
    def use_private_memory(self) -> bool | None:
        """As MappingOptions.use_private_memory."""
    @property
    def max_shared_memory(self) -> int | None:
        """As MappingOptions.max_shared_memory."""
    @property
    def shared_depth(self) -> int | None:
        """As MappingOptions.shared_depth."""
    @property
    def private_depth(self) -> int | None:
        """As MappingOptions.private_depth."""
    @property
    def match_library_calls(self) -> bool | None:
        """As MappingOptions.match_library_calls."""
    def replace(self, **options: Any) -> KernelOptions:
        """A copy in which some options differ. Raises TypeError and Error as the constructor."""


class MappingOptions:
    """How a def is mapped to a GPU. The compiler chooses absent options. An option that it cannot honour is an error.
    Immutable. Raises TypeError for a name or type that no option has, Error for values out of their bounds."""

    def __init__(self, *, outer_schedule_options: SchedulerOptions = ...,
                 intra_tile_schedule_options: SchedulerOptions = ...,
                 fix_parameters_before_scheduling: bool | None = None, tile: Sequence[int] = (),
                 unroll: int | None = None, match_library_calls: bool | None = None,
                 map_to_threads: Sequence[int] = (), map_to_blocks: Sequence[int] = (),
                 use_shared_memory: bool | None = None, use_private_memory: bool | None = None,
                 unroll_copy_shared: bool | None = None, max_shared_memory: int | None = None,
                 use_readonly_cache: bool | None = None, shared_depth: int | None = None,
                 private_depth: int | None = None, register_tile: Sequence[int] = (), copy_stages: int | None = None,
                 cluster: Sequence[int] = (), store_boxes: bool | None = None, persistent: bool | None = None,
                 ping_pong: bool | None = None, split_reduction: int | None = None,
                 split_results: Sequence[int] = (), max_gathered_memory: int | None = None,
                 atomic_reduction: bool | None = None, tensor_cores: bool | None = None,
                 copy_operands: bool | None = None, chain: bool | None = None, strict: bool = False,
                 check_bounds: bool = False, fast_accumulation: bool = False, tf32: bool = False,
                 kernel: Sequence[KernelOptions] = ()) -> None: ...
    @property
    def outer_schedule_options(self) -> SchedulerOptions:
        """Options of the scheduler for tiles."""
    @property
    def intra_tile_schedule_options(self) -> SchedulerOptions:
        """Options of the scheduler for the points within a tile."""
    @property
    def fix_parameters_before_scheduling(self) -> bool | None:
        """Whether the schedule is for the sizes at hand, not for all sizes; None: chosen."""
    @property
    def tile(self) -> list[int]:
        """Sizes of tiles of each kernel's outermost band, in iterations, outermost member first; []: chosen."""
    @property
    def unroll(self) -> int | None:
        """The most instances of statements that unrolling a loop may lay out; None: chosen."""
    @property
    def match_library_calls(self) -> bool | None:
        """Whether a recipe is used where one fits; None: where it is faster."""
    @property
    def map_to_threads(self) -> list[int]:
        """Threads of a block in x, y and z; x runs over the innermost loop; []: chosen."""
    @property
    def map_to_blocks(self) -> list[int]:
        """Blocks of the grid in x, y and z; x runs over the outermost loop; []: chosen."""
    @property
    def use_shared_memory(self) -> bool | None:
        """Whether elements that a block reuses are kept in shared memory; None: chosen."""
    @property
    def use_private_memory(self) -> bool | None:
        """Whether elements that only one thread uses are kept in registers; None: chosen."""
    @property
    def unroll_copy_shared(self) -> bool | None:
        """Whether copies to and from shared memory are unrolled too; None: chosen."""
    @property
    def max_shared_memory(self) -> int | None:
        """Bytes of shared memory that a block may use; None: the device's limit."""
    @property
    def use_readonly_cache(self) -> bool | None:
        """Whether tensors that no kernel of the def writes are loaded through the read-only cache; None: chosen."""
    @property
    def shared_depth(self) -> int | None:
        """Band members outside the copies to shared memory; None: chosen."""
    @property
    def private_depth(self) -> int | None:
        """Band members outside the copies to registers; None: chosen."""
    @property
    def register_tile(self) -> list[int]:
        """Results of each thread, by member of the outermost band; []: chosen."""
    @property
    def copy_stages(self) -> int | None:
        """Buffers that asynchronous copies rotate through; None: chosen."""
    @property
    def cluster(self) -> list[int]:
        """Blocks of a cluster, which share copies, by member of the outermost band, then a tile; []: chosen."""
    @property
    def store_boxes(self) -> bool | None:
        """Whether results of products are stored by boxes, from shared memory; None: they are not."""
    @property
    def persistent(self) -> bool | None:
        """Whether as many blocks as run at once go through all tiles of a product; None: they do not."""
    @property
    def ping_pong(self) -> bool | None:
        """Whether two warpgroups of such a block have its tiles by turns; None: they do not."""
    @property
    def split_reduction(self) -> int | None:
        """Parts of a reduction that blocks of their own work on; None: chosen."""
    @property
    def split_results(self) -> list[int]:
        """Results of a product's first launch, by member of the outermost band; a second has the rest; []: chosen."""
    @property
    def max_gathered_memory(self) -> int | None:
        """Bytes of workspace that rows chosen by data may be copied to; None: 0."""
    @property
    def atomic_reduction(self) -> bool | None:
        """Whether blocks combine their partial results by atomic updates; None: chosen."""
    @property
    def tensor_cores(self) -> bool | None:
        """Whether tensor cores compute products of 16-bit floats; None: where it is faster."""
    @property
    def copy_operands(self) -> bool | None:
        """Whether operands are copied to an order that products by tensor cores take; None: where it is faster."""
    @property
    def chain(self) -> bool | None:
        """Whether products that follow each other share a kernel, their results in shared memory; None: chosen."""
    @property
    def strict(self) -> bool:
        """Whether reductions keep the order of the text."""
    @property
    def check_bounds(self) -> bool:
        """Whether each run checks data-dependent subscripts. Such a run waits for its kernels."""
    @property
    def fast_accumulation(self) -> bool:
        """Whether sums of products of 8-bit floats keep few bits, as tensor cores do."""
    @property
    def tf32(self) -> bool:
        """Whether products of float32 may take operands with 11 significant bits, as TF32."""
    @property
    def kernel(self) -> list[KernelOptions]:
        """Options of single kernels, which come before those of the def."""
    def replace(self, **options: Any) -> MappingOptions:
        """A copy in which some options differ. Raises TypeError and Error as the constructor."""
    @staticmethod
    def from_text(text: str) -> MappingOptions:
        """Parses the text form, which str() gives. Raises Error with the place in the text."""
    @staticmethod
    def preset(name: str) -> MappingOptions:
        """A starting point by kind of program: naive, single_thread, pointwise, mlp, conv or group_conv. Raises
        ValueError."""


class Argument:
    """One argument of a def, as its text declares or implies it."""
    @property
    def name(self) -> str:
        """The argument's name in the text."""
    @property
    def role(self) -> Literal["input", "result", "inout", "scalar"]:
        """"input", "result", "inout" (a result whose old elements are read) or "scalar"."""
    @property
    def dtype(self) -> str:
        """Type of its elements, by NumPy's name: "float32", "int8", ..."""
    @property
    def type_variable(self) -> str:
        """The type variable of a generic def's argument, which arrays decide; else empty."""
    @property
    def widens_float8(self) -> bool:
        """Of a generic def's result: whether it is float32 where the variable is an 8-bit float ("T|float32")."""
    @property
    def shape(self) -> list[str]:
        """Extents over names of sizes, outermost first: ["N", "H - KH + 1"]; [] of a scalar."""
    @property
    def compiled_in(self) -> bool:
        """Of an integer scalar: its value decides a shape, a range or a subscript, and so what is compiled."""


class Signature:
    """The arguments of a def."""
    @property
    def entry(self) -> str:
        """The def's name."""
    @property
    def type_variables(self) -> dict[str, str]:
        """Of a generic def: its type variables, each with its restriction, "float", "integer" or ""."""
    @property
    def parameters(self) -> list[Argument]:
        """Inputs and scalars, in the order of the text."""
    @property
    def results(self) -> list[Argument]:
        """Results and in-outs, in the order of the text."""
    @property
    def sizes(self) -> list[str]:
        """Names of the sizes, by first appearance in the text."""


class TensorSpec:
    """Type, shape and strides (in elements) of a tensor; without strides, dense and row-major."""

    def __init__(self, dtype: str, shape: Sequence[int], strides: Sequence[int] = ()) -> None: ...
    @property
    def dtype(self) -> str:
        """Type of the elements, by NumPy's name: "float32", "int8", ..."""
    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, in elements, outermost first."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements, one for each dimension; () where it is dense and row-major."""


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
    def explain(self, request: dict[str, Any], arch: str) -> Explanation: ...
    def emit(self, request: dict[str, Any], stage: str, arch: str) -> str: ...


class Function:
    """A def as a function of arrays: it compiles once for each set of shapes, strides, types and devices.

    Arguments are the def's parameters in the order of the text, or by name. Results are new arrays of the first
    array's library, or those of `out=` (an array, or a list or tuple with None for those to be made) or given by name.
    `stream=` is a stream of PyTorch or CuPy, or its address; by default the current one. Sizes that no array determines
    are given by name. A def's own parameter of the name `out` or `stream` comes before these.

    Raises TypeError for what is no array, number or argument, ValueError for an array that cannot be used where it is,
    and Error for types, shapes, devices and values that do not fit the def.
    """

    # What tensorc.kernel() adds:
    text: str
    program: Any
    tuned: list[Any]

    def __init__(self, engine: Engine, entry: str, backend: str | None, cpu: CpuOptions,
                 mapping: MappingOptions, element_aligned: bool,
                 maker: Callable[[dict[str, Any]], Kernel] | None = None) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def compile(self, *args: Any, **kwargs: Any) -> Kernel:
        """The kernel that a call with these arguments runs."""
    @property
    def signature(self) -> Signature:
        """The def's parameters and results."""
    @property
    def kernels(self) -> int:
        """The number of kernels held, including those in compilation."""
    def clear(self) -> None:
        """Releases all kernels."""


class Kernel:
    """A def compiled for fixed shapes, called like a Function with arrays of just these shapes and types.

    Raises what a Function raises, and never compiles but for tensors of a GPU that are not aligned to its vectors.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def prepare(self, stream: int) -> None:
        """Allocates the temporaries for runs on a stream. Call it before a graph captures the first run. `stream` is
        the stream's address. Does nothing on the CPU. Raises Error if there is not enough memory."""
    @property
    def signature(self) -> Signature:
        """The def's parameters and results."""
    @property
    def inputs(self) -> list[TensorSpec]:
        """Types, shapes and strides of the tensor parameters that it takes."""
    @property
    def outputs(self) -> list[TensorSpec]:
        """Types, shapes and strides of the results that it writes."""
    @property
    def device(self) -> str:
        """Where it runs: "cpu" (that of the simulator too) or "cuda:0"."""
    def explain(self) -> Explanation:
        """What the compiler made of the def, and why: ranges, kernels, options, tiles, floors and estimates. Raises Error
        for a kernel that was made by hand, or in production."""
    @property
    def options(self) -> str:
        """The options that it was made with, as text; "": chosen by the compiler; "by hand ...": none made it."""
    @property
    def from_cache(self) -> bool:
        """Whether it was read from a cache's file rather than compiled."""
    @property
    def measured(self) -> bool:
        """Whether it is the fastest that a search has measured for the shape and device."""
    @property
    def pass_times(self) -> list[tuple[str, float]]:
        """The passes of the compilation and their times in milliseconds; [] of one that a cache held."""


class Record:
    """The outcome of one candidate of a search."""
    @property
    def generation(self) -> int:
        """The generation that drew it; 0: before the first."""
    @property
    def options(self) -> str:
        """Its options as text, for CpuOptions.from_text() or MappingOptions.from_text()."""
    @property
    def outcome(self) -> str:
        """"done"; "hopeless", too slow to be measured well; or why it has no time: "refused", "wrong result", ..."""
    @property
    def us(self) -> float:
        """Microseconds of one run with its tensors in the cache; comparable between records; 0 where there is none."""
    @property
    def own_us(self) -> float:
        """The median of its own runs, in microseconds; `us` is this, corrected for a machine that became slower."""
    @property
    def cold_us(self) -> float:
        """Microseconds of one run with its tensors out of the cache; 0 where there is none."""
    @property
    def spread(self) -> float:
        """The spread of its runs: (third quartile - first quartile) / median."""
    @property
    def compile_ms(self) -> float:
        """Milliseconds of its compilation."""
    @property
    def message(self) -> str:
        """Why it has no time; empty where it has one."""
    @property
    def remembered(self) -> bool:
        """Whether it is known from a cache, and was not measured now."""


class Progress:
    """The progress of a search."""
    @property
    def done(self) -> int:
        """Finished candidates, out of `planned`."""
    @property
    def planned(self) -> int:
        """Candidates of the whole search, at most."""
    @property
    def generation(self) -> int:
        """The current generation."""
    @property
    def default_us(self) -> float:
        """Microseconds of one run with the compiler's own options; 0: not yet measured."""
    @property
    def best_us(self) -> float:
        """Microseconds of one run by the best so far; 0: none yet."""
    @property
    def failed(self) -> dict[str, int]:
        """How many candidates have no time, by Record.outcome."""
    @property
    def rejected(self) -> int:
        """Candidates that were drawn and turned down before any compilation."""
    @property
    def seconds_left(self) -> float | None:
        """An estimate of the time to the end, or what is left of the time limit; None: not known yet."""


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
    def floor_us(self) -> float: ...
    @property
    def noise(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def reference(self) -> str:
        """The reference that results were compared with."""
    @property
    def rejected(self) -> int: ...
    @property
    def not_kept(self) -> str:
        """Why some results are not in the cache; empty: all are, or there is no cache."""
    @property
    def history(self) -> list[Record]: ...


class Schedule:
    """The loops of a def; tensorc.Schedule has the verbs' words."""

    @staticmethod
    def create(text: str, request: dict[str, Any]) -> Schedule: ...
    def copy(self) -> Schedule: ...
    def loops(self) -> list[str]: ...
    def text(self) -> str: ...
    def emit(self, stage: str) -> str: ...
    def compile(self) -> Kernel: ...
    def check(self, seed: int) -> None: ...
    def save(self, cache: str) -> tuple[str, float, float]: ...
    def count(self, seed: int) -> dict[str, int]: ...
    def split(self, loop: str, size: int) -> tuple[str, str]: ...
    def tile(self, loops: Sequence[str], sizes: Sequence[int]) -> list[str]: ...
    def fuse(self, outer: str, inner: str) -> str: ...
    def reorder(self, loops: Sequence[str]) -> None: ...
    def distribute(self, loop: str) -> None: ...
    def partition(self, loop: str, at: int) -> tuple[str, str]: ...
    def merge(self, first: str, second: str) -> None: ...
    def sink(self, name: str, loop: str) -> None: ...
    def split_reduction(self, loop: str, parts: int, cyclic: bool) -> tuple[str, str, str, str, int]: ...
    def launch(self, at: str) -> None: ...
    def parallelize(self, loop: str) -> None: ...
    def bind(self, loop: str, axis: str) -> None: ...
    def tensorize(self, loop: str, operation: str) -> None: ...
    def persist(self, loop: str, teams: int) -> None: ...
    def reduce_by_warp(self, loop: str) -> None: ...
    def unroll(self, loop: str) -> None: ...
    def vectorize(self, loop: str) -> None: ...
    def promote(self, tensor: str, loop: str, memory: str, fetch: str) -> None: ...
    def stage(self, tensor: str, loop: str, stages: int) -> None: ...


def jax_handler() -> Any: ...
def jax_register(kernel: Kernel, scalars: dict[str, Any]) -> int: ...
def tune(text: str, request: dict[str, Any], config: dict[str, Any], progress: Any) -> Tuned: ...
def run_tune_job(job: bytes, limit_s: float, worker: Sequence[str]) -> tuple[int, bytes]: ...
def serve_tune_jobs() -> int: ...


class Cancellation:
    """Cancels the checks that hold it, from any thread."""

    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """Cancels them. Each raises CancelledError."""


def check(text: str, name: str, sizes: dict[str, int], scalars: dict[str, int], types: dict[str, str],
          first_instance: bool, time_limit_ms: int, cancellation: Cancellation | None = None) -> str: ...
def format(text: str, name: str) -> str: ...
def words() -> str: ...
