#include "tests/compile/ptx.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tc/cuda/nvrtc.h"
#include "tc/cuda/print.h"
#include "tc/tile/promise.h"
#include "tests/common/examples.h"
#include "tests/compile/programs.h"
#include "tests/random/choices.h"
#include "tests/random/random.h"

/// The PTX that NVIDIA's compiler makes of the text. No load through the read-only path can read what its kernel
/// writes, or what a kernel writes that may still run. No two integer extrema can become the instruction that ptxas
/// gets wrong.
namespace tc::compile {
namespace {

using testing::Random;

/// Why the process has no NVRTC; "" if it has one.
std::string why_no_nvrtc() {
  const Result<const cuda::Nvrtc*> found = cuda::Nvrtc::get();
  return found ? "" : found.error().to_string();
}

/// A def up to its CUDA text, all sizes `extent` (of windows: 3) and all scalars that are compiled in 1.
Result<Compilation> printed(const std::string& text, int64_t extent, const options::MappingOptions& mapping = {}) {
  Settings settings = testing::settings_for({});
  settings.backend = Backend::kCuda;
  settings.mapping = mapping;
  Compilation compilation = testing::compilation_of(text);
  TC_TRY_VOID(run_passes(settings, compilation, "program"));
  for (const std::string& size : compilation.program->sizes) {
    settings.given.sizes[size] = size.starts_with("K") && size.size() == 2 ? 3 : extent;
  }
  for (const ir::Scalar& scalar : compilation.program->scalars) {
    if (!scalar.type.is_float()) settings.given.scalars[scalar.name] = 1;
  }
  TC_TRY_VOID(run_passes(settings, compilation, "cuda"));
  return compilation;
}

/// What is wrong with the PTX of a compilation, a line each.
std::string faults_of(const Compilation& compilation, int* loads = nullptr) {
  const Result<cuda::Compiled> compiled = cuda::Nvrtc::get().value()->compile(compilation.cuda_text, {90, 'a'});
  if (!compiled) return compiled.error().to_string();
  std::string text;
  for (const std::string& fault : testing::stale_loads(compiled->ptx)) text += fault + "\n";
  for (const std::string& fault : testing::joined_extrema(compiled->ptx)) text += fault + "\n";
  // NVVM 12.9 to 13.5 lose what a choice puts into a register that assembly reads and writes.
  if (compilation.cuda_text.find("\"+r\"") != std::string::npos) text += "assembly reads and writes one register\n";
  const auto kernels = testing::kernels_of_ptx(compiled->ptx);
  tile::KernelsBefore before;
  for (const tile::Kernel& kernel : compilation.mapping->program.kernels) {
    for (const testing::ReadOnlyLoad& load : kernels.at(kernel.name).read_only_loads) {
      if (loads) ++*loads;
      for (const int parameter : load.parameters) {
        if (parameter >= static_cast<int>(kernel.tensors.size())) continue;
        const std::string& name = kernel.tensors[static_cast<size_t>(parameter)].name;
        if (before.are_anybodys() || !before.write(name)) continue;
        text += fmt::format("{}: '{}' may read '{}', which a kernel before writes\n", kernel.name, load.text, name);
      }
    }
    before.add(kernel);
  }
  return text.empty() ? text : text + compilation.cuda_text;
}

constexpr const char* kMerged = R"(
def f(int32(N,M) A, int32(N,M) B) -> (int32(N,M) T0) {
  T0(i,j) max= (j <= i ? (T0(i,j) + (B(i,j) - T0(i,j))) : T0(N-1-i,j)) where i in 0:N, j in 0:M
  T0(i,j) max=! min(int32(1),A(i,j-2)) where i in 1:N, j in 4:M, k in 0:N-1
  T0(i,j) = (T0(i,j) * (i <= i ? (int32(3) * int32(3)) : (int32(1) - T0((j*1+1)%N,j/2)))) where i in 2:N, j in 0:M
})";

/// Of rows in the middle nobody needs what the second statement reads.
constexpr const char* kOverwritten = R"(
def f(double(N) X) -> (double(M,N) T) {
  T(i,j) = 6.0 where i in 0:M, j in 0:N
  T(i,j) = T(i,N-1-j) where j in 0:N
  T(i,j) = X(j) where i in 3:M-4
})";

