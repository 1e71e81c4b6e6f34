#include "tc/cli/export_c.h"

#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "tc/cache/version.h"
#include "tc/cli/cache_text.h"
#include "tc/cli/export_maps.h"
#include "tc/cuda/arch.h"
#include "tc/support/check.h"
#include "tc/support/cpp_words.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

/// One parameter of the exported function.
struct Parameter {
  std::string name;
  ScalarType type = ScalarType::kFloat32;
  bool is_scalar = false;
  bool written = false;
  std::string remark;
};

/// Elements that C has no type for are their bits.
const char* c_type(ScalarType type) {
  switch (type) {
    case ScalarType::kBool:
    case ScalarType::kUInt8:
    case ScalarType::kFloat8E4M3:
    case ScalarType::kFloat8E5M2:
      return "uint8_t";
    case ScalarType::kInt8:
      return "int8_t";
    case ScalarType::kInt16:
      return "int16_t";
    case ScalarType::kInt32:
      return "int32_t";
    case ScalarType::kInt64:
      return "int64_t";
    case ScalarType::kUInt16:
    case ScalarType::kFloat16:
    case ScalarType::kBFloat16:
      return "uint16_t";
    case ScalarType::kUInt32:
      return "uint32_t";
    case ScalarType::kUInt64:
      return "uint64_t";
    case ScalarType::kFloat32:
      return "float";
    case ScalarType::kFloat64:
      return "double";
  }
  return "";
}

/// The runtime of a CPU's kernel, by the symbols that it may need. @ stands for the function's name.
struct Piece {
  const char* symbol;
  const char* text;
};
const Piece kRuntime[] = {
    {"halide_do_par_for",
     R"(/* In order, or with OpenMP by its threads. */
int @_par_for(void* context, int (*body)(void*, int, uint8_t*), int begin, int extent, uint8_t* closure) {
  int result = 0, i;
#ifdef _OPENMP
#pragma omp parallel for
#endif
  for (i = begin; i < begin + extent; ++i) {
    int code = body(context, i, closure);
    if (code != 0) result = code;
  }
  return result;
}
)"},
    {"halide_malloc",
     R"(void* @_malloc(void* context, size_t bytes) {
  (void)context;
  return aligned_alloc(64, (bytes + 63) / 64 * 64);
}
)"},
    {"halide_free",
     R"(void @_free(void* context, void* pointer) {
  (void)context;
  free(pointer);
}
)"},
    {"tc.copy",
     R"(int @_copy(void* to, const void* from, size_t bytes) {
  memcpy(to, from, bytes);
  return 0;
}
)"},
    {"tc_f32_floor_mod",
     R"(float @_f32_floor_mod(float x, float y) {
  float remainder = fmodf(x, y);
  return remainder != 0 && (remainder < 0) != (y < 0) ? remainder + y : remainder;
}
)"},
    {"tc_f64_floor_mod",
     R"(double @_f64_floor_mod(double x, double y) {
  double remainder = fmod(x, y);
  return remainder != 0 && (remainder < 0) != (y < 0) ? remainder + y : remainder;
}
)"},
};

/// What C's library has under its own name, and what the linker finds by itself.
constexpr const char* kUnary[] = {"acos",  "acosh", "asin", "asinh", "atan", "atanh", "cbrt",  "cos",
                                  "cosh",  "erf",   "erfc", "exp",   "exp2", "expm1", "log",   "log10",
                                  "log1p", "log2",  "sin",  "sinh",  "tan",  "tanh",  "tgamma"};
constexpr const char* kBinary[] = {"atan2", "fmod", "hypot", "pow"};
constexpr const char* kLinked[] = {"memcpy", "memmove",   "memset",     "ceil", "ceilf", "floor", "floorf", "fma",
                                   "fmaf",   "nearbyint", "nearbyintf", "rint", "rintf", "trunc", "truncf"};

bool contains(const auto& list, std::string_view name) {
  return std::ranges::any_of(list, [&](const char* one) { return name == one; });
}

std::string replaced(std::string text, const std::string& name) {
  for (size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at + name.size())) {
    text.replace(at, 1, name);
  }
  return text;
}

