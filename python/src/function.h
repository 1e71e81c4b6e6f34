#pragma once

#include <nanobind/nanobind.h>
#include <tc/api/tc.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "frameworks.h"

/// A def that is called with arrays.
namespace tc::python {

/// How a def is compiled, whatever its shapes.
struct Choices {
  std::optional<api::Backend> backend;  ///< absent: where the arrays are
  options::CpuOptions cpu;
  options::MappingOptions mapping;
  bool element_aligned = false;
  /// Of Python's: given a request's fields (request.h), it makes the Kernel for it; absent: the engine does.
  nanobind::object maker{};
};

/// The arguments of a call, sorted: those of the signature's parameters, and arrays for results.
struct Arguments {
  explicit Arguments(const api::Signature& signature);

  const api::Signature& signature;
  std::unique_ptr<View[]> inputs;                 ///< tensor parameters
  std::unique_ptr<View[]> outputs;                ///< results; empty where the caller gave none
  std::vector<api::Scalar> scalars;               ///< scalar parameters
  std::vector<std::pair<size_t, int64_t>> sizes;  ///< by their place in the signature
  size_t num_inputs = 0;
  DLDevice device{kDLCPU, 0};            ///< of the first array in a GPU's memory; else the CPU
  const Framework* framework = nullptr;  ///< of the first array
  void* stream = nullptr;
  std::vector<void*> awaited;  ///< streams that arrays name beside that one
};

/// A kernel and how to make what it writes.
struct Compiled {
  std::optional<api::CompiledKernel> kernel;  ///< once it is there it stays as it is
  std::vector<Maker> makers;                  ///< one for each result; used with the GIL

  /// Makes the kernel, in the caller's context of the GPU. Throws what Ctrl-C raises, and Error.
  void compile(const api::Engine& engine, api::Request request);
  /// Runs with the GIL released; returns the result, or a tuple of them.
  nanobind::object run(const Arguments& arguments);
};

/// A callable def: compiles once for each set of shapes, types, strides and devices.
class Function {
 public:
  Function(api::Engine engine, api::Signature signature, Choices choices);

  nanobind::object call(nanobind::args args, nanobind::kwargs kwargs);
  /// The kernel that a call with these arguments would run.
  std::shared_ptr<Compiled> compile(nanobind::args args, nanobind::kwargs kwargs);
  const api::Signature& signature() const { return signature_; }
  const api::Engine& engine() const { return engine_; }
  const Choices& choices() const { return choices_; }
  size_t kernels() const { return kernels_.size(); }  ///< with those that are being compiled
  void clear() { kernels_.clear(); }

  /// What the arguments ask for.
  api::Request request_of(const Arguments& arguments) const;

 private:
  struct Hash {
    size_t operator()(const std::vector<int64_t>& words) const;
  };
  bool decides(size_t result, const View& view) const;
  void make_key(const Arguments& arguments);
  std::shared_ptr<Compiled> find(const Arguments& arguments);
  void make(Compiled& compiled, const Arguments& arguments) const;
  std::shared_ptr<Compiled> compile_for(const std::vector<int64_t>& key, const Arguments& arguments);

  api::Engine engine_;
  api::Signature signature_;
  Choices choices_;
  std::vector<bool> is_open_;  ///< of each result: the inputs may not tell its extents or its type
  std::vector<int64_t> key_;   ///< of the call at hand; no Python code runs while it is used
  /// One without a kernel is being compiled by a thread, which removes it if it fails.
  std::unordered_map<std::vector<int64_t>, std::shared_ptr<Compiled>, Hash> kernels_;
};

/// Sorts the arguments of a call by position and name. Throws TypeError.
void read_arguments(Arguments& arguments, nanobind::args args, nanobind::kwargs kwargs);

/// A kernel of fixed shapes, to be called with arrays of just these.
class Kernel {
 public:
  explicit Kernel(std::shared_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
  nanobind::object call(nanobind::args args, nanobind::kwargs kwargs);
  const api::CompiledKernel& get() const { return *compiled_->kernel; }

 private:
  std::shared_ptr<Compiled> compiled_;
};

/// A Python number as a scalar argument. Throws TypeError.
api::Scalar scalar_of(const std::string& name, nanobind::handle value);

}  // namespace tc::python
