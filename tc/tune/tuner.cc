#include "tc/tune/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "tc/support/result.h"
#include "tc/support/write_log.h"
#include "tc/tune/messages.h"

namespace tc::tune {
namespace {

using Clock = std::chrono::steady_clock;

/// How often the loop looks whether it has been asked to stop.
constexpr std::chrono::milliseconds kTick(100);

/// How often a measurement that cannot be believed is repeated.
constexpr int kRepeats = 2;

/// The share of the speed-up that the search has measured which the last comparison has to confirm.
constexpr double kAsFast = 0.9;
/// The share of unsteady measurements above which a search says that the machine was too noisy.
constexpr double kMostUnsteady = 0.25;
/// How many of those that seem the best are asked for that; one that is faster than the default is the best then.
constexpr int kComparisons = 10;

/// Whether two times of one kernel can be of one machine in one state.
bool agree(double a_us, double b_us) { return a_us <= kMostDrift * b_us && b_us <= kMostDrift * a_us; }

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::string on_one_line(std::string options) {
  while (options.ends_with('\n')) options.pop_back();
  std::ranges::replace(options, '\n', ' ');
  return options.empty() ? "the compiler's own" : options;
}

/// A candidate on its way.
struct Flight {
  Candidate candidate{};
  Record record{};
  std::string artifact{};
  int device = -1;    ///< that it is being measured on; -1: it is being compiled
  bool wins = false;  ///< it has beaten the best, and is measured once more, in turn with the default
  int repeats = 0;    ///< measurements that could not be believed
};

/// The best and the default, measured in turn.
struct Comparison {
  double best_us = 0;
  double default_us = 0;

  double speedup() const { return default_us / best_us; }
};

Outcome outcome_of(Loss loss) {
  return loss == Loss::kHang ? Outcome::kHang : loss == Loss::kGarbage ? Outcome::kGarbage : Outcome::kCrash;
}

class Tuner {
 public:
  Tuner(const Task& task, const TunerOptions& options, Executor& executor)
      : task_(task), space_(task.space), options_(options), executor_(executor), random_(options.seed) {
    for (const Record& record : task.known) known_[record.options] = record;
    for (const int device : options.devices) free_devices_.push_back(device);
    progress_.planned = 1 + options.generations * options.population;
  }

  Result<Tuned> run() {
    TC_TRY_VOID(measure_default());
    for (int g = 1; g <= options_.generations && !over(); ++g) {
      progress_.generation = g;
      TC_TRY(candidates, generation(g));
      if (candidates.empty() && !over()) result_.ending = Ending::kExhausted;
      if (candidates.empty()) break;
      TC_TRY_VOID(process(candidates));
    }
    if (over()) result_.ending = options_.stop.stop_requested() ? Ending::kStopped : Ending::kTimeLimit;
    TC_TRY_VOID(duel());
    result_.rejected = progress_.rejected;
    if (result_.best == default_text_) result_.artifact = default_artifact_;
    if (result_.best == incumbent_.options) result_.artifact = incumbent_artifact_;
    return std::move(result_);
  }

 private:
  bool over() const {
    return options_.stop.stop_requested() ||
           (options_.time_limit_s > 0 && seconds_since(begin_) > options_.time_limit_s);
  }

  /// What the compiler chooses has to work: it is what all others are compared with.
  Result<void> measure_default() {
    const Candidate candidate = first_candidate(space_);
    TC_TRY(text, text_of(space_, candidate));
    default_text_ = text;
    seen_.insert(candidate);
    texts_.insert(text);
    is_default_ = true;
    TC_TRY_VOID(process({candidate}));
    is_default_ = false;
    if (result_.history.empty()) return fail("the search was stopped before what the compiler chooses was measured");
    const Record& record = result_.history.front();
    if (record.outcome != Outcome::kDone) {
      return fail("the options that every candidate is compared with do not work ({}): {}", name_of(record.outcome),
                  record.message);
    }
    result_.default_us = record.us;
    return {};
  }

