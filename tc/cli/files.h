#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tc/api/tensor.h"
#include "tc/support/error.h"
#include "tc/support/source.h"

namespace tc::cli {

/// What a file of options may have.
inline constexpr size_t kMaxOptionsBytes = 1 << 20;

/// The bytes of a file; "-" is standard input. Errors quote the path and the system's reason, or say that it has more
/// than `limit` bytes.
Result<std::string> read_file(const std::string& path, size_t limit);

/// A TC source file, for messages by its path. What is larger than 64 MiB is not even read.
Result<SourcePtr> read_source(const std::string& path);

/// Whether two paths lead to one file that exists.
bool is_same_file(const std::string& a, const std::string& b);

/// Puts a text in place of a file's at once: whoever reads it finds the old text or the new. What is no regular file (a
/// terminal, a pipe, a device) is written to. Errors quote the path.
Result<void> replace_file(const std::string& path, const std::string& text);

/// Whether replace_file() would find a folder that it may write to: for what takes long before it has a text.
Result<void> check_replaceable(const std::string& path);

/// Refuses machine code, which has zero bytes, where standard output is a terminal.
Result<void> check_printable(const std::string& bytes);

/// Prints a text and waits until it is out. Errors: standard output is full, or closed.
Result<void> print_all(const std::string& text);

/// Writes each tensor to `folder`/NAME.npy, creating the folder, and prints a report. Each file appears whole or not at
/// all, and none appears if one cannot be written or the report cannot be printed. Errors quote the path.
Result<void> write_tensors(const std::string& folder,
                           const std::vector<std::pair<std::string, const api::Tensor*>>& tensors,
                           const std::string& report);

}  // namespace tc::cli
