#include "tests/gpu/simulator_backend.h"

#include <fmt/format.h>

#include <memory>

#include "tc/gpu/rewrite/order_dims.h"
#include "tc/gpu/strategy/schedule.h"
#include "tc/poly/from_ir.h"
#include "tests/gpu/simulated.h"
#include "tests/random/layouts.h"
#include "tests/random/random.h"

namespace tc::testing {
namespace {

options::MappingOptions random_mapping(uint64_t seed) {
  Random random(seed);
  options::MappingOptions options;
  if (random.chance(40)) return options;
  if (random.chance(60)) options.outer_schedule_options.fusion = static_cast<options::Fusion>(random.below(3));
  options.outer_schedule_options.allow_skewing = random.chance(20);
  static constexpr int64_t kTiles[] = {1, 2, 3, 4, 7, 8, 16, 32};
  if (random.chance(60)) {
    for (int64_t n = random.range(1, 3); n > 0; --n) options.tile.push_back(kTiles[random.below(8)]);
  }
  static constexpr int64_t kThreads[] = {1, 2, 3, 5, 8, 10};
  if (random.chance(60)) {
    for (int64_t n = random.range(1, 3); n > 0; --n) options.map_to_threads.push_back(kThreads[random.below(6)]);
  }
  static constexpr int64_t kBlocks[] = {1, 2, 3, 7, 100};
  if (random.chance(60)) {
    for (int64_t n = random.range(1, 3); n > 0; --n) options.map_to_blocks.push_back(kBlocks[random.below(5)]);
  }
  if (random.chance(30)) options.use_private_memory = random.chance(50);
  if (random.chance(60)) options.use_shared_memory = random.chance(80);
  if (random.chance(20)) options.shared_depth = static_cast<int64_t>(random.below(5));
  if (random.chance(20)) options.unroll = int64_t{1} << random.below(7);
  if (random.chance(20)) options.max_shared_memory = int64_t{256} << random.below(6);
  options.strict = random.chance(30);
  if (random.chance(40)) {
    for (int64_t n = random.range(1, 3); n > 0; --n) options.register_tile.push_back(1 + random.below(3));
  }
  if (random.chance(30)) options.copy_stages = random.range(1, 4);
  if (random.chance(30)) options.split_reduction = random.range(1, 4);
  if (random.chance(30)) options.atomic_reduction = random.chance(70);
  if (random.chance(30)) options.unroll = random.range(1, 9);
  if (random.chance(10)) options.match_library_calls = random.chance(50);
  if (random.chance(10)) options.unroll_copy_shared = random.chance(50);
  if (random.chance(15)) options.private_depth = random.range(0, 7);
  if (random.chance(20)) options.intra_tile_schedule_options.fusion = static_cast<options::Fusion>(random.below(3));
  return options;
}

/// Without what is refused where no kernel can follow it.
options::MappingOptions without_sizes(options::MappingOptions options) {
  options.register_tile = {};
  options.split_reduction = options.unroll = options.private_depth = std::nullopt;
  options.atomic_reduction = std::nullopt;
  return options;
}

/// Half of them so small that little work is worth parts and launches of its own.
gpu::Device random_device(uint64_t seed) {
  gpu::Device device;
  if (seed % 2 == 0) return device;
  device.processors = 1 + static_cast<int64_t>(seed / 2 % 3);
  device.instances_of_launch = 1 + static_cast<int64_t>(seed % 64);
  return device;
}

/// Runs what is mapped by `map`.
Backend simulated_by(const std::function<Result<gpu::Mapping>(const ir::Program&)>& map, uint64_t seed,
                     std::string description) {
  const auto compile = [=](const RandomProgram&, const ir::Program& program) -> Result<Runner> {
    TC_TRY(mapping, map(program));
    auto kept = std::make_shared<const gpu::Mapping>(std::move(mapping));
    auto source = std::make_shared<const ir::Program>(program);
    return [kept, source, seed](const interp::Environment& data) { return simulated(*source, *kept, data, seed); };
  };
  return {compile, std::move(description), nullptr};
}

/// Verbs in a random order, on random loops, statements and tensors of a program.
class RandomVerbs {
 public:
  RandomVerbs(gpu::Schedule schedule, uint64_t seed) : schedule_(std::move(schedule)), random_(seed) {}

