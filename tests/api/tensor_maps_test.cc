#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "tc/cuda/executable.h"
#include "tests/api/fake_gpus.h"
#include "tests/api/tensors.h"

/// Tensor maps, clusters and early starts on their way to the driver: with that of tests/common/fake_cuda.c, which runs
/// nothing.
namespace tc::cuda {
namespace {

using testing::error_of;
using testing::expect_with_fake_gpus;
using testing::take;
using Kind = KernelArgument::Kind;

constexpr int64_t kBytes = 64 * 256;

/// Two kernels. The first takes a map of the tensor X from its second row on, X and a scalar; the second, in clusters,
/// a map of the workspace.
LaunchPlan plan_with_maps() {
  LaunchPlan plan;
  plan.tensors = {{"X", kBytes, 16, false}, {"Y", kBytes, 4, true}};
  plan.scalars = {{"s", 4}};
  plan.workspace = {{"T", 0, kBytes}};
  plan.maps = {{.of = {Kind::kTensor, 0},
                .byte_offset = 256,
                .type = 6,
                .extents = {128, 63},
                .byte_strides = {256},
                .box = {64, 64},
                .swizzle = 128},
               {.of = {Kind::kWorkspace, 0}, .type = 6, .extents = {64 * 128}, .byte_strides = {}, .box = {256}}};
  plan.kernels.resize(2);
  plan.kernels[0] = {.symbol = "first", .arguments = {{Kind::kMap, 0}, {Kind::kTensor, 0}, {Kind::kScalar, 0}}};
  plan.kernels[1] = {
      .symbol = "second", .grid = {4, 1, 1}, .cluster = {2, 1, 1}, .arguments = {{Kind::kMap, 1}, {Kind::kTensor, 1}}};
  return plan;
}

/// What the driver has seen of a launch.
struct Launch {
  std::vector<unsigned> cluster;
  Address map, tensor;
};
thread_local std::vector<Launch> launches;

void note(const unsigned* cluster, void** arguments) {
  launches.push_back(
      {{cluster, cluster + 3}, *static_cast<const Address*>(arguments[0]), *static_cast<const Address*>(arguments[1])});
}

template <typename T>
T& of_driver(void* driver, const char* name) {
  return *static_cast<T*>(::dlsym(driver, name));
}

Result<std::shared_ptr<Executable>> load(LaunchPlan plan) {
  static ModuleCache modules;
  TC_TRY(context, Context::open(0));
  return Executable::load(context, {90, 'a'}, "code", std::move(plan), modules);
}

Result<void> run(Executable& executable, Address x, Address y) {
  const float s = 1;
  return executable.run(nullptr, std::vector<Address>{x, y}, std::vector<const void*>{&s});
}

TEST(TensorMaps, EachIsEncodedWhenItsAddressChanges) {
  expect_with_fake_gpus([](void* driver) {
    of_driver<decltype(&note)>(driver, "fake_on_launch") = note;
    const int& encodings = of_driver<int>(driver, "fake_encodings");
    const auto executable = take(load(plan_with_maps()));
    for (int round = 0; round < 2; ++round) EXPECT_TRUE(run(*executable, 0x10000, 0x20000));
    EXPECT_EQ(encodings, 2);
    EXPECT_TRUE(run(*executable, 0x40000, 0x20000));
    EXPECT_EQ(encodings, 3) << "that of the workspace is at its old address";
    ASSERT_EQ(launches.size(), 6u);
    EXPECT_EQ(launches[2].map, 0x10100u);
    EXPECT_EQ(launches[2].tensor, 0x10000u);
    EXPECT_EQ(launches[4].map, 0x40100u);
    EXPECT_EQ(launches[5].map, launches[1].map);
    EXPECT_EQ(launches[4].cluster, (std::vector<unsigned>{1, 1, 1}));
    EXPECT_EQ(launches[5].cluster, (std::vector<unsigned>{2, 1, 1}));
  });
}

/// Early launches of one run, if some of the two kernels wait by themselves and some have no block.
int early_launches(void* driver, std::array<bool, 2> waits, std::array<bool, 2> empty) {
  LaunchPlan plan = plan_with_maps();
  for (size_t k = 0; k < 2; ++k) {
    plan.kernels[k].waits = waits[k];
    if (empty[k]) plan.kernels[k].grid = {0, 1, 1};
  }
  int& early = of_driver<int>(driver, "fake_early_launches");
  early = 0;
  const auto executable = take(load(std::move(plan)));
  EXPECT_TRUE(run(*executable, 0x10000, 0x20000));
  return early;
}

TEST(EarlyLaunches, AreOfKernelsThatWaitForAllThatMayStillRun) {
  expect_with_fake_gpus([](void* driver) {
    EXPECT_EQ(early_launches(driver, {false, false}, {}), 0);
    EXPECT_EQ(early_launches(driver, {true, false}, {}), 1);
    EXPECT_EQ(early_launches(driver, {false, true}, {}), 1);
    EXPECT_EQ(early_launches(driver, {true, true}, {}), 2);
    EXPECT_EQ(early_launches(driver, {true, true}, {false, true}), 1);
    EXPECT_EQ(early_launches(driver, {true, true}, {true, false}), 0) << "the second one knows the first one alone";
  });
}

/// Each thread has the maps of its own addresses, whatever the others do meanwhile.
TEST(TensorMaps, ThreadsDoNotMeet) {
  expect_with_fake_gpus([](void* driver) {
    of_driver<decltype(&note)>(driver, "fake_on_launch") = note;
    const auto executable = take(load(plan_with_maps()));
    std::vector<std::thread> threads;
    for (Address t = 1; t <= 4; ++t) {
      threads.emplace_back([&, t] {
        for (int round = 0; round < 500; ++round) EXPECT_TRUE(run(*executable, t << 20, 0x20000));
        for (size_t i = 0; i < launches.size(); i += 2) EXPECT_EQ(launches[i].map, (t << 20) + 256);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(TensorMaps, AddressesAreAligned) {
  expect_with_fake_gpus([](void*) {
    const auto executable = take(load(plan_with_maps()));
    EXPECT_EQ(
        error_of(run(*executable, 0x10008, 0x20000)),
        "error: the tensor 'X' is at address 0x10008, which is no multiple of 16: its kernel copies 16 bytes at a "
        "time\n");
  });
}

TEST(TensorMaps, WhatTheDriverRefusesIsSaid) {
  expect_with_fake_gpus([](void*) {
    LaunchPlan plan = plan_with_maps();
    plan.maps[0].box[1] = 257;
    EXPECT_EQ(error_of(run(*take(load(plan)), 0x10000, 0x20000)),
              "error: making a tensor map of 'X': CUDA_ERROR (of the fake driver)\n");
  });
}

TEST(TensorMaps, AKernelTakesSixteen) {
  expect_with_fake_gpus([](void*) {
    LaunchPlan plan = plan_with_maps();
    plan.kernels[0].arguments.insert(plan.kernels[0].arguments.end(), 15, {Kind::kMap, 0});
    EXPECT_TRUE(run(*take(load(plan)), 0x10000, 0x20000));
    plan.kernels[0].arguments.push_back({Kind::kMap, 0});
    EXPECT_EQ(error_of(load(plan)), "error: 'first' takes 17 tensor maps; 16 is the most\n");
  });
}

TEST(TensorMaps, AnOldDriverHasNeitherMapsNorClusters) {
  expect_with_fake_gpus(
      [](void*) {
        LaunchPlan plan = plan_with_maps();
        EXPECT_EQ(error_of(load(plan)),
                  "error: the kernels take tensor maps, which NVIDIA's driver has from CUDA 12.0 on; this one is made "
                  "for CUDA 11.7\n");
        plan.maps.clear();
        for (KernelLaunch& launch : plan.kernels) launch.arguments.erase(launch.arguments.begin());
        EXPECT_EQ(error_of(load(plan)),
                  "error: 'second' runs in clusters, which NVIDIA's driver has from CUDA 11.8 on; this one is made for "
                  "CUDA 11.7\n");
        plan.kernels[1].cluster = {1, 1, 1};
        EXPECT_TRUE(run(*take(load(plan)), 0x10000, 0x20000));
      },
      TC_OLD_FAKE_CUDA);
}

}  // namespace
}  // namespace tc::cuda
