#pragma once

/// tensorc as a library: TC text in, kernels out.
///
///     #include <tc/api/tc.h>
///
///     const char* text = "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }";
///     auto kernel = tc::api::compile(text, {.inputs = {tc::api::TensorSpec{.shape = {128, 64}},
///                                                      tc::api::TensorSpec{.shape = {64}}}});
///     if (!kernel) { std::cerr << kernel.error().to_string(); return 1; }
///     ... kernel->run(inputs, outputs) ...
///
/// Nothing here throws for an error of the user's or of ours: calls return Result<T>, which holds a value or an Error
/// (tc/support/error.h) whose to_string() is the full text. Only std::bad_alloc may leave a call.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tc/api/tensor.h"
#include "tc/options/backend.h"
#include "tc/options/mapping.h"
#include "tc/options/options.h"
#include "tc/support/error.h"
#include "tc/support/log.h"

namespace tc::ir {
struct Program;
}
namespace tc::cache {
struct Entry;
}
namespace tc::compile {
struct Settings;
struct Compilation;
}  // namespace tc::compile

namespace tc::api {

using options::Backend;

struct Explanation;  // tc/api/explain.h

/// The value of a scalar argument. It is converted to the argument's type at the call: an integer argument takes
/// integers in its range only, a float argument any number that its type rounds to a finite one, infinities and NaN.
class Scalar {
 public:
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Scalar(T value) {  // NOLINT(google-explicit-constructor): literals are arguments
    if constexpr (std::is_floating_point_v<T>) {
      kind_ = Kind::kFloat;
      float_ = static_cast<double>(value);
    } else if constexpr (std::is_signed_v<T>) {
      integer_ = value;
    } else {
      kind_ = Kind::kUnsigned;
      integer_ = static_cast<int64_t>(static_cast<uint64_t>(value));
    }
  }

  enum class Kind : uint8_t { kSigned, kUnsigned, kFloat };
  Kind kind() const { return kind_; }
  int64_t integer() const { return integer_; }  ///< the bit pattern, unless kFloat
  double floating() const { return float_; }    ///< if kFloat
  std::string to_string() const;

 private:
  Kind kind_ = Kind::kSigned;
  int64_t integer_ = 0;
  double float_ = 0;
};

enum class Role {
  kInput,   ///< given by the caller, only read
  kResult,  ///< written
  kInOut,   ///< a result whose old elements are read: the caller fills it before the call
  kScalar,
};

/// One argument of a def, as its text declares or implies it.
struct Argument {
  std::string name{};
  Role role = Role::kInput;
  ScalarType type = ScalarType::kFloat32;
  std::string type_variable{};  ///< in a generic def's signature: it decides the type, or is decided by it
  bool widens_float8 = false;   ///< of a result with a type variable: float32 where that is an 8-bit float (T8)
  /// Of a tensor: extents over size names, as text. "C.0" is one that only a call decides.
  std::vector<std::string> shape{};
  bool compiled_in = false;  ///< of an integer scalar: its value decides a shape, a range or a subscript
};

/// A variable of a generic def (T7).
struct TypeVariable {
  std::string name{};
  std::string restriction{};  ///< "float", "integer", or nothing
};

/// The arguments of a def. Of a generic one, types are those of its first instance without errors, and arguments that
/// are declared with a variable name it. So does a result without a declared type that has the variable's type in every
/// instance without errors. `widens_float8` marks results that are float32 in the instances of 8-bit floats.
struct Signature {
  std::string entry{};
  std::vector<TypeVariable> type_variables{};
  std::vector<Argument> parameters{};  ///< inputs and scalars, in the order of the text
  std::vector<Argument> results{};     ///< results and in-outs, in the order of the text
  std::vector<std::string> sizes{};    ///< names of symbolic sizes, in order of first appearance
};

/// What is compiled: an entry, specialised to types, shapes, strides and compiled-in scalars.
struct Request {
  std::string entry{};  ///< may be empty if the text has one def; an instance of a generic one: "softmax<float16>"
  /// Types of a generic def's variables, by name, that no given tensor decides; others must agree.
  std::map<std::string, ScalarType> types{};
  /// Tensor parameters in order. Absent (or beyond the end): dense, with extents that follow from the sizes.
  std::vector<std::optional<TensorSpec>> inputs{};
  /// Results in order. Absent (or beyond the end): dense, with inferred extents. One that is given must have the
  /// inferred extents; where the text leaves an extent open (an in-out tensor) it decides.
  std::vector<std::optional<TensorSpec>> outputs{};
  std::map<std::string, int64_t> sizes{};   ///< those that no given tensor determines; others must agree
  std::map<std::string, Scalar> scalars{};  ///< at least those that are compiled in; others are ignored