/// "halide_malloc" as "NAME_malloc".
std::string renamed(const std::string& symbol, const std::string& name) {
  for (const char* prefix : {"halide_do_", "halide_", "tc_", "tc."}) {
    if (symbol.starts_with(prefix)) return name + "_" + symbol.substr(std::strlen(prefix));
  }
  return symbol;
}

/// The text that supplies a symbol; empty for one that the linker finds.
Result<std::string> runtime_of(const std::string& symbol, const std::string& name) {
  if (contains(kLinked, symbol)) return "";
  for (const Piece& piece : kRuntime) {
    if (symbol == piece.symbol) return replaced(piece.text, name);
  }
  const bool is_double = symbol.starts_with("tc_f64_");
  if (is_double || symbol.starts_with("tc_f32_")) {
    const std::string function = symbol.substr(7);
    const char* type = is_double ? "double" : "float";
    const std::string own = renamed(symbol, name);
    if (contains(kUnary, function)) {
      return fmt::format("{0} {1}({0} x) {{ return ({0}){2}((double)x); }}\n", type, own, function);
    }
    if (contains(kBinary, function)) {
      return fmt::format("{0} {1}({0} x, {0} y) {{ return ({0}){2}((double)x, (double)y); }}\n", type, own, function);
    }
  }
  return fail("the kernel needs '{}', which C's library does not have", symbol);
}

/// Names of the symbols that an object of 64-bit ELF leaves to others.
std::set<std::string> undefined_symbols(const std::string& object) {
  std::set<std::string> names;
  const auto read = [&](auto& value, size_t at) {
    TC_CHECK(at + sizeof(value) <= object.size(), "an object of {} bytes", object.size());
    std::memcpy(&value, object.data() + at, sizeof(value));
  };
  Elf64_Ehdr file;
  read(file, 0);
  for (int i = 0; i < file.e_shnum; ++i) {
    Elf64_Shdr section, strings;
    read(section, file.e_shoff + static_cast<size_t>(i) * sizeof(section));
    if (section.sh_type != SHT_SYMTAB) continue;
    read(strings, file.e_shoff + section.sh_link * sizeof(strings));
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      read(symbol, section.sh_offset + at);
      if (symbol.st_shndx == SHN_UNDEF && symbol.st_name != 0) {
        names.insert(object.c_str() + strings.sh_offset + symbol.st_name);
      }
    }
  }
  return names;
}

/// The function's parameters, and where among them each slot of the entry is.
struct Parameters {
  std::vector<Parameter> list;
  std::vector<size_t> inputs, outputs, scalars;

  size_t of(const cache::Slot& slot) const {
    using Kind = cache::Slot::Kind;
    const std::vector<size_t>& places = slot.kind == Kind::kInput    ? inputs
                                        : slot.kind == Kind::kOutput ? outputs
                                                                     : scalars;
    return places.at(static_cast<size_t>(slot.index));
  }
  std::string text(const char* separator, auto format) const {
    std::vector<std::string> parts;
    for (const Parameter& parameter : list) parts.push_back(format(parameter));
    return fmt::format("{}", fmt::join(parts, separator));
  }
};

std::string tensor_remark(const api::TensorSpec& spec) {
  return fmt::format("{}({}), strides ({})", tc::name_of(spec.type), fmt::join(spec.shape, ", "),
                     fmt::join(spec.strides, ", "));
}

/// Names that the exported functions use themselves; @ stands for the function's.
constexpr const char* kOwnNames[] = {"arguments", "cuLaunchKernel", "cuLaunchKernelEx", "cuTensorMapEncodeTiled",
                                     "int16_t",   "int32_t",        "int64_t",          "int8_t",
                                     "kernels",   "status",         "stream",           "uint16_t",
                                     "uint32_t",  "uint64_t",       "uint8_t",          "uintptr_t",
                                     "workspace", "NULL",           "size_t",           "@",
                                     "@_kernel",  "@_kernels",      "TENSORC_@_H_"};

/// The name of a parameter of the function: the def's, or another where C or the function has that name: with lines
/// behind it, and `v_` before what looks like a macro.
std::string parameter_name(const std::string& name, const std::string& function, const api::Signature& signature) {
  const auto is_taken = [&](const std::string& tried) {
    const auto is_it = [&](const char* own) { return tried == replaced(own, function); };
    const auto has_it = [&](const std::vector<api::Argument>& arguments) {
      return std::ranges::find(arguments, tried, &api::Argument::name) != arguments.end();
    };
    return is_cpp_word(tried) || is_c_macro(tried) || std::ranges::any_of(kOwnNames, is_it) ||
           (tried != name && (has_it(signature.parameters) || has_it(signature.results)));
  };
  std::string tried = name;
  // What begins like a macro does so still with a line behind it.
  while (is_taken(tried)) tried = is_c_macro(tried) ? "v_" + tried : tried + '_';
  return tried;
}

