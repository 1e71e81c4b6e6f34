#pragma once

#include <algorithm>
#include <deque>
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

/// Reads an element as a lane's value.
void load_lane(ScalarType type, const std::byte* from, Lanes& to, int lane);

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

/// What a block has to itself.
struct BlockState {
  /// An asynchronous copy that has been issued.
  struct Copy {
    int lane;
    int64_t group;
    int tensor;
    int64_t offset;
    int elements;
    int site;
    int access;  ///< of its destination
    std::array<std::byte, 16> bytes;
  };
  /// A ring's buffer, and its two barriers as mbarriers are: of phases, whose parity is waited for.
  struct Slot {
    int64_t full_phases = 0;   ///< that have ended
    int64_t empty_phases = 0;  ///< likewise
    bool committed = false;    ///< in the phase of the full barrier
    int64_t bytes_due = 0;     ///< that this phase still expects; less than 0 if they came before the commit
    int releases = 0;          ///< in the phase of the empty barrier
    int64_t turn = -1;         ///< that it has been acquired for
    bool is_open = false;      ///< and not committed
    int64_t box_bytes = 0;     ///< of the turn's boxes
    int team = -1;             ///< that awaits the turn, once a warp has
  };
  /// The barrier of a hand-over to a team.
  struct HandOver {
    int64_t phases = 0;  ///< that have ended
    int passes = 0;      ///< in the phase under way
  };
  struct RingState {
    std::vector<Slot> slots;
    int producer = -1;                 ///< thread
    int64_t acquired = 0;              ///< turns
    int64_t awaited = 0;               ///< turns, by the warps of a team together: one of each counts readers times
    std::vector<HandOver> hand_overs;  ///< to each team
  };
  static constexpr int64_t kChunk = 16;  ///< bytes that a swizzle keeps together
  /// The turn of a ring whose box lies, or is to arrive, in a place.
  struct Filling {
    int ring = -1;
    int64_t turn = -1;
    bool operator==(const Filling&) const = default;
  };
  struct Chunk {
    Filling filling;
    bool arrived = false;
  };
  /// A box that has been issued.
  struct Box {
    Filling filling;
    std::vector<std::pair<int64_t, std::array<std::byte, kChunk>>> chunks;  ///< by address in shared memory
    int64_t bytes = 0;
  };
  /// A warp's part of a group of products that nobody has waited for: 16 rows.
  struct Product {
    const CodeProduct* code = nullptr;
    int site = -1;
    int64_t a = 0, b = 0;  ///< addresses in shared memory; of an operand that threads hold, its first element
    std::vector<Filling> reads;
    bool done = false;
  };
  /// A box store that has been issued.
  struct StoredBox {
    const CodeBoxStore* code = nullptr;
    int site = -1;
    int lane = 0;
    int64_t group = 0;
    std::vector<int64_t> first = {};    ///< coordinates
    int64_t address = 0;                ///< of the box in shared memory
    std::vector<std::byte> bytes = {};  ///< that it has read; empty: it has not
    bool is_read_waited = false;
    bool is_written = false;
  };
  /// Registers of products that no wait has named: sums, and operands that threads hold.
  struct BusyRegisters {
    int tensor = -1;
    int64_t first = 0, count = 0;  ///< elements
    bool operator==(const BusyRegisters&) const = default;
  };
  /// What the warps of a warpgroup do together, in order.
  struct ProductStart {
    int site;
    int64_t a, b;
    bool operator==(const ProductStart&) const = default;
  };
  enum class State : uint8_t { kReady, kAtBarrier, kAtGroupBarrier, kAtClusterBarrier, kInCluster, kInRing, kDone };
  struct Warp {
    int index = 0;
    State state = State::kReady;
    uint32_t existing = 0;  ///< lanes that are threads of the block
    uint32_t mask = 0;      ///< active lanes
    uint32_t waited = 0;    ///< lanes that have waited for the kernels before
    std::vector<uint32_t> saved;
    size_t pc = 0;
    uint32_t epoch = 0;
    uint32_t group_epoch = 0;  ///< the same in all warps of a warpgroup
    int barrier_site = -1;
    std::vector<Lanes> registers;
    std::vector<Lanes> elements;            ///< of register tensors
    std::vector<uint32_t> element_defined;  ///< lanes
    std::array<int64_t, kLanes> group{};    ///< how many groups each thread has committed
    std::vector<Copy> copies;
    std::vector<StoredBox> stores;
    std::array<int64_t, kLanes> store_group{};  ///< how many groups of box stores each thread has committed
    int arrivals = 0, cluster_waits = 0;        ///< steps of the cluster's barrier that it has done
    // Of rings.
    std::vector<Filling> turns;     ///< awaited and not released
    std::vector<int64_t> awaited;   ///< the next turn, or the least that may be next of several teams, per ring; -1: it
                                    ///< has not come to the ring
    std::vector<int64_t> released;  ///< likewise
    std::vector<int64_t> taken;     ///< likewise, of hand-overs, the last one; -1: none
    std::deque<Product> products;
    size_t products_started = 0;
    std::vector<BusyRegisters> busy;
  };

