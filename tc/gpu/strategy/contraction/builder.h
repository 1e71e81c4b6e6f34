#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/strategy/contraction/chain.h"
#include "tc/gpu/strategy/contraction/computed_rows.h"
#include "tc/gpu/strategy/contraction/plan.h"
#include "tc/gpu/strategy/contraction/stored.h"
#include "tc/gpu/strategy/contraction/tile_reductions.h"
#include "tc/gpu/strategy/contraction/warpgroups.h"
#include "tc/ir/names.h"
#include "tc/tile/build.h"

/// What contraction_kernel() is made of; for nobody else.
namespace tc::gpu {

inline tile::Layout row_major(const std::vector<int64_t>& extents) {
  return tile::Layout::row_major(std::vector<tile::IntTuple>(extents.begin(), extents.end()));
}

/// Where a step of the reduction begins, and how many values of the main axis it has.
struct ReductionStep {
  std::vector<Halide::Expr> first;  ///< per reduction axis
  int64_t length = 1;
  bool may_end = false;  ///< the main axis may end within it: what lies behind is zero
};

/// A part of a step's copies: piece number `piece` of `pieces`, done only under a condition, if there is one.
struct CopyShare {
  Halide::Expr piece = 0;
  int64_t pieces = 1;
  Halide::Expr condition = {};
  bool predicated = false;  ///< conditions are the copies' own: no branch, where they are asynchronous
};

/// A link of a chain, as the kernel has it.
struct KeptLink {
  const ChainLink* link = nullptr;
  tile::Tensor tile;             ///< rows, columns
  std::vector<int64_t> strides;  ///< per dimension of the tensor, in its row or column
  std::string reader;            ///< statement of the second product
  /// Of a streamed link: the builder of the first product. `tile` is then in registers, at the places of its sums.
  const class ContractionBuilder* maker = nullptr;
  /// Whether points and reductions read the values as they were before they were rounded to 16 bits. These are no
  /// larger than such a float may be.
  bool is_read_unrounded = false;
};

/// What a product ahead in the kernel has reduced along rows: a register for each row of a thread.
struct RowValue {
  tile::Tensor sums;
  std::vector<size_t> axes;  ///< the reader's parallel axis, per dimension of `sums`
};

/// What threads compute an operand of, besides the source in shared memory: per read the registers that hold it, and
/// those of the next step.
struct ComputedRows {
  std::vector<HeldRead> reads;
  std::vector<tile::Tensor> held, ahead;
};

/// Of what is done at a point, the steps [first, last); all by default. Parts share the registers of a point.
struct PointPart {
  size_t first = 0, last = SIZE_MAX;
  std::string from = {};                     ///< a tensor that a part before has left where the sums were
  std::string to = {};                       ///< one that this part leaves there
  std::vector<bool> reductions = {};         ///< those that it goes on with; empty: all
  bool fills = true;                         ///< the place that a link passes on
  std::function<tile::NodePtr()> also = {};  ///< what is done at the end of each point

  bool is_all() const { return first == 0 && last == SIZE_MAX; }
};

class ContractionBuilder {
  friend class ChainBuilder;
  friend class StreamBuilder;
  friend class AtomStream;
  friend class WarpgroupStream;

 public:
  /// A plan for the contraction, then one for each of its further products, which share its tiles and threads.
  ContractionBuilder(const poly::Scop& scop, const Contraction& contraction, const std::vector<ContractionPlan>& plans)
      : ContractionBuilder(scop, contraction, plans[0]) {
    for (size_t i = 0; i < contraction.further.size(); ++i) {
      further_.push_back(ContractionBuilder(scop, contraction.further[i], plans[i + 1]));
    }
  }

  tile::Kernel run(const std::string& name);

 private:
  using Body = std::function<tile::NodePtr()>;
  /// Of so many pieces of a later step's copies, that of a number.
  using Copies = std::function<tile::NodePtr(const Halide::Expr& piece, int64_t pieces)>;

