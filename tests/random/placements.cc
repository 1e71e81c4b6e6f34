#include "tests/random/placements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <vector>

#include "tests/random/random.h"

namespace tc::testing {
namespace {

using Names = std::vector<std::string>;

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  RandomProduct run() {
    static constexpr std::array<const char*, 4> kTypes = {"float16", "float32", "float16", "bfloat16"};
    type_ = kTypes[random_.below(4)];
    const uint64_t kind = random_.below(13);
    kind < 5 ? product() : kind < 8 ? window() : kind < 10 ? rows() : kind < 12 ? enlarged() : scattered();
    const int64_t more = random_.range(0, 2);
    for (int64_t n = 0; n < more; ++n) changed_again();
    if (random_.chance(30)) sums();
    RandomProduct result;
    result.text =
        fmt::format("def f({}) -> ({}) {{\n{}}}\n", fmt::join(inputs_, ", "), fmt::join(results_, ", "), body_);
    result.sizes = sizes_;
    return result;
  }

 private:
  /// A size of its own for an index.
  std::string size(const std::string& index, bool is_long) {
    static constexpr std::array<int64_t, 8> kLong = {16, 23, 24, 32, 33, 40, 48, 64};
    static constexpr std::array<int64_t, 5> kShort = {1, 2, 3, 3, 5};
    sizes_.emplace("S" + index, is_long ? kLong[random_.below(kLong.size())] : kShort[random_.below(kShort.size())]);
    return "S" + index;
  }

  std::string zero() const { return type_ + "(0)"; }

  /// An index that runs over all of a dimension, at a place that lies in it.
  std::string place(const std::string& index) {
    const std::string extent = "S" + index;
    switch (random_.below(14)) {
      case 0:
      case 1:
        return fmt::format("{} - 1 - {}", extent, index);
      case 2:
        return fmt::format("clamp({} + {} - 1, 0, {} - 1)", index, random_.below(3), extent);
      case 3:
        return fmt::format("({} + {}) % {}", index, random_.below(4), extent);
      case 4:
        return fmt::format("min({}, {} - 1 - {})", index, extent, index);
      case 5:
        return index + " / 2";
      default:
        return index;
    }
  }

  /// A choice between an element and zero: `inside` are conditions of which each has an opposite.
  std::string bordered(const std::string& element, const std::vector<std::pair<std::string, std::string>>& bounds) {
    Names inside, outside;
    for (const auto& [in, out] : bounds) {
      inside.push_back(in);
      outside.push_back(out);
    }
    switch (random_.below(5)) {
      case 0:
        return fmt::format("({} ? {} : {})", fmt::join(inside, " && "), element, zero());
      case 1:
        return fmt::format("({} ? {} : {})", fmt::join(outside, " || "), zero(), element);
      case 2:
        return fmt::format("(!({}) ? {} : {})", fmt::join(outside, " || "), element, zero());
      case 3:
        return fmt::format("{}({} ? float32({}) : float32(0))", type_, fmt::join(inside, " && "), element);
      default: {
        std::string result = element;
        for (const std::string& condition : inside) result = fmt::format("({} ? {} : {})", condition, result, zero());
        return result;
      }
    }
  }

  /// A read of a new input over some indices.
  std::string operand(const std::string& tensor, Names indices) {
    if (random_.chance(40)) std::swap(indices.front(), indices.back());
    if (random_.chance(12)) {  // a diagonal
      const bool first = random_.chance(50);
      for (const std::string& index : indices) {
        inputs_.push_back(fmt::format("float32(S{1}) {0}{1}", tensor, index));  // tells the size
      }
      inputs_.push_back(first ? fmt::format("{0}(S{1} + S{2}, S{2}) {3}", type_, indices[0], indices[1], tensor)
                              : fmt::format("{0}(S{1}, S{1} + S{2}) {3}", type_, indices[0], indices[1], tensor));
      return first ? fmt::format("{0}({1} + {2}, {2})", tensor, indices[0], indices[1])
                   : fmt::format("{0}({1}, {1} + {2})", tensor, indices[0], indices[1]);
    }
    Names places, extents;
    for (const std::string& index : indices) {
      places.push_back(place(index));
      extents.push_back("S" + index);
    }
    std::string read;
    const bool has_border = random_.chance(25);
    const size_t at = random_.below(indices.size());
    if (has_border) places[at] = indices[at] + " - 2";
    read = fmt::format("{}({})", tensor, fmt::join(places, ", "));
    if (has_border) read = bordered(read, {{indices[at] + " >= 2", indices[at] + " < 2"}});
    inputs_.push_back(fmt::format("{}({}) {}", type_, fmt::join(extents, ", "), tensor));
    return read;
  }

