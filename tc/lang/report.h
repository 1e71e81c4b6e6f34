#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tc/lang/limits.h"
#include "tc/support/result.h"

namespace tc::lang {

/// Gathers the diagnostics of a source, up to kMaxErrors; later ones are dropped.
class Report {
 public:
  explicit Report(SourcePtr source) : source_(std::move(source)) {}

  template <typename... Args>
  Diagnostic* error(SourceRange range, fmt::format_string<Args...> format, Args&&... args) {
    if (diagnostics_.size() >= kMaxErrors) return &dropped_;
    diagnostics_.push_back({range, fmt::format(format, std::forward<Args>(args)...), {}});
    return &diagnostics_.back();
  }

  bool empty() const { return diagnostics_.empty(); }
  size_t size() const { return diagnostics_.size(); }
  const SourcePtr& source() const { return source_; }

  /// In the order of the text.
  Error take() {
    std::stable_sort(diagnostics_.begin(), diagnostics_.end(),
                     [](const Diagnostic& a, const Diagnostic& b) { return a.range->begin < b.range->begin; });
    return Error(source_, std::move(diagnostics_));
  }

 private:
  SourcePtr source_;
  std::vector<Diagnostic> diagnostics_;
  Diagnostic dropped_;
};

}  // namespace tc::lang
