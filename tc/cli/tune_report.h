#pragma once

#include <chrono>
#include <string>

#include "tc/options/backend.h"
#include "tc/tune/result.h"

/// What `tensorc tune` tells its user.
namespace tc::cli {

/// On a terminal one line on standard error that changes; elsewhere a line for each new best, and every ten seconds.
class TuneProgress {
 public:
  explicit TuneProgress(std::string title);
  void show(const tune::Progress& progress);
  void end();

 private:
  std::string title_;
  bool is_terminal_;
  bool has_line_ = false;
  double best_us_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

/// "best 12.3 us, 1.42x of the default's 17.5 us; 40 of 161 done; 3 failed (refused 2, crash 1); 1 min 12 s left"
std::string progress_text(const tune::Progress& progress);

/// The best options, ready to paste, and how they were found.
std::string tune_report(const std::string& title, options::Backend backend, const tune::Tuned& tuned);

/// The history as CSV (RFC 4180): a line of names, a row for each candidate.
std::string history_header();
std::string history_rows(const std::string& title, const tune::Tuned& tuned);

}  // namespace tc::cli
