#include "tc/cache/cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tc/cache/impl.h"

namespace tc::cache {

std::string damage_sentence(const std::string& path, const char* table, const std::string& id, const char* what) {
  return fmt::format("the cache {}: the row {} of {} is damaged ({}); it is skipped", path,
                     hexadecimal(id).substr(0, 12), table, what);
}

std::string raw(const Digest& digest) { return {digest.bytes().begin(), digest.bytes().end()}; }

std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string checksum_of(const char* table, const std::string& id, const std::string& value) {
  std::string covered = table;
  covered += '\n';
  covered += id;
  covered += value;
  return raw(Digest::of(covered));
}

std::string id_of(const Measurement& m) {
  std::string text = canonical_text(m.problem);
  text += fmt::format("options {}:{}\ndevice {}:{}\n", m.options.size(), m.options, m.device.size(), m.device);
  return raw(Digest::of(text));
}

namespace {

constexpr const char* kChecksum = "its checksum does not match";
constexpr const char* kUnreadable = "its value cannot be read";
constexpr const char* kOtherKey = "it stands under the key of another";

}  // namespace

Checked<StoredEntry> check_entry(const std::string& id, const std::string& value, const std::string& checksum) {
  if (checksum != checksum_of("entries", id, value)) return tl::unexpected(kChecksum);
  auto stored = entry_from(value);
  if (!stored) return tl::unexpected(kUnreadable);
  if (raw(digest_of(stored->key)) != id) return tl::unexpected(kOtherKey);
  return std::move(*stored);
}

Checked<Measurement> check_measurement(const std::string& id, const std::string& value, const std::string& checksum) {
  if (checksum != checksum_of("measurements", id, value)) return tl::unexpected(kChecksum);
  auto stored = measurement_from(value);
  if (!stored) return tl::unexpected(kUnreadable);
  if (id_of(*stored) != id) return tl::unexpected(kOtherKey);
  return std::move(*stored);
}

Checked<StoredInterface> check_interface(const std::string& id, const std::string& value, const std::string& checksum) {
  if (checksum != checksum_of("interfaces", id, value)) return tl::unexpected(kChecksum);
  auto stored = interface_from(value);
  if (!stored) return tl::unexpected(kUnreadable);
  if (stored->source_digest != hexadecimal(id)) return tl::unexpected(kOtherKey);
  return std::move(*stored);
}

namespace {

Result<void> finish(const Database& database, Query& query) {
  const int code = query.step();
  if (code != SQLITE_DONE) return tl::unexpected(database.error(code));
  return {};
}

}  // namespace

Result<void> write_entry(Database& database, const Key& key, const Entry& entry) {
  const std::string id = raw(digest_of(key));
  const std::string value = to_bytes(key, entry);
  TC_TRY(query, database.query("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?)"));
  query.bind_blob(id).bind(key.problem.program).bind_blob(raw(digest_of(key.problem))).bind(entry.created);
  query.bind_blob(value).bind_blob(checksum_of("entries", id, value));
  return finish(database, query);
}

Result<void> write_measurement(Database& database, const Measurement& m) {
  const std::string id = id_of(m);
  const std::string value = to_bytes(m);
  TC_TRY(query, database.query("INSERT OR REPLACE INTO measurements VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  query.bind_blob(id).bind(m.problem.program).bind_blob(raw(digest_of(m.problem))).bind(m.device);
  query.bind(static_cast<int64_t>(m.state)).bind(m.time_us);
  query.bind_blob(value).bind_blob(checksum_of("measurements", id, value));
  return finish(database, query);
}

Result<void> write_interface(Database& database, const std::string& id, const Interface& interface) {
  const std::string value = to_bytes(hexadecimal(id), interface);
  TC_TRY(query, database.query("INSERT OR REPLACE INTO interfaces VALUES (?, ?, ?, ?)"));
  query.bind_blob(id).bind(interface.program).bind_blob(value);
  query.bind_blob(checksum_of("interfaces", id, value));
  return finish(database, query);
}

// --- opening ----------------------------------------------------------------------------------------------------

Cache::Cache(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Cache::~Cache() = default;

Result<std::shared_ptr<Cache>> Cache::open(const std::string& path, const OpenOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->options = options;
  TC_TRY(database, Database::open(path, options.mode == Mode::kReadWrite, options.wait_ms));
  impl->database = std::move(database);
  return std::shared_ptr<Cache>(new Cache(std::move(impl)));
}

bool is_unreadable(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || ::access(path.c_str(), R_OK) != 0) return false;
  return Database::is_foreign(path);
}

const std::string& Cache::path() const { return impl_->path; }
Mode Cache::mode() const { return impl_->options.mode; }

// --- entries ----------------------------------------------------------------------------------------------------

Result<std::optional<Entry>> Cache::Impl::find(const Key& key,
                                               const std::function<void(const std::string&)>& damage) const {
  const std::string id = raw(digest_of(key));
  std::optional<Entry> found;
  TC_TRY(query, database->query("SELECT value, checksum FROM entries WHERE id = ?"));
  query.bind_blob(id);
  TC_TRY_VOID(for_each_row(
      *database, query,
      [&] {
        auto stored = check_entry(id, query.bytes(0), query.bytes(1));
        if (!stored) return damage(damage_sentence(path, "entries", id, stored.error()));
        found = std::move(stored->entry);
      },
      damage));
  return found;
}

Result<std::optional<Entry>> Cache::find(const Key& key) const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->find(key, [&](const std::string& damage) { impl_->report(damage); });
}

Result<std::vector<Key>> Cache::keys(const Problem& problem) const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  std::vector<Key> keys;
  TC_TRY(query, impl_->database->query("SELECT id, value, checksum FROM entries WHERE program = ? AND problem = ? "
                                       "ORDER BY created DESC"));
  query.bind(problem.program).bind_blob(raw(digest_of(problem)));
  TC_TRY_VOID(for_each_row(
      *impl_->database, query,
      [&] {
        auto stored = check_entry(query.bytes(0), query.bytes(1), query.bytes(2));
        if (!stored) return impl_->report(damage_sentence(impl_->path, "entries", query.bytes(0), stored.error()));
        if (stored->key.problem == problem) keys.push_back(std::move(stored->key));
      },
      [&](const std::string& damage) { impl_->report(damage); }));
  return keys;
}

Result<std::vector<Problem>> Cache::problems(const std::string& program) const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  std::vector<Problem> problems;
  std::set<std::string> seen;
  TC_TRY(query, impl_->database->query("SELECT id, value, checksum FROM entries WHERE program = ? ORDER BY problem"));
  query.bind(program);
  TC_TRY_VOID(for_each_row(
      *impl_->database, query,
      [&] {
        auto stored = check_entry(query.bytes(0), query.bytes(1), query.bytes(2));
        if (!stored) return impl_->report(damage_sentence(impl_->path, "entries", query.bytes(0), stored.error()));
        if (stored->key.problem.program != program) return;
        if (seen.insert(canonical_text(stored->key.problem)).second) problems.push_back(stored->key.problem);
      },
      [&](const std::string& damage) { impl_->report(damage); }));
  return problems;
}