  /// The candidates of a generation, none of which was met before.
  Result<std::vector<Candidate>> generation(int g) {
    std::vector<Candidate> result;
    const auto is_new = [&](const Candidate& candidate) {
      const Result<std::string> text = text_of(space_, candidate);
      if (over() || !text || !texts_.insert(*text).second) return false;
      const std::string reason = task_.infeasible ? task_.infeasible(*text) : "";
      if (reason.empty()) return true;
      ++progress_.rejected;
      TC_LOG(kTrace, "candidate turned down before it is compiled: {}; its options: {}", reason, on_one_line(*text));
      return false;
    };
    const auto wanted = static_cast<size_t>(options_.population);
    if (g == 1) {
      for (const std::string& seed : task_.seeds) {
        const Result<Candidate> candidate = candidate_of(space_, seed);
        if (candidate && result.size() < wanted && is_new(*candidate)) result.push_back(*candidate);
      }
    }
    for (const Candidate& candidate : result) seen_.insert(candidate);
    // Drawn from in an order that does not hang on which of them ended first.
    std::ranges::sort(last_, {}, &Scored::candidate);
    std::ranges::sort(scored_, {}, &Scored::candidate);
    std::vector<Scored> parents = last_;
    for (Scored& elite : select(scored_, static_cast<size_t>(options_.elites))) parents.push_back(std::move(elite));
    std::vector<Candidate> bred = next_candidates(options_.search, space_, parents, seen_, is_new,
                                                  wanted - result.size(), options_.genetic, random_);
    for (Candidate& candidate : bred) result.push_back(std::move(candidate));
    seen_.insert(result.begin(), result.end());
    last_.clear();
    return result;
  }

  /// Compiles and measures candidates, in a pipeline, until all have ended or the search is over.
  Result<void> process(const std::vector<Candidate>& candidates) {
    for (const Candidate& candidate : candidates) {
      TC_TRY(text, text_of(space_, candidate));
      Flight flight{.candidate = candidate, .record = {.generation = progress_.generation, .options = text}};
      const auto found = known_.find(text);
      // What the compiler chooses is tried again where an earlier run had no luck with it: all else hangs on it.
      const bool is_possible =
          found == known_.end() || found->second.us >= result_.floor_us || found->second.outcome != Outcome::kDone;
      if (found != known_.end() && is_possible && (!is_default_ || found->second.outcome == Outcome::kDone)) {
        flight.record = found->second;
        flight.record.generation = progress_.generation;
        flight.record.remembered = true;
        TC_TRY_VOID(finish(std::move(flight)));
      } else {
        to_compile_.push_back(std::move(flight));
      }
    }
    while (!to_compile_.empty() || !to_measure_.empty() || !flights_.empty()) {
      if (over()) {
        to_compile_.clear();
        to_measure_.clear();
        abandoned_ = abandoned_ || !flights_.empty();
        flights_.clear();
        return {};
      }
      TC_TRY_VOID(dispatch());
      TC_TRY(done, executor_.wait(kTick));
      for (Executor::Done& job : done) TC_TRY_VOID(land(job));
    }
    return {};
  }

  Result<void> dispatch() {
    const auto measuring = std::ranges::count_if(flights_, [](const auto& f) { return f.second.device >= 0; });
    auto compiling = static_cast<int>(flights_.size()) - static_cast<int>(measuring);
    while (!to_compile_.empty() && compiling < options_.compile_slots && !(options_.exclusive && measuring > 0)) {
      Flight flight = std::move(to_compile_.front());
      to_compile_.pop_front();
      TC_TRY_VOID(start(std::move(flight), {.problem = task_.problem, .work = CompileJob{}}, -1));
      ++compiling;
    }
    if (options_.exclusive && (compiling > 0 || !to_compile_.empty())) return {};
    while (!to_measure_.empty() && !free_devices_.empty()) {
      Flight flight = std::move(to_measure_.front());
      to_measure_.pop_front();
      const int device = free_devices_.front();
      free_devices_.pop_front();
      Job job{.problem = task_.problem, .work = measure_job(flight, device)};
      TC_TRY_VOID(start(std::move(flight), std::move(job), device));
    }
    return {};
  }

