#pragma once

#include <map>
#include <string>
#include <vector>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/strategy/halo/plan.h"

namespace tc::gpu {

/// Code for the elements of stages, wherever a kernel keeps the tensors between them.
class StageWriter {
 public:
  /// `unrolled`: turns of a reduction that are laid out at once. `in_registers`: buffers are there, or
  /// else in shared memory.
  StageWriter(const poly::Scop& scop, int64_t unrolled, bool in_registers);

  const ir::Program& program() const { return program_; }
  ir::Names& names() { return names_; }
  /// A buffer for what a tile or strip has of a tensor within its reach. From now on the tensor's elements are there.
  tile::Tensor hold(const std::string& tensor, const std::vector<Reach>& reach, const HaloPlan& plan,
                    const std::vector<poly::Ranged>& firsts);
  /// They are in the tensor itself again.
  void take_back(const std::string& tensor);

  /// The element of a stage's tensor at a place of which nothing is known, if it exists; of a copy that stands for
  /// guards, else what they choose. Or so many neighbours in a row, of which all exist or none.
  tile::NodePtr if_exists(const HaloStage& stage, std::vector<poly::Ranged> at, int64_t count = 1);
  /// The same where it does.
  tile::NodePtr element_of(const HaloStage& stage, const std::vector<poly::Ranged>& at);
  /// From the tensor's buffer to the tensor itself.
  tile::NodePtr store(const std::string& tensor, const std::vector<poly::Ranged>& at) const;

 private:
  /// What a copy has that stands for guards, at a place outside of its input.
  tile::NodePtr outside(const HaloStage& stage, const std::vector<poly::Ranged>& at) const;
  tile::NodePtr copy(const std::string& tensor, const std::vector<poly::Ranged>& at) const;
  tile::NodePtr instances(const HaloStage& stage, const std::vector<poly::Ranged>& at);
  tile::NodePtr reduce(const HaloStage& stage, const poly::Statement& statement, size_t next,
                       const BodyContext& context, const tile::Tensor& sum);

  const ir::Program& program_;
  int64_t unrolled_;
  bool in_registers_;
  ir::Names names_;
  std::map<std::string, Place> places_;
};

/// A value that is known to be in a range. It stays the expression that it is, even if there is only one such value:
/// the subscripts of registers are constant because the same variables are in offsets.
poly::Ranged known_within(const poly::Ranged& value, const ir::Range& range);

/// Whether a thread that copies an element of the type may go on before it has it.
bool is_asynchronous(const Halide::Type& type);

}  // namespace tc::gpu