Parameters parameters_of(const std::string& function, const api::Signature& signature, const api::Specs& specs,
                         const std::map<std::string, int64_t>& compiled_in) {
  Parameters parameters;
  const auto add = [&](const api::Argument& argument, std::vector<size_t>& places, std::string remark) {
    places.push_back(parameters.list.size());
    const bool is_scalar = argument.role == api::Role::kScalar;
    parameters.list.push_back({parameter_name(argument.name, function, signature), argument.type, is_scalar,
                               &places == &parameters.outputs, remark});
  };
  for (const api::Argument& argument : signature.parameters) {
    if (argument.role != api::Role::kScalar) {
      add(argument, parameters.inputs, "in: " + tensor_remark(specs.inputs[parameters.inputs.size()]));
    } else if (const auto value = compiled_in.find(argument.name); argument.compiled_in && value != compiled_in.end()) {
      add(argument, parameters.scalars, fmt::format("must be {}", value->second));
    } else {
      add(argument, parameters.scalars, std::string(tc::name_of(argument.type)));
    }
  }
  for (const api::Argument& argument : signature.results) {
    const char* how = argument.role == api::Role::kInOut ? "in and out: " : "out: ";
    add(argument, parameters.outputs, how + tensor_remark(specs.outputs[parameters.outputs.size()]));
  }
  return parameters;
}

std::string cpu_prototype(const std::string& name, const Parameters& parameters) {
  return fmt::format("int {}({})", name, parameters.text(", ", [](const Parameter& p) {
    if (p.is_scalar) return fmt::format("{} {}", c_type(p.type), p.name);
    return fmt::format("{}{}* {}", p.written ? "" : "const ", c_type(p.type), p.name);
  }));
}

std::string gpu_prototype(const std::string& name, const Parameters& parameters) {
  return fmt::format("int {}_launch(const {}_kernels* kernels, void* stream, {})", name, name,
                     parameters.text(", ", [](const Parameter& p) {
                       return p.is_scalar ? fmt::format("{} {}", c_type(p.type), p.name)
                                          : fmt::format("uint64_t {}", p.name);
                     }));
}

constexpr char kCpuHeader[] =
    R"(/* Runs. Tensors are addresses of their first elements, aligned to them; none that is written overlaps another. Returns
 * 0; -11 if there is no memory for temporaries; a positive code if a subscript was out of bounds. Thread-safe. */
)";
constexpr char kGpuHeader[] = R"(/* The kernels of @ in one CUDA context. */
typedef struct {
  void* module;
  void* functions[KERNELS];
  uint64_t workspace;
} @_kernels;

/* All return 0 or a CUresult. Loads into the context that is current, where the two others have to be called too: the
 * code for the architecture of its device (CODE), else that for the newest older one of the same major number.
 * CUDA_ERROR_NO_BINARY_FOR_GPU (209) if there is neither. */
int @_load(@_kernels* kernels);
/* Launches on a CUstream (null: the default one) and returns. Tensors are CUdeviceptr; none that is written overlaps
 * another. One whose address is no multiple of the bytes that the kernels copy at a time, 16 at the most, is refused
 * (CUDA_ERROR_INVALID_VALUE). Launches on two streams at once need two @_kernels if there is workspace (WORKSPACE
 * bytes). */
LAUNCH;
int @_unload(@_kernels* kernels);
)";

std::string header_text(const std::string& name, const api::Signature& signature, const cache::Key& key,
                        const Parameters& parameters, const std::string& body) {
  return fmt::format(
      "/* SPDX-License-Identifier: Apache-2.0\n * {} for {}, {}; options {}. Made by tensorc {}.\n *\n{}\n */\n#ifndef "
      "TENSORC_{}_H_\n#define TENSORC_{}_H_\n\n"
      "#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{}\n#ifdef "
      "__cplusplus\n}}\n#endif\n\n#endif\n",
      signature.entry, cache::instance_text(key.problem), key.problem.target, options_line(key.options),
      cache::compiler_version(),
      parameters.text("\n", [](const Parameter& p) { return fmt::format(" *   {}  {}", p.name, p.remark); }), name,
      name, body);
}

