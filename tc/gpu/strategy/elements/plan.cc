#include "tc/gpu/strategy/elements/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "tc/gpu/rewrite/instructions.h"
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
constexpr int64_t kFlightBytes = 16;  ///< that a thread should have asked for at once: more made copies slower
constexpr int64_t kThreadsOfProcessor = 2048;
constexpr int64_t kHiddenLatency = 512;  ///< threads of a processor from which on they hide each other's latency
constexpr int64_t kLongestUnrolled = 64;
constexpr int64_t kWarp = 32;
constexpr int64_t kDeepest = 16;  ///< rows of a thread
constexpr int64_t kWaves = 4;     ///< of threads that the device holds at once: fewer rows of a thread leave as many

/// The member along which every statement writes; -1 if there is none.
int member_written_along(const FusedGroup& part) {
  int along = -1;
  for (const GroupStatement& s : part.statements) {
    const auto& subscripts = s.statement->subscripts;
    if (subscripts.empty()) return -1;
    const size_t nearest = nearest_dimension(part.scop->program->tensor(s.statement->tensor));
    const int member = s.member_of(subscripts[nearest]);
    if (member < 0 || (along >= 0 && along != member)) return -1;
    along = member;
    const std::string& index = s.statement->indices[static_cast<size_t>(s.shared[static_cast<size_t>(along)])];
    for (size_t d = 0; d < subscripts.size(); ++d) {
      if (d != nearest && ir::mentions(subscripts[d], index)) return -1;
    }
  }
  return along;
}

bool only_reductions_inside(const GroupStatement& s) {
  return std::all_of(s.inner.begin(), s.inner.end(), [&](int i) {
    const auto at = static_cast<size_t>(i);
    return s.ranges[at].extent == 1 ||
           (s.statement->kind == poly::Statement::Kind::kUpdate && s.statement->is_reduction[at]);
  });
}

/// How neighbours along a member access tensors.
struct Neighbours {
  bool scattered = false;  ///< some lie apart by more than a step of the last dimension
  bool aligned = true;     ///< all stand one after the other, and first ones at multiples of `divisor`
  int64_t bytes = 1;       ///< of the largest element that the member runs over
  int64_t divisor = 0;     ///< 0: any
  double moved = 0;        ///< bytes of all tensors that the member runs over, for each of its values
  /// Per tensor, the constants by which its elements are ahead of the member: windows over it.
  std::map<std::string, std::set<int64_t>> windows = {};

  /// Whether each window begins with a vector of so many elements, and ends within the next.
  bool fit_windows(int64_t vector) const {
    return std::all_of(windows.begin(), windows.end(), [&](const auto& window) {
      int64_t begin = -vector - 1;
      return std::all_of(window.second.begin(), window.second.end(), [&](int64_t ahead) {
        if (ahead - begin > vector) begin = ahead;
        return begin % vector == 0;
      });
    });
  }
};

/// Whether the next index's element is in another sector of memory.
bool leaps(const Expr& subscript, const std::string& index, int64_t bytes) {
  const Expr next = hi::Variable::make(ir::index_type(), index) + hi::make_one(ir::index_type());
  const Expr step = hi::simplify(hi::substitute(index, next, subscript) - subscript);
  const int64_t* constant = ir::constant_int(step);
  return constant != nullptr && std::abs(*constant) * bytes >= kSectorBytes;
}

/// Whether a subscript goes through few values over and over, `index % 2`: neighbours read that many runs.
bool alternates(const Expr& subscript, const std::string& index) {
  constexpr int64_t kFew = 4;
  const auto* remainder = subscript.as<hi::Mod>();
  const int64_t* modulus = remainder ? ir::constant_int(remainder->b) : nullptr;
  return modulus && *modulus > 0 && *modulus <= kFew && ir::mentions(remainder->a, index);
}

class Looker {
 public:
  /// `apart`: whether tensors that are read far apart say nothing about vectors, since no vector is of them.
  Looker(const FusedGroup& part, int along, bool apart = false) : part_(part), along_(along), apart_(apart) {}

