#include "tests/random/constants.h"

#include <fmt/format.h>

namespace tc::testing {
namespace {

/// Constants of a type as text: its ends, and what lies between.
std::vector<std::string> constants_of(const std::string& type) {
  const auto cast = [&](const std::string& value) { return fmt::format("{}({})", type, value); };
  const bool is_signed = type[0] == 'i';
  const int bits = std::stoi(type.substr(is_signed ? 3 : 4));
  const std::string most = std::to_string((int64_t{1} << (bits - is_signed)) - 1);
  std::vector<std::string> result = {cast("1"), cast("2"), cast("100"), cast(most)};
  if (is_signed) {
    result.push_back(fmt::format("(-{} - {})", cast(most), cast("1")));
    result.push_back(cast("-7"));
  } else {
    result.push_back(cast("0"));
    result.push_back(cast("200"));
  }
  return result;
}

std::vector<std::string> values_of(const std::string& type) {
  const std::vector<std::string> constants = constants_of(type);
  std::vector<std::string> result;
  for (size_t n = 0; n < constants.size(); ++n) {
    const std::string &a = constants[n], &b = constants[(n * 2 + 3) % constants.size()];
    const std::string& c = constants[(n + 1) % constants.size()];
    for (const char* op : {"+", "-", "*", "/", "%"}) result.push_back(fmt::format("({} {} {})", a, op, b));
    result.push_back(fmt::format("(-{})", a));
    for (const char* op : {"/", "%"}) result.push_back(fmt::format("(({} - {}) {} {})", a, b, op, c));
    result.push_back(fmt::format("(({0} + {1}) > {2} ? {0} * {1} : {1} - {2})", a, b, c));
    for (const char* name : {"min", "max", "bitwise_and", "bitwise_or", "bitwise_xor"}) {
      result.push_back(fmt::format("{}({} + {}, {})", name, a, c, b));
    }
    for (const char* name : {"shift_left", "shift_right"}) {
      result.push_back(fmt::format("{}({} - {}, {}({}))", name, a, c, type, n));
    }
    result.push_back(fmt::format("bitwise_not({} + {})", a, b));
    result.push_back(fmt::format("abs({} - {})", a, b));
  }
  return result;
}

}  // namespace

std::vector<RandomProgram> constant_programs() {
  constexpr size_t kResults = 20;
  std::vector<RandomProgram> programs;
  for (const char* type : {"int8", "int16", "int32", "uint8", "uint16", "uint32"}) {
    const std::vector<std::string> values = values_of(type);
    for (size_t first = 0; first < values.size(); first += kResults) {
      RandomProgram program;
      program.seed = programs.size();
      program.parameters = {"float32(M) A"};
      program.sizes = {{"M", 3}};
      for (size_t v = first; v < std::min(first + kResults, values.size()); ++v) {
        const std::string name = fmt::format("O{}", v);
        program.results[name] = fmt::format("int64(M) {}", name);
        program.targets.push_back(name);
        program.statements.push_back(fmt::format("{}(i) = int64({}) where i in 0:M, exists A(i)", name, values[v]));
      }
      // As a float too: what is too large is seen there.
      program.results["F"] = "float64(M) F";
      program.targets.push_back("F");
      program.statements.push_back(fmt::format("F(i) = float64({}) where i in 0:M", values[first]));
      programs.push_back(std::move(program));
    }
  }
  return programs;
}

}  // namespace tc::testing
