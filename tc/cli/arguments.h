#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tc/api/random.h"
#include "tc/api/tc.h"
#include "tc/ir/program.h"

/// The tensors and scalars of one run.
namespace tc::cli {

/// The .npy files of --inputs, by the tensor that each is for.
using InputFiles = std::map<std::string, std::string>;

/// Reads --inputs. Errors: as parse_assignments, a name that is no argument or result of the def (with the nearest).
Result<InputFiles> input_files_of_flags(const api::Signature& signature);

/// Puts what the files' headers say into the request.
Result<void> describe_files(const InputFiles& files, const api::Signature& signature, api::Request& request);

/// Holds if the request has a value for every scalar.
Result<void> check_scalars(const api::Signature& signature, const api::Request& request);

/// Bytes that a run takes for tensors, on the CPU and for the oracle's copies.
struct MemoryNeed {
  int64_t tensors = 0;
  int64_t oracle = 0;
};
/// Errors: more than the machine has; extents that overflow.
Result<MemoryNeed> check_memory(const api::Specs& specs, bool oracle);

/// Everything that a kernel is called with, in the order of the text.
struct Arguments {
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::vector<std::string> scalar_names;
  std::vector<api::Tensor> inputs;
  std::vector<api::Tensor> outputs;  ///< dense
  std::vector<api::Scalar> scalars;
};

/// The integers that inputs which are subscripts may hold, as api::subscript_ranges() finds them.
using SubscriptRanges = std::map<std::string, api::IntegerRange>;

/// Reads the files, fills the other inputs and in-outs with random elements, and zeroes the other results.
/// Errors: the files'; a scalar without a value.
Result<Arguments> make_arguments(const SubscriptRanges& ranges, const api::Signature& signature,
                                 const api::Specs& specs, const InputFiles& files, const api::Request& request,
                                 uint64_t seed);
Result<Arguments> make_arguments(const ir::Program& specialised, const api::Signature& signature,
                                 const api::Specs& specs, const InputFiles& files, const api::Request& request,
                                 uint64_t seed);

/// A dense tensor with the elements of another.
Result<api::Tensor> dense_copy(const api::Tensor& tensor);

}  // namespace tc::cli
