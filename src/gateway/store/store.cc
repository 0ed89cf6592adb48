// SPDX-License-Identifier: Apache-2.0
#include "gateway/store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"
#include "gateway/limits.h"
#include "gateway/spec/read_spec.h"
#include "gateway/store/database.h"
#include "gateway/store/migrations.h"

namespace tessera::gateway {
namespace {

// A body that is as deep as the API admits lies deeper here: options are an object in the record.
constexpr uint32_t kStoredDepthMax = 80;

std::string WriteList(const std::vector<std::string>& list) {
  json::Array array;
  for (const std::string& element : list) array.push_back(json::Value(element));
  return json::Serialize(array);
}

Result<std::vector<std::string>> ReadList(const std::string& text) {
  TESSERA_ASSIGN_OR_RETURN(const json::Value value, json::Parse(text, {}, "stored list"));
  std::vector<std::string> list;
  if (const auto* array = value.if_array())
    for (const json::Value& element : *array)
      if (const auto* string = element.if_string()) list.emplace_back(*string);
  return list;
}

Result<EndpointRecord> ReadEndpoint(const Statement& row) {
  EndpointRecord record;
  record.id = row.Text(0);
  record.owner = row.Text(1);
  TESSERA_ASSIGN_OR_RETURN(
      const json::Value spec,
      json::Parse(row.Text(2), {.max_depth = kStoredDepthMax}, "stored endpoint"));
  if (!spec.is_object()) return Fail(DataLoss("stored endpoint: not an object"));
  TESSERA_ASSIGN_OR_RETURN(record.spec, ReadSpec(spec.get_object()));
  record.revision = row.Integer(3);
  record.generation = row.Integer(4);
  record.is_deleting = row.Integer(5) != 0;
  TESSERA_ASSIGN_OR_RETURN(record.warnings, ReadList(row.Text(6)));
  record.created_at = row.Integer(7);
  record.updated_at = row.Integer(8);
  return record;
}

constexpr std::string_view kSelectFiles =
    "SELECT id, owner, filename, bytes, sha256, created_at, purpose FROM file ";

FileRecord ReadFileRow(const Statement& row) {
  return {.id = row.Text(0),
          .owner = row.Text(1),
          .filename = row.Text(2),
          .bytes = row.Integer(3),
          .sha256 = row.Text(4),
          .created_at = row.Integer(5),
          .purpose = row.Text(6)};
}

/// Rows of a statement that selects kFileColumns.
Result<std::vector<FileRecord>> ReadFileRows(Statement select) {
  std::vector<FileRecord> files;
  while (true) {
    TESSERA_ASSIGN_OR_RETURN(const bool has_row, select.Next());
    if (!has_row) return files;
    files.push_back(ReadFileRow(select));
  }
}

Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), "making the state folder", folder);
  // Keys of workers lie in it.
  if (chmod(folder.c_str(), S_IRWXU) != 0)
    return ErrnoStatus(errno, "making the state folder private", folder);
  return {};
}

/// The kernel releases it when the descriptor is closed, however the process ends. A write lock of
/// the open file description: workers look whether it is held without taking it (cli/lease.h).
Result<int> TakeLock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kLockFile;
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return Fail(ErrnoStatus(errno, "opening", path));
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return fd;
  const int error = errno;
  close(fd);
  if (error == EAGAIN || error == EACCES)
    return Fail(Unavailable(
        fmt::format("{} belongs to a gateway that is running: stop it, or use another --state-dir",
                    folder.string())));
  return Fail(ErrnoStatus(error, "locking", path));
}

}  // namespace

Store::Store(std::filesystem::path folder, int lock_fd, std::unique_ptr<Database> database)
    : folder_(std::move(folder)), lock_fd_(lock_fd), database_(std::move(database)) {}

Store::~Store() {
  database_.reset();
  close(lock_fd_);
}

