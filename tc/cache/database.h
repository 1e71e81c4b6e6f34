#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tc/support/result.h"

/// SQLite, as little of it as the cache needs.
namespace tc::cache {

/// What SQLite says of a call, as an error: "FILE: the disk is full".
Error database_error(sqlite3* database, const std::string& path, int code);

/// True for codes that mean that the file's bytes are not what SQLite wrote.
bool is_damage(int code);

/// A prepared statement with its values bound; reset at the end.
class Query {
 public:
  explicit Query(sqlite3_stmt* statement) : statement_(statement) {}
  ~Query();
  Query(Query&& other) noexcept : statement_(other.statement_), next_(other.next_) { other.statement_ = nullptr; }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  Query& bind(int64_t value);
  Query& bind(double value);
  Query& bind(std::string_view text);
  Query& bind_blob(std::string_view bytes);

  /// SQLITE_ROW, SQLITE_DONE or an error's code.
  int step() { return sqlite3_step(statement_); }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  std::string bytes(int column) const;  ///< of a blob or a text; empty for anything else

 private:
  sqlite3_stmt* statement_;
  int next_ = 1;
};

/// A connection. Not thread-safe: its owner locks.
class Database {
 public:
  /// Opens, and makes the tables where the file is new and may be written.
  static Result<std::unique_ptr<Database>> open(const std::string& path, bool writable, int wait_ms);
  /// True if what is in a file that can be read is not what open() expects.
  static bool is_foreign(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& path() const { return path_; }
  /// The statement of an SQL text, prepared once. Errors: damage, or a lock.
  Result<Query> query(const char* sql);
  Result<void> run(const char* sql);
  Error error(int code) const { return database_error(handle_, path_, code); }
  int changes() const { return sqlite3_changes(handle_); }

 private:
  Database() = default;
  Result<void> prepare_file(bool writable);
  Result<void> create_tables();

  struct Prepared;
  std::string path_;
  sqlite3* handle_ = nullptr;
  std::unique_ptr<Prepared> prepared_;
};

/// A transaction that writes: rolled back unless committed.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  ~Transaction();
  Transaction(Transaction&& other) noexcept : database_(other.database_) { other.database_ = nullptr; }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  /// On the disk when it returns without an error.
  Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace tc::cache
