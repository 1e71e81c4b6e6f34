#include "tests/random/warpgroup_products.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/random/random.h"

namespace tc::testing {

namespace {

/// Results, and statements that reduce the product to them; often none.
std::pair<std::string, std::string> random_reductions(Random& random, const std::string& type) {
  std::pair<std::string, std::string> result;
  const auto add = [&](const std::string& name, const std::string& statement) {
    if (!random.chance(20)) return;
    result.first += ", " + name;
    result.second += fmt::format("  {}\n", statement);
  };
  add("X", "X(m) +=! float32(C(m,n))");
  add("Y", random.chance(50) ? "Y(n) max=! C(m,n)" : "Y(n) +=! float32(C(m,n))");
  add("Z", fmt::format("Z min=! C(m,n) - {}(2) * R(m,n)", type));
  return result;
}

/// A tile whose instructions have their rows along n, and columns along m: a multiple of `step`.
void turn(Random& random, int64_t step, WarpgroupProduct& product) {
  options::MappingOptions& options = product.options;
  const int64_t warpgroups = random.range(1, product.sizes.at("N") > 64 ? 2 : 1), row = options.tile.back();
  const int64_t most = std::min<int64_t>((product.sizes.at("M") + 7) / 8, row == 128 ? 12 : 20);
  const int64_t columns = step * random.range(1, std::max<int64_t>(8 * most / step, 1));
  options.tile = {columns, 64 * warpgroups, row};
  options.register_tile = {columns / 4, options.ping_pong.value_or(false) ? 2 * warpgroups : 2};
  options.map_to_threads = {options.ping_pong.value_or(false) ? 32 : 32 * warpgroups, 4, 1};
}

/// Some of the results in a first launch: whole tiles, if boxes store them.
void split(Random& random, WarpgroupProduct& product) {
  std::vector<int64_t> first = {product.sizes.at("M"), product.sizes.at("N")};
  const size_t axis = random.below(2);
  const int64_t unit = product.options.store_boxes.value_or(false) ? product.options.tile[axis] : 1;
  const int64_t most = (first[axis] - 1) / unit;
  if (most < 1) return;
  first[axis] = unit * random.range(1, most);
  product.options.split_results = first;
}

}  // namespace

WarpgroupProduct random_warpgroup_product(uint64_t seed) {
  Random random(seed);
  const auto pick = [&](const std::vector<std::string>& all) { return all[random.below(all.size())]; };
  const bool is_narrow = random.chance(45);  // 8-bit numbers, whose rows are 128 values of k
  const bool is_integer = is_narrow && random.chance(40);
  const bool turned_a = !is_narrow && random.chance(50), turned_b = is_narrow || random.chance(50);
  const int64_t row = is_narrow ? 128 : 64;
  const auto size = [&](int64_t least, int64_t most, bool is_inner) {
    const auto value = least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
    const int64_t whole = row / 8;  // elements of 16 bytes
    return is_inner ? std::max<int64_t>(value / whole * whole, whole) : value;
  };
  WarpgroupProduct result;
  result.sizes = {{"M", size(8, 150, turned_a)},
                  {"N", size(8, 150, !turned_b)},
                  {"K", size(row / 4, 300 + row, !turned_a || turned_b)}};
  const std::vector<std::string> types = is_integer  ? std::vector<std::string>{"int8", "uint8"}
                                         : is_narrow ? std::vector<std::string>{"float8_e4m3", "float8_e5m2"}
                                                     : std::vector<std::string>{"float16", "bfloat16"};
  const std::string type = pick(types), type_b = is_narrow ? pick(types) : type;
  const std::string out = is_integer ? "int32" : pick({is_narrow ? "float16" : type, "float32"});
  const std::string a = turned_a ? "A(k,m)" : "A(m,k)", b = turned_b ? "B(n,k)" : "B(k,n)";
  const bool has_type = out == type;
  const std::string product = has_type ? a + " * " + b : fmt::format("{0}({1}) * {0}({2})", out, a, b);
  const std::string after = pick({"", "  C(m,n) = max(C(m,n) + b(n), 0)\n", "  C(m,n) += R(m,n)\n",
                                  "  C(m,n) *= s(m)\n  C(m,n) += b(n)\n", "  C(m,n) = 2 * C(m,n)\n"});
  const auto [reduced, reductions] =
      is_integer ? std::pair<std::string, std::string>() : random_reductions(random, out);
  result.text = fmt::format(
      "def f({0}({1}) A, {6}({2}) B, {3}(N) b, {3}(M) s, {3}(M,N) R) -> ({3}(M,N) C{7}) {{\n  C(m,n) +=! {4}\n{5}{8}}}",
      type, turned_a ? "K,M" : "M,K", turned_b ? "N,K" : "K,N", out, product, after, type_b, reduced, reductions);
  // Whole vectors of results, a fit, or any other multiple of 8.
  const int64_t whole = 32 * random.range(1, 4), fit = (result.sizes["N"] + 7) / 8 * 8, any = 8 * random.range(1, 20);
  const int64_t wanted = random.chance(40) ? whole : random.chance(50) ? fit : any;
  const int64_t fitting = is_narrow ? std::min<int64_t>(wanted, 96) : wanted;  // two sums of each result
  const int64_t width = is_integer ? (fitting + 15) / 16 * 16 : fitting;
  const int64_t most = std::min<int64_t>((result.sizes["M"] + 63) / 64, 3);
  result.options = warpgroup_tile(1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(most))), width,
                                  2 + static_cast<int64_t>(random.below(3)));
  result.options.tile.back() = row;
  const std::vector<std::vector<int64_t>> clusters = {{}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}};
  const std::vector<int64_t>& cluster = clusters[random.below(clusters.size())];
  // Blocks share columns with k in rows by eights.
  const bool fits_cluster = cluster.empty() || !turned_b || width % (8 * cluster[0]) == 0;
  if (fits_cluster) result.options.cluster = cluster;
  const int64_t row_bytes = result.sizes["N"] * (out == "float32" || is_integer ? 4 : 2);
  // With more buffers the staging of three warpgroups may not fit.
  const bool reduces = !reductions.empty();  // of a block's one tile, by its threads
  if (!reduces && row_bytes % 16 == 0 && result.options.copy_stages < 4 && random.chance(50)) {
    result.options.store_boxes = true;
  }
  if (!reduces && result.options.cluster.empty() && random.chance(50)) result.options.persistent = true;
  const int64_t sums = result.options.tile[0] / 128 * width;  // of a thread that has all rows of a tile
  const bool has_few_rows = result.options.tile[0] <= 128 && (is_narrow ? 2 : 1) * sums <= 192;
  if (result.options.persistent && has_few_rows && random.chance(50)) {
    result.options.ping_pong = true;
    result.options.register_tile[0] = result.options.tile[0] / 32;
    result.options.map_to_threads = {4, 32, 1};
  }
  const bool is_plain = !reduces && result.options.cluster.empty() && !result.options.store_boxes;
  const int64_t tile_bytes = result.options.tile[0] * width * 4;
  const int64_t buffer_bytes = *result.options.copy_stages * (result.options.tile[0] + (width + 63) / 64 * 64) * 128;
  if (is_plain && !result.options.persistent && tile_bytes + buffer_bytes < 220'000) {
    const int64_t steps = (result.sizes["K"] + row - 1) / row;
    const int64_t parts = int64_t{1} << random.range(0, 3);
    if (parts > 1 && parts <= steps) result.options.cluster = {1, 1, parts};
  }
  if (is_plain && random.chance(50)) turn(random, is_integer ? 16 : 8, result);
  if (!reduces && random.chance(25)) split(random, result);
  return result;
}

