#include "tc/cpu/llvm_thread.h"

#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/ErrorHandling.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kernels.h"
#include "tc/support/check.h"

namespace tc::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

void fail_in_llvm() {
  (void)on_llvm_thread<int>([](const Stop&) -> Result<int> {
    llvm::report_fatal_error("a fault on purpose", false);
    return 0;
  });
}

TEST(LlvmThread, AFatalErrorOfLlvmIsOursAndNotTheEndOfTheProcess) {
  EXPECT_NE(message_of(fail_in_llvm).find("LLVM reports: a fault on purpose"), std::string::npos);
  EXPECT_EQ(on_llvm_thread<int>([](const Stop&) { return 7; }).value(), 7) << "and the next one runs";
}

TEST(LlvmThread, FatalErrorsOfManyThreadsAreEachTheirOwn) {
  std::atomic<int> failed = 0, compiled = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 3; ++round) {
        if (t % 2 == 0) {
          failed += !message_of(fail_in_llvm).empty();
        } else {
          compiled += compile_object(matmul_kernel(6, 32, 4 + t)).has_value();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 12);
  EXPECT_EQ(compiled, 12);
}

TEST(LlvmThread, WhatTheWorkThrowsIsThrownToTheCaller) {
  EXPECT_THROW(run_abandonable([](const Stop&) { throw std::out_of_range("x"); }), std::out_of_range);
}

TEST(LlvmThread, WorkThatAsksIsStopped) {
  auto started = std::make_shared<std::atomic<bool>>(false);
  auto heard = std::make_shared<std::atomic<bool>>(false);
  const auto ended = on_llvm_thread<int>(
      [started, heard](const Stop& stops) -> Result<int> {
        *started = true;
        while (!stops()) std::this_thread::yield();
        *heard = true;
        return 7;
      },
      [started] { return started->load(); });
  // On a busy machine the work may get no time before it is left alone.
  EXPECT_TRUE(ended ? *ended == 7 : ended.error().kind() == ErrorKind::kCancelled);
  const auto begin = Clock::now();
  while (!*heard && seconds_since(begin) < 30) std::this_thread::yield();
  EXPECT_TRUE(*heard);
}

TEST(LlvmThread, WorkThatDoesNotAskIsLeftAlone) {
  auto released = std::make_shared<std::atomic<bool>>(false);
  const auto begin = Clock::now();
  const auto stopped = on_llvm_thread<int>(
      [released](const Stop&) -> Result<int> {
        while (!*released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return 7;
      },
      [begin] { return seconds_since(begin) > 0.1; });
  EXPECT_LT(seconds_since(begin), 1.1) << "0.1 s, and no more than a second behind it";
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind(), ErrorKind::kCancelled);
  *released = true;
}

/// One loop of `count` statements, each over the tile that the one before has written.
Kernel chain(int count) {
  using namespace Halide;
  using namespace Halide::Internal;
  const Expr i = variable("i");
  std::vector<Stmt> statements;
  for (int s = 0; s < count; ++s) {
    const Expr before = s == 0 ? load(Float(32), "in", i) : load(Float(32), "t" + std::to_string(s - 1), i);
    const std::string to = s + 1 == count ? "out" : "t" + std::to_string(s);
    statements.push_back(loop("i", 17, store(to, before * 0.5f + float(s), i), ForType::Unrolled));
  }
  Stmt body = block(statements);
  for (int s = 0; s + 1 < count; ++s) {
    body = Allocate::make("t" + std::to_string(s), Float(32), MemoryType::Stack, {17}, const_true(), body);
  }
  return {"chain", {buffer_argument("in", Float(32), 17), buffer_argument("out", Float(32), 17)}, body};
}

TEST(LlvmThread, OneHugeBlockKeepsATimeLimit) {
  const Kernel kernel = chain(400);
  const auto begin = Clock::now();
  const auto object = compile_object(kernel, {.stop = [begin] { return seconds_since(begin) > 0.2; }});
  EXPECT_LT(seconds_since(begin), 1.2);
  EXPECT_TRUE(!object || seconds_since(begin) < 0.5);
}

}  // namespace
}  // namespace tc::cpu
