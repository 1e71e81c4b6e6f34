#include "tc/cli/job.h"

#include <charconv>
#include <cstdio>

#include "tc/api/request.h"
#include "tc/cli/backend.h"
#include "tc/cli/command_line.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/cli/npy.h"
#include "tc/lang/advice.h"
#include "tc/support/nearest.h"
#include "tc/support/result.h"
#include "tc/support/scalar_type_names.h"

namespace tc::cli {
namespace {

/// The --entry, checked against the file's defs.
Result<std::string> choose_entry(const lang::File& file) {
  std::vector<std::string> names;
  for (const lang::Definition& definition : file.definitions) names.push_back(definition.name.text);
  if (FLAGS_entry.empty()) {
    if (names.size() == 1) return names[0];
    return fail("'{}' has {} defs; choose one by --entry: {}", file.source->name(), names.size(),
                fmt::join(names, ", "));
  }
  if (std::ranges::find(names, FLAGS_entry) != names.end() || lang::file_of_instance(file, FLAGS_entry)) {
    return FLAGS_entry;
  }
  const std::string meant = nearest(FLAGS_entry, names);
  if (!meant.empty()) return fail("there is no def '{}'; did you mean '{}'?", FLAGS_entry, meant);
  return fail("there is no def '{}'; there are {}", FLAGS_entry, fmt::join(names, ", "));
}

/// The name of the instance that --types and the files of --inputs decide (T7).
Result<std::string> choose_instance(const lang::File& file, const lang::Definition& generic) {
  std::map<std::string, ScalarType> tensors;
  TC_TRY(files, parse_assignments("inputs", FLAGS_inputs));
  for (const auto& [name, path] : files) {
    TC_TRY(spec, read_npy_spec(path));
    TC_TRY(other, read_npy_spec(path, ScalarType::kFloat8E5M2));
    if (spec.type == other.type) tensors[name] = spec.type;  // else the file does not say which 8-bit float it holds
  }
  TC_TRY(all, types_of_flags());
  TC_TRY(given, lang::types_given_for(file, generic, all));
  auto types = lang::decide_types(generic, tensors, given);
  if (types) return lang::instance_name(generic, *types);
  const bool complete = given.size() == generic.type_variables.size();
  if (complete || !tensors.empty()) return tl::unexpected(types.error());
  return fail("{}; give the type by --types={}=float32", types.error().diagnostics().at(0).message,
              generic.type_variables[0].name.text);
}

Result<options::CpuOptions> cpu_options_of_flags() {
  options::CpuOptions options;
  if (!FLAGS_preset.empty()) return fail("'--preset' is for the backends cuda and sim");
  if (!FLAGS_options.empty()) {
    TC_TRY(text, read_file(FLAGS_options, kMaxOptionsBytes));
    TC_TRY(read, options::cpu_options_from_text(text, FLAGS_options));
    options = std::move(read);
  }
  options.check_bounds = options.check_bounds || FLAGS_check_bounds;
  options.strict = options.strict || FLAGS_strict;
  return options;
}

/// What to write instead of a type that there is not.
std::string type_meant(const std::string& text) {
  if (const auto advice = lang::advice_for_word(text); !advice.empty()) return std::string(advice);
  std::vector<std::string> names;
  for (const ScalarTypeName& type : all_scalar_type_names()) names.emplace_back(type.name);
  const std::string near = nearest(text, names);
  return near.empty() ? "float32, float16 and int64 are types" : fmt::format("did you mean '{}'?", near);
}

Result<void> check_size_name(const std::string& name, const std::string& entry, const std::vector<std::string>& sizes) {
  if (std::ranges::find(sizes, name) != sizes.end()) return {};
  const std::string meant = nearest(name, sizes);
  if (!meant.empty()) return fail("'{}' has no size '{}'; did you mean '{}'?", entry, name, meant);
  if (sizes.empty()) return fail("'{}' has no sizes", entry);
  return fail("'{}' has no size '{}'; its sizes are {}", entry, name, fmt::join(sizes, ", "));
}

/// Prints how long each pass took, if --time_passes, also where one of them fails.
struct PassTimes {
  const compile::Compilation& compilation;
  ~PassTimes() {
    if (!FLAGS_time_passes) return;
    double total = 0;
    for (const compile::PassTime& time : compilation.times) {
      std::fprintf(stderr, "%-12s %9.3f ms\n", time.pass.c_str(), time.ms);
      total += time.ms;
    }
    std::fprintf(stderr, "%-12s %9.3f ms\n", "total", total);
  }
};

}  // namespace

Result<api::Scalar> parse_scalar(const std::string& name, const std::string& text) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  int64_t integer = 0;
  if (const auto [at, error] = std::from_chars(begin, end, integer); error == std::errc() && at == end) {
    return api::Scalar(integer);
  }
  uint64_t large = 0;
  if (const auto [at, error] = std::from_chars(begin, end, large); error == std::errc() && at == end) {
    return api::Scalar(large);
  }
  double number = 0;
  if (const auto [at, error] = std::from_chars(begin, end, number); error == std::errc() && at == end) {
    return api::Scalar(number);
  } else if (error == std::errc::result_out_of_range && at == end) {
    return fail("scalar '{}' is {}, which is outside the range of float64", name, text);
  }
  if (text == "true" || text == "false") return api::Scalar(text == "true");
  return fail("scalar '{}' must be a number, not '{}'", name, text);
}

