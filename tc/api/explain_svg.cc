#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "tc/api/explain_page.h"
#include "tc/api/explain_units.h"
#include "tc/support/round.h"

namespace tc::api {
namespace {

using E = Explanation;

// --- the graph of statements ------------------------------------------------------------------------------------

constexpr int kBoxWidth = 400, kStub = 178, kLane = 14, kPort = 17, kGap = 8, kFrame = 12, kTitle = 24;
constexpr size_t kLettersOfBox = 50;

/// The first characters of a text, all bytes of each.
std::string shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80) --end;
  return text.substr(0, end) + "…";
}

class Graph {
 public:
  explicit Graph(const E& e) : e_(e) {}

  std::string svg() {
    place();
    std::string body = frames_ + boxes();
    for (size_t i = 0; i < e_.edges.size(); ++i) body += edge(i);
    const int width = 2 * kFrame + kBoxWidth + kStub + kLane * (static_cast<int>(lanes_.size()) + 1);
    return fmt::format(
        "<svg class=\"graph\" role=\"img\" aria-label=\"statements and values\" width=\"{}\" height=\"{}\" "
        "viewBox=\"0 0 {} {}\">{}</svg>",
        width, bottom_, width, bottom_, body);
  }

 private:
  struct Box {
    int top = 0, height = 0;
    int ports = 0;  ///< used
  };

  int ports_of(const std::string& id) const {
    return static_cast<int>(
        std::ranges::count_if(e_.edges, [&](const E::Edge& e) { return e.from == id || e.to == id; }));
  }

  /// Frames one below the other: of statements without a kernel, then of kernels.
  void place() {
    const auto is_inline = [](const E::Statement& s) { return !s.kernel; };
    if (!e_.kernels.empty() && std::ranges::any_of(e_.statements, is_inline)) {
      frame("none", "inline · their readers compute the values", std::nullopt);
    }
    for (size_t k = 0; k < e_.kernels.size(); ++k) {
      frame(kernel_class(k), fmt::format("{} · {}", e_.kernels[k].name, e_.kernels[k].strategy), k);
    }
    if (e_.kernels.empty()) frame("none", "no kernel is known", std::nullopt);
  }

  void frame(const std::string& kind, const std::string& title, std::optional<size_t> kernel) {
    const int top = bottom_ + kFrame / 2;
    int y = top + kTitle;
    for (const E::Statement& s : e_.statements) {
      if (s.kernel != kernel) continue;
      const int height = std::max(30, kPort * ports_of(s.id) + 8);
      boxes_[s.id] = {y, height, 0};
      y += height + kGap;
    }
    frames_ += fmt::format(
        "<g class=\"frame {}\"><rect x=\"1\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"8\"/><text x=\"{}\" y=\"{}\">{}"
        "</text></g>",
        kind, top, kBoxWidth + 2 * kFrame, y - top, kFrame, top + 16, escaped(title));
    bottom_ = y + kFrame / 2;
  }

  std::string boxes() const {
    std::string out;
    for (const E::Statement& s : e_.statements) {
      const Box& box = boxes_.at(s.id);
      const std::string shown = shortened(s.text, kLettersOfBox - std::min(s.id.size() + 1, size_t{24}));
      out += fmt::format(
          "<g class=\"statement{}\"><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
          "rx=\"5\"/><text x=\"{}\" y=\"{}\"><tspan class=\"id\">{}</tspan> {}</text></g>",
          s.range ? "" : " added", escaped(s.text), kFrame, box.top, kBoxWidth, box.height, kFrame + 10,
          box.top + box.height / 2 + 4, escaped(s.id), escaped(shown));
    }
    return out;
  }

  int port(const std::string& id) {
    Box& box = boxes_.at(id);
    const int all = ports_of(id);
    return box.top + box.height / 2 + static_cast<int>(kPort * (box.ports++ - (all - 1) / 2.0));
  }

