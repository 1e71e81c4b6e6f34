#include "tc/cpu/target.h"

#include "tc/cpu/object.h"

namespace tc::cpu {

using Halide::Target;

namespace {

/// Each level of x86 has all that stands above it.
struct Level {
  Target::Feature feature;
  const char* cpu;
  int vector_bits;
};
constexpr Level kLevels[] = {
    // What Halide calls so has bfloat16; LLVM's "sapphirerapids" has float16 too, which other processors do not.
    {Target::AVX512_SapphireRapids, "icelake-server", 512},
    {Target::AVX512_Cannonlake, "cannonlake", 512},
    {Target::AVX512_Skylake, "skylake-avx512", 512},
    {Target::AVX2, "haswell", 256},
    {Target::AVX, "corei7-avx", 256},
    {Target::SSE41, "penryn", 128},
};

constexpr Target::Feature kExtensions[] = {Target::SSE41,
                                           Target::AVX,
                                           Target::AVX2,
                                           Target::FMA,
                                           Target::F16C,
                                           Target::AVX512,
                                           Target::AVX512_Skylake,
                                           Target::AVX512_Cannonlake,
                                           Target::AVX512_SapphireRapids};

CodeTarget describe(Target target) {
  CodeTarget result;
  // Only what bears on the code stays, so that equal code has equal text.
  result.halide = Target(target.os, target.arch, target.bits);
  for (Target::Feature feature : kExtensions) {
    if (target.has_feature(feature)) result.halide.set_feature(feature);
  }
  result.cpu = "x86-64";
  for (const Level& level : kLevels) {
    if (!target.has_feature(level.feature)) continue;
    result.cpu = level.cpu;
    result.vector_bits = level.vector_bits;
    break;
  }
  bool avx512 = result.vector_bits == 512;
  result.has_fma = avx512 || target.has_feature(Target::FMA);
  result.has_f16c = avx512 || target.has_feature(Target::F16C);
  result.has_sse41 = result.cpu != "x86-64";
  // LLVM's processors have more than their level says: what the text does not grant is taken away.
  result.features = std::string(result.has_fma ? "+fma" : "-fma") + (result.has_f16c ? ",+f16c" : ",-f16c");
  if (target.has_feature(Target::AVX512_SapphireRapids)) result.features += ",+avx512bf16";
  return result;
}

}  // namespace

Result<CodeTarget> parse_target(const std::string& text) {
  if (text == "host") return describe(Halide::get_host_target());
  if (!Target::validate_target_string(text)) return fail("'{}' is not a target such as 'x86-64-linux-avx2-fma'", text);
  Target target(text);
  if (target.arch != Target::X86 || target.bits != 64 || target.os != Target::Linux) {
    return fail("the target '{}' is not supported: code is made for x86-64 Linux only", text);
  }
  return describe(target);
}

bool host_can_run(const CodeTarget& target) {
  CodeTarget host = describe(Halide::get_host_target());
  for (Target::Feature feature : kExtensions) {
    if (target.halide.has_feature(feature) && !host.halide.has_feature(feature)) return false;
  }
  return host.halide.arch == target.halide.arch && host.halide.os == target.halide.os;
}

Result<std::string> canonical_target(const std::string& target) {
  TC_TRY(parsed, parse_target(target));
  return parsed.halide.to_string();
}

int vector_bits(const std::string& target) { return parse_target(target).value().vector_bits; }

}  // namespace tc::cpu
