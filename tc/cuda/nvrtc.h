#pragma once

#include <map>
#include <string>
#include <vector>

#include "tc/cuda/arch.h"
#include "tc/cuda/resources.h"
#include "tc/support/abandonable_thread.h"
#include "tc/support/result.h"

namespace tc::cuda {

struct CompileOptions {
  bool strict = false;     ///< no contraction of products and sums into FMA
  bool line_info = false;  ///< source lines for profilers
  int max_registers = 0;   ///< per thread; 0: the compiler's choice
  Stop stop = nullptr;     ///< asked every few milliseconds: yes ends the compilation with an error of kind kCancelled
};

/// A compiled translation unit.
struct Compiled {
  Arch arch;
  std::string ptx;
  std::string cubin;                           ///< an ELF image for `arch`
  std::string log;                             ///< warnings, and the assembler's report
  std::map<std::string, Resources> resources;  ///< by kernel
};

/// NVIDIA's run-time compiler, from a library opened when it is first asked for.
class Nvrtc {
 public:
  /// The process's one. Looks at $TENSORC_NVRTC (the library or its folder), $CUDA_HOME and $CUDA_PATH, the dynamic
  /// linker's path, and /usr/local/cuda*. The error says where it looked.
  static Result<const Nvrtc*> get();

  /// As an environment would have it, without opening anything: the candidates in order.
  static std::vector<std::string> candidates();

  /// CUDA C++ to a cubin. Thread-safe.
  Result<Compiled> compile(const std::string& text, Arch arch, const CompileOptions& options = {}) const;

  std::pair<int, int> version() const { return version_; }  ///< {13, 0}
  /// Compute capabilities without variants, ascending: 75, 80, ...
  const std::vector<int>& architectures() const { return architectures_; }
  const std::string& path() const { return path_; }

 private:
  struct Functions;
  static Result<Nvrtc> open();
  Result<Compiled> compile_here(const std::string& text, Arch arch, const std::vector<std::string>& flags,
                                const Stop& stops) const;
  Nvrtc() = default;

  const Functions* functions_ = nullptr;
  std::string path_;
  std::pair<int, int> version_;
  std::vector<int> architectures_;
};

}  // namespace tc::cuda