  MeasureJob measure_job(const Flight& flight, int device) const {
    return {.artifact = flight.artifact,
            .device = device,
            .incumbent_options = flight.wins ? default_text_ : incumbent_.options,
            .incumbent_artifact = flight.wins ? default_artifact_ : incumbent_artifact_,
            .has_incumbent = !is_default_,
            .hopeless = flight.wins ? 0 : options_.hopeless};
  }

  Result<void> start(Flight flight, Job job, int device) {
    flight.device = device;
    job.options = flight.record.options;
    const uint64_t id = next_id_++;
    // The first measurement waits for the oracle.
    const std::chrono::milliseconds limit =
        device < 0 ? options_.compile_limit : options_.measure_limit * (is_default_ ? 10 : 1);
    flights_.emplace(id, std::move(flight));
    return executor_.submit({.id = id, .device = device, .bytes = to_bytes(job), .limit = limit});
  }

  /// A job has ended: its candidate goes on to be measured, or has ended too.
  Result<void> land(Executor::Done& job) {
    auto node = flights_.extract(job.id);
    if (node.empty()) return {};  // of a search that was stopped
    Flight flight = std::move(node.mapped());
    const bool compiled = flight.device < 0;
    if (!compiled) free_devices_.push_back(flight.device);
    std::optional<Reply> reply;
    if (job.loss == Loss::kNone) reply = reply_from(job.text);
    if (!reply) {
      flight.record.outcome = job.loss == Loss::kNone ? Outcome::kGarbage : outcome_of(job.loss);
      flight.record.message = job.loss == Loss::kNone ? "what it answers is no reply" : job.text;
      return finish(std::move(flight));
    }
    if (reply->outcome == Outcome::kUnusable) return tl::unexpected(Error(reply->message));
    flight.record.outcome = reply->outcome;
    flight.record.message = reply->message;
    if (compiled) {
      flight.record.compile_ms = reply->compile_ms;
      if (reply->outcome != Outcome::kDone) return finish(std::move(flight));
      flight.artifact = std::move(reply->artifact);
      to_measure_.push_back(std::move(flight));
      return {};
    }
    if (!reply->device.empty()) result_.device = reply->device;
    if (reply->floor_us > 0) result_.floor_us = reply->floor_us;  // one without a time has none
    const double partner_us = flight.wins ? result_.default_us : incumbent_.us;
    if (!take_times(*reply, partner_us, flight)) {
      to_measure_.push_front(std::move(flight));
      return {};
    }
    // A chain of ratios, each of which was picked because it was small, would drift away from any time there is. So the
    // time of what becomes the best hangs on the default's alone.
    if (!flight.wins && !is_default_ && flight.record.outcome == Outcome::kDone && flight.record.us < incumbent_.us) {
      flight.wins = true;
      to_measure_.push_front(std::move(flight));
      return {};
    }
    return finish(std::move(flight));
  }

  /// Gives a candidate the times of a reply: its own, corrected by what the incumbent took in the same rounds, which
  /// was measured with `partner_us` before. False if the times cannot be believed, and the candidate is to be measured
  /// again: where they are below the floor, or where the incumbent takes neither nearly as long as before. After
  /// kRepeats the candidate's own time stands, or it is impossible.
  bool take_times(const Reply& reply, double partner_us, Flight& flight) {
    const bool is_possible = reply.hot_us >= reply.floor_us;
    double drift = reply.incumbent_us > 0 ? partner_us / reply.incumbent_us : 1;
    const bool is_steady = reply.incumbent_us <= 0 || agree(partner_us, reply.incumbent_us);
    const bool is_timed = reply.outcome == Outcome::kDone;
    if (is_timed && (!is_possible || !is_steady) && flight.repeats++ < kRepeats) return false;
    if (is_timed) ++timed_;
    if (is_timed && (!is_possible || !is_steady)) ++unsteady_;
    if (!is_steady || reply.hot_us * drift < reply.floor_us) drift = 1;
    flight.record.us = reply.hot_us * drift;
    flight.record.own_us = reply.hot_us;
    flight.record.cold_us = reply.cold_us * drift;
    flight.record.spread = reply.spread;
    if (is_timed && !is_possible) {
      flight.record.outcome = Outcome::kImpossible;
      flight.record.message = fmt::format("{:.3g} us were measured, but this machine needs {:.3g} us at least",
                                          reply.hot_us, reply.floor_us);
      flight.record.us = flight.record.own_us = flight.record.cold_us = 0;
    }
    return true;
  }

