#include "tc/cpu/interleaved_groups.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/LoopIterator.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace tc::cpu {
namespace {

/// A load or store in a loop.
struct Access {
  llvm::Instruction* instruction = nullptr;
  const llvm::SCEV* address = nullptr;
  int64_t stride_bytes = 0;  ///< by which it moves from one iteration to the next; 0 if that varies
  int64_t bytes = 0;         ///< that it touches

  bool is_store() const { return llvm::isa<llvm::StoreInst>(instruction); }
  /// Only what skips elements is gathered into groups.
  bool can_be_grouped() const { return std::abs(stride_bytes) > bytes; }
};

class LoopAccesses {
 public:
  LoopAccesses(llvm::Loop& loop, llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution, llvm::AAResults& alias)
      : loop_(loop), evolution_(evolution), alias_(alias) {
    llvm::LoopBlocksRPO order(&loop);
    order.perform(&loops);
    for (llvm::BasicBlock* block : order) {
      for (llvm::Instruction& instruction : *block) add(instruction);
    }
  }

  /// Whether an address has a counter of fewer than 32 bits in it: i * 3 % 32 is one of 5 bits.
  bool may_start_anew() const {
    return std::any_of(accesses_.begin(), accesses_.end(), [&](const Access& access) {
      return llvm::SCEVExprContains(access.address, [&](const llvm::SCEV* part) {
        const auto* extended = llvm::dyn_cast<llvm::SCEVZeroExtendExpr>(part);
        const auto* counter = extended ? llvm::dyn_cast<llvm::SCEVAddRecExpr>(extended->getOperand()) : nullptr;
        return counter != nullptr && counter->getLoop() == &loop_ && counter->getType()->getIntegerBitWidth() < 32;
      });
    });
  }

  bool may_be_grouped_wrongly() const {
    for (size_t store = 0; store < accesses_.size(); ++store) {
      if (!accesses_[store].is_store()) continue;
      const size_t latest = last_mate(store);
      for (size_t later = store + 1; later < accesses_.size(); ++later) {
        if (first_mate(later) <= latest && may_touch_the_same(accesses_[later], accesses_[store])) return true;
      }
    }
    return false;
  }

 private:
  void add(llvm::Instruction& instruction) {
    llvm::Value* pointer = llvm::getLoadStorePointerOperand(&instruction);
    if (pointer == nullptr) return;
    const llvm::DataLayout& layout = instruction.getModule()->getDataLayout();
    Access access{&instruction, evolution_.getSCEV(pointer), 0,
                  static_cast<int64_t>(layout.getTypeAllocSize(llvm::getLoadStoreType(&instruction)).getFixedValue())};
    const auto* recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(access.address);
    if (recurrence != nullptr && recurrence->getLoop() == &loop_) {
      const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(recurrence->getStepRecurrence(evolution_));
      if (step != nullptr) access.stride_bytes = step->getAPInt().getSExtValue();
    }
    accesses_.push_back(access);
  }

  std::optional<int64_t> distance(const Access& a, const Access& b) const {
    if (a.address->getType() != b.address->getType()) return std::nullopt;
    const auto* bytes = llvm::dyn_cast<llvm::SCEVConstant>(evolution_.getMinusSCEV(a.address, b.address));
    if (bytes == nullptr) return std::nullopt;
    return bytes->getAPInt().getSExtValue();
  }

  /// Whether an access may touch what the store has written, in this iteration or an earlier.
  bool may_touch_the_same(const Access& access, const Access& store) const {
    const auto anywhere = [](const Access& of) {
      return llvm::MemoryLocation::getBeforeOrAfter(llvm::getLoadStorePointerOperand(of.instruction),
                                                    of.instruction->getAAMetadata());
    };
    if (alias_.isNoAlias(anywhere(access), anywhere(store))) return false;
    const std::optional<int64_t> apart = distance(access, store);
    if (!apart || access.stride_bytes != store.stride_bytes || access.stride_bytes == 0) return true;
    const int64_t stride = std::abs(access.stride_bytes);
    const int64_t from_store = ((*apart % stride) + stride) % stride;
    return from_store < store.bytes || stride - from_store < access.bytes;
  }

  /// Whether two accesses may be in one group.
  bool are_mates(const Access& a, const Access& b) const {
    return a.is_store() == b.is_store() && a.can_be_grouped() && a.stride_bytes == b.stride_bytes &&
           a.bytes == b.bytes && distance(a, b);
  }

  /// Where a group may run the store at a place: where its last member is.
  size_t last_mate(size_t place) const {
    for (size_t i = accesses_.size() - 1; i > place; --i) {
      if (are_mates(accesses_[i], accesses_[place])) return i;
    }
    return place;
  }

  /// Where a group may run the load at a place: where its first member is. A store never runs earlier.
  size_t first_mate(size_t place) const {
    if (accesses_[place].is_store()) return place;
    for (size_t i = 0; i < place; ++i) {
      if (are_mates(accesses_[i], accesses_[place])) return i;
    }
    return place;
  }

  llvm::Loop& loop_;
  llvm::ScalarEvolution& evolution_;
  llvm::AAResults& alias_;
  std::vector<Access> accesses_;  ///< in the order in which they run
};

}  // namespace

llvm::PreservedAnalyses ForbidWrongGroups::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
  auto& alias = analyses.getResult<llvm::AAManager>(function);
  for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
    if (!loop->isInnermost()) continue;
    const LoopAccesses accesses(*loop, loops, evolution, alias);
    if (!accesses.may_be_grouped_wrongly() && !accesses.may_start_anew()) continue;
    llvm::addStringMetadataToLoop(loop, "llvm.loop.vectorize.enable", 0);
  }
  return llvm::PreservedAnalyses::all();
}

}  // namespace tc::cpu
