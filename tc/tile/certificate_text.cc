#include "tc/tile/certificate_text.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "tc/tile/certificate.h"
#include "tc/tile/verify.h"

namespace tc::tile {
namespace {

/// "3 barriers", "1 barrier".
std::string counted(int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string names_of(const Kernel& kernel, bool Tensor::*promise) {
  std::vector<std::string> names;
  for (const Tensor& tensor : kernel.tensors) {
    if (tensor.*promise) names.push_back(tensor.name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

void add_sentences(const char* title, const std::vector<std::string>& sentences, std::string& text) {
  for (const std::string& sentence : sentences) text += fmt::format("  {}: {}\n", title, sentence);
}

std::string text_of(const Kernel& kernel, const Proved& proved, const Certificate* certificate) {
  std::map<Order, int64_t> orders;
  for_each_node(kernel.body, [&](const Node& node) { ++orders[order_of(node)]; });
  std::string text = fmt::format("kernel {}\n", kernel.name);
  text += fmt::format("  bounds: {} inside {} extents\n", counted(proved.subscripts, "subscript"),
                      proved.subscripts == 1 ? "its" : "their");
  text += fmt::format("  alignment: {}\n", counted(proved.vectors, "vector"));
  text += fmt::format("  reached together: {} barriers and steps of warps\n", proved.together);
  if (!certificate) return text;
  text +=
      fmt::format("  order: {} of accesses decided, {}; {} of blocks, {} of warps; {} commits and waits of copies\n",
                  counted(certificate->pairs, "pair"), counted(std::ssize(certificate->races), "race"),
                  counted(orders[Order::kBlock], "barrier"), orders[Order::kWarp], orders[Order::kCopies]);
  text += fmt::format("  promises: read-only {}; not aliased {}\n", names_of(kernel, &Tensor::read_only),
                      names_of(kernel, &Tensor::restricted));
  add_sentences("RACE", certificate->races, text);
  add_sentences("not proved", certificate->unproved, text);
  return text;
}

}  // namespace

std::string certificate_text(const Program& program) {
  const Verification verification = verify(program);
  std::string text;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    std::optional<Certificate> certificate;  // of what has a meaning
    if (verification.holds()) certificate = certify(program.kernels[k]);
    text += text_of(program.kernels[k], verification.proved[k], certificate ? &*certificate : nullptr);
  }
  if (!verification.holds()) text += "order and promises were not looked at, for the faults\n";
  add_sentences("FAULT", verification.faults, text);
  add_sentences("not proved", verification.unproved, text);
  return text;
}

}  // namespace tc::tile
