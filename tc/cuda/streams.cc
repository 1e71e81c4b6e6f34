#include "tc/cuda/streams.h"

namespace tc::cuda {
namespace {

constexpr unsigned kWithoutTime = 2;  // CUevent_flags

}  // namespace

Result<bool> is_captured(const Driver& driver, Stream stream) {
  int capturing = 0;
  if (stream) TC_TRY_VOID(driver.check(driver.is_capturing(stream, &capturing), "asking whether a stream is captured"));
  return capturing != 0;
}

Result<void> follow(const Context& context, Stream stream, Stream other) {
  const CurrentContext current(context);
  const Driver& driver = context.driver();
  Driver::Event event = nullptr;
  TC_TRY_VOID(driver.check(driver.create_event(&event, kWithoutTime), "making an event"));
  Driver::Status status = driver.record_event(event, other);
  if (status == 0) status = driver.wait_for_event(stream, event, 0);
  driver.destroy_event(event);  // which the driver does once nothing waits for it
  return driver.check(status, "letting one stream wait for another");
}

}  // namespace tc::cuda