  std::vector<std::byte> shared_;
  std::vector<std::vector<uint8_t>> shared_defined_;
  std::vector<std::vector<Shadow>> shared_shadows_;  ///< while another block of the cluster runs
  std::vector<Warp> warps_;
  std::array<int64_t, 3> block_{};
  uint32_t block_start_ = 1, block_end_ = UINT32_MAX;  ///< its stamps
  uint32_t stamp_ = 0;
  std::vector<RingState> rings_;
  std::vector<Chunk> chunks_;                      ///< of shared memory
  std::vector<Box> boxes_;                         ///< that have not arrived
  std::vector<Filling> releases_;                  ///< by other blocks, of turns of a ring, that have not arrived
  std::vector<std::vector<ProductStart>> starts_;  ///< by warpgroup
  // Of box stores: what they see of shared memory, and by bytes of it the thread (+ 1) that has written there without a
  // fence behind, and how many read there that nobody has waited for.
  std::vector<std::byte> fenced_;
  std::vector<uint16_t> unfenced_;
  std::vector<uint16_t> unread_;
  // Of what blocks of the cluster read of each other, by bytes of shared memory: how many times a warp had arrived when
  // it wrote there, and the most when one read there, each + 1.
  std::vector<uint8_t> written_after_;
  std::vector<uint8_t> read_after_;
};

/// Executes one launch. Blocks of a cluster take turns: what the one that runs has to itself is the machine's own, what
/// the others have lies in blocks_.
class Machine : private BlockState {
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

  void set_up_tensors();
  void set_up_warps();
  void start_block(const std::array<int64_t, 3>& block);
  void run_cluster(const std::array<int64_t, 3>& first);
  bool go_on();
  bool any_goes_on();
  void switch_to(size_t number);
  template <typename Visit>
  void for_each_block(Visit visit);
  std::vector<size_t> members(const BlockGroup& group) const;
  bool is_in_state(State state) const;
  void resume(Warp& warp);
  void release_barrier();
  void release_group_barriers();
  bool release_cluster_barrier();
  uint32_t new_stamp();
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
  void matrix_store(Warp& warp, const CodeMatrixStore& n);
  bool is_together(Warp& warp, int site, const char* what);
  void load_elements(Warp& warp, int access, int64_t step, uint32_t mask, Lanes& to);
  void store_elements(Warp& warp, int access, int64_t step, const Lanes& value, uint32_t mask);
  uint32_t in_bounds(Warp& warp, const Access& access, uint32_t mask, int elements, const char* verb);
  void check_waited(Warp& warp, const Access& access, uint32_t mask, bool writes);
  void check_alignment(Warp& warp, const Access& access, uint32_t mask, int64_t elements);
  void check_read(Warp& warp, const Access& access, TensorState& tensor, int lane, int64_t offset);
  void check_write(Warp& warp, const Access& access, TensorState& tensor, int lane, int64_t offset, uint8_t flags);
  void count(Warp& warp, const Access& access, uint32_t mask, int elements, bool writes);
  void count_shared(const std::array<int64_t, kLanes>& bytes, uint32_t mask, int width);

