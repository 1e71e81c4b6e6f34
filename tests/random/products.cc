#include "tests/random/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/random/random.h"

namespace tc::testing {
namespace {

using Names = std::vector<std::string>;

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  RandomProduct run() {
    static constexpr std::array<const char*, 3> kTypes = {"float16", "bfloat16", "float32"};
    type_ = kTypes[random_.below(3)];
    choose_indices();
    const bool window = random_.chance(25);
    std::string first = operand("A", a_, window), second = operand("B", b_, false);
    if (random_.chance(20)) std::swap(first, second);
    const bool wide = type_ == "float32" || random_.chance(40);  // the result is a float32
    const auto product_of = [&](const std::string& x, const std::string& y) {
      return wide && type_ != "float32" ? fmt::format("float32({}) * float32({})", x, y) : fmt::format("{} * {}", x, y);
    };
    std::string value = scaled(product_of(first, second));
    if (random_.chance(20)) {
      uses_e_ = true;
      const std::string other = scaled(product_of(prologue(read("E", a_), a_), read("F", b_)));
      value += (random_.chance(70) ? " + " : " - ") + other;
      if (random_.chance(20)) value = fmt::format("2 * ({})", value);
    }
    std::string body = fmt::format("  C({}) +=! {}", list(c_), value);
    if (window) body += " where " + where_;
    result_type_ = wide ? "float32" : type_;
    body += "\n" + after();
    const std::string pooled = random_.chance(30) ? pool() : "";
    body += pooled;
    std::string results = pooled.empty() ? "" : ", P";
    if (random_.chance(15)) {
      Names transposed = c_;
      std::swap(transposed.front(), transposed.back());
      body += fmt::format("  T({}) = C({})\n", list(transposed), list(c_));
      results += ", T";
    }
    if (random_.chance(15)) body += chain(results);
    if (random_.chance(40)) body += reductions(results);
    const std::string d = uses_d_ ? fmt::format(", {}({}) D", result_type_, sizes_of(c_)) : "";
    const std::string e = uses_e_ ? fmt::format(", {0}({1}) E, {0}({2}) F", type_, sizes_of(a_), sizes_of(b_)) : "";
    RandomProduct result;
    result.text =
        fmt::format("def f({0}({1}) A, {0}({2}) B{3}{4}{9}) -> ({5}({6}) C{8}) {{\n{7}}}\n", type_, sizes_of(a_),
                    sizes_of(b_), d, e, result_type_, sizes_of(c_), body, results, more_inputs_);
    for (const std::string& name : a_) add_size(name, result.sizes);
    for (const std::string& name : b_) add_size(name, result.sizes);
    return result;
  }

 private:
  void choose_indices() {
    a_ = {"m", "k"};
    b_ = {"k", "n"};
    c_ = {"m", "n"};
    if (random_.chance(30)) {
      insert(a_, "p");
      insert(c_, "p");
    }
    if (random_.chance(30)) {
      insert(b_, "q");
      insert(c_, "q");
    }
    if (random_.chance(25)) {
      for (Names* side : {&a_, &b_, &c_}) side->insert(side->begin(), "b");
    }
    if (random_.chance(25)) {
      insert(a_, "j");
      insert(b_, "j");
    }
    for (Names* side : {&a_, &b_}) {
      if (random_.chance(40)) std::swap((*side)[side->size() - 1], (*side)[side->size() - 2]);
    }
  }

  void insert(Names& side, const std::string& name) {
    side.insert(side.begin() + static_cast<long>(random_.below(side.size() + 1)), name);
  }

  /// A read; of a window along m, behind a guard.
  std::string operand(const std::string& tensor, const Names& indices, bool window) {
    if (!window) return prologue(read(tensor, indices), indices);
    const bool reduces_j = std::find(a_.begin(), a_.end(), "j") != a_.end();
    const std::string tap = reduces_j ? "j" : "k";
    Names subscripts = indices;
    std::replace(subscripts.begin(), subscripts.end(), std::string("m"), fmt::format("m + {} - 1", tap));
    const std::string guard = fmt::format("m + {0} >= 1 && m + {0} <= Sm", tap);
    where_ = "m in 0:Sm";
    return fmt::format("({} ? {}({}) : {}(0))", guard, tensor, list(subscripts), type_);
  }

  static std::string read(const std::string& tensor, const Names& indices) {
    return fmt::format("{}({})", tensor, list(indices));
  }

  /// A function of a read, often none.
  std::string prologue(const std::string& read, const Names& indices) {
    switch (random_.below(16)) {
      case 0:
        return fmt::format("relu({})", read);
      case 1:
        return fmt::format("abs({0} - {0} * {1}(2))", read, type_);
      case 2:
        return fmt::format("({0} > {1}(1) ? {0} : {1}(0))", read, type_);
      case 3:
        return fmt::format("({} <= {} ? {} : {}(0))", indices.front(), indices.back(), read, type_);
      case 4:
        return fmt::format("({} >= 3 ? {} : {}(0))", indices.back(), read, type_);
      case 5:
        return fmt::format("(-{})", read);
      default:
        return read;
    }
  }

