#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "tc/cache/impl.h"
#include "tc/cache/rename_to_new.h"

/// Listing, checking, copying and thinning out.
namespace tc::cache {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& value) {
  return std::ranges::find(list, value) != list.end();
}

/// All rows that can be trusted, and what is wrong with the others.
struct Contents {
  struct Row {
    std::string id;
    int64_t bytes = 0;
  };
  std::vector<std::pair<Row, StoredEntry>> entries;
  std::vector<std::pair<Row, Measurement>> measurements;
  std::vector<std::pair<Row, StoredInterface>> interfaces;
  std::vector<std::pair<const char*, std::string>> damaged_rows;  ///< table, id
  std::vector<std::string> damage;
  int64_t rows = 0;
};

template <typename Stored>
Result<void> read_table(Database& database, const char* table, const char* sql,
                        Checked<Stored> (*check)(const std::string&, const std::string&, const std::string&),
                        std::vector<std::pair<Contents::Row, Stored>>& rows, Contents& contents) {
  TC_TRY(query, database.query(sql));
  return for_each_row(
      database, query,
      [&] {
        ++contents.rows;
        const std::string id = query.bytes(0), value = query.bytes(1);
        auto stored = check(id, value, query.bytes(2));
        if (stored) return rows.push_back({{id, static_cast<int64_t>(value.size())}, std::move(*stored)});
        contents.damaged_rows.emplace_back(table, id);
        contents.damage.push_back(damage_sentence(database.path(), table, id, stored.error()));
      },
      [&](const std::string& damage) { contents.damage.push_back(damage); });
}

Result<Contents> read_all(Database& database) {
  Contents contents;
  TC_TRY_VOID(read_table(database, "entries", "SELECT id, value, checksum FROM entries", check_entry, contents.entries,
                         contents));
  TC_TRY_VOID(read_table(database, "measurements", "SELECT id, value, checksum FROM measurements", check_measurement,
                         contents.measurements, contents));
  TC_TRY_VOID(read_table(database, "interfaces", "SELECT id, value, checksum FROM interfaces", check_interface,
                         contents.interfaces, contents));
  return contents;
}

Result<void> remove_row(Database& database, const char* sql, const std::string& id) {
  TC_TRY(query, database.query(sql));
  query.bind_blob(id);
  const int code = query.step();
  if (code != SQLITE_DONE) return tl::unexpected(database.error(code));
  return {};
}

constexpr char kRemoveEntry[] = "DELETE FROM entries WHERE id = ?";
constexpr char kRemoveMeasurement[] = "DELETE FROM measurements WHERE id = ?";
constexpr char kRemoveInterface[] = "DELETE FROM interfaces WHERE id = ?";

/// "the problem and options" of a measurement or an entry as one text.
std::string candidate(const Problem& problem, const std::string& options) { return canonical_text(problem) + options; }

/// Candidates that are not among the `best` fastest of their problem, on any device.
std::set<std::string> beaten(const Contents& contents, int best) {
  std::map<std::string, std::vector<const Measurement*>> by_device;
  for (const auto& [row, one] : contents.measurements) {
    if (one.state == Measurement::State::kOk) by_device[canonical_text(one.problem) + one.device].push_back(&one);
  }
  std::set<std::string> kept, all;
  for (auto& [device, list] : by_device) {
    std::ranges::stable_sort(list, {}, &Measurement::time_us);
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string name = candidate(list[i]->problem, list[i]->options);
      all.insert(name);
      if (i < static_cast<size_t>(best)) kept.insert(name);
    }
  }
  for (const std::string& name : kept) all.erase(name);
  return all;
}

/// What an export leaves behind.
Contents select(Contents contents, const Selection& selection) {
  std::set<std::string> programs(selection.programs.begin(), selection.programs.end());
  for (const auto& [row, stored] : contents.interfaces) {
    if (contains(selection.entries, stored.interface.entry)) programs.insert(stored.interface.program);
  }
  const bool all_programs = selection.entries.empty() && selection.programs.empty();
  const auto wanted = [&](const Problem& problem) {
    return (all_programs || programs.contains(problem.program)) &&
           (selection.targets.empty() || contains(selection.targets, problem.target));
  };
  const std::set<std::string> slower = selection.best_only ? beaten(contents, 1) : std::set<std::string>();
  std::erase_if(contents.entries, [&](const auto& row) {
    const Key& key = row.second.key;
    return !wanted(key.problem) || (!key.options.empty() && slower.contains(candidate(key.problem, key.options)));
  });
  std::erase_if(contents.measurements, [&](const auto& row) {
    const Measurement& one = row.second;
    const bool failed = one.state != Measurement::State::kOk;
    return !wanted(one.problem) ||
           (selection.best_only && (failed || slower.contains(candidate(one.problem, one.options))));
  });
  std::erase_if(contents.interfaces,
                [&](const auto& row) { return !all_programs && !programs.contains(row.second.interface.program); });
  return contents;
}

