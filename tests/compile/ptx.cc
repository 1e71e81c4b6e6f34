#include "tests/compile/ptx.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>
#include <sstream>
#include <utility>

namespace tc::testing {
namespace {

using Parameters = std::set<int>;

struct Instruction {
  std::string text;
  std::string opcode;                  ///< "ld.global.nc.u32"
  std::vector<std::string> targets;    ///< registers that it writes
  std::vector<std::string> sources;    ///< registers that it reads, those of addresses too
  std::vector<std::string> addresses;  ///< registers inside brackets
  std::optional<int> parameter;        ///< that ld.param reads
};

std::string without_comments(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) result += line.substr(0, line.find("//")) + "\n";
  return result;
}

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%'; }

std::vector<std::string> registers_in(const std::string& text) {
  std::vector<std::string> result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') continue;
    size_t end = i + 1;
    while (end < text.size() && in_name(text[end])) ++end;
    result.push_back(text.substr(i, end - i));
    i = end - 1;
  }
  return result;
}

bool starts_with_any(const std::string& text, std::initializer_list<const char*> prefixes) {
  for (const char* prefix : prefixes) {
    if (text.starts_with(prefix)) return true;
  }
  return false;
}

/// Operands separated by commas that stand in no brackets.
std::vector<std::string> operands_of(const std::string& text) {
  std::vector<std::string> result(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (c == ',' && depth == 0) {
      result.emplace_back();
    } else {
      result.back() += c;
    }
  }
  return result;
}

std::optional<Instruction> instruction_of(std::string statement) {
  const auto begin = statement.find_first_not_of(" \t\n{}");
  if (begin == std::string::npos) return std::nullopt;
  statement = statement.substr(begin);
  // Labels stand before the instruction.
  for (size_t colon = statement.find(':'); colon != std::string::npos; colon = statement.find(':')) {
    if (statement.find_first_not_of("$_ \t\n") != 0 && statement[0] != '$') break;
    statement = statement.substr(colon + 1);
  }
  Instruction made;
  made.text = statement.substr(std::min(statement.find_first_not_of(" \t\n"), statement.size()));
  std::string rest = made.text;
  if (rest.starts_with("@")) rest = rest.substr(std::min(rest.find_first_of(" \t"), rest.size()));
  rest = rest.substr(std::min(rest.find_first_not_of(" \t\n"), rest.size()));
  const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  made.opcode = rest.substr(0, end);
  if (made.opcode.empty() || made.opcode[0] == '.') return std::nullopt;
  const std::vector<std::string> operands = operands_of(rest.substr(end));
  const bool stores = starts_with_any(made.opcode, {"st.", "red.", "bar.", "cp.", "bra", "ret"});
  for (size_t i = 0; i < operands.size(); ++i) {
    for (const std::string& name : registers_in(operands[i])) {
      (i == 0 && !stores ? made.targets : made.sources).push_back(name);
      if (operands[i].find('[') != std::string::npos) made.addresses.push_back(name);
    }
  }
  if (made.opcode.starts_with("ld.param")) {
    const size_t name = rest.find("_param_");
    if (name != std::string::npos) made.parameter = std::stoi(rest.substr(name + 7));
  }
  return made;
}

std::vector<Instruction> instructions_of(const std::string& body) {
  std::vector<Instruction> instructions;
  std::string statement;
  for (const char c : body) {
    if (c != ';') {
      statement += c;
      continue;
    }
    if (std::optional<Instruction> one = instruction_of(std::exchange(statement, ""))) instructions.push_back(*one);
  }
  return instructions;
}