  ContractionBuilder(const poly::Scop& scop, const Contraction& contraction, const ContractionPlan& plan)
      : scop_(scop), program_(*scop.program), c_(contraction), plan_(plan), names_(kernel_names(*scop.program)) {}

  /// What is done at a point: a statement, or the addition of a product's sum to what its tensor holds.
  struct PointStep {
    const poly::Statement* statement;
    const ContractionBuilder* product;  ///< null: the statement itself
  };

  // Names of places and loops.
  void place_blocks(tile::Kernel& kernel);
  void place_like(const ContractionBuilder& before, const ChainLink& link);
  std::map<size_t, Halide::Expr> blocks_in_groups(tile::Kernel& kernel);
  void place_threads();
  void place_by_order(int64_t threads);
  void place_warps(const TensorCores& cores);
  void place_warpgroups(const TensorCores& cores);
  Halide::Expr define(const std::string& wish, const Halide::Expr& value);
  tile::NodePtr with_definitions(tile::NodePtr body, size_t first, size_t last) const;
  tile::NodePtr with_vectors(const tile::NodePtr& body);
  Halide::Expr local(size_t axis) const;
  Halide::Expr register_at(size_t axis) const;
  Halide::Expr row_digit(size_t axis, RowDigit digit) const;
  bool is_partial(size_t axis) const;
  tile::NodePtr over_registers(const std::vector<size_t>& axes, const Body& body, int whole_group = -1) const;
  std::vector<size_t> all_axes() const;

  // The tensors of the block and of a thread.
  tile::Tensor shared_tensor(size_t operand) const;
  tile::Tensor fragment(size_t operand) const;
  std::vector<Halide::Expr> fragment_subscripts(size_t operand, const Halide::Expr& in_vector) const;
  std::vector<Halide::Expr> sum_subscripts() const;
  void declare_tensors(const std::vector<tile::Tensor>* shared = nullptr);
  bool reduces_whole_groups() const;
  void declare_operands(const std::vector<tile::Tensor>* shared);
  void declare_sums();
  tile::Layout layout_of_sums(const std::vector<int64_t>& extents) const;
  void join(ContractionBuilder& main);

