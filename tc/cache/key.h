#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tc/options/backend.h"
#include "tc/support/digest.h"
#include "tc/support/result.h"

namespace tc::cache {

using options::Backend;

/// Strides of an argument that is not dense, in elements. Arguments are counted over inputs, then results.
struct Strided {
  int argument = 0;
  std::vector<int64_t> strides{};
  bool operator==(const Strided&) const = default;
};

/// What is to be computed, and for what: all that decides which kernels are interchangeable. Names of the text are not
/// in it. Element types are part of the program. There are two classes of alignment: a GPU's kernel may copy by
/// vectors, and then asks for tensors that are aligned to these; or it takes any that are aligned to their elements.
struct Problem {
  std::string program{};           ///< ir::digest_of() of the symbolic program, 64 hexadecimal digits
  std::vector<int64_t> sizes{};    ///< values of the program's sizes, in its order
  std::vector<int64_t> scalars{};  ///< values of its compiled-in scalars, in its order
  std::vector<Strided> strided{};  ///< by argument, ascending
  bool strict = false;             ///< what the options say of meaning rather than speed
  bool check_bounds = false;
  bool tf32 = false;  ///< of a GPU, as is the next
  bool fast_accumulation = false;
  bool element_aligned = false;  ///< of a GPU: no tensor needs more than its elements' alignment
  Backend backend = Backend::kCuda;
  std::string target{};  ///< "sm_90a", or a CPU target's canonical text
  bool operator==(const Problem&) const = default;
};

/// Which kernel: a problem and all else that decides what the compiler makes of it.
struct Key {
  Problem problem{};
  /// The options' text form; "": all chosen by the compiler; "by hand ...": CUDA text or a schedule that somebody
  /// wrote.
  std::string options{};
  std::string machine{};   ///< what the compiler's choices depend on beyond the target: "132 processors, ..."
  std::string compiler{};  ///< compiler_version() of the one that made it
  bool operator==(const Key&) const = default;
};

/// Text that is equal for equal values only; what digests are made of. Not for reading back.
std::string canonical_text(const Problem& problem);
std::string canonical_text(const Key& key);
Digest digest_of(const Problem& problem);
Digest digest_of(const Key& key);

/// "1024x512 scalars 3 strict unaligned", for tables.
std::string instance_text(const Problem& problem);

/// How far the sizes of two problems that differ in sizes only are apart: the sum over sizes of |log2(a / b)|. Negative
/// where they differ in anything else: options cannot be carried over.
double distance(const Problem& a, const Problem& b);

}  // namespace tc::cache
