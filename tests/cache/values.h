#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tc/cache/cache.h"
#include "tests/common/temporary_folder.h"

/// Keys and values for tests, and a folder of their own.
namespace tc::cache::test {

/// In memory where the system has such a folder: tests write thousands of times, and each time until it is on the disk.
class Folder : public testing::TemporaryFolder {
 public:
  Folder()
      : TemporaryFolder(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path().string()) {}
};

inline Problem problem_of(int number) {
  return {.program = Digest::of("program").to_string(),
          .sizes = {1024, 16 * (number + 1)},
          .scalars = {7},
          .strided = {{1, {64, 2}}},
          .backend = Backend::kCuda,
          .target = "sm_90a"};
}

inline Key key_of(int number, const std::string& options = "") {
  return {.problem = problem_of(number), .options = options, .machine = "132 processors", .compiler = "1"};
}

/// An entry that says in every field which key it belongs to.
inline Entry entry_of(int number, size_t code_bytes = 200) {
  Entry entry;
  entry.slots = {{Slot::Kind::kInput, 0}, {Slot::Kind::kOutput, 0}, {Slot::Kind::kScalar, 1}};
  entry.gpu.arch = "sm_90a";
  for (size_t i = 0; i < code_bytes; ++i) {
    entry.gpu.cubin += static_cast<char>((static_cast<size_t>(number) * 31 + i * 7) % 256);
  }
  entry.gpu.others = {{"sm_80", "code " + std::to_string(number)}};
  entry.gpu.plan.tensors = {{"", 4096, 16, false}, {"", 4096, 4, true}};
  entry.gpu.plan.scalars = {{"", 4}};
  entry.gpu.plan.workspace = {{"partial", 0, 512}};
  cuda::KernelLaunch launch;
  launch.symbol = "kernel_" + std::to_string(number);
  launch.grid = {number + 1, 2, 3};
  launch.block = {32, 8, 1};
  launch.dynamic_shared_bytes = 65536;
  launch.waits = true;
  launch.arguments = {{cuda::KernelArgument::Kind::kTensor, 1}, {cuda::KernelArgument::Kind::kWorkspace, 0}};
  entry.gpu.plan.kernels = {launch};
  entry.gpu.text = "// kernel " + std::to_string(number);
  entry.certificate = {Certificate::Origin::kCompiler, "1", "abc", "proved"};
  entry.created = 1000 + number;
  return entry;
}

/// The same with a tensor map, and in clusters.
inline Entry entry_with_map(int number) {
  using Kind = cuda::KernelArgument::Kind;
  Entry entry = entry_of(number);
  cuda::LaunchPlan& plan = entry.gpu.plan;
  plan.maps = {{.of = {Kind::kTensor, 0},
                .byte_offset = 32,
                .type = 7,
                .extents = {16, 8},
                .byte_strides = {64},
                .box = {8, 8},
                .swizzle = 32},
               {.of = {Kind::kWorkspace, 0}, .extents = {512}, .byte_strides = {}, .box = {256}}};
  plan.kernels[0].cluster = {1, 2, 1};
  plan.kernels[0].arguments.push_back({Kind::kMap, 1});
  return entry;
}

inline void expect_equal(const Entry& a, const Entry& b) {
  EXPECT_EQ(a.slots, b.slots);
  EXPECT_EQ(a.cpu, b.cpu);
  EXPECT_EQ(a.gpu.arch, b.gpu.arch);
  EXPECT_EQ(a.gpu.cubin, b.gpu.cubin);
  EXPECT_EQ(a.gpu.others, b.gpu.others);
  EXPECT_EQ(a.gpu.text, b.gpu.text);
  EXPECT_EQ(a.certificate, b.certificate);
  EXPECT_EQ(a.created, b.created);
  const cuda::LaunchPlan &p = a.gpu.plan, &q = b.gpu.plan;
  ASSERT_EQ(p.tensors.size(), q.tensors.size());
  for (size_t i = 0; i < p.tensors.size(); ++i) {
    EXPECT_EQ(p.tensors[i].bytes, q.tensors[i].bytes);
    EXPECT_EQ(p.tensors[i].alignment, q.tensors[i].alignment);
    EXPECT_EQ(p.tensors[i].written, q.tensors[i].written);
  }
  ASSERT_EQ(p.scalars.size(), q.scalars.size());
  for (size_t i = 0; i < p.scalars.size(); ++i) EXPECT_EQ(p.scalars[i].bytes, q.scalars[i].bytes);
  ASSERT_EQ(p.workspace.size(), q.workspace.size());
  for (size_t i = 0; i < p.workspace.size(); ++i) {
    EXPECT_EQ(p.workspace[i].byte_offset, q.workspace[i].byte_offset);
    EXPECT_EQ(p.workspace[i].bytes, q.workspace[i].bytes);
  }
  ASSERT_EQ(p.kernels.size(), q.kernels.size());
  for (size_t i = 0; i < p.kernels.size(); ++i) {
    EXPECT_EQ(p.kernels[i].symbol, q.kernels[i].symbol);
    EXPECT_EQ(p.kernels[i].grid, q.kernels[i].grid);
    EXPECT_EQ(p.kernels[i].block, q.kernels[i].block);
    EXPECT_EQ(p.kernels[i].dynamic_shared_bytes, q.kernels[i].dynamic_shared_bytes);
    EXPECT_EQ(p.kernels[i].waits, q.kernels[i].waits);
    EXPECT_EQ(p.kernels[i].cluster, q.kernels[i].cluster);
    EXPECT_EQ(p.kernels[i].arguments, q.kernels[i].arguments);
  }
  EXPECT_EQ(p.maps, q.maps);
}

inline Measurement measurement_of(int number, double time_us, const std::string& options = "",
                                  const std::string& device = "GPU") {
  return {.problem = problem_of(number),
          .options = options,
          .device = device,
          .time_us = time_us,
          .spread_us = 0.5,
          .date = 2000,
          .compiler = "1"};
}

/// The value of a Result that must have one.
template <typename T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return std::move(*result);
}

}  // namespace tc::cache::test
