#pragma once

#include <map>
#include <set>
#include <string>

#include "tc/tile/program.h"

namespace tc::tile {

/// What the kernels that run before one do to global tensors: those of its program that stand before it, or, for the
/// first one, those of anybody, which may touch and write all of them.
class KernelsBefore {
 public:
  bool touch(const std::string& tensor) const { return anybody_ || touched_.count(tensor) > 0; }  ///< read or write
  bool write(const std::string& tensor) const { return anybody_ || written_.count(tensor) > 0; }
  bool are_anybodys() const { return anybody_; }
  void add(const Kernel& kernel);

 private:
  bool anybody_ = true;
  std::set<std::string> touched_, written_;
};

struct PromiseOptions {
  bool readonly_cache = true;  ///< without it no tensor is read_only or restricted
  int64_t processors = 0;      ///< of a device that can start a kernel while what is before it on the stream runs
};

/// Decides what the printed text may promise to the compiler behind it: Tensor::read_only and Tensor::restricted, and
/// from where on a kernel runs beside those before it (StartNextKernel, WaitForKernels). The last change of a program:
/// it has none of these before. promise_faults() proves what is decided here.
///  - A kernel waits before the first node that touches what a kernel before it writes, or writes what one touches;
///    at its end if there is none. Every thread comes there. A kernel with another behind it lets that start at once.
///  - With `processors` the first kernel waits, too, before it touches a global tensor, if it reads boxes alone.
///    Others would lose their promises: the compiler may move loads of a tensor that is promised to be read only. (Some
///    that copy by threads took twice as long so on an H200.) It lets the second kernel start behind its wait.
///  - A last kernel with boxes lets what comes behind the program start, behind its own wait. It does not if it leaves
///    between a seventh and a half of the processors idle. The next kernel's first blocks would take those, and the
///    others meet on neighbours: 448 x 2432 x 1984 in 91 blocks, again and again, took 14.2 us so on an H200, and 12.1.
///  - read_only: neither the kernel nor one before it writes the tensor.
///  - restricted: no thread sees what another wrote to the tensor, and its loads cannot be merged with a coherent load
///    of another tensor. (NVVM turns two loads of one width, of which one runs, into one of a chosen address. It takes
///    that for read-only if it can tell so of either tensor, which a restricted pointer lets it.) What is read_only and
///    not restricted is loaded by instructions that say so themselves.
Program promise(Program program, const PromiseOptions& options = {});

/// Loads of each global tensor by ordinary instructions of the text, as their widths in bytes. Coherent ones are those
/// of tensors that are not read_only; an atomic update counts as one, as some are loops.
struct PlainLoads {
  std::map<std::string, std::set<int64_t>> of;
  std::set<std::string> coherent;
  bool exclusive = false;  ///< of some two, one may run where the other does not
  /// A tensor with a coherent load that may be merged with one of this tensor's; "" if there is none.
  std::string merged_with(const std::string& tensor) const;
};
PlainLoads plain_loads(const Kernel& kernel);

}  // namespace tc::tile