  /// Where a sum goes, and the shape of the result; perhaps another place beside it.
  struct Target {
    std::string at, shape, beside;
  };
  Target target(const std::string& m, const std::string& n) {
    const std::string sm = "S" + m, sn = "S" + n;
    switch (random_.below(9)) {
      case 0:
        return {fmt::format("{} - 1 - {}, {}", sm, m, n), sm + ", " + sn, ""};
      case 1:
        return {fmt::format("{}, {} - 1 - {}", m, sn, n), sm + ", " + sn, ""};
      case 2:
        return {fmt::format("{} + 3, {} + 1", m, n), fmt::format("{} + 4, {} + 2", sm, sn), ""};
      case 3:
        return {fmt::format("{}, {}", m, n), fmt::format("{}, 2 * {}", sm, sn), fmt::format("{}, {} + {}", m, n, sn)};
      case 4:
        return {fmt::format("2 * {}, {}", m, n), fmt::format("2 * {}, {}", sm, sn),
                fmt::format("2 * {} + 1, {}", m, n)};
      case 5:
        return {fmt::format("{} + {}, {}", m, n, n), fmt::format("{} + {}, {}", sm, sn, sn), ""};
      case 6:
        return {fmt::format("{} - 1 - {}, {}", sn, n, m), sn + ", " + sm, ""};
      default:
        return {m + ", " + n, sm + ", " + sn, ""};
    }
  }

  void result(const std::string& type, const std::string& shape) {
    const size_t comma = shape.find(", ");
    first_ = shape.substr(0, comma);
    last_ = shape.substr(comma + 2);
    result_type_ = type;
    results_.push_back(fmt::format("{}({}) C", type, shape));
  }

  void product() {
    for (const char* index : {"m", "n", "k"}) size(index, true);
    const std::string where = " where m in 0:Sm, n in 0:Sn, k in 0:Sk";
    const Target to = target("m", "n");
    result(random_.chance(30) ? "float32" : type_, to.shape);
    const std::string first = operand("A", {"m", "k"}), second = operand("B", {"k", "n"});
    const bool adds = random_.chance(20);
    if (adds) body_ += fmt::format("  C(i, j) = {}(1) where i in 0:{}, j in 0:{}\n", result_type_, first_, last_);
    const char* const assign = adds ? "+=" : random_.chance(10) ? "max=!" : "+=!";
    const auto value = [&](const std::string& a, const std::string& b) {
      return result_type_ == "float32" ? fmt::format("float32({}) * float32({})", a, b) : fmt::format("{} * {}", a, b);
    };
    body_ += fmt::format("  C({}) {} {}{}\n", to.at, assign, value(first, second), where);
    if (to.beside.empty() || random_.chance(20)) return;
    const std::string third = random_.chance(50) ? second : operand("D", {"k", "n"});
    body_ += fmt::format("  C({}) {} {}{}\n", to.beside, assign, value(first, third), where);
  }