  // The reduction.
  tile::NodePtr start_sums() const;
  std::vector<tile::NodePtr> sum_up();
  tile::NodePtr reduce();
  tile::Tensor boxed_tensor(size_t operand) const;
  void declare_boxes(size_t operand, const std::vector<tile::Tensor>* shared);
  Halide::Expr turn_of(const Halide::Expr& step) const;
  tile::NodePtr copy_operand(size_t operand, std::vector<Halide::Expr> at, const Halide::Expr& stage,
                             const Halide::Expr& turn);
  tile::NodePtr copy_slabs(size_t operand, std::vector<Halide::Expr> at, const Halide::Expr& k,
                           const Halide::Expr& stage, const Halide::Expr& turn);
  Halide::Expr steps_of_block() const;
  Halide::Expr dealt_out(const Halide::Expr& step) const;
  std::vector<Halide::Expr> coordinates(size_t operand, const ReductionStep& step) const;
  tile::NodePtr copy_boxes(const Halide::Expr& step);
  size_t joined_operand() const;
  std::vector<const ContractionBuilder*> products_of_step() const;
  std::vector<tile::NodePtr> multiply_boxes(const Halide::Expr& step, const Halide::Expr& stage,
                                            const tile::Tensor& sum, bool starts) const;
  tile::NodePtr release_last_turn() const;
  tile::NodePtr produce();
  std::shared_ptr<const tile::Instances> step_instances(const ReductionStep& step, int64_t from, int64_t length,
                                                        int64_t atom = 0) const;
  Halide::Expr row_of_atom(const Halide::Expr& atom) const;
  tile::NodePtr take_turn() const;
  tile::NodePtr pass_turn() const;
  tile::MatrixTile boxed_tile(size_t operand, const Halide::Expr& stage, const Halide::Expr& first,
                              int64_t from = 0) const;
  // Of products of warpgroups whose operand `a` stays where it is, in registers or in shared memory.
  tile::Tensor held_tensor(size_t operand);
  tile::NodePtr load_held(size_t operand);
  tile::NodePtr copy_step_boxes(size_t operand, const ReductionStep& step, const Halide::Expr& stage,
                                const Halide::Expr& turn);
  int64_t bytes_of_step_boxes(size_t operand) const;
  std::vector<tile::NodePtr> multiply_kept(const ReductionStep& step, const Halide::Expr& stage, bool starts) const;
  tile::NodePtr consume();
  BodyContext computed_context(const ReductionStep& step, const Halide::Expr& half, const Halide::Expr& k) const;
  tile::NodePtr hold_reads(const HeldRead& held, const tile::Tensor& to, const ReductionStep& step);
  tile::NodePtr compute_slices(const ComputedRows& rows, const tile::Tensor& to, int64_t first, int64_t slices,
                               const Halide::Expr& stage, const ReductionStep& step, bool masks);
  tile::NodePtr consume_computed();
  tile::NodePtr over_tiles(const tile::NodePtr& body) const;
  tile::NodePtr with_producer(const tile::NodePtr& consumers);
  void declare_slices();
  tile::NodePtr over_slices(const tile::NodePtr& body) const;
  tile::NodePtr with_slices(const tile::NodePtr& body);
  tile::NodePtr find_slices();
  Halide::Expr own_selection() const;
  tile::NodePtr for_each_row(
      const std::vector<const tile::Tensor*>& lists,
      const std::function<tile::NodePtr(const Halide::Expr& row, const std::vector<Halide::Expr>& values)>& body);
  Halide::Expr is_selected() const;
  tile::NodePtr exchange_columns(ir::Names& names);
  tile::NodePtr in_turn(int64_t steps);
  tile::NodePtr all_ahead(int64_t steps);
  std::vector<tile::NodePtr> one_step(const Halide::Expr& stage, const ReductionStep& step);
  ReductionStep step_at(const Halide::Expr& step) const;
  tile::NodePtr fetch(const Halide::Expr& stage, const ReductionStep& step, const CopyShare& share = {});
  tile::NodePtr fetch_operand(size_t operand, const Halide::Expr& stage, const ReductionStep& step,
                              const CopyShare& share);
  std::vector<Halide::Expr> merged(size_t operand, std::vector<Halide::Expr> position) const;
  std::vector<int64_t> merged_extents(size_t operand, const std::vector<int64_t>& extents) const;
  tile::Layout layout_in_memory(size_t operand) const;
  std::vector<Halide::Expr> copied_element(size_t operand, const std::vector<int64_t>& box,
                                           const Halide::Expr& number) const;
  Halide::Expr first_of(const Subscript& s, const ReductionStep& step) const;
  struct Leaves {
    bool before = false, behind = false;
  };
  Leaves leaves(const Operand& operand, size_t dimension, int64_t length) const;
  Halide::Expr within(const Operand& operand, size_t dimension, const Halide::Expr& value, int64_t length) const;
  Halide::Expr computed_element(const Operand& operand, const std::vector<Halide::Expr>& at) const;
  tile::NodePtr compute_run(size_t operand, std::vector<Halide::Expr> to, std::vector<Halide::Expr> at);
  std::vector<Halide::Expr> chosen_element(const Operand& operand, const std::vector<Halide::Expr>& at) const;
  tile::NodePtr add_up(const Halide::Expr& stage, const ReductionStep& step);
  tile::NodePtr add_chunk(const Halide::Expr& stage, const ReductionStep& step, int64_t part_length, int64_t vector,
                          const Halide::Expr& iteration);
  tile::NodePtr read_fragment(size_t operand, const Halide::Expr& stage, const ReductionStep& step,
                              const std::vector<Halide::Expr>& at, int64_t vector);
  tile::NodePtr add_products(const Halide::Expr& stage, const ReductionStep& step, const Copies& copies);
  std::pair<int64_t, int64_t> atoms_of_warp() const;
  int64_t fragment_values(size_t operand) const;
  tile::NodePtr load_slice(const Halide::Expr& stage, const ReductionStep& step, const std::vector<Halide::Expr>& at);
  std::shared_ptr<const tile::Instances> slice_instances(const std::vector<std::map<size_t, int64_t>>& points,
                                                         const ReductionStep& step,
                                                         const std::vector<Halide::Expr>& at) const;
  tile::NodePtr multiply_slice(const ReductionStep& step, const std::vector<Halide::Expr>& at) const;
  tile::NodePtr load_fragment(size_t operand, int64_t first, bool pair, const Halide::Expr& stage,
                              const ReductionStep& step, const std::vector<Halide::Expr>& at);
  bool is_kept(size_t operand) const { return reads_ && reads_->link->operand == operand; }
  bool is_in_registers(size_t operand) const { return is_kept(operand) && reads_->maker; }
  tile::Fragment fragment_of_link(int64_t rows, const std::vector<Halide::Expr>& at) const;
  std::vector<Halide::Expr> shared_position(size_t operand, const Halide::Expr& stage, const ReductionStep& step,
                                            const std::vector<Halide::Expr>& local,
                                            const std::vector<Halide::Expr>& at) const;
  std::vector<Halide::Expr> box_position(size_t operand, const ReductionStep& step,
                                         const std::vector<Halide::Expr>& local,
                                         const std::vector<Halide::Expr>& at) const;
  tile::NodePtr multiply(const ReductionStep& step, const std::vector<Halide::Expr>& at, const Halide::Expr& in_vector);
  BodyContext context_at(bool inside) const;

