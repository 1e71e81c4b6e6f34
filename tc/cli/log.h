#pragma once

#include <string>
#include <vector>

#include "tc/support/error.h"

/// The log of the tool: the library's messages, written by glog.
namespace tc::cli {

/// Names of glog's flags in gflags' registry, in the order of the help. Every command takes them.
const std::vector<std::string>& log_flags();

/// What help says of one of these flags; "": what glog says.
std::string text_of_log_flag(const std::string& name);

/// Those that the command line has set, as words for the command line of a worker.
std::vector<std::string> given_log_flags();

/// Begins the log if the flags, which are parsed, ask for one. Errors: a folder for files that there is not.
Result<void> start_log();

}  // namespace tc::cli
