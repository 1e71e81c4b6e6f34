#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tc/api/explain.h"
#include "tc/api/explain_page.h"
#include "tc/api/explain_units.h"
#include "tc/api/tc.h"

namespace tc::api {
namespace {

using E = Explanation;

/// Light and dark, as the reader's system is. Rungs go from green, near, to red, far.
constexpr const char* kStyle = R"(
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1b2330; --soft: #5b6677; --line: #dde2ea; --code: #fafbfc; --accent: #2f6fde;
  --keyword: #8430ce; --type: #0b6e99; --number: #a05a00; --comment: #78828f;
  --inline: #7c8797; --register: #1f9d55; --cache: #0f9aa8; --shared: #2f6fde; --memory: #d9480f;
  --k0: #2f6fde; --k1: #1f9d55; --k2: #b5651d; --k3: #9c36b5; --k4: #0f9aa8; --k5: #d6336c; }
@media (prefers-color-scheme: dark) { :root {
  --page: #12151b; --card: #1a1f28; --ink: #e4e9f1; --soft: #9aa6b8; --line: #2d3542; --code: #151a22; --accent: #7aa7f7;
  --keyword: #c792ea; --type: #6cc7e8; --number: #e5b567; --comment: #7d8899;
  --inline: #8e99aa; --register: #4fc47f; --cache: #45c4d0; --shared: #7aa7f7; --memory: #ff8a5c;
  --k0: #7aa7f7; --k1: #4fc47f; --k2: #e0a15e; --k3: #d291e8; --k4: #45c4d0; --k5: #f58bb2; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1480px; margin: 0 auto; padding: 24px; }
h1 { font-size: 26px; margin: 0; } h2 { font-size: 18px; margin: 0 0 12px; } h3 { font-size: 16px; margin: 0 0 6px; }
code, pre, .mono { font: 13px/1.55 ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, monospace; }
header .mono { color: var(--soft); overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px; margin-top: 18px; }
.chips { display: flex; flex-wrap: wrap; gap: 8px; margin: 12px 0 0; padding: 0; list-style: none; }
.chips li { background: var(--card); border: 1px solid var(--line); border-radius: 999px; padding: 3px 12px; color: var(--soft); max-width: 100%; overflow-wrap: anywhere; }
.chips b { color: var(--ink); font-weight: 600; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 18px; align-items: start; }
@media (max-width: 1050px) { .columns { grid-template-columns: minmax(0, 1fr); } }
.scroll { overflow: auto; } pre { margin: 0; background: var(--code); border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px; overflow: auto; tab-size: 2; }
.code pre { max-height: 86vh; } .code { position: sticky; top: 12px; } @media (max-width: 1050px) { .code { position: static; } }
.source pre { padding: 10px 0; } .line { display: block; padding-right: 12px; } .line.other { opacity: .5; }
.line i { display: inline-block; width: 34px; text-align: right; color: var(--comment); font-style: normal; user-select: none; }
.line em { display: inline-block; width: 46px; padding-left: 8px; font-style: normal; user-select: none; } .line b { margin-right: 4px; }
.keyword { color: var(--keyword); } .type { color: var(--type); } .number { color: var(--number); } .comment { color: var(--comment); }
table { border-collapse: collapse; width: 100%; } th { text-align: left; color: var(--soft); font-weight: 500; font-size: 13px; }
th, td { padding: 4px 12px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; } tr:last-child td { border-bottom: 0; }
.soft { color: var(--soft); } p { margin: 6px 0; }
.k0 { color: var(--k0); } .k1 { color: var(--k1); } .k2 { color: var(--k2); } .k3 { color: var(--k3); } .k4 { color: var(--k4); } .k5 { color: var(--k5); } .none { color: var(--soft); }
svg { max-width: 100%; height: auto; } svg text { font: 12.5px ui-monospace, "SF Mono", "DejaVu Sans Mono", monospace; fill: var(--ink); }
.graph .frame rect { fill: none; stroke: currentColor; stroke-width: 1.4; } .graph .frame text { fill: currentColor; font-weight: 600; }
.graph .statement rect { fill: var(--code); stroke: var(--line); } .graph .statement .id { font-weight: 700; } .graph .added text { fill: var(--soft); }
.edge path { fill: none; stroke: currentColor; stroke-width: 1.7; } .edge .head { fill: currentColor; stroke: none; } .edge text { fill: currentColor; font-size: 12px; }
.edge.inline path:not(.head) { stroke-dasharray: 2 3; } .edge.memory path:not(.head) { stroke-width: 2.4; }
.inline { color: var(--inline); } .register { color: var(--register); } .cache { color: var(--cache); } .shared { color: var(--shared); } .memory { color: var(--memory); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 0 0 10px; padding: 0; list-style: none; } .legend li::before { content: ""; display: inline-block; width: 18px; height: 0; border-top: 3px solid currentColor; vertical-align: 4px; margin-right: 6px; }
.kernel { border-left: 4px solid currentColor; padding-left: 14px; margin-top: 22px; } .kernel:first-of-type { margin-top: 0; } .kernel > * { color: var(--ink); } .kernel h3 { color: inherit; }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 2px 14px; margin: 6px 0 10px; } .facts dt { color: var(--soft); } .facts dd { margin: 0; overflow-wrap: anywhere; }
.bars { display: grid; grid-template-columns: max-content minmax(0, 1fr) max-content; gap: 3px 10px; align-items: center; margin: 8px 0 12px; font-size: 13px; }
.bars i { display: block; height: 11px; min-width: 2px; border-radius: 3px; background: var(--soft); opacity: .45; } .bars .binds { background: var(--memory); opacity: 1; } .bars .total { background: var(--accent); opacity: 1; } .bars .floor { background: var(--register); opacity: 1; }
.bars span:nth-child(3n) { text-align: right; color: var(--soft); }
.panels { display: flex; flex-wrap: wrap; gap: 14px 22px; margin: 8px 0; } figure { margin: 0; max-width: 230px; } figcaption { font-size: 12.5px; color: var(--soft); } figcaption b { color: var(--ink); font-weight: 600; }
.tiles .whole { fill: var(--code); stroke: none; } .tiles .tile { fill: none; stroke: var(--soft); stroke-width: .6; } .tiles .first { fill: var(--accent); fill-opacity: .55; stroke: var(--accent); stroke-width: 1; }
.tree ul { list-style: none; margin: 0; padding-left: 18px; border-left: 1px solid var(--line); } .tree > ul { border: 0; padding: 0; } .tree li { white-space: pre-wrap; overflow-wrap: anywhere; } .tree summary { cursor: pointer; } .tree .mark { color: var(--keyword); font-weight: 600; }
details > summary { cursor: pointer; } details > summary h2 { display: inline; } section > details[open] > summary { margin-bottom: 12px; }
.history .measurement { fill: var(--accent); fill-opacity: .55; } .history .best { fill: none; stroke: var(--register); stroke-width: 2; } .history line.axis { stroke: var(--line); } .history text.axis { text-anchor: end; fill: var(--soft); } .history .failed { fill: var(--memory); text-anchor: middle; }
footer { color: var(--soft); font-size: 13px; margin-top: 18px; }
)";

std::string in_a_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool is_blank = c == '\n' || c == ' ';
    if (!is_blank || (!line.empty() && line.back() != ' ')) line += is_blank ? ' ' : c;
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

std::string chip(const std::string& name, const std::string& value) {
  return fmt::format("<li>{} <b>{}</b></li>", escaped(name), escaped(value));
}

std::string options_text(const E::Options& options) {
  if (options.origin == "compiler") return "chosen by the compiler";
  const char* const by = options.origin == "user"    ? "given: "
                         : options.origin == "cache" ? "the best of the cache: "
                                                     : "written by hand: ";
  return by + in_a_line(options.text);
}

std::string header_html(const E& e) {
  std::string chips = chip("for", fmt::format("{} ({})", e.target, e.backend)) + chip("with", e.machine);
  for (const auto& [name, value] : e.sizes) chips += chip(name, fmt::format("= {}", value));
  for (const auto& [name, value] : e.scalars) chips += chip(name, fmt::format("= {}", value));
  chips += chip("options", options_text(e.options));
  if (e.cache) {
    chips += chip("cache", fmt::format("{}: {}", e.cache->file, e.cache->hit ? "hit" : "miss"));
    if (e.cache->measured_us > 0) chips += chip("measured", time_text(e.cache->measured_us));
  }
  if (e.floor_us() > 0) chips += chip("floor", time_text(e.floor_us()));
  if (e.estimate_us() > 0) chips += chip("estimate", time_text(e.estimate_us()));
  return fmt::format("<header><h1>{}</h1><div class=\"mono\">{}</div><ul class=\"chips\">{}</ul></header>",
                     escaped(e.entry), escaped(e.signature), chips);
}

std::string ranges_html(const E& e) {
  std::string rows;
  for (const E::Statement& s : e.statements) {
    const std::string kind = s.kernel ? kernel_class(*s.kernel) : "none";
    std::string name = fmt::format("<b class=\"{}\">{}</b>", kind, escaped(s.id));
    for (const E::Index& i : s.indices) {
      const bool is_plain = fmt::format("{}", i.end) == i.end_text && fmt::format("{}", i.begin) == i.begin_text;
      const bool starts_later = i.begin_by.rule != "R1" && i.begin_by.rule != i.end_by.rule;
      rows += fmt::format(
          "<tr><td>{}</td><td>{}{}</td><td>{}:{}{}</td><td>{}{} <span class=\"soft\">({})</span></td></tr>",
          std::exchange(name, ""), escaped(i.name), i.reduces ? " <span class=\"soft\">reduced</span>" : "", i.begin,
          i.end,
          is_plain ? "" : fmt::format(" <span class=\"soft\">{}:{}</span>", escaped(i.begin_text), escaped(i.end_text)),
          starts_later ? fmt::format("starts by {}, ends by ", escaped(i.begin_by.cause)) : "", escaped(i.end_by.cause),
          escaped(i.end_by.rule));
    }
  }
  return fmt::format(
      "<table class=\"mono\"><thead><tr><th></th><th>index</th><th>range</th><th>set by</th></tr></thead>"
      "<tbody>{}</tbody></table>",
      rows);
}

std::string source_html(const E& e) {
  return fmt::format(
      "<section id=\"source\"><h2>Source and ranges</h2><div class=\"columns\"><div class=\"source\"><pre>"
      "{}</pre></div><div class=\"scroll\">{}</div></div></section>",
      coloured_source(e), ranges_html(e));
}

std::string graph_html(const E& e) {
  std::string legend;
  const std::pair<Rung, const char*> rungs[] = {{Rung::kInline, "inline: computed again by each reader"},
                                                {Rung::kRegister, "register"},
                                                {Rung::kCache, "cache: a small buffer"},
                                                {Rung::kShared, "shared memory of a block"},
                                                {Rung::kMemory, "memory"}};
  for (const auto& [rung, words] : rungs) {
    const bool any = std::ranges::any_of(e.edges, [rung = rung](const E::Edge& edge) { return edge.rung == rung; });
    if (any) legend += fmt::format("<li class=\"{}\">{}</li>", name_of(rung), words);
  }
  std::string apart;
  for (const E::Apart& a : e.apart) {
    apart +=
        fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>", escaped(fmt::format("{}", fmt::join(a.first, ", "))),
                    escaped(fmt::format("{}", fmt::join(a.second, ", "))), escaped(a.reason));
  }
  if (!apart.empty()) {
    apart = fmt::format(
        "<h3>Why kernels are apart</h3><table id=\"apart\"><thead><tr><th>first</th><th>second</th><th>reason"
        "</th></tr></thead><tbody>{}</tbody></table>",
        apart);
  }
  return fmt::format(
      "<section id=\"graph\"><h2>Where values wait</h2><div class=\"{}\"><div><ul class=\"legend\">{}</ul>"
      "<div class=\"scroll\">{}</div></div><div>{}</div></div></section>",
      apart.empty() ? "" : "columns", legend, graph_svg(e), apart);
}

std::string bars_html(const E::Kernel& k) {
  struct Bar {
    std::string name;
    double us;
    const char* kind;
    std::string remark{};
  };
  std::vector<Bar> bars;
  if (k.floor) {
    const E::Floor& f = *k.floor;
    const bool by_bytes = f.bytes_us >= f.operations_us;
    bars.push_back({"floor: operations", f.operations_us, by_bytes ? "" : "floor",
                    fmt::format("{} at {}", operations_text(f.operations), operation_rate_text(f.operations_per_us))});
    bars.push_back({"floor: bytes", f.bytes_us, by_bytes ? "floor" : "",
                    fmt::format("{} at {}", bytes_text(f.bytes), byte_rate_text(f.bytes_per_us))});
  }
  if (k.estimate_us > 0) bars.push_back({"estimate", k.estimate_us, "total", "limited by " + k.limited_by});
  for (const E::Term& t : k.terms) bars.push_back({t.name, t.us, t.name == k.limited_by ? "binds" : ""});
  double most = 1e-9;
  for (const Bar& bar : bars) most = std::max(most, bar.us);
  std::string out;
  for (const Bar& bar : bars) {
    out += fmt::format("<span>{}</span><span><i class=\"{}\" style=\"width:{:.1f}%\"></i></span><span>{}{}</span>",
                       escaped(bar.name), bar.kind, 100 * bar.us / most, time_text(bar.us),
                       bar.remark.empty() ? "" : " · " + escaped(bar.remark));
  }
  return out.empty() ? "" : fmt::format("<div class=\"bars\">{}</div>", out);
}

std::string fact(const char* name, const std::string& value) {
  return value.empty() ? "" : fmt::format("<dt>{}</dt><dd>{}</dd>", name, escaped(value));
}

std::string kernel_html(const E::Kernel& k, size_t number) {
  std::string facts =
      fact("statements", fmt::format("{}", fmt::join(k.statements, ", "))) + fact("strategy", k.strategy);
  for (const E::Unfit& unfit : k.unfit) facts += fact("why not", fmt::format("'{}': {}", unfit.strategy, unfit.reason));
  facts += fact("options", in_a_line(k.options));
  if (k.launch) {
    const E::Launch& l = *k.launch;
    facts +=
        fact("launch",
             fmt::format("grid ({}), block ({}), {} bytes of shared memory, {} barriers, {:.2g} waves, {:.0f} % of "
                         "the threads",
                         fmt::join(l.grid, ", "), fmt::join(l.block, ", "), l.shared_bytes, l.barriers, l.waves,
                         100 * l.occupancy));
  }
  std::string tiles;
  for (const E::Tiling& tiling : k.tilings) {
    const std::string panels = tiles_html(tiling);
    if (panels.empty()) continue;
    if (k.tilings.size() > 1)
      tiles += fmt::format("<p class=\"soft\">{}</p>", escaped(fmt::format("{}", fmt::join(tiling.statements, ", "))));
    tiles += fmt::format("<div class=\"panels\">{}</div>", panels);
  }
  return fmt::format("<div class=\"kernel {}\"><h3>{}</h3><dl class=\"facts\">{}</dl>{}{}</div>", kernel_class(number),
                     escaped(k.name), facts, bars_html(k), tiles);
}

std::string kernels_html(const E& e) {
  if (e.kernels.empty()) return "";
  std::string kernels;
  for (size_t k = 0; k < e.kernels.size(); ++k) kernels += kernel_html(e.kernels[k], k);
  const char* const what = e.language == "cuda" ? "CUDA" : e.language == "tile" ? "tile program" : "loops";
  return fmt::format(
      "<section id=\"kernels\"><div class=\"columns\"><div><h2>Kernels</h2>{}</div><div class=\"code\"><h2>Generated "
      "code: {}</h2><pre id=\"code\">{}</pre></div></div></section>",
      kernels, what, coloured_code(e.code, e.language));
}

/// Lines and their depths as lists in lists.
class Tree {
 public:
  explicit Tree(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const size_t begin = std::min(text.find_first_not_of(' ', at), end);
      if (begin < end) lines_.push_back({(begin - at) / 2, text.substr(begin, end - begin)});
      at = end + 1;
    }
  }

