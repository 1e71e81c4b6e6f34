#include "schedule.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <tc/api/schedule.h>

#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "errors.h"
#include "function.h"
#include "gil.h"
#include "interrupt.h"
#include "request.h"

namespace nb = nanobind;

namespace tc::python {
namespace {

/// The value of a name among those of an enumeration.
template <typename T, size_t n>
T value_of_name(const char* what, const std::array<std::pair<const char*, T>, n>& values, const std::string& name) {
  std::string names;
  for (const auto& [known, value] : values) {
    if (name == known) return value;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  raise_value_error("there is no " + std::string(what) + " '" + name + "'; there are " + names);
}

api::Axis axis_of(const std::string& name) {
  static const std::array<std::pair<const char*, api::Axis>, 11> kAxes = {{{"block.x", api::Axis::kBlockX},
                                                                           {"block.y", api::Axis::kBlockY},
                                                                           {"block.z", api::Axis::kBlockZ},
                                                                           {"thread.x", api::Axis::kThreadX},
                                                                           {"thread.y", api::Axis::kThreadY},
                                                                           {"thread.z", api::Axis::kThreadZ},
                                                                           {"warp.x", api::Axis::kWarpX},
                                                                           {"warp.y", api::Axis::kWarpY},
                                                                           {"warp.z", api::Axis::kWarpZ},
                                                                           {"warpgroup", api::Axis::kWarpgroup},
                                                                           {"cluster", api::Axis::kCluster}}};
  return value_of_name("axis", kAxes, name);
}

api::Memory memory_of(const std::string& name) {
  static const std::array<std::pair<const char*, api::Memory>, 3> kMemories = {
      {{"shared", api::Memory::kShared}, {"registers", api::Memory::kRegisters}, {"cache", api::Memory::kCache}}};
  return value_of_name("memory", kMemories, name);
}

api::Fetch fetch_of(const std::string& name) {
  static const std::array<std::pair<const char*, api::Fetch>, 4> kFetches = {{{"vectorized", api::Fetch::kVectorized},
                                                                              {"cooperative", api::Fetch::kCooperative},
                                                                              {"one thread", api::Fetch::kOneThread},
                                                                              {"boxes", api::Fetch::kBoxes}}};
  return value_of_name("fetch", kFetches, name);
}

api::TileOperation operation_of(const std::string& name) {
  static const std::array<std::pair<const char*, api::TileOperation>, 5> kOperations = {
      {{"fma", api::TileOperation::kFma},
       {"mma.sync", api::TileOperation::kMma},
       {"wgmma", api::TileOperation::kWgmma},
       {"pointwise", api::TileOperation::kPointwise},
       {"reduce", api::TileOperation::kReduce}}};
  return value_of_name("tile operation", kOperations, name);
}

/// Copies of a schedule share what they are proved in, which serves one thread at a time.
class Schedule {
 public:
  Schedule(api::Schedule schedule, std::shared_ptr<std::mutex> mutex)
      : schedule_(std::move(schedule)), mutex_(std::move(mutex)) {}
  Schedule(Schedule&&) = default;
  Schedule& operator=(Schedule&&) = delete;
  /// It waits for the steps of copies: isl counts references without atomics.
  ~Schedule() {
    if (!mutex_) return;
    const GilReleased released;
    const std::lock_guard lock(*mutex_);
    schedule_.reset();
  }

  static Schedule create(const std::string& text, nb::dict fields) {
    std::stop_source stop;
    api::Request request = request_of(fields);
    request.cancel = stop.get_token();
    std::optional<Result<api::Schedule>> made;
    run_interruptibly(stop, [&] { made.emplace(api::Schedule::create(text, request)); });
    return {value_of(*std::move(made)), std::make_shared<std::mutex>()};
  }

  /// What `work` makes of the schedule, without the GIL.
  template <typename Work>
  auto with(Work work) {
    const std::stop_source stop;
    std::optional<std::invoke_result_t<Work, api::Schedule&, std::stop_token>> made;
    run_interruptibly(stop, [&] {
      const std::lock_guard lock(*mutex_);
      made.emplace(work(*schedule_, stop.get_token()));
    });
    return *std::move(made);
  }
  /// The same for what may be refused.
  template <typename Work>
  auto tried(Work work) {
    return value_of(with(std::move(work)));
  }

  Schedule copy() {
    return {with([](api::Schedule& schedule, const std::stop_token&) { return schedule; }), mutex_};
  }

  Kernel compile() {
    auto compiled = std::make_shared<Compiled>();
    const api::GpuContext context = api::GpuContext::current();
    compiled->kernel = tried([&](api::Schedule& schedule, const std::stop_token& stop) {
      std::optional<Result<api::CompiledKernel>> made;
      context.enter([&] { made.emplace(schedule.compile(stop)); });
      return *std::move(made);
    });
    return Kernel(std::move(compiled));
  }

 private:
  std::optional<api::Schedule> schedule_;
  std::shared_ptr<std::mutex> mutex_;
};

using Stop = const std::stop_token&;
using Names = std::vector<std::string>;

nb::dict dict_of(const api::Counters& counters) {
  nb::dict counts;
  counts["global_bytes_read"] = counters.global_bytes_read;
  counts["global_bytes_written"] = counters.global_bytes_written;
  counts["global_requests"] = counters.global_requests;
  counts["global_sectors"] = counters.global_sectors;
  counts["shared_requests"] = counters.shared_requests;
  counts["shared_wavefronts"] = counters.shared_wavefronts;
  counts["barriers"] = counters.barriers;
  return counts;
}

void bind_verbs(nb::class_<Schedule>& bound) {
  bound
      .def("split",
           [](Schedule& self, const std::string& loop, int64_t size) {
             const auto made = self.tried([&](api::Schedule& s, Stop) { return s.split(loop, size); });
             return nb::make_tuple(made.first, made.second);
           })
      .def("tile",
           [](Schedule& self, const Names& loops, const std::vector<int64_t>& sizes) {
             return self.tried([&](api::Schedule& s, Stop) { return s.tile(loops, sizes); });
           })
      .def("fuse",
           [](Schedule& self, const std::string& outer, const std::string& inner) {
             return self.tried([&](api::Schedule& s, Stop) { return s.fuse(outer, inner); });
           })
      .def("reorder", [](Schedule& self,
                         const Names& loops) { self.tried([&](api::Schedule& s, Stop) { return s.reorder(loops); }); })
      .def("distribute",
           [](Schedule& self, const std::string& loop) {
             self.tried([&](api::Schedule& s, Stop) { return s.distribute(loop); });
           })
      .def("partition",
           [](Schedule& self, const std::string& loop, int64_t at) {
             const auto made = self.tried([&](api::Schedule& s, Stop) { return s.partition(loop, at); });
             return nb::make_tuple(made.first, made.second);
           })
      .def("merge",
           [](Schedule& self, const std::string& first, const std::string& second) {
             self.tried([&](api::Schedule& s, Stop) { return s.merge(first, second); });
           })
      .def("sink",
           [](Schedule& self, const std::string& name, const std::string& loop) {
             self.tried([&](api::Schedule& s, Stop) { return s.sink(name, loop); });
           })
      .def("split_reduction",
           [](Schedule& self, const std::string& loop, int64_t parts, bool cyclic) {
             const api::ReductionLoops made = self.tried([&](api::Schedule& s, Stop) {
               return s.split_reduction(loop, parts, cyclic ? api::Part::kCyclic : api::Part::kChunk);
             });
             return nb::make_tuple(made.part, made.rest, made.together, made.partial, made.parts);
           })
      .def("launch", [](Schedule& self,
                        const std::string& at) { self.tried([&](api::Schedule& s, Stop) { return s.launch(at); }); })
      .def("parallelize",
           [](Schedule& self, const std::string& loop) {
             self.tried([&](api::Schedule& s, Stop) { return s.parallelize(loop); });
           })
      .def("bind",
           [](Schedule& self, const std::string& loop, const std::string& axis) {
             const api::Axis to = axis_of(axis);
             self.tried([&](api::Schedule& s, Stop) { return s.bind(loop, to); });
           })
      .def("tensorize",
           [](Schedule& self, const std::string& loop, const std::string& operation) {
             const api::TileOperation by = operation_of(operation);
             self.tried([&](api::Schedule& s, Stop) { return s.tensorize(loop, by); });
           })
      .def("persist", [](Schedule& self, const std::string& loop,
                         int64_t teams) { self.tried([&](api::Schedule& s, Stop) { return s.persist(loop, teams); }); })
      .def("reduce_by_warp",
           [](Schedule& self, const std::string& loop) {
             self.tried([&](api::Schedule& s, Stop) { return s.reduce_by_warp(loop); });
           })
      .def("unroll",
           [](Schedule& self, const std::string& loop) {
             self.tried([&](api::Schedule& s, Stop) { return s.unroll(loop); });
           })
      .def("vectorize",
           [](Schedule& self, const std::string& loop) {
             self.tried([&](api::Schedule& s, Stop) { return s.vectorize(loop); });
           })
      .def("promote",
           [](Schedule& self, const std::string& tensor, const std::string& loop, const std::string& memory,
              const std::string& fetch) {
             const api::Memory to = memory_of(memory);
             const api::Fetch by = fetch_of(fetch);
             self.tried([&](api::Schedule& s, Stop) { return s.promote(tensor, loop, to, by); });
           })
      .def("stage", [](Schedule& self, const std::string& tensor, const std::string& loop, int64_t stages) {
        self.tried([&](api::Schedule& s, Stop) { return s.stage(tensor, loop, stages); });
      });
}

}  // namespace

void bind_schedule(nb::module_& module) {
  nb::class_<Schedule> bound(module, "Schedule", "The loops of a def; tensorc.Schedule has the verbs' words.");
  bound.def_static("create", &Schedule::create)
      .def("copy", &Schedule::copy)
      .def("loops", [](Schedule& self) { return self.with([](api::Schedule& s, Stop) { return s.loops(); }); })
      .def("text", [](Schedule& self) { return self.tried([](api::Schedule& s, Stop) { return s.to_text(); }); })
      .def("emit",
           [](Schedule& self, const std::string& stage) {
             return self.tried([&](api::Schedule& s, Stop) { return s.emit(stage); });
           })
      .def("compile", &Schedule::compile)
      .def("check", [](Schedule& self,
                       uint64_t seed) { self.tried([&](api::Schedule& s, Stop stop) { return s.check(seed, stop); }); })
      .def("save",
           [](Schedule& self, const std::string& cache) {
             const api::Saved saved = self.tried([&](api::Schedule& s, Stop stop) { return s.save(cache, stop); });
             return nb::make_tuple(saved.options, saved.time_us, saved.spread_us);
           })
      .def("count", [](Schedule& self, uint64_t seed) {
        return dict_of(self.tried([&](api::Schedule& s, Stop) { return s.count(seed); }));
      });
  bind_verbs(bound);
}

}  // namespace tc::python
