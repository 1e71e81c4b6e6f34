#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tc/ir/from_lang.h"
#include "tc/ir/specialise.h"
#include "tc/lang/sema.h"

/// Source text to Program, for the tests of every layer.
namespace tc::testing {

/// The def `entry` of a text (the only one, if empty) with its ranges inferred, or the errors on the way.
inline Result<ir::Program> try_program(const std::string& text, const std::string& entry = "",
                                       const ir::ScalarValues& scalars = {}) {
  TC_TRY(file, lang::analyse(std::make_shared<const Source>("test.tc", text)));
  return ir::from_lang(file, entry, ir::Deadline(), scalars);
}

/// The same of a text without errors: one fails the test.
inline ir::Program program_from(const std::string& text, const std::string& entry = "",
                                const ir::ScalarValues& scalars = {}) {
  Result<ir::Program> program = try_program(text, entry, scalars);
  if (program) return *std::move(program);
  ADD_FAILURE() << program.error().to_string();
  return {};
}

/// A Program for sizes and specialised scalars given by name, or the errors on the way.
inline Result<ir::Program> try_specialised(const std::string& text, const std::map<std::string, int64_t>& sizes,
                                           const std::map<std::string, int64_t>& scalars = {},
                                           const std::string& entry = "") {
  TC_TRY(program, try_program(text, entry, scalars));
  TC_TRY(bindings, ir::bind_sizes(program, sizes, scalars));
  return ir::specialise(program, bindings);
}

inline ir::Program specialised_from(const std::string& text, const std::map<std::string, int64_t>& sizes,
                                    const std::map<std::string, int64_t>& scalars = {}, const std::string& entry = "") {
  Result<ir::Program> program = try_specialised(text, sizes, scalars, entry);
  if (program) return *std::move(program);
  ADD_FAILURE() << program.error().to_string();
  return {};
}

}  // namespace tc::testing