Result<ExportedC> export_cpu(const std::string& name, const Parameters& parameters, const cache::Entry& entry) {
  ExportedC exported;
  std::string runtime;
  for (const std::string& symbol : undefined_symbols(entry.cpu.object)) {
    TC_TRY(text, runtime_of(symbol, name));
    runtime += text;
    if (!text.empty()) exported.renamed[symbol] = renamed(symbol, name);
  }
  const std::string kernel = name + "_kernel";
  exported.renamed["tc_kernel_" + entry.cpu.symbol] = kernel;
  exported.header = kCpuHeader + cpu_prototype(name, parameters) + ";\n";
  std::vector<std::string> arguments;
  for (const cache::Slot& slot : entry.slots) {
    if (slot.kind == cache::Slot::Kind::kFault) {
      arguments.push_back(fmt::format("&tensorc_subscript_{}", slot.index));
      continue;
    }
    const Parameter& parameter = parameters.list[parameters.of(slot)];
    arguments.push_back(fmt::format("(void*){}{}", parameter.is_scalar ? "&" : "", parameter.name));
  }
  std::string found, judge;  // what checks of subscripts find
  for (size_t c = 0; c < entry.checks.size(); ++c) {
    const cache::Check& check = entry.checks[c];
    found += fmt::format("  {} tensorc_subscript_{}; /* {} of {} */\n", c_type(check.type), c, check.dimension,
                         check.tensor);
    judge +=
        check.extent == 0
            ? fmt::format("  if (tensorc_subscript_{} != 0) return {};\n", c, c + 1)
            : fmt::format(
                  "  if ((int64_t)tensorc_subscript_{0} < 0 || (int64_t)tensorc_subscript_{0} >= {1}) return {2};\n", c,
                  check.extent, c + 1);
  }
  std::string unused;
  for (const Parameter& parameter : parameters.list) unused += fmt::format("  (void){};\n", parameter.name);
  exported.source = fmt::format(
      "#include \"{0}.h\"\n\n#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n\n{1}"
      "int {2}(void* const* arguments);\n\n{3} {{\n{4}  void* arguments[] = {{{5}}};\n{6}"
      "  const int status = {2}(arguments);\n  if (status != 0) return status;\n{7}  return 0;\n}}\n",
      name, runtime.empty() ? "" : runtime + "\n", kernel, cpu_prototype(name, parameters), found,
      fmt::join(arguments, ", "), unused, judge);
  return exported;
}

/// Bytes as the elements of an array, 16 a line.
std::string array_text(const std::string& bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    text += fmt::format("{}{},", i % 16 == 0 ? "\n  " : " ", static_cast<unsigned char>(bytes[i]));
  }
  return text;
}

/// The name of the parameter that the plan's tensor or scalar is.
const std::string& name_of(const cuda::KernelArgument& argument, const cache::Entry& entry,
                           const Parameters& parameters) {
  const size_t before = argument.kind == cuda::KernelArgument::Kind::kScalar ? entry.gpu.plan.tensors.size() : 0;
  return parameters.list[parameters.of(entry.slots[before + static_cast<size_t>(argument.index)])].name;
}

std::string argument_text(const cuda::KernelArgument& argument, const cache::Entry& entry,
                          const Parameters& parameters) {
  using Kind = cuda::KernelArgument::Kind;
  const auto index = static_cast<size_t>(argument.index);
  if (argument.kind == Kind::kWorkspace) return fmt::format("&workspace[{}]", index);
  if (argument.kind == Kind::kMap) return map_text(index);
  return "(void*)&" + name_of(argument, entry, parameters);
}

std::string maps_text(const cache::Entry& entry, const Parameters& parameters) {
  return encode_text(entry.gpu.plan, [&](const cuda::KernelArgument& of) {
    return of.kind == cuda::KernelArgument::Kind::kWorkspace ? fmt::format("workspace[{}]", of.index)
                                                             : name_of(of, entry, parameters);
  });
}