  Neighbours look() {
    for (const GroupStatement& s : part_.statements) {
      const ir::Program& program = *part_.scop->program;
      add(program.tensor(s.statement->tensor), s.statement->subscripts, s);
      for (const hi::Call* read : ir::reads_in(program, s.statement->value))
        add(program.tensor(read->name), read->args, s);
    }
    const int64_t begin = part_.members[static_cast<size_t>(along_)].begin;
    found_.divisor = std::gcd(found_.divisor, begin);
    return found_;
  }

 private:
  void add(const ir::Tensor& tensor, const std::vector<Expr>& subscripts, const GroupStatement& s) {
    const std::string& index = s.statement->indices[static_cast<size_t>(s.shared[static_cast<size_t>(along_)])];
    const size_t nearest = nearest_dimension(tensor);
    bool outside = false, in_runs = false;
    for (size_t d = 0; d < subscripts.size(); ++d) {
      if (d == nearest || !ir::mentions(subscripts[d], index)) continue;
      (alternates(subscripts[d], index) ? in_runs : outside) = true;
    }
    const bool last = !subscripts.empty() && ir::mentions(subscripts[nearest], index);
    const int64_t apart = subscripts.empty() ? 1 : ir::strides_of(tensor)[nearest];
    const bool scattered = outside || (last && leaps(subscripts[nearest], index, apart * tensor.type.bytes()));
    found_.scattered = found_.scattered || scattered;
    if ((!outside && !in_runs && !last) || (apart_ && runs_apart(scattered, apart, tensor, subscripts, index))) return;
    found_.aligned = found_.aligned && !tensor.type.is_bool() && !outside && !in_runs && apart == 1 &&
                     add_offset(tensor, subscripts.back(), index);
    found_.bytes = std::max<int64_t>(found_.bytes, tensor.type.bytes());
    found_.moved += tensor.type.bytes();
    found_.divisor = std::gcd(found_.divisor, ir::pitch_of(tensor));
  }

  /// Whether no vector is of an access.
  static bool runs_apart(bool scattered, int64_t apart, const ir::Tensor& tensor, const std::vector<Expr>& subscripts,
                         const std::string& index) {
    return scattered || apart != 1 || tensor.type.is_bool() || !ir::offset_divisor(subscripts.back(), index);
  }

  /// False if neighbours along the member are no neighbours in memory.
  bool add_offset(const ir::Tensor& tensor, const Expr& subscript, const std::string& index) {
    const Expr ahead = hi::simplify(subscript - hi::Variable::make(subscript.type(), index));
    const std::optional<int64_t> divisor = ir::offset_divisor(subscript, index);
    if (const int64_t* constant = ir::constant_int(ahead); constant != nullptr && *constant >= 0) {
      found_.windows[tensor.name].insert(*constant);
    } else {
      found_.divisor = std::gcd(found_.divisor, divisor.value_or(0));
    }
    return divisor.has_value();
  }

  const FusedGroup& part_;
  int along_;
  bool apart_;
  Neighbours found_;
};

/// What a row of `vectors` takes if a block has `threads` of them side by side, `repeats` times: its blocks are started
/// one after the other, while memory moves what threads have, and what the last block's would have.
double row_us(int64_t vectors, int64_t threads, int64_t repeats, double vector_bytes, const Device& device) {
  const int64_t step = threads * repeats, blocks = ceil_div(vectors, step);
  return std::max(static_cast<double>(blocks) / device.blocks_per_us,
                  static_cast<double>(blocks * step) * vector_bytes / device.memory_bytes_per_us);
}

/// Threads that a block should have.
int64_t block_threads(const Device& device) {
  return std::min({kBlockThreads, device.threads_per_block, device.block[0]});
}

