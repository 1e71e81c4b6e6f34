#include "tc/cli/tool.h"

#include <cstdio>
#include <exception>
#include <new>

#include "tc/api/tc.h"
#include "tc/cli/command_line.h"
#include "tc/cli/files.h"
#include "tc/cli/log.h"
#include "tc/support/check.h"
#include "tc/support/nearest.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

constexpr int kDone = 0;
constexpr int kUsersError = 1;
constexpr int kOurFault = 2;

void print(std::FILE* to, const std::string& text) { std::fwrite(text.data(), 1, text.size(), to); }

const Command* find_command(const std::string& name) {
  for (const Command& command : commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

/// "run"; of a group's, with its first word: "cache list".
std::string name_of_command(std::span<const std::string> words) {
  return words.size() > 1 && !help_of_group(words[0]).empty() ? words[0] + " " + words[1] : words[0];
}

Error unknown_command(const std::string& name) {
  std::vector<std::string> names = {"help", "version"};
  for (const Command& command : commands()) names.emplace_back(command.name);
  const std::string meant = nearest(name, names);
  if (!meant.empty()) return Error(fmt::format("there is no command '{}'; did you mean '{}'?", name, meant));
  return Error(fmt::format("there is no command '{}'; 'tensorc help' lists the commands", name));
}

Result<void> run_help(std::span<const std::string> words) {
  if (words.empty()) {
    print(stdout, help_of_tool());
    return {};
  }
  if (words[0] == "logging") {
    print(stdout, help_of_logging());
    return {};
  }
  if (const std::string group = help_of_group(words[0]); !group.empty() && words.size() == 1) {
    print(stdout, group);
    return {};
  }
  const std::string name = name_of_command(words);
  const Command* command = find_command(name);
  if (!command) return tl::unexpected(unknown_command(name));
  print(stdout, help_of(*command));
  return {};
}

Result<void> dispatch(const std::vector<std::string>& words) {
  if (words.empty()) return fail("a command is missing; 'tensorc help' lists the commands");
  const std::span<const std::string> rest = std::span(words).subspan(1);
  if (words[0] == "help" || words[0] == "--help" || words[0] == "-h") return run_help(rest);
  if (words[0] == "version" || words[0] == "--version") {
    print(stdout, fmt::format("tensorc {}\n", api::version()));
    return {};
  }
  const std::string name = name_of_command(words);
  const Command* command = find_command(name);
  const bool is_group = !help_of_group(words[0]).empty();
  if (is_group && words.size() == 2 && (words[1] == "--help" || words[1] == "-h")) return run_help({words.data(), 1});
  if (!command && is_group && words.size() == 1) {
    return fail("'tensorc {}' needs a command; 'tensorc {} --help' lists them", words[0], words[0]);
  }
  if (!command) return tl::unexpected(unknown_command(name));
  bool help = false;
  TC_TRY(files, parse_flags(*command, rest.subspan(is_group ? 1 : 0), help));
  if (help) {
    print(stdout, help_of(*command));
    return {};
  }
  TC_TRY_VOID(start_log());
  return command->run(files);
}

int report_fault(const std::string& what) {
  print(stderr, fmt::format("internal error: {}\nThis is a fault of tensorc {}, not of your program. Please report it, "
                            "with the program and the command line.\n",
                            what, api::version()));
  return kOurFault;
}

}  // namespace

int run_tool(const std::vector<std::string>& words) {
  try {
    Result<void> result = dispatch(words);
    if (result) result = print_all("");
    if (result) return kDone;
    std::fflush(stdout);
    if (result.error().kind() == ErrorKind::kInternal) return report_fault(result.error().diagnostics().at(0).message);
    print(stderr, result.error().to_string());
    return kUsersError;
  } catch (const std::bad_alloc&) {
    print(stderr, "error: out of memory\n");
    return kUsersError;
  } catch (const std::exception& fault) {
    return report_fault(fault.what());
  }
}

}  // namespace tc::cli
