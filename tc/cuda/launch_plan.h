#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

/// What a host must know to launch a compiled tile program. No Halide here: what loads and runs kernels needs none.
namespace tc::cuda {

struct TensorArgument {
  std::string name;
  int64_t bytes = 0;     ///< reached by the kernels, from the address handed over
  int alignment = 1;     ///< of the address, in bytes: that of the widest vector copied to or from it
  bool written = false;  ///< by any of the kernels; may then overlap no other argument
};

struct ScalarArgument {
  std::string name;
  int bytes = 0;  ///< a bool has one
};

/// A buffer that kernels of one program hand on to each other.
struct WorkspaceBuffer {
  std::string name;
  int64_t byte_offset = 0;  ///< in the program's workspace; a multiple of kWorkspaceAlignment
  int64_t bytes = 0;
};
inline constexpr int64_t kWorkspaceAlignment = 256;

/// The largest shared memory that a kernel may declare statically, in bytes; what needs more takes it dynamically.
inline constexpr int64_t kStaticSharedLimit = 48 * 1024;

struct KernelArgument {
  enum class Kind { kTensor, kWorkspace, kScalar, kMap } kind = Kind::kTensor;
  int index = 0;  ///< into the plan's list of that kind

  bool operator==(const KernelArgument&) const = default;
};

/// A tensor map, as the driver encodes it from an address (cuTensorMapEncodeTiled). Dimensions go from the fastest on;
/// its elements are neighbours.
struct MapArgument {
  KernelArgument of;        ///< a tensor or a buffer of the workspace
  int64_t byte_offset = 0;  ///< of its first element in that
  int type = 0;             ///< of elements: a CUtensorMapDataType
  std::vector<int64_t> extents;
  std::vector<int64_t> byte_strides;  ///< of all dimensions but the first
  std::vector<int64_t> box;
  int swizzle = 0;  ///< bytes of a row that are swizzled: 0, 32, 64 or 128

  bool operator==(const MapArgument&) const = default;
};
inline constexpr int kMapBytes = 128;  ///< that are encoded
inline constexpr int kMaxMapRank = 5;
inline constexpr int kMapAlignment = 16;  ///< bytes, of the address that is encoded

struct KernelLaunch {
  std::string symbol;  ///< in the module
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};
  std::array<int64_t, 3> cluster = {1, 1, 1};  ///< blocks
  int64_t dynamic_shared_bytes = 0;
  std::vector<KernelArgument> arguments;
  bool waits = false;  ///< its text waits until those before it have ended: it may start while they run

  bool in_clusters() const { return cluster != std::array<int64_t, 3>{1, 1, 1}; }
};

/// Launches in order, on one stream.
struct LaunchPlan {
  std::vector<TensorArgument> tensors;  ///< in order of first appearance in the kernels
  std::vector<ScalarArgument> scalars;  ///< likewise
  std::vector<WorkspaceBuffer> workspace;
  std::vector<MapArgument> maps;  ///< likewise
  std::vector<KernelLaunch> kernels;

  /// The place of a buffer in the workspace; -1 if there is none of that name.
  int buffer(const std::string& name) const {
    for (size_t i = 0; i < workspace.size(); ++i) {
      if (workspace[i].name == name) return static_cast<int>(i);
    }
    return -1;
  }

  int64_t workspace_bytes() const {
    return workspace.empty() ? 0 : workspace.back().byte_offset + workspace.back().bytes;
  }
};

}  // namespace tc::cuda
