#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tc/options/options.h"

/// Any bytes are options or an error with a text; options that are accepted validate and survive a round trip.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const tc::Result<tc::options::CpuOptions> options = tc::options::cpu_options_from_text(text);
  if (!options) {
    if (options.error().to_string().empty()) std::abort();
    return 0;
  }
  if (!tc::options::validate(*options)) std::abort();
  const tc::Result<tc::options::CpuOptions> again = tc::options::cpu_options_from_text(tc::options::to_text(*options));
  if (!again || !(*again == *options)) std::abort();
  return 0;
}