  /// The first lane that is free between two heights.
  int lane(int from, int to) {
    const auto [low, high] = std::minmax(from, to);
    for (size_t l = 0;; ++l) {
      if (l == lanes_.size()) lanes_.emplace_back();
      const bool is_free =
          std::ranges::all_of(lanes_[l], [&](const auto& taken) { return high < taken.first || low > taken.second; });
      if (!is_free) continue;
      lanes_[l].emplace_back(low, high);
      return static_cast<int>(l);
    }
  }

  std::string edge(size_t number) {
    const E::Edge& e = e_.edges[number];
    const int from = port(e.from), to = port(e.to);
    const int right = kFrame + kBoxWidth, x = right + kStub + kLane * lane(from, to);
    const int turn = from < to ? 6 : -6;
    const std::string path =
        fmt::format("M{} {}H{}q6 0 6 {}V{}q0 {} -6 {}H{}", right, from, x - 6, turn, to - turn, turn, turn, right + 8);
    const std::string word = name_of(e.rung);
    return fmt::format(
        "<g class=\"edge {}\"><title>{} from {} to {}: {}</title><path d=\"{}\"/><path class=\"head\" "
        "d=\"M{} {}l8 -4v8z\"/><text x=\"{}\" y=\"{}\">{} · {}</text></g>",
        word, escaped(e.tensor), escaped(e.from), escaped(e.to), word, path, right, to, right + 14, to - 4,
        escaped(shortened(e.tensor, 12)), word);
  }

  const E& e_;
  std::map<std::string, Box> boxes_;
  std::vector<std::vector<std::pair<int, int>>> lanes_;  ///< heights that edges take there
  std::string frames_;
  int bottom_ = 0;
};

// --- tiles ------------------------------------------------------------------------------------------------------

constexpr double kPanelWidth = 200, kPanelHeight = 150, kStrip = 22;
constexpr int64_t kMostTiles = 1024;

/// A rectangle that is cut into tiles; columns run to the right. One without rows is a strip.
struct Panel {
  std::string name;
  int64_t rows = 1, columns = 1;            ///< of the whole
  int64_t tile_rows = 1, tile_columns = 1;  ///< of a tile
  bool is_strip = false;
};

std::string sizes_text(const Panel& p, int64_t rows, int64_t columns) {
  return p.is_strip ? fmt::format("{}", columns) : fmt::format("{} × {}", rows, columns);
}

/// All tiles, the first one marked; so many that they could not be told apart are a pattern of the same sizes.
std::string tiles_of(const Panel& p, double x_scale, double y_scale) {
  const int64_t down = ceil_div(p.rows, p.tile_rows), across = ceil_div(p.columns, p.tile_columns);
  const double width = static_cast<double>(p.columns) * x_scale, height = static_cast<double>(p.rows) * y_scale;
  const double tile_width = static_cast<double>(p.tile_columns) * x_scale;
  const double tile_height = static_cast<double>(p.tile_rows) * y_scale;
  const auto rect = [](const char* kind, double x, double y, double w, double h) {
    return fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>", kind, x + 1,
                       y + 1, w, h);
  };
  std::string out = rect("whole", 0, 0, width, height);
  if (down * across > kMostTiles) {
    const std::string id = fmt::format("tiles_{}_{}_{}_{}", p.rows, p.columns, p.tile_rows, p.tile_columns);
    out += fmt::format(
        "<defs><pattern id=\"{}\" width=\"{:.3f}\" height=\"{:.3f}\" x=\"1\" y=\"1\" "
        "patternUnits=\"userSpaceOnUse\"><rect class=\"tile\" width=\"{:.3f}\" height=\"{:.3f}\"/>"
        "</pattern></defs><rect x=\"1\" y=\"1\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"url(#{})\"/>",
        id, tile_width, tile_height, tile_width, tile_height, width, height, id);
  } else {
    for (int64_t r = 0; r < down; ++r) {
      for (int64_t c = 0; c < across; ++c) {
        const double x = static_cast<double>(c) * tile_width, y = static_cast<double>(r) * tile_height;
        out += rect("tile", x, y, std::min(tile_width, width - x), std::min(tile_height, height - y));
      }
    }
  }
  return out + rect("first", 0, 0, std::min(tile_width, width), std::min(tile_height, height));
}

