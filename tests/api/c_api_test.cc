#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "tc/api/tc_c.h"

extern "C" {
int c_api_computes(void);
int c_api_reports_errors(void);
int c_api_emits(void);
}

namespace {

TEST(CApi, Computes) { EXPECT_EQ(c_api_computes(), 0) << "in c_api.c, see the line"; }

TEST(CApi, ReportsErrors) { EXPECT_EQ(c_api_reports_errors(), 0) << "in c_api.c, see the line"; }

TEST(CApi, EmitsStages) { EXPECT_EQ(c_api_emits(), 0) << "in c_api.c, see the line"; }

TEST(CApi, EveryThreadHasItsOwnError) {
  tc_engine* engine = nullptr;
  ASSERT_EQ(tc_engine_create("def f(", "here", &engine), TC_ERROR_USER);
  std::thread([] { EXPECT_STREQ(tc_last_error(), ""); }).join();
  EXPECT_EQ(std::string(tc_last_error()).substr(0, 5), "here:");
}

struct Handles {
  tc_engine* engine = nullptr;
  tc_request* request = nullptr;
  tc_kernel* kernel = nullptr;
  ~Handles() {
    tc_kernel_destroy(kernel);
    tc_request_destroy(request);
    tc_engine_destroy(engine);
  }
};

tc_status compile_of_size(Handles& handles, int64_t size) {
  EXPECT_EQ(tc_request_create(nullptr, &handles.request), TC_OK);
  EXPECT_EQ(tc_request_size(handles.request, "N", size), TC_OK);
  EXPECT_EQ(tc_request_options(handles.request, "unroll: 2"), TC_OK);
  return tc_compile(handles.engine, handles.request, &handles.kernel);
}

TEST(CApi, CachesAndRunsInProduction) {
  const char* const text = "def f(float(N) x) -> (y) { y(i) = x(i) + 1 }";
  const std::string cache = testing::TempDir() + "c_api_" + std::to_string(getpid()) + ".cache";
  std::filesystem::remove(cache);
  Handles first, second, production, missing;
  ASSERT_EQ(tc_engine_create_cached(text, "f.tc", cache.c_str(), 1, &first.engine), TC_ERROR_USER) << "no such file";
  ASSERT_EQ(tc_engine_create_cached(text, "f.tc", cache.c_str(), 0, &first.engine), TC_OK) << tc_last_error();
  ASSERT_EQ(compile_of_size(first, 7), TC_OK) << tc_last_error();
  EXPECT_EQ(tc_kernel_from_cache(first.kernel), 0);
  EXPECT_NE(std::string(tc_kernel_options(first.kernel)).find("unroll: 2"), std::string::npos);
  double ms = -1;
  EXPECT_STREQ(tc_kernel_pass(first.kernel, 0, &ms), "parse");
  EXPECT_GE(ms, 0);
  EXPECT_STREQ(tc_kernel_pass(first.kernel, 1, nullptr), "analyse");
  EXPECT_EQ(tc_kernel_pass(first.kernel, 1000, &ms), nullptr);
  ASSERT_EQ(tc_engine_create_cached(text, "f.tc", cache.c_str(), 1, &second.engine), TC_OK) << tc_last_error();
  ASSERT_EQ(compile_of_size(second, 7), TC_OK) << tc_last_error();
  EXPECT_EQ(tc_kernel_from_cache(second.kernel), 1);
  EXPECT_EQ(tc_kernel_pass(second.kernel, 0, &ms), nullptr);
  EXPECT_STREQ(tc_kernel_options(second.kernel), tc_kernel_options(first.kernel));
  ASSERT_EQ(tc_engine_create_production(cache.c_str(), nullptr, nullptr, &production.engine), TC_OK) << tc_last_error();
  EXPECT_STREQ(tc_engine_entry(production.engine, 0), "f");
  ASSERT_EQ(compile_of_size(production, 7), TC_OK) << tc_last_error();
  EXPECT_EQ(tc_kernel_from_cache(production.kernel), 1);
  ASSERT_EQ(tc_engine_create_production(cache.c_str(), text, "f.tc", &missing.engine), TC_OK) << tc_last_error();
  EXPECT_EQ(compile_of_size(missing, 8), TC_ERROR_USER);
  EXPECT_EQ(tc_engine_create_production(nullptr, text, "f.tc", &production.engine), TC_ERROR_USER);
  std::filesystem::remove(cache);
}

TEST(CApi, HasAVersion) { EXPECT_STREQ(tc_version(), "0.1.0"); }

}  // namespace
