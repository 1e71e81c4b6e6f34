#pragma once

#include <string>
#include <vector>

#include "tc/api/tensor.h"

namespace tc::cli {

/// "y  float32(128)  min -1.5  max 2  mean 0.25": NaNs are counted apart and take no part in the rest.
std::string result_line(const std::string& name, const api::Tensor& tensor);

/// "12.3 us", "4.56 ms", "1.23 s"
std::string time_text(double us);

/// "time: median 12.3 us, min 11.8 us, max 20 us of 100 runs; the first took 31 us"
std::string series_text(std::vector<double> runs_us, double first_us);

}  // namespace tc::cli