Result<std::unique_ptr<Store>> Store::Open(const std::filesystem::path& state_dir) {
  TESSERA_RETURN_IF_ERROR(MakeFolder(state_dir));
  TESSERA_ASSIGN_OR_RETURN(const int lock_fd, TakeLock(state_dir));
  auto database = OpenSqlite(state_dir / kDatabaseFile);
  if (!database.has_value()) {
    close(lock_fd);
    return Fail(database.error().WithContext("state folder " + state_dir.string()));
  }
  return Migrated(state_dir, lock_fd, *std::move(database));
}

Result<std::unique_ptr<Store>> Store::Open(const std::filesystem::path& state_dir,
                                           std::unique_ptr<Database> database) {
  TESSERA_RETURN_IF_ERROR(MakeFolder(state_dir));
  TESSERA_ASSIGN_OR_RETURN(const int lock_fd, TakeLock(state_dir));
  return Migrated(state_dir, lock_fd, std::move(database));
}

Result<std::unique_ptr<Store>> Store::Migrated(const std::filesystem::path& folder, int lock_fd,
                                               std::unique_ptr<Database> database) {
  std::unique_ptr<Store> store(new Store(folder, lock_fd, std::move(database)));
  if (const Status done = Migrate(store->database_.get()); !done.ok())
    return Fail(done.WithContext("state folder " + folder.string()));
  return store;
}

Status Store::Check() const {
  const std::lock_guard lock(mutex_);
  return database_->Execute("SELECT 1");
}

Result<int64_t> Store::AppendLocked(const EventRecord& event) {
  Statement insert = database_->Prepare(
      "INSERT INTO event (endpoint_id, at, kind, text, actor) VALUES (?, ?, ?, ?, ?) "
      "RETURNING sequence");
  insert.Bind(1, event.endpoint_id).Bind(2, event.at).Bind(3, event.kind);
  insert.Bind(4, event.text).Bind(5, event.actor);
  TESSERA_ASSIGN_OR_RETURN(const bool has_row, insert.Next());
  const int64_t sequence = has_row ? insert.Integer(0) : 0;
  TESSERA_RETURN_IF_ERROR(insert.Run());
  Statement trim = database_->Prepare(
      "DELETE FROM event WHERE endpoint_id = ?1 AND sequence <= (SELECT sequence FROM event "
      "WHERE endpoint_id = ?1 ORDER BY sequence DESC LIMIT 1 OFFSET ?2)");
  trim.Bind(1, event.endpoint_id).Bind(2, kEventsPerEndpointMax);
  TESSERA_RETURN_IF_ERROR(trim.Run());
  return sequence;
}

