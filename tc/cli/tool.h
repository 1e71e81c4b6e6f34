#pragma once

#include <string>
#include <vector>

namespace tc::cli {

/// The tool: runs `words` (without the program's name). Results go to standard output, errors to standard error.
/// Returns the exit code: 0 done, 1 the user's error, 2 a fault of ours.
int run_tool(const std::vector<std::string>& words);

}  // namespace tc::cli