  std::string html() { return list(0); }

 private:
  struct Line {
    size_t depth;
    std::string text;
  };

  std::string list(size_t depth) {
    std::string items;
    while (at_ < lines_.size() && lines_[at_].depth >= depth) {
      const Line& line = lines_[at_++];
      const bool has_more = at_ < lines_.size() && lines_[at_].depth > line.depth;
      const bool is_mark = line.text.find_first_of(": [(") == std::string::npos || line.text.starts_with("band");
      const std::string text =
          is_mark ? fmt::format("<span class=\"mark\">{}</span>", escaped(line.text)) : escaped(line.text);
      items += has_more
                   ? fmt::format("<li><details open><summary>{}</summary>{}</details></li>", text, list(line.depth + 1))
                   : fmt::format("<li>{}</li>", text);
    }
    return fmt::format("<ul>{}</ul>", items);
  }

  std::vector<Line> lines_;
  size_t at_ = 0;
};

std::string schedule_html(const E& e) {
  if (e.schedule.empty()) return "";
  return fmt::format(
      "<section id=\"schedule\"><details open><summary><h2>Schedule tree</h2></summary><div class=\"tree mono\">{}"
      "</div></details></section>",
      Tree(e.schedule).html());
}

std::string history_html(const E& e) {
  if (e.measurements.empty()) return "";
  return fmt::format(
      "<section id=\"history\"><h2>Measurements</h2>{}<p class=\"soft\">{} measured, in the order of their "
      "dates; the line is the best so far. Upwards is slower, by factors; × has no time.</p></section>",
      history_svg(e.measurements), e.measurements.size());
}

}  // namespace

std::string to_html(const Explanation& e) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><title>{} · tensorc explain</title><link rel=\"icon\" "
      "href=\"data:,\"><style>{}</style></head>\n<body><main>{}{}{}{}{}{}<footer>tensorc {}</footer></main></body>"
      "</html>\n",
      escaped(e.entry), kStyle, header_html(e), source_html(e), graph_html(e), kernels_html(e), schedule_html(e),
      history_html(e), version());
}

}  // namespace tc::api
