#include <string>
#include <vector>

#include "tc/cli/tool.h"

int main(int argc, char** argv) { return tc::cli::run_tool(std::vector<std::string>(argv + 1, argv + argc)); }
