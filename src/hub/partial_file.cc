// SPDX-License-Identifier: Apache-2.0
#include "hub/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.h"
#include "base/file.h"
#include "hub/limits.h"

namespace tessera::hub {
namespace {

// A power cut costs at most this much; more often would make slow disks slower.
constexpr uint64_t kSyncEveryBytes = 64ull << 20;
// Hashed at a time while the download runs: reads come from the page cache.
constexpr uint64_t kHashPieceBytes = 4ull << 20;
constexpr std::string_view kPartSuffix = ".tessera.incomplete";

std::filesystem::path With(const std::filesystem::path& target, std::string_view suffix) {
  std::filesystem::path path = target;
  path += suffix;
  return path;
}

/// What tells this run of the machine from others; empty where the system does not say, and then
/// only synced bytes count.
std::string BootId() {
  const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::array<char, 64> text{};
  const ssize_t got = ::read(fd, text.data(), text.size());
  ::close(fd);
  std::string id(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  while (id.ends_with('\n')) id.pop_back();
  return id;
}

/// A link in the place of one of our files is not followed: others may write to a shared cache.
int OpenOwn(const std::filesystem::path& path, int flags) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_CREAT, 0644);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

Status WriteAllAt(int fd, uint64_t offset, ByteSpan bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, "writing", path);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return {};
}

bool IsSha256(std::string_view validator) {
  return validator.size() == 64 &&
         validator.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The beginning of a file, which it has without a hole.
uint64_t SolidBytes(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return 0;
  struct stat info {};
  const bool is_file = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1;
  const off_t hole = is_file ? ::lseek(fd, 0, SEEK_HOLE) : -1;
  ::close(fd);
  return hole > 0 ? static_cast<uint64_t>(hole) : 0;
}

/// What huggingface_hub left of the file when it was killed: the longest beginning of several.
struct Foreign {
  std::filesystem::path path;
  uint64_t bytes = 0;
};
Foreign LongestForeign(const std::filesystem::path& target, uint64_t bytes) {
  const std::string begin = target.filename().string() + ".";
  Foreign longest;
  std::error_code error;
  std::filesystem::directory_iterator it(target.parent_path(), error);
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(".incomplete") || name.ends_with(kPartSuffix))
      continue;
    const uint64_t solid = SolidBytes(it->path());
    if (solid > longest.bytes && solid <= bytes) longest = {it->path(), solid};
  }
  return longest;
}

uint64_t FileBytes(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && info.st_size > 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

}  // namespace

PartialFile::PartialFile(std::filesystem::path target, uint64_t bytes, std::string validator)
    : target_(std::move(target)),
      part_(With(target_, kPartSuffix)),
      journal_path_(With(target_, ".tessera.journal")),
      bytes_(bytes),
      validator_(std::move(validator)),
      boot_(BootId()),
      hash_(std::make_unique<Sha256>()) {}

PartialFile::~PartialFile() {
  if (fd_ >= 0) ::close(fd_);
  if (journal_fd_ >= 0) ::close(journal_fd_);
}

Result<std::unique_ptr<PartialFile>> PartialFile::Open(const std::filesystem::path& target,
                                                       uint64_t bytes, std::string_view validator) {
  std::error_code error;
  std::filesystem::create_directories(target.parent_path(), error);
  if (error) return Fail(ErrnoStatus(error.value(), "making", target.parent_path()));
  std::unique_ptr<PartialFile> file(new PartialFile(target, bytes, ValidatorWord(validator)));
  TESSERA_RETURN_IF_ERROR(file->OpenFiles());
  return file;
}

uint64_t PartialFile::DiskBytes(const std::filesystem::path& target) {
  constexpr uint64_t kBlock = 512;  // Of st_blocks, on every file system.
  struct stat info {};
  if (::lstat(With(target, ".tessera.incomplete").c_str(), &info) != 0) return 0;
  return static_cast<uint64_t>(info.st_blocks) * kBlock;
}

