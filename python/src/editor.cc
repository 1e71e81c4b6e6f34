#include "editor.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <tc/api/editor.h>

#include <optional>
#include <stop_token>

#include "errors.h"
#include "interrupt.h"

namespace nb = nanobind;

namespace tc::python {
namespace {

/// Ends checks from any thread.
struct Cancellation {
  std::stop_source stop;
};

std::map<std::string, ScalarType> types_of(const std::map<std::string, std::string>& names) {
  std::map<std::string, ScalarType> types;
  for (const auto& [variable, name] : names) {
    const std::optional<ScalarType> type = scalar_type_from_name(name);
    if (!type) raise_value_error("there is no element type '" + name + "'");
    types[variable] = *type;
  }
  return types;
}

std::string check(const std::string& text, const std::string& name, std::map<std::string, int64_t> sizes,
                  std::map<std::string, int64_t> scalars, const std::map<std::string, std::string>& types,
                  bool first_instance, int64_t time_limit_ms, const Cancellation* cancellation) {
  const std::stop_source stop = cancellation ? cancellation->stop : std::stop_source();
  const api::CheckOptions options{.sizes = std::move(sizes),
                                  .scalars = std::move(scalars),
                                  .types = types_of(types),
                                  .first_instance = first_instance,
                                  .time_limit_ms = time_limit_ms,
                                  .cancel = stop.get_token()};
  std::optional<Result<std::string>> report;
  run_interruptibly(stop, [&] { report.emplace(api::check(text, name, options)); });
  return value_of(*std::move(report));
}

}  // namespace

void bind_editor(nb::module_& module) {
  nb::class_<Cancellation>(module, "Cancellation", "Cancels the checks that hold it, from any thread.")
      .def(nb::init<>())
      .def(
          "cancel", [](Cancellation& self) { self.stop.request_stop(); }, "Cancels them. Each raises CancelledError.");
  module.def("check", check, nb::arg("text"), nb::arg("name"), nb::arg("sizes"), nb::arg("scalars"), nb::arg("types"),
             nb::arg("first_instance"), nb::arg("time_limit_ms"), nb::arg("cancellation").none() = nb::none());
  module.def("format",
             [](const std::string& text, const std::string& name) { return value_of(api::format(text, name)); });
  module.def("words", &api::words);
}

}  // namespace tc::python
