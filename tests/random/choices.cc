#include "tests/random/choices.h"

#include <fmt/format.h>

#include <vector>

#include "tests/random/random.h"

namespace tc::testing {
namespace {

/// A tensor of the program, at a place that lies in it for all i and j.
std::string element(Random& random, const std::vector<std::string>& tensors) {
  static const char* const kFirst[] = {"i", "i", "N-1-i", "(i+1)%N", "(i*3+j)%N"};
  static const char* const kSecond[] = {"j", "j", "M-1-j", "(j+2)%M", "(i+j)%M"};
  return fmt::format("{}({},{})", tensors[random.below(tensors.size())], kFirst[random.below(5)],
                     kSecond[random.below(5)]);
}

std::string value(Random& random, const std::string& type, const std::vector<std::string>& tensors, int depth) {
  static const char* const kConditions[] = {"j <= i", "i % 2 == 0", "j < 3", "i + j < N", "i >= 2 && j >= 1"};
  if (depth == 0) return element(random, tensors);
  const std::string a = value(random, type, tensors, depth - 1), b = value(random, type, tensors, depth - 1);
  switch (random.below(6)) {
    case 0:
    case 1:
      return fmt::format("({} ? {} : {})", kConditions[random.below(5)], a, b);
    case 2:
      return fmt::format("({} < {}({}) ? {} : {})", element(random, tensors), type, random.below(3), a, b);
    case 3:
      return fmt::format("({} {} {})", a, random.chance(50) ? "+" : "*", b);
    case 4:
      return fmt::format("min({}, {})", a, b);
    default:
      return element(random, tensors);
  }
}

/// Elements of a T that lie in it for i in 0:N and j in 0:M; those of the first three are the instance's own.
std::string element_of(Random& random, const std::string& tensor, bool own) {
  static const char* const kFirst[] = {"i", "i", "i", "N-1-i", "(i*3+1)%N", "(i+2)%N", "J(i)", "J(j%N)"};
  static const char* const kSecond[] = {"j", "j", "j", "M-1-j", "(j*3+2)%M", "(i+j)%M", "j/2", "j"};
  return fmt::format("{}({},{})", tensor, kFirst[random.below(own ? 3 : 8)], kSecond[random.below(own ? 3 : 8)]);
}

}  // namespace

std::string random_choices(uint64_t seed) {
  static const char* const kTypes[] = {"float", "int32", "half", "int8", "double", "uint8", "float", "int64"};
  static const char* const kAssigns[] = {"=", "=", "+=", "max=", "+=!"};
  Random random(seed);
  const std::string type = kTypes[random.below(8)];
  const std::vector<std::string> inputs = {"A", "B"}, written = {"T0", "T1"};
  std::vector<std::string> all = {"A", "B", "T0", "T1"};
  std::string text = fmt::format("def f({0}(N,M) A, {0}(N,M) B) -> ({0}(N,M) T0, {0}(N,M) T1) {{\n", type);
  for (const std::string& tensor : written) {
    text += fmt::format("  {}(i,j) = {} where i in 0:N, j in 0:M\n", tensor, value(random, type, inputs, 1));
  }
  for (int64_t n = random.range(1, 4); n > 0; --n) {
    const char* assign = kAssigns[random.below(5)];
    const std::string k = assign == std::string("=") || random.chance(60) ? "" : ", k in 0:3";
    text += fmt::format("  {}(i,j) {} {} where i in 0:N, j in 0:M{}\n", written[random.below(2)], assign,
                        value(random, type, all, 2), k);
  }
  return text + "}\n";
}

std::string random_parts(uint64_t seed) {
  static const char* const kTypes[] = {"int32", "int16", "float", "uint8"};
  static const char* const kAssigns[] = {"=", "=", "+=", "+=!", "max=", "min=!"};
  static const char* const kConditions[] = {"i%2==0", "j < i", "i + j > 3", "i >= 2"};
  Random random(seed);
  const std::string type = kTypes[random.below(4)];
  std::string text = fmt::format("def f({0}(N,M) A, int32(N) J) -> ({0}(N,M) T0, {0}(N,M) T1) {{\n", type);
  for (int64_t n = random.range(2, 5); n > 0; --n) {
    const std::string target = random.chance(50) ? "T0" : "T1", other = random.chance(60) ? "T0" : "T1";
    std::string a = element_of(random, other, random.chance(50)),
                b = element_of(random, random.chance(50) ? "A" : "T1", false);
    std::string value = random.chance(60) ? fmt::format("({} ? {} : {})", kConditions[random.below(4)], a, b)
                                          : fmt::format("max({}, {})", a, b);
    const int64_t lo = random.range(0, 3), lo2 = random.range(0, 3);
    const char* assign = kAssigns[random.below(6)];
    const bool reduces = assign[0] != '=' && random.chance(30);
    text += fmt::format("  {}(i,j) {} {} where i in {}:N-{}, j in {}:M-{}{}\n", target, assign, value, lo,
                        random.range(0, 2), lo2, random.range(0, 2), reduces ? ", k in 0:3" : "");
  }
  return text + "}\n";
}

}  // namespace tc::testing
