#include "tc/gpu/rewrite/kernel_options.h"

#include <algorithm>

namespace tc::gpu {
namespace {

constexpr const char* kParts = "_parts";
constexpr const char* kLeft = "_left";

const ir::Statement* find(const ir::Program& program, const std::string& id) {
  const auto found = std::find_if(program.statements.begin(), program.statements.end(),
                                  [&](const ir::Statement& s) { return s.id == id; });
  return found == program.statements.end() ? nullptr : &*found;
}

/// "S0" of "S0_parts"; empty if the id does not end so.
std::string without(const std::string& id, const std::string& ending) {
  return id.ends_with(ending) ? id.substr(0, id.size() - ending.size()) : std::string();
}

/// Whether a statement is one of the def's, and not one that cutting a reduction has added.
bool is_of_def(const ir::Program& program, const ir::Statement& s) {
  for (const char* ending : {kParts, kLeft}) {
    const std::string base = without(s.id, ending);
    if (!base.empty() && find(program, base)) return false;
  }
  return true;
}

}  // namespace

std::optional<Address> address_of(const ir::Program& program, const std::string& id) {
  if (find(program, id + kParts)) return std::nullopt;
  const std::string left = without(id, kLeft), parts = without(id, kParts);
  if (!left.empty() && find(program, left + kParts)) return std::nullopt;
  const ir::Statement* statement = parts.empty() ? nullptr : find(program, parts);
  if (!statement) statement = find(program, id);
  if (!statement) return std::nullopt;
  Address address{statement->tensor, 0};
  for (const ir::Statement& s : program.statements) {
    if (s.tensor == statement->tensor && is_of_def(program, s)) ++address.occurrence;
    if (s.id == statement->id) break;
  }
  return address;
}

bool is_about(const options::KernelOptions& kernel, const Address& address) {
  return kernel.writes == address.writes && kernel.occurrence.value_or(address.occurrence) == address.occurrence;
}

options::MappingOptions options_at(const ir::Program& program, const std::string& id,
                                   const options::MappingOptions& options) {
  if (options.kernel.empty()) return options;
  const std::optional<Address> address = address_of(program, id);
  for (const options::KernelOptions& kernel : options.kernel) {
    if (address && is_about(kernel, *address)) return options::overlaid(options, kernel);
  }
  return options::overlaid(options, {});
}

}  // namespace tc::gpu
