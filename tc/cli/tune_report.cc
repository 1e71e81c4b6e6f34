#include "tc/cli/tune_report.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
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

std::string best_text(const tune::Progress& progress) {
  if (progress.best_us <= 0) return "nothing measured yet";
  return fmt::format("best {}, {:.2f}x of the default's {}", time_text(progress.best_us),
                     progress.default_us / progress.best_us, time_text(progress.default_us));
}

/// Of the terminal that standard error is, less one column, in which some turn to the next line.
size_t terminal_width() {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return is_known ? size.ws_col - 1U : 79;
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
  std::string text = fmt::format("{}; {} of {} done; {}", best_text(progress), progress.done, progress.planned,
                                 failures_text(progress.failed));
  if (progress.seconds_left) text += fmt::format("; {} left", duration_text(*progress.seconds_left));
  return text;
}

std::vector<std::string> progress_table(const std::string& title, const tune::Progress& progress, size_t width) {
  std::vector<std::string> lines = {title};
  const auto add = [&](const char* name, const std::string& value) {
    lines.push_back(fmt::format("  {:<12}{}", name, value));
  };
  add("time", best_text(progress));
  add("candidates", fmt::format("{} of {} done, generation {}; {} points turned down uncompiled", progress.done,
                                progress.planned, progress.generation, progress.rejected));
  add("failed", failures_text(progress.failed));
  add("left", progress.seconds_left ? duration_text(*progress.seconds_left) : "not known yet");
  if (progress.last)
    add("last", fmt::format("{}: {}", name_of(progress.last->outcome), in_a_line(progress.last->options)));
  for (std::string& line : lines) {
    if (line.size() > width) line.resize(width);
  }
  return lines;
}

void TuneProgress::show(const tune::Progress& progress) {
  const steady_clock::time_point now = steady_clock::now();
  const bool is_news = progress.best_us != best_us_ || progress.done == progress.planned;
  if (!is_news && now - last_ < (is_terminal_ ? std::chrono::milliseconds(100) : std::chrono::seconds(10))) return;
  last_ = now;
  best_us_ = progress.best_us;
  if (is_terminal_) {
    // Up to where the table begins, and over it.
    std::string text = lines_ > 0 ? fmt::format("\033[{}F", lines_) : "";
    const std::vector<std::string> lines = progress_table(title_, progress, terminal_width());
    for (const std::string& line : lines) text += fmt::format("\033[K{}\n", line);
    lines_ = lines.size();
    std::fputs(text.c_str(), stderr);
  } else {
    std::fprintf(stderr, "%s: %s\n", title_.c_str(), progress_text(progress).c_str());
  }
  std::fflush(stderr);
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
  if (!tuned.noise.empty()) {
    text += fmt::format("The machine was too noisy to decide: {}. Search again when it is idle.\n", tuned.noise);
  }
  if (tuned.floor_us > 0) text += fmt::format("No code can take less than {} here.\n", time_text(tuned.floor_us));
  text += fmt::format("Results were compared with those of {}; {} points of the space were turned down uncompiled.\n",
                      tuned.reference, tuned.rejected);
  if (tuned.best.empty()) return text + "The best options are those that the compiler chooses.\n";
  text += "The best options, for --options:\n" + tuned.best;
  if (backend == options::Backend::kCpu) return text;
  if (const auto mapping = options::mapping_options_from_text(tuned.best)) {
    text += "The same in C++:\n" + options::to_cpp(*mapping) + "\n";
  }
  return text;
}

std::string history_header() {
  return "problem,candidate,generation,outcome,us,own_us,cold_us,spread,compile_ms,known_before,options,message\n";
}

std::string history_rows(const std::string& title, const tune::Tuned& tuned) {
  std::string rows;
  int number = 0;
  for (const tune::Record& r : tuned.history) {
    rows += fmt::format("{},{},{},{},{:.6g},{:.6g},{:.6g},{:.4g},{:.4g},{},{},{}\n", field(title), number++,
                        r.generation, name_of(r.outcome), r.us, r.own_us, r.cold_us, r.spread, r.compile_ms,
                        r.remembered ? 1 : 0, field(in_a_line(r.options)), field(in_a_line(r.message)));
  }
  return rows;
}

}  // namespace tc::cli