Result<void> Cache::put(const Key& key, const Entry& entry) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  TC_TRY(transaction, Transaction::begin(*impl_->database));
  TC_TRY(before, impl_->find(key, [](const std::string&) {}));  // what is damaged is replaced
  const std::optional<Entry> with_more = before ? joined(entry, *before) : std::nullopt;
  TC_TRY_VOID(write_entry(*impl_->database, key, with_more ? *with_more : entry));
  return transaction.commit();
}

Result<bool> Cache::remove(const Key& key) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  TC_TRY(transaction, Transaction::begin(*impl_->database));
  {
    TC_TRY(query, impl_->database->query("DELETE FROM entries WHERE id = ?"));
    query.bind_blob(raw(digest_of(key)));
    TC_TRY_VOID(finish(*impl_->database, query));
  }
  const bool removed = impl_->database->changes() > 0;
  TC_TRY_VOID(transaction.commit());
  return removed;
}

// --- measurements -----------------------------------------------------------------------------------------------

Result<void> Cache::add(std::span<const Measurement> measurements) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  TC_TRY(transaction, Transaction::begin(*impl_->database));
  for (const Measurement& measurement : measurements) {
    TC_TRY_VOID(write_measurement(*impl_->database, measurement));
  }
  return transaction.commit();
}

Result<std::vector<Measurement>> Cache::measurements(const Problem& problem, const std::string& device) const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  std::vector<Measurement> measurements;
  TC_TRY(query, impl_->database->query("SELECT id, value, checksum FROM measurements WHERE program = ? AND problem = ? "
                                       "ORDER BY state, time_us"));
  query.bind(problem.program).bind_blob(raw(digest_of(problem)));
  TC_TRY_VOID(for_each_row(
      *impl_->database, query,
      [&] {
        auto one = check_measurement(query.bytes(0), query.bytes(1), query.bytes(2));
        if (!one) return impl_->report(damage_sentence(impl_->path, "measurements", query.bytes(0), one.error()));
        if (one->problem == problem && (device.empty() || one->device == device)) measurements.push_back(*one);
      },
      [&](const std::string& damage) { impl_->report(damage); }));
  return measurements;
}

