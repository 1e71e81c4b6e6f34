#include <fmt/format.h>

#include "tc/api/explain.h"
#include "tc/support/json.h"

namespace tc::api {
namespace {

using E = Explanation;

constexpr int kVersion = 1;  // of the schema

std::string boolean(bool value) { return value ? "true" : "false"; }
std::string number(int64_t value) { return fmt::format("{}", value); }
std::string real(double value) { return fmt::format("{:.6g}", value); }

/// null where there is no value.
std::string real_or_null(double value) { return value > 0 ? real(value) : "null"; }
std::string string_or_null(const std::string& text) { return text.empty() ? "null" : json_string(text); }

template <typename List, typename Write>
std::string list_of(const List& values, Write write) {
  std::vector<std::string> list;
  for (const auto& value : values) list.push_back(write(value));
  return json_array(list);
}

std::string strings(const std::vector<std::string>& texts) { return list_of(texts, json_string); }

std::string numbers(const std::vector<std::pair<std::string, int64_t>>& values) {
  std::vector<std::pair<std::string, std::string>> members;
  for (const auto& [name, value] : values) members.emplace_back(name, number(value));
  return json_object(members);
}

class Writer {
 public:
  explicit Writer(const E& e) : e_(e), source_(e.file, e.text) {}

  std::string json() const {
    return json_object({{"version", number(kVersion)},
                        {"def", json_string(e_.entry)},
                        {"signature", json_string(e_.signature)},
                        {"backend", json_string(e_.backend)},
                        {"target", json_string(e_.target)},
                        {"machine", json_string(e_.machine)},
                        {"file", json_string(e_.file)},
                        {"range", range(e_.def)},
                        {"sizes", numbers(e_.sizes)},
                        {"scalars", numbers(e_.scalars)},
                        {"options", json_object({{"origin", json_string(e_.options.origin)},
                                                 {"text", json_string(e_.options.text)}})},
                        {"cache", cache()},
                        {"statements", in_lines(e_.statements, [this](const E::Statement& s) { return statement(s); })},
                        {"values", in_lines(e_.edges, edge)},
                        {"kernels", in_lines(e_.kernels, kernel)},
                        {"apart", in_lines(e_.apart, apart)},
                        {"floor_us", real_or_null(e_.floor_us())},
                        {"estimate_us", real_or_null(e_.estimate_us())},
                        {"measurements", in_lines(e_.measurements, measurement)},
                        {"schedule", json_string(e_.schedule)},
                        {"language", string_or_null(e_.language)},
                        {"code", json_string(e_.code)}}) +
           "\n";
  }

 private:
  /// A list with a line for each value.
  template <typename List, typename Write>
  static std::string in_lines(const List& values, Write write) {
    return list_of(values, [&](const auto& value) { return "\n  " + write(value); });
  }

  std::string place(uint32_t offset) const {
    const LineColumn at = source_.position(offset);
    return fmt::format(R"({{"offset": {}, "line": {}, "column": {}}})", offset, at.line, at.column);
  }

  std::string range(const SourceRange& range) const {
    return json_object({{"begin", place(range.begin)}, {"end", place(range.end)}});
  }

  std::string bound(const E::Bound& bound) const {
    return json_object({{"rule", json_string(bound.rule)},
                        {"cause", json_string(bound.cause)},
                        {"reads", list_of(bound.reads, [this](const SourceRange& r) { return range(r); })}});
  }

  std::string index(const E::Index& i) const {
    return json_object({{"name", json_string(i.name)},
                        {"kind", json_string(i.reduces ? "reduce" : "map")},
                        {"begin", json_string(i.begin_text)},
                        {"begin_value", number(i.begin)},
                        {"end", json_string(i.end_text)},
                        {"end_value", number(i.end)},
                        {"begin_by", bound(i.begin_by)},
                        {"end_by", bound(i.end_by)}});
  }