std::string panel_html(const Panel& p) {
  double x_scale = kPanelWidth / static_cast<double>(p.columns);
  double y_scale = p.is_strip ? kStrip : kPanelHeight / static_cast<double>(p.rows);
  constexpr double kLongest = 8;  // one side by the other, before each has a scale of its own
  bool is_to_scale = true;
  if (!p.is_strip) {
    const double ratio = static_cast<double>(p.columns) / static_cast<double>(p.rows);
    is_to_scale = ratio <= kLongest && ratio >= 1 / kLongest;
    if (is_to_scale) x_scale = y_scale = std::min(x_scale, y_scale);
    if (ratio > kLongest) y_scale = kPanelWidth / kLongest / static_cast<double>(p.rows);
    if (ratio < 1 / kLongest) x_scale = kPanelHeight / kLongest / static_cast<double>(p.columns);
  }
  const double width = static_cast<double>(p.columns) * x_scale, height = static_cast<double>(p.rows) * y_scale;
  const int64_t count = ceil_div(p.rows, p.tile_rows) * ceil_div(p.columns, p.tile_columns);
  return fmt::format(
      "<figure><svg class=\"tiles\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "role=\"img\" aria-label=\"{2}\">{3}</svg><figcaption><b>{2}</b> {4}: {5} of {6}{7}</figcaption></figure>",
      width + 2, height + 2, escaped(p.name), tiles_of(p, x_scale, y_scale), sizes_text(p, p.rows, p.columns), count,
      sizes_text(p, p.tile_rows, p.tile_columns), is_to_scale ? "" : " (sides not to one scale)");
}

/// The size of a loop's tile at a level, or that of the nearest level outside of it; a vector goes along one loop.
int64_t size_at(const E::Loop& loop, const std::vector<std::string>& levels, size_t level) {
  const auto is_vector = [](const E::Level& known) { return known.name == "vector"; };
  if (levels[level] == "vector" && std::ranges::none_of(loop.levels, is_vector)) return 1;
  int64_t size = loop.extent;
  for (size_t l = 0; l <= level; ++l) {
    for (const E::Level& known : loop.levels) {
      if (known.name == levels[l]) size = std::min(size, known.size);
    }
  }
  return std::max<int64_t>(size, 1);
}

/// The two loops to draw, rows first: the last two that are cut, else the last two.
std::vector<const E::Loop*> loops_to_draw(const E::Tiling& tiling) {
  std::vector<const E::Loop*> cut, others;
  for (const E::Loop& loop : tiling.loops) {
    if (loop.reduces || loop.extent <= 1) continue;
    const bool is_cut = std::ranges::any_of(loop.levels, [](const E::Level& level) { return level.size > 1; });
    (is_cut ? cut : others).push_back(&loop);
  }
  while (cut.size() < 2 && !others.empty()) {
    cut.insert(cut.begin(), others.back());
    others.pop_back();
  }
  if (cut.size() > 2) cut.erase(cut.begin(), cut.end() - 2);
  std::ranges::sort(cut);  // in the order of the loops
  return cut;
}

std::vector<std::string> levels_of(const std::vector<const E::Loop*>& loops) {
  static constexpr const char* kOrder[] = {"block", "thread", "step", "core", "tile", "registers", "vector"};
  std::vector<std::string> levels;
  for (const char* name : kOrder) {
    const bool any = std::ranges::any_of(loops, [&](const E::Loop* loop) {
      return std::ranges::any_of(loop->levels, [&](const E::Level& level) { return level.name == name; });
    });
    if (any) levels.emplace_back(name);
  }
  return levels;
}