  /// Lists of the block, in shared memory, of the slices that data select. Keys count down where the block's number is
  /// odd: two blocks that have rows of one slice go through it at the same time, one as its last, one as its first.
  struct Slices {
    tile::Tensor keys;                      ///< per row
    tile::Tensor firsts;                    ///< per row: whether no row before it has its key
    tile::Tensor places;                    ///< per row: of a first one, how many keys are less; else -1
    tile::Tensor in_turn;                   ///< the keys that occur, in order
    tile::Tensor count;                     ///< of these
    std::string number, key, slice, found;  ///< variables; none where nothing is selected
    Halide::Expr counts_down;
  };

  // What is done to the results.
  std::vector<Halide::Expr> sums_subscripts(const Halide::Expr& group) const;
  std::vector<const ContractionBuilder*> sums() const;
  tile::NodePtr put_sums() const;
  tile::NodePtr exchange_sums();
  tile::NodePtr add_groups(const ContractionBuilder& product);
  // Sums of the blocks of a cluster.
  int64_t sum_groups() const;
  int64_t groups_of_block() const;
  std::vector<std::pair<std::string, int64_t>> group_digits() const;
  void declare_cluster_sums();
  tile::NodePtr put_cluster_sums();
  tile::NodePtr add_cluster_sums();
  tile::NodePtr over_groups(const tile::NodePtr& body) const;
  tile::NodePtr finish_in_cluster(const tile::NodePtr& sums_up, const tile::NodePtr& results);
  Halide::Expr sum_at(const ContractionBuilder& product) const;
  std::vector<PointStep> point_steps() const;
  tile::NodePtr over_points(const Body& body);
  tile::NodePtr over_lanes(const tile::NodePtr& body) const;
  std::vector<tile::NodePtr> over_lanes_each(const tile::NodePtr& body) const;
  /// Of results that a rolled loop finishes: a thread's sums of one iteration, and where one is there.
  struct Piece {
    std::map<std::string, tile::Tensor> sums = {};  ///< by the register tensor that they are copied from
    std::vector<Halide::Expr> at = {};
  };
  const tile::Tensor& sums_in_registers() const;
  void start_piece(const std::vector<int64_t>& extents, std::vector<Halide::Expr> at);
  tile::NodePtr copy_to_piece(const std::map<std::string, Halide::Expr>& registers) const;
  tile::NodePtr choose_piece(const Halide::Expr& number, int64_t pieces,
                             const std::function<tile::NodePtr(int piece)>& copies) const;
  tile::NodePtr with_piece(tile::NodePtr body);
  tile::NodePtr store_results(const std::string& name);
  Halide::Expr is_inside() const;
  std::optional<Halide::Expr> holds_in_tile(const Halide::Expr& condition) const;
  bool is_free_of_memory(size_t axis) const;
  tile::NodePtr finish_slab(const PointPart& part);
  tile::NodePtr finish(const PointPart& part = {});
  void declare_staging();
  /// Results that a warpgroup stages at once: which of its columns, and of its rows' instructions; there, which of the
  /// thread's rows, and the first of its groups of columns.
  struct Slab {
    Halide::Expr columns, atom, row;
    Halide::Expr group = 0;
  };
  Halide::Expr staged_first(size_t axis, const Slab& slab) const;
  std::vector<std::pair<std::string, Halide::Expr>> registers_in_slab(bool of_rows, const Slab& slab,
                                                                      const Halide::Expr& group) const;
  std::string row_in_atom();
  tile::NodePtr stage(size_t result, const Slab& slab, const Halide::Expr& buffer, const Halide::Expr& column) const;
  tile::NodePtr stage_matrices(size_t result, const Halide::Expr& buffer, const Halide::Expr& group) const;
  tile::NodePtr empty_matrices() const;
  tile::NodePtr stage_slab(const Slab& slab, const Halide::Expr& buffer, int groups, const std::string& group_name);
  tile::NodePtr store_slab(const Slab& slab, const Halide::Expr& buffer) const;
  tile::NodePtr copy_piece_of_slab(const Halide::Expr& number, int64_t pieces, const std::string& group,
                                   const std::function<Slab(const Halide::Expr& number)>& slab_at);
  tile::NodePtr finish_by_boxes();
  void declare_rows();
  Halide::Expr local_of_row(size_t axis, const Halide::Expr& row) const;
  std::vector<Halide::Expr> element_in_row(const std::string& tensor, const Halide::Expr& row,
                                           const Halide::Expr& column) const;
  const StoredTensor& stored_as(const std::string& tensor) const;
  Halide::Expr is_row_inside(const Halide::Expr& row) const;
  tile::NodePtr store_rows(const std::string& tensor, const Halide::Expr& unit);
  tile::NodePtr finish_by_rows();
  bool keeps_vectors() const;
  std::vector<Halide::Expr> kept_position() const;
  Halide::Expr unrounded(const std::string& tensor) const;
  tile::NodePtr keep_results() const;
  tile::NodePtr keep_zeros() const;
  tile::NodePtr with_results(tile::NodePtr body) const;
  tile::NodePtr keep_in_sums(const std::string& tensor) const;
  tile::NodePtr point(const std::vector<std::string>& written, const PointPart& part = {});
  tile::NodePtr assign_point(const poly::Statement& statement);
  Halide::Expr point_value(const Halide::Expr& value, const BodyContext& context);
  tile::NodePtr pool_results();
  tile::NodePtr pool_run(const poly::Statement& statement, int64_t run, const BodyContext& context);
  BodyContext run_context(int64_t run) const;
  Halide::Expr result_lane() const;
  std::vector<Halide::Expr> result_at(const std::string& name) const;
  bool stores_vectors(const std::string& tensor) const;
  std::vector<std::string> written() const { return written_tensors(c_); }
  bool is_seen(const std::string& tensor) const;
  bool needs_old_value(const std::string& tensor) const;
  const std::vector<Halide::Expr>& element_of(const std::string& tensor) const;
  std::vector<Halide::Expr> element_at(const std::vector<Halide::Expr>& subscripts, const BodyContext& context) const;
  std::vector<Halide::Expr> element_here(const std::string& tensor) const;

