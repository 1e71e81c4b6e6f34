#include <gtest/gtest.h>

#include <csignal>
#include <regex>

#include "tc/cache/cache.h"
#include "tests/cli/process.h"

namespace tc::testing {
namespace {

/// The command with a cache, in a folder of its own.
class CacheTool : public ::testing::Test {
 protected:
  CacheTool() { folder.write("mv.tc", "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }\n"); }

  std::string good(const std::vector<std::string>& words) const {
    const Output output = folder.run(words);
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out;
  }
  std::string error(const std::vector<std::string>& words) const {
    const Output output = folder.run(words);
    EXPECT_EQ(output.code, 1) << output.out << output.err;
    return output.err;
  }
  std::string run(const std::string& sizes, const std::vector<std::string>& flags) const {
    std::vector<std::string> words = {"run", "mv.tc", "--sizes=" + sizes, "--check", "--output_dir="};
    words.insert(words.end(), flags.begin(), flags.end());
    return good(words);
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  Folder folder;
};

TEST_F(CacheTool, RunFillsACacheAndTakesFromIt) {
  EXPECT_TRUE(has(run("M=8,K=16", {"--cache=c"}), "cache: compiled and added, options chosen by the compiler\n"));
  EXPECT_TRUE(has(run("M=8,K=16", {"--cache=c"}), "cache: found, options chosen by the compiler\n"));
  folder.write("options", "unroll: 3");
  EXPECT_TRUE(
      has(run("M=8,K=16", {"--cache=c", "--options=options"}), "cache: compiled and added, options unroll: 3\n"));
  EXPECT_TRUE(has(run("M=8,K=16", {"--cache=c", "--reprove"}), "cache: found"));
  EXPECT_TRUE(has(run("M=8,K=16", {"--cache=c", "--production"}), "cache: found"));
  EXPECT_TRUE(has(error({"run", "mv.tc", "--sizes=M=9,K=16", "--cache=c", "--production", "--output_dir="}),
                  "error: the cache c has no kernel of 'mv' for 9x16 on x86-64-linux"));
  EXPECT_EQ(error({"run", "mv.tc", "--sizes=M=9,K=16", "--production"}),
            "error: '--production' is about a cache; '--cache' says which\n");
  EXPECT_EQ(error({"run", "mv.tc", "--sizes=M=9,K=16", "--cache=no/c"}),
            "error: the cache no/c: there is no folder 'no'\n");
}

/// No program makes the compiler's code wrong from outside: a cache has another def's code under this one's key.
TEST_F(CacheTool, ARunThatDisagreesWithTheOracleIsAnErrorAndWritesNothing) {
  folder.write("halved.tc", "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) * 0.5 }\n");
  run("M=8,K=16", {"--cache=c"});
  good({"run", "halved.tc", "--sizes=M=8,K=16", "--cache=halved", "--output_dir="});
  {
    const auto ours = cache::Cache::open(folder.path("c")).value(),
               other = cache::Cache::open(folder.path("halved")).value();
    const cache::Entry wrong = other->find(other->list().value().at(0).key).value().value();
    const cache::Key key = ours->list().value().at(0).key;
    ASSERT_TRUE(ours->remove(key).value());
    ASSERT_TRUE(ours->put(key, wrong));
  }
  const Output output = folder.run({"run", "mv.tc", "--sizes=M=8,K=16", "--cache=c", "--check", "--output_dir=out"});
  EXPECT_EQ(output.code, 1);
  EXPECT_EQ(output.out, "");
  // What follows depends on the order in which the processor's vectors sum.
  EXPECT_TRUE(output.err.starts_with("error: check: 'y' differs in 8 of 8 elements: at (2) it is -0.91707"))
      << output.err;
  EXPECT_TRUE(output.err.ends_with(", the oracle has -1.8341521370355975 with a bound of 4.2e-06\n")) << output.err;
  EXPECT_EQ(folder.files(), (std::vector<std::string>{"c", "halved", "halved.tc", "mv.tc"}));
}

/// As an engine does: a file whose code of another version would not be made again is passed over.
TEST_F(CacheTool, ExportProvesWhatAnotherCompilerMade) {
  run("M=8,K=16", {"--cache=c"});
  {
    const auto file = cache::Cache::open(folder.path("c")).value();
    cache::Key key = file->list().value().at(0).key;
    cache::Entry entry = file->find(key).value().value();
    ASSERT_TRUE(file->remove(key).value());
    key.compiler = "0.0.1-other";
    entry.certificate.proved_text = "of other loops";
    ASSERT_TRUE(file->put(key, entry));
  }
  const std::vector<std::string> words = {"export", "mv.tc", "--sizes=M=8,K=16", "--cache=c", "--nolibrary"};
  const Output output = folder.run(words);
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.err, "warning: a kernel that compiler 0.0.1-other made cannot be proved again; another is taken\n");
  std::vector<std::string> production = words;
  production.emplace_back("--production");
  EXPECT_EQ(folder.run(production).err, "");
}

/// Nothing of what the compiler is made of is asked for: the process would end.
TEST_F(CacheTool, ProductionNeitherSchedulesNorOpensNvrtc) {
  run("M=8,K=16", {"--cache=c"});
  folder.write("idx.tc", "def idx(float(E) T, int(N) I) -> (y) { y(n) = T(I(n)) }\n");
  good({"run", "idx.tc", "--sizes=E=8,N=4", "--cache=c", "--output_dir="});
  const std::vector<std::string> words = {"run", "mv.tc", "--sizes=M=8,K=16", "--cache=c", "--output_dir=out"};
  ::setenv("LD_PRELOAD", TC_NO_COMPILER, 1);
  const Output compiling = folder.run(words);
  std::vector<std::string> with_production = words;
  with_production.emplace_back("--production");
  const Output production = folder.run(with_production);
  const Output integers =
      folder.run({"run", "idx.tc", "--sizes=E=8,N=4", "--cache=c", "--production", "--output_dir="});
  ::unsetenv("LD_PRELOAD");
  EXPECT_EQ(compiling.code, 128 + SIGABRT) << compiling.err;
  EXPECT_EQ(compiling.err, "isl is asked for a context\n");
  EXPECT_EQ(production.code, 0) << production.err;
  EXPECT_TRUE(has(production.out, "cache: found, options chosen by the compiler\n")) << production.out;
  EXPECT_EQ(integers.err,
            "error: 'I' holds integers, which may be subscripts, and production does not know their bounds; give it by "
            "--inputs\n");
  const std::string with_isl = folder.read("out/y.npy");
  good({"run", "mv.tc", "--sizes=M=8,K=16", "--output_dir=out"});
  EXPECT_EQ(folder.read("out/y.npy"), with_isl) << "the same random inputs";
  EXPECT_EQ(error({"run", "mv.tc", "--entry=mw", "--sizes=M=8,K=16", "--cache=c", "--production"}),
            "error: there is no def 'mw'; did you mean 'mv'?\n");
  EXPECT_EQ(error({"run", "mv.tc", "--sizes=M=8,J=16", "--cache=c", "--production"}),
            "error: 'mv' has no size 'J'; its sizes are M, K\n");
}

TEST_F(CacheTool, ARunGoesOnWithoutACacheThatIsDamagedAsAWhole) {
  run("M=8,K=16", {"--cache=c"});
  std::string bytes = folder.read("c");
  std::fill_n(bytes.begin(), 1024, 'x');
  folder.write("c", bytes);
  for (const char* file : {"c", "mv.tc"}) {
    const std::string before = folder.read(file);
    const Output output =
        folder.run({"run", "mv.tc", "--sizes=M=8,K=16", "--check", "--output_dir=", std::string("--cache=") + file});
    EXPECT_EQ(output.code, 0) << output.err;
    EXPECT_EQ(output.err, std::string("warning: the cache ") + file +
                              ": it is not a cache; nothing is taken from it or added to it; remove it, or name "
                              "another file\n");
    EXPECT_TRUE(has(output.out, "cache: compiled, not added, options chosen by the compiler\n")) << output.out;
    EXPECT_EQ(folder.read(file), before);
  }
  EXPECT_EQ(error({"run", "mv.tc", "--sizes=M=8,K=16", "--cache=c", "--production"}),
            "error: the cache c: it is not a cache\n");
}

TEST_F(CacheTool, ListShowVerifyMergePruneExport) {
  run("M=8,K=16", {"--cache=a"});
  run("M=9,K=16", {"--cache=b"});
  EXPECT_EQ(good({"cache", "merge", "all", "a", "b"}),
            "a: 1 kernel, 0 measurements and 1 program added\n"
            "b: 1 kernel, 0 measurements and 0 programs added\n");
  const std::string list = good({"cache", "list", "all"});
  EXPECT_TRUE(has(list, " 8x16 ") && has(list, " 9x16 ") && has(list, "the compiler's")) << list;
  EXPECT_EQ(std::ranges::count(list, '\n'), 3);
  EXPECT_TRUE(has(good({"cache", "list", "all", "--json"}), "\"sizes\": [9, 16]"));
  const std::string id = list.substr(list.find('\n') + 1, 12);
  EXPECT_TRUE(has(good({"cache", "show", "all", id}), "certificate  accesses in bounds, schedule legal\n"));
  EXPECT_EQ(good({"cache", "show", "all", id, "--stage=object"}).substr(1, 3), "ELF");
  EXPECT_EQ(error({"cache", "show", "all", "xyz"}), "error: all has no kernel whose id begins with 'xyz'\n");
  EXPECT_EQ(good({"cache", "verify", "all", "--reprove"}),
            "all: 3 rows, all as written\nall: 2 kernels proved again\n");
  EXPECT_EQ(good({"cache", "export", "all", "out", "--entries=mv"}), "out: 2 kernels, 0 measurements and 1 program\n");
  EXPECT_EQ(error({"cache", "export", "all", "out2", "--entries=mm"}), "error: all has no def 'mm'\n");
  EXPECT_EQ(error({"cache", "export", "all", "out"}), "error: the file out cannot be made: File exists\n");
  EXPECT_EQ(good({"cache", "prune", "all", "--other_compilers"}),
            "all: 0 kernels, 0 measurements, 0 programs and 0 damaged rows removed\n");
  EXPECT_EQ(error({"cache", "prune", "nothing"}),
            "error: the cache nothing: it does not exist, or there is no right to open it\n");
}

/// A program under two names has one key, and what is proved of its code has the names of the first.
TEST_F(CacheTool, AProgramMayHaveTwoNames) {
  folder.write("other.tc", "def matvec(float(M,K) B, float(K) x) -> (z) { z(i) +=! B(i,j) * x(j) }\n");
  good({"cache", "import", "c", "mv.tc", "--sizes=M=8,K=16"});
  EXPECT_TRUE(has(good({"run", "other.tc", "--sizes=M=8,K=16", "--cache=c", "--output_dir="}), "cache: found"));
  EXPECT_TRUE(has(good({"cache", "verify", "c", "--reprove"}), "1 kernel proved again"));
  for (const char* name : {"mv", "matvec"}) {
    EXPECT_TRUE(has(good({"cache", "best", "c", std::string("--entries=") + name}), std::string("\n") + name + " "));
  }
  EXPECT_EQ(error({"cache", "best", "c", "--entries=mm"}), "error: c has no def 'mm'\n");
}

/// Whoever writes to what he has exported is told so, also root.
TEST_F(CacheTool, AnExportStaysAsItIs) {
  run("M=8,K=16", {"--cache=c"});
  good({"cache", "export", "c", "out"});
  const std::string before = folder.read("out");
  const Output output = folder.run({"run", "mv.tc", "--sizes=M=9,K=16", "--cache=out", "--output_dir="});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.err, "warning: the cache out: there is no right to write to it\n");
  EXPECT_EQ(error({"tune", "mv.tc", "--sizes=M=9,K=16", "--cache=out"}),
            "error: the cache out: there is no right to write to it\n");
  EXPECT_EQ(folder.read("out"), before);
}

TEST_F(CacheTool, RefusesWhatWouldDoNothing) {
  run("M=8,K=16", {"--cache=c"});
  EXPECT_EQ(error({"cache", "export", "c", "out", "--targets=sm_90a"}), "error: c has no kernel for 'sm_90a'\n");
  const std::string target = std::regex_replace(good({"cache", "list", "c"}), std::regex("[^]*  (x86-64.*bits)  [^]*"),
                                                "$1");  // as the table has it
  EXPECT_EQ(good({"cache", "export", "c", "out", "--targets=" + target}),
            "out: 1 kernel, 0 measurements and 1 program\n");
  EXPECT_EQ(error({"cache", "export", "c", "no/out"}),
            "error: the file no/out cannot be made: there is no such folder, or no right to write to it\n");
  EXPECT_EQ(error({"cache", "merge", "", "c"}), "error: a cache is a file; its name is empty\n");
  EXPECT_EQ(error({"run", "mv.tc", "--sizes=M=8,K=16", "--cache=c", "--production", "--reprove"}),
            "error: '--production' and '--reprove' exclude each other\n");
  EXPECT_EQ(error({"export", "mv.tc", "--sizes=M=8,K=16", "--production"}),
            "error: '--production' is about a cache; '--cache' says which\n");
  // Days before the first second that a file can name are not after today.
  EXPECT_EQ(good({"cache", "prune", "c", "--older_than_days=9223372036854775807"}),
            "c: 0 kernels, 0 measurements, 0 programs and 0 damaged rows removed\n");
}

TEST_F(CacheTool, PrintsJson) {
  run("M=8,K=16", {"--cache=c"});
  const std::string imported = good({"cache", "import", "c", "mv.tc", "--sizes=M=8,K=16", "--json"});
  ASSERT_TRUE(std::regex_match(imported, std::regex(R"(\{"id": "[0-9a-f]{64}", "options": "", "time_us": .*\}\n)")))
      << imported;
  const std::string shown = good({"cache", "show", "c", imported.substr(8, 12), "--json"});
  EXPECT_TRUE(std::regex_match(
      shown, std::regex(R"(\{"id": .*"certificate": "accesses in bounds, schedule legal; agrees with .*", )"
                        R"("code_bytes": \{"x86-64-linux.*": [0-9]+\}, "launches": \[\], "workspace_bytes": 0, )"
                        R"("measurements": \[\{"options": "", "device": ".*\}\]\}\n)")))
      << shown;
  EXPECT_EQ(good({"cache", "merge", "all", "c", "--json"}),
            R"([{"from": "c", "kernels": 1, "measurements": 1, "programs": 1}])"
            "\n");
  EXPECT_EQ(good({"cache", "verify", "c", "--reprove", "--json"}), R"({"rows": 3, "proved": 1, "faults": []})"
                                                                   "\n");
  EXPECT_EQ(good({"cache", "export", "c", "out", "--json"}), R"({"kernels": 1, "measurements": 1, "programs": 1})"
                                                             "\n");
  EXPECT_EQ(good({"cache", "prune", "c", "--json"}), R"({"kernels": 0, "measurements": 0, "programs": 0, "damaged": 0})"
                                                     "\n");
}

