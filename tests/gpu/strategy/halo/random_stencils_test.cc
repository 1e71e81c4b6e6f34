#include <gtest/gtest.h>

#include <random>

#include "tests/common/program.h"
#include "tests/gpu/proved.h"
#include "tests/random/layouts.h"

/// Chains of statements that read each other's neighbours, by random.
namespace tc::testing {
namespace {

constexpr const char* kIndices[] = {"i", "j", "k"};
constexpr const char* kSizes[] = {"N", "M", "L"};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), rank_(below(6) == 0 ? 1 : below(3) == 0 ? 3 : 2) {
    type_ = std::vector<std::string>{"int32", "int32", "half", "float", "double"}[static_cast<size_t>(below(5))];
  }

  std::string text() {
    const int stages = 1 + below(4);
    const std::string last = "T" + std::to_string(stages - 1);
    const bool reads_old = below(4) == 0;
    std::vector<std::string> known = {"X"}, statements, results = {last};
    if (reads_old) results[0] = fmt::format("{}({}) {}", type_, fmt::join(kSizes, kSizes + rank_, ","), last);
    for (int s = 0; s < stages; ++s) {
      const std::string name = "T" + std::to_string(s);
      const bool is_last = s + 1 == stages;
      statements.push_back("  " + (is_last && reads_old ? update(name, known) : statement(name, known)));
      if (below(5) == 0) statements.push_back("  " + update(name, known));
      if (s + 1 < stages && below(5) == 0) results.push_back(name);
      known.push_back(name);
    }
    return fmt::format("def f({}({}) X) -> ({}) {{\n{}\n}}\n", type_, fmt::join(kSizes, kSizes + rank_, ","),
                       fmt::join(results, ", "), fmt::join(statements, "\n"));
  }

  std::map<std::string, int64_t> sizes() {
    std::map<std::string, int64_t> result;
    for (int d = 0; d < rank_; ++d) {
      const bool is_last = d + 1 == rank_;
      result[kSizes[d]] = (rank_ == 3 ? 3 + below(9) : 5 + below(40)) * (is_last && below(2) == 0 ? 4 : 1);
    }
    return result;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  /// A neighbour, behind a guard or within bounds; with `r` added along a dimension.
  std::string read(const std::string& tensor, int reduced) {
    std::vector<std::string> subscripts, guards;
    const bool clamps = reduced < 0 && below(4) == 0;
    for (int d = 0; d < rank_; ++d) {
      const int shift = below(3) == 0 ? 0 : below(5) - 2;
      const bool is_doubled = below(5) == 0;
      std::string at = (is_doubled ? "2 * " : "") + std::string(kIndices[d]);
      if (shift != 0) at += fmt::format(" {} {}", shift < 0 ? "-" : "+", std::abs(shift));
      if (d == reduced) at += below(4) == 0 ? " + 2 * r" : " + r";
      if (clamps && shift < 0) at = fmt::format("max({}, 0)", at);
      if (clamps && (shift > 0 || is_doubled)) at = fmt::format("min({}, {} - 1)", at, kSizes[d]);
      if (!clamps && shift < 0) guards.push_back(at + " >= 0");
      if (!clamps && (shift > 0 || is_doubled || d == reduced)) guards.push_back(fmt::format("{} < {}", at, kSizes[d]));
      subscripts.push_back(at);
    }
    const std::string element = fmt::format("{}({})", tensor, fmt::join(subscripts, ", "));
    return guards.empty() ? element : fmt::format("({} ? {} : 1)", fmt::join(guards, " && "), element);
  }

  /// Of elements that are there, by themselves and neighbours of others.
  std::string update(const std::string& name, const std::vector<std::string>& known) {
    const std::string element = fmt::format("{}({})", name, fmt::join(kIndices, kIndices + rank_, ","));
    const std::string more = read(known[static_cast<size_t>(below(static_cast<int>(known.size())))], -1);
    std::vector<std::string> ranges;
    for (int d = 0; d < rank_; ++d) ranges.push_back(fmt::format("{} in 0:{}", kIndices[d], kSizes[d]));
    const std::string where = fmt::format("where {}", fmt::join(ranges, ", "));
    if (below(2) == 0) return fmt::format("{} max= {} {}", element, more, where);
    return fmt::format("{0} = {1} - ({0} > 3 ? 1 : 2) {2}", element, more, where);
  }

  std::string statement(const std::string& name, const std::vector<std::string>& known) {
    const int reduced = below(3) == 0 ? below(rank_) : -1;
    std::string value;
    for (int terms = reduced < 0 ? 1 + below(5) : 1; terms > 0; --terms) {
      const std::string& tensor =
          known[below(3) == 0 ? static_cast<size_t>(below(static_cast<int>(known.size()))) : known.size() - 1];
      value += (value.empty() ? "" : below(3) == 0 ? " - " : " + ") + read(tensor, reduced);
    }
    std::vector<std::string> ranges;
    for (int d = 0; d < rank_; ++d) ranges.push_back(fmt::format("{} in 0:{}", kIndices[d], kSizes[d]));
    if (reduced >= 0) ranges.push_back(fmt::format("r in 0:{}", 2 + below(3)));
    const char* const assigns[] = {"+=!", "max=!", "min=!"};
    return fmt::format("{}({}) {} {} where {}", name, fmt::join(kIndices, kIndices + rank_, ","),
                       reduced < 0 ? "=" : assigns[below(3)], value, fmt::join(ranges, ", "));
  }

  std::mt19937_64 random_;
  int rank_;
  std::string type_;
};

/// On a device whose one processor is soon busy, so that few elements have strips and tiles.
TEST(Halo, RandomStencilsAgreeAndAreProved) {
  const char* const asked = std::getenv("TC_RANDOM_STENCILS");
  const int count = asked ? std::atoi(asked) : 40;
  gpu::Device device = gpu::device_of_architecture(90);
  device.instances_of_launch = 256;
  device.processors = 1;
  int with_halo = 0;
  for (int seed = 1; seed <= count; ++seed) {
    Generator generator(static_cast<uint64_t>(seed));
    const std::string text = generator.text();
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, text));
    const ir::Program dense = specialised_from(text, generator.sizes());
    const bool is_strided = seed % 3 == 0;
    const ir::Program program = is_strided ? ir::with_layouts(dense, random_layouts(dense, seed)) : dense;
    const Result<gpu::Mapping> mapping = mapped(program, {}, device);
    ASSERT_TRUE(mapping) << mapping.error().to_string();
    ASSERT_EQ(unproved(mapping->program) + difference_of_mapping(program, *mapping, static_cast<uint64_t>(seed)), "");
    for (const gpu::Kernel& kernel : mapping->kernels) with_halo += kernel.recipe == gpu::Recipe::kHalo ? 1 : 0;
  }
  EXPECT_GE(with_halo, count / 4);
}

}  // namespace
}  // namespace tc::testing
