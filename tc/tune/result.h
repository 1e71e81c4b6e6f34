#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

/// What a tuner tells its caller.
namespace tc::tune {

enum class SearchKind { kGenetic, kRandom };

/// How a candidate ended.
enum class Outcome {
  kDone,        ///< compiled, or measured and right
  kRefused,     ///< the compiler or the launch refuses the options
  kFault,       ///< an internal error of the compiler
  kWrong,       ///< a result is not the oracle's
  kHopeless,    ///< stopped early; its time is rough
  kUnusable,    ///< the problem itself is at fault: no options would help
  kCrash,       ///< its worker ended
  kHang,        ///< it took longer than its limit
  kGarbage,     ///< its worker wrote what is no reply
  kImpossible,  ///< its time is below the least that the machine can take: the clock is wrong
};
/// "done", "refused", "fault", "wrong result", ...
const char* name_of(Outcome outcome);

/// What has become of one candidate.
struct Record {
  int generation = 0;
  std::string options{};
  Outcome outcome = Outcome::kDone;
  /// Of one run, hot. Corrected for drift by what the incumbent took in the same rounds, by a factor of kMostDrift at
  /// most (tuner.h); so a repeated run confirms it within that factor.
  double us = 0;
  double own_us = 0;  ///< the median of its own runs, not corrected
  double cold_us = 0;
  double spread = 0;
  double compile_ms = 0;
  std::string message{};
  bool remembered = false;  ///< known from before: not measured now
  bool corrected = false;   ///< seemed faster than it was in the last comparison, which its time is of
};

struct Progress {
  int done = 0;  ///< candidates, of `planned`
  int planned = 0;
  int generation = 0;
  double default_us = 0;  ///< 0: not yet measured
  double best_us = 0;
  std::map<Outcome, int> failed{};
  int rejected = 0;                      ///< points that were drawn and turned down before any compilation
  std::optional<double> seconds_left{};  ///< an estimate, or of the time limit
  const Record* last = nullptr;
};

enum class Ending { kFinished, kExhausted, kTimeLimit, kStopped };

struct Tuned {
  Ending ending = Ending::kFinished;
  std::string best{};  ///< options as text; the fastest of the history
  double best_us = 0;
  double best_cold_us = 0;
  double default_us = 0;  ///< of the space's first candidate
  double floor_us = 0;    ///< the least that one run can take on the device; 0: not known
  double speedup = 1;     ///< default over best, measured in turn at the end; at least 1
  std::string noise{};    ///< why the machine was too noisy to decide; empty: it was not
  std::string device{};
  std::string reference{};  ///< what results were compared with
  int rejected = 0;         ///< as Progress
  /// What a worker made of the best options; empty where an earlier run had measured them, or others seemed better.
  std::string artifact{};
  std::string not_kept{};         ///< why not all of it is in the caller's cache; empty: it is, or there is none
  std::vector<Record> history{};  ///< in the order of their ends; `known` ones that were met again are among them
};

}  // namespace tc::tune