/// Threads along the member: all of it, with so many vectors each that fewer blocks do, or whole warps that waste
/// little of the last block, also where its start takes longest. `element_bytes` are moved for each element.
void choose_threads(ElementsPlan& plan, int64_t vectors, int64_t most_repeats, double element_bytes,
                    const Device& device) {
  constexpr double kClearly = 0.98;
  const int64_t most = block_threads(device);
  if (vectors <= most) {
    while (most_repeats > 1 && (vectors % most_repeats != 0 || vectors / most_repeats < kWarp)) most_repeats /= 2;
    plan.repeats = most_repeats;
    plan.threads = vectors / most_repeats;
    return;
  }
  constexpr double kMuchLess = 0.75;  // of what blocks have beyond the row
  double best = std::numeric_limits<double>::infinity(), covered = best;
  for (int64_t repeats = most_repeats; repeats >= 1; repeats /= 2) {
    for (int64_t threads = most; threads >= (most + 1) / 2; threads -= kWarp) {
      const double us = row_us(vectors, threads, repeats, static_cast<double>(plan.vector) * element_bytes, device);
      const auto covers = static_cast<double>(round_up(vectors, threads * repeats));
      const bool wastes_less = us * kClearly <= best && covers <= kMuchLess * covered;
      if (us >= kClearly * best && !wastes_less) continue;
      best = std::min(best, us);
      covered = covers;
      plan.threads = threads;
      plan.repeats = repeats;
    }
  }
}

int64_t size_of(const FusedGroup& part) {
  int64_t size = 1;
  for (const ir::Range& range : part.members) size *= std::min(range.extent, (INT64_MAX >> 1) / size);
  return size;
}

/// The innermost member but `along` goes to the threads that are left, as long as there are blocks enough.
void choose_rows(ElementsPlan& plan, const FusedGroup& part, int64_t threads, const Device& device) {
  for (int m = static_cast<int>(part.members.size()) - 1; m >= 0 && plan.beside < 0; --m) {
    if (m != plan.along && part.members[static_cast<size_t>(m)].extent > 1) plan.beside = m;
  }
  if (plan.beside < 0) return;
  const int64_t extent = part.members[static_cast<size_t>(plan.beside)].extent;
  int64_t most = std::min({std::max<int64_t>(block_threads(device) / plan.threads, 1), extent, device.block[1]});
  while (most > 1 && plan.threads * most > 32 && threads / (plan.threads * most) < 2 * device.processors) most /= 2;
  plan.rows = divisor_near(extent, most);
}

/// Layers of short rows, the innermost member that is left, as long as there are blocks enough.
void choose_layers(ElementsPlan& plan, const FusedGroup& part, int64_t threads, const Device& device) {
  const int64_t layer = plan.threads * plan.rows;
  if (plan.beside < 0 || plan.rows < part.members[static_cast<size_t>(plan.beside)].extent) return;
  int above = plan.beside - 1;
  while (above >= 0 && (above == plan.along || part.members[static_cast<size_t>(above)].extent == 1)) --above;
  if (above < 0) return;
  const int64_t extent = part.members[static_cast<size_t>(above)].extent;
  int64_t most = std::min({block_threads(device) / layer, extent, device.block[2]});
  while (most > 1 && layer * most > kWarp && threads / (layer * most) < 2 * device.processors) most /= 2;
  plan.layers = most < 2 ? 1 : divisor_near(extent, most);
  if (plan.layers > 1) plan.above = above;
}

