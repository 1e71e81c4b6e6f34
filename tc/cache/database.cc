#include "tc/cache/database.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

namespace tc::cache {
namespace {

constexpr int kApplication = 0x54436163;  // "TCac"
constexpr int kVersion = 1;

/// Small pages, because most rows are small and a page is what a write copies first. The journal is deleted after each
/// transaction, so that a cache at rest is one file; EXTRA makes the deletion itself last through a power cut.
constexpr char kNewFile[] = "PRAGMA page_size = 1024; PRAGMA encoding = 'UTF-8'";
constexpr char kConnection[] =
    "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA cell_size_check = ON; "
    "PRAGMA trusted_schema = OFF";

constexpr char kTables[] =
    "CREATE TABLE entries (id BLOB PRIMARY KEY, program TEXT, problem BLOB, created INTEGER, value BLOB, "
    "checksum BLOB) WITHOUT ROWID;"
    "CREATE INDEX entries_by_problem ON entries (program, problem);"
    "CREATE TABLE measurements (id BLOB PRIMARY KEY, program TEXT, problem BLOB, device TEXT, state INTEGER, "
    "time_us REAL, value BLOB, checksum BLOB) WITHOUT ROWID;"
    "CREATE INDEX measurements_by_problem ON measurements (program, problem, state, time_us);"
    "CREATE TABLE interfaces (id BLOB PRIMARY KEY, program TEXT, value BLOB, checksum BLOB) WITHOUT ROWID;";

std::string sentence_of(sqlite3* database, int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return "the disk is full";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another process has held it locked for too long";
    case SQLITE_READONLY:
      return code == SQLITE_READONLY_ROLLBACK
                 ? "a write to it was cut short; open it for writing once, so that it can be undone"
                 : "there is no right to write to it";
    case SQLITE_NOTADB:
      return "it is not a cache";
    case SQLITE_CORRUPT:
      return "it is damaged";
    case SQLITE_IOERR:
      return fmt::format("reading or writing it failed ({})", sqlite3_errstr(code));
    default:
      return database ? sqlite3_errmsg(database) : sqlite3_errstr(code);
  }
}

/// Why SQLite cannot open a file, which it does not tell.
std::string why_not_open(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENAMETOOLONG) return fmt::format("its name of {} bytes is too long for the file system", path.size());
    if (errno == ELOOP) return "its name is a loop of links";
    if (errno == ENOTDIR) return "a part of its path is no folder";
    const std::string folder = std::filesystem::path(path).parent_path().string();
    if (!folder.empty() && ::stat(folder.c_str(), &status) != 0 && errno == ENOENT) {
      return fmt::format("there is no folder '{}'", folder);
    }
  }
  return "it does not exist, or there is no right to open it";
}

