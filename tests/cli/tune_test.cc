#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <regex>
#include <thread>

#include "tests/cli/process.h"

namespace tc::cli {
namespace {

using testing::Folder;
using testing::Output;

constexpr const char* kMm =
    "def mm(float(M,K) A, float(K,N) B) -> (C) {\n"
    "  C(m,n) +=! A(m,k) * B(k,n)\n"
    "}\n"
    "def scale(float(N) x, float a) -> (y) { y(n) = a * x(n) }\n";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

class Tune : public ::testing::Test {
 protected:
  Tune() { folder_.write("mm.tc", kMm); }

  std::string error(const std::vector<std::string>& words) {
    const Output output = folder_.run(words);
    EXPECT_EQ(output.code, 1) << output.out << output.err;
    return output.err;
  }
  std::string good(std::vector<std::string> words) {
    words.insert(words.begin(), {"tune", "mm.tc"});
    const Output output = folder_.run(words);
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out;
  }

  /// Starts the tool in the background; its output is lost.
  pid_t start(std::vector<std::string> words) {
    folder_.write("err", "");
    const pid_t child = ::fork();
    if (child != 0) return child;
    words.insert(words.begin(), {TC_TOOL, "tune", "mm.tc"});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (::chdir(folder_.path(".").c_str()) != 0 || !std::freopen("out", "w", stdout) ||
        !std::freopen("err", "w", stderr)) {
      ::_exit(127);
    }
    ::execv(TC_TOOL, arguments.data());
    ::_exit(127);
  }
  /// Waits until it has measured so many candidates, by its plain lines.
  void wait_for(const std::string& text) {
    for (int i = 0; i < 1200 && folder_.read("err").find(text) == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_NE(folder_.read("err").find(text), std::string::npos) << folder_.read("err");
  }

  Folder folder_;
};

const std::vector<std::string> kSmall = {"--entry=mm", "--sizes=M=24,N=32,K=40", "--generations=1", "--population=3"};

std::vector<std::string> small(const std::vector<std::string>& more) {
  std::vector<std::string> words = kSmall;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(Tune, FindsOptionsAndRemembersThem) {
  const std::string first = good(small({"--cache=c.tcc", "--history=h.csv", "--threads=2"}));
  EXPECT_TRUE(std::regex_search(first, std::regex("^mm M=24,N=32,K=40: [0-9.]+ us on .+, [0-9.]+x as fast as the "
                                                  "default; 4 candidates, 0 known before; ")))
      << first;
  const std::vector<std::string> rows = lines_of(folder_.read("h.csv"));
  ASSERT_EQ(rows.size(), 5);
  EXPECT_EQ(rows[0],
            "problem,candidate,generation,outcome,us,own_us,cold_us,spread,compile_ms,known_before,options,message");
  EXPECT_TRUE(rows[1].starts_with("\"mm M=24,N=32,K=40\",0,0,done,")) << rows[1];
  const std::string again = good(small({"--cache=c.tcc"}));
  EXPECT_NE(again.find("4 candidates, 4 known before; "), std::string::npos) << again;

  // The file is all that production needs.
  const Output list = folder_.run({"cache", "list", "c.tcc"});
  EXPECT_TRUE(std::regex_search(list.out, std::regex("\n[0-9a-f]{12} +mm +24x40x32 "))) << list.out;
  ASSERT_EQ(folder_.run({"cache", "export", "c.tcc", "p.tcc"}).code, 0);
  const Output production = folder_.run(
      {"run", "mm.tc", "--entry=mm", "--sizes=M=24,N=32,K=40", "--cache=p.tcc", "--production", "--output_dir="});
  EXPECT_EQ(production.code, 0) << production.err;
}

TEST_F(Tune, TheSimulatedDeviceNeedsNoGpu) {
  const std::string text = good(small({"--backend=sim", "--history=h.csv"}));
  EXPECT_NE(text.find(" on simulator, "), std::string::npos) << text;
  for (const std::string& row : lines_of(folder_.read("h.csv"))) {
    EXPECT_EQ(row.find("fault"), std::string::npos) << row;
    EXPECT_EQ(row.find("wrong"), std::string::npos) << row;
  }
}

TEST_F(Tune, TakesAListOfShapesOfWhichEachProcessTakesItsPart) {
  folder_.write("shapes", "# a model\nmm M=8,N=8,K=8\nscale N=64 a=2  # the last\n");
  const std::string all = good({"--shapes=shapes", "--generations=0"});
  EXPECT_TRUE(std::regex_search(all, std::regex("^mm M=8,N=8,K=8: [^]*\nscale N=64 a=2: "))) << all;
  const std::string second = good({"--shapes=shapes", "--generations=0", "--part=1/2"});
  EXPECT_TRUE(second.starts_with("scale N=64 a=2: ")) << second;
}

TEST_F(Tune, ChecksAListOfShapesBeforeTheFirstSearch) {
  folder_.write("shapes", "mm M=8,N=8,K=8\nmm M=8,N=8\nmn N=8\nscale N=64\n");
  const Output output = folder_.run({"tune", "mm.tc", "--shapes=shapes", "--generations=0"});
  EXPECT_EQ(output.code, 1);
  EXPECT_EQ(output.out, "");
  EXPECT_EQ(output.err,
            "error: nothing was tuned, as the list has errors:\n"
            "shapes:2: error: size 'K' of 'mm' has no value; give it by --sizes=K=...\n"
            "shapes:3: error: there is no def 'mn'; did you mean 'mm'?\n"
            "shapes:4: error: scalar 'a' has no value; give it by --scalars=a=NUMBER\n\n");
}

TEST_F(Tune, ASignalKeepsTheBestSoFar) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const pid_t child = start({"--entry=mm", "--sizes=M=24,N=32,K=40", "--generations=1000", "--cache=c.tcc"});
    wait_for("best ");
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_NE(folder_.read("out").find("; stopped by a signal\n"), std::string::npos) << folder_.read("out");
  }
}

TEST_F(Tune, ARunThatWasKilledGoesOn) {
  const pid_t child = start({"--entry=mm", "--sizes=M=24,N=32,K=40", "--generations=1000", "--cache=c.tcc"});
  wait_for("best ");
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  const std::string rest = good(small({"--cache=c.tcc"}));
  EXPECT_EQ(rest.find(" 0 known before"), std::string::npos) << rest;
}

TEST_F(Tune, TasksOfAnArrayJobMergeWhatTheyHaveFound) {
  folder_.write("shapes", "mm M=8,N=8,K=8\nscale N=64 a=2\nmm M=8,N=16,K=8\n");
  const std::string script = TC_SOURCE_DIR "/examples/tuning/array.sh";
  std::string command = "cd " + folder_.path(".") + " && export TENSORC=" TC_TOOL;
  for (const char* task : {"5", "6"}) {
    command += std::string(" && SLURM_ARRAY_TASK_ID=") + task + " SLURM_ARRAY_TASK_MIN=5 SLURM_ARRAY_TASK_COUNT=2 " +
               script + " mm.tc shapes out --generations=0 >> log 2>&1";
  }
  command += " && " + script + " --merge out >> log 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << folder_.read("log");
  const Output best = folder_.run({"cache", "best", "out/kernels.tcc"});
  EXPECT_EQ(best.code, 0) << best.err;
  for (const char* shape : {" 8x8x8 ", " 64 ", " 8x8x16 "}) {
    EXPECT_NE(best.out.find(shape), std::string::npos) << best.out;
  }
}

/// --array=5-9:2 has the tasks 5, 7 and 9; of --array=1,2,7 the list is nowhere.
TEST_F(Tune, ATaskOfAnArrayHasItsPartOfEveryStep) {
  folder_.write("shapes", "mm M=8,N=8,K=8\nscale N=64 a=2\nmm M=8,N=16,K=8\n");
  const auto part = [&](const char* task, const char* first, const char* step) {
    ::setenv("SLURM_ARRAY_TASK_ID", task, 1);
    ::setenv("SLURM_ARRAY_TASK_MIN", first, 1);
    ::setenv("SLURM_ARRAY_TASK_STEP", step, 1);
    ::setenv("SLURM_ARRAY_TASK_COUNT", "3", 1);
    const Output output = folder_.run({"tune", "mm.tc", "--shapes=shapes", "--generations=0"});
    for (const char* name : {"ID", "MIN", "STEP", "COUNT"}) {
      ::unsetenv((std::string("SLURM_ARRAY_TASK_") + name).c_str());
    }
    return output;
  };
  EXPECT_TRUE(part("9", "5", "2").out.starts_with("mm M=8,N=16,K=8: "));
  EXPECT_EQ(part("7", "1", "1").err, "error: which part task 7 of a Slurm array does is not known; '--part' says it\n");
}

TEST_F(Tune, SaysWhatIsWrong) {
  EXPECT_EQ(error({"tune", "mm.tc", "--entry=mm", "--search=best"}),
            "error: there is no search 'best'; there are genetic and random\n");
  EXPECT_EQ(error({"tune", "mm.tc", "--entry=mm", "--backend=interp", "--sizes=M=8,N=8,K=8"}),
            "error: the interpreter has nothing to tune; the backends are cpu, cuda and sim\n");
  EXPECT_EQ(error({"tune", "mm.tc", "--entry=mm", "--backend=cpu", "--devices=0"}),
            "error: '--devices' is for the backend cuda\n");
  EXPECT_EQ(error({"tune", "mm.tc", "--entry=mm", "--backend=cuda", "--devices=4294967296"}),
            "error: there is no GPU 4294967296\n");
  EXPECT_EQ(error({"tune", "mm.tc", "--entry=mm", "--part=3/3"}),
            "error: '--part' is 3/3; of N parts the first is 0/N\n");
  EXPECT_EQ(error({"tune", "mm.tc", "--entry=mm", "--sizes=M=8,N=8"}),
            "error: size 'K' of 'mm' has no value; give it by --sizes=K=...\n");
  const std::vector<std::string> words = {"tune", "mm.tc", "--entry=mm", "--sizes=M=8,N=8,K=8"};
  for (const auto& [flags, message] : std::initializer_list<std::pair<std::vector<std::string>, const char*>>{
           {{"--population=4294967295"}, "10 generations of 2147483647 are more than 1000000000 candidates"},
           {{"--backend=sim", "--cache=c"}, "a cache is for the backends cpu and cuda"},
           {{"--history=no/h.csv"}, "cannot create 'no/h.csv': No such file or directory"}}) {
    std::vector<std::string> wrong = words;
    wrong.insert(wrong.end(), flags.begin(), flags.end());
    EXPECT_EQ(error(wrong), std::string("error: ") + message + "\n");
  }
  EXPECT_EQ(error({"tune", "mm.tc", "--entry=scale", "--sizes=N=8", "--generations=0"}),
            "error: scalar 'a' has no value; give it by --scalars=a=NUMBER\n");
  EXPECT_EQ(error({"tune", "mm.tc", "--entry=mm", "--sizes=M=8,N=8,K=8", "--worker=/nonexistent"}),
            "error: cannot start '/nonexistent': No such file or directory\n");
}

TEST_F(Tune, RunsUnderMpi) {
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0) GTEST_SKIP() << "mpirun is not installed";
  const std::string command = "cd " + folder_.path(".") +
                              " && mpirun --allow-run-as-root --oversubscribe -n 3 " TC_TOOL
                              " tune mm.tc --entry=mm --sizes=M=24,N=32,K=40 --generations=1 --population=2 "
                              "--threads=1 --cache=c.tcc > out 2> err";
  ASSERT_EQ(std::system(command.c_str()), 0) << folder_.read("err");
  const std::vector<std::string> lines = lines_of(folder_.read("out"));
  EXPECT_EQ(std::ranges::count_if(lines, [](const std::string& l) { return l.starts_with("mm M=24,N=32,K=40: "); }), 3);
}

TEST_F(Tune, WorkersMayBePlacedByMpi) {
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0) GTEST_SKIP() << "mpirun is not installed";
  const std::string text =
      good(small({"--worker=mpirun --allow-run-as-root --oversubscribe -n 1 " TC_TOOL " worker", "--threads=1"}));
  EXPECT_NE(text.find("4 candidates, 0 known before; "), std::string::npos) << text;
}

}  // namespace
}  // namespace tc::cli
