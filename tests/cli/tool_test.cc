#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "tc/cli/npy.h"
#include "tests/cli/process.h"

namespace tc::cli {
namespace {

using testing::Folder;
using testing::Output;

constexpr const char* kMm =
    "def mm(float(M,K) A, float(K,N) B) -> (C) {\n"
    "  C(m,n) +=! A(m,k) * B(k,n)\n"
    "}\n";

/// A folder with mm.tc.
class Tool : public ::testing::Test {
 protected:
  Tool() { folder_.write("mm.tc", kMm); }

  /// The user's error: exit code 1, nothing on standard output, nothing written.
  std::string error(const std::vector<std::string>& words) {
    const std::vector<std::string> before = folder_.files();
    const Output output = folder_.run(words);
    EXPECT_EQ(output.code, 1) << output.out << output.err;
    EXPECT_EQ(output.out, "");
    EXPECT_EQ(folder_.files(), before);
    return output.err;
  }

  /// The output of a run that succeeds and has nothing to complain of.
  std::string good(const std::vector<std::string>& words, const std::string& input = "") {
    const Output output = folder_.run(words, input);
    EXPECT_EQ(output.code, 0) << output.err;
    EXPECT_EQ(output.err, "");
    return output.out;
  }

  void write_floats(const std::string& name, std::vector<int64_t> shape, const std::vector<float>& elements) {
    api::Tensor tensor = *api::Tensor::allocate({.type = ScalarType::kFloat32, .shape = std::move(shape)});
    std::copy(elements.begin(), elements.end(), tensor.data_as<float>());
    ASSERT_TRUE(write_npy(folder_.path(name), tensor));
  }

  std::vector<float> read_floats(const std::string& name) {
    const Result<api::Tensor> tensor = read_npy(folder_.path(name));
    EXPECT_TRUE(tensor) << tensor.error().to_string();
    if (!tensor) return {};
    return {tensor->data_as<float>(), tensor->data_as<float>() + tensor->spec().elements()};
  }