namespace {

/// An axis of the result: its values in the tensor, in a block and of a thread.
struct BoxAxis {
  std::string name;
  int64_t extent = 1, tile = 1, registers = 1;
};

template <typename T>
void shuffle(Random& random, std::vector<T>& all) {
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
}

/// Deals rows out to axes, fastest first: powers of two, and to the last what is left. The axis that row 8 moves has
/// two of them in a thread.
void deal_rows(Random& random, int64_t rows, bool is_across, std::vector<BoxAxis>& axes) {
  int64_t left = rows, stride = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t tile = i == 0 && is_across ? 64 : 1;
    while (left % (2 * tile) == 0 && random.chance(60)) tile *= 2;
    axes[i].tile = i + 1 < axes.size() ? tile : left;
    axes[i].registers = stride <= 8 && 8 < stride * axes[i].tile ? 2 : 1;
    stride *= axes[i].tile;
    left /= axes[i].tile;
  }
}

/// Deals columns out: along the first axis a multiple of 8.
void deal_columns(Random& random, bool is_across, std::vector<BoxAxis>& axes) {
  const bool is_alone = axes.size() == 1;
  axes[0].tile = is_across && !is_alone ? 64 * random.range(1, 2) : 8 * random.range(1, 8);
  axes[0].registers = axes[0].tile / 4;
  for (size_t i = 1; i < axes.size(); ++i) {
    axes[i].tile = axes[i].registers = random.range(1, std::min<int64_t>(3, 256 / axes[0].tile));
  }
}

