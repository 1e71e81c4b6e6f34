#pragma once

#include <Halide.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tc/ir/layouts.h"
#include "tc/ir/linear_form.h"
#include "tc/ir/program.h"

namespace tc::cpu {

using ir::linear_form;
using ir::LinearForm;

/// One reference to a tensor, seen from the loops around it.
struct Reference {
  std::string tensor;
  bool is_write = false;
  std::vector<Halide::Expr> subscripts;
  std::vector<std::optional<LinearForm>> forms;  ///< of the subscripts

  bool depends_on(const std::string& index) const;
};

/// The write to tensor(subscripts) and all the reads in `value`, in subscripts and in `guard` (which may be undefined).
std::vector<Reference> references(const ir::Program& program, const std::string& tensor,
                                  const std::vector<Halide::Expr>& subscripts, const Halide::Expr& value,
                                  const Halide::Expr& guard);

/// By how many elements the reference moves in memory when the index grows by one; nothing if that varies.
std::optional<int64_t> memory_step(const ir::Program& program, const ir::Layouts& layouts, const Reference& reference,
                                   const std::string& index);

/// Constant extents of a tensor of a specialised program.
std::vector<int64_t> constant_extents(const ir::Tensor& tensor);

}  // namespace tc::cpu
