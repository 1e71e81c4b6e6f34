// Any text ends in a tree or in errors; a tree prints as source that gives the same tree; analysing it ends.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tc/lang/format.h"
#include "tc/lang/parser.h"
#include "tc/lang/sema.h"
#include "tc/support/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto source = std::make_shared<tc::Source>("input.tc", std::string(reinterpret_cast<const char*>(data), size));
  auto file = tc::lang::parse(source);
  if (!file) {
    TC_CHECK(!file.error().diagnostics().empty() && !file.error().to_string().empty(), "an error without a sentence");
    return 0;
  }
  std::string canonical = tc::lang::format(*file);
  auto again = tc::lang::parse(std::make_shared<tc::Source>("canonical.tc", canonical));
  TC_CHECK(again.has_value(), "canonical source does not parse:\n{}", canonical);
  TC_CHECK(tc::lang::same_tree(*file, *again), "canonical source gives another tree:\n{}", canonical);
  TC_CHECK(tc::lang::format(*again) == canonical, "formatting canonical source changes it:\n{}", canonical);
  auto typed = tc::lang::analyse(*file);
  if (!typed) TC_CHECK(!typed.error().to_string().empty(), "an error without a sentence");
  return 0;
}
