#include <gtest/gtest.h>

#include "tests/common/program.h"
#include "tests/errors/error_files.h"

namespace tc::ir {
namespace {

TEST(Errors, EveryDiagnosticOfRangesReadsAsWritten) {
  testing::check_error_files("ir", [](SourcePtr source) -> std::optional<Error> {
    auto file = lang::analyse(std::move(source));
    if (!file) return std::move(file).error();
    auto program = from_lang(*file, "");
    if (program) return std::nullopt;
    return std::move(program).error();
  });
}

}  // namespace
}  // namespace tc::ir