Result<std::vector<Best>> Cache::best(const Problem& problem, const std::string& device, int limit) const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  std::vector<Best> best;
  TC_TRY(query, impl_->database->query("SELECT id, value, checksum FROM measurements WHERE program = ? AND problem = ? "
                                       "AND state = 0 ORDER BY time_us"));
  query.bind(problem.program).bind_blob(raw(digest_of(problem)));
  while (static_cast<int>(best.size()) < limit) {
    const int code = query.step();
    if (code == SQLITE_DONE) break;
    if (code != SQLITE_ROW) {
      const Error error = impl_->database->error(code);
      if (!is_damage(code)) return tl::unexpected(error);
      impl_->report(error.diagnostics().at(0).message);
      break;
    }
    const auto one = check_measurement(query.bytes(0), query.bytes(1), query.bytes(2));
    if (!one) {
      impl_->report(damage_sentence(impl_->path, "measurements", query.bytes(0), one.error()));
      continue;
    }
    if (one->state != Measurement::State::kOk || !(one->problem == problem)) continue;
    if (!device.empty() && one->device != device) continue;
    best.push_back({one->options, one->time_us, one->spread_us, one->date, one->compiler});
  }
  return best;
}

Result<std::optional<Best>> Cache::best(const Problem& problem, const std::string& device) const {
  TC_TRY(first, best(problem, device, 1));
  if (first.empty()) return std::nullopt;
  return first.front();
}

Result<std::vector<Near>> Cache::nearest(const Problem& problem, const std::string& device, int limit) const {
  std::vector<Near> near;
  {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    std::set<std::string> seen;
    TC_TRY(query, impl_->database->query("SELECT id, value, checksum, problem FROM measurements WHERE program = ? AND "
                                         "state = 0"));
    query.bind(problem.program);
    TC_TRY_VOID(for_each_row(
        *impl_->database, query,
        [&] {
          if (seen.contains(query.bytes(3))) return;
          const auto one = check_measurement(query.bytes(0), query.bytes(1), query.bytes(2));
          if (!one) return impl_->report(damage_sentence(impl_->path, "measurements", query.bytes(0), one.error()));
          seen.insert(query.bytes(3));
          const double apart = distance(problem, one->problem);
          if (apart > 0) near.push_back({one->problem, {}, apart});
        },
        [&](const std::string& damage) { impl_->report(damage); }));
  }
  std::ranges::stable_sort(near, {}, &Near::distance);
  std::vector<Near> found;
  for (Near& one : near) {
    if (static_cast<int>(found.size()) == limit) break;
    TC_TRY(its_best, best(one.problem, device));
    if (!its_best) continue;
    one.best = *its_best;
    found.push_back(std::move(one));
  }
  return found;
}

// --- interfaces -------------------------------------------------------------------------------------------------

Result<std::optional<Interface>> Cache::find_interface(const Digest& text) const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  const std::string id = raw(text);
  std::optional<Interface> found;
  TC_TRY(query, impl_->database->query("SELECT value, checksum FROM interfaces WHERE id = ?"));
  query.bind_blob(id);
  TC_TRY_VOID(for_each_row(
      *impl_->database, query,
      [&] {
        auto stored = check_interface(id, query.bytes(0), query.bytes(1));
        if (!stored) return impl_->report(damage_sentence(impl_->path, "interfaces", id, stored.error()));
        found = std::move(stored->interface);
      },
      [&](const std::string& damage) { impl_->report(damage); }));
  return found;
}

Result<void> Cache::put(const Digest& text, const Interface& interface) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  TC_TRY(transaction, Transaction::begin(*impl_->database));
  TC_TRY_VOID(write_interface(*impl_->database, raw(text), interface));
  return transaction.commit();
}

Result<std::vector<Interface>> Cache::interfaces() const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  std::vector<Interface> interfaces;
  TC_TRY(query, impl_->database->query("SELECT id, value, checksum FROM interfaces"));
  TC_TRY_VOID(for_each_row(
      *impl_->database, query,
      [&] {
        auto stored = check_interface(query.bytes(0), query.bytes(1), query.bytes(2));
        if (!stored) return impl_->report(damage_sentence(impl_->path, "interfaces", query.bytes(0), stored.error()));
        interfaces.push_back(std::move(stored->interface));
      },
      [&](const std::string& damage) { impl_->report(damage); }));
  return interfaces;
}

}  // namespace tc::cache
