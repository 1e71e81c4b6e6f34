#include "tc/cli/log.h"

#include <fnmatch.h>
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <string_view>

#include "tc/support/log.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

/// What --vmodule says of the sources whose names a pattern matches.
struct ModuleLevel {
  std::string pattern;
  int verbosity = 0;
};

/// "tuner=2,kernel_*=1"; as glog does it, what is no such pair is left out.
std::vector<ModuleLevel> module_levels(std::string_view text) {
  std::vector<ModuleLevel> levels;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size()), equals = text.substr(0, end).find('=');
    if (equals != std::string_view::npos) {
      ModuleLevel level{.pattern = std::string(text.substr(0, equals))};
      std::from_chars(text.data() + equals + 1, text.data() + end, level.verbosity);
      levels.push_back(std::move(level));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return levels;
}

/// The first pattern that matches a source's name decides, else --v.
int verbosity_of(std::string_view file, const std::vector<ModuleLevel>& levels) {
  const std::string module(file.substr(0, file.find('.')));
  for (const ModuleLevel& level : levels) {
    if (::fnmatch(level.pattern.c_str(), module.c_str(), 0) == 0) return level.verbosity;
  }
  return FLAGS_v;
}

/// Of a message: glog's --v has to be at least this.
int verbosity_of(LogLevel level) { return level == LogLevel::kTrace ? 2 : level == LogLevel::kDetail ? 1 : 0; }

LogLevel level_of(int verbosity) {
  return verbosity >= 2 ? LogLevel::kTrace : verbosity == 1 ? LogLevel::kDetail : LogLevel::kInfo;
}

void write(const LogMessage& message, const std::vector<ModuleLevel>& levels) {
  const int needed = verbosity_of(message.level);
  if (needed > 0 && verbosity_of(message.file, levels) < needed) return;
  const std::string file(message.file);
  const auto severity = message.level == LogLevel::kWarning ? google::GLOG_WARNING : google::GLOG_INFO;
  google::LogMessage(file.c_str(), message.line, severity).stream() << message.text;
}

bool is_given(const std::string& name) {
  const gflags::CommandLineFlagInfo info = gflags::GetCommandLineFlagInfoOrDie(name.c_str());
  return !info.is_default;
}

}  // namespace

const std::vector<std::string>& log_flags() {
  static const std::vector<std::string> kNames = {"v",
                                                  "vmodule",
                                                  "minloglevel",
                                                  "logtostderr",
                                                  "alsologtostderr",
                                                  "stderrthreshold",
                                                  "log_dir",
                                                  "log_link",
                                                  "max_log_size",
                                                  "logbufsecs",
                                                  "logbuflevel",
                                                  "logfile_mode",
                                                  "log_prefix",
                                                  "log_year_in_prefix",
                                                  "log_utc_time",
                                                  "colorlogtostderr"};
  return kNames;
}

std::string text_of_log_flag(const std::string& name) {
  static const std::map<std::string, std::string> kTexts = {
      {"v",
       "Verbosity. 0: each kernel compiled into a cache and each search. 1: also where a kernel comes from, each pass "
       "with its time, each candidate of a search, and what its workers write. 2: also each look-up in a cache."},
      {"vmodule",
       "SOURCE=VERBOSITY,... Verbosity of messages from some sources, by their names without the extension; * and ? "
       "match. The first match decides. Messages begin with their source: pipeline (passes), engine, kernel_store "
       "(cache), map (kernels of a GPU), tuner, worker_pool."},
      {"minloglevel", "Messages below this level are dropped."},
      {"logtostderr", "Write to standard error instead of files. This is so unless --log_dir is given."},
      {"alsologtostderr", "Write to standard error as well as to files."},
      {"stderrthreshold", "Messages of at least this level go to standard error too, where the others go to files."},
      {"log_dir", "Folder for the files, tensorc.HOST.USER.log.LEVEL.DATE-TIME.PROCESS. It must exist."},
      {"log_link", "Folder for more links to the files."},
      {"max_log_size", "Megabytes of a file, before the next is begun."},
      {"logbufsecs", "Seconds that messages may wait before they are written to files."},
      {"logbuflevel", "Messages up to this level may wait. -1: none."},
      {"logfile_mode", "Permissions of the files, as a number."},
      {"log_prefix", "Begin each message with its level, time, thread and source."},
      {"log_year_in_prefix", "Put the year into the time."},
      {"log_utc_time", "Use UTC."},
      {"colorlogtostderr", "Colour what goes to a terminal."}};
  const auto found = kTexts.find(name);
  return found == kTexts.end() ? "" : found->second;
}

std::vector<std::string> given_log_flags() {
  std::vector<std::string> words;
  for (const std::string& name : log_flags()) {
    // The tool sets logtostderr itself, and a worker would too.
    if (is_given(name)) {
      words.push_back(fmt::format("--{}={}", name, gflags::GetCommandLineFlagInfoOrDie(name.c_str()).current_value));
    }
  }
  return words;
}

Result<void> start_log() {
  const bool is_wanted = std::ranges::any_of(log_flags(), is_given) || FLAGS_v > 0 || !FLAGS_vmodule.empty();
  if (!is_wanted || google::IsGoogleLoggingInitialized()) return {};
  if (!FLAGS_log_dir.empty() && !std::filesystem::is_directory(FLAGS_log_dir)) {
    return fail("'--log_dir' is '{}', which is no folder", FLAGS_log_dir);
  }
  if (!is_given("logtostderr")) FLAGS_logtostderr = FLAGS_log_dir.empty() && !FLAGS_alsologtostderr;
  google::InitGoogleLogging("tensorc");
  std::vector<ModuleLevel> levels = module_levels(FLAGS_vmodule);
  int most = FLAGS_v;
  for (const ModuleLevel& level : levels) most = std::max(most, level.verbosity);
  set_log([levels = std::move(levels)](const LogMessage& message) { write(message, levels); }, level_of(most));
  return {};
}

}  // namespace tc::cli