std::string plain_launch_text(size_t k, const cuda::KernelLaunch& launch) {
  return fmt::format(
      "    int status = cuLaunchKernel(kernels->functions[{}], {}u, {}u, {}u, {}u, {}u, {}u, {}u, stream,\n"
      "                                arguments, 0);\n",
      k, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0], launch.block[1], launch.block[2],
      launch.dynamic_shared_bytes);
}

/// The launch of kernel number k.
std::string launch_text(size_t k, const cache::Entry& entry, const Parameters& parameters) {
  const cuda::KernelLaunch& launch = entry.gpu.plan.kernels[k];
  if (std::ranges::find(launch.grid, 0) != launch.grid.end()) return "";
  std::vector<std::string> arguments;
  for (const cuda::KernelArgument& argument : launch.arguments) {
    arguments.push_back(argument_text(argument, entry, parameters));
  }
  return fmt::format("  {{\n    void* arguments[] = {{{}}};\n{}    if (status != 0) return status;\n  }}\n",
                     fmt::join(arguments, ", "),
                     launch.in_clusters() ? cluster_launch_text(k, launch) : plain_launch_text(k, launch));
}

/// A refusal of addresses that the vectors of the kernels don't fit. 1: CUDA_ERROR_INVALID_VALUE.
std::string alignment_text(const cache::Entry& entry, const Parameters& parameters) {
  std::string text;
  for (size_t i = 0; i < entry.gpu.plan.tensors.size(); ++i) {
    const cuda::TensorArgument& tensor = entry.gpu.plan.tensors[i];
    if (tensor.bytes == 0 || tensor.alignment <= 1) continue;
    text += fmt::format("  if ({} % {} != 0) return 1;\n", parameters.list[parameters.of(entry.slots[i])].name,
                        tensor.alignment);
  }
  return text;
}

constexpr char kDriver[] = R"(/* The driver's own names: its header is not needed. */
extern int cuCtxGetDevice(int* device);
extern int cuDeviceGetAttribute(int* value, int attribute, int device);
extern int cuModuleLoadData(void** module, const void* image);
extern int cuModuleUnload(void* module);
extern int cuModuleGetFunction(void** function, void* module, const char* name);
extern int cuFuncSetAttribute(void* function, int attribute, int value);
extern int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** arguments,
                          void** extra);
extern int cuMemAlloc_v2(uint64_t* address, size_t bytes);
extern int cuMemFree_v2(uint64_t address);
)";

/// The code as arrays, one for each architecture, and a list of them in which the first that fits is the best.
std::string cubins_text(const cache::GpuCode& code) {
  std::string text, list;
  for (const cache::Cubin& one : code.newest_first()) {
    const Result<cuda::Arch> arch = cuda::parse_arch(one.arch);
    if (!arch) continue;  // of a later compiler, perhaps
    text += fmt::format("/* For {0}. */\nstatic const unsigned char cubin_{0}[] = {{{1}\n}};\n\n", one.arch,
                        array_text(one.bytes));
    list += fmt::format("{}{{{}, {}, cubin_{}}}", list.empty() ? "" : ", ", arch->number, arch->variant == 'a' ? 0 : 1,
                        one.arch);
  }
  return text + fmt::format(R"(/* The newest architecture first. */
static const struct {{
  int capability; /* 10 * major + minor */
  int has_followers; /* runs on later ones of the same major number too */
  const unsigned char* code;
}} cubins[] = {{{}}};

)",
                            list);
}

constexpr char kLoad[] = R"(int @_load(@_kernels* kernels) {
  int status, device = 0, major = 0, minor = 0;
  size_t i;
  kernels->workspace = 0;
  status = cuCtxGetDevice(&device);
  if (status == 0) status = cuDeviceGetAttribute(&major, 75, device);
  if (status == 0) status = cuDeviceGetAttribute(&minor, 76, device);
  if (status != 0) return status;
  for (i = 0; i < sizeof cubins / sizeof *cubins; ++i) {
    int code = cubins[i].capability;
    if (code == 10 * major + minor) break;
    if (cubins[i].has_followers && code / 10 == major && code < 10 * major + minor) break;
  }
  if (i == sizeof cubins / sizeof *cubins) return 209; /* CUDA_ERROR_NO_BINARY_FOR_GPU */
  status = cuModuleLoadData(&kernels->module, cubins[i].code);
  if (status != 0) return status;
)";

