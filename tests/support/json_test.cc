#include "tc/support/json.h"

#include <gtest/gtest.h>

namespace tc {
namespace {

TEST(Json, StringsAreQuoted) {
  EXPECT_EQ(json_string("a"), R"("a")");
  EXPECT_EQ(json_string("\"\\\n\t\x01"), R"("\"\\\n\u0009\u0001")");
  EXPECT_EQ(json_string(std::string("\0", 1)), R"("\u0000")");
}

TEST(Json, CharactersOfUtf8AreKept) {
  for (const char* text : {"é", "→", "\xF0\x9F\x99\x82", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(json_string(text), std::string("\"") + text + "\"");
  }
}

TEST(Json, BytesThatAreNoUtf8BecomeOneMarkEach) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(json_string("a\xFFz"), "\"a" + mark + "z\"");
  EXPECT_EQ(json_string("\xC3"), "\"" + mark + "\"");                                   // ends early
  EXPECT_EQ(json_string("\xC0\x80"), "\"" + mark + mark + "\"");                        // longer than need be
  EXPECT_EQ(json_string("\xED\xA0\x80"), "\"" + mark + mark + mark + "\"");             // half of a pair
  EXPECT_EQ(json_string("\xF4\x90\x80\x80"), "\"" + mark + mark + mark + mark + "\"");  // beyond the last character
}

TEST(Json, ObjectsAndLists) {
  EXPECT_EQ(json_object({}), "{}");
  EXPECT_EQ(json_object({{"a", "1"}, {"b", "[]"}}), R"({"a": 1, "b": []})");
  EXPECT_EQ(json_array({}), "[]");
  EXPECT_EQ(json_array({"1", "2"}), "[1, 2]");
  EXPECT_EQ(json_list({}), "[]\n");
  EXPECT_EQ(json_list({"1", "2"}), "[1,\n 2]\n");
}

}  // namespace
}  // namespace tc
