#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tc/cache/entry.h"
#include "tc/cache/key.h"
#include "tc/support/result.h"

/// Compiled kernels, their measured times and the interfaces of their programs, in one file.
///
/// The file is a SQLite database (docs/design/0005-cache-file.md): a transaction per call, which is on the disk when
/// the call returns; any number of processes read while one writes, writers wait for each other. Each row carries a
/// SHA-256 over its table, key and value. A row that does not match it is reported and skipped as if it were not there.
namespace tc::cache {

enum class Mode {
  kReadOnly,   ///< the file must exist; nothing is written, nor next to it
  kReadWrite,  ///< made if it does not exist
};

struct OpenOptions {
  Mode mode = Mode::kReadWrite;
  int wait_ms = 30'000;  ///< for other writers
  /// Told of each damaged row, in a sentence, from the thread whose call meets it.
  std::function<void(const std::string&)> on_damage{};
};

/// Options that did best, on a device.
struct Best {
  std::string options{};  ///< text; "by hand ..." of a kernel that no options make
  double time_us = 0;
  double spread_us = 0;
  int64_t date = 0;
  std::string compiler{};
};

/// The best options of another shape.
struct Near {
  Problem problem{};
  Best best{};
  double distance = 0;  ///< cache::distance
};

/// A line of a listing.
struct Listed {
  std::string id{};  ///< digest of the key
  Key key{};
  int64_t created = 0;
  int64_t bytes = 0;    ///< of the stored value
  std::string entry{};  ///< name of the def, where the file knows its interface
  Certificate certificate{};
  std::optional<Measurement> measured{};  ///< the fastest of these options, on any device
};

struct Verified {
  int64_t rows = 0;
  std::vector<std::string> damage{};  ///< one sentence for each damaged row, or for the file's structure
};

struct Merged {
  int64_t entries = 0, measurements = 0, interfaces = 0;  ///< taken over
};

struct Pruned {
  int64_t entries = 0, measurements = 0, interfaces = 0, damaged = 0;  ///< removed
};

/// What prune() keeps; everything that is not said to go stays. Damaged rows always go.
struct PruneOptions {
  std::optional<int64_t> older_than{};  ///< entries and measurements from before this time (seconds since 1970) go
  std::string other_compilers_than{};   ///< entries of other compiler versions go
  std::optional<int> best_only{};       ///< of each problem and device only so many best stay
};

/// Restricts a copy: empty lists restrict nothing.
struct Selection {
  std::vector<std::string> entries{};   ///< names of defs
  std::vector<std::string> programs{};  ///< digests
  std::vector<std::string> targets{};
  bool best_only = true;  ///< of each problem its best known options, and those chosen by the compiler
  /// Changes an entry on its way (adds code for other architectures); its error ends the copy. May be empty.
  std::function<Result<void>(const Key&, Entry&)> complete{};
};

/// True for a file that is there and may be read, but is no cache of this format: damaged as a whole, of another
/// version, or something else. Nothing is written.
bool is_unreadable(const std::string& path);

/// An open file. All members may be called from many threads at once; not across a fork (open it again there).
/// Errors of all: no such file, or no right to it; a file that is no cache, or of another version; a disk that is full;
/// a lock that is held too long; damage that SQLite meets. After an error the file is as before the call.
class Cache {
 public:
  static Result<std::shared_ptr<Cache>> open(const std::string& path, const OpenOptions& options = {});
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const std::string& path() const;
  Mode mode() const;

  /// The entry of exactly this key; none if there is none, or it is damaged.
  Result<std::optional<Entry>> find(const Key& key) const;
  /// All keys of entries for a problem, the newest first.
  Result<std::vector<Key>> keys(const Problem& problem) const;
  /// All problems of a program that have entries.
  Result<std::vector<Problem>> problems(const std::string& program) const;
  /// Adds or replaces. Code for other architectures that was there stays, if it was made of the same text.
  Result<void> put(const Key& key, const Entry& entry);
  /// Removes an entry, by its key. True if there was one.
  Result<bool> remove(const Key& key);

  /// Adds, or replaces that of the same problem, options and device. One transaction.
  Result<void> add(std::span<const Measurement> measurements);
  Result<void> add(const Measurement& measurement) { return add(std::span(&measurement, 1)); }
  /// All of a problem; of one device, or of all ("").
  Result<std::vector<Measurement>> measurements(const Problem& problem, const std::string& device = {}) const;
  /// All of the file, the fastest first.
  Result<std::vector<Measurement>> all_measurements() const;
  /// The fastest valid one of a problem on a device; "": on any, each counted by its own time.
  Result<std::optional<Best>> best(const Problem& problem, const std::string& device = {}) const;
  /// The `limit` fastest, fastest first.
  Result<std::vector<Best>> best(const Problem& problem, const std::string& device, int limit) const;
  /// Best options of the shapes nearest to a problem's that is itself left out, nearest first, at most `limit`.
  Result<std::vector<Near>> nearest(const Problem& problem, const std::string& device = {}, int limit = 4) const;

  /// The interface of a def by the digest of its canonical source text.
  Result<std::optional<Interface>> find_interface(const Digest& text) const;
  Result<void> put(const Digest& text, const Interface& interface);
  Result<std::vector<Interface>> interfaces() const;

  Result<std::vector<Listed>> list() const;
  /// Reads every row and the file's structure.
  Result<Verified> verify() const;
  /// Takes over what `from` has and this has not, or has damaged; of a kernel that both have, code for architectures
  /// that was made of the same text. Of two measurements for the same problem, options and device the faster one stays;
  /// so best() finds the fastest kernel that either file has for a device.
  Result<Merged> merge(const Cache& from);
  Result<Pruned> prune(const PruneOptions& options);
  /// Writes the selected part to a new file, which must not exist, in one step: nobody sees a part of it. (Where the
  /// file system has neither hard links nor renames that replace nothing, an empty file stands there for a moment.)
  Result<Merged> export_to(const std::string& path, const Selection& selection) const;

 private:
  struct Impl;
  explicit Cache(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tc::cache
