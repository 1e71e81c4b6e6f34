#include "tc/gpu/strategy/rows/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "tc/gpu/rewrite/statements.h"
#include "tc/ir/halide_compat.h"
#include "tc/ir/layouts.h"
#include "tc/ir/specialise.h"
#include "tc/support/round.h"

namespace tc::gpu {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kSectorBytes = 32;
constexpr int64_t kBlockThreads = 256;
constexpr int64_t kMostLanes = 1024;
constexpr int64_t kVectorsInFlight = 4;
constexpr int64_t kHeldBytes = 256;     ///< of a thread's registers
constexpr int64_t kBusyThreads = 1024;  ///< of a processor

/// Bytes of elements that the registers of one of a block's threads have room for, beside what else it needs.
int64_t held_limit(int64_t threads) {
  constexpr int64_t kRegisters = 65536, kOthers = 32, kBytes = 4;
  return std::min(kHeldBytes, (kRegisters / threads - kOthers) * kBytes);
}

class Planner {
 public:
  Planner(const FusedGroup& part, const options::MappingOptions& options, const Device& device, Reasons& reasons)
      : part_(part), options_(options), device_(device), reasons_(reasons), uses_(uses_of(part)) {}

  /// `apart`: neighbouring lanes may read elements that are far apart, one by one.
  std::optional<RowsPlan> plan(bool apart) {
    if (!look()) return std::nullopt;
    if (!choose_vector(true)) {
      if (!apart) return refuse("neighbouring threads would read elements that are far apart");
      plan_.vector = 1;
    }
    choose_lanes();
    if (!plan_.holds_elements) {
      choose_vector(false);
      choose_lanes();
    }
    choose_beside();
    choose_rows();
    return checked();
  }

  /// Rows that stay in shared memory, where a processor has so many blocks. `shifted`: they begin between vectors.
  std::optional<RowsPlan> plan_kept(int64_t blocks, bool shifted) {
    if (!look() || !choose_vector(false) || !choose_buffers()) return std::nullopt;
    if (shifted && !choose_shifted_vector()) return std::nullopt;
    plan_.lanes = lanes_beside(blocks);
    choose_beside();
    if (options_.map_to_threads.size() > 1) plan_.rows = options_.map_to_threads[1];
    plan_.kept = kept_chunks(shared_room(blocks));
    if (plan_.kept == 0) return std::nullopt;
    return checked();
  }

 private:
  std::nullopt_t refuse(const char* reason) {
    reasons_.part.emplace_back(reason);
    return std::nullopt;
  }

  bool look();
  std::optional<RowsPlan> checked();
  bool has_elements_apart() const;
  bool find_tensors();
  size_t number_of(const GroupStatement& s) const { return static_cast<size_t>(&s - part_.statements.data()); }
  bool reads_one_place(const GroupStatement& s, const std::string& tensor, const Signature& place) const;
  void add_read(const std::string& tensor);
  bool add_written(const std::string& tensor);
  bool choose_vector(bool holds_elements);
  bool choose_shifted_vector();
  Expr offset_of_row(const std::string& name) const;
  bool stays_in_registers(const std::string& tensor) const;
  void choose_lanes();
  bool choose_buffers();
  int64_t lanes_beside(int64_t blocks) const;
  int64_t shared_room(int64_t blocks) const;
  int64_t kept_chunks(int64_t bytes) const;
  void choose_beside();
  void choose_rows();
  int64_t rows_of_all() const;
  int64_t blocks() const;
  std::string fault_of_wish() const;
  int64_t held_bytes(int64_t lanes) const;

