#include "tune.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <tc/api/tune.h>

#include <mutex>
#include <utility>

#include "errors.h"
#include "frameworks.h"
#include "gil.h"
#include "interrupt.h"
#include "request.h"

namespace nb = nanobind;

namespace tc::python {
namespace {

/// Jobs by way of an object of Python's with submit(id, device, bytes, limit_s) and wait(timeout_s), which returns
/// a list of (id, loss, reply).
class PythonExecutor : public tune::Executor {
 public:
  explicit PythonExecutor(nb::object object) : object_(std::move(object)) {}
  ~PythonExecutor() override {
    const GilHeld held;
    object_.reset();
  }

  Result<void> submit(Job job) override {
    return guarded([&]() -> Result<void> {
      object_.attr("submit")(job.id, job.device, nb::bytes(job.bytes.data(), job.bytes.size()), seconds(job.limit));
      return {};
    });
  }

  Result<std::vector<Done>> wait(std::chrono::milliseconds timeout) override {
    return guarded([&]() -> Result<std::vector<Done>> {
      std::vector<Done> done;
      for (nb::handle one : object_.attr("wait")(seconds(timeout))) {
        const nb::bytes reply = nb::cast<nb::bytes>(one[2]);
        done.push_back({.id = nb::cast<uint64_t>(one[0]),
                        .loss = static_cast<tune::Loss>(nb::cast<int>(one[1])),
                        .text = std::string(reply.c_str(), reply.size())});
      }
      return done;
    });
  }

 private:
  static double seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1000; }

  template <typename Work>
  static auto guarded(Work work) -> decltype(work()) {
    const GilHeld held;
    try {
      return work();
    } catch (nb::python_error& error) {
      std::string sentence = "the executor fails: ";
      sentence += nb::cast<std::string>(error.type().attr("__name__")) + ": ";
      sentence += nb::cast<std::string>(nb::str(nb::object(nb::borrow(error.value()))));
      return tl::unexpected(Error(std::move(sentence)));
    }
  }

