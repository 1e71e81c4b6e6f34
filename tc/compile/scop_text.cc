#include "tc/compile/scop_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <isl/printer.h>
#include <isl/schedule.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "tc/poly/isl_ext.h"
#include "tc/support/check.h"

namespace tc::compile {
namespace {

template <typename IslObject>
std::string text_of(const IslObject& object) {
  std::ostringstream out;
  out << object;
  return out.str();
}

/// isl keeps the parts of a union in the order of a hash table; here they stand in the order of their texts.
template <typename Part>
void print_parts(const char* title, const std::vector<Part>& parts, std::string& out) {
  std::vector<std::string> lines;
  for (const Part& part : parts) lines.push_back(fmt::format("  {}\n", text_of(part.coalesce())));
  std::ranges::sort(lines);
  if (!lines.empty()) out += fmt::format("{}:\n{}", title, fmt::join(lines, ""));
}

/// One node of the tree a line, in block style.
std::string tree_text(const isl::schedule& schedule) {
  isl_printer* printer = isl_printer_to_str(isl_schedule_get_ctx(schedule.get()));
  printer = isl_printer_set_yaml_style(printer, ISL_YAML_STYLE_BLOCK);
  printer = isl_printer_print_schedule(printer, schedule.get());
  char* text = isl_printer_get_str(printer);
  isl_printer_free(printer);
  TC_CHECK(text, "isl cannot print a schedule");
  std::string result(text);
  std::free(text);
  return result;
}

std::string promotion_text(const poly::Promotion& promotion) {
  return fmt::format("  {}: {} at {}, extents ({}), layout ({}){}{}{}{}\n", promotion.name, promotion.tensor,
                     text_of(promotion.offset), fmt::join(promotion.extents, ", "), fmt::join(promotion.layout, ", "),
                     promotion.tile.empty() ? "" : fmt::format(", tile ({})", fmt::join(promotion.tile, ", ")),
                     promotion.copy_in ? ", copied in" : "", promotion.copy_out ? ", copied out" : "",
                     promotion.in_registers ? ", in registers" : "");
}

}  // namespace

std::string scop_text(const poly::Scop& scop) {
  std::string out;
  print_parts("domain", poly::sets_of(scop.domain), out);
  print_parts("reads", poly::maps_of(scop.reads), out);
  print_parts("writes", poly::maps_of(scop.writes), out);
  print_parts("may write", poly::maps_of(scop.may_writes), out);
  print_parts("flow", poly::maps_of(scop.dependences.flow), out);
  print_parts("anti", poly::maps_of(scop.dependences.anti), out);
  print_parts("output", poly::maps_of(scop.dependences.output), out);
  print_parts("reduction", poly::maps_of(scop.dependences.reduction), out);
  return out + schedule_text(scop);
}

std::string schedule_text(const poly::Scop& scop) {
  std::string out = "schedule:\n";
  const std::string tree = tree_text(scop.schedule);
  for (size_t at = 0; at < tree.size();) {
    const size_t end = std::min(tree.find('\n', at), tree.size());
    out += fmt::format("  {}\n", tree.substr(at, end - at));
    at = end + 1;
  }
  if (!scop.promotions.empty()) out += "promotions:\n";
  for (const poly::Promotion& promotion : scop.promotions) out += promotion_text(promotion);
  return out;
}

}  // namespace tc::compile
