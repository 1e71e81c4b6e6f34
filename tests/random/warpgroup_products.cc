#include "tests/random/warpgroup_products.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/random/random.h"

namespace tc::testing {

WarpgroupProduct random_warpgroup_product(uint64_t seed) {
  Random random(seed);
  const auto pick = [&](const std::vector<std::string>& all) { return all[random.below(all.size())]; };
  const bool turned_a = random.chance(50), turned_b = random.chance(50);
  const auto size = [&](int64_t least, int64_t most, bool is_inner) {
    const auto value = least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
    return is_inner ? std::max<int64_t>(value / 8 * 8, 8) : value;
  };
  WarpgroupProduct result;
  result.sizes = {
      {"M", size(8, 150, turned_a)}, {"N", size(8, 150, !turned_b)}, {"K", size(64, 300, !turned_a || turned_b)}};
  const std::string type = pick({"float16", "bfloat16"}), out = pick({type, "float32"});
  const std::string a = turned_a ? "A(k,m)" : "A(m,k)", b = turned_b ? "B(n,k)" : "B(k,n)";
  const std::string product = out == "float32" ? fmt::format("float32({}) * float32({})", a, b) : a + " * " + b;
  const std::string after = pick({"", "  C(m,n) = fmax(C(m,n) + b(n), 0)\n", "  C(m,n) += R(m,n)\n",
                                  "  C(m,n) *= s(m)\n  C(m,n) += b(n)\n", "  C(m,n) = 2 * C(m,n)\n"});
  result.text = fmt::format(
      "def f({0}({1}) A, {0}({2}) B, {3}(N) b, {3}(M) s, {3}(M,N) R) -> ({3}(M,N) C) {{\n  C(m,n) +=! {4}\n{5}}}", type,
      turned_a ? "K,M" : "M,K", turned_b ? "N,K" : "K,N", out, product, after);
  const std::vector<int64_t> columns =
      turned_b ? std::vector<int64_t>{32, 64, 96, 128} : std::vector<int64_t>{32, 64, 128};
  const int64_t width = columns[random.below(columns.size())];
  const int64_t most = std::min<int64_t>((result.sizes["M"] + 63) / 64, 3);
  result.options =
      warpgroup_tile(1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(most))),
                     std::min(width, (result.sizes["N"] + 63) / 64 * 64), 1 + static_cast<int64_t>(random.below(4)));
  return result;
}

options::MappingOptions warpgroup_tile(int64_t warpgroups, int64_t columns, int64_t stages, std::vector<int64_t> before,
                                       std::vector<int64_t> behind) {
  options::MappingOptions options;
  options.tile = before;
  options.register_tile.assign(before.size(), 1);
  options.tile.insert(options.tile.end(), {64 * warpgroups, columns});
  options.register_tile.insert(options.register_tile.end(), {2, columns / 4});
  options.tile.insert(options.tile.end(), behind.begin(), behind.end());
  options.tile.push_back(64);
  options.map_to_threads = {4, 32 * warpgroups, 1};
  options.copy_stages = stages;
  options.tensor_cores = true;
  return options;
}

}  // namespace tc::testing
