#include "tc/cuda/resources.h"

#include <charconv>
#include <sstream>

namespace tc::cuda {
namespace {

/// The number right before `words` in `line`, or 0.
int64_t number_before(const std::string& line, const std::string& words) {
  const size_t at = line.find(words);
  if (at == std::string::npos) return 0;
  size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int64_t number = 0;
  std::from_chars(line.data() + begin, line.data() + at, number);
  return number;
}

/// What follows `words`, up to `end`.
std::string name_after(const std::string& line, const std::string& words, char end) {
  const size_t at = line.find(words);
  if (at == std::string::npos) return "";
  const size_t begin = at + words.size();
  return line.substr(begin, line.find(end, begin) - begin);
}

}  // namespace

std::map<std::string, Resources> parse_resources(const std::string& log) {
  std::map<std::string, Resources> result;
  std::string kernel;      // whose entry function was announced
  std::string properties;  // of which function the next line tells stack and spills
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (const std::string name = name_after(line, "Compiling entry function '", '\''); !name.empty()) {
      kernel = name;
      result[kernel];
    } else if (const std::string of = name_after(line, "Function properties for ", ' '); !of.empty()) {
      properties = of;
    } else if (line.find("wgmma.mma_async instructions are serialized") != std::string::npos) {
      result[name_after(line, "function '", '\'')].serialised = true;
    } else if (line.find("bytes stack frame") != std::string::npos) {
      const auto found = result.find(properties);
      if (found == result.end()) continue;
      found->second.stack_bytes = number_before(line, " bytes stack frame");
      found->second.spill_store_bytes = number_before(line, " bytes spill stores");
      found->second.spill_load_bytes = number_before(line, " bytes spill loads");
    } else if (line.find(" registers") != std::string::npos && line.find("Used ") != std::string::npos) {
      const auto found = result.find(kernel);
      if (found == result.end()) continue;
      found->second.registers = static_cast<int>(number_before(line, " registers"));
      found->second.static_shared_bytes = number_before(line, " bytes smem");
    }
  }
  return result;
}

}  // namespace tc::cuda
