#pragma once

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tc/tile/bytecode.h"
#include "tc/tile/promise.h"
#include "tc/tile/shadow.h"
#include "tc/tile/simulate.h"

namespace tc::tile {

/// A global tensor of a run: its memory, and which elements hold a value (empty: all).
struct GlobalBuffer {
  std::byte* data = nullptr;
  std::vector<uint8_t> defined;
};

/// Gathers findings, one for each kind and site.
class Findings {
 public:
  Findings(std::vector<Finding>& list, int limit) : list_(list), limit_(limit) {}
  /// True if a finding of this kind at this site is to be described.
  bool wanted(Finding::Kind kind, const std::string& kernel, int site) {
    return static_cast<int>(list_.size()) < limit_ && seen_.insert({kernel, static_cast<int>(kind), site}).second;
  }
  void add(Finding finding) { list_.push_back(std::move(finding)); }

 private:
  std::vector<Finding>& list_;
  int limit_;
  std::set<std::tuple<std::string, int, int>> seen_;
};

/// Executes one launch.
class Machine {
 public:
  /// `before`: what the kernels before this one do to global tensors; they may still run until it waits for them.
  Machine(const Kernel& kernel, const KernelsBefore& before, std::map<std::string, GlobalBuffer>& globals,
          const Arguments& arguments, const SimulatorOptions& options, Findings& findings);
  Counters run();

 private:
  struct TensorState {
    const CodeTensor* code = nullptr;
    std::byte* data = nullptr;
    int bytes = 0;
    bool is_global = false;
    bool watched = false;         ///< for races: shared, or written in this launch
    bool waits_to_read = false;   ///< until the kernels before have ended
    bool waits_to_write = false;  ///< likewise
    std::vector<Shadow> shadow;
    std::vector<uint8_t>* defined = nullptr;  ///< null: all are
  };
  /// An asynchronous copy that has been issued.
  struct Copy {
    int lane;
    int64_t group;
    int tensor;
    int64_t offset;
    int elements;
    int site;
    std::array<std::byte, 16> bytes;
  };
  enum class State : uint8_t { kReady, kAtBarrier, kDone };
  struct Warp {
    int index = 0;
    State state = State::kReady;
    uint32_t existing = 0;  ///< lanes that are threads of the block
    uint32_t mask = 0;      ///< active lanes
    uint32_t waited = 0;    ///< lanes that have waited for the kernels before
    std::vector<uint32_t> saved;
    size_t pc = 0;
    uint32_t epoch = 0;
    int barrier_site = -1;
    std::vector<Lanes> registers;
    std::vector<Lanes> elements;            ///< of register tensors
    std::vector<uint32_t> element_defined;  ///< lanes
    std::array<int64_t, kLanes> group{};    ///< how many groups each thread has committed
    std::vector<Copy> copies;
  };

  void set_up_tensors();
  void set_up_warps();
  void start_block(const std::array<int64_t, 3>& block);
  void run_block(const std::array<int64_t, 3>& block);
  void resume(Warp& warp);
  void release_barrier();
  uint32_t lanes_where(const Warp& warp, int reg, bool uniform) const;
  bool control(Warp& warp, const Instruction& n);

  // Memory.
  void memory(Warp& warp, const Instruction& n);
  void poison(Warp& warp, const Instruction& n);
  void load(Warp& warp, const Instruction& n);
  void store(Warp& warp, int access, const Lanes& value, uint32_t mask);
  void atomic(Warp& warp, const Instruction& n);
  void move(Warp& warp, const Instruction& n);
  void copy_async(Warp& warp, const Instruction& n);
  void wait(Warp& warp, int64_t pending);
  void shuffle(Warp& warp, const Instruction& n);
  void matmul(Warp& warp, const CodeMatMul& n);
  void matrix_load(Warp& warp, const CodeMatrixLoad& n);
  bool is_together(Warp& warp, const Access& access, const char* what);
  void load_elements(Warp& warp, int access, int64_t step, uint32_t mask, Lanes& to);
  void store_elements(Warp& warp, int access, int64_t step, const Lanes& value, uint32_t mask);
  uint32_t in_bounds(Warp& warp, const Access& access, uint32_t mask, int elements, const char* verb);
  void check_waited(Warp& warp, const Access& access, uint32_t mask, bool writes);
  void check_alignment(Warp& warp, const Access& access, uint32_t mask, int64_t elements);
  void check_read(Warp& warp, const Access& access, TensorState& tensor, int lane, int64_t offset);
  void check_write(Warp& warp, const Access& access, TensorState& tensor, int lane, int64_t offset, uint8_t flags);
  void count(Warp& warp, const Access& access, uint32_t mask, int elements, bool writes);
  void count_shared(const std::array<int64_t, kLanes>& bytes, uint32_t mask, int width);

  // Findings.
  Moment moment(const Warp& warp, int lane, int site) const;
  std::string thread_text(int thread) const;
  std::string block_text() const;
  std::string element_text(Warp& warp, const Access& access, int lane) const;
  template <typename Sentence>
  void report(Finding::Kind kind, int site, Sentence sentence) {
    if (findings_.wanted(kind, kernel_.name, site)) findings_.add({kind, kernel_.name, sentence()});
  }
  void report_race(Warp& warp, const Access& access, int lane, const Shadow& shadow, bool now_writes, bool then_wrote);

  const Kernel& kernel_;
  const KernelsBefore& before_;
  std::map<std::string, GlobalBuffer>& globals_;
  const Arguments& arguments_;
  const SimulatorOptions& options_;
  Findings& findings_;
  Code code_;
  std::mt19937_64 random_;
  Counters counters_;
  std::vector<TensorState> tensors_;
  std::vector<std::byte> shared_;
  std::vector<std::vector<uint8_t>> shared_defined_;
  std::vector<Warp> warps_;
  std::array<int64_t, 3> block_{};
  uint32_t block_start_ = 1;
  uint32_t stamp_ = 0;
  uint32_t epoch_ = 0;
  int64_t budget_ = 0;  ///< loop iterations until another warp may go on
};

}  // namespace tc::tile