Error no_sizes(const std::string& entry, const std::vector<std::string>& sizes) {
  const bool one = sizes.size() == 1;
  return Error(fmt::format("{} '{}' of '{}' {} no value; give {} by --sizes={}=...", one ? "size" : "sizes",
                           fmt::join(sizes, "', '"), entry, one ? "has" : "have", one ? "it" : "them",
                           fmt::join(sizes, "=...,")));
}

Result<void> check_sizes(const compile::Settings& settings, const ir::Program& program) {
  const std::vector<std::string> open = api::open_sizes(settings, program);
  if (open.empty()) return {};
  return tl::unexpected(no_sizes(program.name, open));
}

Result<lang::TypeArguments> types_of_flags() {
  TC_TRY(assignments, parse_assignments("types", FLAGS_types));
  lang::TypeArguments types;
  for (const auto& [name, text] : assignments) {
    const std::optional<ScalarType> type = scalar_type_from_name(text);
    if (!type) return fail("the type of '{}' is '{}', which is none; {}", name, text, type_meant(text));
    types[name] = *type;
  }
  return types;
}

Result<compile::Compilation> open_def(const std::string& path) {
  compile::Compilation compilation;
  TC_TRY(source, read_source(path));
  compilation.source = source;
  compile::Settings settings;
  // A limit out of bounds is an error of the request.
  if (FLAGS_time_limit_ms > 0) settings.budget.wall_clock_ms = FLAGS_time_limit_ms;
  TC_TRY_VOID(compile::run_passes(settings, compilation, "analyse"));
  TC_TRY(entry, choose_entry(*compilation.file));
  settings.entry = entry;
  const lang::Definition* generic = nullptr;
  for (const lang::Definition& definition : compilation.file->definitions) {
    if (lang::types_of_instance(definition, entry)) {
      TC_TRY(all, types_of_flags());
      TC_TRY(given, lang::types_given_for(*compilation.file, definition, all));
      TC_TRY_VOID(lang::with_types_of_name(definition, entry, given));
    }
    if (definition.name.text == entry && lang::is_generic(definition)) generic = &definition;
  }
  if (generic) {
    TC_TRY(instance, choose_instance(*compilation.file, *generic));
    settings.entry = instance;
  } else if (!FLAGS_types.empty() && entry.find('<') == std::string::npos) {
    return fail("'{}' is not generic; '--types' is for generic defs", entry);
  }
  if (settings.entry.find('<') != std::string::npos) {
    compilation = {};
    compilation.source = source;
  }
  TC_TRY_VOID(compile::run_passes(settings, compilation, "program"));
  return compilation;
}

Result<api::Request> request_of_flags(const ir::Program& program, api::Backend backend) {
  return request_of_flags(program.name, program.sizes, backend);
}

Result<api::Request> request_of_flags(const std::string& entry, const std::vector<std::string>& size_names,
                                      api::Backend backend) {
  api::Request request;
  request.entry = entry;
  request.backend = backend;
  if (backend == api::Backend::kCuda) {
    request.device = FLAGS_device;
  } else if (FLAGS_device != 0 && FLAGS_backend != "auto") {
    return fail("'--device' is for the backend cuda");
  }
  TC_TRY(sizes, parse_assignments("sizes", FLAGS_sizes));
  for (const auto& [name, text] : sizes) {
    TC_TRY_VOID(check_size_name(name, entry, size_names));
    TC_TRY(value, parse_integer(fmt::format("size '{}'", name), text));
    request.sizes[name] = value;
  }
  // --types have decided the name of the instance, if it is one.
  TC_TRY(scalars, parse_assignments("scalars", FLAGS_scalars));
  for (const auto& [name, text] : scalars) {
    TC_TRY(value, parse_scalar(name, text));
    request.scalars.emplace(name, value);
  }
  if (backend == api::Backend::kCpu) {
    TC_TRY(options, cpu_options_of_flags());
    request.options = options;
    if (FLAGS_element_aligned) return fail("'--element_aligned' is for the backends cuda and sim");
  } else {
    TC_TRY(mapping, mapping_of_flags());
    request.mapping = mapping;
    request.element_aligned = FLAGS_element_aligned;
  }
  request.budget = {.isl_operations = FLAGS_isl_operations, .wall_clock_ms = FLAGS_time_limit_ms};
  request.verify = FLAGS_verify;
  return request;
}

Result<void> run_to(const compile::Settings& settings, compile::Compilation& compilation, const std::string& last) {
  const PassTimes print_at_end{compilation};
  const std::string& wanted = FLAGS_stop_after.empty() ? last : FLAGS_stop_after;
  const api::Backend backend = settings.backend;
  TC_TRY(specialise, compile::find_pass("specialise", backend));
  TC_TRY(end, wanted.empty() ? Result<size_t>(compile::passes(backend).size()) : compile::find_pass(wanted, backend));
  if (end >= specialise) TC_TRY_VOID(check_sizes(settings, *compilation.program));
  return compile::run_passes(settings, compilation, wanted);
}

}  // namespace tc::cli