  /// A sum over windows of images, whose borders are reached in one of many ways.
  void window() {
    for (const char* index : {"c", "f"}) size(index, true);
    for (const char* index : {"y", "x"}) sizes_.emplace(std::string("S") + index, random_.range(4, 9));
    for (const char* index : {"r", "s"}) sizes_.emplace(std::string("S") + index, random_.range(1, 3));
    std::string read;
    const char* const kBent[] = {"clamp({0} + {1} - 1, 0, {2} - 1)", "({0} + {1}) % {2}", "min({0} + {1}, {2} - 1)",
                                 "({0} + {1}) / 2"};
    const auto bent = [&](const char* i, const char* r) {
      return fmt::format(fmt::runtime(kBent[random_.below(4)]), i, r, std::string("S") + i);
    };
    const char* const layout = random_.chance(50) ? "I(c, {}, {})" : "I({}, {}, c)";
    if (random_.chance(50)) {
      read = fmt::format(fmt::runtime(layout), bent("y", "r"), bent("x", "s"));
    } else {
      read = bordered(fmt::format(fmt::runtime(layout), "y + r - 1", "x + s - 1"), {{"y + r >= 1", "y + r < 1"},
                                                                                    {"y + r <= Sy", "y + r > Sy"},
                                                                                    {"x + s >= 1", "x + s < 1"},
                                                                                    {"x + s <= Sx", "x + s > Sx"}});
    }
    inputs_.push_back(fmt::format("{}({}) I", type_, layout[2] == 'c' ? "Sc, Sy, Sx" : "Sy, Sx, Sc"));
    inputs_.push_back(type_ + "(Sf, Sc, Sr, Ss) G");
    const char* const kernel = random_.chance(50) ? "G(f, c, r, s)" : "G(f, c, Sr - 1 - r, Ss - 1 - s)";
    const char* const kTargets[] = {"f, y * Sx + x", "f, Sy * Sx - 1 - y * Sx - x", "f, x * Sy + y"};
    result(type_, "Sf, Sy * Sx");
    body_ += fmt::format("  C({}) +=! {} * {} where f in 0:Sf, c in 0:Sc, y in 0:Sy, x in 0:Sx, r in 0:Sr, s in 0:Ss\n",
                         kTargets[random_.below(3)], read, kernel);
  }

  /// Rows that are normalised by a reduction of their own.
  /// The gradient of windows with steps: each element of the input adds to those results that its window covers. It is
  /// written so, or as a sum over what reaches a result.
  void enlarged() {
    for (const char* index : {"c", "f"}) size(index, true);
    sizes_.emplace("Sy", random_.range(3, 9));
    sizes_.emplace("Sr", random_.range(1, 5));
    const int64_t step = random_.range(1, 3), before = random_.range(0, 2);
    inputs_.push_back(type_ + "(Sc, Sy) I");
    inputs_.push_back(type_ + "(Sf, Sc, Sr) G");
    const std::string ranges = " where f in 0:Sf, c in 0:Sc, r in 0:Sr";
    if (random_.chance(50)) {
      result(type_, fmt::format("Sf, {} * (Sy - 1) + Sr", step));
      body_ += fmt::format("  C(f, {} * y + r) +=! I(c, y) * G(f, c, r){}, y in 0:Sy\n", step, ranges);
      return;
    }
    result(type_, fmt::format("Sf, {} * Sy", step));
    const std::string at = fmt::format("(y + {} - r)", before), element = fmt::format("I(c, {} / {})", at, step);
    std::vector<std::pair<std::string, std::string>> bounds = {
        {fmt::format("{} % {} == 0", at, step), fmt::format("{} % {} != 0", at, step)},
        {at + " >= 0", at + " < 0"},
        {fmt::format("{} / {} < Sy", at, step), fmt::format("{} / {} >= Sy", at, step)}};
    if (step == 1 && random_.chance(50)) bounds.erase(bounds.begin());
    const bool around = random_.chance(40);
    const std::string read = around ? element + " * G(f, c, r)" : element;
    const std::string value = bordered(read, bounds);
    body_ +=
        fmt::format("  C(f, y) +=! {}{}, y in 0:{} * Sy\n", around ? value : value + " * G(f, c, r)", ranges, step);
  }