/// Writes what `database` has not, or has damaged, or has as a slower measurement.
Result<Merged> take_over(Database& database, const Contents& from) {
  TC_TRY(transaction, Transaction::begin(database));
  TC_TRY(have, read_all(database));
  std::map<std::string, const Measurement*> measured;
  std::map<std::string, const Entry*> entries;
  std::set<std::string> interfaces;
  for (const auto& [row, stored] : have.entries) entries[row.id] = &stored.entry;
  for (const auto& [row, stored] : have.interfaces) interfaces.insert(row.id);
  for (const auto& [row, one] : have.measurements) measured[row.id] = &one;
  Merged merged;
  for (const auto& [row, stored] : from.entries) {
    const auto ours = entries.find(row.id);
    const std::optional<Entry> entry = ours == entries.end() ? stored.entry : joined(*ours->second, stored.entry);
    if (!entry) continue;
    TC_TRY_VOID(write_entry(database, stored.key, *entry));
    ++merged.entries;
  }
  for (const auto& [row, one] : from.measurements) {
    const auto ours = measured.find(row.id);
    const auto ok = [](const Measurement& m) { return m.state == Measurement::State::kOk; };
    const bool better = ours == measured.end() || (ok(one) && !ok(*ours->second)) ||
                        (ok(one) && ok(*ours->second) && one.time_us < ours->second->time_us);
    if (!better) continue;
    TC_TRY_VOID(write_measurement(database, one));
    ++merged.measurements;
  }
  for (const auto& [row, stored] : from.interfaces) {
    if (interfaces.contains(row.id)) continue;
    TC_TRY_VOID(write_interface(database, row.id, stored.interface));
    ++merged.interfaces;
  }
  TC_TRY_VOID(transaction.commit());
  return merged;
}

}  // namespace

Result<std::vector<Listed>> Cache::list() const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  TC_TRY(contents, read_all(*impl_->database));
  for (const std::string& sentence : contents.damage) impl_->report(sentence);
  std::map<std::string, std::string> names;
  for (const auto& [row, stored] : contents.interfaces) names[stored.interface.program] = stored.interface.entry;
  std::map<std::string, const Measurement*> fastest;
  for (const auto& [row, one] : contents.measurements) {
    if (one.state != Measurement::State::kOk) continue;
    const Measurement*& best = fastest[candidate(one.problem, one.options)];
    if (!best || one.time_us < best->time_us) best = &one;
  }
  std::vector<Listed> listed;
  for (auto& [row, stored] : contents.entries) {
    Listed line{.id = hexadecimal(row.id), .key = stored.key, .created = stored.entry.created, .bytes = row.bytes};
    line.certificate = stored.entry.certificate;
    if (const auto name = names.find(stored.key.problem.program); name != names.end()) line.entry = name->second;
    const auto best = fastest.find(candidate(stored.key.problem, stored.key.options));
    if (best != fastest.end()) line.measured = *best->second;
    listed.push_back(std::move(line));
  }
  std::ranges::stable_sort(listed, [](const Listed& a, const Listed& b) {
    return std::tuple(a.entry, a.key.problem.sizes, a.key.options) <
           std::tuple(b.entry, b.key.problem.sizes, b.key.options);
  });
  return listed;
}

Result<std::vector<Measurement>> Cache::all_measurements() const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  TC_TRY(contents, read_all(*impl_->database));
  for (const std::string& sentence : contents.damage) impl_->report(sentence);
  std::vector<Measurement> measurements;
  for (auto& [row, one] : contents.measurements) measurements.push_back(std::move(one));
  std::ranges::stable_sort(measurements, {}, &Measurement::time_us);
  return measurements;
}