/// The tensors of which all iterations of reductions, and of the member `deep` if there is one, read the same
/// elements: each is read where the member `along` is, and nowhere else.
std::set<std::string> columns_of(const FusedGroup& part, int along, int deep) {
  const ir::Program& program = *part.scop->program;
  std::map<std::string, std::vector<int>> places;
  std::set<std::string> others;
  for (const GroupStatement& s : part.statements) {
    for (const hi::Call* read : ir::reads_in(program, s.statement->value)) {
      const ir::Shape shape = ir::constant_shape(program.tensor(read->name));
      std::vector<int> place;
      bool fits = !part.writes(read->name);
      for (size_t d = 0; d < shape.size(); ++d) {
        const int member = s.member_of(read->args[d]);
        place.push_back(member);
        fits = fits && member >= 0 && member != deep && part.members[static_cast<size_t>(member)].begin >= 0 &&
               part.members[static_cast<size_t>(member)].begin + part.members[static_cast<size_t>(member)].extent <=
                   shape[d];
      }
      fits = fits && std::count(place.begin(), place.end(), along) > 0;
      if (!fits || places.emplace(read->name, place).first->second != place) others.insert(read->name);
    }
  }
  std::set<std::string> result;
  for (const auto& [tensor, place] : places) {
    if (others.count(tensor) == 0) result.insert(tensor);
  }
  return result;
}

/// Whether what rows share of a column saves a thread work, as a divisor of a softmax does. A bias does not: 8192 x
/// 8192 floats and a bias took 147 us by 8 rows of a thread on an H200, and 133 by one.
bool saves_work(const FusedGroup& part) {
  constexpr double kLeast = 10;  // instructions: a division
  const ir::Program& program = *part.scop->program;
  double most = 0;
  for (const GroupStatement& s : part.statements) {
    most = std::max(most, instructions_of(s.statement->value, [&](const hi::Call* call) {
                      return ir::is_tensor_read(program, call) ? std::optional(0.0) : std::nullopt;
                    }));
  }
  return most >= kLeast;
}

int64_t blocks_of(const ElementsPlan& plan, const FusedGroup& part) {
  int64_t blocks = 1;
  for (size_t m = 0; m < part.members.size(); ++m) {
    const int member = static_cast<int>(m);
    const int64_t step = member == plan.along ? plan.covered() : plan.covered_at(member);
    blocks *= std::min((part.members[m].extent + step - 1) / step, (INT64_MAX >> 1) / blocks);
  }
  return blocks;
}

/// Several rows for each thread, where they share what a column holds, or a thread has little of each, as long as there
/// are threads enough. And where blocks of few elements would be started for longer than memory takes: a device starts
/// one after the other. `neighbours`: along the member that is written along.
void choose_depth(ElementsPlan& plan, const FusedGroup& part, int64_t threads, const Neighbours& neighbours,
                  const Device& device) {
  constexpr int64_t kMostShort = 8;
  const int deepest = plan.deepest();
  if (deepest < 0) return;
  const bool shares = saves_work(part) && !columns_of(part, plan.along, deepest).empty();
  const int64_t in_flight = kFlightBytes / (plan.vector * plan.repeats * neighbours.bytes);
  const int64_t most = shares ? kDeepest : std::clamp<int64_t>(in_flight, 1, kMostShort), waves = shares ? kWaves : 1;
  const int64_t rows = ceil_div(part.members[static_cast<size_t>(deepest)].extent, plan.threads_at(deepest));
  const double memory_us = static_cast<double>(size_of(part)) * neighbours.moved / device.memory_bytes_per_us;
  while (2 * plan.deep <= rows) {
    const int64_t left = threads / (2 * plan.deep);
    const bool has_many = 2 * plan.deep <= most && left >= waves * kThreadsOfProcessor * device.processors;
    const bool starts_slowly = static_cast<double>(blocks_of(plan, part)) / device.blocks_per_us > memory_us;
    const bool gains = starts_slowly && 2 * plan.deep <= kMostShort && left >= kHiddenLatency * device.processors;
    if (!has_many && !gains) return;
    plan.deep *= 2;
  }
}

/// A divisor, so that nothing is left over, or else 8. With few threads nothing but a thread's own loads hides their
/// latency.
int64_t choose_unroll(int64_t inner, int64_t threads, const Device& device) {
  constexpr int64_t kManyInFlight = 32;
  if (threads < device.processors * kHiddenLatency) return inner <= kLongestUnrolled ? inner : kManyInFlight;
  for (int64_t unroll = 10; unroll >= 6; --unroll) {
    if (inner % unroll == 0) return unroll;
  }
  return 8;
}

