// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/check.h"

namespace tessera::engine {
namespace {

constexpr std::string_view kMagic = "tskvpage";
constexpr uint32_t kVersion = 1;
constexpr size_t kHashedBytes = 88;

Sha256::Digest Checksum(ByteSpan header, ByteSpan payload) {
  Sha256 hash;
  hash.Update(header.first(kHashedBytes));
  hash.Update(payload);
  return hash.Finish();
}

Status ExpectDigest(ByteReader* reader, const Sha256::Digest& expected, std::string_view field) {
  TESSERA_ASSIGN_OR_RETURN(const ByteSpan found, reader->ReadBytes(expected.size(), field));
  if (std::ranges::equal(found, expected)) return {};
  return DataLoss(fmt::format("{} is another than expected", field));
}

Status CheckFields(ByteReader* reader, const KvPageName& name) {
  TESSERA_ASSIGN_OR_RETURN(const ByteSpan magic, reader->ReadBytes(kMagic.size(), "magic"));
  if (AsText(magic) != kMagic) return DataLoss("it does not begin as a KV page");
  TESSERA_ASSIGN_OR_RETURN(const auto version, reader->Read<uint32_t>("version"));
  if (version != kVersion)
    return DataLoss(fmt::format("format version {}, expected {}", version, kVersion));
  TESSERA_ASSIGN_OR_RETURN(const auto header_bytes, reader->Read<uint32_t>("header bytes"));
  if (header_bytes != kKvPageHeaderBytes)
    return DataLoss(
        fmt::format("a header of {} bytes, expected {}", header_bytes, kKvPageHeaderBytes));
  TESSERA_RETURN_IF_ERROR(ExpectDigest(reader, name.root, "root hash"));
  TESSERA_RETURN_IF_ERROR(ExpectDigest(reader, name.hash, "page hash"));
  TESSERA_ASSIGN_OR_RETURN(const auto payload_bytes, reader->Read<uint64_t>("payload bytes"));
  if (payload_bytes != name.payload_bytes)
    return DataLoss(
        fmt::format("a payload of {} bytes, expected {}", payload_bytes, name.payload_bytes));
  return {};
}

}  // namespace

KvPageHeader EncodeKvPageHeader(const KvPageName& name, ByteSpan payload) {
  TESSERA_CHECK(payload.size() == name.payload_bytes);
  ByteWriter writer;
  writer.WriteText(kMagic);
  writer.Write(kVersion);
  writer.Write(static_cast<uint32_t>(kKvPageHeaderBytes));
  writer.WriteBytes(name.root);
  writer.WriteBytes(name.hash);
  writer.Write(name.payload_bytes);
  TESSERA_CHECK(writer.size() == kHashedBytes);
  writer.WriteBytes(Checksum(AsBytes(writer.bytes()), payload));
  writer.PadTo(kKvPageHeaderBytes);
  KvPageHeader header;
  TESSERA_CHECK(writer.size() == header.size());
  std::memcpy(header.data(), writer.bytes().data(), header.size());
  return header;
}

Status CheckKvPage(const KvPageHeader& header, ByteSpan payload, const KvPageName& name) {
  ByteReader reader(header);
  TESSERA_RETURN_IF_ERROR(CheckFields(&reader, name));
  if (payload.size() != name.payload_bytes)
    return DataLoss(
        fmt::format("{} bytes follow the header, expected {}", payload.size(), name.payload_bytes));
  TESSERA_RETURN_IF_ERROR(ExpectDigest(&reader, Checksum(header, payload), "checksum"));
  TESSERA_ASSIGN_OR_RETURN(const auto zeros, reader.Read<uint64_t>("padding"));
  if (zeros != 0) return DataLoss("the padding of the header is not zero");
  return {};
}

}  // namespace tessera::engine