Status PartialFile::OpenFiles() {
  fd_ = OpenOwn(part_, O_RDWR);
  if (fd_ < 0) return ErrnoStatus(errno, "opening", part_);
  Journal journal;
  if (auto text = ReadFile(journal_path_, kMaxJournalBytes); text.has_value()) {
    auto read = ReadJournal(*text, boot_);
    // A journal that is damaged, of other bytes, or of a file that is gone tells nothing.
    if (read.has_value() && read->IsFor(bytes_, validator_) &&
        read->present.end() <= FileBytes(fd_))
      journal = *std::move(read);
  }
  journal.bytes = bytes_;
  journal.validator = validator_;
  present_ = journal.present;
  if (present_.bytes() == 0 && IsSha256(validator_)) {
    const Foreign foreign = LongestForeign(target_, bytes_);
    if (foreign.bytes > 0) return TakeOver(foreign.path, foreign.bytes);
  }
  return StartJournal(journal);
}

Status PartialFile::TakeOver(const std::filesystem::path& foreign, uint64_t bytes) {
  // The journal first: until the rename it speaks of more bytes than there are, and is not
  // believed.
  if (::ftruncate(fd_, 0) != 0) return ErrnoStatus(errno, "emptying", part_);
  Journal journal{bytes_, validator_, {}, {}};
  journal.present.Add({0, bytes});
  TESSERA_RETURN_IF_ERROR(StartJournal(journal));
  if (::rename(foreign.c_str(), part_.c_str()) != 0)
    return ErrnoStatus(errno, "renaming to", part_);
  ::close(std::exchange(fd_, -1));
  fd_ = OpenOwn(part_, O_RDWR);
  if (fd_ < 0) return ErrnoStatus(errno, "opening", part_);
  present_ = journal.present;
  taken_over_ = bytes;
  return {};
}

Status PartialFile::StartJournal(const Journal& journal) {
  if (journal_fd_ >= 0) ::close(std::exchange(journal_fd_, -1));
  const JournalText fresh = WriteJournal(journal, boot_);
  // One name for all drafts, since we hold the lock: what a killed process left is written over.
  const std::filesystem::path draft = With(journal_path_, ".new");
  (void)::unlink(draft.c_str());
  TESSERA_ASSIGN_OR_RETURN(const auto writer, FileWriter::Create(draft));
  TESSERA_RETURN_IF_ERROR(writer->Append(AsBytes(fresh.text)));
  TESSERA_RETURN_IF_ERROR(writer->Finish());
  if (::rename(draft.c_str(), journal_path_.c_str()) != 0)
    return ErrnoStatus(errno, "renaming to", journal_path_);
  journal_ranges_ = fresh.ranges;
  journal_fd_ = OpenOwn(journal_path_, O_WRONLY | O_APPEND);
  if (journal_fd_ < 0) return ErrnoStatus(errno, "opening", journal_path_);
  return {};
}