  Result<void> finish(Flight flight) {
    const Record& record = flight.record;
    const bool is_timed = record.outcome == Outcome::kDone || record.outcome == Outcome::kHopeless;
    const Scored scored{flight.candidate, is_timed ? std::optional(record.us) : std::nullopt};
    scored_.push_back(scored);
    last_.push_back(scored);
    if (record.outcome == Outcome::kDone && (!has_incumbent_ || record.us < incumbent_.us)) {
      has_incumbent_ = true;
      incumbent_ = record;
      incumbent_artifact_ = std::move(flight.artifact);
      if (is_default_) default_artifact_ = incumbent_artifact_;
    }
    if (record.outcome != Outcome::kDone) ++progress_.failed[record.outcome];
    ++progress_.done;
    log(record);
    result_.history.push_back(record);
    result_.best = incumbent_.options;
    result_.best_us = incumbent_.us;
    result_.best_cold_us = incumbent_.cold_us;
    report();
    return {};
  }

  void log(const Record& record) const {
    const std::string time = record.us > 0 ? fmt::format(" in {:.3f} us", record.us) : "";
    const std::string why = record.message.empty() ? "" : ": " + record.message;
    TC_LOG(kDetail, "candidate {} of {}: {}{}{}{}; its options: {}", progress_.done, progress_.planned,
           name_of(record.outcome), time, why, record.remembered ? ", as an earlier search found" : "",
           on_one_line(record.options));
  }

  void report() {
    if (!task_.on_progress) return;
    progress_.default_us = result_.history.front().us;
    progress_.best_us = incumbent_.us;
    progress_.last = &result_.history.back();
    const double elapsed_s = seconds_since(begin_);
    const auto measured = std::ranges::count_if(result_.history, [](const Record& r) { return !r.remembered; });
    std::optional<double> left;
    if (measured > 0) left = elapsed_s / static_cast<double>(measured) * (progress_.planned - progress_.done);
    if (options_.time_limit_s > 0) {
      left = std::max(0.0, std::min(left.value_or(options_.time_limit_s), options_.time_limit_s - elapsed_s));
    }
    progress_.seconds_left = left;
    task_.on_progress(progress_);
  }

  /// The best and the compiler's own choice in turn, once more, for a speed-up that no drift is part of. What loses was
  /// lucky before, and so was what is not nearly as fast as it seemed: it gets the time of this comparison, and the
  /// next best takes its place. So the best is always the fastest of the history, which is what those find who read a
  /// cache.
  Result<void> duel() {
    result_.speedup = measured_speedup();
    for (int comparisons = 1; result_.best != default_text_ && !abandoned_ && !over(); ++comparisons) {
      TC_TRY(compared, steady_comparison());
      if (!compared) break;  // what was measured before stands
      const double speedup = compared->speedup();
      const bool is_as_fast = speedup >= kAsFast * measured_speedup() || comparisons > kComparisons;
      const std::string best = result_.best;
      const bool is_steady = agree(compared->default_us, result_.default_us);
      // Ratios of times that are none of this machine's usual ones say nothing: then the best's own time stands.
      const double us = is_steady ? result_.default_us / speedup : compared->best_us;
      if (speedup < 1 || !is_as_fast || !agree(compared->best_us, result_.best_us)) settle(us);
      if (best != result_.best && (is_steady || comparisons <= kComparisons)) continue;
      if (!is_steady) {
        result_.noise = fmt::format("the default took {:.3g} us at the start, and {:.3g} us in the last comparison",
                                    result_.default_us, compared->default_us);
        result_.speedup = std::max(1.0, std::min(speedup, measured_speedup()));
      } else if (speedup >= 1) {
        result_.speedup = speedup;
      } else {
        continue;
      }
      break;
    }
    if (result_.noise.empty() && unsteady_ > kMostUnsteady * timed_) {
      result_.noise = fmt::format("{} of {} times could not be repeated", unsteady_, timed_);
    }
    return {};
  }

