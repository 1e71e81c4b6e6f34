#include "tests/errors/error_files.h"

#include <gtest/gtest.h>

#include "tc/lang/sema.h"

namespace tc::lang {
namespace {

TEST(Errors, EveryDiagnosticOfTheFrontEndReadsAsWritten) {
  testing::check_error_files("lang", [](SourcePtr source) -> std::optional<Error> {
    auto program = analyse(std::move(source));
    if (program) return std::nullopt;
    return std::move(program).error();
  });
}

}  // namespace
}  // namespace tc::lang
