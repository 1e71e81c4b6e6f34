#include "tc/cli/export_c.h"

#include <gtest/gtest.h>

#include "tests/cli/process.h"

namespace tc::testing {
namespace {

/// A driver that writes down what it is asked for, of a device whose compute capability main.c says.
constexpr char kDriver[] = R"(#include <stdint.h>
#include <stdio.h>
#include <string.h>
extern int capability;
int cuCtxGetDevice(int* device) { return *device = 3, 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device != 3 || (attribute != 75 && attribute != 76)) return 1;
  return *value = attribute == 75 ? capability / 10 : capability % 10, 0;
}
int cuModuleLoadData(void** module, const void* image) {
  printf("load %s\n", (const char*)image);
  return *module = (void*)image, 0;
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
int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* address, const uint64_t* extents,
                           const uint64_t* byte_strides, const unsigned* box, const unsigned* steps, int interleave,
                           int swizzle, int promotion, int fill) {
  unsigned d;
  printf("encode %d, aligned %d, at %d:", type, (uintptr_t)map % 64 == 0, (int)(intptr_t)address);
  for (d = 0; d < rank; ++d) {
    printf(" [%d %d %u %u]", (int)extents[d], d == 0 ? 0 : (int)byte_strides[d - 1], box[d], steps[d]);
  }
  printf(" %d %d %d %d\n", interleave, swizzle, promotion, fill);
  return memcpy(map, &address, sizeof address), 0;
}
struct attribute { int id, padding; unsigned value[16]; };
struct config { unsigned grid[3], block[3], bytes; void* stream; const struct attribute* attributes; unsigned count; };
int cuLaunchKernelEx(const struct config* config, void* function, void** arguments, void** extra) {
  const struct attribute* one = config->attributes;
  printf("launch %s (%u %u %u) (%u %u %u) %u stream %d attribute %d %d (%u %u %u): %d %d\n", (const char*)function,
         config->grid[0], config->grid[1], config->grid[2], config->block[0], config->block[1], config->block[2],
         config->bytes, (int)(intptr_t)config->stream, (int)config->count, one->id, one->value[0], one->value[1],
         one->value[2], (int)*(uint64_t*)arguments[0], (int)*(uint64_t*)arguments[1]);
  return extra != 0;
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) { return *address = 7000, printf("allocate %d\n", (int)bytes), 0; }
int cuMemFree_v2(uint64_t address) { return printf("free %d\n", (int)address), 0; }
)";

constexpr char kMain[] = R"(#include "f.h"
#include <stdio.h>
#include <stdlib.h>
int capability;
int main(int count, char** words) {
  f_kernels kernels;
  int status;
  (void)count;
  capability = atoi(words[1]);
  status = f_load(&kernels);
  if (status != 0) return printf("status %d\n", status), 1;
  if (f_launch(&kernels, (void*)5, 1000, 2.5f, 2000) != 0) return 2;
  return f_unload(&kernels);
}
)";

/// Three launches, one of no blocks, for five architectures.
cache::Entry kernels() {
  using cuda::KernelArgument;
  using Slot = cache::Slot;
  cache::Entry entry;
  entry.gpu.arch = "sm_90a";
  entry.gpu.cubin = std::string("90a\0", 4);
  for (const std::string arch : {"sm_75", "sm_80", "sm_86", "sm_100f"}) entry.gpu.others.push_back({arch, arch + '\0'});
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
  return entry;
}

/// The second kernel takes maps of the input and of the workspace, and runs in clusters.
cache::Entry kernels_with_maps() {
  using Kind = cuda::KernelArgument::Kind;
  cache::Entry entry = kernels();
  cuda::LaunchPlan& plan = entry.gpu.plan;
  plan.maps = {{.of = {Kind::kTensor, 1},
                .byte_offset = 16,
                .type = 7,
                .extents = {8, 2},
                .byte_strides = {32},
                .box = {4, 2},
                .swizzle = 32},
               {.of = {Kind::kWorkspace, 0}, .extents = {16}, .byte_strides = {}, .box = {16}}};
  plan.kernels[2].grid = {4, 2, 1};
  plan.kernels[2].cluster = {2, 1, 1};
  plan.kernels[2].arguments = {{Kind::kMap, 0}, {Kind::kMap, 1}};
  return entry;
}