  const FusedGroup& part_;
  const options::MappingOptions& options_;
  const Device& device_;
  Reasons& reasons_;
  std::vector<Use> uses_;
  RowsPlan plan_;
  int64_t longest_ = 1;
};

/// What the statements do with the lanes; false if that is nothing for rows.
bool Planner::look() {
  const auto refuse = [this](const char* reason) {
    reasons_.part.emplace_back(reason);
    return false;
  };
  for (const GroupStatement& s : part_.statements) {
    const std::optional<RowWork> work = work_of(s);
    if (!work) return refuse("a statement both reduces and has loops inside that it does not reduce over");
    plan_.work.push_back(*work);
    longest_ = std::max(longest_, s.inner_size());
  }
  if (std::count(plan_.work.begin(), plan_.work.end(), RowWork::kReduce) == 0) {
    return refuse("there is no reduction inside of the shared loops");
  }
  if (has_elements_apart()) return refuse("elements that no reduction goes through get a launch of their own");
  return find_tensors() || refuse("an element of one statement is not the same thread's in another");
}

/// The plan, if it is what the options say, and the device has the blocks.
std::optional<RowsPlan> Planner::checked() {
  if (const std::string fault = fault_of_wish(); !fault.empty()) {
    reasons_.options.push_back(fault);
    return std::nullopt;
  }
  plan_.unroll = options_.unroll.value_or(plan_.unroll);
  if (blocks() > device_.grid[0]) return refuse("it would need more blocks than the device has");
  return plan_;
}

/// Whether there is much to do for elements that no reduction goes through: of the row they need nothing but its
/// results, and in a launch of their own there are more threads for them.
bool Planner::has_elements_apart() const {
  constexpr int64_t kLaunches = 8;
  if (!options_.map_to_threads.empty() || options_.outer_schedule_options.fusion) return false;
  for (size_t i = 0; i < part_.statements.size(); ++i) {
    const GroupStatement& s = part_.statements[i];
    if (plan_.work[i] != RowWork::kElements || s.inner_size() < kLaunches * device_.instances_of_launch / rows_of_all())
      continue;
    bool apart = true;
    for (size_t j = 0; j < part_.statements.size(); ++j) {
      apart = apart && (plan_.work[j] != RowWork::kReduce || !same_loops(s, part_.statements[j]));
    }
    if (apart) return true;
  }
  return false;
}

/// Whether all that the statement reads of a tensor that nobody writes is elements at one place, and always read.
bool Planner::reads_one_place(const GroupStatement& s, const std::string& tensor, const Signature& place) const {
  if (reads_under_condition(s, tensor)) return false;
  return std::all_of(uses_.begin(), uses_.end(), [&](const Use& use) {
    return use.statement != &s || use.tensor != tensor || is_same(signature_of(s, *use.subscripts), place);
  });
}

/// Gives lanes a tensor that the part only reads, if several statements read it where the first does.
void Planner::add_read(const std::string& tensor) {
  RowTensor found;
  Signature place;
  for (const Use& use : uses_) {
    const bool chosen = std::any_of(use.subscripts->begin(), use.subscripts->end(),
                                    [&](const Expr& e) { return reads_tensor(*part_.scop->program, e); });
    if (use.tensor != tensor || chosen) continue;
    const GroupStatement& s = *use.statement;
    if (found.user == nullptr) {
      if (loops_of(s).empty()) continue;
      place = signature_of(s, *use.subscripts);
      found.of_elements = count_loops(place, loops_of(s).size()) > 0;
      found.user = &s;
      found.subscripts = use.subscripts;
    }
    if (found.of_elements && !same_loops(s, *found.user)) continue;
    if (!reads_one_place(s, tensor, place)) continue;
    found.last_read = number_of(s);
    found.users.insert(found.last_read);
  }
  found.read_before = true;
  const auto in_loops = std::count_if(found.users.begin(), found.users.end(),
                                      [&](size_t user) { return !loops_of(part_.statements[user]).empty(); });
  if (in_loops > 1 && found.users.count(number_of(*found.user)) > 0) plan_.tensors.emplace(tensor, found);
}

/// Gives lanes a tensor that the part writes, and whose accesses are all at the same subscripts; false if they are not.
bool Planner::add_written(const std::string& tensor) {
  RowTensor found;
  std::optional<Signature> first;
  for (const Use& use : uses_) {
    if (use.tensor != tensor) continue;
    const GroupStatement& s = *use.statement;
    if (reads_under_condition(s, tensor)) return false;
    for (const Expr& e : *use.subscripts) {
      if (reads_tensor(*part_.scop->program, e)) return false;
    }
    const Signature signature = signature_of(s, *use.subscripts);
    const int64_t loops = count_loops(signature, loops_of(s).size());
    if (!first) {
      first = signature;
      found.user = &s;
      found.subscripts = use.subscripts;
      found.of_elements = loops > 0;
    }
    if (!is_same(signature, *first) || (loops > 0 && !same_loops(s, *found.user))) return false;
    const size_t number = number_of(s);
    const bool updates = use.is_write && s.statement->kind == poly::Statement::Kind::kUpdate;
    found.read_before = found.read_before || (!found.written && (!use.is_write || updates));
    found.written = found.written || use.is_write;
    found.users.insert(number);
    if (use.is_write) found.last_write = number;
    if (!use.is_write || updates) found.last_read = number;
    // One element for each instance: no two lanes may write the same. Rows have nothing in common (FusedGroup).
    const size_t all = *work_of(s) == RowWork::kElements ? loops_of(s).size() : 0;
    if (use.is_write && (static_cast<size_t>(loops) != all || !tells_loops(signature, all))) return false;
  }
  plan_.tensors.emplace(tensor, found);
  return true;
}

/// What is written must belong to lanes; what is read again may.
bool Planner::find_tensors() {
  for (const Use& use : uses_) {
    if (plan_.tensors.count(use.tensor) > 0) continue;
    if (part_.writes(use.tensor)) {
      if (!add_written(use.tensor)) return false;
    } else {
      add_read(use.tensor);
    }
  }
  // A reduction's partial results know nothing of what its element holds.
  for (const Use& use : uses_) {
    if (!use.is_write && use.tensor == use.statement->statement->tensor &&
        *work_of(*use.statement) == RowWork::kReduce) {
      return false;
    }
  }
  return true;
}

/// Whether a tensor of elements is never in memory, if lanes hold theirs.
bool Planner::stays_in_registers(const std::string& tensor) const {
  const auto found = plan_.tensors.find(tensor);
  return found != plan_.tensors.end() && found->second.of_elements && !found->second.read_before &&
         !part_.is_seen_outside(tensor);
}

/// The widest vectors along the last inner loop; false if some tensor's neighbours lie apart.
bool Planner::choose_vector(bool holds_elements) {
  int64_t bytes = 1, divisor = 0;
  bool aligned = true;
  for (const Use& use : uses_) {
    const GroupStatement& s = *use.statement;
    const std::vector<int> loops = loops_of(s);
    if (loops.empty()) continue;
    const auto last = static_cast<size_t>(loops.back());
    const std::string& index = s.statement->indices[last];
    divisor = std::gcd(std::gcd(divisor, s.ranges[last].extent), s.ranges[last].begin);
    for (size_t d = 0; d < use.subscripts->size(); ++d) {
      const Expr& e = (*use.subscripts)[d];
      if (!ir::mentions(e, index)) continue;
      const ir::Tensor& tensor = part_.scop->program->tensor(use.tensor);
      if (const std::optional<int64_t> together = ir::sharing_neighbours(e, index); together && *together > 1) {
        divisor = std::gcd(divisor, *together);
        continue;
      }
      if (d != nearest_dimension(tensor)) return false;
      const int64_t apart = ir::strides_of(tensor)[d];
      if (apart * tensor.type.bytes() > kSectorBytes) return false;
      const std::optional<int64_t> offset = ir::offset_divisor(e, index);
      aligned = aligned && offset && apart == 1 && !tensor.type.is_bool();
      divisor = std::gcd(divisor, offset.value_or(0));
      if (holds_elements && stays_in_registers(use.tensor)) continue;
      bytes = std::max<int64_t>(bytes, tensor.type.bytes());
      divisor = std::gcd(divisor, ir::pitch_of(tensor));
    }
  }
  plan_.vector = aligned ? kVectorBytes / bytes : 1;
  while (divisor % plan_.vector != 0) plan_.vector /= 2;
  return true;
}

/// Where a tensor's row begins, as a function of the shared members, modulo the vector.
Expr Planner::offset_of_row(const std::string& name) const {
  const RowTensor& tensor = plan_.tensors.at(name);
  const std::vector<int64_t> strides = ir::strides_of(part_.scop->program->tensor(name));
  const auto loop = static_cast<size_t>(loops_of(*tensor.user).front());
  std::map<std::string, Expr> first;
  first[tensor.user->statement->indices[loop]] = index_constant(tensor.user->ranges[loop].begin);
  std::vector<Expr> at;
  for (const Expr& e : *tensor.subscripts) at.push_back(hi::substitute(first, e));
  const Signature signature = signature_of(*tensor.user, at);
  Expr offset = index_constant(0);
  for (size_t d = strides.size(); d-- > 0;) {
    offset = offset + signature[d] * index_constant(strides[d] % plan_.vector);
  }
  return hi::simplify(offset);
}

/// Vectors of rows that begin and end between them; false if that makes no wider ones, or if rows that are kept begin
/// at different places in their vectors.
bool Planner::choose_shifted_vector() {
  int64_t bytes = 1;
  for (const Use& use : uses_) {
    const GroupStatement& s = *use.statement;
    const std::vector<int> loops = loops_of(s);
    if (loops.size() > 1) return false;
    const bool runs_along = !loops.empty() && !use.subscripts->empty() &&
                            ir::mentions(use.subscripts->back(), s.statement->indices[static_cast<size_t>(loops[0])]);
    const ir::Tensor& tensor = part_.scop->program->tensor(use.tensor);
    const Halide::Type type = tensor.type;
    if (tensor.at_any_address) return false;
    if (!loops.empty() && nearest_dimension(tensor) + 1 != tensor.extents.size()) return false;
    if (runs_along && type.is_bool()) return false;
    if (runs_along) bytes = std::max<int64_t>(bytes, type.bytes());
  }
  const int64_t plain = std::exchange(plan_.vector, kVectorBytes / bytes);
  if (plan_.vector <= plain) return false;
  for (const auto& [name, tensor] : plan_.tensors) {
    if (tensor.buffer < 0 || !tensor.read_before) continue;
    if (plan_.shifted_by.empty()) plan_.shifted_by = name;
    const auto apart = hi::modulus_remainder(hi::simplify(offset_of_row(name) - offset_of_row(plan_.shifted_by)));
    if (apart.modulus % plan_.vector != 0 || apart.remainder % plan_.vector != 0) return false;
  }
  return !plan_.shifted_by.empty();
}

/// A register holds a vector's elements together, but one element of its own alone.
int64_t Planner::held_bytes(int64_t lanes) const {
  constexpr int64_t kRegister = 4;
  const int64_t vectors = ceil_div(ceil_div(longest_, plan_.vector), lanes);
  int64_t bytes = 0;
  for (const auto& [name, tensor] : plan_.tensors) {
    const int64_t type = part_.scop->program->tensor(name).type.bytes();
    if (tensor.of_elements) bytes += vectors * std::max(plan_.vector * type, kRegister);
  }
  return bytes;
}

/// Few enough that each has several vectors to ask for at once; more where rows are few, or registers would not do.
void Planner::choose_lanes() {
  int64_t rows = 1;
  for (const ir::Range& range : part_.members) rows = std::min(rows * range.extent, int64_t{1} << 40);
  const int64_t vectors = (longest_ + plan_.vector - 1) / plan_.vector;
  const auto power = [](int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); };
  const int64_t limit = std::min(kMostLanes, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(
                                                 std::min(device_.threads_per_block, device_.block[0])))));
  plan_.lanes = std::min(power(ceil_div(vectors, kVectorsInFlight)), std::min(kBlockThreads, limit));
  while (plan_.lanes < std::min(vectors, limit) && rows * plan_.lanes < device_.processors * kBusyThreads)
    plan_.lanes *= 2;
  const bool wished = !options_.map_to_threads.empty();
  if (wished) plan_.lanes = options_.map_to_threads[0];
  int64_t held = plan_.lanes;
  while (!wished && held_bytes(held) > held_limit(held) && held < limit) held *= 2;
  plan_.holds_elements = held_bytes(held) > 0 && held_bytes(held) <= held_limit(held);
  if (plan_.holds_elements) plan_.lanes = held;
}

