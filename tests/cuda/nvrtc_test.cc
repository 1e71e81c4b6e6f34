#include "tc/cuda/nvrtc.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tc/cuda/print.h"
#include "tc/tile/promise.h"
#include "tests/cuda/hand_written.h"
#include "tests/cuda/intrinsic_list.h"

namespace tc::cuda {
namespace {

TEST(Arch, Text) {
  EXPECT_EQ(*parse_arch("sm_90a"), (Arch{90, 'a'}));
  EXPECT_EQ(*parse_arch("sm_120"), (Arch{120, '\0'}));
  EXPECT_EQ(to_string(Arch{90, 'a'}), "sm_90a");
  for (const char* wrong : {"", "90", "sm_", "sm_9", "sm_90b", "sm_90aa", "compute_90", "sm_-9"}) {
    const Result<Arch> arch = parse_arch(wrong);
    ASSERT_FALSE(arch) << wrong;
    EXPECT_EQ(arch.error().diagnostics()[0].message,
              std::string("'") + wrong + "' is no GPU architecture; one is written like sm_80 or sm_90a");
  }
}

TEST(Arch, RunsOn) {
  EXPECT_TRUE(runs_on({80, '\0'}, 86));
  EXPECT_FALSE(runs_on({86, '\0'}, 80));
  EXPECT_FALSE(runs_on({80, '\0'}, 90));
  EXPECT_TRUE(runs_on({90, 'a'}, 90));
  EXPECT_FALSE(runs_on({120, 'a'}, 121));
}

TEST(Resources, OfTheAssemblersReport) {
  const auto all = parse_resources(
      "x.cu(3): warning: nothing\n"
      "ptxas info    : 24 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "ptxas         .     32 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 32 bytes cumulative stack size, 1024 bytes smem\n"
      "ptxas info    : (C7518) Potential Performance Loss: wgmma.mma_async instructions are serialized due to program "
      "dependence on compiler-inserted WG.DP in divergent path in the function 'k'\n"
      "ptxas info    : Compiling entry function 'j' for 'sm_90a'\n"
      "ptxas info    : Function properties for j\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.at("k"), (Resources{255, 12, 16, 32, 1024, true}));
  EXPECT_EQ(all.at("j"), (Resources{8, 0, 0, 0, 0, false}));
}

TEST(Nvrtc, WhoNamesALibraryWantsNoOther) {
  setenv("TENSORC_NVRTC", "/nowhere/libnvrtc.so", 1);
  EXPECT_EQ(Nvrtc::candidates(), std::vector<std::string>{"/nowhere/libnvrtc.so"});
  unsetenv("TENSORC_NVRTC");
  EXPECT_GE(Nvrtc::candidates().size(), 3u);
}

TEST(Nvrtc, TensorMapsAndClusters) {
  const Result<const Nvrtc*> found = Nvrtc::get();
  if (!found) GTEST_SKIP() << found.error().to_string();
  const std::string text = print(hand_written::with_maps(64, 128));
  for (const Arch arch : {Arch{90, '\0'}, Arch{90, 'a'}}) {
    const Result<Compiled> compiled = (*found)->compile(text, arch);
    ASSERT_TRUE(compiled) << compiled.error().to_string();
    EXPECT_EQ(compiled->log.find("warning"), std::string::npos) << compiled->log;
    EXPECT_NE(compiled->ptx.find(".param .align 64 .b8 first_param_2[128]"), std::string::npos) << compiled->ptx;
    EXPECT_NE(compiled->ptx.find(".reqnctapercluster 2, 1, 1"), std::string::npos) << compiled->ptx;
  }
}

TEST(Nvrtc, HandWrittenKernels) {
  const Result<const Nvrtc*> found = Nvrtc::get();
  if (!found) GTEST_SKIP() << found.error().to_string();
  const Nvrtc* const compiler = *found;
  const tile::Program programs[] = {hand_written::vector_add(4096),        hand_written::row_sum(64, 1000),
                                    hand_written::matmul(128, 192, 256),   hand_written::scatter(1000, 10),
                                    hand_written::scale_and_reverse(1000), hand_written::large_shared()};
  for (const Arch arch : {Arch{75, '\0'}, Arch{80, '\0'}, Arch{90, 'a'}}) {
    for (const tile::Program& program : programs) {
      const Result<Compiled> compiled = compiler->compile(print(program), arch);
      ASSERT_TRUE(compiled) << program.name << ": " << compiled.error().to_string();
      EXPECT_EQ(compiled->cubin.substr(1, 3), "ELF");
      EXPECT_EQ(compiled->log.find("warning"), std::string::npos) << compiled->log;
      EXPECT_EQ(compiled->resources.size(), program.kernels.size());
      for (const auto& [kernel, resources] : compiled->resources) {
        EXPECT_GT(resources.registers, 0) << kernel;
        EXPECT_EQ(resources.spill_store_bytes, 0) << kernel;
      }
    }
  }
}

TEST(Nvrtc, WhatThePtxMustHold) {
  const Result<const Nvrtc*> found = Nvrtc::get();
  if (!found) GTEST_SKIP() << found.error().to_string();
  const Nvrtc* const compiler = *found;
  const auto ptx = [&](const tile::Program& program) { return compiler->compile(print(program), {80, '\0'})->ptx; };
  EXPECT_NE(ptx(hand_written::vector_add(4096)).find("ld.global.nc.v4"), std::string::npos);
  EXPECT_EQ(ptx(tile::promise(hand_written::vector_add(4096), {.readonly_cache = false})).find("ld.global.nc"),
            std::string::npos);
  EXPECT_NE(ptx(hand_written::row_sum(64, 1000)).find("ld.global.nc.f32"), std::string::npos);
  const std::string matmul = ptx(hand_written::matmul(128, 192, 256));
  EXPECT_NE(matmul.find("cp.async.cg.shared.global"), std::string::npos);
  EXPECT_NE(matmul.find("fma.rn.f32"), std::string::npos);
  EXPECT_NE(matmul.find(".maxntid 256"), std::string::npos);
}

TEST(Nvrtc, StrictDoesNotContract) {
  const Result<const Nvrtc*> found = Nvrtc::get();
  if (!found) GTEST_SKIP() << found.error().to_string();
  const Nvrtc* const compiler = *found;
  const std::string text = print(hand_written::matmul(128, 192, 256));
  EXPECT_EQ(compiler->compile(text, {80, '\0'}, {.strict = true})->ptx.find("fma.rn.f32"), std::string::npos);
}

/// Minutes of work for NVRTC: nothing of it is known before it runs.
std::string slow_text() {
  std::string text = "extern \"C\" __global__ void f(float* a, int n) {\n";
  for (int i = 0; i < 60'000; ++i) {
    text += fmt::format("  a[n * {} % 977] += a[n * {} % 1009] * a[{}];\n", i + 1, i + 7, i % 4096);
  }
  return text + "}\n";
}

TEST(Nvrtc, ACompilationStopsWhenAsked) {
  const Result<const Nvrtc*> found = Nvrtc::get();
  if (!found) GTEST_SKIP() << found.error().to_string();
  const Nvrtc* const compiler = *found;
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto seconds = [begin] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const Result<Compiled> stopped =
      compiler->compile(slow_text(), {80, '\0'}, {.stop = [&seconds] { return seconds() > 0.2; }});
  EXPECT_LT(seconds(), 1.2);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind(), ErrorKind::kCancelled) << stopped.error().to_string();
  EXPECT_TRUE(compiler->compile(print(hand_written::vector_add(4096)), {80, '\0'})) << "and the next one is made";
}

/// Every intrinsic, on every type that it takes, in a few translation units.
TEST(Nvrtc, EveryIntrinsic) {
  const Result<const Nvrtc*> found = Nvrtc::get();
  if (!found) GTEST_SKIP() << found.error().to_string();
  const Nvrtc* const compiler = *found;
  tile::Program all;
  all.name = "intrinsics";
  for (const IntrinsicUse& use : all_intrinsic_uses()) {
    tile::Program one = hand_written::intrinsic(use.name, use.arguments, use.result, 1000);
    one.kernels[0].name += "_" + std::to_string(all.kernels.size());
    all.kernels.push_back(one.kernels[0]);
  }
  const std::string text = print(all);
  ASSERT_GT(all.kernels.size(), 250u);
  if (!compiler) return;
  for (const Arch arch : {Arch{80, '\0'}, Arch{90, 'a'}}) {
    const Result<Compiled> compiled = compiler->compile(text, arch);
    ASSERT_TRUE(compiled) << compiled.error().to_string();
    EXPECT_EQ(compiled->resources.size(), all.kernels.size());
  }
}

TEST(Nvrtc, RefusedTextComesBackWithTheCompilersWords) {
  const Result<const Nvrtc*> found = Nvrtc::get();
  if (!found) GTEST_SKIP() << found.error().to_string();
  const Nvrtc* const compiler = *found;
  const Result<Compiled> compiled = compiler->compile("extern \"C\" __global__ void k() { oops; }", {80, '\0'});
  ASSERT_FALSE(compiled);
  const std::string message = compiled.error().diagnostics()[0].message;
  EXPECT_TRUE(message.starts_with("NVRTC refuses the text for sm_80:\ntensorc.cu(1): error: ")) << message;
  EXPECT_NE(message.find("oops"), std::string::npos);
}

TEST(Nvrtc, AnUnknownArchitectureIsNamed) {
  const Result<const Nvrtc*> found = Nvrtc::get();
  if (!found) GTEST_SKIP() << found.error().to_string();
  const Nvrtc* const compiler = *found;
  const Result<Compiled> compiled = compiler->compile("", {33, '\0'});
  ASSERT_FALSE(compiled);
  const std::string message = compiled.error().diagnostics()[0].message;
  EXPECT_NE(message.find("does not compile for sm_33; it knows sm_"), std::string::npos) << message;
}

}  // namespace
}  // namespace tc::cuda
