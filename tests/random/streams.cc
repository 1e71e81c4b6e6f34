#include "tests/random/streams.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "tests/random/random.h"

namespace tc::testing {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  RandomProduct run() {
    static constexpr std::array<int64_t, 8> kRows = {5, 16, 17, 32, 40, 63, 64, 70};
    static constexpr std::array<int64_t, 6> kColumns = {33, 40, 64, 66, 96, 130};
    static constexpr std::array<int64_t, 4> kInner = {16, 24, 32, 40}, kResults = {8, 16, 24, 40};
    type_ = random_.chance(70) ? "float16" : "bfloat16";
    batch_ = random_.chance(40);
    const bool reads_top = random_.chance(45), has_total = reads_top || random_.chance(80);
    std::string body =
        fmt::format("  float S({}) +=! {} * {}\n", at("n,m"), read("Q", random_.chance(80) ? "n,d" : "d,n"),
                    read("K", random_.chance(60) ? "m,d" : "d,m"));
    if (random_.chance(30)) body += fmt::format("  S({0}) = m <= n ? S({0}) : -4.0\n", at("n,m"));
    if (reads_top) body += fmt::format("  top({}) max=! S({})\n", at("n"), at("n,m"));
    body += fmt::format("  {0} P({1}) = {0}({2})\n", type_, at("n,m"), function(reads_top));
    if (has_total) body += fmt::format("  float total({}) +=! float(P({}))\n", at("n"), at("n,m"));
    std::string results;
    if (random_.chance(25)) {
      body += fmt::format("  least({}) min=! P({})\n", at("n"), at("n,m"));
      results = ", least";
    }
    if (has_total && random_.chance(20)) results += ", total";
    body += fmt::format("  float A({}) +=! P({}) * {}\n", at("n,e"), at("n,m"),
                        read("V", random_.chance(60) ? "m,e" : "e,m"));
    body += fmt::format("  O({}) = A({}){}\n", at("n,e"), at("n,e"), behind(has_total));
    RandomProduct result;
    result.text = fmt::format("def f({}) -> (O{}) {{\n{}}}\n", parameters_, results, body);
    const auto any = [&](const auto& of) { return of[random_.below(of.size())]; };
    result.sizes = {{"N", any(kRows)}, {"M", any(kColumns)}, {"D", any(kInner)}, {"E", any(kResults)}};
    if (batch_) result.sizes["B"] = 2;
    return result;
  }

 private:
  std::string at(const std::string& indices) const { return batch_ ? "b," + indices : indices; }

  /// A read of a tensor that is a parameter.
  std::string read(const std::string& tensor, const std::string& indices, const std::string& type = "") {
    std::string sizes = at(indices);
    for (char& c : sizes) c = static_cast<char>(std::toupper(c));
    parameters_ +=
        fmt::format("{}{}({}) {}", parameters_.empty() ? "" : ", ", type.empty() ? type_ : type, sizes, tensor);
    return fmt::format("{}({})", tensor, at(indices));
  }

  /// Of a result of the first product.
  std::string function(bool reads_top) {
    const std::string s = fmt::format("S({})", at("n,m"));
    if (reads_top && random_.chance(50)) return fmt::format("exp(({} - top({})) * 0.25)", s, at("n"));
    if (reads_top) return fmt::format("fmax({} - top({}), -8.0)", s, at("n"));
    switch (random_.below(4)) {
      case 0:
        return fmt::format("fmax({}, 0.0) * 0.5", s);
      case 1:
        return fmt::format("{} + {}", s, read("R", "m", "float"));
      case 2:
        return fmt::format("fmin({} * {}, 64.0)", s, read("W", "n", "float"));
      default:
        return s;
    }
  }

  /// What becomes of a result of the second product.
  std::string behind(bool has_total) {
    if (has_total && random_.chance(70)) return fmt::format(" - total({})", at("n"));
    return random_.chance(50) ? fmt::format(" * 0.5 + {}", read("C", "e", "float")) : "";
  }

  Random random_;
  std::string type_, parameters_;
  bool batch_ = false;
};

}  // namespace

RandomProduct random_stream(uint64_t seed) { return Generator(seed).run(); }

}  // namespace tc::testing
