#include <fmt/format.h>

#include <type_traits>

#include "tc/options/mapping_fields.h"

namespace tc::options {
namespace {

/// Calls visit(a's field, b's field) for each field that KernelOptions and MappingOptions share.
template <typename A, typename B, typename Visit>
void visit_pairs(A& a, B& b, Visit visit) {
  visit_shared_fields(a, [&](const std::string& name, auto& of_a) {
    visit_shared_fields(b, [&](const std::string& other, auto& of_b) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(of_a)>, std::remove_cvref_t<decltype(of_b)>>) {
        if (name == other) visit(of_a, of_b);
      }
    });
  });
}

}  // namespace

MappingOptions overlaid(MappingOptions def, const KernelOptions& kernel) {
  visit_pairs(def, kernel, [](auto& to, const auto& from) {
    if (from != std::remove_cvref_t<decltype(from)>()) to = from;
  });
  def.kernel.clear();
  return def;
}

KernelOptions kernel_part_of(const MappingOptions& options) {
  KernelOptions result;
  visit_pairs(result, options, [](auto& to, const auto& from) { to = from; });
  return result;
}

MappingOptions def_part_of(MappingOptions options) {
  visit_shared_fields(options, [](const char*, auto& field) { field = {}; });
  options.kernel.clear();
  return options;
}

std::string address_text(const KernelOptions& kernel) {
  return kernel.occurrence ? fmt::format("'{}' occurrence {}", kernel.writes, *kernel.occurrence)
                           : fmt::format("'{}'", kernel.writes);
}

}  // namespace tc::options
