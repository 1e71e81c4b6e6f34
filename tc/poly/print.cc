#include "tc/poly/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "tc/poly/band_ref.h"
#include "tc/poly/isl_ext.h"
#include "tc/poly/rebuild.h"
#include "tc/support/check.h"

namespace tc::poly {
namespace {

template <typename T>
std::string isl_text(const T& object) {
  std::ostringstream out;
  out << object;
  return out.str();
}

/// isl's text of an object without the braces.
std::string bare(const std::string& text) {
  if (text.size() < 4 || text.front() != '{' || text.back() != '}') return text;
  return text.substr(2, text.size() - 4);
}

/// The right side of "{ S[i] -> [(i)] }": "i". An expression in several pieces stays as isl prints it.
std::string expression_text(const isl::pw_aff& function) {
  const std::string text = bare(isl_text(function));
  const size_t arrow = text.find(" -> [(");
  if (function.n_piece() != 1 || arrow == std::string::npos) return text;
  const size_t begin = arrow + 6, end = text.find(")]", begin);
  return end == std::string::npos ? text : text.substr(begin, end - begin);
}

class Printer {
 public:
  explicit Printer(const Scop& scop) : scop_(scop) {}

  std::string print() {
    line(0, "domain");
    for (const isl::set& domain : statement_domains(scop_)) line(1, bare(isl_text(domain)));
    line(0, "schedule");
    node(scop_.schedule.root().child(0), 1);
    if (!scop_.promotions.empty()) line(0, "promotions");
    for (const Promotion& p : scop_.promotions) promotion(p);
    return std::move(text_);
  }

 private:
  void line(int depth, const std::string& text) { text_ += fmt::format("{:{}}{}\n", "", 2 * depth, text); }

  void node(const isl::schedule_node& at, int depth) {
    switch (isl_schedule_node_get_type(at.get())) {
      case isl_schedule_node_leaf:
        return;
      case isl_schedule_node_band:
        band(at.as<isl::schedule_node_band>(), depth);
        break;
      case isl_schedule_node_mark:
        line(depth, mark_name(at));
        break;
      case isl_schedule_node_filter:
        line(depth, fmt::format("{}", fmt::join(names_at(at), ", ")));
        break;
      case isl_schedule_node_sequence:
        line(depth, "sequence");
        for (unsigned i = 0; i < at.n_children(); ++i) node(at.child(i), depth + 1);
        return;
      default:
        line(depth, bare(isl_text(at)));
        break;
    }
    node(at.child(0), depth + 1);
  }

  /// Statements, or what a backend has added to the tree.
  std::vector<std::string> names_at(const isl::schedule_node& at) const {
    std::vector<std::string> names = statements_at(scop_, at);
    if (!names.empty()) return names;
    for (const isl::set& set : sets_of(node_domain(at))) names.push_back(tuple_name(set));
    std::sort(names.begin(), names.end());
    return names;
  }

  void band(const isl::schedule_node_band& at, int depth) {
    const BandFlags flags = flags_of(at);
    std::vector<int> coincident(flags.coincident.begin(), flags.coincident.end());
    line(depth,
         fmt::format("band{} coincident({})", flags.permutable ? " permutable" : "", fmt::join(coincident, ", ")));
    const isl::multi_union_pw_aff partial = at.partial_schedule();
    for (const std::string& statement : statements_at(scop_, at)) {
      std::vector<std::string> members;
      for (unsigned m = 0; m < at.n_member(); ++m) {
        for (const isl::pw_aff& function : pw_affs_of(partial.at(m))) {
          if (tuple_name(function.domain()) == statement) members.push_back(expression_text(function));
        }
      }
      line(depth + 1, fmt::format("{}: [{}]", statement, fmt::join(members, ", ")));
    }
  }

  void promotion(const Promotion& p) {
    std::string text = fmt::format("{}: {} at {} extents [{}]", p.name, p.tensor, bare(isl_text(p.offset)),
                                   fmt::join(p.extents, ", "));
    if (!std::is_sorted(p.layout.begin(), p.layout.end()))
      text += fmt::format(" layout [{}]", fmt::join(p.layout, ", "));
    if (p.copy_in) text += " copy_in";
    if (p.copy_out) text += " copy_out";
    if (p.in_registers) text += " in_registers";
    line(1, text);
  }

  const Scop& scop_;
  std::string text_;
};

}  // namespace

std::string schedule_text(const Scop& scop) { return Printer(scop).print(); }

std::string dependences_text(const Scop& scop) {
  std::string text;
  const Dependences& d = scop.dependences;
  const std::pair<const char*, const isl::union_map*> kinds[] = {
      {"flow", &d.flow}, {"anti", &d.anti}, {"output", &d.output}, {"reduction", &d.reduction}};
  for (const auto& [kind, map] : kinds) {
    std::vector<std::string> lines;
    for (const isl::map& relation : maps_of(*map)) lines.push_back(bare(isl_text(relation)));
    std::sort(lines.begin(), lines.end());
    text += fmt::format("{}\n", kind);
    for (const std::string& each : lines) text += fmt::format("  {}\n", each);
  }
  return text;
}

}  // namespace tc::poly
