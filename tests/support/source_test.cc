#include "tc/support/source.h"

#include <gtest/gtest.h>

#include <memory>

#include "tc/support/check.h"
#include "tc/support/result.h"

namespace tc {
namespace {

TEST(Source, PositionsCountLinesAndBytesFromOne) {
  const Source source("s.tc", "ab\nc\n\nd");
  EXPECT_EQ(source.position(0), (LineColumn{1, 1}));
  EXPECT_EQ(source.position(2), (LineColumn{1, 3}));  // the end of a line belongs to it
  EXPECT_EQ(source.position(3), (LineColumn{2, 1}));
  EXPECT_EQ(source.position(5), (LineColumn{3, 1}));
  EXPECT_EQ(source.position(7), (LineColumn{4, 2}));  // the end of the text
}

TEST(Source, LinesComeWithoutTheirEnds) {
  const Source source("s.tc", "ab\r\nc\rd\n\n");
  EXPECT_EQ(source.line(1), "ab");
  EXPECT_EQ(source.line(2), "c\rd");  // a carriage return alone ends no line
  EXPECT_EQ(source.line(3), "");
  EXPECT_EQ(source.line(4), "");
  EXPECT_THROW(source.line(5), InternalError);
}

TEST(Source, TextOutsideIsOurFault) {
  const Source source("s.tc", "abc");
  EXPECT_EQ(source.text({1, 3}), "bc");
  EXPECT_THROW(source.text({2, 4}), InternalError);
}

std::string error_at(const std::string& text, SourceRange range) {
  return Error(std::make_shared<const Source>("s.tc", text), range, "wrong").to_string();
}

TEST(Error, MarksTheExactText) {
  EXPECT_EQ(error_at("one\n\ttwo three\n", {9, 14}),
            "s.tc:2:6: error: wrong\n"
            "    \ttwo three\n"
            "    \t    ^~~~~\n");
}

TEST(Error, MarksTheEndOfTheText) {
  EXPECT_EQ(error_at("abc", {3, 3}),
            "s.tc:1:4: error: wrong\n"
            "    abc\n"
            "       ^\n");
}

TEST(Error, KeepsTheMarkerWithinTheLine) {
  EXPECT_EQ(error_at("abc\ndef", {1, 6}),
            "s.tc:1:2: error: wrong\n"
            "    abc\n"
            "     ^~\n");
}

TEST(Error, ShowsAWindowOfAVeryLongLine) {
  const std::string text = error_at(std::string(1000, 'x') + "\rY" + std::string(1000, 'z'), {1001, 1002});
  EXPECT_EQ(text, "s.tc:1:1002: error: wrong\n    " + std::string(99, 'x') + "?Y" + std::string(99, 'z') + "\n    " +
                      std::string(100, ' ') + "^\n");
}

TEST(Error, HasNotesAndDiagnosticsWithoutAPlace) {
  const auto source = std::make_shared<const Source>("s.tc", "abc");
  const Error error(source, {{SourceRange{0, 1}, "first", {{SourceRange{1, 2}, "here"}, {std::nullopt, "anywhere"}}},
                             {std::nullopt, "second", {}}});
  EXPECT_EQ(error.to_string(),
            "s.tc:1:1: error: first\n"
            "    abc\n"
            "    ^\n"
            "s.tc:1:2: note: here\n"
            "    abc\n"
            "     ^\n"
            "note: anywhere\n"
            "error: second\n");
}

TEST(Check, ThrowsWithThePlaceAndTheMessage) {
  try {
    TC_CHECK(1 == 2, "{} is not {}", 1, 2);
    FAIL() << "TC_CHECK let a false condition pass";
  } catch (const InternalError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("source_test.cc"), std::string::npos) << text;
    EXPECT_NE(text.find("1 == 2"), std::string::npos) << text;
    EXPECT_NE(text.find("1 is not 2"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tc
