#include "tc/cli/export_c.h"

#include <gtest/gtest.h>

#include "tests/cli/process.h"

namespace tc::testing {
namespace {

/// A driver that writes down what it is asked for.
constexpr char kDriver[] = R"(#include <stdint.h>
#include <stdio.h>
#include <string.h>
int cuModuleLoadData(void** module, const void* image) {
  printf("load %s\n", (const char*)image);
  *module = (void*)image;
  return strcmp(image, "of another GPU") == 0 ? 209 : 0;
}
int cuModuleUnload(void* module) { return printf("unload %s\n", (const char*)module), 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)module;
  *function = (void*)name;
  return strcmp(name, "missing") == 0 ? 500 : 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  return printf("set %s %d %d\n", (const char*)function, attribute, value), 0;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared_bytes, void* stream, void** arguments, void** extra) {
  (void)extra;
  printf("launch %s (%u %u %u) (%u %u %u) %u stream %d: %llu %llu %g\n", (const char*)function, gx, gy, gz, bx, by, bz,
         shared_bytes, (int)(intptr_t)stream, (unsigned long long)*(uint64_t*)arguments[0],
         (unsigned long long)*(uint64_t*)arguments[1], (double)*(float*)arguments[2]);
  return 0;
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) { return *address = 7000, printf("allocate %d\n", (int)bytes), 0; }
int cuMemFree_v2(uint64_t address) { return printf("free %d\n", (int)address), 0; }
)";

constexpr char kMain[] = R"(#include "f.h"
int main(void) {
  f_kernels kernels;
  if (f_load(&kernels) != 0) return 1;
  if (f_launch(&kernels, (void*)5, 1000, 2.5f, 2000) != 0) return 2;
  return f_unload(&kernels);
}
)";

TEST(ExportC, AGpusKernelsNeedTheDriverOnly) {
  using cuda::KernelArgument;
  using Slot = cache::Slot;
  cache::Entry entry;
  entry.gpu.arch = "sm_90a";
  entry.gpu.cubin = std::string("of another GPU\0", 15);
  entry.gpu.others = {{"sm_80", std::string("machine code\0", 13)}, {"sm_75", std::string("older\0", 6)}};
  cuda::LaunchPlan& plan = entry.gpu.plan;
  // The plan's order is not the text's: the result comes first.
  plan.tensors = {{"", 64, 4, true}, {"", 64, 4, false}};
  plan.scalars = {{"", 4}};
  plan.workspace = {{"partial", 256, 128}};
  entry.slots = {{Slot::Kind::kOutput, 0}, {Slot::Kind::kInput, 0}, {Slot::Kind::kScalar, 0}};
  plan.kernels.push_back({.symbol = "first",
                          .grid = {3, 2, 1},
                          .block = {32, 4, 1},
                          .dynamic_shared_bytes = 65536,
                          .arguments = {{KernelArgument::Kind::kTensor, 1},
                                        {KernelArgument::Kind::kWorkspace, 0},
                                        {KernelArgument::Kind::kScalar, 0}}});
  plan.kernels.push_back({.symbol = "empty", .grid = {0, 1, 1}, .block = {32, 1, 1}, .arguments = {}});
  plan.kernels.push_back({.symbol = "second",
                          .block = {64, 1, 1},
                          .arguments = {{KernelArgument::Kind::kTensor, 0},
                                        {KernelArgument::Kind::kTensor, 1},
                                        {KernelArgument::Kind::kScalar, 0}}});
  const api::Signature signature{.entry = "f",
                                 .parameters = {{.name = "a"}, {.name = "s", .role = api::Role::kScalar}},
                                 .results = {{.name = "b", .role = api::Role::kResult}}};
  const api::Specs specs{{{.shape = {16}, .strides = {1}}}, {{.shape = {16}, .strides = {1}}}};
  const auto exported = cli::export_c("f", signature, specs, {}, {.problem = {.target = "sm_90a"}}, entry);
  ASSERT_TRUE(exported) << exported.error().to_string();
  const Folder folder;
  folder.write("f.h", exported->header);
  folder.write("f.c", exported->source);
  folder.write("driver.c", kDriver);
  folder.write("main.c", kMain);
  const std::string command =
      "cd " + folder.path(".") + " && cc -std=c99 -Wall -Wextra -Werror main.c f.c driver.c -o main && ./main >out";
  ASSERT_EQ(std::system(command.c_str()), 0) << exported->source;
  EXPECT_EQ(folder.read("out"),
            "load of another GPU\n"
            "load machine code\n"
            "set first 8 65536\n"
            "allocate 384\n"
            "launch first (3 2 1) (32 4 1) 65536 stream 5: 1000 7256 2.5\n"
            "launch second (1 1 1) (64 1 1) 0 stream 5: 2000 1000 2.5\n"
            "free 7000\n"
            "unload machine code\n");
}

}  // namespace
}  // namespace tc::testing
