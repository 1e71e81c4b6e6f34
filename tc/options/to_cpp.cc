#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tc/options/mapping_fields.h"

namespace tc::options {
namespace {

const char* name_of(Fusion fusion) {
  switch (fusion) {
    case Fusion::kMax:
      return "kMax";
    case Fusion::kPreserve3Coincident:
      return "kPreserve3Coincident";
    case Fusion::kMin:
      return "kMin";
  }
  return "";
}

std::string scheduler_text(const SchedulerOptions& options) {
  const SchedulerOptions defaults;
  std::vector<std::string> fields;
  if (options.fusion) fields.push_back(fmt::format(".fusion = tc::options::Fusion::{}", name_of(*options.fusion)));
  if (options.allow_skewing != defaults.allow_skewing) {
    fields.push_back(fmt::format(".allow_skewing = {}", options.allow_skewing));
  }
  if (options.positive_orthant != defaults.positive_orthant) {
    fields.push_back(fmt::format(".positive_orthant = {}", options.positive_orthant));
  }
  return fmt::format("{{{}}}", fmt::join(fields, ", "));
}

/// Adds a line for each field that differs from the default.
struct InitialiserWriter {
  std::string& text;
  std::string indent = "    ";

  void add(const char* name, const std::string& value) const {
    text += fmt::format("{}.{} = {},\n", indent, name, value);
  }
  void operator()(const char* name, const std::string& value) const { add(name, fmt::format("\"{}\"", value)); }
  void operator()(const char* name, const std::vector<KernelOptions>& kernels) const {
    if (kernels.empty()) return;
    std::string list;
    for (const KernelOptions& kernel : kernels) {
      list += indent + "    {\n";
      visit_fields(kernel, InitialiserWriter{list, indent + "        "});
      list += indent + "    },\n";
    }
    add(name, fmt::format("{{\n{}{}}}", list, indent));
  }
  void operator()(const char* name, const SchedulerOptions& value) const {
    if (value != SchedulerOptions()) add(name, scheduler_text(value));
  }
  void operator()(const char* name, const std::vector<int64_t>& values) const {
    if (!values.empty()) add(name, fmt::format("{{{}}}", fmt::join(values, ", ")));
  }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value) const {
    if (value) add(name, fmt::format("{}", *value));
  }
  void operator()(const char* name, bool value) const {
    if (value) add(name, "true");
  }
};

}  // namespace

std::string to_cpp(const MappingOptions& options) {
  std::string text;
  visit_fields(options, InitialiserWriter{text});
  return text.empty() ? "tc::options::MappingOptions{}" : fmt::format("tc::options::MappingOptions{{\n{}}}", text);
}

}  // namespace tc::options
