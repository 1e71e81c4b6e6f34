#include "tc/tile/proof.h"

#include <fmt/format.h>

namespace tc::tile {
namespace {

/// "3 barriers".
std::string counted(int64_t number, const char* noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

/// ", 2 not proved"; "" for none.
std::string rest(int number) { return number == 0 ? "" : fmt::format(", {} not proved", number); }

std::string bounds_text(const KernelChecks& k) {
  std::string text = fmt::format("  bounds: {}; {} inside their tensors, of which {} under a condition{}\n",
                                 k.accesses == 1 ? "1 access" : fmt::format("{} accesses", k.accesses), k.inside,
                                 k.conditional, rest(k.accesses - k.inside));
  if (k.vectors > 0) {
    text += fmt::format("  vectors: {}; {} aligned{}\n", k.vectors, k.aligned, rest(k.vectors - k.aligned));
  }
  return text;
}

std::string order_text(const Kernel& kernel, const KernelChecks& k, const Certificate& c) {
  std::string text =
      fmt::format("  barriers: {} of the block; operations of warps: {}; {} reached by all of their threads{}\n",
                  k.barriers, k.warp_operations, k.together, rest(k.barriers + k.warp_operations - k.together));
  if (!c.finished) return text + "  order: not proved\n";
  text += fmt::format(
      "  order within a block: {} of accesses may conflict; {} have a barrier on every way between them, {} never meet "
      "in "
      "an element without one{}\n",
      counted(c.conflicts, "pair"), c.ordered, c.apart, rest(c.conflicts - c.ordered - c.apart));
  if (kernel.grid[0] * kernel.grid[1] * kernel.grid[2] == 1)
    return text + "  order between blocks: there is one block\n";
  return text + fmt::format("  order between blocks: {} of accesses may conflict; {} never meet in an element{}\n",
                            counted(c.block_conflicts, "pair"), c.block_apart, rest(c.block_conflicts - c.block_apart));
}

std::string promises_text(const Kernel& kernel, const KernelChecks& k, bool checked) {
  std::vector<std::string> read_only, restricted;
  for (const Tensor& tensor : kernel.tensors) {
    if (tensor.read_only) read_only.push_back(tensor.name);
    if (tensor.restricted) restricted.push_back(tensor.name);
  }
  bool waits = false;
  for_each_node(kernel.body, [&](const Node& node) { waits |= order_of(node) == Order::kKernels; });
  std::vector<std::string> parts;
  if (!read_only.empty()) parts.push_back(fmt::format("read only: {}", fmt::join(read_only, ", ")));
  if (!restricted.empty()) parts.push_back(fmt::format("restricted: {}", fmt::join(restricted, ", ")));
  if (waits) parts.emplace_back("order with the kernels beside it");
  if (parts.empty()) return "  promises: none\n";
  if (!checked) parts.emplace_back("not proved: the structure of a kernel is wrong");
  if (k.broken_promises > 0) parts.push_back(fmt::format("{} broken", k.broken_promises));
  const bool proved = checked && k.broken_promises == 0;
  return fmt::format("  promises{}: {}\n", proved ? ", all proved" : "", fmt::join(parts, "; "));
}

/// How many statements and results are complete, of how many.
struct Completed {
  int64_t statements = 0, of_statements = 0, results = 0, of_results = 0;

  void add(const Coverage& coverage) {
    for (const Coverage::Item& item : coverage.items) {
      (item.is_result ? of_results : of_statements) += 1;
      (item.is_result ? results : statements) += item.complete ? 1 : 0;
    }
  }
  std::string text() const {
    return fmt::format("{} of {} done, {} of {} stored", statements, counted(of_statements, "statement"), results,
                       counted(of_results, "result"));
  }
};

std::string coverage_text(const Coverage& coverage) {
  Completed completed;
  completed.add(coverage);
  return fmt::format("  coverage: {}\n", completed.text()) + to_text(coverage, "    ");
}

/// Those of a kernel, without its name.
std::string sentences(const std::string& what, const std::string& kernel, const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& sentence : all) {
    if (sentence.starts_with(kernel + ": "))
      text += fmt::format("  {}: {}\n", what, sentence.substr(kernel.size() + 2));
  }
  return text;
}

}  // namespace

Proof prove(const Program& program, const Limits& limits, const std::vector<Work>& works) {
  Proof proof{.verification = verify(program, limits), .certificates = {}, .coverages = {}};
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    const bool structured = proof.verification.kernels[k].structured;
    proof.certificates.push_back(structured ? certify(program.kernels[k]) : Certificate{.finished = false});
    if (works.empty()) continue;
    proof.coverages.push_back(structured ? cover(program.kernels[k], works.at(k)) : Coverage{});
  }
  return proof;
}

std::string to_text(const Program& program, const Proof& proof) {
  std::string text;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    const Kernel& kernel = program.kernels[k];
    const KernelChecks& checks = proof.verification.kernels[k];
    const Certificate& certificate = proof.certificates[k];
    text += fmt::format("{}kernel {}\n", text.empty() ? "" : "\n", kernel.name);
    if (checks.structured) {
      text += bounds_text(checks) + order_text(kernel, checks, certificate);
      if (!proof.coverages.empty()) text += coverage_text(proof.coverages[k]);
      text += promises_text(kernel, checks, proof.verification.checked_promises);
    } else {
      text += "  nothing is proved: its structure is wrong\n";
    }
    text += sentences("wrong", kernel.name, proof.verification.faults);
    text += sentences("wrong", kernel.name, certificate.races);
    if (!proof.coverages.empty()) text += sentences("wrong", kernel.name, proof.coverages[k].faults);
    text += sentences("not proved", kernel.name, proof.verification.unproved);
    text += sentences("not proved", kernel.name, certificate.unproved);
    if (!proof.coverages.empty()) text += sentences("not proved", kernel.name, proof.coverages[k].unproved);
  }
  return text;
}

std::string summary(const Proof& proof) {
  KernelChecks all;
  for (const KernelChecks& k : proof.verification.kernels) {
    all.accesses += k.accesses;
    all.inside += k.inside;
    all.barriers += k.barriers;
  }
  Certificate order;
  for (const Certificate& c : proof.certificates) {
    order.finished &= c.finished;
    order.conflicts += c.conflicts + c.block_conflicts;
    order.ordered += c.ordered;
    order.apart += c.apart + c.block_apart;
  }
  std::string text = fmt::format("{} of {} accesses inside", all.inside, all.accesses);
  if (!proof.coverages.empty()) {
    Completed completed;
    for (const Coverage& coverage : proof.coverages) completed.add(coverage);
    text += ", " + completed.text();
  }
  if (!order.finished) return text + ", order of accesses not proved";
  return fmt::format("{}, {} of {} pairs of accesses ordered by barriers or never in one element, {}", text,
                     order.ordered + order.apart, order.conflicts, counted(all.barriers, "barrier"));
}

}  // namespace tc::tile
