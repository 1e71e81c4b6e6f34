#include "tc/cuda/kernel_text.h"

#include <fmt/format.h>

#include "tc/cuda/expr_text.h"
#include "tc/cuda/launch_plan.h"
#include "tc/cuda/pair_text.h"
#include "tc/cuda/types.h"
#include "tc/cuda/warp_values.h"
#include "tc/cuda/warpgroup_text.h"
#include "tc/support/check.h"
#include "tc/tile/build.h"
#include "tc/tile/promise.h"

namespace tc::cuda {
namespace {

using Halide::Expr;
using Halide::Type;

int64_t threads_of(const tile::Kernel& kernel) { return kernel.block[0] * kernel.block[1] * kernel.block[2]; }

/// The type that a copy of so many bytes goes through in one instruction.
std::string vector_type(Type element, int elements) {
  if (element.is_float() && element.bits() == 32 && elements > 1) return fmt::format("float{}", elements);
  if (element.is_float() && element.bits() == 64 && elements == 2) return "double2";
  switch (element.bytes() * elements) {
    case 1:
      return "uint8";
    case 2:
      return "uint16";
    case 4:
      return "uint32";
    case 8:
      return "uint2";
    case 16:
      return "uint4";
    default:
      TC_CHECK(false, "no vector of {} elements of {} bytes", elements, element.bytes());
      return "";
  }
}

class KernelPrinter {
 public:
  explicit KernelPrinter(const tile::Kernel& kernel) : kernel_(kernel), exprs_(kernel), warp_(kernel) {}

  KernelText print() {
    depth_ = 1;
    collect();
    scopes_.push_back({});
    for (const tile::RingBarriers& place : kernel_.rings()) rings_[place.ring->name] = place.ring;
    write(kernel_.body, true);
    const std::string body = std::exchange(text_, "");
    depth_ = 0;
    signature();
    depth_ = 1;
    places();
    shared();
    passed_on();
    text_ += body + "}\n";
    return {std::move(text_), exprs_.helpers(), std::move(products_)};
  }

 private:
  void line(const std::string& text) { text_ += std::string(2 * depth_, ' ') + text + "\n"; }

  void need_type(Type type) {
    if (is_half(type)) exprs_.need(type.is_bfloat() ? Helper::kBFloat16 : Helper::kFloat16);
  }

  /// What must be known before the body: register tensors of which vectors or pairs are taken, and the helpers of
  /// types.
  void collect() {
    for (const tile::Tensor& tensor : kernel_.tensors) need_type(tensor.type);
    for (const tile::Scalar& scalar : kernel_.scalars) need_type(scalar.type);
    if (!kernel_.maps.empty()) exprs_.need(Helper::kTensorMap);
    tile::for_each_node(kernel_.body, [&](const tile::Node& node) {
      tile::match(
          node,
          [&](const tile::Allocate& n) {
            need_type(n.tensor.type);
            exprs_.declare(n.tensor);
          },
          [&](const tile::Move& n) {
            if (n.elements > 1) aligned_.insert({n.destination, n.source});
          },
          [&](const tile::ClusterLoad& n) {
            if (n.elements > 1) aligned_.insert({n.destination, n.source});
          },
          [&](const tile::Shuffle&) { shuffles_ = true; },
          [&](const tile::Barrier& n) { shuffles_ |= n.scope == tile::Barrier::Scope::kWarp; },
          [](const tile::OneOf<tile::Sequence, tile::For, tile::If, tile::Let, tile::Store, tile::Atomic> auto&) {},
          [&](const tile::WarpgroupMatMul& n) {
            if (n.held) held_.insert(n.held->tensor);
          },
          [](const tile::OneOf<tile::MatMul, tile::MatrixLoad, tile::MatrixStore, tile::BoxCopy,
                               tile::BoxStore> auto&) {},
          [](const tile::OneOf<tile::Ring, tile::RingStep, tile::MatMulWait, tile::BoxStep, tile::ClusterStep> auto&) {
          },
          [](const tile::OneOf<tile::CommitGroup, tile::WaitGroup, tile::WaitForKernels, tile::StartNextKernel> auto&) {
          });
    });
  }

