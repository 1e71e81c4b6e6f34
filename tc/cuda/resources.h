#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tc::cuda {

/// What the assembler gave one kernel. Bytes are per thread, shared memory per block.
struct Resources {
  int registers = 0;
  int64_t spill_store_bytes = 0;  ///< 0 unless registers ran out
  int64_t spill_load_bytes = 0;
  int64_t stack_bytes = 0;
  int64_t static_shared_bytes = 0;
  /// Products of warpgroups (wgmma) wait for each other, since the assembler does not see that their registers are left
  /// alone meanwhile.
  bool serialised = false;

  bool operator==(const Resources&) const = default;
};

/// Reads ptxas's report (option -v) out of a compilation log, by kernel. Lines of other kinds are passed over.
std::map<std::string, Resources> parse_resources(const std::string& log);

}  // namespace tc::cuda