Result<Verified> Cache::verify() const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  TC_TRY(contents, read_all(*impl_->database));
  Verified verified{.rows = contents.rows, .damage = std::move(contents.damage)};
  TC_TRY(query, impl_->database->query("PRAGMA integrity_check"));
  TC_TRY_VOID(for_each_row(
      *impl_->database, query,
      [&] {
        if (const std::string line = query.bytes(0); line != "ok") {
          verified.damage.push_back(fmt::format("the cache {}: {}", impl_->path, line));
        }
      },
      [&](const std::string& damage) { verified.damage.push_back(damage); }));
  return verified;
}

Result<Merged> Cache::merge(const Cache& from) {
  if (&from == this) return Merged{};
  Contents contents;
  {
    const std::lock_guard<std::mutex> lock(from.impl_->mutex);
    TC_TRY(read, read_all(*from.impl_->database));
    for (const std::string& sentence : read.damage) from.impl_->report(sentence);
    contents = std::move(read);
  }
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  return take_over(*impl_->database, contents);
}

Result<Pruned> Cache::prune(const PruneOptions& options) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  Database& database = *impl_->database;
  Pruned pruned;
  {
    TC_TRY(transaction, Transaction::begin(database));
    TC_TRY(contents, read_all(database));
    const std::set<std::string> slower =
        options.best_only ? beaten(contents, *options.best_only) : std::set<std::string>();
    const auto old = [&](int64_t date) { return options.older_than && date < *options.older_than; };
    std::set<std::string> programs;
    for (const auto& [row, stored] : contents.entries) {
      const Key& key = stored.key;
      const bool other = !options.other_compilers_than.empty() && key.compiler != options.other_compilers_than;
      if (!old(stored.entry.created) && !other && !slower.contains(candidate(key.problem, key.options))) {
        programs.insert(key.problem.program);
        continue;
      }
      TC_TRY_VOID(remove_row(database, kRemoveEntry, row.id));
      ++pruned.entries;
    }
    for (const auto& [row, one] : contents.measurements) {
      const bool failed = options.best_only && one.state != Measurement::State::kOk;
      if (!old(one.date) && !failed && !slower.contains(candidate(one.problem, one.options))) {
        programs.insert(one.problem.program);
        continue;
      }
      TC_TRY_VOID(remove_row(database, kRemoveMeasurement, row.id));
      ++pruned.measurements;
    }
    for (const auto& [row, stored] : contents.interfaces) {
      if (programs.contains(stored.interface.program)) continue;
      TC_TRY_VOID(remove_row(database, kRemoveInterface, row.id));
      ++pruned.interfaces;
    }
    for (const auto& [table, id] : contents.damaged_rows) {
      const std::string_view name = table;
      const char* sql = name == "entries"        ? kRemoveEntry
                        : name == "measurements" ? kRemoveMeasurement
                                                 : kRemoveInterface;
      TC_TRY_VOID(remove_row(database, sql, id));
      ++pruned.damaged;
    }
    TC_TRY_VOID(transaction.commit());
  }
  (void)database.run("VACUUM");  // what has been removed is, even if there is no room to make the file smaller
  return pruned;
}

Result<Merged> Cache::export_to(const std::string& path, const Selection& selection) const {
  Contents contents;
  {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    TC_TRY(read, read_all(*impl_->database));
    for (const std::string& sentence : read.damage) impl_->report(sentence);
    contents = select(std::move(read), selection);
  }
  for (auto& [row, stored] : contents.entries) {
    if (selection.complete) TC_TRY_VOID(selection.complete(stored.key, stored.entry));
  }
  // A file under another name, which is then given the right one, unless somebody else has it by then.
  const std::string unfinished = fmt::format("{}.{}.unfinished", path, getpid());
  std::error_code ignored;
  std::filesystem::remove(unfinished, ignored);
  Result<Merged> written = [&]() -> Result<Merged> {
    auto database = Database::open(unfinished, true, impl_->options.wait_ms);
    if (database) return take_over(**database, contents);
    if (std::filesystem::exists(unfinished, ignored)) return tl::unexpected(database.error());
    return fail("the file {} cannot be made: there is no such folder, or no right to write to it", path);
  }();
  if (written) {
    (void)chmod(unfinished.c_str(), 0444);  // some file systems know no rights
    if (auto named = rename_to_new(unfinished, path); !named) written = tl::unexpected(named.error());
  }
  std::filesystem::remove(unfinished, ignored);
  return written;
}

}  // namespace tc::cache