  /// " __cluster_dims__(2, 1, 1)".
  std::string cluster() const {
    const std::array<int64_t, 3>& blocks = kernel_.cluster;
    if (blocks == std::array<int64_t, 3>{1, 1, 1}) return "";
    return fmt::format(" __cluster_dims__({}, {}, {})", blocks[0], blocks[1], blocks[2]);
  }

  void signature() {
    line("");
    line(fmt::format("// grid ({}, {}, {}), block ({}, {}, {}), {} bytes of shared memory", kernel_.grid[0],
                     kernel_.grid[1], kernel_.grid[2], kernel_.block[0], kernel_.block[1], kernel_.block[2],
                     kernel_.shared_bytes()));
    // The assembler has to know how many registers a thread begins with.
    int64_t resident = kernel_.resident_blocks;
    tile::for_each_node(kernel_.body, [&](const tile::Node& node) {
      const tile::Ring* ring = tile::ring_of(node);
      if (ring && ring->registers) resident = 1;
    });
    const std::string head =
        fmt::format("extern \"C\" __global__ void{} __launch_bounds__({}{}) {}(", cluster(), threads_of(kernel_),
                    resident > 0 ? fmt::format(", {}", resident) : "", symbol_of(kernel_));
    std::vector<std::string> parameters;
    for (const tile::Tensor& tensor : kernel_.tensors) {
      parameters.push_back(fmt::format("{}{}*{} {}", tensor.written ? "" : "const ", memory_type(tensor.type),
                                       tensor.restricted ? " __restrict__" : "", exprs_.names().tensor(tensor.name)));
    }
    for (const tile::Scalar& scalar : kernel_.scalars) {
      parameters.push_back(memory_type(scalar.type) + " " + exprs_.names().variable(scalar.name));
    }
    for (const tile::TensorMap& map : kernel_.maps) {
      parameters.push_back("const __grid_constant__ TensorMap " + exprs_.names().map(map.name));
    }
    line(head);
    for (size_t i = 0; i < parameters.size(); ++i) {
      line("    " + parameters[i] + (i + 1 < parameters.size() ? "," : ""));
    }
    line(") {");
  }

  void places() {
    for (int d = 0; d < 3; ++d) {
      place(tile::kBlock[d], "blockIdx", "xyz"[d]);
      place(tile::kThread[d], "threadIdx", "xyz"[d]);
    }
    if (!shuffles_) return;
    const int64_t threads = threads_of(kernel_);
    if (threads % 32 == 0) {
      line("const uint32 warp_lanes = 0xffffffffu;");
      return;
    }
    // The last warp is not full.
    line(fmt::format("const int warp_first = int(threadIdx.x + {} * threadIdx.y + {} * threadIdx.z) / 32 * 32;",
                     kernel_.block[0], kernel_.block[0] * kernel_.block[1]));
    line(fmt::format("const uint32 warp_lanes = warp_first + 32 <= {} ? 0xffffffffu : {}u;", threads,
                     (uint32_t{1} << (threads % 32)) - 1));
  }

  void place(const char* name, const char* builtin, char dimension) {
    if (exprs_.places().count(name)) line(fmt::format("const int {} = int({}.{});", name, builtin, dimension));
  }

  void shared() {
    const bool dynamic = has_dynamic_memory(kernel_);
    const std::vector<tile::SharedTensor> tensors = kernel_.shared_tensors();
    const bool swizzled = std::any_of(tensors.begin(), tensors.end(),
                                      [](const auto& place) { return place.tensor->swizzle.has_value(); });
    if (dynamic) {
      line(fmt::format("extern __shared__ __align__({}) unsigned char shared_memory[];",
                       swizzled ? tile::kSwizzledAlignment : 128));
    }
    for (const tile::SharedTensor& place : tensors) {
      const std::string type = memory_type(place.tensor->type);
      const std::string& name = exprs_.names().tensor(place.tensor->name);
      line(dynamic ? fmt::format("{0}* const {1} = ({0}*)(shared_memory + {2});", type, name, place.byte_offset)
                   : fmt::format("__shared__ __align__({}) {} {}[{}];", tile::shared_alignment(*place.tensor), type,
                                 name, place.tensor->elements()));
    }
    for (const tile::RingBarriers& place : kernel_.rings()) {
      const std::string& name = exprs_.names().variable(place.ring->name);
      line(dynamic ? fmt::format("uint64* const {} = (uint64*)(shared_memory + {});", name, place.byte_offset)
                   : fmt::format("__shared__ uint64 {}[{}];", name, 2 * place.ring->stages));
    }
  }

