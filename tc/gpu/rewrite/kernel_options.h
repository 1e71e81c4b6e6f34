#pragma once

#include <optional>
#include <string>

#include "tc/ir/program.h"
#include "tc/options/mapping.h"

/// Which of MappingOptions::kernel is about a statement's kernel.
namespace tc::gpu {

/// What KernelOptions name a kernel by.
struct Address {
  std::string writes;
  int64_t occurrence = 1;  ///< of the statement, among those of the program that write the tensor
  bool operator==(const Address&) const = default;
};

/// The address of a kernel whose anchor is the statement `id`. Partial results have the address of the statement that
/// was cut into parts (part_statements.h). Their sum and what is left over have none.
std::optional<Address> address_of(const ir::Program& program, const std::string& id);

/// Whether options are about the kernel at an address.
bool is_about(const options::KernelOptions& kernel, const Address& address);

/// The options of a kernel whose anchor is the statement `id`: those of its address, then those of the def.
options::MappingOptions options_at(const ir::Program& program, const std::string& id,
                                   const options::MappingOptions& options);

}  // namespace tc::gpu
