#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tc/api/layout.h"
#include "tc/api/tc.h"
#include "tc/ir/check_subscripts.h"

/// What happens between a caller's arguments and a kernel's: every check of a run.
namespace tc::api {

/// A tensor argument as it was compiled for.
struct TensorArgument {
  std::string name;
  Role role = Role::kInput;
  TensorSpec spec;     ///< strides filled in
  DLDataType dtype{};  ///< of spec.type
  /// The bytes that it touches, from its element (0, ..., 0): [first_byte, end_byte); empty without elements.
  int64_t first_byte = 0;
  int64_t end_byte = 0;
};
TensorArgument tensor_argument(std::string name, Role role, const TensorSpec& spec);

/// A scalar argument. One that is compiled in is checked against its value and not passed on.
struct ScalarArgument {
  std::string name{};
  ScalarType type = ScalarType::kInt32;
  std::optional<int64_t> compiled_in{};
};

/// The arguments of a kernel, and in which order it takes them.
struct CallPlan {
  /// Where an argument of the kernel comes from.
  struct Slot {
    enum class Kind : uint8_t { kInput, kOutput, kScalar, kFault };
    Kind kind = Kind::kInput;
    uint16_t index =
        0;  ///< among the arguments of its kind; of check c, 2 * c is the least subscript, 2 * c + 1 the greatest
  };
  DLDevice device{kDLCPU, 0};  ///< that the kernel runs on, and can reach the memory of
  std::vector<TensorArgument> inputs;
  std::vector<TensorArgument> outputs;
  std::vector<ScalarArgument> scalars;
  std::vector<Slot> slots;
};

/// Bounds on the arguments of one def (those of the language), so that a call needs no memory.
inline constexpr size_t kMaxCallArguments = 512;

/// What a kernel is called with: addresses in the order of its slots.
struct CallFrame {
  void* inputs[kMaxCallArguments];
  void* outputs[kMaxCallArguments];
  int64_t scalars[kMaxCallArguments];      ///< bits of the scalar's type, in the low bytes
  int64_t fault[ir::kMaxSubscriptChecks];  ///< what checks of subscripts find, in the low bytes
  void* arguments[kMaxCallArguments];
};

/// Checks a call's arguments and fills `frame`. No memory is allocated unless a check fails.
Result<void> prepare_call(const CallPlan& plan, std::span<const DLTensor* const> inputs,
                          std::span<DLTensor* const> outputs, std::span<const Scalar> scalars, CallFrame& frame);

/// The value as bits of a type, in the low bytes; nothing if the type cannot hold it.
std::optional<int64_t> scalar_bits(const Scalar& scalar, ScalarType type);

/// "int32 holds integers from -2147483648 to 2147483647"
std::string what_fits(ScalarType type);

}  // namespace tc::api