/// The widest vectors that memory allows, of neighbours along the member.
int64_t widest_vector(const Neighbours& neighbours) {
  if (!neighbours.aligned) return 1;
  int64_t vector = kVectorBytes / neighbours.bytes;
  while (vector > 1 && (neighbours.divisor % vector != 0 || !neighbours.fit_windows(vector))) vector /= 2;
  return vector;
}

/// The vectors of rows that a thread has whole; 1: none. What a thread computes at numbers that are known is read from
/// anywhere: a short row of a copy that lays windows out (rewrite/unfold.h).
int64_t vector_of_whole_rows(const FusedGroup& part, int along, int64_t inner, const Device& device) {
  constexpr int64_t kLongest = 64;
  const int64_t extent = part.members[static_cast<size_t>(along)].extent;
  if (inner > 1 || extent > kLongest || size_of(part) / extent < device.processors * kHiddenLatency) return 1;
  int64_t bytes = 1, divisor = extent;
  for (const GroupStatement& s : part.statements) {
    const ir::Tensor& tensor = part.scop->program->tensor(s.statement->tensor);
    if (tensor.type.is_bool() || ir::constant_shape(tensor).back() != extent) return 1;
    bytes = std::max<int64_t>(bytes, tensor.type.bytes());
    divisor = std::gcd(divisor, ir::row_divisor(tensor));
  }
  int64_t vector = kVectorBytes / bytes;
  while (vector > 1 && divisor % vector != 0) vector /= 2;
  return vector;
}

/// What the options say about the member `m`; 0: nothing.
int64_t value_at(const std::vector<int64_t>& values, int m) {
  return m >= 0 && static_cast<size_t>(m) < values.size() ? values[static_cast<size_t>(m)] : 0;
}

/// Whether rows are read that data choose: each waits for its number, and takes as long by vectors.
bool looks_up_rows(const FusedGroup& part) {
  const ir::Program& program = *part.scop->program;
  return std::any_of(part.statements.begin(), part.statements.end(), [&](const GroupStatement& s) {
    const auto reads = ir::reads_in(program, s.statement->value);
    return std::any_of(reads.begin(), reads.end(), [&](const auto* read) { return reads_chosen_row(program, read); });
  });
}

/// A row for each thread, beside each other.
void choose_whole_rows(ElementsPlan& plan, const FusedGroup& part, int64_t vector, const Device& device) {
  plan.vector = vector;
  plan.repeats = part.members[static_cast<size_t>(plan.along)].extent / vector;
  plan.threads = 1;
  choose_rows(plan, part, size_of(part) / plan.covered(), device);
}

void choose(ElementsPlan& plan, const FusedGroup& part, const Neighbours& neighbours, int64_t inner,
            const Device& device) {
  const int64_t size = size_of(part);
  const bool warps_stay = part.members[static_cast<size_t>(plan.along)].extent >= 2 * kWarp;
  const int64_t least = inner > 1 && warps_stay && looks_up_rows(part) ? 2 : 1;
  plan.vector = widest_vector(neighbours);
  while (plan.vector > least && size / plan.vector < device.processors * kThreadsOfProcessor / 4) plan.vector /= 2;
  int64_t repeats = 1;
  if (inner == 1) {
    repeats = std::clamp<int64_t>(kFlightBytes / (plan.vector * neighbours.bytes), 1, 8);
    while (repeats > 1 && size / (plan.vector * repeats) < device.processors * kThreadsOfProcessor) repeats /= 2;
  }
  const int64_t extent = part.members[static_cast<size_t>(plan.along)].extent;
  choose_threads(plan, ceil_div(extent, plan.vector), repeats, neighbours.moved, device);
  const int64_t threads = size / plan.vector / plan.repeats;
  choose_rows(plan, part, threads, device);
  choose_layers(plan, part, threads, device);
  if (inner == 1) choose_depth(plan, part, threads, neighbours, device);
  plan.unroll = choose_unroll(inner, threads, device);
}