  Backend backend = Backend::kCpu;
  int device = 0;                     ///< of kCuda: the GPU's number, as DLPack and the driver count them; else 0
  options::CpuOptions options{};      ///< of kCpu
  options::MappingOptions mapping{};  ///< of kCuda and kSimulator
  /// Of kCuda and kSimulator: compiles for tensors that are aligned to their elements only. Other kernels may copy by
  /// vectors of up to 16 bytes, and leave less aligned tensors to a kernel of this kind (CompiledKernel::run()).
  bool element_aligned = false;
  options::Budget budget{};
  std::stop_token cancel{};  ///< a compilation that is asked to stop ends with ErrorKind::kCancelled
  bool verify = false;       ///< run the verifier after every pass
};

/// Types, shapes and strides of all tensors of a request, all extents known, strides filled in.
struct Specs {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  /// For each output, whether every element is surely written. A caller who allocates another output must set its
  /// elements to zero (R5). Empty: no output is surely written.
  std::vector<bool> outputs_written{};
};

struct PassTime {
  std::string pass;
  double ms = 0;
};

/// Times of single runs.
struct Profile {
  std::vector<double> runs_us;  ///< in the order of the runs
  double min_us = 0;
  double median_us = 0;
  double mean_us = 0;
};

/// Where a kernel comes from.
struct Provenance {
  bool from_file = false;   ///< read from a cache rather than compiled by this engine
  bool measured = false;    ///< the fastest kernel that a search has measured for the shape and device
  std::string options{};    ///< the kernel's options as text; "": all chosen by the compiler
  std::string compiler{};   ///< version of the compiler that made it
  std::string statement{};  ///< the proofs and comparisons that the kernel has passed
};

/// Machine code for one Request. A cheap handle; copies share the code. All members may be called from many threads
/// at once.
class CompiledKernel {
 public:
  /// Runs the kernel. `inputs` are the tensor parameters, `outputs` the results, `scalars` all scalar parameters, each
  /// in the order of the text. Outputs are written in place; in-outs are read and written in place; elements that no
  /// statement writes keep their values. Inputs and outputs are used where they are, never copied.
  ///
  /// Errors, found before anything is written: a wrong number of arguments; a tensor whose type, rank, extents,
  /// strides, device or alignment are not what was compiled for; no data; an output that shares memory with another
  /// argument; a scalar that its type cannot hold, or that differs from the value compiled in. After the start: not
  /// enough memory for temporaries; what the simulator finds.
  ///
  /// On a GPU the tensors are in its memory (or pinned, or managed), and the call returns when the kernels have been
  /// launched on `stream` (a CUstream or cudaStream_t of the device; null is the legacy default stream). A call
  /// allocates only the temporaries of each further stream, at its first use (prepare()). It may be captured into a
  /// graph, which shares the temporaries of the stream that it was captured on. If an earlier kernel has destroyed the
  /// device's context, the call returns that error.
  ///
  /// Tensors that are not aligned to the kernel's vectors (a slice x[1:]) need another kernel. The first such call gets
  /// it from the engine, which compiles it if needed; later calls reuse it. The first such call is refused on a stream
  /// that is being captured. Such calls are errors if the other kernel does not compile (this is tried once), or if it
  /// is not in the file of an engine in production.
  Result<void> run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs,
                   std::span<const Scalar> scalars = {}, void* stream = nullptr) const;
  /// The same on Tensors; an output that is read-only or empty is an error.
  Result<void> run(std::span<const Tensor> inputs, std::span<Tensor> outputs, std::span<const Scalar> scalars = {},
                   void* stream = nullptr) const;

