#include <gtest/gtest.h>

#include <thread>

#include "tc/api/tc_c.h"

extern "C" {
int c_api_computes(void);
int c_api_reports_errors(void);
}

namespace {

TEST(CApi, Computes) { EXPECT_EQ(c_api_computes(), 0) << "in c_api.c, see the line"; }

TEST(CApi, ReportsErrors) { EXPECT_EQ(c_api_reports_errors(), 0) << "in c_api.c, see the line"; }

TEST(CApi, EveryThreadHasItsOwnError) {
  tc_engine* engine = nullptr;
  ASSERT_EQ(tc_engine_create("def f(", "here", &engine), TC_ERROR_USER);
  std::thread([] { EXPECT_STREQ(tc_last_error(), ""); }).join();
  EXPECT_EQ(std::string(tc_last_error()).substr(0, 5), "here:");
}

TEST(CApi, HasAVersion) { EXPECT_STREQ(tc_version(), "0.1.0"); }

}  // namespace