/// Puts what the options say in the place of what was chosen.
void follow(ElementsPlan& plan, const options::MappingOptions& options, const FusedGroup& part, int64_t widest,
            int64_t inner) {
  const int64_t extent = part.members[static_cast<size_t>(plan.along)].extent;
  const int64_t tile = value_at(options.tile, plan.along), threads = value_at(options.map_to_threads, 0);
  int64_t elements = value_at(options.register_tile, plan.along);
  if (elements == 0 && tile > 0 && threads > 0) elements = tile / threads;
  if (elements > 0) {
    plan.vector = widest;
    while (elements % plan.vector != 0) plan.vector /= 2;
    plan.repeats = elements / plan.vector;
  }
  elements = plan.vector * plan.repeats;
  plan.layers = std::max<int64_t>(value_at(options.map_to_threads, 2), 1);
  if (plan.layers == 1) plan.above = -1;
  plan.deep = inner == 1 ? std::max<int64_t>(value_at(options.register_tile, plan.deepest()), 1) : 1;
  if (threads > 0) {
    plan.threads = threads;
    plan.rows = std::max<int64_t>(value_at(options.map_to_threads, 1), 1);
  } else {
    const int64_t all = ceil_div(extent, elements);
    plan.threads = tile > 0 ? std::min(tile / elements, all) : std::min(plan.threads, all);
    plan.threads = std::max<int64_t>(plan.threads, 1);
    if (const int64_t rows = value_at(options.tile, plan.beside); rows > 0) {
      plan.rows =
          std::min(std::max<int64_t>(rows / plan.deep, 1), part.members[static_cast<size_t>(plan.beside)].extent);
    }
  }
  plan.unroll = options.unroll.value_or(plan.unroll);
}

/// What the options say that the plan is not; empty: nothing.
std::string fault_of(const ElementsPlan& plan, const options::MappingOptions& options, const FusedGroup& part,
                     const Device& device) {
  if (plan.threads * plan.rows * plan.layers > device.threads_per_block || plan.threads > device.block[0] ||
      plan.rows > device.block[1] || plan.layers > device.block[2]) {
    return fmt::format("{} by {} threads are more than a block may have", plan.threads, plan.rows * plan.layers);
  }
  if (plan.beside < 0 && plan.rows > 1) return "there is one row of elements";
  if (plan.above < 0 && plan.layers > 1) return "elements have no third loop for threads in z";
  if (plan.above >= 0 && plan.rows != part.members[static_cast<size_t>(plan.beside)].extent) {
    return "threads in z need as many threads in y as its loop has values";
  }
  for (int m = 0; m < static_cast<int>(part.members.size()); ++m) {
    const int64_t extent = part.members[static_cast<size_t>(m)].extent;
    const int64_t tile = m == plan.along ? plan.covered() : plan.covered_at(m);
    const int64_t elements = m == plan.along ? plan.vector * plan.repeats : m == plan.deepest() ? plan.deep : 1;
    const int64_t asked = value_at(options.tile, m), each = value_at(options.register_tile, m);
    if (asked > 0 && asked != tile && std::min(asked, extent) != std::min(tile, extent)) {
      return fmt::format("a block has {} elements along member {}, not {}", tile, m, asked);
    }
    if (each > 0 && each != elements && each <= extent) {
      return fmt::format("a thread has {} elements along member {}, not {}", elements, m, each);
    }
  }
  return "";
}

bool chooses_size(const options::MappingOptions& options) {
  return options.tile.empty() && options.register_tile.empty() && options.map_to_threads.empty();
}

int64_t longest_inner(const FusedGroup& part) {
  int64_t inner = 1;
  for (const GroupStatement& s : part.statements) inner = std::max(inner, s.inner_size());
  return inner;
}