/// Gives tensors that are used again buffers in shared memory; false if there are none. One that a statement writes
/// first takes the buffer of one that this statement reads last.
bool Planner::choose_buffers() {
  std::vector<size_t> last_used;  // per buffer: a statement
  std::vector<std::pair<Halide::Type, RowTensor*>> order;
  for (auto& [name, tensor] : plan_.tensors) {
    if (!tensor.is_used_again() || tensor.user->inner_size() != longest_) continue;
    order.emplace_back(part_.scop->program->tensor(name).type, &tensor);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(!a.second->read_before, a.second->first_use()) <
           std::pair(!b.second->read_before, b.second->first_use());
  });
  for (const auto& [type, tensor] : order) {
    size_t b = 0;
    while (b < last_used.size() &&
           (tensor->read_before || plan_.buffers[b] != type || last_used[b] > tensor->first_use())) {
      ++b;
    }
    tensor->buffer = static_cast<int>(b);
    if (b == last_used.size()) {
      plan_.buffers.push_back(type);
      last_used.push_back(0);
    }
    last_used[b] = std::max(tensor->last_read, tensor->last_write);
  }
  return !order.empty();
}

/// Threads of a row that keep a processor busy if it has so many blocks.
int64_t Planner::lanes_beside(int64_t blocks) const {
  if (!options_.map_to_threads.empty()) return options_.map_to_threads[0];
  const auto floor = [](int64_t n) { return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n))); };
  const int64_t vectors = ceil_div(longest_, plan_.vector);
  return floor(
      std::min({std::max(kBusyThreads / blocks, kBlockThreads), vectors, device_.threads_per_block, device_.block[0]}));
}