  /// `tail`: nothing follows in the braces around.
  void write(const tile::NodePtr& node, bool tail) {
    if (!node) return;
    if (!node->comment.empty()) comment(node->comment);
    tile::match(*node, [&](const auto& n) -> decltype(write(n, true)) { write(n, tail); });
  }

  void comment(const std::string& text) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      std::string part = text.substr(begin, end - begin);
      while (!part.empty() && part.back() == '\\') part.pop_back();
      line("// " + part);
      begin = end + 1;
    }
  }

  void block(const tile::NodePtr& body) {
    ++depth_;
    scopes_.push_back({});
    write(body, true);
    scopes_.pop_back();
    --depth_;
  }

  void write(const tile::Sequence& sequence, bool tail) {
    for (size_t i = 0; i < sequence.children.size(); ++i) {
      write(sequence.children[i], tail && i + 1 == sequence.children.size());
    }
  }

  void write(const tile::For& loop, bool) {
    if (const std::optional<std::string> pair = pair_statement(loop, exprs_, held_)) return line(*pair);
    const std::string& name = exprs_.names().variable(loop.variable);
    const Type type = loop.begin.type().bits() > loop.end.type().bits() ? loop.begin.type() : loop.end.type();
    const std::string begin = exprs_.index(loop.begin);
    const std::string end = exprs_.index(loop.end);
    const bool unit = Halide::Internal::is_const_one(loop.step);
    const std::string step = unit ? "++" + name : fmt::format("{} += {}", name, exprs_.index(loop.step));
    const std::optional<Bounds> first = bounds_of(loop.begin, exprs_.bounds());
    const std::optional<Bounds> last = bounds_of(loop.end, exprs_.bounds());
    std::optional<Bounds> values;
    if (first && last) values = Bounds{first->least, std::max(first->least, last->greatest - 1)};
    exprs_.declare(loop.variable, type, values);
    if (loop.unrolled) line("#pragma unroll");
    if (loop.rolled) line("#pragma unroll 1");
    line(fmt::format("for ({} {} = {}; {} < {}; {}) {{", value_type(type), name, begin, name, end, step));
    warp_.enter(loop);
    block(loop.body);
    line("}");
  }

  void write(const tile::If& branch, bool) {
    if (branch.predicated)
      return write_copy(*tile::asynchronous_copy(*branch.then_case), exprs_.index(branch.condition));
    const std::optional<tile::RegisterShares> shares = std::exchange(shares_, std::nullopt);
    const int around = warp_.branches();
    line(fmt::format("if ({}) {{", exprs_.index(branch.condition)));
    warp_.enter_branch(branch.condition);
    if (shares) change_registers("take", shares->of_readers);
    block(branch.then_case);
    const tile::If* last = &branch;
    while (const tile::If* next = shares ? nullptr : tile::next_test(*last)) {
      line(fmt::format("}} else if ({}) {{", exprs_.index(next->condition)));
      warp_.enter_branch(next->condition);
      block(next->then_case);
      last = next;
    }
    if (last->else_case) {
      line("} else {");
      if (shares) change_registers("give", shares->of_others);
      block(last->else_case);
    }
    warp_.leave_branches(around);
    line("}");
  }

  void change_registers(const char* how, int count) {
    exprs_.need(Helper::kRegisters);
    ++depth_;
    line(fmt::format("{}_registers<{}>();", how, count));
    --depth_;
  }