/// Compiles the exported function with the driver and the program above.
class ExportC : public ::testing::Test {
 protected:
  void SetUp() override { compile("a", "s", "b"); }
  /// With these names of the tensor, the scalar and the result.
  void compile(const char* a, const char* s, const char* b, const cache::Entry& entry = kernels()) {
    const api::Signature signature{.entry = "f",
                                   .parameters = {{.name = a}, {.name = s, .role = api::Role::kScalar}},
                                   .results = {{.name = b, .role = api::Role::kResult}}};
    const api::Specs specs{{{.shape = {16}, .strides = {1}}}, {{.shape = {16}, .strides = {1}}}};
    const auto exported = cli::export_c("f", signature, specs, {}, {.problem = {.target = "sm_90a"}}, entry);
    ASSERT_TRUE(exported) << exported.error().to_string();
    folder_.write("f.h", exported->header);
    folder_.write("f.c", exported->source);
    folder_.write("driver.c", kDriver);
    folder_.write("main.c", kMain);
    ASSERT_EQ(run("cc -std=c99 -Wall -Wextra -Werror main.c f.c driver.c -o main"), 0) << exported->source;
  }
  int run(const std::string& command) const {
    return std::system(("cd " + folder_.path(".") + " && " + command).c_str());
  }

  const Folder folder_;
};

TEST_F(ExportC, AGpusKernelsNeedTheDriverOnly) {
  ASSERT_EQ(run("./main 80 >out"), 0);
  EXPECT_EQ(folder_.read("out"),
            "load sm_80\n"
            "set first 8 65536\n"
            "allocate 384\n"
            "launch first (3 2 1) (32 4 1) 65536 stream 5: 1000 7256 2.5\n"
            "launch second (1 1 1) (64 1 1) 0 stream 5: 2000 1000 2.5\n"
            "free 7000\n"
            "unload sm_80\n");
}

TEST_F(ExportC, TensorMapsAreEncodedAtEveryLaunch) {
  compile("a", "s", "b", kernels_with_maps());
  ASSERT_EQ(run("./main 90 >out"), 0);
  EXPECT_EQ(folder_.read("out"),
            "load 90a\n"
            "set first 8 65536\n"
            "allocate 384\n"
            "encode 7, aligned 1, at 1016: [8 0 4 1] [2 32 2 1] 0 1 2 0\n"
            "encode 0, aligned 1, at 7256: [16 0 16 1] 0 0 2 0\n"
            "launch first (3 2 1) (32 4 1) 65536 stream 5: 1000 7256 2.5\n"
            "launch second (4 2 1) (64 1 1) 0 stream 5 attribute 1 4 (2 1 1): 1016 7256\n"
            "free 7000\n"
            "unload 90a\n");
}

/// The names of a def are not chosen with C in mind.
TEST_F(ExportC, NamesThatCOrTheFunctionHas) {
  ASSERT_EQ(run("./main 80 >as_usual"), 0);
  for (const auto& [a, s, b] : {std::tuple("int", "int_", "arguments"),
                                {"kernels", "stream", "workspace"},
                                {"f_kernels", "status", "f"},
                                {"cuLaunchKernel", "unix", "uint64_t"},
                                {"NAN", "INFINITY", "M_PI"},
                                {"__LINE__", "_Bool", "SIZE_MAX"},
                                {"TENSORC_f_H_", "__func__", "__linux__"},
                                {"_Complex", "_Static_assert", "RAND_MAX"},
                                {"INT8_MAX", "HUGE_VAL", "math_errhandling"}}) {
    compile(a, s, b);
    ASSERT_EQ(run("c++ -fsyntax-only -include math.h -include stdlib.h -x c++ f.h && cc -fsyntax-only -include math.h "
                  "f.c && ./main 80 >out"),
              0)
        << a;
    EXPECT_EQ(folder_.read("out"), folder_.read("as_usual"));
  }
}

/// That of the device's architecture, else of the newest older one of the same major number, else none.
TEST_F(ExportC, TheCodeIsTheDevices) {
  const std::pair<const char*, const char*> cases[] = {
      {"75", "load sm_75\n"}, {"80", "load sm_80\n"}, {"86", "load sm_86\n"},    {"89", "load sm_86\n"},
      {"90", "load 90a\n"},   {"91", "status 209\n"}, {"100", "load sm_100f\n"}, {"103", "load sm_100f\n"}};
  for (const auto& [capability, first_line] : cases) {
    ASSERT_EQ(run(std::string("./main ") + capability + " | head -n 1 >out"), 0);
    EXPECT_EQ(folder_.read("out"), first_line) << capability;
  }
}

}  // namespace
}  // namespace tc::testing
