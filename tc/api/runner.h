#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tc/api/call.h"
#include "tc/cache/entry.h"
#include "tc/compile/pipeline.h"

namespace tc::api {

/// A loaded kernel on its backend. Immutable for callers; all members may be called from many threads at once.
class Runner {
 public:
  virtual ~Runner() = default;
  /// Names of the arguments that it takes, in order: those of the program, and of the results of its checks.
  virtual std::vector<std::string> arguments() const = 0;
  /// Whether the tensors of a checked call are aligned as the code needs it.
  virtual bool takes(const CallFrame&) const { return true; }
  /// Runs on a checked call; on a GPU, launches.
  virtual Result<void> run(const CallFrame& frame, void* stream) const = 0;
  /// Until everything launched on the stream is done.
  virtual Result<void> wait(void* stream) const = 0;
  /// What run() would allocate on a stream that it has not seen.
  virtual Result<void> prepare(void* stream) const = 0;
  /// Whether a graph records what is launched on the stream.
  virtual Result<bool> is_captured(void*) const { return false; }
  /// Lets what comes on a stream wait for what is on another one by now.
  virtual Result<void> follow(void*, void*) const { return {}; }
  /// Does work whose code has to be loaded where this one's is: in the same context of the GPU.
  virtual void beside(const std::function<void()>& work) const { work(); }
};

/// Of a compilation that has run all passes of its backend.
std::unique_ptr<const Runner> make_runner(const compile::Settings& settings, const compile::Compilation& compilation);

/// Of a cache's entry, whose slots fit the def (fit_program()); names in messages are the def's. Loads the code.
/// Errors: code that this processor or GPU cannot run.
Result<std::unique_ptr<const Runner>> load_runner(const compile::Settings& settings, const ir::Program& program,
                                                  const cache::Entry& entry);

/// Whether every slot of an entry is an argument of the def.
bool fit_program(const cache::Entry& entry, const ir::Program& program);

}  // namespace tc::api
