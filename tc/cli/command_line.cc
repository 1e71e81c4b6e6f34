#include "tc/cli/command_line.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "tc/cli/commands.h"
#include "tc/cli/log.h"
#include "tc/support/check.h"
#include "tc/support/nearest.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

gflags::CommandLineFlagInfo flag_info(const std::string& name) {
  gflags::CommandLineFlagInfo info;
  TC_CHECK(gflags::GetCommandLineFlagInfo(name.c_str(), &info), "no flag '{}' is defined", name);
  return info;
}

const char* kind_of(const gflags::CommandLineFlagInfo& info) {
  if (info.type == "bool") return "true or false";
  if (info.type == "string") return "a text";
  if (info.type == "double") return "a number";
  return info.type.starts_with("u") ? "a non-negative integer" : "an integer";
}

/// A word that begins with '-', taken apart.
struct Flag {
  std::string spelling;  ///< as given, without the value
  std::string name;
  std::optional<std::string> value;
};

Flag take_apart(const std::string& word) {
  Flag flag;
  const size_t equals = word.find('=');
  flag.spelling = word.substr(0, equals);
  if (equals != std::string::npos) flag.value = word.substr(equals + 1);
  flag.name = flag.spelling.substr(flag.spelling.starts_with("--") ? 2 : 1);
  std::ranges::replace(flag.name, '-', '_');
  if (flag.spelling == "-i") flag.name = "in_place";
  if (flag.spelling == "-o") flag.name = "output";
  return flag;
}

bool has_flag(const Command& command, const std::string& name) {
  return std::ranges::find(command.flags, name) != command.flags.end() ||
         std::ranges::find(log_flags(), name) != log_flags().end();
}

tl::unexpected<Error> unknown_flag(const Command& command, const Flag& flag) {
  std::vector<std::string> known = command.flags;
  known.emplace_back("help");
  for (const std::string& name : log_flags()) known.push_back(name);
  const std::string meant = nearest(flag.name, known);
  if (!meant.empty()) {
    return fail("'tensorc {}' has no flag '{}'; did you mean '--{}'?", command.name, flag.spelling, meant);
  }
  return fail("'tensorc {}' has no flag '{}'; 'tensorc {} --help' lists its flags", command.name, flag.spelling,
              command.name);
}

/// Sets one flag; `next` is the word behind it, which is its value if it needs one and has none (then `took_next`).
Result<void> set_flag(const Command& command, Flag flag, const std::string* next, bool& took_next,
                      std::set<std::string>& given) {
  if (!has_flag(command, flag.name) && flag.name.starts_with("no") && has_flag(command, flag.name.substr(2)) &&
      flag_info(flag.name.substr(2)).type == "bool" && !flag.value) {
    flag.name = flag.name.substr(2);
    flag.value = "false";
  }
  const bool single_dash = !flag.spelling.starts_with("--") && flag.spelling.size() > 2;
  if (single_dash || !has_flag(command, flag.name)) return unknown_flag(command, flag);
  const gflags::CommandLineFlagInfo info = flag_info(flag.name);
  // The last would win, and what the first says be lost: '--inputs=A=a.npy --inputs=B=b.npy'.
  if (!given.insert(info.name).second) return fail("'--{}' is given twice", info.name);
  if (!flag.value && info.type == "bool") flag.value = "true";
  if (!flag.value) {
    if (!next) return fail("'{}' needs a value: {}", flag.spelling, kind_of(info));
    flag.value = *next;
    took_next = true;
  }
  if (gflags::SetCommandLineOption(info.name.c_str(), flag.value->c_str()).empty()) {
    return fail("'{}' takes {}, not '{}'", flag.spelling, kind_of(info), *flag.value);
  }
  return {};
}

Result<void> check_files(const Command& command, const std::vector<std::string>& files) {
  if (files.size() == command.files || (command.more_files && files.size() > command.files)) return {};
  if (files.size() > command.files) {
    return fail("'tensorc {}' takes {} file{}; '{}' is one too many", command.name, command.files,
                command.files == 1 ? "" : "s", files[command.files]);
  }
  if (command.files == 1) return fail("'tensorc {}' needs a file: tensorc {}", command.name, command.synopsis);
  return fail("'tensorc {}' needs {} arguments: tensorc {}", command.name, command.files, command.synopsis);
}

constexpr size_t kWidth = 100;  // of help

/// Breaks a text into lines of at most `width`, each behind `indent` spaces.
std::string wrap(const std::string& text, size_t indent, size_t width) {
  std::string out;
  std::string line;
  const auto end_line = [&] {
    if (!line.empty()) out += std::string(indent, ' ') + line + "\n";
    line.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && indent + line.size() + 1 + word.size() > width) end_line();
    if (!line.empty()) line += ' ';
    line += word;
    at = end + 1;
  }
  end_line();
  return out;
}

