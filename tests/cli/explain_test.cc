#include <gtest/gtest.h>

#include "tests/cli/process.h"

/// The command explain: what it takes, where it writes, what it refuses. tests/compile/explain_test.cc has what it
/// says.
namespace tc::cli {
namespace {

using testing::Folder;
using testing::Output;

class Explain : public ::testing::Test {
 protected:
  Explain() {
    folder_.write("mm.tc", "def mm(float(M,K) A, float(K,N) B) -> (C) {\n  C(m,n) +=! A(m,k) * B(k,n)\n}\n");
    folder_.write("two.tc", "def f(float(N) x) -> (y) { y(i) = x(i) }\ndef g(float(N) x) -> (y) { y(i) = 2 * x(i) }\n");
  }

  std::string good(std::vector<std::string> words) {
    words.insert(words.begin(), "explain");
    const Output output = folder_.run(words);
    EXPECT_EQ(output.code, 0) << output.err;
    EXPECT_EQ(output.err, "");
    return output.out;
  }

  std::string error(std::vector<std::string> words) {
    words.insert(words.begin(), "explain");
    const std::vector<std::string> before = folder_.files();
    const Output output = folder_.run(words);
    EXPECT_EQ(output.code, 1) << output.out;
    EXPECT_EQ(output.out, "");
    EXPECT_EQ(folder_.files(), before);
    return output.err;
  }

  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  Folder folder_;
};

TEST_F(Explain, NeedsAFileThatIsThere) {
  EXPECT_EQ(error({"no.tc"}), "error: cannot open 'no.tc': No such file or directory\n");
}

TEST_F(Explain, NeedsEverySize) {
  EXPECT_EQ(error({"mm.tc"}),
            "error: sizes 'M', 'K', 'N' of 'mm' have no value; give them by --sizes=M=...,K=...,N=...\n");
  EXPECT_EQ(error({"mm.tc", "--sizes=M=2,N=3"}), "error: size 'K' of 'mm' has no value; give it by --sizes=K=...\n");
}

TEST_F(Explain, NeedsADefOfTheFile) {
  EXPECT_EQ(error({"two.tc", "--sizes=N=8"}), "error: 'two.tc' has 2 defs; choose one by --entry: f, g\n");
  EXPECT_EQ(error({"mm.tc", "--entry=mn"}), "error: there is no def 'mn'; did you mean 'mm'?\n");
}

TEST_F(Explain, RefusesWhatItCannotShow) {
  EXPECT_EQ(error({"mm.tc", "--format=pdf"}), "error: there is no format 'pdf'; there are text, json and html\n");
  EXPECT_EQ(error({"mm.tc", "--backend=interp"}),
            "error: the backend interp compiles nothing that could be explained\n");
  EXPECT_EQ(error({"mm.tc", "-o", "mm.tc"}), "error: '--output=mm.tc' would replace the program that is read\n");
  EXPECT_EQ(error({"mm.tc", "--backend=sim", "--cache=c.tcc"}), "error: '--cache' is for the backends cpu and cuda\n");
}

TEST_F(Explain, TheNameOfTheOutputDecidesTheFormat) {
  const std::string sizes = "--sizes=M=64,K=32,N=16";
  const std::string text = good({"mm.tc", sizes}), json = good({"mm.tc", sizes, "--format=json"});
  EXPECT_TRUE(has(text, "kernel nest_0: ")) << text;
  EXPECT_TRUE(json.starts_with("{\"version\": 1, \"def\": \"mm\"")) << json;
  EXPECT_EQ(good({"mm.tc", sizes, "-o", "mm.json"}), "");
  EXPECT_EQ(folder_.read("mm.json"), json);
  EXPECT_EQ(good({"mm.tc", sizes, "-o", "mm.html"}), "");
  EXPECT_TRUE(folder_.read("mm.html").starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(good({"mm.tc", sizes, "-o", "mm.html", "--format=text"}), "");
  EXPECT_EQ(folder_.read("mm.html"), text);
}

TEST_F(Explain, SaysWhatACacheHas) {
  const std::string sizes = "--sizes=M=64,K=32,N=16";
  ASSERT_EQ(folder_.run({"run", "mm.tc", "--sizes=M=8,K=8,N=8", "--cache=c.tcc", "--output_dir="}).code, 0);
  EXPECT_TRUE(has(good({"mm.tc", sizes, "--cache=c.tcc"}), "  cache: c.tcc lacks the kernel\n"));
  ASSERT_EQ(folder_.run({"run", "mm.tc", sizes, "--cache=c.tcc", "--output_dir="}).code, 0);
  const std::string text = good({"mm.tc", sizes, "--cache=c.tcc"});
  EXPECT_TRUE(has(text, "  options: chosen by the compiler\n  cache: c.tcc has the kernel\n")) << text;
  EXPECT_TRUE(has(good({"mm.tc", sizes, "--cache=c.tcc", "--format=json"}),
                  R"("cache": {"file": "c.tcc", "hit": true, "measured_us": null})"));
  EXPECT_TRUE(has(error({"mm.tc", sizes, "--cache=none.tcc"}), "none.tcc"));
}

TEST_F(Explain, ExplainsTheBestThatACacheKnows) {
  ASSERT_EQ(folder_
                .run({"tune", "mm.tc", "--sizes=M=64,K=32,N=16", "--cache=c.tcc", "--generations=1", "--population=4",
                      "--time_limit=20"})
                .code,
            0);
  const std::string text = good({"mm.tc", "--sizes=M=64,K=32,N=16", "--cache=c.tcc"});
  EXPECT_TRUE(has(text, "  cache: c.tcc has the kernel, measured at ")) << text;
  EXPECT_TRUE(has(text, "\nmeasurements: ")) << text;
  const std::string page = good({"mm.tc", "--sizes=M=64,K=32,N=16", "--cache=c.tcc", "--format=html"});
  EXPECT_TRUE(has(page, "<circle class=\"measurement\"")) << page;
}

TEST_F(Explain, ShowsTheHistoryOfASearch) {
  const std::string sizes = "--sizes=M=64,K=32,N=16";
  folder_.write(
      "h.csv",
      "problem,candidate,generation,outcome,us,own_us,cold_us,spread,compile_ms,known_before,options,message\n"
      "\"mm M=64,K=32,N=16\",0,0,done,20.5,20.5,0,0.1,12,0,,\n"
      "\"mm M=64,K=32,N=16\",1,0,wrong result,0,0,0,0,12,0,\"tile: [8, 8]\",\"differs in \"\"C\"\"\"\n"
      "\"mm M=64,K=32,N=16\",2,1,done,10.25,10.25,0,0.1,12,0,unroll: 2,\n");
  EXPECT_TRUE(
      good({"mm.tc", sizes, "--history=h.csv"}).ends_with("measurements: 3, the best 10.2 us; 1 without a time\n"));
  EXPECT_EQ(good({"mm.tc", "--sizes=N=16,M=64,K=32", "--history=h.csv"}), good({"mm.tc", sizes, "--history=h.csv"}));
  EXPECT_TRUE(has(good({"mm.tc", sizes, "--history=h.csv", "--format=json"}),
                  R"({"options": "tile: [8, 8]", "device": "", "outcome": "wrong result", "us": null, "date": null})"));
  const std::string page = good({"mm.tc", sizes, "--history=h.csv", "--format=html"});
  EXPECT_TRUE(has(page, "<title>10.2 us: unroll: 2</title></circle>")) << page;
  EXPECT_EQ(error({"mm.tc", "--sizes=M=8,K=8,N=8", "--history=h.csv"}),
            "error: 'h.csv' has no search of 'mm M=8,K=8,N=8'; it has 'mm M=64,K=32,N=16'\n");
  EXPECT_EQ(error({"mm.tc", sizes, "--history=mm.tc"}), "error: 'mm.tc' is no history of 'tensorc tune --history'\n");
  EXPECT_EQ(error({"mm.tc", sizes, "--history=h.csv", "--cache=c.tcc"}),
            "error: '--cache' and '--history' exclude each other\n");
}

}  // namespace
}  // namespace tc::cli
