#include "tc/tune/messages.h"

#include "proto/tune.pb.h"
#include "tc/support/check.h"

namespace tc::tune {

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return "done";
    case Outcome::kRefused:
      return "refused";
    case Outcome::kFault:
      return "compiler fault";
    case Outcome::kWrong:
      return "wrong result";
    case Outcome::kHopeless:
      return "hopeless";
    case Outcome::kUnusable:
      return "unusable";
    case Outcome::kCrash:
      return "crash";
    case Outcome::kHang:
      return "hang";
    case Outcome::kGarbage:
      return "garbage";
    case Outcome::kImpossible:
      return "impossible time";
  }
  TC_CHECK(false, "an outcome that does not exist");
}

std::string to_bytes(const Job& job) {
  proto::TuneJob message;
  message.set_problem(job.problem);
  message.set_options(job.options);
  if (const auto* measure = std::get_if<MeasureJob>(&job.work)) {
    proto::TuneJob::Measure& work = *message.mutable_measure();
    work.set_artifact(measure->artifact);
    work.set_device(measure->device);
    work.set_incumbent_options(measure->incumbent_options);
    work.set_incumbent_artifact(measure->incumbent_artifact);
    work.set_has_incumbent(measure->has_incumbent);
    work.set_hopeless(measure->hopeless);
  } else {
    message.mutable_compile();
  }
  return message.SerializeAsString();
}

std::optional<Job> job_from(const std::string& bytes) {
  proto::TuneJob message;
  if (!message.ParseFromString(bytes)) return std::nullopt;
  Job job{.problem = message.problem(), .options = message.options()};
  if (message.has_measure()) {
    const proto::TuneJob::Measure& work = message.measure();
    job.work = MeasureJob{.artifact = work.artifact(),
                          .device = work.device(),
                          .incumbent_options = work.incumbent_options(),
                          .incumbent_artifact = work.incumbent_artifact(),
                          .has_incumbent = work.has_incumbent(),
                          .hopeless = work.hopeless()};
    return job;
  }
  if (!message.has_compile()) return std::nullopt;
  return job;
}

std::string to_bytes(const Reply& reply) {
  TC_CHECK(reply.outcome <= Outcome::kUnusable, "'{}' is no worker's to say", name_of(reply.outcome));
  proto::TuneReply message;
  message.set_outcome(static_cast<proto::TuneReply::Outcome>(reply.outcome));
  message.set_message(reply.message);
  message.set_artifact(reply.artifact);
  message.set_compile_ms(reply.compile_ms);
  message.set_hot_us(reply.hot_us);
  message.set_cold_us(reply.cold_us);
  message.set_incumbent_us(reply.incumbent_us);
  message.set_spread(reply.spread);
  message.set_floor_us(reply.floor_us);
  message.set_device(reply.device);
  return message.SerializeAsString();
}

std::optional<Reply> reply_from(const std::string& bytes) {
  proto::TuneReply message;
  if (!message.ParseFromString(bytes)) return std::nullopt;
  const auto outcome = static_cast<Outcome>(message.outcome());
  if (outcome < Outcome::kDone || outcome > Outcome::kUnusable) return std::nullopt;
  return Reply{.outcome = outcome,
               .message = message.message(),
               .artifact = message.artifact(),
               .compile_ms = message.compile_ms(),
               .hot_us = message.hot_us(),
               .cold_us = message.cold_us(),
               .incumbent_us = message.incumbent_us(),
               .spread = message.spread(),
               .device = message.device(),
               .floor_us = message.floor_us()};
}

}  // namespace tc::tune
