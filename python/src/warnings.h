#pragma once

#include <string>
#include <vector>

/// What the library has to say besides its results, as RuntimeWarnings in the line of the user's that called.
namespace tc::python {

/// For the library to call, in any thread. Kept where the thread keeps warnings, else given at once.
void on_warning(const std::string& sentence);

/// While there is one in a thread, that thread's sentences go to a list: a thread of the library's own has no line to
/// warn in, and nothing may be thrown through the library.
class KeptWarnings {
 public:
  explicit KeptWarnings(std::vector<std::string>& list);
  ~KeptWarnings();
  KeptWarnings(const KeptWarnings&) = delete;
  KeptWarnings& operator=(const KeptWarnings&) = delete;
};

/// Gives the warnings of a list. Needs the GIL. Throws where the user's filters make an exception of one.
void warn(const std::vector<std::string>& list);

}  // namespace tc::python