  gpu::Schedule run(int verbs) {
    for (; verbs > 0 && !schedule_.loops().empty(); --verbs) {
      if (Result<gpu::Schedule> next = step()) schedule_ = *std::move(next);
    }
    return std::move(schedule_);
  }

 private:
  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[random_.below(values.size())];
  }
  std::string loop() { return one_of(schedule_.loops()); }
  const poly::Statement& statement() {
    return schedule_.scop().statements[random_.below(schedule_.scop().statements.size())];
  }
  std::string tensor() { return one_of(schedule_.scop().program->tensors).name; }

  Result<gpu::Schedule> step() {
    const std::string a = loop(), b = loop();
    const std::string name = fmt::format("new_{}", ++names_);
    switch (random_.below(14)) {
      case 0:
        return schedule_.split(a, random_.range(1, 8), name, name + "_in");
      case 1:
        return schedule_.fuse(a, b, name);
      case 2:
        return schedule_.reorder({a, b});
      case 3:
        return schedule_.distribute(a);
      case 4:
      case 5:
        return schedule_.bind(
            a, {random_.chance(50) ? gpu::Level::kBlock : gpu::Level::kThread, static_cast<int>(random_.below(3))});
      case 6:
        return random_.chance(30) ? schedule_.reduce_by_warp(a) : schedule_.unroll(a);
      case 7:
        return schedule_.vectorize(a);
      case 8:
        return schedule_.merge(a, b);
      case 9:
        return schedule_.sink(random_.chance(50) ? statement().id : a, b);
      case 10: {
        gpu::ReductionLoops loops;
        return schedule_.split_reduction(a, random_.range(1, 4), random_.chance(50), loops);
      }
      case 11: {
        std::string rest;
        return schedule_.partition(a, random_.range(1, 8), rest);
      }
      case 12:
        return random_.chance(25) ? schedule_.launch(a) : schedule_.stage(tensor(), a, random_.range(2, 3));
      default:
        return schedule_.promote(tensor(), a, random_.chance(50) ? gpu::Buffer::kShared : gpu::Buffer::kRegisters);
    }
  }

  gpu::Schedule schedule_;
  Random random_;
  int names_ = 0;
};

Result<gpu::Mapping> scheduled(const ir::Program& program, uint64_t seed) {
  Random random(seed);
  options::SchedulerOptions options;
  if (random.chance(40)) options.fusion = options::Fusion::kMin;
  const auto verbs = static_cast<int>(random.range(0, 16));
  TC_TRY(scop, poly::from_ir(std::make_shared<const ir::Program>(gpu::order_dims(program)),
                             std::make_shared<poly::Context>()));
  TC_TRY(schedule, gpu::Schedule::create(scop, options));
  return RandomVerbs(std::move(schedule), seed).run(verbs).lower(random_device(seed));
}

}  // namespace

Backend simulator_backend(uint64_t seed) {
  const options::MappingOptions options = random_mapping(seed);
  const auto map = [=](const ir::Program& program) {
    Result<gpu::Mapping> mapping = mapped(program, options, random_device(seed));
    return mapping ? mapping : mapped(program, without_sizes(options), random_device(seed));
  };
  return simulated_by(map, seed, options::to_text(options));
}

namespace {

/// A backend, on tensors whose strides the seed chooses.
Backend on_strides(const Backend& dense, uint64_t seed) {
  const auto strided = [=](const ir::Program& program) {
    return ir::with_layouts(program, random_layouts(program, seed));
  };
  const auto compile = [=](const RandomProgram& source, const ir::Program& program) {
    return dense.compile(source, strided(program));
  };
  const auto held = [=](const ir::Program& program, interp::Environment data) {
    return as_held(strided(program), std::move(data));
  };
  return {compile, fmt::format("{}strides of seed {}\n", dense.description, seed), held};
}

}  // namespace

Backend strided_backend(uint64_t seed) { return on_strides(simulator_backend(seed), seed); }

Backend schedule_backend(uint64_t seed) {
  const auto map = [=](const ir::Program& program) {
    Result<gpu::Mapping> mapping = scheduled(program, seed);
    const bool is_said = !mapping && !mapping.error().to_string().empty();
    return is_said ? mapped(program) : mapping;
  };
  const Backend backend = simulated_by(map, seed, fmt::format("verbs of seed {}\n", seed));
  return seed % 4 == 0 ? on_strides(backend, seed) : backend;
}

}  // namespace tc::testing
