#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tc/support/error.h"

namespace tc::cli {

/// A sub-command of the tool: what it is called, what it takes, what it does.
struct Command {
  const char* name;
  const char* synopsis;            ///< "run FILE.tc [flags]"
  const char* summary;             ///< one sentence, for the list of commands
  const char* description;         ///< paragraphs, for --help
  std::vector<std::string> flags;  ///< names in gflags' registry, in the order of the help
  std::vector<std::string> examples;
  size_t files;  ///< how many FILE arguments it takes, or the fewest
  /// Prints to standard output. Errors are printed by the caller.
  Result<void> (*run)(const std::vector<std::string>& files);
  bool more_files = false;  ///< takes any number above `files`
};

/// All sub-commands, in the order of the help.
const std::vector<Command>& commands();

/// Sets the flags of `command` (gflags' variables) from the words behind its name, and returns the other words.
/// Takes --name=value, --name value, --name and --noname for bools, - for _ in names; "--" ends the flags.
/// `help` is set by --help and -h. Errors: a flag that the command does not have (with the nearest that it has), a
/// value of the wrong type, a missing value, a wrong number of files.
Result<std::vector<std::string>> parse_flags(const Command& command, std::span<const std::string> words, bool& help);

/// The words of a list: "a,b" as "a" and "b".
std::vector<std::string> words_of(const std::string& list);

/// The text of --help.
std::string help_of(const Command& command);
std::string help_of_tool();
/// Of the flags of the log.
std::string help_of_logging();
/// Of the commands whose names begin with a word ("cache"); "" if there are none.
std::string help_of_group(const std::string& word);

/// "A=a.npy,B=b.npy" as pairs in order. Errors quote the flag: an entry without '=' or with nothing beside it, a name
/// given twice.
Result<std::vector<std::pair<std::string, std::string>>> parse_assignments(const std::string& flag,
                                                                           const std::string& text);

/// An integer in decimal, all of the text. Errors quote `what`.
Result<int64_t> parse_integer(const std::string& what, const std::string& text);

}  // namespace tc::cli
