// A libFuzzer target: any bytes through the front end.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tc::lang::RoundTrip result = tc::lang::round_trip(std::string(reinterpret_cast<const char*>(data), size));
  if (!result.broken.empty()) {
    std::fputs(result.broken.c_str(), stderr);
    std::abort();
  }
  return 0;
}