TEST_F(CacheTool, DamageIsReportedSkippedAndRemoved) {
  run("M=8,K=16", {"--cache=c"});
  std::string bytes = folder.read("c");
  bytes[bytes.find(".text")] = '!';
  folder.write("c", bytes);
  EXPECT_TRUE(
      has(error({"cache", "verify", "c"}), "of entries is damaged (its checksum does not match); it is skipped"));
  const Output exported = folder.run({"cache", "export", "c", "out"});
  EXPECT_EQ(exported.out, "out: 0 kernels, 0 measurements and 1 program\n");
  EXPECT_EQ(std::ranges::count(exported.err, '\n'), 1) << exported.err;
  EXPECT_TRUE(has(run("M=8,K=16", {"--cache=c"}), "cache: compiled and added"));
  EXPECT_EQ(good({"cache", "verify", "c"}), "c: 2 rows, all as written\n");
}

TEST_F(CacheTool, ImportedOptionsAreComparedTimedAndTaken) {
  folder.write("options", "unroll: 3");
  const std::string text = good({"cache", "import", "c", "mv.tc", "--sizes=M=8,K=16", "--options=options"});
  EXPECT_TRUE(has(text, "check: 'y' agrees") && has(text, "c: added, ")) << text;
  EXPECT_TRUE(has(run("M=8,K=16", {"--cache=c"}), "cache: found, options unroll: 3\n"));
  EXPECT_TRUE(has(good({"cache", "best", "c"}), "unroll: 3"));
  EXPECT_TRUE(has(good({"cache", "best", "c", "--json"}), "\"options\": \"unroll: 3\\n\""));
  EXPECT_TRUE(has(good({"cache", "verify", "c", "--reprove"}), "1 kernel proved again"));
  folder.write("wrong", "unroll: 3000");
  EXPECT_TRUE(has(error({"cache", "import", "c", "mv.tc", "--sizes=M=8,K=16", "--options=wrong"}), "unroll"));
  EXPECT_EQ(error({"cache", "import", "c", "mv.tc", "--sizes=M=8,K=16", "--cuda_text=x"}),
            "error: '--cuda_text' is for the backend cuda\n");
}