/// The member along which statements write, of parts that have no other loops inside than reductions.
std::optional<int> member_of_elements(const FusedGroup& part, const std::function<void(const char*)>& refuse) {
  if (part.members.empty()) return refuse("its statements share no parallel loop"), std::nullopt;
  if (!std::all_of(part.statements.begin(), part.statements.end(), only_reductions_inside)) {
    return refuse("a statement has loops inside of the shared ones that no reduction goes over"), std::nullopt;
  }
  const int along = member_written_along(part);
  if (along < 0) return refuse("its statements do not all write along one loop"), std::nullopt;
  return along;
}

}  // namespace

std::optional<ElementsPlan> plan_elements(const FusedGroup& part, const options::MappingOptions& options,
                                          const Device& device, Reasons& reasons) {
  const auto refuse = [&](const char* reason) {
    reasons.part.emplace_back(reason);
    return std::nullopt;
  };
  const std::optional<int> along = member_of_elements(part, refuse);
  if (!along) return std::nullopt;
  ElementsPlan plan;
  plan.in_any_order = !options.strict;
  plan.along = *along;
  const Neighbours neighbours = Looker(part, plan.along).look();
  const int64_t inner = longest_inner(part);
  int64_t widest = widest_vector(neighbours);
  if (neighbours.scattered) {
    widest = vector_of_whole_rows(part, plan.along, inner, device);
    if (widest == 1) return refuse("neighbouring threads would read elements that are far apart");
    choose_whole_rows(plan, part, widest, device);
  } else {
    choose(plan, part, neighbours, inner, device);
  }
  if (chooses_size(options)) {
    plan.unroll = options.unroll.value_or(plan.unroll);
  } else {
    follow(plan, options, part, widest, inner);
  }
  if (plan.deep > 1 || inner > 1) plan.columns = columns_of(part, plan.along, plan.deep > 1 ? plan.deepest() : -1);
  if (neighbours.scattered && plan.threads > 1)
    return refuse("neighbouring threads would read elements that are far apart");
  if (const std::string fault = fault_of(plan, options, part, device); !fault.empty()) {
    reasons.options.push_back(fault);
    return std::nullopt;
  }
  if (blocks_of(plan, part) > device.grid[0]) return refuse("it would need more blocks than the device has");
  return plan;
}

std::vector<ElementsPlan> plans_with_reads_apart(const FusedGroup& part, const options::MappingOptions& options,
                                                 const Device& device) {
  const std::optional<int> along = member_of_elements(part, [](const char*) {});
  if (!along) return {};
  Neighbours neighbours = Looker(part, *along, true).look();
  if (!neighbours.scattered) return {};
  std::vector<ElementsPlan> plans;
  for (const bool by_vectors : {true, false}) {
    neighbours.aligned = neighbours.aligned && by_vectors;
    ElementsPlan plan;
    plan.in_any_order = !options.strict;
    plan.along = *along;
    choose(plan, part, neighbours, longest_inner(part), device);
    if (chooses_size(options)) {
      plan.unroll = options.unroll.value_or(plan.unroll);
    } else {
      follow(plan, options, part, widest_vector(neighbours), longest_inner(part));
    }
    if (!fault_of(plan, options, part, device).empty() || blocks_of(plan, part) > device.grid[0]) continue;
    if (plans.empty() || plans[0].vector != plan.vector) plans.push_back(plan);
  }
  return plans;
}

options::MappingOptions options_of(const ElementsPlan& plan, const FusedGroup& part) {
  options::MappingOptions options;
  options.map_to_threads = {plan.threads, plan.rows};
  if (plan.layers > 1) options.map_to_threads.push_back(plan.layers);
  for (int m = 0; m < static_cast<int>(part.members.size()); ++m) {
    options.tile.push_back(m == plan.along ? plan.covered() : plan.covered_at(m));
    options.register_tile.push_back(m == plan.along ? plan.vector * plan.repeats : m == plan.deepest() ? plan.deep : 1);
  }
  options.unroll = plan.unroll;
  return options;
}

}  // namespace tc::gpu