/// Bytes for rows in each of a processor's blocks.
int64_t Planner::shared_room(int64_t blocks) const {
  constexpr int64_t kReserved = 1024, kAligned = 128;  // of each block; between buffers
  int64_t room = (device_.shared_bytes + kReserved) / blocks - kReserved;
  if (options_.max_shared_memory) room = std::min(room, *options_.max_shared_memory);
  for (size_t i = 0; i < part_.statements.size(); ++i) {
    if (plan_.work[i] != RowWork::kReduce) continue;
    room -= plan_.rows * ceil_div(plan_.lanes, 32) * part_.statements[i].statement->accumulator.bytes() + kAligned;
  }
  return room - kAligned * static_cast<int64_t>(plan_.buffers.size());
}

/// Chunks of a row that have room in so many bytes; the last of them may be a part of one.
int64_t Planner::kept_chunks(int64_t bytes) const {
  int64_t element = 0;
  for (const Halide::Type& type : plan_.buffers) element += plan_.rows * type.bytes();
  const int64_t chunk = plan_.lanes * plan_.vector;
  const int64_t row = plan_.positions(longest_);
  if (row * element <= bytes) return ceil_div(row, chunk);
  return std::max<int64_t>(bytes, 0) / (chunk * element);
}

int64_t Planner::rows_of_all() const {
  int64_t all = 1;
  for (const ir::Range& member : part_.members) all *= std::min(member.extent, (INT64_MAX >> 1) / all);
  return all;
}

