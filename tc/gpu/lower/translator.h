#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tc/gpu/lower/body.h"
#include "tc/gpu/lower/pipeline.h"
#include "tc/gpu/mapping/kernel.h"
#include "tc/poly/loops.h"

namespace tc::gpu {

/// Makes one kernel's text from the loops that generate_loops() makes of its tree: what translate() runs. Loops,
/// bindings and promotions are in translate.cc, loops that run ahead or that a warp shares in translate_loops.cc.
class Translator {
 public:
  Translator(const Kernel& kernel, std::string name);
  tile::Kernel run();

 private:
  tile::NodePtr lower(const poly::loops::NodePtr& node);
  tile::NodePtr lower_block(const poly::loops::Block& block);
  tile::NodePtr lower_if(const poly::loops::If& branch);
  tile::NodePtr lower_mark(const poly::loops::Mark& mark);
  tile::NodePtr lower_instance(const poly::loops::Instance& instance);
  tile::NodePtr lower_copy(const Copy& copy);
  tile::NodePtr under(const Halide::Expr& condition, const std::function<tile::NodePtr()>& make);
  tile::NodePtr lower_for(const poly::loops::For& node);
  tile::NodePtr lower_binding(const Binding& binding, const poly::loops::Mark& mark);
  tile::NodePtr lower_promotion(const poly::Promotion& promotion, const poly::loops::Mark& mark);
  tile::NodePtr dealt_loop(const poly::loops::For& node, const Dealt& dealt, const poly::Ranged& first,
                           const poly::Ranged& last, int64_t step);
  tile::NodePtr loop(const poly::loops::For& node, const poly::Ranged& begin, const poly::Ranged& last, int64_t step,
                     int64_t first);
  tile::NodePtr body_with(const poly::loops::For& node, const poly::Ranged& value);

  poly::Ranged number(const Dealt& dealt) const;
  std::vector<poly::Ranged> tile_offset(const ThreadTile& tile, const poly::loops::Mark& mark) const;
  Halide::Expr whose_turn(const std::vector<poly::LoopExpr>& prefix) const;
  std::optional<Dealt> take_dealt(const poly::loops::For& node);
  std::string loop_name(const poly::loops::For& node) const;
  std::string fresh(const std::string& wish);
  void name_loops(const poly::loops::Mark& mark);
  bool is_unrolled(const poly::loops::For& node) const;
  tile::NodePtr unrolled_loop(const poly::loops::For& node, const poly::Ranged& first, const poly::Ranged& last,
                              int64_t step);
  tile::NodePtr tile_copy(const Place& inner, const Place& outer, bool out);
  void find_bounds();
  tile::NodePtr staged_loop(const poly::loops::For& node, const poly::Ranged& begin, const poly::Ranged& last,
                            int64_t step);
  tile::NodePtr once(const poly::loops::NodePtr& child);
  tile::NodePtr staged_copies(tile::NodePtr code);
  int64_t stages_of(const poly::loops::For& node) const;
  tile::For counted_loop(const poly::loops::For& node, const poly::Ranged& begin, const poly::Ranged& last,
                         int64_t step, int64_t first,
                         const std::function<tile::NodePtr(const poly::Ranged&)>& make_body);

  tile::NodePtr by_warp(const poly::loops::NodePtr& child, int depth);
  tile::NodePtr warp_loop(const poly::loops::For& node, const poly::Ranged& begin, const poly::Ranged& last,
                          int64_t step, int64_t first);
  tile::NodePtr add_to_partial(const poly::Statement& statement, const BodyContext& context);

  /// The loop that the lanes of a warp share, while it is made.
  struct Warp {
    int depth = 0;
    bool is_dealt = false;                     ///< whether what is being made stands in a loop of each lane
    std::optional<tile::Tensor> partial = {};  ///< a lane's
    ir::Assign assign = ir::Assign::kSet;
    tile::NodePtr total = {};  ///< what the first lane does with it in the end
  };

  /// The loop whose copies run ahead, while its body is made.
  struct Ahead {
    Steps steps;
    poly::Ranged slot;
    Halide::Expr condition = Halide::Internal::const_true();  ///< under which what is being made stands in the loop
  };

  const Kernel& kernel_;
  std::string name_;
  poly::Iterators iterators_;
  std::map<std::string, std::vector<Place>> places_;                        ///< per tensor, the present place last
  std::map<std::string, std::vector<std::pair<int64_t, int64_t>>> bounds_;  ///< of the indices, per statement
  std::map<int, Dealt> dealt_;        ///< by dimension of the tree, for loops not yet met
  std::map<int, std::string> named_;  ///< by dimension of the tree, for loops that marks name
  std::set<std::string> names_;       ///< in scope
  Ahead* ahead_ = nullptr;
  Warp* warp_ = nullptr;
  int loops_around_ = 0;  ///< of the text, around what is being made
};

}  // namespace tc::gpu
