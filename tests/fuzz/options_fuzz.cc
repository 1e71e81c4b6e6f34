// Any text ends in options or in an error; options print as text that gives the same options.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tc/options/options.h"
#include "tc/support/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto options = tc::options::cpu_options_from_text(std::string(reinterpret_cast<const char*>(data), size));
  if (!options) {
    TC_CHECK(!options.error().to_string().empty(), "an error without a sentence");
    return 0;
  }
  std::string text = tc::options::to_text(*options);
  auto again = tc::options::cpu_options_from_text(text);
  TC_CHECK(again.has_value() && *again == *options, "the text of options gives other options:\n{}", text);
  return 0;
}