std::string load_text(const std::string& name, const cuda::LaunchPlan& plan) {
  std::string text = replaced(kLoad, name);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const cuda::KernelLaunch& launch = plan.kernels[k];
    text += fmt::format(
        "  if (status == 0) status = cuModuleGetFunction(&kernels->functions[{}], kernels->module, \"{}\");\n", k,
        launch.symbol);
    if (launch.dynamic_shared_bytes > 0) {
      text += fmt::format("  if (status == 0) status = cuFuncSetAttribute(kernels->functions[{}], 8, {});\n", k,
                          launch.dynamic_shared_bytes);
    }
  }
  if (plan.workspace_bytes() > 0) {
    text +=
        fmt::format("  if (status == 0) status = cuMemAlloc_v2(&kernels->workspace, {});\n", plan.workspace_bytes());
  }
  return text + "  if (status != 0) cuModuleUnload(kernels->module);\n  return status;\n}\n\n";
}

ExportedC export_gpu(const std::string& name, const Parameters& parameters, const cache::Entry& entry) {
  const cuda::LaunchPlan& plan = entry.gpu.plan;
  ExportedC exported;
  std::string header = replaced(kGpuHeader, name);
  const auto set = [&](const std::string& word, const std::string& value) {
    header.replace(header.find(word), word.size(), value);
  };
  set("KERNELS", fmt::format("{}", std::max<size_t>(plan.kernels.size(), 1)));
  set("WORKSPACE", fmt::format("{}", plan.workspace_bytes()));
  set("LAUNCH", gpu_prototype(name, parameters));
  std::vector<std::string> architectures;
  for (const cache::Cubin& one : entry.gpu.newest_first()) architectures.push_back(one.arch);
  set("CODE", fmt::format("{}", fmt::join(architectures, ", ")));
  exported.header = std::move(header);
  std::string source =
      fmt::format("#include \"{}.h\"\n\n#include <stddef.h>\n\n{}{}\n", name, kDriver, extra_driver_text(plan));
  source += cubins_text(entry.gpu);
  source += load_text(name, plan);
  source += gpu_prototype(name, parameters) + " {\n";
  if (!plan.workspace.empty()) {
    std::vector<std::string> addresses;
    for (const cuda::WorkspaceBuffer& buffer : plan.workspace) {
      addresses.push_back(fmt::format("kernels->workspace + {}", buffer.byte_offset));
    }
    source += fmt::format("  uint64_t workspace[{}];\n", addresses.size());
    for (size_t i = 0; i < addresses.size(); ++i) source += fmt::format("  workspace[{}] = {};\n", i, addresses[i]);
  }
  for (const Parameter& parameter : parameters.list) source += fmt::format("  (void){};\n", parameter.name);
  source += alignment_text(entry, parameters);
  source += maps_text(entry, parameters);
  for (size_t k = 0; k < plan.kernels.size(); ++k) source += launch_text(k, entry, parameters);
  source += "  return 0;\n}\n\n";
  source += fmt::format(
      "int {0}_unload({0}_kernels* kernels) {{\n  if (kernels->workspace) cuMemFree_v2(kernels->workspace);\n"
      "  kernels->workspace = 0;\n  return cuModuleUnload(kernels->module);\n}}\n",
      name);
  exported.source = std::move(source);
  return exported;
}

}  // namespace

Result<ExportedC> export_c(const std::string& name, const api::Signature& signature, const api::Specs& specs,
                           const std::map<std::string, int64_t>& compiled_in, const cache::Key& key,
                           const cache::Entry& entry) {
  const Parameters parameters = parameters_of(name, signature, specs, compiled_in);
  ExportedC exported;
  if (key.problem.backend == cache::Backend::kCpu) {
    TC_TRY(cpu, export_cpu(name, parameters, entry));
    exported = std::move(cpu);
  } else {
    if (!entry.checks.empty()) {
      return fail(
          "a C function of a GPU's kernel does not wait for it, and so cannot check subscripts: leave out "
          "'--check_bounds'");
    }
    exported = export_gpu(name, parameters, entry);
  }
  exported.header = header_text(name, signature, key, parameters, exported.header);
  exported.source = "/* SPDX-License-Identifier: Apache-2.0 */\n" + exported.source;
  return exported;
}

}  // namespace tc::cli