  /// Elements that are combined where they overlap.
  void scattered() {
    for (const char* index : {"y", "x"}) sizes_.emplace(std::string("S") + index, random_.range(1, 9));
    for (const char* index : {"r", "s"}) sizes_.emplace(std::string("S") + index, random_.range(1, 6));
    static constexpr std::array<const char*, 4> kAssigns = {"+=!", "+=!", "max=!", "min=!"};
    const int64_t steps[] = {random_.range(1, 3), random_.range(1, 3)};
    inputs_.push_back("float32(Sy, Sx, Sr, Ss) I");
    result("float32", fmt::format("{} * (Sy - 1) + Sr, {} * (Sx - 1) + Ss", steps[0], steps[1]));
    body_ += fmt::format("  C({} * y + r, {} * x + s) {} I(y, x, r, s)\n", steps[0], steps[1],
                         kAssigns[random_.below(kAssigns.size())]);
  }

  void rows() {
    for (const char* index : {"n", "d"}) size(index, true);
    inputs_.push_back(type_ + "(Sn, Sd) X");
    const std::string x = random_.chance(60) ? "X(n, d)" : fmt::format("X({}, {})", place("n"), place("d"));
    const std::string where = " where n in 0:Sn, d in 0:Sd";
    const Target to = target("n", "d");
    result(random_.chance(50) ? "float32" : type_, to.shape);
    body_ += fmt::format("  float32 M({}) max=! float32({}){}\n", random_.chance(20) ? "Sn - 1 - n" : "n", x, where);
    body_ += fmt::format("  C({}) = {}(float32({}) - M(n)){}\n", to.at, result_type_, x, where);
    if (!to.beside.empty()) body_ += fmt::format("  C({}) = {}(M(n)){}\n", to.beside, result_type_, where);
  }

  /// Some elements of the result are set or changed again.
  void changed_again() {
    if (random_.chance(15)) return diagonal_added();
    const int64_t i = random_.range(0, 3), j = random_.range(0, 3);
    const std::string part = fmt::format(" where i in {}:{} - {}, j in {}:{} - {}", i, first_, random_.range(0, 2), j,
                                         last_, random_.range(0, 2));
    switch (random_.below(5)) {
      case 0:
        body_ += fmt::format("  C({}, j) = {}({}) where j in 0:{}\n", i, result_type_, j, last_);
        break;
      case 1:
        body_ += fmt::format("  C(i, {}) = {}({}) where i in 0:{}\n", j, result_type_, i, first_);
        break;
      case 2:
        body_ += fmt::format("  C(i, j) = max(C(i, j), {}(0)){}\n", result_type_, part);
        break;
      case 3:
        body_ += fmt::format("  C(i, j) = C(i, j) + C(i, j){}\n", part);
        break;
      default:
        body_ += fmt::format("  C(i, j) = {}({}){}\n", result_type_, i, part);
    }
  }

  /// A tensor whose rows lie beside each other along diagonals of the result.
  void diagonal_added() {
    if (has_diagonal_) return;
    has_diagonal_ = true;
    inputs_.push_back(fmt::format("{0}({1} + {2}, {2}) R", result_type_, first_, last_));
    body_ += fmt::format("  C(i, j) = C(i, j) + R(i + j, j) where i in 0:{}, j in 0:{}\n", first_, last_);
  }

  /// A sum of the results to a reversed or shifted place.
  void sums() {
    const bool by_rows = random_.chance(50);
    const std::string& kept = by_rows ? first_ : last_;
    const std::string index = by_rows ? "i" : "j";
    const bool reversed = random_.chance(50);
    results_.push_back(fmt::format("float32({} + 1) Z", kept));
    body_ += fmt::format("  Z({}) +=! float32(C(i, j)) where i in 0:{}, j in 0:{}\n",
                         reversed ? fmt::format("{} - 1 - {}", kept, index) : index + " + 1", first_, last_);
  }

  Random random_;
  std::string type_, result_type_, body_, first_, last_;
  bool has_diagonal_ = false;
  Names inputs_, results_;
  std::map<std::string, int64_t> sizes_;
};

}  // namespace

RandomProduct random_placement(uint64_t seed) { return Generator(seed).run(); }

}  // namespace tc::testing