PtxKernel kernel_of(const std::vector<Instruction>& instructions) {
  std::map<std::string, Parameters> values;
  const auto united = [&](const std::vector<std::string>& names) {
    Parameters result;
    for (const std::string& name : names) result.insert(values[name].begin(), values[name].end());
    return result;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instruction& one : instructions) {
      Parameters from = united(one.sources);
      // What memory holds is no address of ours.
      if (starts_with_any(one.opcode, {"ld.", "atom."})) from.clear();
      if (one.parameter) from.insert(*one.parameter);
      for (const std::string& target : one.targets) {
        Parameters& to = values[target];
        const size_t before = to.size();
        to.insert(from.begin(), from.end());
        changed |= to.size() != before;
      }
    }
  }
  PtxKernel kernel;
  for (const Instruction& one : instructions) {
    const Parameters at = united(one.addresses);
    if (starts_with_any(one.opcode, {"st.", "red.", "atom."})) kernel.written.insert(at.begin(), at.end());
    if (one.opcode.starts_with("ld.global.nc")) kernel.read_only_loads.push_back({one.text, at});
  }
  return kernel;
}

std::map<std::string, std::vector<Instruction>> instructions_of_kernels(const std::string& ptx) {
  const std::string text = without_comments(ptx);
  std::map<std::string, std::vector<Instruction>> kernels;
  constexpr std::string_view kEntry = ".entry ";
  for (size_t at = text.find(kEntry); at != std::string::npos; at = text.find(kEntry, at + 1)) {
    const size_t name = at + kEntry.size();
    const size_t open = text.find('{', at);
    const size_t next = text.find(kEntry, name);
    kernels[text.substr(name, text.find_first_of(" (\n", name) - name)] =
        instructions_of(text.substr(open, next - open));
  }
  return kernels;
}

/// An extremum of two signed integers of 16 or 32 bits that are no constants. Of 64 bits there is no instruction.
bool is_signed_extremum(const Instruction& one) {
  return starts_with_any(one.opcode, {"min.s32", "max.s32", "min.s16", "max.s16"}) && one.sources.size() == 2;
}

}  // namespace

std::map<std::string, PtxKernel> kernels_of_ptx(const std::string& ptx) {
  std::map<std::string, PtxKernel> kernels;
  for (const auto& [name, instructions] : instructions_of_kernels(ptx)) kernels[name] = kernel_of(instructions);
  return kernels;
}

std::vector<std::string> joined_extrema(const std::string& ptx) {
  std::set<std::string> result;
  for (const auto& [name, instructions] : instructions_of_kernels(ptx)) {
    std::map<std::string, Instruction> made_by;
    for (int pass = 0; pass < 2; ++pass) {  // the second sees what loops bring back
      for (const Instruction& one : instructions) {
        for (const std::string& source : one.sources) {
          const auto inner = made_by.find(source);
          if (inner == made_by.end() || !is_signed_extremum(one) || inner->second.opcode != one.opcode) continue;
          result.insert(fmt::format("{}: '{}' takes what '{}' makes", name, one.text, inner->second.text));
        }
        if (one.targets.size() != 1) continue;
        const auto copied =
            one.opcode.starts_with("mov.") && one.sources.size() == 1 ? made_by.find(one.sources[0]) : made_by.end();
        if (is_signed_extremum(one)) {
          made_by[one.targets[0]] = one;
        } else if (copied != made_by.end()) {
          made_by[one.targets[0]] = Instruction(copied->second);
        } else {
          made_by.erase(one.targets[0]);
        }
      }
    }
  }
  return {result.begin(), result.end()};
}

std::vector<std::string> stale_loads(const std::string& ptx) {
  std::vector<std::string> result;
  for (const auto& [name, kernel] : kernels_of_ptx(ptx)) {
    for (const ReadOnlyLoad& load : kernel.read_only_loads) {
      if (load.parameters.empty()) result.push_back(fmt::format("{}: '{}' reads at no parameter", name, load.text));
      for (const int parameter : load.parameters) {
        if (kernel.written.count(parameter) == 0) continue;
        result.push_back(
            fmt::format("{}: '{}' may read parameter {}, which the kernel writes", name, load.text, parameter));
      }
    }
  }
  return result;
}

}  // namespace tc::testing
