#include "tc/cuda/pair_text.h"

#include <fmt/format.h>

#include "tc/ir/halide_compat.h"
#include "tc/ir/specialise.h"

namespace tc::cuda {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

constexpr std::string_view kFloat16PairText =
    R"(// Two float16 in a register, as what computes each would have them.
__device__ __forceinline__ uint32 both_of(float16 x) { return pair_of(x, x); }
__device__ __forceinline__ uint32 add_pair(uint32 a, uint32 b) {
  uint32 result;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
__device__ __forceinline__ uint32 sub_pair(uint32 a, uint32 b) {
  uint32 result;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
__device__ __forceinline__ uint32 mul_pair(uint32 a, uint32 b) {
  uint32 result;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
// 1024 + n has the bits of n, of 8 bits, behind those of 1024.
__device__ __forceinline__ uint32 pair_from(const uint8* x) {
  return sub_pair(__byte_perm(x[0] | x[1] << 8, 0x64646464u, 0x4140), 0x64006400u);
}
__device__ __forceinline__ uint32 pair_from(const int8* x) {
  return sub_pair(__byte_perm((uint8(x[0]) | uint8(x[1]) << 8) ^ 0x8080, 0x64646464u, 0x4140), 0x64806480u);
}
)";

/// Of a type, with the name that PTX has for it.
std::string rounded_text(std::string_view type, std::string_view ptx) {
  return fmt::format(R"(// Two float32, rounded, in a register.
__device__ __forceinline__ uint32 {0}_pair(float low, float high) {{
#if __CUDA_ARCH__ >= 800
  uint32 result;
  asm("cvt.rn.{1}x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
#else
  return pair_of(to_{0}(low), to_{0}(high));
#endif
}}
)",
                     type, ptx);
}

/// Texts of pairs over a loop's variable.
class Pairs {
 public:
  Pairs(const std::string& variable, Halide::Type type, ExprText& exprs)
      : variable_(variable), type_(type), exprs_(exprs) {}

  int instructions = 0;  ///< packed ones that it found work for

  std::string of(const Expr& e) {
    if (!hi::expr_uses_var(e, variable_)) return fmt::format("both_of({})", single(e));
    if (const auto* op = e.as<hi::Add>()) return both("add_pair", op->a, op->b);
    if (const auto* op = e.as<hi::Sub>()) return both("sub_pair", op->a, op->b);
    if (const auto* op = e.as<hi::Mul>()) return both("mul_pair", op->a, op->b);
    if (const auto* op = e.as<hi::Cast>()) {
      const auto* read = op->value.as<hi::Call>();
      if (op->value.type().bits() == 8 && op->value.type().is_int_or_uint() && read && is_run(*read)) {
        ++instructions;
        return fmt::format("pair_from(&{})", exprs_.element(read->name, at(read->args, 0)));
      }
    }
    return fmt::format("pair_of({}, {})", single(value_at(e, 0)), single(value_at(e, 1)));
  }

  /// Of two float32 that are rounded to 16 bits; nothing for other values.
  std::optional<std::string> rounded(const Expr& e) {
    const auto* op = e.as<hi::Cast>();
    if (!op || op->value.type() != Halide::Float(32) || !hi::expr_uses_var(e, variable_)) return std::nullopt;
    return fmt::format("{}_pair({}, {})", op->type == Halide::Float(16) ? "float16" : "bfloat16",
                       exprs_.value(value_at(op->value, 0)), exprs_.value(value_at(op->value, 1)));
  }

  /// Subscripts at a value of the variable.
  std::vector<Expr> at(const std::vector<Expr>& all, int value) const {
    std::vector<Expr> result;
    for (const Expr& e : all) result.push_back(hi::simplify(value_at(e, value)));
    return result;
  }
  /// Whether the last subscript counts by ones, and no other one does.
  bool counts(const std::vector<Expr>& subscripts) const {
    for (size_t d = 0; d + 1 < subscripts.size(); ++d) {
      if (hi::expr_uses_var(subscripts[d], variable_)) return false;
    }
    return !subscripts.empty() &&
           hi::is_const_one(hi::simplify(value_at(subscripts.back(), 1) - value_at(subscripts.back(), 0)));
  }

 private:
  Expr value_at(const Expr& e, int value) const { return hi::substitute(variable_, hi::make_const(type_, value), e); }
  std::string both(const char* function, const Expr& a, const Expr& b) {
    ++instructions;
    const std::string first = of(a);
    return fmt::format("{}({}, {})", function, first, of(b));
  }

  /// A single number as it stands in memory.
  std::string single(const Expr& e) const {
    const auto* read = e.as<hi::Call>();
    const bool is_there = read && read->call_type == hi::Call::PureExtern && exprs_.has_tensor(read->name) &&
                          exprs_.tensor(read->name).type == e.type();
    return is_there ? exprs_.loaded(read->name, read->args) : exprs_.value_in_memory(e);
  }

  /// Two neighbours in registers.
  bool is_run(const hi::Call& read) const {
    if (read.call_type != hi::Call::PureExtern || !exprs_.has_tensor(read.name)) return false;
    const tile::Tensor& tensor = exprs_.tensor(read.name);
    return tensor.memory == tile::Memory::kRegister && counts(read.args) && is_unit(tensor);
  }
  static bool is_unit(const tile::Tensor& tensor) {
    const std::vector<int64_t> strides = tile::flatten(tensor.layout[tensor.rank() - 1].stride());
    return strides.size() == 1 && strides[0] == 1;
  }

  const std::string& variable_;
  Halide::Type type_;
  ExprText& exprs_;
};

bool reads(const Expr& e, const std::string& tensor) {
  struct Finder : hi::IRVisitor {
    explicit Finder(const std::string& tensor) : tensor(tensor) {}
    const std::string& tensor;
    bool found = false;
    using hi::IRVisitor::visit;
    void visit(const hi::Call* op) override {
      found = found || op->name == tensor;
      hi::IRVisitor::visit(op);
    }
  } finder(tensor);
  e.accept(&finder);
  return finder.found;
}

/// The one store that a loop's body is, or null.
const tile::Store* only_store(const tile::NodePtr& body) {
  const tile::Store* result = nullptr;
  tile::match(
      *body, [&](const tile::Store& n) { result = &n; },
      [&](const tile::Sequence& n) { result = n.children.size() == 1 ? only_store(n.children[0]) : nullptr; },
      [](const tile::OneOf<tile::For, tile::If, tile::Let, tile::Allocate, tile::Ring> auto&) {},
      [](const tile::Synchronisation auto&) {},
      [](const tile::OneOf<tile::Atomic, tile::Move, tile::Shuffle, tile::MatMul, tile::MatrixLoad, tile::MatrixStore,
                           tile::BoxCopy, tile::BoxStore, tile::ClusterLoad, tile::WarpgroupMatMul> auto&) {});
  return result;
}

}  // namespace

/// Whether two places are those of a register of 32 bits.
static bool is_pair(const Halide::Expr& low, const Halide::Expr& high) {
  const hi::ModulusRemainder place = hi::modulus_remainder(hi::simplify(low));
  return hi::is_const_one(hi::simplify(high - low)) && place.modulus % 2 == 0 && place.remainder % 2 == 0;
}

std::string_view float16_pair_text() { return kFloat16PairText; }

std::string_view rounded_float16_text() {
  static const std::string text = rounded_text("float16", "f16");
  return text;
}

std::string_view rounded_bfloat16_text() {
  static const std::string text = rounded_text("bfloat16", "bf16");
  return text;
}

std::optional<std::string> pair_statement(const tile::For& loop, ExprText& exprs,
                                          const std::set<std::string>& of_pairs) {
  constexpr int64_t kPair = 2;
  const int64_t* begin = ir::constant_int(loop.begin);
  const int64_t* end = ir::constant_int(loop.end);
  if (!loop.unrolled || !begin || !end || *begin != 0 || *end != kPair || !hi::is_const_one(loop.step)) return {};
  const tile::Store* store = only_store(loop.body);
  if (!store || (store->value.type() != Halide::Float(16) && store->value.type() != Halide::BFloat(16))) return {};
  const tile::Tensor& to = exprs.tensor(store->tensor);
  if (to.memory != tile::Memory::kRegister || to.type != store->value.type()) return {};
  Pairs pairs(loop.variable, loop.begin.type(), exprs);
  if (!pairs.counts(store->subscripts) || reads(store->value, store->tensor)) return {};
  const bool is_held = of_pairs.count(store->tensor) > 0;
  // What is stored as it is taken, as a vector, the assembler rounds in pairs. Of single ones it took the conversions
  // for reads of sums that are still added to, and let products wait for each other.
  std::string value;
  if (const std::optional<std::string> rounded = is_held ? std::nullopt : pairs.rounded(store->value)) {
    const bool is_float16 = store->value.type() == Halide::Float(16);
    exprs.need(is_float16 ? Helper::kRoundedFloat16 : Helper::kRoundedBFloat16);
    value = *rounded;
  } else if (store->value.type() == Halide::Float(16)) {
    value = pairs.of(store->value);
    if (pairs.instructions == 0) return {};
    exprs.need(Helper::kFloat16Pair);
  } else {
    return {};
  }
  const std::vector<Halide::Expr> low = pairs.at(store->subscripts, 0), high = pairs.at(store->subscripts, 1);
  if (is_held && is_pair(exprs.offset(to, low), exprs.offset(to, high))) {
    return fmt::format("*(uint32*)&{} = {};", exprs.element(store->tensor, low), value);
  }
  return fmt::format("split({}, {}, {});", value, exprs.element(store->tensor, low),
                     exprs.element(store->tensor, high));
}

}  // namespace tc::cuda
