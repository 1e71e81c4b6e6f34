#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tc/api/explain.h"
#include "tc/api/explain_units.h"

namespace tc::api {
namespace {

using E = Explanation;

/// Options, or another text, on one line.
std::string in_a_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool is_blank = c == '\n' || c == ' ';
    if (!is_blank || (!line.empty() && line.back() != ' ')) line += is_blank ? ' ' : c;
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

std::string options_text(const E::Options& options) {
  const std::string text = in_a_line(options.text);
  if (options.origin == "hand") return fmt::format("no options: the kernel is written by hand ({})", text);
  if (options.origin == "user") return fmt::format("given: {}", text);
  if (options.origin == "cache") return fmt::format("the best that the cache knows: {}", text);
  return "chosen by the compiler";
}

std::string cache_text(const E::Cache& cache) {
  std::string text = fmt::format("{} {} the kernel", cache.file, cache.hit ? "has" : "lacks");
  if (cache.measured_us > 0) text += fmt::format(", measured at {}", time_text(cache.measured_us));
  return text;
}

std::string header_text(const E& e) {
  std::string text = e.signature + "\n";
  text += fmt::format("  for {} ({}): {}\n", e.target, e.backend, e.machine);
  text += fmt::format("  options: {}\n", options_text(e.options));
  if (e.cache) text += fmt::format("  cache: {}\n", cache_text(*e.cache));
  return text;
}

/// "m in 0:512 (M): ends by A(m,k) (R2)"
std::string index_text(const E::Index& index) {
  const std::string numbers = fmt::format("{}:{}", index.begin, index.end);
  const std::string symbols = fmt::format("{}:{}", index.begin_text, index.end_text);
  std::string text = fmt::format("    {} in {}", index.name, numbers);
  if (symbols != numbers) text += fmt::format(" ({})", symbols);
  if (index.reduces) text += ", reduced";
  const auto by = [](const E::Bound& bound) { return fmt::format("{} ({})", bound.cause, bound.rule); };
  if (index.begin_by.rule == index.end_by.rule && index.begin_by.cause == index.end_by.cause) {
    return text + fmt::format(": given by {}\n", by(index.end_by));
  }
  const bool starts_later = index.begin_by.rule != "R1";
  if (starts_later) return text + fmt::format(": starts by {}, ends by {}\n", by(index.begin_by), by(index.end_by));
  return text + fmt::format(": ends by {}\n", by(index.end_by));
}

std::string statements_text(const E& e) {
  std::string text = "statements\n";
  for (const E::Statement& s : e.statements) {
    const std::string where = s.kernel            ? e.kernels[*s.kernel].name
                              : e.kernels.empty() ? ""
                                                  : "inline: its readers compute its values";
    text += fmt::format("  {}: {}{}\n", s.id, s.text, where.empty() ? "" : fmt::format("   [{}]", where));
    if (!s.range) text += "    added by the compiler\n";
    for (const E::Index& index : s.indices) text += index_text(index);
  }
  return text;
}

std::string edges_text(const E& e) {
  if (e.edges.empty()) return "";
  static constexpr const char* kWords[] = {"inline", "in registers", "in a buffer in the cache", "in shared memory",
                                           "through memory"};
  std::string text = "values\n";
  for (const E::Edge& edge : e.edges) {
    text += fmt::format("  {} from {} to {}: {}\n", edge.tensor, edge.from, edge.to,
                        kWords[static_cast<size_t>(edge.rung)]);
  }
  return text;
}

std::string loop_text(const E::Loop& loop) {
  std::string text = fmt::format("{} {}", loop.index, loop.extent);
  for (const E::Level& level : loop.levels) text += fmt::format(", {} {}", level.name, level.size);
  return text;
}

std::string kernel_text(const E::Kernel& k) {
  std::string text = fmt::format("kernel {}: {}, runs {}\n", k.name, k.strategy, fmt::join(k.statements, ", "));
  if (k.launch) {
    const E::Launch& l = *k.launch;
    text += fmt::format(
        "  launch: grid ({}), block ({}), {} bytes of shared memory, {} barrier{}, {:.2g} waves, {:.0f} % of "
        "the threads\n",
        fmt::join(l.grid, ", "), fmt::join(l.block, ", "), l.shared_bytes, l.barriers, l.barriers == 1 ? "" : "s",
        l.waves, 100 * l.occupancy);
  }
  if (!k.options.empty()) text += fmt::format("  options: {}\n", in_a_line(k.options));
  for (const E::Tiling& tiling : k.tilings) {
    std::vector<std::string> loops;
    for (const E::Loop& loop : tiling.loops) loops.push_back(loop_text(loop));
    text += fmt::format("  tiles of {}: {}\n", fmt::join(tiling.statements, ", "), fmt::join(loops, "; "));
  }
  if (k.floor) {
    const E::Floor& f = *k.floor;
    text +=
        fmt::format("  floor: {} by {}: {} at {} is {}, {} at {} is {}\n", time_text(f.us()), f.by(),
                    operations_text(f.operations), operation_rate_text(f.operations_per_us), time_text(f.operations_us),
                    bytes_text(f.bytes), byte_rate_text(f.bytes_per_us), time_text(f.bytes_us));
  }
  if (k.estimate_us > 0) {
    std::vector<std::string> terms;
    for (const E::Term& term : k.terms) terms.push_back(fmt::format("{} {}", term.name, time_text(term.us)));
    text += fmt::format("  estimate: {}, limited by {}: {}\n", time_text(k.estimate_us), k.limited_by,
                        fmt::join(terms, ", "));
  }
  for (const E::Unfit& unfit : k.unfit) text += fmt::format("  not by '{}': {}\n", unfit.strategy, unfit.reason);
  return text;
}

std::string apart_text(const E& e) {
  if (e.apart.empty()) return "";
  std::string text = "apart\n";
  for (const E::Apart& apart : e.apart) {
    text += fmt::format("  {} | {}: {}\n", fmt::join(apart.first, ", "), fmt::join(apart.second, ", "), apart.reason);
  }
  return text;
}

std::string measurements_text(const E& e) {
  if (e.measurements.empty()) return "";
  const auto fails = std::ranges::count_if(e.measurements, [](const E::Measurement& m) { return m.us <= 0; });
  double best = 0;
  for (const E::Measurement& m : e.measurements) {
    if (m.us > 0 && (best == 0 || m.us < best)) best = m.us;
  }
  std::string text = fmt::format("measurements: {}", e.measurements.size());
  if (best > 0) text += fmt::format(", the best {}", time_text(best));
  if (fails > 0) text += fmt::format("; {} without a time", fails);
  return text + "\n";
}

}  // namespace

std::string to_text(const Explanation& e) {
  std::string text = header_text(e) + statements_text(e) + edges_text(e);
  for (const E::Kernel& kernel : e.kernels) text += kernel_text(kernel);
  text += apart_text(e);
  if (e.kernels.size() > 1) {
    text += fmt::format("all kernels: floor {}, estimate {}\n", time_text(e.floor_us()), time_text(e.estimate_us()));
  }
  return text + measurements_text(e);
}

}  // namespace tc::api
