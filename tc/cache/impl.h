#pragma once

#include <mutex>

#include "tc/cache/cache.h"
#include "tc/cache/database.h"
#include "tc/cache/records.h"

/// What cache.cc and maintenance.cc share.
namespace tc::cache {

struct Cache::Impl {
  std::string path;
  OpenOptions options;
  std::unique_ptr<Database> database;
  mutable std::mutex mutex;

  /// As Cache::find, for who holds the lock; `damage` is told of damage.
  Result<std::optional<Entry>> find(const Key& key, const std::function<void(const std::string&)>& damage) const;
  void report(const std::string& sentence) const {
    if (options.on_damage) options.on_damage(sentence);
  }
};

/// A damaged row, in a sentence.
std::string damage_sentence(const std::string& path, const char* table, const std::string& id, const char* what);

/// The checksum of a row: over its table, its id and its value.
std::string checksum_of(const char* table, const std::string& id, const std::string& value);

/// 32 bytes of a digest, as ids are stored.
std::string raw(const Digest& digest);
std::string hexadecimal(const std::string& bytes);

/// A row's value as it was stored, or why it cannot be trusted. `id` is the row's, which must be that of the key in
/// the value.
template <typename Stored>
using Checked = tl::expected<Stored, const char*>;
Checked<StoredEntry> check_entry(const std::string& id, const std::string& value, const std::string& checksum);
Checked<Measurement> check_measurement(const std::string& id, const std::string& value, const std::string& checksum);
Checked<StoredInterface> check_interface(const std::string& id, const std::string& value, const std::string& checksum);

std::string id_of(const Measurement& measurement);

Result<void> write_entry(Database& database, const Key& key, const Entry& entry);
Result<void> write_measurement(Database& database, const Measurement& measurement);
Result<void> write_interface(Database& database, const std::string& id, const Interface& interface);

/// Steps through a query. `row` is called for each row; a damaged page ends it, and is reported as `damage` says.
/// Errors: those that are no damage.
template <typename Row, typename Damage>
Result<void> for_each_row(const Database& database, Query& query, Row row, Damage damage) {
  for (;;) {
    const int code = query.step();
    if (code == SQLITE_DONE) return {};
    if (code != SQLITE_ROW) {
      if (!is_damage(code)) return tl::unexpected(database.error(code));
      damage(database.error(code).diagnostics().at(0).message);
      return {};
    }
    row();
  }
}

}  // namespace tc::cache
