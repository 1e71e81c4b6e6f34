#pragma once

#include <Halide.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tc/support/abandonable_thread.h"
#include "tc/support/result.h"

namespace tc::cpu {

/// One argument of a kernel, in the order of its call.
struct KernelArgument {
  std::string name;   ///< as the Stmt's Load, Store and Variable nodes call it
  Halide::Type type;  ///< of one element, or of the scalar
  bool is_buffer = false;
  int64_t elements = 0;     ///< of a buffer: how many elements may be touched
  int alignment_bytes = 0;  ///< of a buffer: what its address is a multiple of; 0 for the size of an element
};

/// A buffer is passed as its address; a scalar as the address of its value (float16 and bfloat16 as their bits).
KernelArgument buffer_argument(std::string name, Halide::Type type, int64_t elements, int alignment_bytes = 0);
KernelArgument scalar_argument(std::string name, Halide::Type type);

/// What is compiled: a Stmt over flat buffers and its arguments.
///
/// The body may hold For (serial, parallel, vectorized, unrolled), LetStmt, IfThenElse, Store, Load, Allocate,
/// Block, AssertStmt (its message is the int32 code that the call returns) and every Expr; a loop variable is
/// int32, an index into a buffer int32 or int64. Names may repeat in different scopes. Calls of intrinsics are
/// PureExtern calls by their names in the language ("exp", "isnan", "tc.floor_div"): see math.h.
/// Loads and Stores carry no Parameter: compile_object adds what the code generator needs.
struct Kernel {
  std::string name;  ///< a C identifier
  std::vector<KernelArgument> arguments;
  Halide::Internal::Stmt body;
  /// True if the caller promises that no two buffers overlap. Needed for the best vector code; an in-out
  /// tensor is one buffer with one name, so it does not break the promise.
  bool no_alias = false;
};

/// The size (unrolled_size) of the largest kernel that is compiled: a minute's work for LLVM.
inline constexpr double kMaxCodeSize = 2e6;

struct ObjectOptions {
  /// Where the code will run: "host", or a target as Halide writes it: "x86-64-linux-avx2-fma-f16c-sse41".
  std::string target = "host";
  /// Rounds after each operation as its type says: no fused multiply-add, no float32 between float16 values.
  bool strict = false;
  /// Asked between steps, among them LLVM's passes and the code generation of one function, and every few milliseconds
  /// besides, from several threads but never by two at once: true stops. A step that does not end soon is left alone
  /// (abandonable_thread.h).
  Stop stop = nullptr;
};

/// Machine code of one kernel: position-independent, relocatable ELF, with undefined symbols that the loader
/// supplies. Plain data: may be stored and loaded by another process (with the same version of this library).
struct Object {
  std::string name;    ///< of the kernel
  std::string target;  ///< canonical text, never "host"
  std::string bytes;   ///< the ELF file
  int arguments = 0;   ///< how many
};

/// Compiles. The error is the user's: a target text that is not one, or not an x86-64 Linux; a kernel larger than
/// kMaxCodeSize; stopped.
Result<Object> compile_object(const Kernel& kernel, const ObjectOptions& options = {});

/// The canonical text of a target ("host" is resolved), or an error that quotes it.
Result<std::string> canonical_target(const std::string& target);

/// The width in bits of the target's widest vector registers: 128, 256 or 512. The text must be a valid target.
int vector_bits(const std::string& target);

/// The Stmt as text.
std::string to_text(const Halide::Internal::Stmt& stmt);
/// The Stmt after all lowering, and the assembly that becomes the object.
Result<std::string> lowered_text(const Kernel& kernel, const ObjectOptions& options = {});
Result<std::string> assembly_text(const Kernel& kernel, const ObjectOptions& options = {});

}  // namespace tc::cpu