  std::string statement(const E::Statement& s) const {
    return json_object({{"id", json_string(s.id)},
                        {"text", json_string(s.text)},
                        {"range", s.range ? range(*s.range) : "null"},
                        {"kernel", s.kernel ? json_string(e_.kernels[*s.kernel].name) : "null"},
                        {"indices", list_of(s.indices, [this](const E::Index& i) { return index(i); })}});
  }

  std::string cache() const {
    if (!e_.cache) return "null";
    return json_object({{"file", json_string(e_.cache->file)},
                        {"hit", boolean(e_.cache->hit)},
                        {"measured_us", real_or_null(e_.cache->measured_us)}});
  }

  static std::string edge(const E::Edge& edge) {
    return json_object({{"tensor", json_string(edge.tensor)},
                        {"from", json_string(edge.from)},
                        {"to", json_string(edge.to)},
                        {"rung", json_string(name_of(edge.rung))}});
  }

  static std::string level(const E::Level& level) {
    return json_object({{"name", json_string(level.name)}, {"size", number(level.size)}});
  }

  static std::string loop(const E::Loop& loop) {
    return json_object({{"index", json_string(loop.index)},
                        {"extent", number(loop.extent)},
                        {"reduces", boolean(loop.reduces)},
                        {"levels", list_of(loop.levels, level)}});
  }

  static std::string tiling(const E::Tiling& tiling) {
    return json_object({{"statements", strings(tiling.statements)}, {"loops", list_of(tiling.loops, loop)}});
  }

  static std::string launch(const std::optional<E::Launch>& launch) {
    if (!launch) return "null";
    return json_object({{"grid", list_of(launch->grid, number)},
                        {"block", list_of(launch->block, number)},
                        {"shared_bytes", number(launch->shared_bytes)},
                        {"barriers", number(launch->barriers)},
                        {"waves", real(launch->waves)},
                        {"occupancy", real(launch->occupancy)}});
  }

  static std::string floor(const std::optional<E::Floor>& floor) {
    if (!floor) return "null";
    return json_object({{"us", real(floor->us())},
                        {"by", json_string(floor->by())},
                        {"operations", real(floor->operations)},
                        {"operations_per_us", real(floor->operations_per_us)},
                        {"operations_us", real(floor->operations_us)},
                        {"bytes", real(floor->bytes)},
                        {"bytes_per_us", real(floor->bytes_per_us)},
                        {"bytes_us", real(floor->bytes_us)}});
  }

  static std::string estimate(const E::Kernel& k) {
    if (k.estimate_us <= 0) return "null";
    std::vector<std::pair<std::string, std::string>> terms;
    for (const E::Term& term : k.terms) terms.emplace_back(term.name, real(term.us));
    return json_object(
        {{"us", real(k.estimate_us)}, {"limited_by", json_string(k.limited_by)}, {"terms_us", json_object(terms)}});
  }

  static std::string unfit(const E::Unfit& unfit) {
    return json_object({{"strategy", json_string(unfit.strategy)}, {"reason", json_string(unfit.reason)}});
  }

  static std::string kernel(const E::Kernel& k) {
    return json_object({{"name", json_string(k.name)},
                        {"strategy", json_string(k.strategy)},
                        {"statements", strings(k.statements)},
                        {"options", json_string(k.options)},
                        {"launch", launch(k.launch)},
                        {"tilings", list_of(k.tilings, tiling)},
                        {"unfit", list_of(k.unfit, unfit)},
                        {"floor", floor(k.floor)},
                        {"estimate", estimate(k)}});
  }

  static std::string apart(const E::Apart& apart) {
    return json_object(
        {{"first", strings(apart.first)}, {"second", strings(apart.second)}, {"reason", json_string(apart.reason)}});
  }

  static std::string measurement(const E::Measurement& m) {
    return json_object({{"options", json_string(m.options)},
                        {"device", json_string(m.device)},
                        {"outcome", json_string(m.outcome)},
                        {"us", real_or_null(m.us)},
                        {"date", m.date > 0 ? number(m.date) : "null"}});
  }

  const E& e_;
  Source source_;
};

}  // namespace

std::string to_json(const Explanation& explanation) { return Writer(explanation).json(); }

}  // namespace tc::api