std::string help_of_flag(const std::string& name, const std::string& text) {
  const gflags::CommandLineFlagInfo info = flag_info(name);
  return (info.type == "bool" ? fmt::format("  --{}\n", name) : fmt::format("  --{}={}\n", name, info.default_value)) +
         wrap(text.empty() ? info.description : text, 6, kWidth);
}

}  // namespace

Result<std::vector<std::string>> parse_flags(const Command& command, std::span<const std::string> words, bool& help) {
  std::vector<std::string> files;
  std::set<std::string> given;
  bool flags_ended = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (flags_ended || word == "-" || !word.starts_with("-")) {
      files.push_back(word);
    } else if (word == "--") {
      flags_ended = true;
    } else if (word == "--help" || word == "-h") {
      help = true;
      return files;
    } else {
      bool took_next = false;
      TC_TRY_VOID(
          set_flag(command, take_apart(word), i + 1 < words.size() ? &words[i + 1] : nullptr, took_next, given));
      i += took_next;
    }
  }
  TC_TRY_VOID(check_files(command, files));
  return files;
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    words.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string help_of(const Command& command) {
  std::string text = fmt::format("usage: tensorc {}\n\n{}", command.synopsis, wrap(command.description, 0, kWidth));
  if (!command.flags.empty()) text += "\nflags:\n";
  for (const std::string& name : command.flags) text += help_of_flag(name, text_of_flag(command.name, name));
  if (!command.examples.empty()) text += "\nexamples:\n";
  for (const std::string& example : command.examples) text += fmt::format("  {}\n", example);
  return text;
}

namespace {

std::string line_of(const Command& command) { return fmt::format("  {:<14}{}\n", command.name, command.summary); }

}  // namespace

std::string help_of_group(const std::string& word) {
  std::string lines;
  for (const Command& command : commands()) {
    if (std::string_view(command.name).starts_with(word + " ")) lines += line_of(command);
  }
  if (lines.empty()) return lines;
  return fmt::format("commands:\n{}\n'tensorc {} COMMAND --help' describes one.\n", lines, word);
}

std::string help_of_logging() {
  std::string text =
      "Flags of the log, which every command takes. Without one of them nothing is logged. The log goes to standard\n"
      "error, unless --log_dir or --nologtostderr is given. Levels: 0 information, 1 warnings, 2 errors.\n\n"
      "flags:\n";
  for (const std::string& name : log_flags()) text += help_of_flag(name, text_of_log_flag(name));
  return text +
         "\nexamples:\n"
         "  tensorc run matmul.tc --sizes=M=128,N=64,K=32 --v=1 --output_dir=\n"
         "  tensorc tune matmul.tc --sizes=M=128,N=64,K=32 --vmodule=tuner=1,worker_pool=1 --log_dir=logs\n";
}

std::string help_of_tool() {
  std::string text =
      "tensorc compiles Tensor Comprehensions: what every element of a tensor is, in Einstein notation, becomes a\n"
      "kernel for this machine.\n\n"
      "usage: tensorc COMMAND [arguments]\n\n"
      "commands:\n";
  for (const Command& command : commands()) text += line_of(command);
  text +=
      "\n'tensorc COMMAND --help' describes a command, 'tensorc help logging' the log. A FILE.tc may be '-': standard "
      "input.\n"
      "Exit code: 0 done; 1 the input or the command line is wrong; 2 a bug in tensorc.\n";
  return text;
}

Result<std::vector<std::pair<std::string, std::string>>> parse_assignments(const std::string& flag,
                                                                           const std::string& text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t at = 0; !text.empty() && at <= text.size();) {  // an item is behind each comma, the last too
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    const size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == item.size()) {
      return fail("'--{}' takes NAME=VALUE,NAME=VALUE,...; '{}' is not NAME=VALUE", flag, item);
    }
    const std::string name = item.substr(0, equals);
    if (std::ranges::any_of(pairs, [&](const auto& pair) { return pair.first == name; })) {
      return fail("'--{}' gives '{}' twice", flag, name);
    }
    pairs.emplace_back(name, item.substr(equals + 1));
    at = end + 1;
  }
  return pairs;
}

Result<int64_t> parse_integer(const std::string& what, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return fail("{} is {}, which does not fit 64 bits", what, text);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail("{} must be an integer, not '{}'", what, text);
  }
  return value;
}

}  // namespace tc::cli