  /// Allocates the temporaries of run() on a stream, for aligned tensors. Call it before a graph captures the first
  /// run. Does nothing on the CPU.
  Result<void> prepare(void* stream) const;

  /// Returns whether a stream is being captured into a graph; false on the CPU.
  Result<bool> is_captured(void* stream) const;

  /// Makes later runs on `stream` wait for all work submitted to `other` so far. Does nothing on the CPU.
  Result<void> follow(void* stream, void* other) const;

  /// Waits until everything launched on the stream is done. Does nothing on the CPU.
  Result<void> wait(void* stream) const;

  /// Runs `repeat` times after one run to warm up, and says how long each took (wall clock, until all is done; on the
  /// default stream). In-outs are updated by every run.
  Result<Profile> profile(std::span<const Tensor> inputs, std::span<Tensor> outputs, std::span<const Scalar> scalars,
                          int repeat) const;

  /// New tensors for all outputs, zeroed, with the strides that were compiled for. Not for a GPU's kernel.
  Result<std::vector<Tensor>> allocate_outputs() const;

  const Signature& signature() const;
  DLDevice device() const;                          ///< that it runs on
  const std::vector<TensorSpec>& inputs() const;    ///< strides filled in
  const std::vector<TensorSpec>& outputs() const;   ///< strides filled in
  bool writes_all(size_t output) const;             ///< as Specs::outputs_written
  const std::vector<PassTime>& pass_times() const;  ///< of the compilation, in order; none of what a cache held
  const Provenance& provenance() const;

  /// Explains the compiler's decisions for this kernel (tc/api/explain.h). It repeats the passes up to text, and shows
  /// this kernel's code. Errors: a kernel of a schedule by hand; an engine in production, which compiles nothing; as
  /// Engine::compile().
  Result<Explanation> explain() const;

