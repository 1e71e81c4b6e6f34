#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tc/options/mapping.h"

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

void add_list(const char* field, const std::vector<int64_t>& values, std::string& text) {
  if (!values.empty()) text += fmt::format("    .{} = {{{}}},\n", field, fmt::join(values, ", "));
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
  return fmt::format("    .outer_schedule_options = {{{}}},\n", fmt::join(fields, ", "));
}

}  // namespace

std::string to_cpp(const MappingOptions& options) {
  const MappingOptions defaults;
  std::string text;
  if (options.outer_schedule_options != defaults.outer_schedule_options) {
    text += scheduler_text(options.outer_schedule_options);
  }
  add_list("tile", options.tile, text);
  add_list("map_to_threads", options.map_to_threads, text);
  add_list("map_to_blocks", options.map_to_blocks, text);
  if (options.use_private_memory) text += fmt::format("    .use_private_memory = {},\n", *options.use_private_memory);
  if (options.strict != defaults.strict) text += fmt::format("    .strict = {},\n", options.strict);
  return text.empty() ? "tc::options::MappingOptions{}" : fmt::format("tc::options::MappingOptions{{\n{}}}", text);
}

}  // namespace tc::options