std::string joined(const std::vector<std::string>& all) { return fmt::format("{}", fmt::join(all, ",")); }

/// The subscripts and extents of an operand: slower axes, and k and the fastest axis in one order or the other.
struct BoxOperand {
  std::vector<std::string> subscripts, extents;
  void add(const std::string& subscript, int64_t extent) {
    subscripts.push_back(subscript);
    extents.push_back(std::to_string(extent));
  }
};

}  // namespace

WarpgroupProduct random_boxed_product(uint64_t seed) {
  Random random(seed);
  const bool across_a = random.chance(30), across_b = random.chance(50), taps = random.chance(60);
  const bool bordered = taps && random.chance(50), batch = random.chance(30);
  const std::string type = random.chance(50) ? "float16" : "bfloat16";
  std::vector<BoxAxis> rows = {{"p"}, {"q"}, {"r"}}, columns = {{"x"}, {"y"}}, batches;
  rows.resize(static_cast<size_t>(random.range(2, 3)));
  columns.resize(random.chance(50) ? 1 : 2);
  if (batch) batches.push_back({"b", 2});
  deal_columns(random, across_b, columns);
  int64_t width = 1;
  for (const BoxAxis& axis : columns) width *= axis.tile;
  deal_rows(random, 64 * random.range(1, width > 128 ? 2 : 3), across_a, rows);
  for (std::vector<BoxAxis>* side : {&rows, &columns}) {
    for (BoxAxis& axis : *side) axis.extent = std::max<int64_t>(random.range(axis.tile / 2, axis.tile + 3), 1);
  }
  if (across_a) rows[0].extent = rows[0].extent / 8 * 8;
  if (across_b) columns[0].extent = std::max<int64_t>(columns[0].extent / 8 * 8, 8);
  const int64_t k = across_a && across_b ? random.range(64, 140) : 8 * random.range(8, 17);
  const size_t tapped = across_a ? 1 : 0;
  const int64_t l = taps ? random.range(2, 3) : 1;

  BoxOperand a, b;
  std::string guard, ranges;
  const auto range = [&](const std::string& name, int64_t extent) {
    ranges += fmt::format("{} {} in 0:{}", ranges.empty() ? " where" : ",", name, extent);
  };
  for (const BoxAxis& axis : batches) a.add(axis.name, axis.extent), b.add(axis.name, axis.extent);
  const auto add_row = [&](size_t i) {
    const BoxAxis& axis = rows[i];
    if (i > 0) range(axis.name, axis.extent);
    if (!taps || i != tapped) return a.add(axis.name, axis.extent + (i > 0 ? 1 : 0));
    if (i == 0) range(axis.name, axis.extent);
    range("l", l);
    if (!bordered) return a.add(axis.name + " + l", axis.extent + l - 1);
    a.add(axis.name + " + l - 1", axis.extent);
    guard = fmt::format("{0} + l >= 1 && {0} + l <= {1}", axis.name, axis.extent);
  };
  for (size_t i = rows.size(); i-- > 1;) add_row(i);
  if (across_a) a.add("k", k);
  add_row(0);
  if (!across_a) a.add("k", k);
  if (across_b && random.chance(50)) b.add("k", k);
  if (taps) b.add("l", l);
  // Axes that do not run through a whole dimension stay apart.
  for (size_t i = columns.size(); i-- > 1;) {
    range(columns[i].name, columns[i].extent);
    b.add(columns[i].name, columns[i].extent + 1);
  }
  if (across_b && std::count(b.subscripts.begin(), b.subscripts.end(), "k") == 0) b.add("k", k);
  b.add(columns[0].name, columns[0].extent);
  if (!across_b) b.add("k", k);

  std::vector<BoxAxis> result_axes(rows.rbegin(), rows.rend());
  result_axes.insert(result_axes.end(), columns.rbegin(), columns.rend());
  if (random.chance(40)) shuffle(random, result_axes);
  // The side of the last axis is that of the columns.
  const auto column =
      std::find_if(result_axes.begin(), result_axes.end(), [](const BoxAxis& a) { return a.name == "x"; });
  std::iter_swap(column, result_axes.end() - 1);
  result_axes.insert(result_axes.begin(), batches.begin(), batches.end());
  std::vector<std::string> indices, extents;
  std::vector<int64_t> tile, registers;
  for (const BoxAxis& axis : result_axes) {
    indices.push_back(axis.name);
    extents.push_back(std::to_string(axis.extent));
    tile.push_back(axis.tile);
    registers.push_back(axis.registers);
  }
  const std::string c = fmt::format("C({})", joined(indices)), of_a = fmt::format("A({})", joined(a.subscripts));
  WarpgroupProduct result;
  result.text =
      fmt::format("def f({0}({1}) A, {0}({2}) B, {0}({3}) s) -> ({0}({4}) C) {{\n  {5} +=! {6} * B({7}){8}\n{9}}}",
                  type, joined(a.extents), joined(b.extents), columns[0].extent, joined(extents), c,
                  guard.empty() ? of_a : fmt::format("({} ? {} : {}(0.0))", guard, of_a, type), joined(b.subscripts),
                  ranges, random.chance(30) ? fmt::format("  {0} = fmax({0} + s(x), 0)\n", c) : "");
  int64_t values = 1;
  for (const BoxAxis& axis : rows) values *= axis.tile;
  result.options = warpgroup_box(values / 64, tile, registers, random.range(2, 4));
  if ((taps || k > 64) && values * width <= 64 * 192 && random.chance(40)) {
    result.options.cluster.assign(tile.size(), 1);
    result.options.cluster.push_back(2);
  }
  return result;
}

