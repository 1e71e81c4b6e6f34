#include "tc/tile/simulate.h"

#include <algorithm>

#include "tc/tile/machine.h"

namespace tc::tile {
namespace {

constexpr std::byte kPoison{0xCB};

/// The program's own buffers, and the caller's.
class Globals {
 public:
  explicit Globals(const Program& program, const Arguments& arguments) {
    for (const Tensor& tensor : program.workspace) {
      auto& bytes = owned_[tensor.name];
      bytes.assign(static_cast<size_t>(tensor.elements() * element_bytes(tensor.type)), kPoison);
      buffers_[tensor.name] = {bytes.data(), std::vector<uint8_t>(static_cast<size_t>(tensor.elements()))};
    }
    for (const auto& [name, bytes] : arguments.tensors) buffers_.try_emplace(name, GlobalBuffer{bytes.data(), {}});
  }

  std::map<std::string, GlobalBuffer>& buffers() { return buffers_; }
  bool owns(const std::string& name) const { return owned_.count(name) != 0; }

 private:
  std::map<std::string, std::vector<std::byte>> owned_;
  std::map<std::string, GlobalBuffer> buffers_;
};

Result<void> check_arguments(const Kernel& kernel, const Arguments& arguments, Globals& globals) {
  for (const Tensor& tensor : kernel.tensors) {
    if (globals.owns(tensor.name)) continue;
    const auto found = arguments.tensors.find(tensor.name);
    if (found == arguments.tensors.end()) {
      return fail("kernel '{}' is called without its tensor '{}'", kernel.name, tensor.name);
    }
    const auto needed = static_cast<size_t>(tensor.elements() * element_bytes(tensor.type));
    if (found->second.size() < needed) {
      return fail("the buffer of '{}' has {} bytes, but kernel '{}' needs {}", tensor.name, found->second.size(),
                  kernel.name, needed);
    }
    std::vector<uint8_t>& defined = globals.buffers().at(tensor.name).defined;
    if (arguments.undefined.count(tensor.name) && defined.empty()) {
      defined.resize(static_cast<size_t>(tensor.elements()));
    }
  }
  for (const Scalar& scalar : kernel.scalars) {
    const auto found = arguments.scalars.find(scalar.name);
    if (found == arguments.scalars.end()) {
      return fail("kernel '{}' is called without its scalar '{}'", kernel.name, scalar.name);
    }
    if (std::holds_alternative<double>(found->second) != scalar.type.is_float()) {
      return fail("the value of '{}' is {}, but the scalar is {}", scalar.name,
                  scalar.type.is_float() ? "an integer" : "a float", scalar.type.is_float() ? "a float" : "an integer");
    }
  }
  return {};
}

/// As whoever launches on a GPU: a written tensor overlaps no other argument.
Result<void> check_overlap(const Program& program, const Arguments& arguments) {
  std::set<std::string> written;
  for (const Kernel& kernel : program.kernels) {
    for (const Tensor& tensor : kernel.tensors) {
      if (tensor.written) written.insert(tensor.name);
    }
  }
  for (const auto& [name, bytes] : arguments.tensors) {
    if (written.count(name) == 0) continue;
    for (const auto& [other, others] : arguments.tensors) {
      const bool apart = bytes.data() + bytes.size() <= others.data() || others.data() + others.size() <= bytes.data();
      if (name == other || bytes.empty() || others.empty() || apart) continue;
      return fail("the buffer of '{}', which is written, overlaps that of '{}'", name, other);
    }
  }
  return {};
}

}  // namespace

Result<Report> simulate(const Program& program, const Arguments& arguments, const SimulatorOptions& options) {
  Report report;
  Globals globals(program, arguments);
  Findings findings(report.findings, options.findings);
  for (const Kernel& kernel : program.kernels) TC_TRY_VOID(check_arguments(kernel, arguments, globals));
  TC_TRY_VOID(check_overlap(program, arguments));
  KernelsBefore before;
  for (const Kernel& kernel : program.kernels) {
    Machine machine(kernel, before, globals.buffers(), arguments, options, findings);
    report.counters.push_back(machine.run());
    before.add(kernel);
  }
  return report;
}

}  // namespace tc::tile