/// SQLite opens devices and pipes too: it waits for a pipe's other end, and puts a journal beside a device.
bool is_something_else(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

bool has_no_write_right(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && (status.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

Error database_error(sqlite3* database, const std::string& path, int code) {
  const bool unopened = (code & 0xff) == SQLITE_CANTOPEN;
  return Error(fmt::format("the cache {}: {}", path, unopened ? why_not_open(path) : sentence_of(database, code)));
}

bool is_damage(int code) {
  const int primary = code & 0xff;
  // A schema whose bytes have changed makes statements that name what is not there: SQLITE_ERROR.
  return primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_ERROR;
}

Query::~Query() {
  if (!statement_) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Query& Query::bind(int64_t value) {
  sqlite3_bind_int64(statement_, next_++, value);
  return *this;
}
Query& Query::bind(double value) {
  sqlite3_bind_double(statement_, next_++, value);
  return *this;
}
Query& Query::bind(std::string_view text) {
  sqlite3_bind_text64(statement_, next_++, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}
Query& Query::bind_blob(std::string_view bytes) {
  sqlite3_bind_blob64(statement_, next_++, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  return *this;
}

std::string Query::bytes(int column) const {
  const int type = sqlite3_column_type(statement_, column);
  if (type != SQLITE_BLOB && type != SQLITE_TEXT) return {};
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return size > 0 ? std::string(static_cast<const char*>(data), static_cast<size_t>(size)) : std::string();
}

/// By the text's address: all are literals.
struct Database::Prepared {
  std::map<const char*, sqlite3_stmt*> statements;
  ~Prepared() {
    for (const auto& [sql, statement] : statements) sqlite3_finalize(statement);
  }
};

Database::~Database() {
  prepared_.reset();
  sqlite3_close(handle_);
}

Result<Query> Database::query(const char* sql) {
  sqlite3_stmt*& statement = prepared_->statements[sql];
  if (!statement) {
    const int code = sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return tl::unexpected(error(code));
  }
  return Query(statement);
}

Result<void> Database::run(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(error(sqlite3_extended_errcode(handle_)));
  return {};
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path, bool writable, int wait_ms) {
  std::unique_ptr<Database> database(new Database());
  database->path_ = path;
  database->prepared_ = std::make_unique<Prepared>();
  // To SQLite the empty name is a new file that goes away when it is closed.
  if (path.empty()) return fail("a cache is a file; its name is empty");
  if (path == ":memory:" || path.starts_with("file:")) {
    return fail(
        "the cache {}: to SQLite that is no file's name, and what it holds may be lost; write ./{} for a file "
        "called so",
        path, path);
  }
  if (is_something_else(path)) return fail("the cache {}: it is no regular file", path);
  // An export stays as it is, also for root, whom a file's rights do not stop.
  if (writable && has_no_write_right(path)) writable = false;
  const int flags = writable ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const int code = sqlite3_open_v2(path.c_str(), &database->handle_, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(database->error(code));
  sqlite3_extended_result_codes(database->handle_, 1);
  sqlite3_busy_timeout(database->handle_, wait_ms);
  TC_TRY_VOID(database->prepare_file(writable));
  return database;
}

Result<void> Database::prepare_file(bool writable) {
  const auto pragma = [&](const char* sql) -> Result<int64_t> {
    TC_TRY(asked, query(sql));
    const int code = asked.step();
    if (code != SQLITE_ROW) return tl::unexpected(error(code));
    return asked.integer(0);
  };
  if (writable) TC_TRY_VOID(run(kNewFile));
  TC_TRY_VOID(run(kConnection));
  TC_TRY(version, pragma("PRAGMA user_version"));
  TC_TRY(application, pragma("PRAGMA application_id"));
  if (application == 0 && version == 0) {
    if (!writable) return fail("the cache {}: it is not a cache", path_);
    TC_TRY_VOID(create_tables());
    return {};
  }
  if (application != kApplication) return fail("the cache {}: it is a database of something else", path_);
  if (version != kVersion) {
    return fail("the cache {}: its format is version {}; this program reads version {}", path_, version, kVersion);
  }
  return {};
}

bool Database::is_foreign(const std::string& path) {
  if (is_something_else(path)) return false;
  Database database;
  database.path_ = path;
  database.prepared_ = std::make_unique<Prepared>();
  if (sqlite3_open_v2(path.c_str(), &database.handle_, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr) !=
      SQLITE_OK) {
    return false;
  }
  for (const auto& [sql, expected] :
       {std::pair("PRAGMA application_id", kApplication), {"PRAGMA user_version", kVersion}}) {
    Result<Query> asked = database.query(sql);
    if (!asked) return is_damage(sqlite3_errcode(database.handle_));
    const int code = asked->step();
    if (code != SQLITE_ROW) return is_damage(code);
    if (asked->integer(0) != expected) return true;
  }
  return false;
}

/// Another process may do the same at the same time: the first one's tables are there when the second gets the lock.
Result<void> Database::create_tables() {
  TC_TRY(transaction, Transaction::begin(*this));
  TC_TRY(existing, query("SELECT count(*) FROM sqlite_master"));
  if (existing.step() != SQLITE_ROW) return tl::unexpected(error(sqlite3_extended_errcode(handle_)));
  if (existing.integer(0) == 0) {
    TC_TRY_VOID(run(kTables));
    TC_TRY_VOID(
        run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplication, kVersion).c_str()));
  } else {
    TC_TRY(made, query("PRAGMA application_id"));
    if (made.step() != SQLITE_ROW || made.integer(0) != kApplication) {
      return fail("the cache {}: it is a database of something else", path_);
    }
  }
  return transaction.commit();
}

Result<Transaction> Transaction::begin(Database& database) {
  TC_TRY_VOID(database.run("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  if (database_) (void)database_->run("ROLLBACK");
}

Result<void> Transaction::commit() {
  TC_TRY_VOID(database_->run("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace tc::cache