TEST(Ptx, AChoiceOfAnInputAndAWrittenTensorReadsBothAsTheyAre) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const auto& [text, size] : {std::pair(kMerged, 5), std::pair(kOverwritten, 20)}) {
    const Result<Compilation> compilation = printed(text, size);
    ASSERT_TRUE(compilation) << compilation.error().to_string();
    EXPECT_EQ(faults_of(*compilation), "");
  }
}

/// The test above fails where the text promises what it did once.
TEST(Ptx, WithoutTheCureTheReaderOfPtxSeesTheFault) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const auto& [text, size] : {std::pair(kMerged, 5), std::pair(kOverwritten, 20)}) {
    Result<Compilation> compilation = printed(text, size);
    ASSERT_TRUE(compilation) << compilation.error().to_string();
    for (tile::Tensor& tensor : compilation->mapping->program.kernels.at(0).tensors) tensor.restricted = true;
    compilation->cuda_text = cuda::print(compilation->mapping->program);
    EXPECT_NE(faults_of(*compilation).find("which the kernel writes"), std::string::npos) << compilation->cuda_text;
  }
}

/// A kernel that writes nothing but restricted tensors, or nothing but by boxes, gives NVVM no store that may write
/// what it loads. It took these loads for read-only, and ptxas moved them before the wait for the kernel that writes
/// it.
constexpr const char* kReadBehindWait[] = {
    R"(
def f(int8(N) A) -> (int8(N) T) {
  T(0) min=! T(i / 2) + A(i) where i in 3:N - 3
  T((N - 1 - i) / 2) += T(i) where i in 2:N - 4, j in 0:N
})",
    R"(
def f(half(K,K) A, half(K,K) B, half(K,K) W) -> (half(K) b, half(K,K) C) {
  b(n) max=! W(n,k)
  float S(m,n) +=! A(m,k) * B(k,n)
  C(m,n) = half(S(m,n) + b(n))
})",
};

/// Threads pass T on over a barrier. Beside a result that is restricted NVVM loaded it before the barrier.
TEST(Ptx, WhatThreadsPassOnIsReadBehindTheBarrier) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const Result<Compilation> compilation = printed(R"(
def f(float(N) A) -> (float(N,M,N) R, float(M) T) {
  T(j) = 1.0 where j in 0:M
  R(i,j,k) = T(j) where i in 0:N, j in 0:M, k in 0:N
})",
                                                  6);
  ASSERT_TRUE(compilation) << compilation.error().to_string();
  ASSERT_NE(compilation->cuda_text.find("__restrict__ R"), std::string::npos) << compilation->cuda_text;
  const auto loads_of_t = [](const std::string& cuda) {
    const Result<cuda::Compiled> compiled = cuda::Nvrtc::get().value()->compile(cuda, {90, 'a'});
    const size_t barrier = compiled ? compiled->ptx.find("bar.sync") : std::string::npos;
    const size_t last = compiled ? compiled->ptx.rfind("ld.global.f32") : 0;
    return barrier != std::string::npos && last != std::string::npos && last > barrier;
  };
  std::string cuda = compilation->cuda_text;
  EXPECT_TRUE(loads_of_t(cuda)) << cuda;
  const size_t at = cuda.find(" = unpromised(T)");
  ASSERT_NE(at, std::string::npos) << cuda;
  EXPECT_FALSE(loads_of_t(cuda.erase(at, 16))) << "NVVM has changed";
}

/// Of sums of narrow numbers times a negative one NVVM 13.0 makes dp2a of 32 bits, and extends some with zeros.
TEST(Ptx, SumsOf64BitsAreMadeBy64Bits) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const Result<Compilation> compilation = printed(R"(
def f(int32(N) A) -> (uint64(N,2) T) {
  T(0,i / 2) += -uint16(3) * uint16(A(i)) where i in 0:2, j in 0:13, k in 0:13
})",
                                                  16);
  ASSERT_TRUE(compilation) << compilation.error().to_string();
  const auto has_short_sums = [](const std::string& cuda) {
    const Result<cuda::Compiled> compiled = cuda::Nvrtc::get().value()->compile(cuda, {90, 'a'});
    return !compiled || compiled->ptx.find("dp2a") != std::string::npos;
  };
  std::string cuda = compilation->cuda_text;
  EXPECT_FALSE(has_short_sums(cuda)) << cuda;
  const size_t at = cuda.rfind("* widened(");
  ASSERT_NE(at, std::string::npos) << cuda;
  for (size_t i = at; i != std::string::npos; i = cuda.rfind("* widened(")) cuda.erase(i + 2, 7);
  EXPECT_TRUE(has_short_sums(cuda)) << "NVVM has changed";
}

