#include "tc/api/editor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <string>

namespace tc::api {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Editor, CheckHasErrorsOfTheTextInItsJson) {
  const Result<std::string> json = check("def f(float(N) x) -> (y) { y(i) = z(i) }", "f.tc");
  ASSERT_TRUE(json) << json.error().to_string();
  EXPECT_TRUE(has(*json, R"("file": "f.tc")")) << *json;
  EXPECT_TRUE(has(*json, R"("ok": false)")) << *json;
  EXPECT_TRUE(has(*json, R"("message": "'z' is neither a tensor nor an intrinsic", "range": {"begin": {"offset": 34,)"))
      << *json;
}

TEST(Editor, CheckGoesOnWithTheOtherDefs) {
  const Result<std::string> json =
      check("def f(float(N) x) -> (y) { y(i) = z(i) }\ndef g(float(N) x) -> (y) { y(i) = x(i) }");
  ASSERT_TRUE(json);
  EXPECT_FALSE(has(*json, R"({"def": "f", "generic")")) << *json;
  EXPECT_TRUE(has(*json, R"({"def": "g", "generic")")) << *json;
}

TEST(Editor, CheckStopsAtItsTimeLimit) {
  const char* text =
      "def f(float(N,M) A) -> (O) {\n"
      "  O(i) +=! (((i*3+j*7)/5)%3 < 2 && (i/2+j/3)%7 >= 1 && ((i*4+j*8+1)/6)%4 < 3 && (i/3+j/4)%8 >= 1) ?\n"
      "    A((i*3+j)/5, (i+j*7)/11%3) : 0.0 where i in 0:N, j in 0:M\n}\n"
      "def g(float(N) x) -> (y) { y(i) = x(i) }";
  const auto start = std::chrono::steady_clock::now();
  const Result<std::string> json = check(text, "hard.tc", {.time_limit_ms = 300});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  ASSERT_TRUE(json);
  EXPECT_TRUE(has(*json, R"("kind": "budget", "def": "f", "message": "this def needs more than the compile budget)" +
                             std::string(R"( of 300 ms", "range": {"begin": {"offset": 4,)")))
      << *json;
  EXPECT_TRUE(has(*json, R"("def": "g", "message": "the time limit of 300 ms ended the check before 'g'")")) << *json;
}

TEST(Editor, CheckCountsTheInstancesThatItsTimeLimitLeaves) {
  const char* hard =
      "def f<T: float>(T(N,M) A) -> (O) {\n"
      "  O(i) +=! (((i*3+j*7)/5)%3 < 2 && (i/2+j/3)%7 >= 1 && ((i*4+j*8+1)/6)%4 < 3 && (i/3+j/4)%8 >= 1) ?\n"
      "    A((i*3+j)/5, (i+j*7)/11%3) : T(0.0) where i in 0:N, j in 0:M\n}\n";
  const Result<std::string> json = check(hard, "hard.tc", {.time_limit_ms = 300});
  ASSERT_TRUE(json);
  EXPECT_TRUE(has(*json, R"({"severity": "error", "kind": "budget", "def": "f", "message": "the time limit of 300 )" +
                             std::string("ms left 4 of 4 instances unchecked: f<float32>, f<float64>, f<float16>, ")))
      << *json;
  EXPECT_FALSE(has(*json, "instances with errors")) << *json;

  std::string many = "def f<A, B>(A(N) x, B(N) y) -> (float(N) z) {\n";
  for (int i = 0; i < 100; ++i) many += "  z(i) = float(x(i)) + float(y(i))\n";
  const auto start = std::chrono::steady_clock::now();
  const Result<std::string> some = check(many + "}", "many.tc", {.time_limit_ms = 20});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  ASSERT_TRUE(some);
  EXPECT_TRUE(has(*some, R"("ok": false,)")) << *some;
  EXPECT_TRUE(has(*some, R"("message": "the time limit of 20 ms left )")) << *some;
  EXPECT_TRUE(has(*some, " of 64 instances unchecked: ")) << *some;
  EXPECT_FALSE(has(*some, "instances with errors")) << *some;
}

TEST(Editor, CheckIsCancelled) {
  std::stop_source stop;
  stop.request_stop();
  const Result<std::string> json =
      check("def f(float(N) x) -> (y) { y(i) = x(i) }", "f.tc", {.cancel = stop.get_token()});
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().kind(), ErrorKind::kCancelled);
}

TEST(Editor, CheckRefusesOptionsThatFitNoDef) {
  const char* text = "def f(float(N) x) -> (y) { y(i) = x(i) }";
  EXPECT_EQ(check(text, "f.tc", {.time_limit_ms = 0}).error().to_string(),
            "error: the time limit is 0 ms; it must be at least 1\n");
  EXPECT_EQ(check(text, "f.tc", {.types = {{"T", ScalarType::kFloat32}}}).error().to_string(),
            "error: types are given for generic defs, and 'f.tc' has none\n");
}

TEST(Editor, OneInstanceIsEnoughWhereAsked) {
  const char* text = "def f<T: float>(T(N) x) -> (y) { y(i) = x(i) }";
  EXPECT_TRUE(has(*check(text), R"("def": "f<float64>")"));
  const std::string first = *check(text, "f.tc", {.first_instance = true});
  EXPECT_TRUE(has(first, R"("def": "f<float32>")")) << first;
  EXPECT_FALSE(has(first, R"("def": "f<float64>")")) << first;
}

TEST(Editor, FormatIsCanonical) {
  EXPECT_EQ(*format("def f(float(N) x)->(y){y(i)=2*x(i)}"), "def f(float32(N) x) -> (y) {\n  y(i) = 2 * x(i)\n}\n");
  EXPECT_EQ(format("def", "f.tc").error().to_string().substr(0, 9), "f.tc:1:4:");
}

TEST(Editor, WordsAreThoseOfTheTables) {
  const std::string json = words();
  EXPECT_TRUE(has(json, R"({"name": "exists", "meaning": )")) << json;
  EXPECT_TRUE(has(json, R"({"name": "half", "type": "float16", "bits": 16})")) << json;
  EXPECT_TRUE(has(json, R"({"name": "fma", "alias": "fmaf", "min_arguments": 3, "max_arguments": 3,)")) << json;
  EXPECT_TRUE(has(json, R"("symbols": [")")) << json;
}

}  // namespace
}  // namespace tc::api
