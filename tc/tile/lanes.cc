#include "tc/tile/lanes.h"

#include <Halide.h>

#include <cmath>

#include "tc/interp/functions.h"
#include "tc/interp/scalar.h"
#include "tc/support/check.h"
#include "tc/support/float8.h"

namespace tc::tile {
namespace {

template <typename T>
std::array<T, kLanes>& values(Lanes& lanes) {
  if constexpr (std::is_same_v<T, float>) return lanes.f;
  if constexpr (std::is_same_v<T, double>) return lanes.d;
  if constexpr (std::is_same_v<T, int64_t>) return lanes.i;
}

template <typename To, typename From, typename F>
void map(const Instruction& n, Lanes* r, F f) {
  auto& to = values<To>(r[n.dst]);
  const auto& a = values<From>(r[n.a]);
  for (int l = 0; l < kLanes; ++l) to[l] = f(a[l]);
}

template <typename To, typename From, typename F>
void zip(const Instruction& n, Lanes* r, F f) {
  auto& to = values<To>(r[n.dst]);
  const auto& a = values<From>(r[n.a]);
  const auto& b = values<From>(r[n.b]);
  for (int l = 0; l < kLanes; ++l) to[l] = f(a[l], b[l]);
}

template <typename F>
void integers(const Instruction& n, Lanes* r, F f) {
  zip<int64_t, int64_t>(n, r, f);
}

template <typename F>
void floats(const Instruction& n, Lanes* r, F f) {
  if (n.type == ScalarType::kFloat64) {
    zip<double, double>(n, r, f);
  } else {
    zip<float, float>(n, r, f);
  }
}

template <typename F>
void compare_floats(const Instruction& n, Lanes* r, F f) {
  if (n.type == ScalarType::kFloat64) {
    zip<int64_t, double>(n, r, f);
  } else {
    zip<int64_t, float>(n, r, f);
  }
}

int64_t wrapping(uint64_t value) { return static_cast<int64_t>(value); }

double real_at(const Lanes& lanes, ScalarType type, int l) {
  return representation_of(type) == Representation::kDouble ? lanes.d[l] : static_cast<double>(lanes.f[l]);
}

void set_real(Lanes& lanes, ScalarType type, int l, double value) {
  if (type == ScalarType::kFloat64) {
    lanes.d[l] = value;
  } else if (type == ScalarType::kFloat32) {
    lanes.f[l] = static_cast<float>(value);
  } else {
    lanes.f[l] = static_cast<float>(interp::round_to(type, value));
  }
}

void convert(const Instruction& n, Lanes* r) {
  Lanes& to = r[n.dst];
  const Lanes& a = r[n.a];
  const bool from_integer = !is_float(n.from);
  const bool to_integer = !is_float(n.type);
  for (int l = 0; l < kLanes; ++l) {
    if (is_float8(n.from)) {
      const double value = float8_from_bits(n.from, static_cast<uint8_t>(a.i[l]));
      TC_CHECK(n.type == ScalarType::kFloat32, "an 8-bit float becomes {}", name_of(n.type));
      set_real(to, n.type, l, value);
    } else if (is_float8(n.type)) {
      TC_CHECK(!from_integer, "{} becomes an 8-bit float", name_of(n.from));
      to.i[l] = float8_bits(n.type, interp::round_to(n.type, real_at(a, n.from, l)));
    } else if (from_integer) {
      set_real(to, n.type, l, interp::integer_to_float(n.from, n.type, a.i[l]));
    } else if (to_integer) {
      to.i[l] = interp::float_to_integer(n.type, real_at(a, n.from, l));
    } else {
      set_real(to, n.type, l, real_at(a, n.from, l));
    }
  }
}

void select(const Instruction& n, Lanes* r) {
  const auto& condition = r[n.a].i;
  const auto choose = [&]<typename T>(T) {
    auto& to = values<T>(r[n.dst]);
    const auto& b = values<T>(r[n.b]);
    const auto& c = values<T>(r[n.c]);
    for (int l = 0; l < kLanes; ++l) to[l] = condition[l] ? b[l] : c[l];
  };
  switch (representation_of(n.type)) {
    case Representation::kInteger:
      return choose(int64_t{});
    case Representation::kFloat:
      return choose(float{});
    case Representation::kDouble:
      return choose(double{});
  }
}

void real_function(const Instruction& n, Lanes* r) {
  const auto& f = *static_cast<const interp::RealFunction*>(n.function);
  const std::array<int, 4> operands = {n.a, n.b, n.c, n.d};
  const bool fused = std::string_view(f.name) == "fma" && n.type == ScalarType::kFloat32;
  for (int l = 0; l < kLanes; ++l) {
    if (fused) {  // rounded once
      r[n.dst].f[l] = std::fma(r[n.a].f[l], r[n.b].f[l], r[n.c].f[l]);
      continue;
    }
    std::array<double, 4> arguments{};
    for (int i = 0; i < f.arity; ++i) arguments[i] = real_at(r[operands[i]], n.type, l);
    set_real(r[n.dst], n.type, l, f.compute(n.type, arguments.data()));
  }
}

void other_function(const Instruction& n, Lanes* r) {
  for (int l = 0; l < kLanes; ++l) {
    if (n.op == Op::kRealPredicate) {
      const auto& f = *static_cast<const interp::RealPredicate*>(n.function);
      r[n.dst].i[l] = f.compute(real_at(r[n.a], n.from, l));
    } else if (n.op == Op::kMixedFunction) {
      const auto& f = *static_cast<const interp::MixedFunction*>(n.function);
      set_real(r[n.dst], n.type, l, f.compute(real_at(r[n.a], n.type, l), r[n.b].i[l]));
    } else {
      const auto& f = *static_cast<const interp::IntegerFunction*>(n.function);
      const std::array<int64_t, 2> arguments = {r[n.a].i[l], n.b < 0 ? 0 : r[n.b].i[l]};
      r[n.dst].i[l] = f.compute(n.from, arguments.data());
    }
  }
}

void execute_integer(const Instruction& n, Lanes* r) {
  const int64_t immediate = n.immediate;
  using U = uint64_t;
  switch (n.op) {
    case Op::kAdd:
      return integers(n, r, [](int64_t a, int64_t b) { return wrapping(U(a) + U(b)); });
    case Op::kSubtract:
      return integers(n, r, [](int64_t a, int64_t b) { return wrapping(U(a) - U(b)); });
    case Op::kMultiply:
      return integers(n, r, [](int64_t a, int64_t b) { return wrapping(U(a) * U(b)); });
    case Op::kDivide:
      return integers(n, r, [&](int64_t a, int64_t b) { return interp::floor_divide(n.type, a, b); });
    case Op::kModulo:
      return integers(n, r, [&](int64_t a, int64_t b) { return interp::floor_modulo(n.type, a, b); });
    case Op::kDivideSmall:
      return map<int64_t, int64_t>(n, r, [&](int64_t a) { return int64_t{uint32_t(a) / uint32_t(immediate)}; });
    case Op::kModuloSmall:
      return map<int64_t, int64_t>(n, r, [&](int64_t a) { return int64_t{uint32_t(a) % uint32_t(immediate)}; });
    case Op::kShiftRight:
      return map<int64_t, int64_t>(n, r, [&](int64_t a) { return a >> immediate; });
    case Op::kMask:
      return map<int64_t, int64_t>(n, r, [&](int64_t a) { return a & immediate; });
    case Op::kMin:
      return integers(n, r, [](int64_t a, int64_t b) { return b < a ? b : a; });
    case Op::kMax:
      return integers(n, r, [](int64_t a, int64_t b) { return a < b ? b : a; });
    case Op::kEqual:
      return integers(n, r, [](int64_t a, int64_t b) { return int64_t{a == b}; });
    case Op::kLess:
      return integers(n, r, [](int64_t a, int64_t b) { return int64_t{a < b}; });
    case Op::kLessEqual:
      return integers(n, r, [](int64_t a, int64_t b) { return int64_t{a <= b}; });
    case Op::kLessUnsigned:
      return integers(n, r, [](int64_t a, int64_t b) { return int64_t{U(a) < U(b)}; });
    case Op::kAnd:
      return integers(n, r, [](int64_t a, int64_t b) { return a & b; });
    case Op::kOr:
      return integers(n, r, [](int64_t a, int64_t b) { return a | b; });
    case Op::kNot:
      return map<int64_t, int64_t>(n, r, [](int64_t a) { return a ^ 1; });
    case Op::kWrap:
      if (n.type == ScalarType::kInt32) {
        return map<int64_t, int64_t>(n, r, [](int64_t a) { return int64_t{static_cast<int32_t>(a)}; });
      }
      return map<int64_t, int64_t>(n, r, [&](int64_t a) { return interp::wrap(n.type, a); });
    case Op::kInRange:
      return map<int64_t, int64_t>(n, r, [&](int64_t a) { return int64_t{a >= 0 && a < immediate}; });
    case Op::kSwizzle: {
      const Swizzle s{static_cast<int>(immediate & 255), static_cast<int>(immediate >> 8 & 255),
                      static_cast<int>(immediate >> 16)};
      return map<int64_t, int64_t>(n, r, [&](int64_t a) { return s(a); });
    }
    default:
      return other_function(n, r);
  }
}

}  // namespace

void execute(const Instruction& n, Lanes* r) {
  switch (n.op) {
    case Op::kAddFloat:
      return floats(n, r, [](auto a, auto b) { return a + b; });
    case Op::kSubtractFloat:
      return floats(n, r, [](auto a, auto b) { return a - b; });
    case Op::kMultiplyFloat:
      return floats(n, r, [](auto a, auto b) { return a * b; });
    case Op::kDivideFloat:
      return floats(n, r, [](auto a, auto b) { return a / b; });
    case Op::kMinFloat:
      return floats(n, r, [](auto a, auto b) { return a != a || b != b ? a + b : b < a ? b : a; });
    case Op::kMaxFloat:
      return floats(n, r, [](auto a, auto b) { return a != a || b != b ? a + b : a < b ? b : a; });
    case Op::kEqualFloat:
      return compare_floats(n, r, [](auto a, auto b) { return int64_t{a == b}; });
    case Op::kLessFloat:
      return compare_floats(n, r, [](auto a, auto b) { return int64_t{a < b}; });
    case Op::kLessEqualFloat:
      return compare_floats(n, r, [](auto a, auto b) { return int64_t{a <= b}; });
    case Op::kRound:
      return map<float, float>(n, r, [&](float a) { return float_from_bits(n.type, bits_from_float(n.type, a)); });
    case Op::kConvert:
      return convert(n, r);
    case Op::kSelect:
      return select(n, r);
    case Op::kCopy:
      r[n.dst] = r[n.a];
      return;
    case Op::kRealFunction:
      return real_function(n, r);
    default:
      return execute_integer(n, r);
  }
}

float float_from_bits(ScalarType type, uint16_t bits) {
  if (type == ScalarType::kBFloat16) return std::bit_cast<float>(uint32_t{bits} << 16);
  return static_cast<float>(Halide::float16_t::make_from_bits(bits));
}

uint16_t bits_from_float(ScalarType type, float value) {
  if (type == ScalarType::kFloat16) return Halide::float16_t(value).to_bits();
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>((bits >> 16) | 0x40);  // still a NaN
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace tc::tile