TEST(Ptx, WhatAKernelBeforeWritesIsReadBehindTheWait) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const char* text : kReadBehindWait) {
    const Result<Compilation> compilation = printed(text, 64);
    ASSERT_TRUE(compilation) << compilation.error().to_string();
    EXPECT_NE(compilation->cuda_text.find("unpromised("), std::string::npos) << compilation->cuda_text;
    EXPECT_EQ(faults_of(*compilation), "");
  }
}

/// The test above fails where the text keeps the addresses that the kernel was given.
TEST(Ptx, WithoutNewAddressesTheReaderOfPtxSeesTheFault) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  Result<Compilation> compilation = printed(kReadBehindWait[0], 64);
  ASSERT_TRUE(compilation) << compilation.error().to_string();
  std::string& cuda = compilation->cuda_text;
  for (size_t at = cuda.find(" = unpromised("); at != std::string::npos; at = cuda.find(" = unpromised(", at)) {
    cuda.erase(at, cuda.find(';', at) - at);
  }
  EXPECT_NE(faults_of(*compilation).find("which a kernel before writes"), std::string::npos) << cuda;
}

constexpr const char* kNegated[] = {
    "def f(int16(N,N) A) -> (int16(N) T) { T(i) max=! -A(i,j) }",
    "def f(int16(N) A, int32(N) B) -> (int32(N) T) { T(i) = int32(int16(0) - A(i)) + B(i) }",
    "def f(int16(N) A, int32(N) B) -> (int32(N) T) { T(i) = int32(A(i) * int16(-1)) + B(i) }",
    "def f(int16(N) A) -> (int16(N) T) { T(i) = A(i) < int16(3) ? -A(i) : A(i) / int16(7) }",
    "def f(int16(N) A, int32(N) B) -> (int32(N) T) { T(i) = int32(abs(A(i))) + B(i) }",
};

/// ptxas 13.0 makes one 32-bit negation of neg.s16 and the extension of its sign, which is wrong for -32768.
TEST(Ptx, NoNarrowIntegerIsNegated) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const char* text : kNegated) {
    const Result<Compilation> compilation = printed(text, 8);
    ASSERT_TRUE(compilation) << compilation.error().to_string();
    EXPECT_EQ(faults_of(*compilation), "") << text;
    const Result<cuda::Compiled> compiled = cuda::Nvrtc::get().value()->compile(compilation->cuda_text, {90, 'a'});
    ASSERT_TRUE(compiled) << compiled.error().to_string();
    EXPECT_EQ(compiled->ptx.find("neg.s16"), std::string::npos) << compilation->cuda_text;
    EXPECT_EQ(compiled->ptx.find("abs.s16"), std::string::npos) << compilation->cuda_text;
  }
}

/// Each maximum or minimum below would be joined with the next one: in a line, over a loop, through memory, and where
/// NVVM finds it in a choice.
constexpr const char* kExtrema[] = {
    "def f(int32(1) J) -> (int32(2,2) T0) { T0(J(0),(i + i) / 2) max=! 0 - T0(j,i) where i in 0:2, j in 0:2 }",
    "def f(int32(8) A) -> (int32 T0) { T0 min= T0 - T0 - A(i) where i in 0:4 }",
    "def f(int32(N) A, int32(N) B, int32(N) C) -> (T) { T(i) = max(max(A(i), -B(i)), C(i)) }",
    "def f(int16(N) A, int16(N) B, int16(N) C) -> (T) { T(i) = max(max(A(i), -B(i)), C(i)) }",
    "def f(int32(N) A, int32(N) B, int32(N) C) -> (T) { T(i) = max(int32(max(int64(A(i)), int64(-B(i)))), C(i)) }",
    "def f(int32(N) A, int32(N) B, int32(N) C) -> (T) { T(i) = max(A(i) > -B(i) ? A(i) : -B(i), C(i)) }",
    "def f(uint32(N) A) -> (int32(N) T) { T(i) = max(int32(int32(A(i)) > int32(-A(0)) ? A(i) : -A(0)), int32(A(1))) }",
    "def f(int32(N) A, int32(N) B) -> (T) { T(i) = max(abs(A(i)), max(B(i), -abs(B(i)))) }",
};

