#include <cstdio>

#include "tc/cli/commands.h"
#include "tc/cli/files.h"
#include "tc/cli/flags.h"
#include "tc/lang/format.h"
#include "tc/lang/parser.h"
#include "tc/support/result.h"

namespace tc::cli {

Result<void> run_fmt(const std::vector<std::string>& files) {
  const std::string& path = files[0];
  if (FLAGS_in_place && FLAGS_check) return fail("'--in_place' and '--check' exclude each other");
  if (FLAGS_in_place && path == "-") return fail("standard input cannot be formatted in place");
  TC_TRY(source, read_source(path));
  TC_TRY(file, lang::parse(source));
  const std::string canonical = lang::format(file);
  const bool is_canonical = canonical == source->text();
  if (FLAGS_check) {
    if (is_canonical) return {};
    return fail("'{}' is not in canonical form; 'tensorc fmt -i' puts it there", path);
  }
  if (FLAGS_in_place) return is_canonical ? Result<void>() : replace_file(path, canonical);
  std::fwrite(canonical.data(), 1, canonical.size(), stdout);
  return {};
}

}  // namespace tc::cli