/// More than 2^29 instances, for which the interpreter would take minutes.
TEST_F(CacheTool, ImportsOfLargeShapesAreComparedWithTheStrictKernel) {
  folder.write("mm.tc", "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }\n");
  const std::string text = good({"cache", "import", "c", "mm.tc", "--sizes=M=1024,N=1024,K=520"});
  EXPECT_TRUE(text.starts_with("check: agrees with the CPU's strict kernel, as the interpreter would take minutes\n"))
      << text;
  const std::string id = good({"cache", "list", "c"}).substr(good({"cache", "list", "c"}).find('\n') + 1, 12);
  EXPECT_TRUE(has(good({"cache", "show", "c", id}), "; agrees with the CPU's strict kernel on 3 random inputs\n"));
}

/// Of as many ones, each added to what float32 has of those before, the last hundreds of millions would
/// change nothing.
TEST_F(CacheTool, TheStrictKernelsLongSumsAreExact) {
  folder.write("all.tc",
               "def all(float(M,K) A, float(N,K) B) -> (s) { s +=! fabs(A(m,k) * B(n,k)) > 0.5 ? 1.0 : 0.0 }\n");
  folder.write("many_sums", "unroll: 16");
  const std::string text =
      good({"cache", "import", "c", "all.tc", "--sizes=M=1024,N=1024,K=520", "--options=many_sums"});
  EXPECT_TRUE(text.starts_with("check: agrees with the CPU's strict kernel, as the interpreter would take minutes\n"))
      << text;
}

