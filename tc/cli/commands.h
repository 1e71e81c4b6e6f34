#pragma once

#include <string>
#include <vector>

#include "tc/support/error.h"

/// The sub-commands. Each takes its FILE arguments; its flags are those of tc/cli/flags.h.
namespace tc::cli {

Result<void> run_check(const std::vector<std::string>& files);
Result<void> run_fmt(const std::vector<std::string>& files);
Result<void> run_run(const std::vector<std::string>& files);
Result<void> run_emit(const std::vector<std::string>& files);
Result<void> run_explain(const std::vector<std::string>& files);
Result<void> run_cache_import(const std::vector<std::string>& files);
Result<void> run_export(const std::vector<std::string>& files);
Result<void> run_cache_list(const std::vector<std::string>& files);
Result<void> run_cache_show(const std::vector<std::string>& files);
Result<void> run_cache_best(const std::vector<std::string>& files);
Result<void> run_cache_merge(const std::vector<std::string>& files);
Result<void> run_cache_verify(const std::vector<std::string>& files);
Result<void> run_cache_prune(const std::vector<std::string>& files);
Result<void> run_cache_export(const std::vector<std::string>& files);
Result<void> run_tune(const std::vector<std::string>& files);
Result<void> run_worker(const std::vector<std::string>& files);

/// What a flag means to a command, where its general text would speak of another one; "" if the general text serves.
std::string text_of_flag(const std::string& command, const std::string& flag);

}  // namespace tc::cli
