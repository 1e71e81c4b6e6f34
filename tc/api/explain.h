#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/support/error.h"

/// What the compiler made of a def, and why: a value, and three ways to show it.
namespace tc::api {

/// Where a value waits between the statement that makes it and the one that uses it, nearest first.
enum class Rung {
  kInline,    ///< nowhere: the second computes it
  kRegister,  ///< in registers
  kCache,     ///< of a CPU: in a small buffer
  kShared,    ///< of a GPU: in a block's shared memory
  kMemory,    ///< in memory
};

struct Explanation {
  /// What set one end of a range.
  struct Bound {
    std::string rule{};   ///< of the language: "R2"
    std::string cause{};  ///< "A(m,k)"
    std::vector<SourceRange> reads{};
  };
  /// An index runs over [begin, end); the texts are over names of sizes.
  struct Index {
    std::string name{};
    bool reduces = false;
    int64_t begin = 0, end = 0;
    std::string begin_text{}, end_text{};
    Bound begin_by{}, end_by{};
  };
  struct Statement {
    std::string id{};  ///< "S0"
    std::string text{};
    std::optional<SourceRange> range{};  ///< absent: the compiler added it
    std::optional<size_t> kernel{};      ///< absent: its readers compute its values
    std::vector<Index> indices{};        ///< none where the compiler added it
  };
  /// A value that goes from one statement to another through a tensor.
  struct Edge {
    std::string tensor{};
    std::string from{}, to{};  ///< ids
    Rung rung = Rung::kMemory;
  };
  struct Level {
    std::string name{};  ///< "block", "thread"; of a CPU "core", "tile", "registers", "vector"; of a reduction "step"
    int64_t size = 1;    ///< values of the index
  };
  struct Loop {
    std::string index{};
    int64_t extent = 1;
    bool reduces = false;
    std::vector<Level> levels{};  ///< outermost first
  };
  /// Loops of statements that are cut in one way.
  struct Tiling {
    std::vector<std::string> statements{};
    std::vector<Loop> loops{};
  };
  struct Unfit {
    std::string strategy{};
    std::string reason{};
  };
  /// A part of an estimate: what the kernel would take if nothing else limited it.
  struct Term {
    std::string name{};
    double us = 0;
  };
  /// What no code for the operations and bytes of a kernel goes below, at the rates of the compiler's model.
  struct Floor {
    double operations = 0, operations_per_us = 0, operations_us = 0;
    double bytes = 0, bytes_per_us = 0, bytes_us = 0;
    double us() const { return operations_us > bytes_us ? operations_us : bytes_us; }
    const char* by() const { return operations_us > bytes_us ? "operations" : "bytes"; }
  };
  struct Launch {
    std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
    int64_t shared_bytes = 0;
    int barriers = 0;
    double waves = 0;      ///< blocks, of those that the device holds at once
    double occupancy = 0;  ///< threads of a processor, of the most
  };
  /// A launch of a GPU; of a CPU, statements under common outer loops.
  struct Kernel {
    std::string name{};
    std::string strategy{};
    std::vector<std::string> statements{};
    std::string options{};           ///< of a GPU: those that ask for just this kernel, as text
    std::optional<Launch> launch{};  ///< of a GPU
    std::vector<Tiling> tilings{};
    std::vector<Unfit> unfit{};  ///< strategies that were asked first
    std::optional<Floor> floor{};
    double estimate_us = 0;    ///< 0: there is none
    std::string limited_by{};  ///< what of the estimate is most
    std::vector<Term> terms{};
  };
  /// Why statements that follow or depend on each other are in two kernels.
  struct Apart {
    std::vector<std::string> first{}, second{};
    std::string reason{};
  };
  struct Options {
    /// "user", "cache" (the best that it knows), "compiler" (chosen), "hand": a kernel that no options make
    std::string origin = "compiler";
    std::string text{};
  };
  struct Cache {
    std::string file{};
    bool hit = false;        ///< it has the kernel
    double measured_us = 0;  ///< the shortest time that it has for the options; 0: none
  };
  /// What a search or a run has measured.
  struct Measurement {
    std::string options{};
    std::string device{};
    std::string outcome{};  ///< "ok", "refused", "wrong", "crashed", "time limit", "too slow"
    double us = 0;          ///< 0: there is none
    int64_t date = 0;       ///< seconds since 1970; 0: not known
  };

  std::string entry{};
  std::string signature{};  ///< with all shapes
  std::string backend{};    ///< "cpu", "cuda", "sim"
  std::string target{};     ///< "sm_90a"
  std::string machine{};    ///< "132 processors, 232448 bytes of shared memory"
  std::string file{};       ///< name of the text
  std::string text{};
  SourceRange def{};  ///< of the text
  std::vector<std::pair<std::string, int64_t>> sizes{}, scalars{};
  Options options{};
  std::optional<Cache> cache{};
  std::vector<Statement> statements{};
  std::vector<Edge> edges{};
  std::vector<Kernel> kernels{};  ///< in the order of their runs; none of a kernel by hand
  std::vector<Apart> apart{};
  std::string schedule{};                   ///< the tree as text, a node a line, indented
  std::string language{};                   ///< of the code: "cuda", "halide", "tile"
  std::string code{};                       ///< generated
  std::vector<Measurement> measurements{};  ///< oldest first

  double estimate_us() const;
  double floor_us() const;
};

/// "inline", "register", "cache", "shared", "memory".
const char* name_of(Rung rung);

/// For terminals: all but the schedule and the code.
std::string to_text(const Explanation& explanation);
/// One JSON object; docs/explain.md has its schema.
std::string to_json(const Explanation& explanation);
/// One page that needs nothing beside it: no script, no network.
std::string to_html(const Explanation& explanation);

}  // namespace tc::api