  void write(const tile::Let& let, bool tail) {
    const std::string& name = exprs_.names().variable(let.name);
    std::string text = exprs_.index(let.value);
    warp_.define(let);
    if (warp_.is_to_be_said(let.value)) {
      exprs_.need(Helper::kSameInWarp);
      text = fmt::format("same_in_warp({})", text);
    }
    // A name is declared once within a pair of braces, and what follows must not see it.
    const bool braces = !tail || scopes_.back().count(name) || (scopes_.size() == 1 && is_parameter(let.name));
    if (braces) {
      line("{");
      ++depth_;
      scopes_.push_back({});
    }
    scopes_.back().insert(name);
    exprs_.declare(let.name, let.value.type(), bounds_of(let.value, exprs_.bounds()));
    line(fmt::format("const {} {} = {};", value_type(let.value.type()), name, text));
    write(let.body, true);
    if (!braces) return;
    scopes_.pop_back();
    --depth_;
    line("}");
  }

  bool is_parameter(const std::string& variable) const {
    return std::any_of(kernel_.scalars.begin(), kernel_.scalars.end(),
                       [&](const tile::Scalar& scalar) { return scalar.name == variable; });
  }

  void write(const tile::Allocate& allocate, bool tail) {
    const tile::Tensor& tensor = allocate.tensor;
    if (tensor.memory == tile::Memory::kRegister) {
      const char* align = aligned_.count(tensor.name) + held_.count(tensor.name) > 0 ? "__align__(16) " : "";
      line(fmt::format("{}{} {}[{}];", align, memory_type(tensor.type), exprs_.names().tensor(tensor.name),
                       tensor.elements()));
    }
    write(allocate.body, tail);
  }

  void write(const tile::Barrier& barrier, bool) {
    if (barrier.scope == tile::Barrier::Scope::kWarpgroup) exprs_.need(Helper::kGroupBarrier);
    line(barrier.scope == tile::Barrier::Scope::kBlock  ? "__syncthreads();"
         : barrier.scope == tile::Barrier::Scope::kWarp ? "__syncwarp(warp_lanes);"
                                                        : "sync_warpgroup();");
  }

  void write(const tile::WaitForKernels&, bool) {
    exprs_.need(Helper::kOverlap);
    line("wait_for_kernels_before();");
    // Loads of others are promised not to depend on kernels before.
    for (const std::string& tensor : tile::plain_loads(kernel_).coherent) take_back_promises(tensor);
  }

  void take_back_promises(const std::string& tensor) {
    exprs_.need(Helper::kUnpromised);
    const std::string& name = exprs_.names().tensor(tensor);
    line(fmt::format("{} = unpromised({});", name, name));
  }

  /// Through tensors that are not restricted threads may pass values on over a barrier.
  void passed_on() {
    std::set<std::string> touched;
    bool has_barrier = false;
    tile::for_each_node(kernel_.body, [&](const tile::Node& node) {
      has_barrier |= tile::is_barrier(node);
      if (tile::box_of(node) || tile::box_store_of(node)) return;
      tile::for_each_access(node, [&](const tile::NodeAccess& access) { touched.insert(access.tensor); });
    });
    for (const tile::Tensor& tensor : kernel_.tensors) {
      if (has_barrier && tensor.written && !tensor.restricted && touched.count(tensor.name) > 0)
        take_back_promises(tensor.name);
    }
  }

  void write(const tile::StartNextKernel&, bool) {
    exprs_.need(Helper::kOverlap);
    line("let_next_kernel_start();");
  }

  void write(const tile::Store& store, bool) {
    const tile::Tensor& tensor = exprs_.tensor(store.tensor);
    const std::string element = exprs_.element(store.tensor, store.subscripts);
    const auto* sum = store.value.as<Halide::Internal::Add>();
    if (sum && tensor.type.is_float() && !is_half(tensor.type) && reads_itself(store, sum->a)) {
      line(fmt::format("{} += {};", element, exprs_.value(sum->b)));
      return;
    }
    line(fmt::format("{} = {};", element, stored(tensor, store.value)));
  }

  std::string stored(const tile::Tensor& tensor, const Expr& value) {
    return value.type() == tensor.type ? exprs_.value_in_memory(value)
                                       : exprs_.to_memory(tensor.type, exprs_.value(value));
  }

  static bool reads_itself(const tile::Store& store, const Expr& e) {
    const auto* call = e.as<Halide::Internal::Call>();
    if (!call || call->name != store.tensor || call->args.size() != store.subscripts.size()) return false;
    for (size_t i = 0; i < call->args.size(); ++i) {
      if (!Halide::Internal::equal(call->args[i], store.subscripts[i])) return false;
    }
    return true;
  }