  // Rings.
  void start_rings();
  void make_ring(Warp& warp, const Instruction& n);
  bool ring_wait(Warp& warp, const Instruction& n);
  bool has_passed(Warp& warp, const Instruction& n);
  bool has_passed(Warp& warp, const Instruction& n, int64_t turn);
  void acquire(Warp& warp, const Instruction& n);
  void await(Warp& warp, const Instruction& n);
  void commit_turn(Warp& warp, const Instruction& n);
  void release(Warp& warp, const Instruction& n);
  void pass(Warp& warp, const Instruction& n);
  void take(Warp& warp, const Instruction& n);
  HandOver& hand_over_of(int ring, int64_t number);
  void box_copy(Warp& warp, const CodeBoxCopy& n);
  void copy_row(const CodeBoxCopy& n, const std::vector<int64_t>& coordinates, int64_t address, Box& box);
  void read_element(const CodeBoxCopy& n, int64_t element, int64_t e, std::array<std::byte, kChunk>& bytes,
                    int64_t& last_sector);
  void issue(const CodeBoxCopy& n, Box box);
  bool claim(const CodeBoxCopy& n, int64_t place, const Filling& filling);
  void release_in(size_t number, const Filling& filling, int site);
  void count_release(const Filling& filling);
  void arrive(size_t box);
  void arrive_release();
  void end_phase(Slot& slot) const;
  bool wake_in_rings();
  void happen();
  void end_rings();
  void report_deadlock();
  bool is_whole_warp(Warp& warp, const Instruction& n);
  bool is_one_thread(Warp& warp, const Instruction& n, const char* verb);
  bool has_ended() const {
    return std::ranges::all_of(warps_, [](const Warp& w) { return w.state == State::kDone; });
  }
  Slot& slot_of(int ring, int64_t turn);
  int64_t turn_of(const Warp& warp, int reg) const;
  bool has_turn(const Warp& warp, const Filling& filling) const;
  std::string turn_text(const Filling& filling) const;
  void check_filled(Warp& warp, const Access& access, const TensorState& tensor, int lane, int64_t offset, bool writes);

  // Clusters.
  void start_cluster_loads();
  void arrive_in_cluster(Warp& warp, int site);
  bool wake_in_cluster();
  void cluster_load(Warp& warp, const Instruction& n);
  void check_cluster_load(const Warp& warp, const CodeTensor& source, int site, int64_t first);
  void mark_for_cluster(const Warp& warp, const Access& access, int lane, int64_t offset);
  void end_cluster_loads();

  // Stores of boxes.
  void start_stores();
  template <typename Visit>
  void for_each_stored(const StoredBox& store, Visit visit) const;
  void box_store(Warp& warp, const CodeBoxStore& n);
  void box_step(Warp& warp, const Instruction& n);
  void mark_unfenced(const Warp& warp, const Access& access, int lane, int64_t offset);
  void wait_stores(Warp& warp, int lane, int64_t pending, bool is_written);
  void read_store(StoredBox& store);
  void write_store(StoredBox& store);
  void progress_stores();
  void check_stores_read(Warp& warp);
  void end_stores();

  // Products of warpgroups.
  void start_product(Warp& warp, const CodeProduct& n, int site);
  void wait_products(Warp& warp, const CodeProductWait& n, int site);
  void run_products(Warp& warp, size_t count);
  void run_product(Warp& warp, Product& product);
  void take_registers(Warp& warp, const BusyRegisters& registers, bool reads, int site);
  static bool uses(const Product& product, int tensor);
  void fetch_held(Warp& warp, const Product& product, int slice, std::vector<float>& to) const;
  void fetch(Warp& warp, Product& product, bool is_a, int slice, std::vector<float>* to);
  void check_chunk(Warp& warp, Product& product, const CodeProduct::Tile& tile, int64_t address, bool is_issue);
  void check_busy(Warp& warp, const Access& access, const char* verb);
  void abandon_registers(Warp& warp, int tensor);
  int64_t shared_address(const Warp& warp, int access) const;

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
  std::vector<BlockState> blocks_;  ///< of the cluster; empty: there is one
  std::vector<size_t> arrived_;     ///< warps of the cluster, for each turn of its barrier
  size_t number_ = 0;               ///< in the cluster, of the block that runs
  uint32_t last_stamp_ = 0;
  uint32_t epoch_ = 0;
  int64_t budget_ = 0;  ///< loop iterations until another warp may go on
  bool is_stuck_ = false;
};

}  // namespace tc::tile
