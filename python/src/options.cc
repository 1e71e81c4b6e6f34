#include "options.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <tc/options/mapping.h>
#include <tc/options/presets.h>

#include <functional>
#include <utility>

#include "errors.h"

namespace nb = nanobind;

namespace tc::python {
namespace {

using options::CpuOptions;
using options::Fusion;
using options::KernelOptions;
using options::MappingOptions;
using options::SchedulerOptions;

/// One field of an options struct.
template <typename Options>
struct Field {
  std::string name;
  std::string doc;
  std::function<nb::object(const Options&)> get;
  std::function<void(Options&, nb::handle)> set;
};

template <typename Options, typename Value>
Field<Options> field(const char* name, Value Options::*member, const char* doc) {
  const auto set = [member, text = std::string(name)](Options& options, nb::handle value) {
    options.*member = cast_argument<Value>(text, value);
  };
  return {name, doc, [member](const Options& options) { return nb::cast(options.*member); }, set};
}

const std::vector<Field<SchedulerOptions>>& fields_of(const SchedulerOptions*) {
  using O = SchedulerOptions;
  static const auto* const fields = new std::vector<Field<O>>{
      field("fusion", &O::fusion, "Which statements share loop nests; None: chosen."),
      field("allow_skewing", &O::allow_skewing,
            "Whether loops may run over sums of indices, so that a band becomes permutable."),
      field("positive_orthant", &O::positive_orthant,
            "Whether no loop runs against an index: the coefficients of schedules are not negative."),
  };
  return *fields;
}

const std::vector<Field<CpuOptions>>& fields_of(const CpuOptions*) {
  using O = CpuOptions;
  static const auto* const fields = new std::vector<Field<O>>{
      field("scheduler", &O::scheduler, "Options of the polyhedral scheduler."),
      field("tile", &O::tile,
            "Sizes of tiles of the outermost band, in iterations, outermost member first; []: chosen."),
      field("vector_width", &O::vector_width, "Elements of a vector, a power of two; None: chosen."),
      field("unroll", &O::unroll, "Iterations of the innermost loop laid out one after another; None: chosen."),
      field("parallel", &O::parallel, "Whether loops are spread over the cores; None: chosen."),
      field("promote", &O::promote, "Whether tiles of tensors are copied into buffers of their own; None: chosen."),
      field("strict", &O::strict,
            "Whether reductions keep the order of the text, without extra precision and without contraction to FMA."),
      field("check_bounds", &O::check_bounds,
            "Whether each run checks data-dependent subscripts. A subscript outside its tensor is an Error."),
  };
  return *fields;
}

const std::vector<Field<KernelOptions>>& fields_of(const KernelOptions*) {
  using O = KernelOptions;
  static const auto* const fields = new std::vector<Field<O>>{
      field("writes", &O::writes, "A tensor that the kernel's product, or else first reduction or statement, writes."),
      field("occurrence", &O::occurrence,
            "Which statement of those that write it, from 1 on; None: there is one kernel that does."),
      field("tile", &O::tile, "As MappingOptions.tile."),
      field("register_tile", &O::register_tile, "As MappingOptions.register_tile."),
      field("map_to_threads", &O::map_to_threads, "As MappingOptions.map_to_threads."),
      field("map_to_blocks", &O::map_to_blocks, "As MappingOptions.map_to_blocks."),
      field("copy_stages", &O::copy_stages, "As MappingOptions.copy_stages."),
      field("cluster", &O::cluster, "As MappingOptions.cluster."),
      field("store_boxes", &O::store_boxes, "As MappingOptions.store_boxes."),
      field("persistent", &O::persistent, "As MappingOptions.persistent."),
      field("ping_pong", &O::ping_pong, "As MappingOptions.ping_pong."),
      field("tensor_cores", &O::tensor_cores, "As MappingOptions.tensor_cores."),
      field("chain", &O::chain, "As MappingOptions.chain."),
      field("split_reduction", &O::split_reduction, "As MappingOptions.split_reduction."),
      field("split_results", &O::split_results, "As MappingOptions.split_results."),
      field("unroll", &O::unroll, "As MappingOptions.unroll."),
      field("unroll_copy_shared", &O::unroll_copy_shared, "As MappingOptions.unroll_copy_shared."),
      field("use_shared_memory", &O::use_shared_memory, "As MappingOptions.use_shared_memory."),
      field("use_private_memory", &O::use_private_memory, "As MappingOptions.use_private_memory."),
      field("max_shared_memory", &O::max_shared_memory, "As MappingOptions.max_shared_memory."),
      field("shared_depth", &O::shared_depth, "As MappingOptions.shared_depth."),
      field("private_depth", &O::private_depth, "As MappingOptions.private_depth."),
      field("match_library_calls", &O::match_library_calls, "As MappingOptions.match_library_calls."),
  };
  return *fields;
}

const std::vector<Field<MappingOptions>>& fields_of(const MappingOptions*) {
  using O = MappingOptions;
  static const auto* const fields = new std::vector<Field<O>>{
      field("outer_schedule_options", &O::outer_schedule_options, "Options of the scheduler for tiles."),
      field("intra_tile_schedule_options", &O::intra_tile_schedule_options,
            "Options of the scheduler for the points within a tile."),
      field("fix_parameters_before_scheduling", &O::fix_parameters_before_scheduling,
            "Whether the schedule is for the sizes at hand, not for all sizes; None: chosen."),
      field("tile", &O::tile,
            "Sizes of tiles of each kernel's outermost band, in iterations, outermost member first; []: chosen."),
      field("unroll", &O::unroll, "The most instances of statements that unrolling a loop may lay out; None: chosen."),
      field("match_library_calls", &O::match_library_calls,
            "Whether a recipe is used where one fits; None: where it is faster."),
      field("map_to_threads", &O::map_to_threads,
            "Threads of a block in x, y and z; x runs over the innermost loop; []: chosen."),
      field("map_to_blocks", &O::map_to_blocks,
            "Blocks of the grid in x, y and z; x runs over the outermost loop; []: chosen."),
      field("use_shared_memory", &O::use_shared_memory,
            "Whether elements that a block reuses are kept in shared memory; None: chosen."),
      field("use_private_memory", &O::use_private_memory,
            "Whether elements that only one thread uses are kept in registers; None: chosen."),
      field("unroll_copy_shared", &O::unroll_copy_shared,
            "Whether copies to and from shared memory are unrolled too; None: chosen."),
      field("max_shared_memory", &O::max_shared_memory,
            "Bytes of shared memory that a block may use; None: the device's limit."),
      field("use_readonly_cache", &O::use_readonly_cache,
            "Whether tensors that no kernel of the def writes are loaded through the read-only cache; None: chosen."),
      field("shared_depth", &O::shared_depth, "Band members outside the copies to shared memory; None: chosen."),
      field("private_depth", &O::private_depth, "Band members outside the copies to registers; None: chosen."),
      field("register_tile", &O::register_tile, "Results of each thread, by member of the outermost band; []: chosen."),
      field("copy_stages", &O::copy_stages, "Buffers that asynchronous copies rotate through; None: chosen."),
      field("cluster", &O::cluster,
            "Blocks of a cluster, which share copies, by member of the outermost band, then a tile; []: chosen."),
      field("store_boxes", &O::store_boxes,
            "Whether results of products are stored by boxes, from shared memory; None: they are not."),
      field("persistent", &O::persistent,
            "Whether as many blocks as run at once go through all tiles of a product; None: they do not."),
      field("ping_pong", &O::ping_pong,
            "Whether two warpgroups of such a block have its tiles by turns; None: they do not."),
      field("split_reduction", &O::split_reduction,
            "Parts of a reduction that blocks of their own work on; None: chosen."),
      field("split_results", &O::split_results,
            "Results of a product's first launch, by member of the outermost band; a second has the rest; []: chosen."),
      field("max_gathered_memory", &O::max_gathered_memory,
            "Bytes of workspace that rows chosen by data may be copied to; None: 0."),
      field("atomic_reduction", &O::atomic_reduction,
            "Whether blocks combine their partial results by atomic updates; None: chosen."),
      field("tensor_cores", &O::tensor_cores,
            "Whether tensor cores compute products of 16-bit floats; None: where it is faster."),
      field("copy_operands", &O::copy_operands,
            "Whether operands are copied to an order that products by tensor cores take; None: where it is faster."),
      field("chain", &O::chain,
            "Whether products that follow each other share a kernel, their results in shared memory; None: chosen."),
      field("strict", &O::strict, "Whether reductions keep the order of the text."),
      field("check_bounds", &O::check_bounds,
            "Whether each run checks data-dependent subscripts. Such a run waits for its kernels."),
      field("fast_accumulation", &O::fast_accumulation,
            "Whether sums of products of 8-bit floats keep few bits, as tensor cores do."),
      field("tf32", &O::tf32, "Whether products of float32 may take operands with 11 significant bits, as TF32."),
      field("kernel", &O::kernel, "Options of single kernels, which come before those of the def."),
  };
  return *fields;
}

void check_bounds_of(const SchedulerOptions&) {}
void check_bounds_of(const CpuOptions& options) { value_of(options::validate(options)); }
void check_bounds_of(const KernelOptions& options) { value_of(options::validate(MappingOptions{.kernel = {options}})); }
void check_bounds_of(const MappingOptions& options) { value_of(options::validate(options)); }

/// Sets fields by name. Throws TypeError for a name that does not exist, Error for values out of their bounds.
template <typename Options>
void assign(Options& options, nb::kwargs values, const char* type) {
  for (const auto& [key, value] : values) {
    const auto name = nb::cast<std::string>(key);
    bool found = false;
    for (const Field<Options>& candidate : fields_of(&options)) {
      if (candidate.name != name) continue;
      candidate.set(options, value);
      found = true;
    }
    if (!found) raise_type_error(std::string(type) + " has no option '" + name + "'");
  }
  check_bounds_of(options);
}

/// Whether an object says what check_bounds is, by an attribute of its own: a default of the package gives way to
/// False.
constexpr const char* kSaysChecks = "_says_check_bounds";

bool says_checks(nb::handle options) { return nb::hasattr(options, kSaysChecks); }

void note_checks(nb::handle options, bool says) {
  if (says) nb::setattr(options, kSaysChecks, nb::bool_(true));
}

/// "CpuOptions(tile=[8, 8], strict=True)": what differs from the defaults.
template <typename Options>
std::string repr_of(const Options& options, const char* type) {
  std::string text = type;
  text += "(";
  const Options defaults;
  bool first = true;
  for (const Field<Options>& one : fields_of(&options)) {
    const nb::object value = one.get(options);
    if (value.equal(one.get(defaults))) continue;
    if (!first) text += ", ";
    first = false;
    text += one.name;
    text += "=";
    text += nb::cast<std::string>(nb::repr(value));
  }
  text += ")";
  return text;
}

template <typename Options>
nb::class_<Options> bind(nb::module_& module, const char* type, const char* doc) {
  nb::class_<Options> bound(module, type, doc, nb::dynamic_attr());
  bound.def("__init__", [type](nb::pointer_and_handle<Options> self, nb::kwargs values) {
    Options options;
    assign(options, values, type);
    new (self.p) Options(std::move(options));
    note_checks(self.h, values.contains("check_bounds"));
  });
  for (const Field<Options>& one : fields_of(static_cast<const Options*>(nullptr))) {
    bound.def_prop_ro(
        one.name.c_str(), [get = &one.get](const Options& self) { return (*get)(self); }, one.doc.c_str());
  }
  bound.def(
      "replace",
      [type](nb::handle self, nb::kwargs values) {
        Options options = nb::cast<const Options&>(self);
        assign(options, values, type);
        nb::object changed = nb::cast(std::move(options));
        note_checks(changed, says_checks(self) || values.contains("check_bounds"));
        return changed;
      },
      "A copy in which some options differ. Raises TypeError and Error as the constructor.");
  bound.def("__repr__", [type](nb::handle self) {
    const std::string text = repr_of(nb::cast<const Options&>(self), type);
    if (!says_checks(self) || text.find("check_bounds=") != std::string::npos) return text;
    return text.substr(0, text.size() - 1) + (text.ends_with("()") ? "" : ", ") + "check_bounds=False)";
  });
  bound.def("__eq__", [](const Options& self, nb::handle other) {
    return nb::isinstance<Options>(other) && self == nb::cast<const Options&>(other);
  });
  // What is pickled are the fields that differ from the defaults, and a check_bounds that was said.
  bound.def("__getstate__", [](nb::handle object) {
    const auto& self = nb::cast<const Options&>(object);
    const Options defaults;
    nb::dict values;
    for (const Field<Options>& one : fields_of(&self)) {
      const nb::object value = one.get(self);
      const bool is_said = one.name == "check_bounds" && says_checks(object);
      if (is_said || !value.equal(one.get(defaults))) values[one.name.c_str()] = value;
    }
    return values;
  });
  bound.def("__setstate__", [type](nb::pointer_and_handle<Options> self, nb::dict values) {
    Options options;
    assign(options, nb::borrow<nb::kwargs>(values), type);
    new (self.p) Options(std::move(options));
    note_checks(self.h, values.contains("check_bounds"));
  });
  bound.def("__hash__", [type](const Options& self) { return nb::hash(nb::str(repr_of(self, type).c_str())); });
  return bound;
}

template <typename Options>
void bind_text(nb::class_<Options>& bound, Result<Options> (*read)(const std::string&, const std::string&)) {
  bound.def("__str__", [](const Options& self) { return options::to_text(self); });
  bound.def_static(
      "from_text",
      [read](const std::string& text) {
        nb::object options = nb::cast(value_of(read(text, "options")));
        note_checks(options, text.find("check_bounds") != std::string::npos);
        return options;
      },
      "Parses the text form, which str() gives. Raises Error with the place in the text.");
}

MappingOptions preset(const std::string& name) {
  if (const std::optional<MappingOptions> found = options::find_preset(name)) return *found;
  std::string names;
  for (const auto& [known, value] : options::presets()) names += (names.empty() ? "" : ", ") + known;
  raise_value_error("there is no preset '" + name + "'; there are " + names);
}

}  // namespace

void bind_options(nb::module_& module) {
  nb::enum_<Fusion>(module, "Fusion", "Which statements share loop nests.")
      .value("MAX", Fusion::kMax)
      .value("PRESERVE_3_COINCIDENT", Fusion::kPreserve3Coincident)
      .value("MIN", Fusion::kMin);
  bind<SchedulerOptions>(module, "SchedulerOptions", "Options of the polyhedral scheduler. Immutable.");
  auto cpu =
      bind<CpuOptions>(module, "CpuOptions",
                       "How a def is compiled for the CPU. The compiler chooses absent options. Immutable. Raises "
                       "TypeError for a name or type that no option has, Error for values out of their bounds.");
  bind_text<CpuOptions>(cpu, options::cpu_options_from_text);
  bind<KernelOptions>(
      module, "KernelOptions",
      "Options of one kernel of a def. Immutable. Raises TypeError for a name or type that no option has, "
      "Error for values out of their bounds or if 'writes' is missing.");
  auto mapping = bind<MappingOptions>(
      module, "MappingOptions",
      "How a def is mapped to a GPU. The compiler chooses absent options. An option that it cannot honour is an error. "
      "Immutable. Raises TypeError for a name or type that no option has, Error for values out of their bounds.");
  bind_text<MappingOptions>(mapping, options::mapping_options_from_text);
  mapping.def_static("preset", &preset,
                     "A starting point by kind of program: naive, single_thread, pointwise, mlp, conv or group_conv. "
                     "Raises ValueError.");
}

}  // namespace tc::python
