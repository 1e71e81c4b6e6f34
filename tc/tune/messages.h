#pragma once

#include <optional>
#include <string>
#include <variant>

#include "tc/tune/result.h"

/// What a tuner asks and a worker answers, as values; proto/tune.proto says what each field means.
namespace tc::tune {

struct CompileJob {};
struct MeasureJob {
  std::string artifact{};
  int device = 0;
  std::string incumbent_options{};
  std::string incumbent_artifact{};
  bool has_incumbent = false;
  double hopeless = 0;
};

struct Job {
  std::string problem{};
  std::string options{};
  std::variant<CompileJob, MeasureJob> work{};
};

struct Reply {
  Outcome outcome = Outcome::kDone;
  std::string message{};
  std::string artifact{};
  double compile_ms = 0;
  double hot_us = 0;
  double cold_us = 0;
  double incumbent_us = 0;
  double spread = 0;
  std::string device{};
  double floor_us = 0;
};

std::string to_bytes(const Job& job);
std::string to_bytes(const Reply& reply);
/// Nothing where the bytes are no such message.
std::optional<Job> job_from(const std::string& bytes);
std::optional<Reply> reply_from(const std::string& bytes);

}  // namespace tc::tune