  Folder folder_;
};

/// A text without its lines that begin with a word.
std::string without(const std::string& text, const std::string& word) {
  std::string kept;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    if (!text.substr(at).starts_with(word)) kept += text.substr(at, end - at);
    at = end;
  }
  return kept;
}

TEST_F(Tool, HasAVersion) { EXPECT_EQ(good({"version"}), "tensorc 0.1.0\n"); }

TEST_F(Tool, HelpListsTheCommands) {
  const std::string help = good({"help"});
  EXPECT_EQ(good({"--help"}), help);
  for (const char* command : {"check", "fmt", "run", "emit"}) {
    EXPECT_NE(help.find("\n  " + std::string(command) + " "), std::string::npos) << command;
    EXPECT_EQ(good({"help", command}), good({command, "--help"}));
  }
}

TEST_F(Tool, RunSaysThatAnUpdateBeganWithRandomElements) {
  folder_.write("sum.tc", "def sum(float(N) x) -> (float(N) s) { s(i) += x(i) }");
  const std::string note =
      "note: 's' is updated, and began with random elements: --inputs=s=FILE.npy has others, '+=!' instead of '+=' "
      "begins at zero\n";
  EXPECT_NE(good({"run", "sum.tc", "--sizes=N=4", "--output_dir="}).find(note), std::string::npos);
  write_floats("s.npy", {4}, {1, 2, 3, 4});
  EXPECT_EQ(good({"run", "sum.tc", "--inputs=s=s.npy", "--output_dir="}).find("note:"), std::string::npos);
}

TEST_F(Tool, MachineCodeDoesNotGoToATerminal) {
  folder_.write("f.tc", "def f(float(N) x) -> (y) { y(i) = x(i) }");
  folder_.run({"run", "f.tc", "--sizes=N=8", "--cache=f.tcc", "--output_dir="});
  const std::string list = good({"cache", "list", "f.tcc", "--json"});
  const size_t id = list.find("\"id\": \"") + 7;
  const std::string show =
      fmt::format("cd {} && script -qec '{} cache show f.tcc {} --stage=object' out </dev/null >/dev/null",
                  folder_.path(), TC_TOOL, list.substr(id, 12));
  EXPECT_NE(std::system(show.c_str()), 0);
  const std::string printed = folder_.read("out");
  EXPECT_NE(printed.find("error: machine code is not for a terminal: '--output=FILE' writes it to a file"),
            std::string::npos)
      << printed;
  EXPECT_EQ(printed.find("ELF"), std::string::npos);
}

TEST_F(Tool, HelpOfACommandHasItsFlagsAndNoOthers) {
  EXPECT_EQ(good({"fmt", "--help"}), R"(usage: tensorc fmt FILE.tc [flags]

Prints a program in canonical form: one statement a line, types by their full names, the fewest
parentheses. Comments are kept.

flags:
  --in_place
      Write the canonical form to the file itself. Also -i.
  --check
      Print nothing, and fail if the file is not in canonical form.

examples:
  tensorc fmt matmul.tc
  tensorc fmt -i matmul.tc
  tensorc fmt --check matmul.tc
)");
}

TEST_F(Tool, CommandLinesThatAreWrong) {
  EXPECT_EQ(error({}), "error: a command is missing; 'tensorc help' lists the commands\n");
  EXPECT_EQ(error({"chek", "mm.tc"}), "error: there is no command 'chek'; did you mean 'check'?\n");
  EXPECT_EQ(error({"frobnicate"}), "error: there is no command 'frobnicate'; 'tensorc help' lists the commands\n");
  EXPECT_EQ(error({"help", "runn"}), "error: there is no command 'runn'; did you mean 'run'?\n");
  EXPECT_EQ(error({"check"}), "error: 'tensorc check' needs a file: tensorc check FILE.tc [flags]\n");
  EXPECT_EQ(error({"check", "mm.tc", "b.tc"}), "error: 'tensorc check' takes 1 file; 'b.tc' is one too many\n");
  EXPECT_EQ(error({"run", "mm.tc", "--size=M=1"}),
            "error: 'tensorc run' has no flag '--size'; did you mean '--sizes'?\n");
  EXPECT_EQ(error({"run", "mm.tc", "--target=x"}),
            "error: 'tensorc run' has no flag '--target'; 'tensorc run --help' lists its flags\n");
  EXPECT_EQ(error({"check", "mm.tc", "--flagfile=x"}),
            "error: 'tensorc check' has no flag '--flagfile'; 'tensorc check --help' lists its flags\n");
  EXPECT_EQ(error({"run", "mm.tc", "--sizes"}), "error: '--sizes' needs a value: a text\n");
  EXPECT_EQ(error({"run", "mm.tc", "--seed=abc"}), "error: '--seed' takes a non-negative integer, not 'abc'\n");
  EXPECT_EQ(error({"run", "mm.tc", "--repeat", "-1"}), "error: '--repeat' takes a non-negative integer, not '-1'\n");
  EXPECT_EQ(error({"run", "mm.tc", "--check=maybe"}), "error: '--check' takes true or false, not 'maybe'\n");
  EXPECT_EQ(error({"run", "mm.tc", "--backend=gpu"}),
            "error: there is no backend 'gpu'; there are auto, cpu, cuda, interp and sim\n");
  EXPECT_EQ(error({"run", "mm.tc", "--inputs=A=a.npy", "--inputs=B=b.npy"}), "error: '--inputs' is given twice\n");
  EXPECT_EQ(error({"run", "mm.tc", "--check", "--nocheck"}), "error: '--check' is given twice\n");
  EXPECT_EQ(error({"run", "mm.tc", "--repeat=0"}), "error: '--repeat' is 0; a kernel is run at least once\n");
}

TEST_F(Tool, FilesThatCannotBeRead) {
  EXPECT_EQ(error({"check", "none.tc"}), "error: cannot open 'none.tc': No such file or directory\n");
  EXPECT_EQ(error({"check", "/"}), "error: cannot read '/': Is a directory\n");
}

TEST_F(Tool, ErrorsOfTheTextHaveTheirPlace) {
  folder_.write("bad.tc", "def f(float(N) x) -> (y) {\n  y(i) = x(i, i)\n}\n");
  EXPECT_EQ(error({"check", "bad.tc"}).substr(0, 18), "bad.tc:2:10: error");
  folder_.write("binary.tc", std::string("\0\xff\x1b garbage", 11));
  EXPECT_EQ(error({"run", "binary.tc"}).substr(0, 21), "binary.tc:1:1: error:");
  folder_.write("deep.tc", "def f(float(N) x) -> (y) { y(i) = " + std::string(100000, '(') + "x(i)" +
                               std::string(100000, ')') + "}");
  EXPECT_EQ(error({"fmt", "deep.tc"}).substr(0, 10), "deep.tc:1:");
  folder_.write("large.tc", std::string(10 << 20, ' '));
  EXPECT_NE(error({"check", "large.tc"}).find("error: "), std::string::npos);
}

TEST_F(Tool, CheckPrintsShapesAndRanges) {
  EXPECT_EQ(good({"check", "mm.tc"}), R"(def mm(float32(M,K) A, float32(K,N) B) -> (float32(M,N) C)
  C(m, n) +=! ...  map m in 0:M, n in 0:N; reduce k in 0:K
      m ends by A(m,k) (R2)
      n ends by B(k,n) (R2)
      k ends by A(m,k) (R2)
)");
  EXPECT_EQ(good({"check", "-"}, kMm), good({"check", "mm.tc"}));
}

constexpr const char* kDilated =
    "def dilated(int d, float(T) X, float(K) W) -> (O) {\n"
    "  O(t) +=! (t >= d * k ? X(t - d * k) : 0.0) * W(k)\n}\n";

TEST_F(Tool, CheckSaysThatRangesWaitForScalars) {
  folder_.write("dilated.tc", kDilated);
  EXPECT_EQ(good({"check", "dilated.tc"}), R"(def dilated(int32 d, float32(T) X, float32(K) W) -> (float32(?) O)
  the ranges depend on 'd': give it with --scalars=d=...
  O(t) +=! ...  map t in ?:?; reduce k in ?:?
)");
  EXPECT_EQ(good({"check", "dilated.tc", "--scalars=d=2"}),
            R"(def dilated(int32 d, float32(T) X, float32(K) W) -> (float32(T) O)
  d is 2
  O(t) +=! ...  map t in 0:T; reduce k in 0:K
      t ends by the guard of X(t - d * k) (R6)
      k ends by W(k) (R2)
)");
}

TEST_F(Tool, CheckRefusesWrongNumbers) {
  folder_.write("scale.tc", "def scale(int d, float a, float(N) x) -> (y) { y(i) = i >= d ? a * x(i - d) : 0.0 }\n");
  const auto refused = [&](const std::string& file, const std::string& flag) { return error({"check", file, flag}); };
  EXPECT_EQ(refused("mm.tc", "--sizes=M=3"),
            "error: sizes 'K', 'N' of 'mm' have no value; give them by --sizes=K=...,N=...\n");
  EXPECT_EQ(refused("mm.tc", "--sizes=M=3,K=4"), "error: size 'N' of 'mm' has no value; give it by --sizes=N=...\n");
  EXPECT_EQ(refused("mm.tc", "--sizes=m=3"), "error: no def has a size 'm'; did you mean 'M'?\n");
  EXPECT_EQ(refused("mm.tc", "--sizes=rows=3"), "error: no def has a size 'rows'; there are M, K, N\n");
  EXPECT_EQ(refused("mm.tc", "--sizes=M=x"), "error: size 'M' must be an integer, not 'x'\n");
  EXPECT_EQ(refused("mm.tc", "--scalars=q=2"), "error: no def has a scalar 'q'; there are none\n");
  EXPECT_EQ(refused("scale.tc", "--sizes=rows=2"), "error: no def has a size 'rows'; there is 'N'\n");
  EXPECT_EQ(refused("scale.tc", "--scalars=qq=2"), "error: no def has a scalar 'qq'; there are d, a\n");
  EXPECT_EQ(refused("scale.tc", "--scalars=d=1.5"), "error: scalar 'd' of 'scale' must be an integer, not 1.5\n");
  EXPECT_EQ(good({"check", "scale.tc", "--scalars=d=2,a=1.5"}), good({"check", "scale.tc", "--scalars=d=2"}));
}

TEST_F(Tool, CheckAsJsonJudgesEachDefOnItsOwn) {
  folder_.write("two.tc", std::string(kDilated) + "def g(float(N) x) -> (y) { y(i) +=! x(i + j) }\n");
  const std::vector<std::string> words = {"check", "two.tc", "--scalars=d=2", "--sizes=T=9,K=3,N=4"};
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  const Output output = folder_.run(as_json);
  EXPECT_EQ(output.code, 1);
  EXPECT_EQ(output.err, folder_.run(words).err);
  const std::string& json = output.out;
  EXPECT_NE(json.find(R"("end": "T", "end_value": 9)"), std::string::npos) << json;
  EXPECT_NE(json.find("the guard of X(t - d * k)"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("shape": [9])"), std::string::npos) << json;
  EXPECT_NE(json.find("the range of 'i' is ambiguous"), std::string::npos) << json;
}

TEST_F(Tool, CheckAsJsonOfAGoodFilePrintsNothingElse) {
  const Output output = folder_.run({"check", "mm.tc", "--json"});
  EXPECT_EQ(output.code, 0);
  EXPECT_EQ(output.err, "");
  EXPECT_EQ(output.out.find("{\"version\": 1,\n \"file\": \"mm.tc\",\n \"ok\": true,\n \"diagnostics\": [],"), 0u)
      << output.out;
}

TEST_F(Tool, CheckAsJsonKeepsItsNotesOnStandardError) {
  folder_.write("half.tc", "def f(float(N) x, int n) -> (y) { y(i) = x(i) * (n / 2) }\n");
  const Output output = folder_.run({"check", "half.tc"});
  const Output as_json = folder_.run({"check", "half.tc", "--json"});
  EXPECT_NE(output.err.find("note: 'n / 2' divides integers"), std::string::npos) << output.err;
  EXPECT_EQ(as_json.err, output.err);
  EXPECT_EQ(as_json.code, output.code);
  EXPECT_EQ(as_json.out.find("map i in"), std::string::npos) << as_json.out;
}

TEST_F(Tool, CheckReportsErrorsOfNamesAndOfRangesTogether) {
  folder_.write("two.tc",
                "def f(float(N) x) -> (y) { y(i) +=! x(i + j) }\n"
                "def g(float(N) x) -> (y) { y(i) = z(i) }\n");
  const std::string errors = error({"check", "two.tc"});
  EXPECT_EQ(errors.find("two.tc:1:30: error: the range of 'i' is ambiguous"), 0u) << errors;
  EXPECT_NE(errors.find("two.tc:2:35: error: 'z' is neither a tensor nor an intrinsic"), std::string::npos) << errors;
}

TEST_F(Tool, CheckReportsErrorsOfAllDefs) {
  folder_.write("two.tc",
                "def f(float(N) x) -> (y) { y(i) +=! x(i + j) }\n"
                "def g(float(N) x) -> (y) { y(i) +=! x(i + j) }\n");
  const std::string errors = error({"check", "two.tc"});
  EXPECT_NE(errors.find("two.tc:1:"), std::string::npos) << errors;
  EXPECT_NE(errors.find("two.tc:2:"), std::string::npos) << errors;
}

TEST_F(Tool, CheckHasTheExitCodeOfAnErrorIfItsTimeIsOver) {
  std::string text = "def f<A, B>(A(N) x, B(N) y) -> (float(N) z) {\n";
  for (int i = 0; i < 100; ++i) text += "  z(i) = float(x(i)) + float(y(i))\n";
  folder_.write("many.tc", text + "}\n");
  const std::string message = error({"check", "many.tc", "--time_limit_ms=20"});
  EXPECT_EQ(message.find("many.tc:1:5: error: the time limit of 20 ms "), 0u) << message;
}

TEST_F(Tool, TheAnalysisOfATextKeepsTheTimeLimit) {
  // No instance of these defs is without errors, and each def has 64.
  std::string text;
  for (int n = 0; n < 12'000; ++n) {
    text += fmt::format("def f{}<T, U, V, W>(T(N) A, U(N) B, V(N) C, W(N) D) -> (o) {{ o(i) = clamp(A(i)) }}\n", n);
  }
  folder_.write("generic.tc", text);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(error({"check", "generic.tc", "--time_limit_ms=300"}),
            "generic.tc:1:5: error: the time limit of 300 ms ended the analysis of the text\n"
            "    def f0<T, U, V, W>(T(N) A, U(N) B, V(N) C, W(N) D) -> (o) { o(i) = clamp(A(i)) }\n"
            "        ^~\n");
  const std::string run = error({"run", "generic.tc", "--entry=f0", "--time_limit_ms=300"});
  EXPECT_EQ(run.find("error: the compilation took longer than 300 ms, "), 0u) << run;  // in the pass 'analyse'
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30)) << "without a limit it takes minutes";
}

TEST_F(Tool, FmtPrintsCanonicalSource) {
  const std::string canonical =
      "def mm(float32(M, K) A, float32(K, N) B) -> (C) {\n"
      "  C(m, n) +=! A(m, k) * B(k, n)\n"
      "}\n";
  EXPECT_EQ(good({"fmt", "mm.tc"}), canonical);
  EXPECT_EQ(folder_.read("mm.tc"), kMm);
  EXPECT_EQ(error({"fmt", "--check", "mm.tc"}),
            "error: 'mm.tc' is not in canonical form; 'tensorc fmt -i' puts it there\n");
  EXPECT_EQ(good({"fmt", "-i", "mm.tc"}), "");
  EXPECT_EQ(folder_.read("mm.tc"), canonical);
  EXPECT_EQ(good({"fmt", "--check", "mm.tc"}), "");
  EXPECT_EQ(error({"fmt", "-i", "-"}), "error: standard input cannot be formatted in place\n");
  EXPECT_EQ(error({"fmt", "-i", "--check", "mm.tc"}), "error: '--in_place' and '--check' exclude each other\n");
}

TEST_F(Tool, RunComputesFromFiles) {
  write_floats("a.npy", {2, 3}, {1, 2, 3, 4, 5, 6});
  write_floats("b.npy", {3, 1}, {1, 10, 100});
  const std::string out = good({"run", "mm.tc", "--inputs=A=a.npy,B=b.npy", "--output_dir=results", "--check"});
  EXPECT_EQ(without(out, "time: "),
            "C  float32(2, 1)  min 321  max 654  mean 487.5\ncheck: 'C' agrees exactly: 2 elements\n");
  EXPECT_EQ(read_floats("results/C.npy"), (std::vector<float>{321, 654}));
  EXPECT_EQ(folder_.files(), (std::vector<std::string>{"a.npy", "b.npy", "mm.tc", "results/C.npy"}));
}

TEST_F(Tool, RunTakesFortranOrder) {
  folder_.write("a.npy", [] {
    std::string header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n";
    std::string bytes = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
    const float elements[] = {1, 4, 2, 5, 3, 6};
    return bytes.append(reinterpret_cast<const char*>(elements), sizeof elements);
  }());
  write_floats("b.npy", {3, 1}, {1, 10, 100});
  good({"run", "mm.tc", "--inputs=A=a.npy,B=b.npy"});
  EXPECT_EQ(read_floats("C.npy"), (std::vector<float>{321, 654}));
}

TEST_F(Tool, RandomInputsDependOnTheSeedOnly) {
  const std::vector<std::string> words = {"run", "mm.tc", "--sizes=M=5,N=6,K=7", "--output_dir=one"};
  good(words);
  good({"run", "mm.tc", "--sizes=M=5,N=6,K=7", "--output_dir=two", "--seed=0", "--threads=1"});
  good({"run", "mm.tc", "--sizes=M=5,N=6,K=7", "--output_dir=three", "--seed=1"});
  EXPECT_EQ(folder_.read("one/C.npy"), folder_.read("two/C.npy"));
  EXPECT_NE(folder_.read("one/C.npy"), folder_.read("three/C.npy"));
}

TEST_F(Tool, TheInterpreterAgrees) {
  good({"run", "mm.tc", "--sizes=M=5,N=6,K=7", "--output_dir=cpu"});
  const std::string out =
      good({"run", "mm.tc", "--sizes=M=5,N=6,K=7", "--output_dir=interp", "--backend=interp", "--check"});
  EXPECT_NE(out.find("check: 'C' agrees"), std::string::npos) << out;
  const std::vector<float> cpu = read_floats("cpu/C.npy"), interp = read_floats("interp/C.npy");
  ASSERT_EQ(cpu.size(), 30U);
  for (size_t i = 0; i < cpu.size(); ++i) EXPECT_NEAR(cpu[i], interp[i], 1e-5);
}

TEST_F(Tool, RunTakesScalarsAndInOuts) {
  folder_.write("sgemm.tc",
                "def sgemm(float a, float b, float(N,M) A, float(M,K) B) -> (C) {\n"
                "  C(i,j) = b * C(i,j)\n"
                "  C(i,j) += a * A(i,k) * B(k,j)\n"
                "}\n");
  write_floats("a.npy", {1, 2}, {1, 2});
  write_floats("b.npy", {2, 1}, {3, 4});
  write_floats("c.npy", {1, 1}, {100});
  const std::string out =
      good({"run", "sgemm.tc", "--inputs=A=a.npy,B=b.npy,C=c.npy", "--scalars=a=2,b=0.5", "--repeat=3", "--check"});
  EXPECT_EQ(read_floats("C.npy"), std::vector<float>{72}) << out;  // of one run, not of four
  EXPECT_EQ(read_floats("c.npy"), std::vector<float>{100});
  EXPECT_EQ(
      error({"run", "sgemm.tc", "--inputs=A=a.npy,B=b.npy,C=C.npy", "--scalars=a=2,b=1"}),
      "error: the result 'C' would replace the file 'C.npy' that 'C' is read from; choose another --output_dir\n");
  EXPECT_EQ(error({"run", "sgemm.tc", "--inputs=A=a.npy,B=b.npy,C=c.npy", "--scalars=a=2"}),
            "error: scalar 'b' has no value; give it by --scalars=b=NUMBER\n");
  EXPECT_EQ(error({"run", "sgemm.tc", "--sizes=N=1,M=1,K=1", "--scalars=a=1e39,b=1"}),
            "error: scalar 'a' is 1e+39; float32 holds numbers up to 3.40282e+38\n");
  EXPECT_EQ(error({"run", "sgemm.tc", "--scalars=a=-1e400"}),
            "error: scalar 'a' is -1e400, which is outside the range of float64\n");
  EXPECT_EQ(error({"run", "sgemm.tc", "--scalars=a=two"}), "error: scalar 'a' must be a number, not 'two'\n");
}

TEST_F(Tool, RandomSubscriptsStayInside) {
  folder_.write("gather.tc", "def gather(float(N) X, int32(A,B) I) -> (Z) { Z(i,j) = X(I(i,j)) }");
  const std::string out = good({"run", "gather.tc", "--sizes=N=5,A=40,B=30", "--check", "--check_bounds"});
  EXPECT_NE(out.find("check: 'Z' agrees"), std::string::npos) << out;
  folder_.write("shift.tc", "def shift(float(N) X, uint8(A) I) -> (Z) { Z(i) = X(2 * int64(I(i)) + 3) }");
  for (const char* backend : {"--backend=cpu", "--backend=sim"}) {
    good({"run", "shift.tc", "--sizes=N=16,A=400", "--check", "--check_bounds", backend});
  }
}

TEST_F(Tool, RunRefusesWrongSizes) {
  const auto sizes_error = [&](const std::string& sizes) { return error({"run", "mm.tc", "--sizes=" + sizes}); };
  EXPECT_EQ(sizes_error("M=3"), "error: sizes 'K', 'N' of 'mm' have no value; give them by --sizes=K=...,N=...\n");
  EXPECT_EQ(sizes_error("M=3,N=4,K=x"), "error: size 'K' must be an integer, not 'x'\n");
  EXPECT_EQ(sizes_error("M=3,N=4,L=5"), "error: 'mm' has no size 'L'; its sizes are M, K, N\n");
  EXPECT_EQ(sizes_error("M=3,N=4,k=5"), "error: 'mm' has no size 'k'; did you mean 'K'?\n");
  EXPECT_EQ(sizes_error("M=3,M=4"), "error: '--sizes' gives 'M' twice\n");
  EXPECT_EQ(sizes_error("M=3,N=4,K=5,"), "error: '--sizes' takes NAME=VALUE,NAME=VALUE,...; '' is not NAME=VALUE\n");
  EXPECT_EQ(sizes_error("M"), "error: '--sizes' takes NAME=VALUE,NAME=VALUE,...; 'M' is not NAME=VALUE\n");
  EXPECT_EQ(sizes_error("M=-3,N=4,K=5"), "error: the size 'M' is -3: sizes are not negative\n");
  EXPECT_EQ(sizes_error("M=99999999999999999999,N=1,K=1"),
            "error: size 'M' is 99999999999999999999, which does not fit 64 bits\n");
  EXPECT_NE(sizes_error("M=9223372036854775807,N=4,K=9223372036854775807").find("would take more than 2^47 bytes"),
            std::string::npos);
  const std::string memory = sizes_error("M=5000000,N=1,K=5000000");
  EXPECT_TRUE(memory.starts_with("error: the tensors take 90.9 TiB; ")) << memory;
}

TEST_F(Tool, RunRefusesWrongInputs) {
  const auto input_error = [&](const std::string& inputs) {
    return error({"run", "mm.tc", "--sizes=N=2", "--inputs=" + inputs});
  };
  write_floats("a.npy", {2, 3}, {1, 2, 3, 4, 5, 6});
  write_floats("b.npy", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  write_floats("vector.npy", {3}, {1, 2, 3});
  folder_.write("short.npy", folder_.read("a.npy").substr(0, 140));
  folder_.write("text.npy", "1 2 3\n");
  ASSERT_TRUE(
      write_npy(folder_.path("int.npy"), *api::Tensor::allocate({.type = ScalarType::kInt32, .shape = {2, 3}})));
  EXPECT_EQ(input_error("A=none.npy"), "error: cannot open 'none.npy': No such file or directory\n");
  EXPECT_EQ(input_error("a=a.npy"), "error: 'mm' has no tensor 'a'; did you mean 'A'?\n");
  EXPECT_EQ(input_error("weights=a.npy"), "error: 'mm' has no tensor 'weights'; it has A, B, C\n");
  EXPECT_EQ(input_error("A=short.npy"), "error: 'short.npy' has 12 bytes of data; float32(2, 3) takes 24\n");
  EXPECT_EQ(input_error("A=text.npy"), "error: 'text.npy' is not a .npy file\n");
  EXPECT_EQ(input_error("A=int.npy"),
            "error: input 'A' is of int32; the text says float32: cast it, or write 'def mm<T>(T(...) A)' for both\n");
  EXPECT_EQ(input_error("A=vector.npy"), "error: 'A' has 2 dimensions in 'mm', but the tensor given has 1\n");
  EXPECT_EQ(input_error("A=a.npy,B=b.npy"),
            "error: dimension 0 of 'B' is 4, but it must be 3: 'K' is 3 by dimension 1 of 'A'\n");
}

TEST_F(Tool, RunRefusesWrongEntriesAndOptions) {
  EXPECT_EQ(error({"run", "mm.tc", "--entry=mn"}), "error: there is no def 'mn'; did you mean 'mm'?\n");
  folder_.write("two.tc", std::string(kMm) + "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }\n");
  EXPECT_EQ(error({"run", "two.tc"}), "error: 'two.tc' has 2 defs; choose one by --entry: mm, mv\n");
  EXPECT_EQ(error({"run", "mm.tc", "--options=none"}), "error: cannot open 'none': No such file or directory\n");
  folder_.write("o", "tiles: 3");
  EXPECT_EQ(error({"run", "mm.tc", "--options=o"}),
            "o:1:1: error: there is no option 'tiles' of the CPU; did you mean 'tile'?\n    tiles: 3\n    ^~~~~\n");
  EXPECT_EQ(error({"run", "mm.tc", "--sizes=M=3,N=4,K=5", "--isl-operations=100"}),
            "error: this def needs more than the compile budget of 100 isl operations\n");
  EXPECT_EQ(
      error({"run", "mm.tc", "--sizes=M=3,N=4,K=5", "--stop_after=map"}),
      "error: there is no pass 'map'; there are parse, analyse, program, specialise, prepare, scop, schedule, stmt, "
      "object, load\n");
}

TEST_F(Tool, RunWritesNothingWhereItCannot) {
  folder_.write("results", "a file, not a folder");
  EXPECT_NE(error({"run", "mm.tc", "--sizes=M=3,N=4,K=5", "--output_dir=results"}).find("'results'"),
            std::string::npos);
}

TEST_F(Tool, AReportThatCannotBePrintedLeavesNothing) {
  const auto full = [&](const std::string& words) {
    return std::system(("cd " + folder_.path() + " && " TC_TOOL " " + words + " > /dev/full 2> err").c_str());
  };
  for (const char* words : {"run mm.tc --sizes=M=2,N=2,K=2 --output_dir=out", "check mm.tc", "--help", "run --help"}) {
    EXPECT_EQ(WEXITSTATUS(full(words)), 1) << words;
    EXPECT_EQ(folder_.read("err"), "error: cannot write to standard output\n") << words;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out")));
}

/// The numbers that isl works with grow without a bound here.
TEST_F(Tool, ProofsKeepToTheTimeLimit) {
  folder_.write("hard.tc",
                "def f(float(N,M) A) -> (O) {\n"
                "  O(i) +=! (((i*3+j*7)/5)%3 < 2 && (i/2+j/3)%7 >= 1 && ((i*4+j*8+1)/6)%4 < 3 && (i/3+j/4)%8 >= 1) ?\n"
                "    A((i*3+j)/5, (i+j*7)/11%3) : 0.0 where i in 0:N, j in 0:M\n}\n");
  const std::string late = "error: this def needs more than the compile budget of 400 ms\n";
  EXPECT_EQ(error({"run", "hard.tc", "--sizes=N=37,M=41", "--time_limit_ms=400"}), late);
  EXPECT_EQ(error({"check", "hard.tc", "--time_limit_ms=400"}), late);
  EXPECT_EQ(error({"check", "hard.tc", "--time_limit_ms=0"}), "error: '--time_limit_ms' is 0; it must be at least 1\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"check", "mm.tc"}, {"run", "mm.tc", "--sizes=M=2,N=2,K=2", "--output_dir="}}) {
    std::vector<std::string> without_end = words;
    without_end.emplace_back("--time_limit_ms=9223372036854775807");
    EXPECT_EQ(folder_.run(without_end).code, 0) << folder_.run(without_end).err;
  }
}

TEST_F(Tool, RunPrintsWithoutWriting) {
  good({"run", "mm.tc", "--sizes=M=3,N=4,K=5", "--output_dir="});
  EXPECT_EQ(folder_.files(), std::vector<std::string>{"mm.tc"});
}

TEST_F(Tool, RunTakesOptionsAndStrictness) {
  folder_.write("o", "tile: [4, 4]\nparallel: false\nscheduler { fusion_strategy: MIN }");
  const std::string out =
      good({"run", "mm.tc", "--sizes=M=13,N=14,K=15", "--options=o", "--strict", "--verify", "--check"});
  EXPECT_NE(out.find("check: 'C' agrees"), std::string::npos) << out;
}

TEST_F(Tool, FlagsAllowTensorCoresToRound) {
  folder_.write("p.tc",
                "def p(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }\n"
                "def q(float8_e4m3(M,K) A, float8_e4m3(N,K) B) -> (float(M,N) C) { C(m,n) +=! A(m,k) * B(n,k) }\n");
  const auto text = [&](const std::string& entry, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"emit", "p.tc", "--entry=" + entry, "--stage=cuda", "--backend=cuda", "--arch=sm_90a",
                                 "--sizes=M=1024,N=1024,K=1024"});
    return good(flags);
  };
  EXPECT_EQ(text("p", {}).find("tf32"), std::string::npos);
  EXPECT_NE(text("p", {"--tf32"}).find("tf32"), std::string::npos);
  EXPECT_NE(text("q", {}).find("set_products_e4m3"), std::string::npos) << "sums in parts";
  EXPECT_EQ(text("q", {"--fast_accumulation"}).find("set_products_e4m3"), std::string::npos);
}

TEST_F(Tool, EmitPrintsEveryStage) {
  const std::vector<std::string> base = {"emit", "mm.tc", "--sizes=M=8,N=8,K=8", "--threads=2"};
  const auto emit = [&](const std::string& flag) {
    std::vector<std::string> words = base;
    words.push_back(flag);
    return good(words);
  };
  EXPECT_EQ(emit("--stage=ast").substr(0, 14), "definition mm\n");
  EXPECT_EQ(emit("--stage=program").substr(0, 40), "program mm\n  input float32(8,8) A\n  inpu");
  EXPECT_EQ(good({"emit", "mm.tc", "--stage=program"}).substr(0, 20), "program mm\n  size M\n");
  EXPECT_EQ(emit("--stage=schedule").substr(0, 10), "schedule:\n");
  EXPECT_NE(emit("--stage=stmt").find("C["), std::string::npos);
  EXPECT_NE(emit("--stage=object").find("tc_mm:"), std::string::npos);
  EXPECT_EQ(emit("--stop_after=scop").substr(0, 8), "domain:\n");
  EXPECT_EQ(emit("--stage=ast"), emit("--stop_after=analyse"));
  for (const char* stage : {"schedule", "stmt", "object"}) {
    EXPECT_EQ(emit(std::string("--stage=") + stage), emit(std::string("--stage=") + stage)) << stage;
  }
}

TEST_F(Tool, RunsOnTheSimulator) {
  const std::string simulated =
      good({"run", "mm.tc", "--sizes=M=5,N=6,K=7", "--output_dir=sim", "--backend=sim", "--check"});
  EXPECT_NE(simulated.find("check: 'C' agrees"), std::string::npos) << simulated;
  good({"run", "mm.tc", "--sizes=M=5,N=6,K=7", "--output_dir=preset", "--backend=sim", "--preset=single_thread"});
  good({"run", "mm.tc", "--sizes=M=5,N=6,K=7", "--output_dir=interp", "--backend=interp"});
  const std::vector<float> expected = read_floats("interp/C.npy");
  for (const char* folder : {"sim/C.npy", "preset/C.npy"}) {
    const std::vector<float> found = read_floats(folder);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << folder;
  }
}

TEST_F(Tool, MappingOptionsAreForAGpu) {
  folder_.write("o", "tile: [4, 4]\nmap_to_threads: [4]");
  good({"run", "mm.tc", "--sizes=M=5,N=6,K=7", "--output_dir=", "--backend=sim", "--options=o", "--check"});
  EXPECT_EQ(error({"run", "mm.tc", "--sizes=M=5,N=6,K=7", "--backend=cpu", "--options=o"}),
            "o:2:1: error: there is no option 'map_to_threads' of the CPU; there are scheduler, tile, vector_width, "
            "unroll, parallel, promote, strict, check_bounds\n"
            "    map_to_threads: [4]\n"
            "    ^~~~~~~~~~~~~~\n");
  EXPECT_EQ(error({"run", "mm.tc", "--preset=mlp"}), "error: '--preset' is for the backends cuda and sim\n");
  EXPECT_EQ(error({"run", "mm.tc", "--backend=sim", "--preset=fast"}),
            "error: there is no preset 'fast'; there are naive, single_thread, pointwise, mlp, conv, group_conv\n");
  EXPECT_EQ(error({"run", "mm.tc", "--backend=sim", "--preset=mlp", "--options=o"}),
            "error: '--options' and '--preset' exclude each other\n");
  EXPECT_EQ(error({"run", "mm.tc", "--backend=sim", "--repeat=3"}),
            "error: '--repeat' is for the backends cpu and cuda\n");
  for (const char* backend : {"cpu", "sim", "interp"}) {
    EXPECT_EQ(error({"run", "mm.tc", std::string("--backend=") + backend, "--sizes=M=2,N=2,K=2", "--device=99"}),
              "error: '--device' is for the backend cuda\n");
  }
}

TEST_F(Tool, EmitShowsTheStagesOfAGpu) {
  const auto emit = [this](const std::string& stage) { return good({"emit", "mm.tc", stage, "--sizes=M=8,N=8,K=8"}); };
  EXPECT_EQ(emit("--stage=tile").substr(0, 11), "program mm\n");
  EXPECT_EQ(emit("--stage=map").substr(0, 13), "kernel mm_0: ");
  EXPECT_EQ(good({"emit", "mm.tc", "--stage=schedule", "--backend=sim", "--sizes=M=8,N=8,K=8"}).substr(0, 9),
            "piece 0: ");
  const std::string text = emit("--stage=cuda");
  EXPECT_EQ(text.substr(0, 10), "// def mm(");
  EXPECT_NE(text.find("extern \"C\" __global__"), std::string::npos);
  EXPECT_EQ(text, emit("--stop_after=cuda"));
  const std::string certificate = emit("--stage=certificate");
  EXPECT_TRUE(certificate.starts_with("kernel mm_0\n  bounds: ")) << certificate;
  EXPECT_EQ(certificate.find("not proved"), std::string::npos) << certificate;
  EXPECT_EQ(certificate, good({"emit", "mm.tc", "--stage=certificate", "--backend=sim", "--sizes=M=8,N=8,K=8"}));
  EXPECT_EQ(good({"emit", "mm.tc", "--stop_after=prepare", "--backend=cuda", "--sizes=M=2,N=2,K=9"}).substr(0, 10),
            "program mm");
  EXPECT_EQ(error({"emit", "mm.tc", "--stage=cuda", "--sizes=M=8,N=8,K=8", "--arch=sm90"}),
            "error: 'sm90' is no GPU architecture; one is written like sm_80 or sm_90a\n");
  EXPECT_EQ(error({"emit", "mm.tc", "--stop_after=cudas", "--backend=cuda", "--sizes=M=8,N=8,K=8"}),
            "error: there is no pass 'cudas'; did you mean 'cuda'?\n");
}

TEST_F(Tool, KernelsForTensorsThatAreAlignedToTheirElements) {
  folder_.write("sums.tc", "def sums(float(N,D) x) -> (s) { s(n) +=! x(n,d) }\n");
  const std::vector<std::string> base = {"emit", "sums.tc", "--stage=cuda", "--sizes=N=64,D=1024"};
  std::vector<std::string> flagged = base;
  flagged.push_back("--element_aligned");
  EXPECT_NE(good(base).find("float4"), std::string::npos);
  EXPECT_EQ(good(flagged).find("float4"), std::string::npos);
  const std::string run = good(
      {"run", "mm.tc", "--sizes=M=16,N=16,K=16", "--backend=sim", "--element_aligned", "--check", "--output_dir="});
  EXPECT_NE(run.find("check: 'C' agrees"), std::string::npos) << run;
  EXPECT_EQ(error({"run", "mm.tc", "--sizes=M=8,N=8,K=8", "--element_aligned"}),
            "error: '--element_aligned' is for the backends cuda and sim\n");
}

TEST_F(Tool, WhatIsMissingForAGpuIsSaid) {
  ::setenv("TENSORC_NVRTC", "/nonexistent/libnvrtc.so", 1);
  EXPECT_EQ(error({"emit", "mm.tc", "--stage=ptx", "--sizes=M=8,N=8,K=8"}),
            "error: NVRTC is not found (looked for /nonexistent/libnvrtc.so)\n");
  // With a driver and a GPU, NVRTC is what is missing.
  const std::string no_gpu = error({"run", "mm.tc", "--sizes=M=8,N=8,K=8", "--backend=cuda"});
  EXPECT_TRUE(no_gpu.starts_with("error: NVIDIA's driver ") || no_gpu.starts_with("error: NVRTC is not found"))
      << no_gpu;
  // Then auto is the CPU.
  const std::string chosen =
      good({"run", "mm.tc", "--sizes=M=8,N=8,K=8", "--backend=auto", "--output_dir=", "--check"});
  EXPECT_NE(chosen.find("check: 'C' agrees"), std::string::npos) << chosen;
  ::unsetenv("TENSORC_NVRTC");
}

TEST_F(Tool, EmitWritesToAFile) {
  EXPECT_EQ(good({"emit", "mm.tc", "--stage=ast", "--output=ast.txt"}), "");
  EXPECT_EQ(folder_.read("ast.txt"), good({"emit", "mm.tc", "--stage=ast"}));
  EXPECT_EQ(error({"emit", "mm.tc", "--stage=ast", "--output=./mm.tc"}),
            "error: '--output=./mm.tc' would replace the program that is read\n");
  EXPECT_EQ(folder_.read("mm.tc"), kMm);
}

TEST_F(Tool, EmitWritesToAPipe) {
  ASSERT_EQ(::mkfifo(folder_.path("pipe").c_str(), 0600), 0);
  const int pipe = ::open(folder_.path("pipe").c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(pipe, 0);
  good({"emit", "mm.tc", "--stage=ast", "--output=pipe"});
  std::string text(1 << 12, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(::read(pipe, text.data(), text.size()), 0)));
  ::close(pipe);
  EXPECT_EQ(text, good({"emit", "mm.tc", "--stage=ast"}));
}

TEST_F(Tool, EmitRefusesWhatItCannotShow) {
  EXPECT_EQ(error({"emit", "mm.tc"}),
            "error: '--stage' is missing; the stages are ast, program, schedule, stmt, object, map, tile, "
            "certificate, cuda, ptx, cubin\n");
  for (const char* backend : {"cpu", "interp"}) {
    EXPECT_EQ(
        error({"emit", "mm.tc", "--stage=certificate", std::string("--backend=") + backend, "--sizes=M=8,N=8,K=8"}),
        std::string("error: the stage 'certificate' is of GPU kernels; '--backend=") + backend + "' has none\n");
  }
  EXPECT_EQ(error({"emit", "mm.tc", "--stage=stm"}), "error: there is no stage 'stm'; did you mean 'stmt'?\n");
  EXPECT_EQ(error({"emit", "mm.tc", "--stage=stmt", "--stop_after=stmt"}),
            "error: '--stage' and '--stop_after' exclude each other\n");
  EXPECT_EQ(error({"emit", "mm.tc", "--stage=stmt"}),
            "error: sizes 'M', 'K', 'N' of 'mm' have no value; give them by --sizes=M=...,K=...,N=...\n");
  EXPECT_EQ(error({"emit", "mm.tc", "--stage=cuda", "--sizes=M=8,N=8,K=8", "--target=sm_80"}),
            "error: '--target=sm_80' names a processor, and this compiles for a GPU, which '--arch=sm_90a' names\n");
  EXPECT_EQ(error({"emit", "mm.tc", "--stage=stmt", "--sizes=M=8,N=8,K=8", "--target=abacus"}),
            "error: 'abacus' is not a target such as 'x86-64-linux-avx2-fma'\n");
}

TEST_F(Tool, TimesOfPassesGoToStandardError) {
  const Output output = folder_.run({"emit", "mm.tc", "--stage=ast", "--time_passes"});
  EXPECT_EQ(output.code, 0);
  EXPECT_EQ(output.out, good({"emit", "mm.tc", "--stage=ast"}));
  EXPECT_EQ(output.err.substr(0, 6), "parse ");
  EXPECT_NE(output.err.find("\ntotal "), std::string::npos);
}

TEST_F(Tool, T7_InstancesOfGenericDefs) {
  folder_.write("scale.tc", "def scale<T>(T(N) x) -> (y) { y(i) = x(i) + x(i) }\n");
  EXPECT_EQ(
      good({"check", "scale.tc"}),
      "def scale<float32>(float32(N) x) -> (float32(N) y)\n"
      "  y(i) = ...  map i in 0:N\n"
      "      i ends by x(i) (R2)\n"
      "  instances of scale<T> without errors: scale<float32>, scale<float64>, scale<float16>, scale<bfloat16>, "
      "scale<int32>, scale<int64>, scale<int16>, scale<int8>, scale<uint8>, scale<uint16>, scale<uint32>, "
      "scale<uint64>\n"
      "  instances with errors: scale<bool>; the first has: '+' takes numbers, and 'x(i)' is a bool: write a cast, "
      "as in int32(x(i))\n");
  EXPECT_EQ(good({"check", "scale.tc", "--types=T=int8"}),
            "def scale<int8>(int8(N) x) -> (int8(N) y)\n"
            "  y(i) = ...  map i in 0:N\n"
            "      i ends by x(i) (R2)\n");
  const std::vector<std::string> run = {"run", "scale.tc", "--sizes=N=4", "--check", "--output_dir="};
  const auto with = [&](const std::string& word) {
    std::vector<std::string> words = run;
    words.push_back(word);
    return words;
  };
  EXPECT_TRUE(good(with("--types=T=float64")).starts_with("y  float64(4)"));
  EXPECT_TRUE(good(with("--entry=scale<int16>")).starts_with("y  int16(4)"));
  EXPECT_EQ(
      error(run),
      "error: nothing decides the type variable 'T' of 'scale': no tensor of that type is given (x); give the type "
      "by --types=T=float32\n");
  EXPECT_EQ(error(with("--types=T=float17")),
            "error: the type of 'T' is 'float17', which is none; did you mean 'float16'?\n");
  EXPECT_EQ(error(with("--types=T=bf16")),
            "error: the type of 'T' is 'bf16', which is none; did you mean 'bfloat16'?\n");
  EXPECT_EQ(error(with("--types=T=real")),
            "error: the type of 'T' is 'real', which is none; float32, float16 and int64 are types\n");
  EXPECT_EQ(error(with("--types=U=float32")), "error: 'scale' has no type variable 'U'; it has 'T'\n");
  EXPECT_EQ(error({"run", "mm.tc", "--sizes=M=2,N=2,K=2", "--types=T=float32"}),
            "error: 'mm' is not generic; '--types' is for generic defs\n");
  // Defs with variables of their own get types of their own.
  folder_.write("two.tc",
                "def f<T>(T(N) x) -> (y) { y(i) = x(i) }\n"
                "def g<T, U>(T(N) x, U(N) z) -> (y) { y(i) = float(x(i)) + float(z(i)) }\n"
                "def h<V>(V(N) x) -> (y) { y(i) = x(i) }\n");
  const std::string checked = good({"check", "two.tc", "--types=T=int8,g.T=int16,U=float64"});
  EXPECT_EQ(checked.find("def f<int8>("), 0u) << checked;
  EXPECT_NE(checked.find("def g<int16,float64>("), std::string::npos) << checked;
  EXPECT_NE(checked.find("instances of h<V> without errors: h<float32>, "), std::string::npos) << checked;
  EXPECT_EQ(
      good({"run", "two.tc", "--entry=f", "--types=T=int8,U=float64", "--sizes=N=2", "--output_dir="}).find("y  int8"),
      0u);
  EXPECT_EQ(good({"emit", "two.tc", "--entry=g", "--types=f.T=int8,g.T=int16,g.U=float64", "--stage=ast"})
                .find("definition g<int16,float64>"),
            0u);
  EXPECT_EQ(error({"check", "two.tc", "--types=g.T=int8"}),
            "error: nothing decides the type variable 'U' of 'g': no tensor of that type is given (z)\n");
  EXPECT_EQ(error({"check", "two.tc", "--types=W=int8"}), "error: no def has a type variable 'W'\n");
  EXPECT_EQ(error({"check", "two.tc", "--types=f.U=int8"}), "error: 'f' has no type variable 'U'; it has 'T'\n");
  EXPECT_EQ(error({"emit", "two.tc", "--entry=f", "--types=k.T=int8", "--stage=ast"}),
            "error: there is no def 'k'; there are f, g, h\n");
  EXPECT_EQ(
      error({"run", "two.tc", "--entry=f", "--types=U=int8", "--sizes=N=2"}),
      "error: nothing decides the type variable 'T' of 'f': no tensor of that type is given (x); give the type by "
      "--types=T=float32\n");
  // A file decides by its type.
  good({"run", "scale.tc", "--types=T=int64", "--sizes=N=3", "--output_dir=out"});
  EXPECT_TRUE(good({"run", "scale.tc", "--inputs=x=out/y.npy", "--output_dir="}).starts_with("y  int64(3)"));
  // That of an 8-bit float does not say which of the two it is.
  folder_.write("cast.tc", "def cast<T>(T(N) x) -> (y) { y(i) = float(x(i)) }\n");
  folder_.write("to.tc", "def to(float(N) x) -> (y) { y(i) = float8_e5m2(x(i)) }\n");
  good({"run", "to.tc", "--sizes=N=3", "--output_dir=out"});
  const std::vector<std::string> bytes = {"run", "cast.tc", "--inputs=x=out/y.npy", "--output_dir="};
  EXPECT_NE(error(bytes).find("nothing decides the type variable 'T' of 'cast'"), std::string::npos);
  std::vector<std::string> named = bytes;
  named.push_back("--types=T=float8_e5m2");
  EXPECT_TRUE(good(named).starts_with("y  float32(3)"));
}

}  // namespace
}  // namespace tc::cli
