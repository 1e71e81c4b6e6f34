#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tc/cache/key.h"
#include "tc/cuda/launch_plan.h"
#include "tc/support/scalar_type.h"

/// The values of the cache. All names in them are positions, so that a program with other names can use them.
namespace tc::cache {

/// Where an argument of a kernel comes from: the position in the text among tensor parameters, among results, among
/// scalar parameters; or the place for what a check of a subscript finds.
struct Slot {
  enum class Kind : uint8_t { kInput, kOutput, kScalar, kFault };
  Kind kind = Kind::kInput;
  int index = 0;
  bool operator==(const Slot&) const = default;
};

/// A subscript that the kernel checks, as ir::SubscriptCheck has it, by the names of the text that was compiled. Check
/// number c fills the slot of kind kFault with the index c.
struct Check {
  int dimension = 0;
  int64_t extent = 0;
  std::string statement{};
  std::string tensor{};
  ScalarType type = ScalarType::kInt64;
  std::string found{};  ///< what the result is called in the workspace of a GPU
  bool operator==(const Check&) const = default;
};

/// A kernel for the CPU.
struct CpuCode {
  std::string symbol{};  ///< of the kernel in the object
  std::string target{};  ///< canonical text
  std::string object{};  ///< a relocatable ELF file
  bool operator==(const CpuCode&) const = default;
};

/// Code for one architecture.
struct Cubin {
  std::string arch{};  ///< "sm_90a"
  std::string bytes{};
  bool operator==(const Cubin&) const = default;
};

/// Kernels for GPUs. The plan's tensors and scalars have no names; their slots, in order, are the entry's.
struct GpuCode {
  std::string arch{};  ///< that the plan was made for
  std::string cubin{};
  std::vector<Cubin> others{};  ///< of the same text, for other architectures
  cuda::LaunchPlan plan{};
  std::string text{};  ///< CUDA, where it was asked to be kept

  /// All of it, the newest architecture first; of one number, that with a variant (sm_90a before sm_90).
  std::vector<Cubin> newest_first() const;
  /// The code that a device of this compute capability (90) runs: that of the newest architecture; none where there is
  /// none.
  std::optional<Cubin> code_for(int device) const;
};

/// Why the code is right.
struct Certificate {
  enum class Origin : uint8_t {
    kCompiler,  ///< compiled: every pass proved what it did
    kHand,      ///< CUDA text or a schedule by hand: compared with the oracle before it was accepted
  };
  Origin origin = Origin::kCompiler;
  std::string compiler{};  ///< that made or compared it
  /// Digest of the last text that was proved: the loops of the CPU, the CUDA text of a GPU. A compiler that proves a
  /// schedule and makes the same text of it has proved this code again.
  std::string proved_text{};
  std::string statement{};  ///< what was proved, or compared, in a line
  bool operator==(const Certificate&) const = default;
};

/// Everything that running one kernel needs.
struct Entry {
  std::vector<Slot> slots{};  ///< what the kernel takes, in order
  CpuCode cpu{};              ///< of Backend::kCpu
  GpuCode gpu{};              ///< of Backend::kCuda
  std::vector<Check> checks{};
  Certificate certificate{};
  int64_t created = 0;  ///< seconds since 1970
};

/// An entry with the code for further architectures that another of the same key has; none if that has no more, or was
/// made of another text.
std::optional<Entry> joined(Entry ours, const Entry& theirs);

/// One candidate of a tuner, or one run, on one device.
struct Measurement {
  enum class State : uint8_t {
    kOk,         ///< validated and timed
    kRefused,    ///< options that the compiler cannot follow
    kWrong,      ///< differs from the oracle
    kCrashed,    ///< killed its process, or lost the device
    kTimeLimit,  ///< took too long to compile or to run
    kTooSlow,    ///< timed roughly and given up
  };
  Problem problem{};
  std::string options{};  ///< as in Key
  std::string device{};   ///< by its driver's name: "NVIDIA H200"; of a CPU its model
  State state = State::kOk;
  double time_us = 0;    ///< median; 0 where there is none
  double spread_us = 0;  ///< half the distance between the quartiles
  int64_t date = 0;      ///< seconds since 1970
  std::string compiler{};
  std::string remark{};  ///< why it failed
  bool operator==(const Measurement&) const = default;
};

/// An extent, a size or a constant as a tree in prefix notation: "(+ (* 2 N) -1)". "?" where it depends on scalars that
/// have no value.
using ExtentText = std::string;

/// What a caller sees of a def: enough to find sizes and shapes without the compiler's front end. A def with
/// compiled-in scalars has one without their values, and one for all values that something was compiled for.
struct Interface {
  enum class Role : uint8_t { kInput, kResult, kInOut };
  struct Tensor {
    std::string name{};
    ScalarType type = ScalarType::kFloat32;
    Role role = Role::kInput;
    std::vector<ExtentText> extents{};
    bool operator==(const Tensor&) const = default;
  };
  struct Scalar {
    std::string name{};
    ScalarType type = ScalarType::kInt32;
    bool compiled_in = false;
    std::optional<int64_t> value{};  ///< the extents hold for this number in the place of the scalar
    bool operator==(const Scalar&) const = default;
  };
  std::string entry{};    ///< name of the def
  std::string program{};  ///< digest, as Problem::program
  std::string text{};     ///< the def in its canonical format
  std::string compiler{};
  std::vector<std::string> sizes{};
  std::vector<Tensor> tensors{};  ///< inputs, then results, in order
  std::vector<Scalar> scalars{};
  std::vector<std::string> parameters{};  ///< names of tensors and scalars, in the order of the text
  std::vector<std::string> results{};
  bool has_run_time_checks = true;  ///< data-dependent subscripts, which `check_bounds` checks
  bool operator==(const Interface&) const = default;
};

}  // namespace tc::cache