  /// A product times a number, a scalar, or what depends on one index of the result; often it alone.
  std::string scaled(const std::string& product) {
    const uint64_t kind = random_.below(12);
    const std::string name = fmt::format("s{}", scales_);
    switch (kind) {
      case 0:
        return fmt::format("{}(0.5) * {}", type_, product);
      case 1:
        return fmt::format("{} * {}(3)", product, type_);
      case 2:
        more_inputs_ += fmt::format(", {} {}", type_, name);
        break;
      case 3: {
        const std::string& index = c_[random_.below(c_.size())];
        more_inputs_ += fmt::format(", {}(S{}) {}", type_, index, name);
        ++scales_;
        return fmt::format("{}({}) * {}", name, index, product);
      }
      default:
        return product;
    }
    ++scales_;
    return fmt::format("{} * {}", name, product);
  }

  /// Another product, of the result and one more tensor.
  std::string chain(std::string& results) {
    const std::string& along = c_.back();
    Names left = c_;
    left.back() = "z";
    more_inputs_ += fmt::format(", {}(S{},24) H", result_type_, along);
    results += ", G";
    return fmt::format("  G({}) +=! float32(C({})) * float32(H({},z))\n", list(left), list(c_), along);
  }

  /// Reductions of the result, or of a function of it: over some of its indices, or all.
  std::string reductions(std::string& results) {
    const std::string c = fmt::format("C({})", list(c_));
    std::string text;
    const uint64_t count = 1 + random_.below(3);
    for (uint64_t number = 0; number < count; ++number) {
      const std::string name = fmt::format("R{}", number);
      Names kept;
      for (const std::string& index : c_) {
        if (random_.chance(50)) kept.push_back(index);
      }
      if (kept.size() == c_.size()) kept.erase(kept.begin() + static_cast<long>(random_.below(kept.size())));
      if (kept.size() > 1 && random_.chance(20)) std::swap(kept.front(), kept.back());
      const std::string to = kept.empty() ? name : fmt::format("{}({})", name, list(kept));
      switch (random_.below(6)) {
        case 0:
          text += fmt::format("  {} max=! {}\n", to, c);
          break;
        case 1:
          text += fmt::format("  {} min=! abs({})\n", to, c);
          break;
        case 2:
          uses_d_ = true;
          text += fmt::format("  {} +=! abs(float32({}) - float32(D({})))\n", to, c, list(c_));
          break;
        case 3:
          text += fmt::format("  {} +=! {} > {}(1) ? float32(1) : float32(0)\n", to, c, result_type_);
          break;
        default:
          text += fmt::format("  {} +=! float32({})\n", to, c);
      }
      results += ", " + name;
    }
    return text;
  }

  std::string after() {
    std::string text;
    const std::string c = fmt::format("C({})", list(c_));
    if (!uses_e_ && random_.chance(20)) {
      uses_e_ = true;
      text += fmt::format("  {} += E({}) * F({})\n", c, list(a_), list(b_));
    }
    for (uint64_t n = random_.below(4); n > 0; --n) {
      const std::string d = fmt::format("D({})", list(c_));
      switch (random_.below(5)) {
        case 0:
          text += fmt::format("  {} max= 0\n", c);
          break;
        case 1:
          text += fmt::format("  {0} = {0} > {1}(2) ? {0} : {1}(0.5) * {0}\n", c, result_type_);
          break;
        case 2:
          uses_d_ = true;
          text += fmt::format("  {0} = {0} + {1}\n", c, d);
          break;
        case 3:
          uses_d_ = true;
          text += fmt::format("  {} += {}\n", c, d);
          break;
        default:
          text += fmt::format("  {} *= 0.5\n", c);
      }
    }
    return text;
  }

  /// Pairs (or more) of neighbours along the last dimension of the result; nothing if that is short.
  std::string pool() {
    const std::string& last = c_.back();
    if (last != "m" && last != "n") return "";
    const uint64_t run = random_.chance(70) ? 2 : 4;
    const auto element = [&](const std::string& within) {
      Names subscripts = c_;
      subscripts.back() = fmt::format("{} * {} + {}", run, last, within);
      return fmt::format("C({})", list(subscripts));
    };
    const std::string p = fmt::format("P({})", list(c_));
    std::string text = random_.chance(50) ? fmt::format("  {} max=! {} where r in 0:{}\n", p, element("r"), run)
                                          : fmt::format("  {} = max({}, {})\n", p, element("0"), element("1"));
    if (random_.chance(30)) text += fmt::format("  {} max= 0\n", p);
    return text;
  }

  static std::string list(const Names& names) { return fmt::format("{}", fmt::join(names, ", ")); }
  static std::string sizes_of(const Names& names) {
    Names sizes;
    for (const std::string& name : names) sizes.push_back("S" + name);
    return list(sizes);
  }

  void add_size(const std::string& name, std::map<std::string, int64_t>& sizes) {
    static constexpr std::array<int64_t, 8> kLong = {16, 24, 31, 32, 40, 48, 64, 72};
    static constexpr std::array<int64_t, 4> kShort = {1, 2, 3, 5};
    const bool is_long = name == "m" || name == "n" || name == "k";
    sizes.emplace("S" + name, is_long ? kLong[random_.below(kLong.size())] : kShort[random_.below(kShort.size())]);
  }

  Random random_;
  std::string type_, result_type_, where_, more_inputs_;
  int scales_ = 0;
  Names a_, b_, c_;
  bool uses_d_ = false, uses_e_ = false;
};

}  // namespace

RandomProduct random_product(uint64_t seed) { return Generator(seed).run(); }

}  // namespace tc::testing