TEST_F(CacheTool, ItsCommandsHaveHelp) {
  const std::string group = good({"cache", "--help"});
  for (const char* command : {"list", "show", "best", "merge", "verify", "prune", "export", "import"}) {
    EXPECT_TRUE(has(group, std::string("\n  cache ") + command + " ")) << command;
    EXPECT_TRUE(has(good({"cache", command, "--help"}), std::string("usage: tensorc cache ") + command + " "))
        << command;
  }
  EXPECT_EQ(error({"cache"}), "error: 'tensorc cache' needs a command; 'tensorc cache --help' lists them\n");
  EXPECT_EQ(error({"cache", "lst"}), "error: there is no command 'cache lst'; did you mean 'cache list'?\n");
}

/// The C file of a kernel is compiled by the system's compiler and called from a program that has nothing of ours.
TEST_F(CacheTool, ExportForTheCpuRunsFromC) {
  good({"export", "mv.tc", "--sizes=M=8,K=16", "--output_dir=out"});
  good({"export", "mv.tc", "--sizes=M=2,K=3", "--output_dir=out", "--name=small"});
  folder.write("main.c", R"(#include <stdio.h>
#include "small.h"
#include "tc_mv.h"
int main(void) {
  float A[8 * 16], x[16], y[8], z[2];
  int i, j;
  for (i = 0; i < 8 * 16; ++i) A[i] = (float)(i % 5);
  for (i = 0; i < 16; ++i) x[i] = (float)(i % 3);
  if (tc_mv(A, x, y) != 0 || small(A, x, z) != 0) return 1;
  for (i = 0; i < 8; ++i) {
    float sum = 0;
    for (j = 0; j < 16; ++j) sum += A[i * 16 + j] * x[j];
    if (sum != y[i]) return 2;
  }
  for (i = 0; i < 2; ++i) if (A[i * 3] * x[0] + A[i * 3 + 1] * x[1] + A[i * 3 + 2] * x[2] != z[i]) return 3;
  return 0;
}
)");
  const std::string compile = "cd " + folder.path("out") +
                              " && cc -std=c99 -Wall -Wextra -Werror -I. ../main.c -L. "
                              "-ltc_mv -lsmall -lm -o main && ./main";
  EXPECT_EQ(std::system(compile.c_str()), 0);
  EXPECT_EQ(folder.files(), (std::vector<std::string>{"main.c", "mv.tc", "out/libsmall.a", "out/libtc_mv.a", "out/main",
                                                      "out/small.c", "out/small.h", "out/tc_mv.c", "out/tc_mv.h"}));
  folder.write("names.tc", "def names(float(N) fault) -> (arguments) { arguments(i) = fault(i) }");
  good({"export", "names.tc", "--sizes=N=8", "--output_dir=out"});
  EXPECT_TRUE(has(folder.read("out/tc_names.h"), "int tc_names(const float* fault, float* arguments_);"));
  EXPECT_TRUE(folder.read("out/tc_names.h").starts_with("/* SPDX-License-Identifier: Apache-2.0\n"));
  EXPECT_TRUE(folder.read("out/tc_names.c").starts_with("/* SPDX-License-Identifier: Apache-2.0 */\n"));
  EXPECT_EQ(error({"export", "mv.tc", "--sizes=M=8,K=16", "--name=1x"}), "error: '1x' is no name of a function of C\n");
  EXPECT_EQ(error({"export", "mv.tc", "--sizes=M=8,K=16", "--name=int"}),
            "error: 'int' is no name of a function of C\n");
  EXPECT_EQ(error({"export", "mv.tc", "--kind=d"}), "error: there is no kind 'd'; there is c\n");
}

}  // namespace
}  // namespace tc::testing