Status Store::InsertEndpoint(const EndpointRecord& record, EventRecord event) {
  event.endpoint_id = record.id;
  const std::lock_guard lock(mutex_);
  return database_->Transact([&]() -> Status {
    Statement insert = database_->Prepare(
        "INSERT INTO endpoint (id, name, owner, spec, revision, generation, is_deleting, warnings,"
        " created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert.Bind(1, record.id).Bind(2, record.spec.name).Bind(3, record.owner);
    insert.Bind(4, json::Serialize(WriteSpec(record.spec)));
    insert.Bind(5, record.revision).Bind(6, record.generation);
    insert.Bind(7, int64_t{record.is_deleting}).Bind(8, WriteList(record.warnings));
    insert.Bind(9, record.created_at).Bind(10, record.updated_at);
    TESSERA_RETURN_IF_ERROR(insert.Run());
    return StatusOf(AppendLocked(event));
  });
}

Status Store::UpdateEndpoint(const EndpointRecord& record, int64_t revision_before,
                             EventRecord event) {
  event.endpoint_id = record.id;
  const std::lock_guard lock(mutex_);
  return database_->Transact([&]() -> Status {
    Statement update = database_->Prepare(
        "UPDATE endpoint SET spec = ?, revision = ?, generation = ?, is_deleting = ?, "
        "warnings = ?, updated_at = ? WHERE id = ? AND revision = ?");
    update.Bind(1, json::Serialize(WriteSpec(record.spec)));
    update.Bind(2, record.revision).Bind(3, record.generation);
    update.Bind(4, int64_t{record.is_deleting}).Bind(5, WriteList(record.warnings));
    update.Bind(6, record.updated_at).Bind(7, record.id).Bind(8, revision_before);
    TESSERA_RETURN_IF_ERROR(update.Run());
    if (database_->changes() != 1)
      return FailedPrecondition(
          fmt::format("endpoint {} was changed meanwhile: look at it again", record.spec.name));
    return StatusOf(AppendLocked(event));
  });
}

Status Store::RemoveEndpoint(std::string_view id) {
  const std::lock_guard lock(mutex_);
  return database_->Transact([&]() -> Status {
    for (const std::string_view sql :
         {"DELETE FROM event WHERE endpoint_id = ?", "DELETE FROM endpoint WHERE id = ?"})
      TESSERA_RETURN_IF_ERROR(database_->Prepare(sql).Bind(1, id).Run());
    return {};
  });
}

Result<std::vector<EndpointRecord>> Store::LoadEndpoints() const {
  const std::lock_guard lock(mutex_);
  Statement select = database_->Prepare(
      "SELECT id, owner, spec, revision, generation, is_deleting, warnings, created_at, updated_at "
      "FROM endpoint ORDER BY id");
  std::vector<EndpointRecord> records;
  while (true) {
    TESSERA_ASSIGN_OR_RETURN(const bool has_row, select.Next());
    if (!has_row) return records;
    TESSERA_ASSIGN_OR_RETURN(EndpointRecord record, ReadEndpoint(select));
    records.push_back(std::move(record));
  }
}

Status Store::PutWorker(const WorkerRecord& record) {
  const std::lock_guard lock(mutex_);
  Statement put = database_->Prepare(
      "INSERT INTO worker (id, endpoint_id, generation, pid, start_ticks, port, key, started_at) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET pid = excluded.pid, "
      "start_ticks = excluded.start_ticks, port = excluded.port, key = excluded.key, "
      "started_at = excluded.started_at");
  put.Bind(1, record.id).Bind(2, record.endpoint_id).Bind(3, record.generation);
  put.Bind(4, record.pid).Bind(5, record.start_ticks).Bind(6, record.port);
  return put.Bind(7, record.key).Bind(8, record.started_at).Run();
}

Status Store::RemoveWorker(std::string_view id) {
  const std::lock_guard lock(mutex_);
  return database_->Prepare("DELETE FROM worker WHERE id = ?").Bind(1, id).Run();
}

Result<std::vector<WorkerRecord>> Store::LoadWorkers() const {
  const std::lock_guard lock(mutex_);
  Statement select = database_->Prepare(
      "SELECT id, endpoint_id, generation, pid, start_ticks, port, key, started_at FROM worker "
      "ORDER BY id");
  std::vector<WorkerRecord> records;
  while (true) {
    TESSERA_ASSIGN_OR_RETURN(const bool has_row, select.Next());
    if (!has_row) return records;
    records.push_back({.id = select.Text(0),
                       .endpoint_id = select.Text(1),
                       .generation = select.Integer(2),
                       .pid = select.Integer(3),
                       .start_ticks = select.Integer(4),
                       .port = select.Integer(5),
                       .key = select.Text(6),
                       .started_at = select.Integer(7)});
  }
}

Result<int64_t> Store::AppendEvent(EventRecord event) {
  const std::lock_guard lock(mutex_);
  int64_t sequence = 0;
  const Status done = database_->Transact([&]() -> Status {
    TESSERA_ASSIGN_OR_RETURN(sequence, AppendLocked(event));
    return {};
  });
  if (!done.ok()) return Fail(done);
  return sequence;
}

Result<std::vector<EventRecord>> Store::Events(std::string_view endpoint_id, int64_t after,
                                               int64_t limit) const {
  const std::lock_guard lock(mutex_);
  Statement select = database_->Prepare(
      "SELECT sequence, endpoint_id, at, kind, text, actor FROM event "
      "WHERE endpoint_id = ? AND sequence > ? ORDER BY sequence LIMIT ?");
  select.Bind(1, endpoint_id).Bind(2, after).Bind(3, limit);
  std::vector<EventRecord> events;
  while (true) {
    TESSERA_ASSIGN_OR_RETURN(const bool has_row, select.Next());
    if (!has_row) return events;
    events.push_back({.sequence = select.Integer(0),
                      .endpoint_id = select.Text(1),
                      .at = select.Integer(2),
                      .kind = select.Text(3),
                      .text = select.Text(4),
                      .actor = select.Text(5)});
  }
}

Status Store::InsertFile(const FileRecord& record) {
  const std::lock_guard lock(mutex_);
  Statement insert = database_->Prepare(
      "INSERT INTO file (id, owner, filename, bytes, sha256, created_at, purpose) VALUES (?, ?, ?, "
      "?, ?, ?, ?)");
  insert.Bind(1, record.id).Bind(2, record.owner).Bind(3, record.filename);
  insert.Bind(4, record.bytes).Bind(5, record.sha256).Bind(6, record.created_at);
  return insert.Bind(7, record.purpose).Run();
}

Result<std::optional<FileRecord>> Store::FindFile(std::string_view owner,
                                                  std::string_view id) const {
  const std::lock_guard lock(mutex_);
  Statement select =
      database_->Prepare(std::string(kSelectFiles).append("WHERE owner = ? AND id = ?"));
  select.Bind(1, owner).Bind(2, id);
  TESSERA_ASSIGN_OR_RETURN(const bool has_row, select.Next());
  if (!has_row) return std::nullopt;
  return ReadFileRow(select);
}

Result<std::vector<FileRecord>> Store::ListFiles(std::string_view owner) const {
  const std::lock_guard lock(mutex_);
  Statement select =
      database_->Prepare(std::string(kSelectFiles).append("WHERE owner = ? ORDER BY id"));
  select.Bind(1, owner);
  return ReadFileRows(std::move(select));
}

Result<std::vector<FileRecord>> Store::LoadFiles() const {
  const std::lock_guard lock(mutex_);
  return ReadFileRows(database_->Prepare(std::string(kSelectFiles).append("ORDER BY id")));
}

Result<bool> Store::RemoveFile(std::string_view owner, std::string_view id) {
  const std::lock_guard lock(mutex_);
  Statement remove = database_->Prepare("DELETE FROM file WHERE owner = ? AND id = ?");
  TESSERA_RETURN_IF_ERROR(remove.Bind(1, owner).Bind(2, id).Run());
  return database_->changes() == 1;
}

Status Store::PutBatch(std::string_view id, std::string_view text) {
  const std::lock_guard lock(mutex_);
  Statement put = database_->Prepare(
      "INSERT INTO batch (id, text) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET text = "
      "excluded.text");
  return put.Bind(1, id).Bind(2, text).Run();
}

Status Store::RemoveBatch(std::string_view id) {
  const std::lock_guard lock(mutex_);
  return database_->Prepare("DELETE FROM batch WHERE id = ?").Bind(1, id).Run();
}

Result<std::vector<std::string>> Store::LoadBatches() const {
  const std::lock_guard lock(mutex_);
  Statement select = database_->Prepare("SELECT text FROM batch ORDER BY id");
  std::vector<std::string> texts;
  while (true) {
    TESSERA_ASSIGN_OR_RETURN(const bool has_row, select.Next());
    if (!has_row) return texts;
    texts.push_back(select.Text(0));
  }
}

}  // namespace tessera::gateway