void Planner::choose_beside() {
  for (size_t m = 0; m < part_.members.size(); ++m) {
    if (part_.members[m].extent > 1) plan_.beside = static_cast<int>(m);
  }
}

void Planner::choose_rows() {
  if (options_.map_to_threads.size() > 1) plan_.rows = options_.map_to_threads[1];
  if (plan_.beside < 0 || !options_.map_to_threads.empty()) return;
  const auto beside = static_cast<size_t>(plan_.beside);
  const int64_t extent = part_.members[beside].extent;
  if (beside < options_.tile.size()) {
    plan_.rows = std::min(options_.tile[beside], extent);
    return;
  }
  const int64_t all = rows_of_all();
  const int64_t block = std::min(kBlockThreads, device_.threads_per_block);
  int64_t most = std::min({std::max<int64_t>(block / plan_.lanes, 1), extent, device_.block[1]});
  while (most > 1 && most * plan_.lanes > 32 && all / most < 2 * device_.processors) most /= 2;
  plan_.rows = divisor_near(extent, most);
}

int64_t Planner::blocks() const {
  if (plan_.beside < 0) return 1;
  const int64_t extent = part_.members[static_cast<size_t>(plan_.beside)].extent;
  return rows_of_all() / extent * ((extent + plan_.rows - 1) / plan_.rows);
}