  // Reductions of the results.
  /// A reduction, and what its partial results are in.
  struct TileSum {
    const TileReduction* of;
    ThreadReduction threads;
    tile::Tensor sums;    ///< a thread's
    tile::Tensor points;  ///< where groups of threads have the same points: what they reduce
    tile::Tensor shared;  ///< of all threads, where lanes do not suffice
  };
  void declare_reductions();
  std::vector<size_t> kept_axes(const TileReduction& reduction) const;
  std::vector<Halide::Expr> kept_registers(const TileReduction& reduction) const;
  std::vector<Halide::Expr> kept_registers(const TileSum& sum) const;
  tile::NodePtr over_kept(const TileSum& sum, int whole_group, const Body& body) const;
  int64_t reduced_vector(const TileSum& sum) const;
  tile::NodePtr store_reduced_group(const TileSum& sum) const;
  BodyContext reduction_context(const TileReduction& reduction, const std::map<size_t, Halide::Expr>& local) const;
  BodyContext reduction_context(const TileReduction& reduction) const;
  Halide::Expr has_results(const TileReduction& reduction, const BodyContext& context) const;
  tile::NodePtr store_reduced(const TileSum& sum, const BodyContext& context, const Halide::Expr& value) const;
  tile::NodePtr start_sums(const TileSum& sum) const;
  std::vector<Halide::Expr> point_in_shared() const;
  tile::NodePtr reduce_points(const std::vector<bool>& which = {});
  tile::NodePtr reduce_nothing() const;
  tile::NodePtr exchange_lanes(const TileSum& sum);
  tile::NodePtr put_partial_results(const TileSum& sum) const;
  tile::NodePtr start_reductions() const;
  tile::NodePtr reduce_threads();
  tile::NodePtr add_slots(const TileSum& sum);
  tile::NodePtr with_reductions(tile::NodePtr body);

