#include "tc/cuda/print.h"

#include <fmt/format.h>

#include <set>

#include "tc/cuda/kernel_text.h"
#include "tc/cuda/names.h"
#include "tc/cuda/prelude.h"
#include "tc/support/check.h"

namespace tc::cuda {
namespace {

/// Every line of `text` behind "// ".
std::string as_comment(const std::string& text) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    // A backslash at the end would take the next line into the comment.
    while (!line.empty() && (line.back() == '\\' || line.back() == ' ')) line.pop_back();
    result += line.empty() ? "//\n" : "// " + line + "\n";
    begin = end + 1;
  }
  return result;
}

}  // namespace

std::string print(const tile::Program& program) {
  std::set<Helper> helpers;
  std::set<std::string> symbols;
  std::map<std::string, std::string> products;
  std::string kernels;
  for (const tile::Kernel& kernel : program.kernels) {
    TC_CHECK(symbols.insert(symbol_of(kernel)).second, "two kernels are called '{}'", kernel.name);
    KernelText text = kernel_text(kernel);
    helpers.merge(text.helpers);
    products.merge(text.products);
    kernels += text.text;
  }
  std::string header = as_comment(program.header);
  if (!header.empty()) header += "\n";
  std::string prelude = prelude_text(helpers);
  for (const auto& [name, text] : products) prelude += "\n" + text;
  return header + prelude + kernels;
}

}  // namespace tc::cuda
