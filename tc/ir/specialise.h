#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tc/ir/deadline.h"
#include "tc/ir/program.h"
#include "tc/support/result.h"

namespace tc::ir {

using Shape = std::vector<int64_t>;

/// What a caller knows: shapes of inputs and in-outs, and of results that it allocates itself; integer scalars that
/// are compiled in; sizes by name, where no shape gives them.
struct Given {
  std::map<std::string, Shape> shapes;
  std::map<std::string, int64_t> scalars;
  std::map<std::string, int64_t> sizes;
};

/// A value for every size and every specialised scalar of a Program.
struct Bindings {
  std::map<std::string, int64_t> sizes;
  std::map<std::string, int64_t> scalars;
};

/// Finds the sizes from the shapes. A dimension `2*N` is solved for N.
/// Errors: an unknown tensor, scalar or size; a wrong rank; a negative size; two dimensions that disagree about a size,
/// with both; a dimension without an integer solution; sizes that nothing gives, all of them; a specialised scalar that
/// nothing gives; a shape of a result or in-out that is not what the Program says.
Result<Bindings> bind(const Program& program, const Given& given);

/// The same from sizes and scalars only, where every size is named.
Result<Bindings> bind_sizes(const Program& program, const std::map<std::string, int64_t>& sizes,
                            const std::map<std::string, int64_t>& scalars = {});

/// The error for sizes of a Program that nothing gives.
Error no_values(const Program& program, const std::vector<std::string>& sizes);

/// The Program for constant sizes and specialised scalars. All ranges, extents, subscripts and guards are over indices
/// only; every access is proved in bounds, or is one of run_time_checks(). `sizes` and `preconditions` are empty.
/// Errors: a precondition that does not hold, with the values; an access out of bounds, with an index where it is; an
/// index used as a value beyond int32; a tensor of more than 2^47 bytes; the deadline is over.
Result<Program> specialise(const Program& program, const Bindings& bindings, const Deadline& deadline = Deadline());

/// The extents of a tensor of a specialised Program.
Shape constant_shape(const Tensor& tensor);

/// The shape of a tensor of a Program for given sizes.
Shape shape_of(const Tensor& tensor, const Bindings& bindings);

/// "(3, 4)"
std::string shape_text(const Shape& shape);

}  // namespace tc::ir