  // A reduction that points read while it goes on, of the first product of a streamed chain.
  /// Registers for each row of a thread.
  struct OnlineRows {
    tile::Tensor before;      ///< what the reduction was before the slab
    tile::Tensor number;      ///< what points read
    tile::Tensor correction;  ///< for what was made before the slab
    tile::Tensor any_large;   ///< not zero where a row's number is large; or no name
    tile::Tensor present;     ///< not zero where the row has points that are present (online_presence.h); or no name
    Halide::Expr is_present;  ///< over the parallel axes
  };
  void declare_online(const OnlineReduction& online, const Halide::Expr& is_present);
  tile::NodePtr start_online(const OnlineReduction& online) const;
  tile::NodePtr reduce_online(const OnlineReduction& online);
  tile::NodePtr subtract_large(const OnlineReduction& online) const;
  tile::NodePtr finish_online(const OnlineReduction& online);
  tile::NodePtr last_corrections(const OnlineReduction& online);
  tile::NodePtr correct_reductions(const OnlineReduction& online) const;
  tile::NodePtr find_present(const OnlineReduction& online);
  tile::NodePtr correct_sums(const RowValue& correction) const;
  tile::NodePtr with_online_of_slab(tile::NodePtr body) const;
  tile::NodePtr with_online(tile::NodePtr body) const;
  size_t first_step_behind(const OnlineReduction& online) const;