  void need_atomics(Type type) {
    if (is_half(type)) {
      exprs_.need(type.is_bfloat() ? Helper::kAtomicBFloat16 : Helper::kAtomicFloat16);
    } else if (type.is_float()) {
      exprs_.need(Helper::kAtomicFloat);
    } else {
      exprs_.need(type.bits() < 32 ? Helper::kAtomicNarrow : Helper::kAtomicInteger);
    }
  }

  static const char* name_of(tile::Atomic::Op op) {
    return op == tile::Atomic::Op::kAdd ? "add" : op == tile::Atomic::Op::kMin ? "min" : "max";
  }

  void write(const tile::Atomic& atomic, bool) {
    const tile::Tensor& tensor = exprs_.tensor(atomic.tensor);
    TC_CHECK(tensor.memory != tile::Memory::kRegister, "an atomic update of the register tensor '{}'", tensor.name);
    need_atomics(tensor.type);
    const std::string value = exprs_.value(atomic.value);
    line(fmt::format("atomic_{}(&{}, {});", name_of(atomic.op), exprs_.element(atomic.tensor, atomic.subscripts),
                     tensor.type.is_bool() ? "uint8(" + value + ")" : value));
  }

  /// Floats are added by vectors, which take the L2 cache the time of one; others one after the other.
  void write_updates(const tile::Move& move) {
    const tile::Tensor& tensor = exprs_.tensor(move.destination);
    const Type type = tensor.type;
    const bool vectors = tensor.memory == tile::Memory::kGlobal && type == Halide::Float(32) &&
                         *move.update == tile::Atomic::Op::kAdd && move.elements > 1 &&
                         !exprs_.tensor(move.source).read_only;  // loads of that say so, each
    if (vectors) {
      exprs_.need(Helper::kAtomicVector);
      line(fmt::format("atomic_add_vector<{}>(&{}, &{});", move.elements,
                       exprs_.element(move.destination, move.destination_subscripts),
                       exprs_.element(move.source, move.source_subscripts)));
      return;
    }
    for (const tile::Atomic& each : tile::updates_of(move, type)) write(each, false);
  }

  /// An asynchronous copy; `condition`: it is done only then.
  void write_copy(const tile::Move& move, const std::string& condition) {
    const int64_t bytes = tile::element_bytes(exprs_.tensor(move.destination).type) * move.elements;
    const std::string target = exprs_.element(move.destination, move.destination_subscripts);
    const std::string source = exprs_.element(move.source, move.source_subscripts);
    if (move.guard.defined()) {
      exprs_.need(Helper::kCopyAsyncOrZero);
      line(fmt::format("copy_async_or_zero<{}>({}, {}, &{}, &{});", bytes, condition.empty() ? "true" : condition,
                       exprs_.index(move.guard), target, source));
      return;
    }
    exprs_.need(condition.empty() ? Helper::kCopyAsync : Helper::kCopyAsyncIf);
    line(condition.empty() ? fmt::format("copy_async<{}>(&{}, &{});", bytes, target, source)
                           : fmt::format("copy_async_if<{}>({}, &{}, &{});", bytes, condition, target, source));
  }

  void write(const tile::Move& move, bool) {
    if (move.update) return write_updates(move);
    const tile::Tensor& to = exprs_.tensor(move.destination);
    const tile::Tensor& from = exprs_.tensor(move.source);
    TC_CHECK(to.type == from.type, "a copy from '{}' to '{}', whose types differ", from.name, to.name);
    if (move.asynchronous) return write_copy(move, "");
    const std::string target = exprs_.element(move.destination, move.destination_subscripts);
    const std::string source = exprs_.element(move.source, move.source_subscripts);
    if (move.elements == 1) {
      line(fmt::format("{} = {};", target, exprs_.loaded(move.source, move.source_subscripts)));
    } else {
      const std::string type = vector_type(to.type, move.elements);
      const std::string read = from.read_only ? fmt::format("__ldg((const {}*)&{})", type, source)
                                              : fmt::format("*(const {}*)&{}", type, source);
      line(fmt::format("*({}*)&{} = {};", type, target, read));
    }
  }