 private:
  friend class Engine;
  friend CompiledKernel kernel_of(const compile::Settings& settings, const compile::Compilation& compilation);
  friend Result<CompiledKernel> kernel_of(const compile::Settings& settings, const ir::Program& program,
                                          const cache::Entry& entry, const std::string& options, bool measured);
  struct Impl;
  explicit CompiledKernel(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

/// The CUDA context that is current in a thread. A kernel is loaded into the context of its device that is current in
/// the compiling thread, else into the primary context. To compile in another thread, enter() the caller's context
/// there. A context must outlive the engines that have compiled in it, and their kernels.
class GpuContext {
 public:
  /// The calling thread's; none where there is no driver.
  static GpuContext current();
  /// Calls `work` with this context current, and makes the one before it current again. None changes nothing.
  void enter(const std::function<void()>& work) const;

 private:
  void* handle_ = nullptr;
};

class MemoryCache;

/// When a cached kernel's schedule is proved legal again before it is used.
enum class Reprove {
  kOtherCompiler,  ///< if another version of the compiler made it
  kAlways,
  kNever,
};

/// What an engine keeps, and where. See tc/cache for the file.
struct EngineOptions {
  /// The cache's file, created if it does not exist. The engine looks here before it compiles, and adds every kernel
  /// that it compiles. If options are left to the compiler, it takes the fastest that are known for the shape and
  /// device.
  std::string cache{};
  bool read_only = false;  ///< the file is not written, and must exist
  /// Code of recently used kernels that the engine holds, in bytes; a request that comes again gets the same kernel.
  size_t memory_bytes = size_t{256} << 20;
  Reprove reprove = Reprove::kOtherCompiler;
  /// If options are left to the compiler and the file has none for the shape, uses those of the nearest shape, proved
  /// legal for this one.
  bool nearest = false;
  bool keep_text = false;  ///< CUDA text is kept in the file too
  /// The time limit of the proofs that create() makes for each def.
  options::Budget budget{};
  std::stop_token cancel{};  ///< ends those proofs, from any thread: create() then returns an error
  /// Called with problems that do not stop the engine: damaged entries, a file that cannot be written. It runs in the
  /// calling thread during a look-up, and must not call the engine.
  std::function<void(const std::string&)> on_warning{};
};

/// The options of an engine that only runs kernels compiled before.
struct ProductionOptions {
  std::string text{};  ///< the programs, as they were compiled (comments and white space aside); empty: all of the file
  std::string name = "tc";  ///< stands for the text in messages
  size_t memory_bytes = size_t{256} << 20;
  /// Called for a request without a kernel in the file, with the error that says why; returns the kernel to use. Null:
  /// the request fails with that error.
  std::function<Result<CompiledKernel>(const Request&, const Error&)> on_miss{};
  std::function<void(const std::string&)> on_warning{};
};

/// What an engine's requests led to, since it was created.
struct EngineStatistics {
  int64_t memory_hits = 0;
  int64_t file_hits = 0;
  int64_t reproved = 0;  ///< of the file hits
  int64_t compiled = 0;
};

/// A checked TC text. A cheap handle; copies share the text. All members may be called from many threads at once.
class Engine {
 public:
  /// Reads and checks a text of one or more defs. `name` stands for the text in messages, like a file's name. Errors
  /// of the cache: no right to the file, or a file that is no cache.
  static Result<Engine> create(std::string_view text, std::string_view name = "tc", const EngineOptions& options = {});

  /// Opens a cache's file to run its kernels only: compile() neither compiles nor tunes nor proves, and needs no NVRTC.
  /// It takes the best known kernel of a shape for this machine's processor or GPU, from any version of the compiler. A
  /// def that is not in the file is an error when it is requested, or here if the file has no def of the text. Errors:
  /// the file's.
  static Result<Engine> production(const std::string& cache, const ProductionOptions& options = {});

  std::vector<std::string> entries() const;  ///< in the order of the text

  /// Errors here and below: an entry that the text does not have (with the nearest that it has); types that do not
  /// decide an instance of a generic def.
  Result<Signature> signature(std::string_view entry = {}) const;

  /// Extents of all tensors, without compiling. Errors: as compile(), as far as they concern shapes.
  Result<Specs> infer(const Request& request) const;

  /// Compiles for a processor of this machine, or finds what has been compiled. Errors: no GPU, driver or NVRTC, if one
  /// is asked for; a wrong number of tensors; types, ranks or extents that contradict the text or each other; a size or
  /// compiled-in scalar without a value; a precondition of the text that the sizes break (R7); strides that make two
  /// elements of an output share memory; options out of bounds; the budget; cancellation; in production, no kernel for
  /// the request; and, as ErrorKind::kInternal, a fault of ours.
  Result<CompiledKernel> compile(const Request& request) const;

  /// The text of a stage: ast, program, schedule, stmt, object (assembly of this processor); tile, certificate, cuda,
  /// ptx, cubin for a GPU's architecture ("sm_90a"), with no GPU needed. `program` is symbolic unless the request names
  /// sizes, tensors or scalars; the request's backend is ignored. Errors: no such stage (with the nearest) or
  /// architecture; no NVRTC for the last two; as compile().
  Result<std::string> emit(const Request& request, std::string_view stage, std::string_view arch = "sm_90a") const;

  /// Explains the compiler's decisions for a request (tc/api/explain.h), under the options that compile() would take.
  /// For a GPU it compiles for an architecture and needs no GPU. Errors: no such architecture; in production; as
  /// compile().
  Result<Explanation> explain(const Request& request, std::string_view arch = "sm_90a") const;

  /// Returns the text of a def that computes the gradients of a def's float inputs from those of its results. It takes
  /// the parameters and results of the first def that it reads, then d_R for each float result R. It returns d_A for
  /// each float input A. An in-out tensor C is an input old_C too. docs/gradients.md has the conventions. A generic def
  /// gives a generic def, an instance ("softmax<float16>") a def for its types. Errors: an expression that cannot be
  /// derived, at its place.
  Result<std::string> gradient(std::string_view entry = {}) const;

  EngineStatistics statistics() const;

 private:
  struct Impl;
  explicit Engine(std::shared_ptr<const Impl> impl, size_t memory_bytes);
  std::shared_ptr<const Impl> impl_;  ///< which its kernels may hold
  std::shared_ptr<MemoryCache> memory_;
};

/// Engine::create and Engine::compile in one.
Result<CompiledKernel> compile(std::string_view text, const Request& request);

/// The version of the library, "0.1.0".
const char* version();

}  // namespace tc::api