std::string panels_of(const std::vector<const E::Loop*>& loops) {
  const std::vector<std::string> levels = levels_of(loops);
  const bool is_strip = loops.size() == 1;
  const E::Loop &columns = *loops.back(), &rows = *loops.front();
  std::string out;
  int64_t whole_rows = is_strip ? 1 : rows.extent, whole_columns = columns.extent;
  std::string of = is_strip ? columns.index : fmt::format("{}, {}", rows.index, columns.index);
  for (size_t l = 0; l < levels.size(); ++l) {
    const int64_t tile_rows = is_strip ? 1 : size_at(rows, levels, l), tile_columns = size_at(columns, levels, l);
    if (tile_rows == whole_rows && tile_columns == whole_columns) continue;
    out += panel_html(
        {fmt::format("{} of {}", levels[l], of), whole_rows, whole_columns, tile_rows, tile_columns, is_strip});
    of = levels[l];
    whole_rows = tile_rows;
    whole_columns = tile_columns;
  }
  return out;
}

}  // namespace

std::string graph_svg(const Explanation& explanation) { return Graph(explanation).svg(); }

std::string tiles_html(const E::Tiling& tiling) {
  std::string out;
  if (const auto loops = loops_to_draw(tiling); !loops.empty()) out += panels_of(loops);
  for (const E::Loop& loop : tiling.loops) {
    if (loop.reduces && loop.extent > 1) out += panels_of({&loop});
  }
  return out;
}

std::string history_svg(const std::vector<E::Measurement>& measurements) {
  constexpr double kWidth = 720, kHeight = 220, kLeft = 64, kEdge = 14, kFailed = 16;
  double least = 0, most = 0;
  for (const E::Measurement& m : measurements) {
    if (m.us <= 0) continue;
    least = least == 0 ? m.us : std::min(least, m.us);
    most = std::max(most, m.us);
  }
  if (least == 0) return "";
  const double factors = std::max(std::log(most / least), 1e-3);
  const auto x = [&](size_t i) {
    const auto last = static_cast<double>(std::max<size_t>(measurements.size(), 2) - 1);
    return kLeft + (kWidth - kLeft - kEdge) * static_cast<double>(i) / last;
  };
  const auto y = [&](double us) {
    return kHeight - kEdge - (kHeight - 2 * kEdge - kFailed) * std::log(us / least) / factors;
  };
  std::string dots, line;
  double best = 0;
  for (size_t i = 0; i < measurements.size(); ++i) {
    const E::Measurement& m = measurements[i];
    const std::string title = escaped(m.options.empty() ? "chosen by the compiler" : m.options);
    if (m.us <= 0) {
      dots += fmt::format("<text class=\"failed\" x=\"{:.1f}\" y=\"{}\"><title>{}: {}</title>×</text>", x(i), kEdge,
                          escaped(m.outcome), title);
      continue;
    }
    dots += fmt::format(
        "<circle class=\"measurement\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\"><title>{}: {}</title></circle>", x(i),
        y(m.us), time_text(m.us), title);
    if (best > 0) line += fmt::format("{:.1f},{:.1f} ", x(i), y(best));
    best = best == 0 ? m.us : std::min(best, m.us);
    line += fmt::format("{:.1f},{:.1f} ", x(i), y(best));
  }
  return fmt::format(
      "<svg class=\"history\" role=\"img\" aria-label=\"measured times\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
      "{0} {1}\">"
      "<line class=\"axis\" x1=\"{2}\" y1=\"{3:.1f}\" x2=\"{4}\" y2=\"{3:.1f}\"/><line class=\"axis\" x1=\"{2}\" "
      "y1=\"{5:.1f}\" "
      "x2=\"{4}\" y2=\"{5:.1f}\"/><text class=\"axis\" x=\"{6}\" y=\"{3:.1f}\" dy=\"4\">{7}</text><text class=\"axis\" "
      "x=\"{6}\" "
      "y=\"{5:.1f}\" dy=\"4\">{8}</text><polyline class=\"best\" points=\"{9}\"/>{10}</svg>",
      kWidth, kHeight, kLeft, y(least), kWidth - kEdge, y(most), kLeft - 6, time_text(least), time_text(most), line,
      dots);
}

}  // namespace tc::api