  void write(const tile::CommitGroup&, bool) {
    exprs_.need(Helper::kCopyAsync);
    line("commit_copies();");
  }

  void write(const tile::WaitGroup& wait, bool) {
    exprs_.need(Helper::kCopyAsync);
    line(fmt::format("wait_copies<{}>();", wait.pending));
  }

  void write(const tile::Shuffle& shuffle, bool) {
    const tile::Tensor& tensor = exprs_.tensor(shuffle.tensor);
    const char* kind = shuffle.kind == tile::Shuffle::Kind::kXor    ? "_xor"
                       : shuffle.kind == tile::Shuffle::Kind::kDown ? "_down"
                                                                    : "";
    std::string value = exprs_.value(shuffle.value);
    const Type type = shuffle.value.type();
    if (type.is_bool()) value = "int(" + value + ")";
    std::string text =
        fmt::format("__shfl{}_sync(warp_lanes, {}, {}, {})", kind, value, exprs_.index(shuffle.lane), shuffle.width);
    if (type.is_bool()) text += " != 0";
    line(fmt::format("{} = {};", exprs_.element(shuffle.tensor, shuffle.subscripts),
                     is_float8(tensor.type) ? text : exprs_.to_memory(tensor.type, text)));
  }

  /// ", sum[0], sum[1], ...".
  std::string fragment(const tile::Fragment& fragment) {
    std::string text;
    for (const auto& subscripts : fragment.values) text += ", " + exprs_.element(fragment.tensor, subscripts);
    return text;
  }

  void write(const tile::MatMul& matmul, bool) {
    const tile::MatMulAtom& atom = *matmul.atom;
    exprs_.need(atom.operand == ScalarType::kFloat32    ? Helper::kMatMulTf32
                : atom.operand == ScalarType::kBFloat16 ? Helper::kMatMulBFloat16
                                                        : Helper::kMatMulFloat16);
    const std::string operands = fragment(matmul.d) + fragment(matmul.a) + fragment(matmul.b);
    line(fmt::format("mma_m{}n{}k{}({});", atom.m, atom.n, atom.k, operands.substr(2)));
  }

  void write(const tile::MatrixLoad& load, bool) {
    exprs_.need(Helper::kMatrixLoad);
    line(fmt::format("load_matrices<{}>(&{}{});", load.transposed, exprs_.element(load.source, load.source_subscripts),
                     fragment(load.destination)));
  }

  void write(const tile::MatrixStore& store, bool) {
    exprs_.need(Helper::kMatrixStore);
    line(fmt::format("store_matrices<{}>(&{}{});", store.transposed,
                     exprs_.element(store.destination, store.destination_subscripts), fragment(store.source)));
  }

  void write(const tile::Ring& ring, bool tail) {
    exprs_.need(Helper::kRing);
    if (!std::exchange(fetches_maps_, true)) {
      for (const tile::TensorMap& map : kernel_.maps)
        line(fmt::format("prefetch_map({});", exprs_.names().map(map.name)));
    }
    if (ring.teams > 1) {
      exprs_.need(Helper::kHandOver);
      line(fmt::format("make_hand_overs<{}, {}>({}, {});", ring.stages, ring.teams, exprs_.names().variable(ring.name),
                       ring.readers));
    }
    line(fmt::format("make_ring<{}>({}, {});", ring.stages, exprs_.names().variable(ring.name),
                     ring.readers * ring.sharers()));
    if (!ring.groups.empty()) {
      exprs_.need(Helper::kSharedRing);
      line("wait_for_rings();");
    }
    shares_ = ring.registers;
    write(ring.body, tail);
  }

  /// A bit for each block of a group: "0x5 << block_x % 2".
  std::string blocks_of(const tile::BlockGroup& group) {
    namespace build = tile::build;
    Expr number = 0;
    int scale = 1;
    for (size_t i = 0; i < 3; ++i) {
      const auto extent = static_cast<int>(kernel_.cluster[i]);
      if (extent > 1) number = number + build::var(tile::kBlock[i]) % extent * scale;
      scale *= extent;
    }
    const int above = group.stride * group.count;
    // Along x alone a stride divides the extent, so that the number is the block's.
    const Expr below = kernel_.cluster[0] == kernel_.cluster_blocks() ? build::block_x() : number;
    const Expr first = Halide::Internal::simplify(below % group.stride + number / above * above);
    uint32_t bits = 0;
    for (int i = 0; i < group.count; ++i) bits |= uint32_t{1} << i * group.stride;
    const std::string text = fmt::format("{:#x}", bits);
    return Halide::Internal::is_const_zero(first) ? text : text + " << " + exprs_.index(first);
  }

