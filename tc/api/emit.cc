#include "tc/api/emit.h"

#include <fmt/format.h>

#include "tc/gpu/strategy/coverage.h"
#include "tc/gpu/strategy/limits.h"
#include "tc/poly/isl_ext.h"
#include "tc/support/nearest.h"
#include "tc/support/result.h"
#include "tc/tile/proof.h"

namespace tc::api {
namespace {

const std::vector<Stage>& stages() {
  static const std::vector<Stage> all = {
      {"ast", Backend::kCpu, "analyse"},       {"program", Backend::kCpu, "specialise"},
      {"schedule", Backend::kCpu, "schedule"}, {"stmt", Backend::kCpu, "stmt"},
      {"object", Backend::kCpu, "object"},     {"map", Backend::kCuda, "map"},
      {"tile", Backend::kCuda, "tile"},        {"certificate", Backend::kCuda, "tile", false, true},
      {"cuda", Backend::kCuda, "cuda"},        {"ptx", Backend::kCuda, "cubin", true},
      {"cubin", Backend::kCuda, "cubin"}};
  return all;
}

}  // namespace

std::string stage_names() {
  std::string text;
  for (const Stage& stage : stages()) text += (text.empty() ? "" : ", ") + stage.name;
  return text;
}

Result<Stage> find_stage(std::string_view name, bool concrete, Backend backend) {
  std::vector<std::string> names;
  for (const Stage& stage : stages()) {
    names.push_back(stage.name);
    if (stage.name != name) continue;
    Stage found = stage;
    if (found.name == "program" && !concrete) found.pass = "program";
    if (found.name == "schedule" && backend != Backend::kCpu) {
      found.backend = backend;
    }
    return found;
  }
  const std::string meant = nearest(std::string(name), names);
  if (!meant.empty()) return fail("there is no stage '{}'; did you mean '{}'?", name, meant);
  return fail("there is no stage '{}'; the stages are {}", name, stage_names());
}

Result<std::string> text_of(const Stage& stage, const compile::Settings& settings,
                            const compile::Compilation& compilation) {
  if (stage.certificate) {
    const gpu::Mapping& mapping = *compilation.mapping;
    return poly::within_budget(*compilation.scop->context, [&] {
      const tile::Proof proof = gpu::prove(*compilation.scop, mapping, gpu::limits_of(settings.gpu.device));
      return tile::to_text(mapping.program, proof);
    });
  }
  if (stage.ptx) return compilation.compiled->ptx;
  return compile::dump(settings, compilation, stage.pass);
}

}  // namespace tc::api