  /// A comparison in which the default takes about as long as at the start; after kRepeats any. Nothing where the
  /// measurement fails.
  Result<std::optional<Comparison>> steady_comparison() {
    for (int repeats = 0;; ++repeats) {
      TC_TRY(compared, compare_with_default());
      if (!compared || repeats == kRepeats || agree(compared->default_us, result_.default_us)) return compared;
    }
  }

  /// The best and the default in turn; nothing where the measurement fails.
  Result<std::optional<Comparison>> compare_with_default() {
    const bool has_artifact = result_.best == incumbent_.options;
    Job job{.problem = task_.problem, .options = default_text_};
    job.work = MeasureJob{.device = options_.devices.front(),
                          .incumbent_options = result_.best,
                          .incumbent_artifact = has_artifact ? incumbent_artifact_ : "",
                          .has_incumbent = true};
    const uint64_t id = next_id_++;
    TC_TRY_VOID(executor_.submit(
        {.id = id, .device = options_.devices.front(), .bytes = to_bytes(job), .limit = options_.measure_limit}));
    while (!over()) {
      TC_TRY(done, executor_.wait(kTick));
      for (const Executor::Done& end : done) {
        if (end.id != id) continue;
        const std::optional<Reply> reply = end.loss == Loss::kNone ? reply_from(end.text) : std::nullopt;
        const bool is_timed = reply && reply->outcome == Outcome::kDone && reply->hot_us > 0 && reply->incumbent_us > 0;
        if (!is_timed || std::min(reply->hot_us, reply->incumbent_us) < reply->floor_us) return std::nullopt;
        return Comparison{.best_us = reply->incumbent_us, .default_us = reply->hot_us};
      }
    }
    return std::nullopt;
  }

  /// Gives the best its time, and finds the best anew.
  void settle(double us) {
    const Record* best = &result_.history.front();
    for (Record& record : result_.history) {
      if (record.options == result_.best) record.us = us, record.corrected = true;
      if (record.outcome == Outcome::kDone && record.us < best->us) best = &record;
    }
    result_.best = best->options;
    result_.best_us = best->us;
    result_.best_cold_us = best->cold_us;
    result_.speedup = measured_speedup();
  }

  /// Where nothing is to be done, nothing is faster.
  double measured_speedup() const { return result_.best_us > 0 ? result_.default_us / result_.best_us : 1; }

  const Task& task_;
  Space space_;
  const TunerOptions& options_;
  Executor& executor_;
  std::mt19937_64 random_;
  const Clock::time_point begin_ = Clock::now();

  std::map<std::string, Record> known_;  ///< by options
  std::set<Candidate> seen_;
  std::set<std::string> texts_;  ///< of all that were seen: two candidates may be the same options
  std::vector<Scored> scored_;   ///< all
  std::vector<Scored> last_;     ///< of the generation
  bool has_incumbent_ = false;
  Record incumbent_;
  std::string incumbent_artifact_;
  std::string default_text_;
  std::string default_artifact_;
  bool is_default_ = false;
  int timed_ = 0;           ///< measurements that gave a time
  int unsteady_ = 0;        ///< of them, those that disagreed with others however often they were repeated
  bool abandoned_ = false;  ///< jobs are under way whose ends nobody waits for

  std::deque<Flight> to_compile_, to_measure_;
  std::map<uint64_t, Flight> flights_;
  std::deque<int> free_devices_;
  uint64_t next_id_ = 1;
  Progress progress_;
  Tuned result_;
};

}  // namespace

Result<Tuned> tune(const Task& task, const TunerOptions& options, Executor& executor) {
  return Tuner(task, options, executor).run();
}

}  // namespace tc::tune