WarpgroupProduct random_selected_product(uint64_t seed) {
  Random random(seed);
  const auto pick = [&](const std::vector<std::string>& all) { return all[random.below(all.size())]; };
  const std::string type = pick({"float16", "bfloat16"}), out = pick({type, "float32"});
  const std::string index = pick({"int32", "int64", "uint8", "int16"});
  const bool is_turned = random.chance(50), is_gated = random.chance(30), in_place = !is_gated && random.chance(30);
  const int64_t rows = random.range(20, 200);
  WarpgroupProduct result;
  result.sizes = {{"T", rows},
                  {"P", random.range(1, rows / 5)},
                  {"N", is_turned ? random.range(8, 100) : 8 * random.range(1, 16)},
                  {"K", 8 * random.range(8, 40)}};
  const std::string selection = pick({"E(t)", index == "int32" ? "(P - 1 - E(t))" : "E(t)"});
  const auto weights = [&](const char* name) {
    return fmt::format("{}({},{})", name, selection, is_turned ? "n,k" : "k,n");
  };
  const auto product = [&](const char* name) { return fmt::format("{0}(X(t,k)) * {0}({1})", out, weights(name)); };
  std::string body;
  if (is_gated) {
    body = fmt::format("  {0} A(t,n) +=! {1}\n  {0} B(t,n) +=! {2}\n  Y(t,n) = A(t,n) * fmax(B(t,n), 0)\n", out,
                       product("W"), product("G"));
  } else {
    body = fmt::format("  Y(t,n) {} {}\n", in_place ? "+=" : "+=!", product("W"));
  }
  body += pick({"", "", "  Y(t,n) = fmax(Y(t,n) + b(n), 0)\n", "  Y(t,n) *= s(t)\n"});
  const char* shape = is_turned ? "P,N,K" : "P,K,N";
  result.text = fmt::format(
      "def f({0}(T,K) X, {0}({1}) W, {0}({1}) G, {2}(T) E, {3}(N) b, {3}(T) s) -> ({3}(T,N) Y) {{\n"
      "{4}}}",
      type, shape, index, out, body);
  const int64_t columns = is_gated ? 8 * random.range(1, 12) : 8 * random.range(1, 20);
  result.options = warpgroup_tile(random.range(1, 1 + rows / 70), columns, random.range(2, 4));
  return result;
}

options::MappingOptions warpgroup_box(int64_t warpgroups, std::vector<int64_t> tile, std::vector<int64_t> registers,
                                      int64_t stages) {
  options::MappingOptions options;
  options.tile = std::move(tile);
  options.register_tile = std::move(registers);
  options.map_to_threads = {4, 32 * warpgroups, 1};
  options.copy_stages = stages;
  options.tensor_cores = true;
  return options;
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