TEST(Ptx, NoExtremumOfSignedIntegersIsAnOperandOfAnother) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const char* text : kExtrema) {
    const Result<Compilation> compilation = printed(text, 8);
    ASSERT_TRUE(compilation) << compilation.error().to_string();
    EXPECT_EQ(faults_of(*compilation), "") << text;
  }
}

/// The test above fails where the text hides nothing.
TEST(Ptx, TheReaderOfPtxSeesExtremaThatAreJoined) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const char* text : kExtrema) {
    Result<Compilation> compilation = printed(text, 8);
    ASSERT_TRUE(compilation) << compilation.error().to_string();
    std::string& cuda = compilation->cuda_text;
    for (const char* hides : {"  asm(\"prmt", "  asm(\"mov.b64"}) {
      for (size_t at = cuda.find(hides); at != std::string::npos; at = cuda.find(hides)) {
        cuda.replace(at, cuda.find('\n', at) - at, "  same = x;");
      }
    }
    EXPECT_NE(faults_of(*compilation).find("takes what"), std::string::npos) << cuda;
  }
}

/// What the inner choice loads was lost where opaque() read and wrote one register: an address was summed.
TEST(Ptx, ChoicesInChoicesKeepWhatTheyLoad) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const Result<Compilation> compilation = printed(R"(
def f(uint64(K,M) A, uint64(M,M) B) -> (uint64(K) T) {
  T(i) += uint64(3) < T(K - 1 - i) ? B(0,0) * T(j) : (0 <= i - 3 ? A(i - 3,0) : T(j)) where i in 0:K, j in 0:K
})",
                                                  33);
  ASSERT_TRUE(compilation) << compilation.error().to_string();
  ASSERT_NE(compilation->cuda_text.find("opaque(0 <="), std::string::npos) << compilation->cuda_text;
  EXPECT_EQ(faults_of(*compilation), "");
}

options::MappingOptions random_options(uint64_t seed) {
  Random random(seed);
  options::MappingOptions options;
  if (seed % 2 == 0) return options;
  if (random.chance(50)) options.outer_schedule_options.fusion = static_cast<options::Fusion>(random.below(3));
  if (random.chance(50)) options.map_to_threads = {random.range(1, 8)};
  if (random.chance(50)) options.map_to_blocks = {random.range(1, 4)};
  if (random.chance(30)) options.use_private_memory = false;
  if (random.chance(30)) options.use_shared_memory = false;
  return options;
}

TEST(Ptx, RandomChoices) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const char* count = std::getenv("TC_RANDOM_PROGRAMS");
  const uint64_t programs = count ? std::stoull(count) : 40;
  uint64_t done = 0;
  int loads = 0;
  for (uint64_t seed = 1; seed <= programs; ++seed) {
    const std::string text = testing::random_choices(seed);
    const Result<Compilation> compilation = printed(text, seed % 3 == 0 ? 33 : 6, random_options(seed));
    if (!compilation) continue;
    ++done;
    EXPECT_EQ(faults_of(*compilation, &loads), "") << text;
  }
  EXPECT_GE(done, programs * 8 / 10);
  EXPECT_GT(loads, static_cast<int>(done));
}

TEST(Ptx, Examples) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  int done = 0, loads = 0;
  for (const auto& file : testing::examples()) {
    const Result<Compilation> compilation = printed(testing::text_of(file), 16);
    if (!compilation) continue;
    ++done;
    EXPECT_EQ(faults_of(*compilation, &loads), "") << file;
  }
  EXPECT_GE(done, 15);
  EXPECT_GE(loads, 60);
}

}  // namespace
}  // namespace tc::compile
