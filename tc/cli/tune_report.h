#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tc/options/backend.h"
#include "tc/tune/result.h"

/// What `tensorc tune` tells its user.
namespace tc::cli {

/// On standard error: on a terminal a table that changes where it stands; elsewhere a line for each new best, and every
/// ten seconds.
class TuneProgress {
 public:
  explicit TuneProgress(std::string title);
  void show(const tune::Progress& progress);

 private:
  std::string title_;
  bool is_terminal_;
  size_t lines_ = 0;  ///< of the table that stands there
  double best_us_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

/// "best 12.3 us, 1.42x of the default's 17.5 us; 40 of 161 done; 3 failed (refused 2, crash 1); 1 min 12 s left"
std::string progress_text(const tune::Progress& progress);

/// The same as the lines of a table, each cut to a terminal's width.
std::vector<std::string> progress_table(const std::string& title, const tune::Progress& progress, size_t width);

/// The best options, ready to paste, and how they were found.
std::string tune_report(const std::string& title, options::Backend backend, const tune::Tuned& tuned);

/// The history as CSV (RFC 4180): a line of names, a row for each candidate.
std::string history_header();
std::string history_rows(const std::string& title, const tune::Tuned& tuned);

}  // namespace tc::cli