  void release(const tile::RingStep& step, const std::vector<tile::BlockGroup>& groups) {
    exprs_.need(Helper::kSharedRing);
    std::string blocks;
    for (const tile::BlockGroup& group : groups) blocks += (blocks.empty() ? "" : " | ") + blocks_of(group);
    line(fmt::format("release_in<{}>({}, {}, {});", rings_.at(step.ring)->stages, blocks,
                     exprs_.names().variable(step.ring), exprs_.index(step.turn)));
  }

  void write(const tile::RingStep& step, bool) {
    const std::vector<tile::BlockGroup>& groups = rings_.at(step.ring)->groups;
    if (step.kind == tile::RingStep::Kind::kRelease && !groups.empty()) return release(step, groups);
    const auto name = [&] {
      switch (step.kind) {
        case tile::RingStep::Kind::kAcquire:
          return "acquire";
        case tile::RingStep::Kind::kCommit:
          return "commit";
        case tile::RingStep::Kind::kDrain:
          exprs_.need(Helper::kSharedRing);
          return "drain";
        case tile::RingStep::Kind::kAwait:
          return "await";
        case tile::RingStep::Kind::kRelease:
          return "release";
        case tile::RingStep::Kind::kPass:
          return "pass";
        case tile::RingStep::Kind::kTake:
          return "take";
      }
      return "";
    };
    const std::string bytes = step.kind == tile::RingStep::Kind::kCommit ? fmt::format(", {}", step.bytes) : "";
    const tile::Ring& ring = *rings_.at(step.ring);
    const std::string teams = tile::hands_over(step.kind) ? fmt::format(", {}", ring.teams) : "";
    line(fmt::format("{}<{}{}>({}, {}{});", name(), ring.stages, teams, exprs_.names().variable(step.ring),
                     exprs_.index(step.turn), bytes));
  }

  void write(const tile::BoxCopy& copy, bool) {
    const bool is_shared = copy.group.count > 1;
    exprs_.need(is_shared ? Helper::kSharedBoxCopy : Helper::kBoxCopy);
    const int stages = rings_.at(copy.ring)->stages;
    std::string coordinates;
    for (const Expr& e : copy.coordinates) coordinates += ", " + exprs_.index(e);
    line(fmt::format("{}&{}, {}, &{}[{}]{});", is_shared ? "copy_box_to(" + blocks_of(copy.group) + ", " : "copy_box(",
                     exprs_.first_of_tile(copy.destination, copy.destination_subscripts), exprs_.names().map(copy.map),
                     exprs_.names().variable(copy.ring), exprs_.index(Halide::Internal::simplify(copy.turn % stages)),
                     coordinates));
  }

  void write(const tile::BoxStore& store, bool) {
    exprs_.need(Helper::kBoxStore);
    std::string coordinates;
    for (const Expr& e : store.coordinates) coordinates += ", " + exprs_.index(e);
    line(fmt::format("store_box({}, &{}{});", exprs_.names().map(store.map),
                     exprs_.first_of_tile(store.source, store.source_subscripts), coordinates));
  }

  void write(const tile::ClusterLoad& load, bool) {
    exprs_.need(Helper::kClusterLoad);
    const int64_t bytes = load.elements * tile::element_bytes(exprs_.tensor(load.source).type);
    const char* type = bytes == 4 ? "uint32" : bytes == 8 ? "uint2" : "uint4";
    line(fmt::format("*({0}*)&{1} = load_of_block({2}, (const {0}*)&{3});", type,
                     exprs_.element(load.destination, load.destination_subscripts), exprs_.index(load.block),
                     exprs_.element(load.source, load.source_subscripts)));
  }