  const poly::Scop& scop_;
  const ir::Program& program_;
  const Contraction& c_;
  const ContractionPlan& plan_;
  ir::Names names_;
  std::vector<std::pair<std::string, Halide::Expr>> definitions_;
  std::vector<Halide::Expr> first_;             ///< per parallel axis, of the block
  std::vector<Halide::Expr> assumed_;           ///< conditions of choices that hold for all points
  bool is_whole_ = false;                       ///< no point of the block's tile is outside
  std::vector<Halide::Expr> block_;             ///< per parallel axis: its number
  std::vector<Halide::Expr> thread_;            ///< per parallel axis
  Halide::Expr part_ = 0;                       ///< of the reduction: the thread's group
  Halide::Expr point_thread_;                   ///< number of the thread in its group
  Halide::Expr lane_, row_warp_, column_warp_;  ///< by tensor cores: of the thread, and of its warp along each side
  Halide::Expr warp_;                           ///< by warpgroups: of the thread, in the block
  std::vector<std::string> inner_;              ///< per reduction axis: the loop within a step
  std::vector<std::string> high_, low_;         ///< per parallel axis: loops over registers
  std::vector<tile::Tensor> shared_, fragments_;
  std::vector<tile::TensorMap> maps_;  ///< per operand, by warpgroups
  std::vector<tile::Tensor> staged_;   ///< per stored tensor, if boxes store them
  std::vector<tile::TensorMap> stored_maps_;
  bool is_alone_ = false;                     ///< in the kernel, which then has memory for rows of results
  std::map<std::string, tile::Tensor> rows_;  ///< of results that are stored row by row: where these are staged
  std::string tile_;                          ///< of a block that goes through several: the loop's variable
  Halide::Expr tiles_before_;                 ///< how many tiles the block has had before
  int64_t tiles_ = 0;                         ///< of all blocks
  size_t of_block_ = 0;                       ///< definitions that are the block's, or the tile's
  Halide::Expr rank_ = 0;                     ///< of a cluster whose blocks deal out steps: the block's number in it
  std::string share_;                         ///< likewise: the loop over the groups of sums that a block finishes
  tile::Tensor cluster_sums_;                 ///< likewise: in shared memory, those of the block's steps
  tile::Tensor cluster_totals_;               ///< likewise: a thread's, added up
  int64_t turns_ = 0;                         ///< of the ring in a tile, by all products
  Slices slices_;                             ///< that the block goes through
  tile::Tensor columns_;                      ///< likewise: the sums, exchanged; without a name: they are not
  std::string ring_;                          ///< likewise
  int64_t first_turn_ = 0;                    ///< of the ring, that of the first step
  tile::Tensor sum_, sums_, total_;           ///< a thread's; those of all groups in shared memory; added up
  int store_axis_ = -1;                       ///< along which results are stored as vectors
  std::map<std::string, tile::Tensor> results_;
  std::vector<Halide::Expr> matrix_;            ///< of a point: which of the matrices that a warp stores together
  std::map<std::string, tile::Tensor> pooled_;  ///< of the runs that a thread finishes at once
  std::optional<Piece> piece_;                  ///< while points of one are made
  std::vector<TileSum> reductions_;
  OnlineRows online_;
  std::map<std::string, Place> places_;
  std::vector<ContractionBuilder> further_;     ///< of further products, placed as this one is
  bool takes_turns_ = false;                    ///< a further product whose operands come to where the first one's were
  bool is_joined_ = false;                      ///< a further product that is multiplied in the first one's steps
  bool joined_is_a_ = false;                    ///< then: the operand that both have is that of the rows
  bool goes_on_ = false;                        ///< a further product whose sum is that of the one before it
  const KeptLink* reads_ = nullptr;             ///< in a chain: where an operand is
  const KeptLink* fills_ = nullptr;             ///< likewise: where results go
  std::vector<bool> is_reversed_;               ///< per parallel axis: the first blocks are at its end; empty: none
  std::optional<size_t> slab_axis_;             ///< of a streamed link's first product: the block goes along it
  std::optional<size_t> once_;                  ///< likewise: the operand that all slabs read
  std::map<std::string, RowValue> row_values_;  ///< of its second product: by tensor
};

}  // namespace tc::gpu
