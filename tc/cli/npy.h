#pragma once

#include <optional>
#include <string>

#include "tc/api/tensor.h"
#include "tc/support/error.h"

/// NumPy's .npy files, format versions 1 to 3.
///
/// Every element type of the language is read and written as NumPy's of the same name. NumPy has no bfloat16: it is
/// '|V2', two bytes without a meaning, which is what NumPy makes of the ml_dtypes package's bfloat16 too. The 8-bit
/// floats are '|V1' for the same reason, which does not say which of the two: a reader says what it wants. '<f1', which
/// that package writes for its float8_e5m2 and NumPy cannot read, is float8_e5m2.
namespace tc::cli {

/// Reads a tensor, of either byte order. One in Fortran order has strides that say so; a bool is 0 or 1 whatever the
/// file says. Errors quote the path: no such file, not a .npy file, a header that is malformed or longer than 1 MiB, a
/// type that the language does not have, extents that overflow, more or less data than the shape takes, no memory.
/// '|V1' is `wanted` if that is an 8-bit float, else float8_e4m3.
Result<api::Tensor> read_npy(const std::string& path, std::optional<ScalarType> wanted = std::nullopt);

/// Type, shape and order of a file's tensor, from its header only. Errors as above.
Result<api::TensorSpec> read_npy_spec(const std::string& path, std::optional<ScalarType> wanted = std::nullopt);

/// The file's bytes before the data: magic, version 1.0, header, padded so that the data is aligned to 64 bytes.
std::string npy_header(const api::TensorSpec& spec);

/// Writes a dense tensor to a path. Errors quote the path and the system's reason; the file may then be incomplete.
Result<void> write_npy(const std::string& path, const api::Tensor& tensor);

}  // namespace tc::cli