/// What the options say that the plan is not; empty: nothing.
std::string Planner::fault_of_wish() const {
  if (!std::has_single_bit(static_cast<uint64_t>(plan_.lanes))) {
    return fmt::format("the {} threads of a row are no power of two", plan_.lanes);
  }
  if (plan_.lanes * plan_.rows > device_.threads_per_block || plan_.lanes > device_.block[0] ||
      plan_.rows > device_.block[1]) {
    return fmt::format("{} rows of {} threads are more than a block may have", plan_.rows, plan_.lanes);
  }
  if (options_.map_to_threads.size() > 2 && options_.map_to_threads[2] > 1) return "threads for rows have no z";
  if (plan_.beside < 0 && plan_.rows > 1) return "there is one row";
  for (size_t m = 0; m < part_.members.size(); ++m) {
    const int64_t rows = static_cast<int>(m) == plan_.beside ? plan_.rows : 1;
    if (m < options_.tile.size() && std::min(options_.tile[m], part_.members[m].extent) != rows) {
      return fmt::format("a block has {} rows, not {}", rows, options_.tile[m]);
    }
    if (m < options_.register_tile.size() && options_.register_tile[m] != 1) {
      return fmt::format("threads that share rows have a part of a result each, not {}", options_.register_tile[m]);
    }
  }
  return "";
}

}  // namespace

std::optional<RowsPlan> plan_rows(const FusedGroup& part, const options::MappingOptions& options, const Device& device,
                                  Reasons& reasons) {
  return Planner(part, options, device, reasons).plan(false);
}

std::optional<RowsPlan> plan_rows_read_apart(const FusedGroup& part, const options::MappingOptions& options,
                                             const Device& device) {
  Reasons none;
  return Planner(part, options, device, none).plan(true);
}

int64_t RowsPlan::positions(int64_t elements) const {
  return shifted_by.empty() ? elements : ceil_div(elements + vector - 1, vector) * vector;
}

bool RowsPlan::rereads() const {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& named) { return named.second.is_used_again(); });
}

bool RowsPlan::keeps_all() const {
  return std::all_of(tensors.begin(), tensors.end(), [&](const auto& named) {
    return named.second.buffer < 0 || kept * lanes * vector >= positions(named.second.user->inner_size());
  });
}

namespace {

std::vector<RowsPlan> plans_kept(const FusedGroup& part, const options::MappingOptions& options, const Device& device,
                                 bool shifted) {
  constexpr int64_t kMostBlocks = 8;
  std::vector<RowsPlan> plans;
  for (int64_t blocks = 1; blocks <= kMostBlocks; ++blocks) {
    Reasons none;
    std::optional<RowsPlan> plan = Planner(part, options, device, none).plan_kept(blocks, shifted);
    if (!plan) break;
    const bool is_whole = plan->keeps_all();
    if (!is_whole && (blocks > 2 || (!plans.empty() && plans.back().keeps_all()))) break;
    if (is_whole) plans.clear();  // more blocks keep as much
    plans.push_back(*std::move(plan));
  }
  return plans;
}

}  // namespace

std::vector<RowsPlan> plan_kept_rows(const FusedGroup& part, const options::MappingOptions& options,
                                     const Device& device) {
  std::vector<RowsPlan> plans = plans_kept(part, options, device, false);
  for (RowsPlan& plan : plans_kept(part, options, device, true)) plans.push_back(std::move(plan));
  return plans;
}

options::MappingOptions options_of(const RowsPlan& plan, const FusedGroup& part) {
  options::MappingOptions options;
  if (plan.kept > 0) options.use_shared_memory = true;
  options.map_to_threads = {plan.lanes, plan.rows};
  for (size_t m = 0; m < part.members.size(); ++m) {
    options.tile.push_back(static_cast<int>(m) == plan.beside ? plan.rows : 1);
  }
  options.register_tile.assign(std::max<size_t>(part.members.size(), 1), 1);
  options.unroll = plan.unroll;
  return options;
}

}  // namespace tc::gpu
