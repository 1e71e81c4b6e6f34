#pragma once

#include <string>

/// Quantities as an explanation shows them: three digits, and a unit that fits.
namespace tc::api {

std::string time_text(double us);                 ///< "4.31 us"
std::string bytes_text(double bytes);             ///< "3.15 MB"
std::string operations_text(double operations);   ///< "268 MFLOP"
std::string byte_rate_text(double bytes_per_us);  ///< "4.25 TB/s"
std::string operation_rate_text(double per_us);   ///< "55.1 TFLOP/s"

}  // namespace tc::api
