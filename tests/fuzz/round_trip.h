#pragma once

#include <memory>
#include <string>

#include "tc/lang/format.h"
#include "tc/lang/limits.h"
#include "tc/lang/parser.h"
#include "tc/lang/sema.h"

namespace tc::lang {

struct RoundTrip {
  bool parsed = false;
  std::string broken;  ///< the broken invariant, empty when all hold
};

/// Runs a text through the front end and checks what must hold of any text.
inline RoundTrip round_trip(const std::string& text) {
  const auto source = std::make_shared<const Source>("fuzz.tc", text);
  const auto file = parse(source);
  if (!file) {
    const auto& diagnostics = file.error().diagnostics();
    if (diagnostics.empty() || diagnostics.size() > kMaxErrors) return {false, "the number of errors is wrong"};
    if (file.error().to_string().empty()) return {false, "an error has no text"};
    return {};
  }
  const auto program = analyse(*file);
  if (!program && program.error().diagnostics().empty()) return {true, "analysis fails without an error"};
  if (!program && program.error().to_string().empty()) return {true, "an error has no text"};
  const std::string canonical = format(*file);
  const auto again = parse(std::make_shared<const Source>("canonical.tc", canonical));
  if (!again) return {true, "canonical source does not parse:\n" + again.error().to_string() + canonical};
  if (!same_tree(*file, *again)) return {true, "canonical source has another tree:\n" + canonical};
  if (file->comments.size() != again->comments.size()) return {true, "a comment is lost:\n" + canonical};
  if (format(*again) != canonical) return {true, "formatting twice changes the text:\n" + canonical + format(*again)};
  if (analyse(*again).has_value() != program.has_value()) return {true, "canonical source means something else"};
  return {true, ""};
}

}  // namespace tc::lang