  nb::object object_;
};

/// Host arrays as the tensors that candidates are measured on; none unless all inputs are such.
std::vector<api::Tensor> data_of(nb::handle inputs, std::vector<View>& views) {
  std::vector<api::Tensor> tensors;
  size_t next = 0;
  for (nb::handle input : inputs) {
    if (input.is_none() || nb::isinstance<api::TensorSpec>(input)) return {};
    View& view = views[next++];
    view.read("inputs", input, framework_of(input), nullptr);
    if (view.tensor.device.device_type != kDLCPU) return {};
    tensors.push_back(api::Tensor::borrow(view.tensor, /*read_only=*/true));
  }
  return tensors;
}

api::TuneConfig config_of(nb::dict fields) {
  api::TuneConfig config;
  const auto take = [&](const char* name, auto& member) {
    if (fields.contains(name)) member = cast_argument<std::decay_t<decltype(member)>>(name, fields[name]);
  };
  const auto search = cast_argument<std::string>("search", fields["search"]);
  if (search != "genetic" && search != "random")
    raise_value_error("there is no search '" + search + "'; there are genetic and random");
  config.search = search == "random" ? tune::SearchKind::kRandom : tune::SearchKind::kGenetic;
  take("generations", config.generations);
  take("population", config.population);
  take("seed", config.seed);
  take("threads", config.threads);
  take("devices", config.devices);
  take("time_limit", config.time_limit_s);
  take("cache", config.cache);
  take("worker", config.worker);
  take("folder", config.folder);
  if (fields.contains("executor")) config.executor = std::make_shared<PythonExecutor>(nb::object(fields["executor"]));
  return config;
}

/// What the search's thread has to say, until the caller's thread passes it on.
class Mailbox {
 public:
  void put(const tune::Progress& progress) {
    const std::lock_guard lock(mutex_);
    known_.push_back(progress);
    known_.back().last = nullptr;  // the record lives as long as the call
  }
  std::vector<tune::Progress> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(known_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<tune::Progress> known_;
};

/// Searches in a thread of its own; `progress` is called in this one, once for each candidate. An exception in it, or
/// Ctrl-C, ends the search.
tune::Tuned search(const std::string& text, nb::dict request, nb::dict config_fields, nb::object progress) {
  const api::TuneProgram program{.text = text, .request = request_of(request)};
  api::TuneConfig config = config_of(config_fields);
  std::vector<View> views(nb::len(nb::object(request["inputs"])));
  const std::vector<api::Tensor> inputs = data_of(request["inputs"], views);
  std::stop_source stop;
  config.stop = stop.get_token();
  Mailbox mailbox;
  const auto pass_on = [&] {
    for (const tune::Progress& known : mailbox.take()) {
      if (!progress.is_none()) progress(nb::cast(known));
    }
  };
  std::optional<Result<tune::Tuned>> tuned;
  const auto work = [&] {
    tuned.emplace(api::tune(program, inputs, config, [&](const tune::Progress& known) { mailbox.put(known); }));
    config.executor.reset();
  };
  run_interruptibly(stop, work, pass_on);
  return value_of(std::move(*tuned));
}

const char* name_of(tune::Ending ending) {
  switch (ending) {
    case tune::Ending::kFinished:
      return "finished";
    case tune::Ending::kExhausted:
      return "exhausted";
    case tune::Ending::kTimeLimit:
      return "time limit";
    case tune::Ending::kStopped:
      return "stopped";
  }
  return "";
}

void bind_results(nb::module_& module) {
  nb::class_<tune::Record>(module, "Record", "The outcome of one candidate of a search.")
      .def("__repr__",
           [](const tune::Record& self) {
             const std::string time = self.us > 0 ? " in " + std::to_string(self.us) + " us" : "";
             return std::string("<tensorc.Record ") + tune::name_of(self.outcome) + time + ">";
           })
      .def_ro("generation", &tune::Record::generation, "The generation that drew it; 0: before the first.")
      .def_ro("options", &tune::Record::options,
              "Its options as text, for CpuOptions.from_text() or MappingOptions.from_text().")
      .def_prop_ro(
          "outcome", [](const tune::Record& self) { return tune::name_of(self.outcome); },
          "\"done\"; \"hopeless\", too slow to be measured well; or why it has no time: \"refused\", \"wrong result\", "
          "...")
      .def_ro(
          "us", &tune::Record::us,
          "Microseconds of one run with its tensors in the cache; comparable between records; 0 where there is none.")
      .def_ro("own_us", &tune::Record::own_us,
              "The median of its own runs, in microseconds; `us` is this, corrected for a machine that became slower.")
      .def_ro("cold_us", &tune::Record::cold_us,
              "Microseconds of one run with its tensors out of the cache; 0 where there is none.")
      .def_ro("spread", &tune::Record::spread, "The spread of its runs: (third quartile - first quartile) / median.")
      .def_ro("compile_ms", &tune::Record::compile_ms, "Milliseconds of its compilation.")
      .def_ro("message", &tune::Record::message, "Why it has no time; empty where it has one.")
      .def_ro("remembered", &tune::Record::remembered, "Whether it is known from a cache, and was not measured now.");
  nb::class_<tune::Progress>(module, "Progress", "The progress of a search.")
      .def("__repr__",
           [](const tune::Progress& self) {
             return "<tensorc.Progress " + std::to_string(self.done) + " of " + std::to_string(self.planned) + ">";
           })
      .def_ro("done", &tune::Progress::done, "Finished candidates, out of `planned`.")
      .def_ro("planned", &tune::Progress::planned, "Candidates of the whole search, at most.")
      .def_ro("generation", &tune::Progress::generation, "The current generation.")
      .def_ro("default_us", &tune::Progress::default_us,
              "Microseconds of one run with the compiler's own options; 0: not yet measured.")
      .def_ro("best_us", &tune::Progress::best_us, "Microseconds of one run by the best so far; 0: none yet.")
      .def_prop_ro(
          "failed",
          [](const tune::Progress& self) {
            nb::dict failed;
            for (const auto& [outcome, count] : self.failed) failed[tune::name_of(outcome)] = count;
            return failed;
          },
          "How many candidates have no time, by Record.outcome.")
      .def_ro("rejected", &tune::Progress::rejected,
              "Candidates that were drawn and turned down before any compilation.")
      .def_ro("seconds_left", &tune::Progress::seconds_left,
              "An estimate of the time to the end, or what is left of the time limit; None: not known yet.");
  nb::class_<tune::Tuned>(module, "Tuned", "The end of a search; tensorc.Tuned has the options as a value.")
      .def_prop_ro("ending", [](const tune::Tuned& self) { return name_of(self.ending); })
      .def_ro("best", &tune::Tuned::best)
      .def_ro("best_us", &tune::Tuned::best_us)
      .def_ro("best_cold_us", &tune::Tuned::best_cold_us)
      .def_ro("default_us", &tune::Tuned::default_us)
      .def_ro("speedup", &tune::Tuned::speedup)
      .def_ro("floor_us", &tune::Tuned::floor_us)
      .def_ro("noise", &tune::Tuned::noise)
      .def_ro("device", &tune::Tuned::device)
      .def_ro("reference", &tune::Tuned::reference)
      .def_ro("rejected", &tune::Tuned::rejected)
      .def_ro("not_kept", &tune::Tuned::not_kept,
              "Why some results are not in the cache; empty: all are, or there is no cache.")
      .def_ro("history", &tune::Tuned::history);
}

}  // namespace

void bind_tune(nb::module_& module) {
  bind_results(module);
  module.def("tune", &search, nb::arg("text"), nb::arg("request"), nb::arg("config"), nb::arg("progress").none());
  module.def("run_tune_job", [](nb::bytes job, double limit_s, const std::vector<std::string>& worker) {
    const tune::Executor::Job request{.bytes = std::string(job.c_str(), job.size()),
                                      .limit = std::chrono::milliseconds(static_cast<int64_t>(1000 * limit_s))};
    Result<tune::Executor::Done> done;
    {
      const GilReleased released;
      done = api::run_tune_job_apart(request, worker);
    }
    const tune::Executor::Done ended = value_of(std::move(done));
    return nb::make_tuple(static_cast<int>(ended.loss), nb::bytes(ended.text.data(), ended.text.size()));
  });
  module.def("serve_tune_jobs", [] {
    const GilReleased released;
    return api::serve_tune_jobs();
  });
}

}  // namespace tc::python
