// Any text ends in options or in an error; options print as text that gives the same options.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tc/options/mapping.h"
#include "tc/options/options.h"
#include "tc/support/check.h"

namespace {

template <typename Read>
void check(Read read, const std::string& input) {
  auto options = read(input, "options");
  if (!options) {
    TC_CHECK(!options.error().to_string().empty(), "an error without a sentence");
    return;
  }
  std::string text = tc::options::to_text(*options);
  auto again = read(text, "options");
  TC_CHECK(again.has_value() && *again == *options, "the text of options gives other options:\n{}", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  check(tc::options::cpu_options_from_text, input);
  check(tc::options::mapping_options_from_text, input);
  return 0;
}
