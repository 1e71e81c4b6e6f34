#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tc/api/tc.h"
#include "tc/cuda/device.h"
#include "tc/interp/interpreter.h"
#include "tc/ir/program.h"
#include "tc/options/mapping.h"

/// Programs on this machine's GPU, the way a user takes: tc/api, with tensors in the GPU's memory.
namespace tc::testing {

/// A program compiled for GPU 0.
class OnDevice {
 public:
  /// `program` is the text's def, specialised to the sizes and compiled-in scalars. Its tensors may have strides.
  static Result<OnDevice> compile(const std::string& text, const ir::Program& program,
                                  const std::map<std::string, int64_t>& sizes,
                                  const std::map<std::string, int64_t>& scalars,
                                  const options::MappingOptions& options);

  /// Uploads inputs, in-outs and initial results, runs, and downloads results and in-outs. Each tensor stands behind
  /// so many elements: with one, it is aligned to its elements only. Errors: something is written between elements.
  Result<interp::Environment> run(const interp::Environment& data, int64_t elements_before = 0) const;

 private:
  OnDevice(api::CompiledKernel kernel, std::vector<ir::Tensor> tensors, std::map<std::string, int64_t> compiled_in,
           std::shared_ptr<const cuda::Context> context)
      : kernel_(std::move(kernel)),
        tensors_(std::move(tensors)),
        compiled_in_(std::move(compiled_in)),
        context_(std::move(context)) {}

  const ir::Tensor& tensor_of(const std::string& name) const;

  api::CompiledKernel kernel_;
  std::vector<ir::Tensor> tensors_;
  std::map<std::string, int64_t> compiled_in_;
  std::shared_ptr<const cuda::Context> context_;
};

}  // namespace tc::testing