Status PartialFile::Append(std::string_view line) {
  // One write of a short line to an O_APPEND file: whole or, at a crash, cut at its end.
  ssize_t written;
  do {
    written = ::write(journal_fd_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return ErrnoStatus(errno, "writing", journal_path_);
  if (static_cast<size_t>(written) < line.size())
    return ErrnoStatus(ENOSPC, "writing", journal_path_);
  return {};
}

uint64_t PartialFile::PresentBytes() const {
  const std::lock_guard lock(mutex_);
  return present_.bytes();
}

std::vector<ByteRange> PartialFile::Missing() const {
  const std::lock_guard lock(mutex_);
  return present_.Missing(bytes_);
}

Status PartialFile::Write(uint64_t offset, ByteSpan bytes) {
  TESSERA_CHECK(offset <= bytes_ && bytes.size() <= bytes_ - offset);
  if (bytes.empty()) return {};
  TESSERA_RETURN_IF_ERROR(WriteAllAt(fd_, offset, bytes, part_));
  const ByteRange range{offset, offset + bytes.size()};
  {
    const std::lock_guard lock(mutex_);
    TESSERA_RETURN_IF_ERROR(Append(JournalRangeLine(range)));
    ++journal_ranges_;
    present_.Add(range);
    unsynced_ += bytes.size();
  }
  TESSERA_RETURN_IF_ERROR(SyncIfDue());
  return HashSome(/*to_the_end=*/false);
}

Status PartialFile::SyncIfDue() {
  uint64_t ranges = 0;
  {
    const std::lock_guard lock(mutex_);
    if (is_syncing_ || unsynced_ < kSyncEveryBytes) return {};
    is_syncing_ = true;
    unsynced_ = 0;
    ranges = journal_ranges_;  // Their bytes were written before; later ones may miss this sync.
  }
  const Status synced = SyncFile();
  const std::lock_guard lock(mutex_);
  is_syncing_ = false;
  TESSERA_RETURN_IF_ERROR(synced);
  return Append(JournalSyncedLine(ranges));
}

Status PartialFile::SyncFile() {
  if (::fdatasync(fd_) == 0) return {};
  const Status status = ErrnoStatus(errno, "syncing", part_);
  // The kernel forgets what it could not write, and says so once: nobody may believe the journal.
  (void)::unlink(journal_path_.c_str());
  return status;
}

Status PartialFile::HashSome(bool to_the_end) {
  std::vector<std::byte> buffer;
  for (;;) {
    uint64_t begin = 0;
    uint64_t size = 0;
    {
      const std::lock_guard lock(mutex_);
      const uint64_t ready = present_.ContiguousEnd() - std::min(hashed_, present_.ContiguousEnd());
      if (is_hashing_ || ready == 0 || (!to_the_end && ready < kHashPieceBytes)) return {};
      is_hashing_ = true;
      begin = hashed_;
      size = std::min(ready, kHashPieceBytes);
    }
    buffer.resize(size);
    Status status;
    for (uint64_t done = 0; done < size;) {
      const ssize_t got =
          ::pread(fd_, buffer.data() + done, size - done, static_cast<off_t>(begin + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        status = got < 0 ? ErrnoStatus(errno, "reading", part_)
                         : DataLoss(part_.string() + " became shorter while it was written");
        break;
      }
      done += static_cast<uint64_t>(got);
    }
    if (status.ok()) hash_->Update(buffer);
    const std::lock_guard lock(mutex_);
    is_hashing_ = false;
    TESSERA_RETURN_IF_ERROR(status);
    hashed_ = begin + size;
  }
}

Result<std::string> PartialFile::Sha256Hex() {
  TESSERA_CHECK(Missing().empty());
  TESSERA_RETURN_IF_ERROR(HashSome(/*to_the_end=*/true));
  TESSERA_CHECK(hashed_ == bytes_);
  const std::unique_ptr<Sha256> hash = std::exchange(hash_, std::make_unique<Sha256>());
  hashed_ = 0;
  return hash->FinishHex();
}

Result<std::string> PartialFile::GitBlobHex() const {
  TESSERA_ASSIGN_OR_RETURN(const auto mapping, MappedFile::Open(part_));
  return tessera::GitBlobHex(mapping->bytes());
}

Status PartialFile::Restart() {
  const std::lock_guard lock(mutex_);
  present_.Clear();
  hashed_ = 0;
  hash_ = std::make_unique<Sha256>();
  unsynced_ = 0;
  TESSERA_RETURN_IF_ERROR(StartJournal({bytes_, validator_, {}, {}}));
  if (::ftruncate(fd_, 0) != 0) return ErrnoStatus(errno, "emptying", part_);
  return {};
}

Status PartialFile::Publish() {
  TESSERA_RETURN_IF_ERROR(SyncFile());
  if (::rename(part_.c_str(), target_.c_str()) != 0)
    return ErrnoStatus(errno, "renaming to", target_);
  TESSERA_RETURN_IF_ERROR(SyncDirectory(target_.parent_path()));
  // Nothing reads it any more; what cannot be removed is overwritten by the next download.
  (void)::unlink(journal_path_.c_str());
  return {};
}

}  // namespace tessera::hub
