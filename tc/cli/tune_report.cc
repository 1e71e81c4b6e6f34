#include "tc/cli/tune_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tc/cli/report.h"
#include "tc/options/mapping.h"

namespace tc::cli {
namespace {

using std::chrono::steady_clock;
using tune::Outcome;

std::string duration_text(double seconds) {
  const auto s = static_cast<int64_t>(std::ceil(seconds));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  return fmt::format("{} h {} min", s / 3600, s % 3600 / 60);
}

std::string failures_text(const std::map<Outcome, int>& failed) {
  int total = 0;
  std::string reasons;
  for (const auto& [outcome, count] : failed) {
    total += count;
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", name_of(outcome), count);
  }
  return total == 0 ? "none failed" : fmt::format("{} failed ({})", total, reasons);
}

const char* text_of(tune::Ending ending) {
  switch (ending) {
    case tune::Ending::kFinished:
      return "";
    case tune::Ending::kExhausted:
      return "; all that the space has";
    case tune::Ending::kTimeLimit:
      return "; stopped at the time limit";
    case tune::Ending::kStopped:
      return "; stopped by a signal";
  }
  return "";
}

/// A field of a CSV file, quoted if it has to be.
std::string field(std::string text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  for (size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
  return '"' + text + '"';
}

/// Options in one line.
std::string in_a_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool is_blank = c == '\n' || c == ' ';
    if (!is_blank || (!line.empty() && line.back() != ' ')) line += is_blank ? ' ' : c;
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

}  // namespace

TuneProgress::TuneProgress(std::string title) : title_(std::move(title)), is_terminal_(::isatty(STDERR_FILENO) != 0) {}

std::string progress_text(const tune::Progress& progress) {
  std::string text = "nothing measured yet";
  if (progress.best_us > 0) {
    text = fmt::format("best {}, {:.2f}x of the default's {}", time_text(progress.best_us),
                       progress.default_us / progress.best_us, time_text(progress.default_us));
  }
  text += fmt::format("; {} of {} done; {}", progress.done, progress.planned, failures_text(progress.failed));
  if (progress.seconds_left) text += fmt::format("; {} left", duration_text(*progress.seconds_left));
  return text;
}

void TuneProgress::show(const tune::Progress& progress) {
  const steady_clock::time_point now = steady_clock::now();
  const bool is_news = progress.best_us != best_us_ || progress.done == progress.planned;
  if (!is_news && now - last_ < (is_terminal_ ? std::chrono::milliseconds(100) : std::chrono::seconds(10))) return;
  last_ = now;
  best_us_ = progress.best_us;
  const std::string line = fmt::format("{}: {}", title_, progress_text(progress));
  if (is_terminal_) {
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    has_line_ = true;
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  std::fflush(stderr);
}

void TuneProgress::end() {
  if (has_line_) std::fputc('\n', stderr);
  has_line_ = false;
}

std::string tune_report(const std::string& title, options::Backend backend, const tune::Tuned& tuned) {
  std::map<Outcome, int> failed;
  int measured = 0;
  for (const tune::Record& record : tuned.history) {
    if (record.outcome != Outcome::kDone) ++failed[record.outcome];
    measured += !record.remembered;
  }
  std::string text =
      fmt::format("{}: {} on {}, {:.3f}x as fast as the default; {} candidates, {} known before; {}{}\n", title,
                  time_text(tuned.best_us), tuned.device.empty() ? "this device" : tuned.device, tuned.speedup,
                  tuned.history.size(), tuned.history.size() - static_cast<size_t>(measured), failures_text(failed),
                  text_of(tuned.ending));
  if (tuned.best.empty()) return text + "The best options are those that the compiler chooses.\n";
  text += "The best options, for --options:\n" + tuned.best;
  if (backend == options::Backend::kCpu) return text;
  if (const auto mapping = options::mapping_options_from_text(tuned.best)) {
    text += "The same in C++:\n" + options::to_cpp(*mapping) + "\n";
  }
  return text;
}

std::string history_header() {
  return "problem,candidate,generation,outcome,us,cold_us,spread,compile_ms,known_before,options,message\n";
}

std::string history_rows(const std::string& title, const tune::Tuned& tuned) {
  std::string rows;
  int number = 0;
  for (const tune::Record& r : tuned.history) {
    rows += fmt::format("{},{},{},{},{:.6g},{:.6g},{:.4g},{:.4g},{},{},{}\n", field(title), number++, r.generation,
                        name_of(r.outcome), r.us, r.cold_us, r.spread, r.compile_ms, r.remembered ? 1 : 0,
                        field(in_a_line(r.options)), field(in_a_line(r.message)));
  }
  return rows;
}

}  // namespace tc::cli
