// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_message.h"

#include <cstring>

#include "runtime/limits.h"

namespace tessera::runtime {
namespace {

struct Header {
  StepCommand command = StepCommand::kEnd;
  int64_t first = 0;
  int64_t second = 0;
  int64_t chunks = 0;
};

struct ChunkHeader {
  int64_t tokens = 0;
  int64_t start = 0;
  int64_t pages = 0;
  int32_t logits = 0;
  int32_t hidden = 0;
};

void Append(const void* data, size_t bytes, std::vector<std::byte>* out) {
  if (bytes == 0) return;
  const size_t at = out->size();
  out->resize(at + bytes);
  std::memcpy(out->data() + at, data, bytes);
}

bool Take(ByteSpan* bytes, void* out, size_t count) {
  if (bytes->size() < count) return false;
  if (count > 0) std::memcpy(out, bytes->data(), count);
  *bytes = bytes->subspan(count);
  return true;
}

Status Damaged() {
  return DataLoss("a message of rank 0 is damaged: all ranks must run the same build");
}

}  // namespace

void WriteStep(std::span<const Chunk> chunks, std::vector<std::byte>* out) {
  out->clear();
  const Header header{StepCommand::kStep, 0, 0, std::ssize(chunks)};
  Append(&header, sizeof(header), out);
  for (const Chunk& chunk : chunks) {
    const ChunkHeader part{std::ssize(chunk.tokens), chunk.start, std::ssize(chunk.pages),
                           static_cast<int32_t>(chunk.logits), chunk.hidden ? 1 : 0};
    Append(&part, sizeof(part), out);
    Append(chunk.tokens.data(), chunk.tokens.size_bytes(), out);
    Append(chunk.pages.data(), chunk.pages.size_bytes(), out);
  }
}

void WriteCommand(StepCommand command, PageId first, PageId second, std::vector<std::byte>* out) {
  out->clear();
  const Header header{command, first, second, 0};
  Append(&header, sizeof(header), out);
}

Status CheckStepBytes(int64_t bytes) {
  const bool possible = bytes >= static_cast<int64_t>(sizeof(Header)) && bytes <= kMaxStepBytes;
  return possible ? Status() : Damaged();
}

Status StepMessage::Read(ByteSpan bytes, int64_t page_count) {
  Header header;
  if (!Take(&bytes, &header, sizeof(header)) || header.command < StepCommand::kStep ||
      header.command > StepCommand::kEnd)
    return Damaged();
  const auto is_page = [&](int64_t page) { return page >= 0 && page < page_count; };
  const bool copies = header.command == StepCommand::kCopyPage;
  if ((copies || header.command == StepCommand::kBackPage) && !is_page(header.first))
    return Damaged();
  if (copies && !is_page(header.second)) return Damaged();
  command = header.command;
  first = static_cast<PageId>(header.first);
  second = static_cast<PageId>(header.second);
  chunks.clear();
  numbers.clear();
  numbers.reserve(bytes.size() / sizeof(int32_t));  // So that chunks may point into it.
  for (int64_t i = 0; i < header.chunks; ++i) {
    ChunkHeader part;
    if (!Take(&bytes, &part, sizeof(part))) return Damaged();
    const auto limit = static_cast<int64_t>(bytes.size() / sizeof(int32_t));
    if (part.tokens < 0 || part.pages < 0 || part.tokens > limit ||
        part.pages > limit - part.tokens || part.logits < 0 ||
        part.logits > static_cast<int32_t>(Chunk::Logits::kAll))
      return Damaged();
    const size_t at = numbers.size();
    const auto tokens = static_cast<size_t>(part.tokens), pages = static_cast<size_t>(part.pages);
    numbers.resize(at + tokens + pages);
    if (!Take(&bytes, numbers.data() + at, (tokens + pages) * sizeof(int32_t))) return Damaged();
    const std::span<const int32_t> all(numbers);
    chunks.push_back({.tokens = all.subspan(at, tokens),
                      .start = part.start,
                      .pages = all.subspan(at + tokens, pages),
                      .logits = static_cast<Chunk::Logits>(part.logits),
                      .hidden = part.hidden != 0});
  }
  return bytes.empty() ? Status() : Damaged();
}

}  // namespace tessera::runtime