  void write(const tile::ClusterStep& step, bool) {
    exprs_.need(Helper::kClusterStep);
    line(step.kind == tile::ClusterStep::Kind::kArrive ? "arrive_in_cluster();" : "wait_for_cluster();");
  }

  void write(const tile::BoxStep& step, bool) {
    exprs_.need(Helper::kBoxStore);
    switch (step.kind) {
      case tile::BoxStep::Kind::kFence:
        return line("fence_boxes();");
      case tile::BoxStep::Kind::kCommit:
        return line("commit_boxes();");
      case tile::BoxStep::Kind::kWaitRead:
        return line(fmt::format("wait_boxes_read<{}>();", step.pending));
      case tile::BoxStep::Kind::kWait:
        return line(fmt::format("wait_boxes<{}>();", step.pending));
    }
  }

  void write(const tile::WarpgroupMatMul& n, bool) {
    const int64_t k = int64_t{n.atom.k()} * n.slices;
    std::optional<tile::MatrixDescriptor> a;
    if (!n.held) a = tile::descriptor_of(exprs_.tensor(n.a.tensor), n.a, tile::WarpgroupAtom::kM, k);
    const auto b = tile::descriptor_of(exprs_.tensor(n.b.tensor), n.b, n.atom.n, k);
    TC_CHECK((a || n.held) && b, "no descriptor says how '{}' or '{}' lies", n.a.tensor, n.b.tensor);
    const WarpgroupProduct product = {n.atom, n.slices, a, *b, n.starts};
    exprs_.need(Helper::kProducts);
    products_[function_of(product)] = text_of(product);
    const std::string& d = exprs_.names().tensor(n.d);
    const int values = n.atom.values();
    const char* const sum = is_integer(n.atom.a) ? "int" : "float";
    const bool is_part = exprs_.tensor(n.d).elements() > values;
    line(fmt::format(
        "{}({}, &{}, &{});", function_of(product),
        is_part ? fmt::format("*({}(*)[{}])&{}[{}]", sum, values, d, n.d_first) : d,
        n.held ? exprs_.element(n.held->tensor, n.held->subscripts) : exprs_.first_of_tile(n.a.tensor, n.a.subscripts),
        exprs_.first_of_tile(n.b.tensor, n.b.subscripts)));
  }

  void write(const tile::MatMulWait& wait, bool) {
    exprs_.need(Helper::kProducts);
    line(fmt::format("wait_products<{}>();", wait.pending));
    for (const std::string& name : wait.sums) {
      const Type type = exprs_.tensor(name).type;
      const bool is_held = type.bits() == 16;
      const bool is_renewed = is_held && wait.pending == 0;
      if (is_held) exprs_.need(is_renewed ? Helper::kRenewed : Helper::kHeld);
      const bool is_integer = type == Halide::Int(32);
      if (is_integer) exprs_.need(Helper::kIntegerSums);
      if (is_held || is_integer || type == Halide::Float(32)) {
        const char* function = is_renewed   ? "renew_held"
                               : is_held    ? "receive_held"
                               : is_integer ? "receive_integers"
                                            : "receive";
        line(fmt::format("{}({});", function, exprs_.names().tensor(name)));
      }
    }
  }

  const tile::Kernel& kernel_;
  ExprText exprs_;
  WarpValues warp_;
  std::map<std::string, const tile::Ring*> rings_;
  std::map<std::string, std::string> products_;  ///< functions by name
  bool fetches_maps_ = false;                    ///< has told the hardware of its tensor maps
  std::optional<tile::RegisterShares> shares_;   ///< that the next branches begin with
  std::string text_;
  int depth_ = 0;
  std::vector<std::set<std::string>> scopes_;  ///< variables declared by lets, per open brace
  std::set<std::string> aligned_;
  std::set<std::string> held_;  ///< operands of warpgroups, which are read by registers
  bool shuffles_ = false;
};

}  // namespace

KernelText kernel_text(const tile::Kernel& kernel) { return KernelPrinter(kernel).print(); }

bool has_dynamic_memory(const tile::Kernel& kernel) {
  return kernel.shared_bytes() > kStaticSharedLimit || kernel.has_shared_places();
}

}  // namespace tc::cuda
