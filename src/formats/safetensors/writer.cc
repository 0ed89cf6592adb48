// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors/writer.h"

#include <fmt/format.h>

#include <set>

#include "base/file.h"
#include "base/json.h"

namespace tessera::formats::safetensors {
namespace {

constexpr uint64_t kHeaderAlignment = 8;

Status CheckTensor(const WriteTensor& tensor) {
  const auto& [dtype, shape, bytes] = tensor.view;
  const tensor::DTypeInfo& info = tensor::Info(dtype);
  if (info.safetensors.empty())
    return InvalidArgument(fmt::format("safetensors has no type for {}", info.name));
  TESSERA_ASSIGN_OR_RETURN(const int64_t elements, shape.Elements());
  TESSERA_ASSIGN_OR_RETURN(const uint64_t expected,
                           tensor::RowBytes(dtype, static_cast<uint64_t>(elements)));
  if (bytes.size() != expected)
    return InvalidArgument(fmt::format("{} of {} needs {} bytes, {} were given", shape.ToString(),
                                       info.name, expected, bytes.size()));
  return {};
}

json::Object Texts(const TextPairs& pairs) {
  json::Object object;
  for (const auto& [key, value] : pairs) object.emplace(key, std::string_view(value));
  return object;
}

// Length and header, padded with spaces so that the data is aligned.
Result<std::string> MakeHead(const TextPairs& metadata, std::span<const WriteTensor> tensors) {
  json::Object header;
  if (!metadata.empty()) header.emplace("__metadata__", Texts(metadata));
  uint64_t offset = 0;
  for (const WriteTensor& tensor : tensors) {
    if (Status status = CheckTensor(tensor); !status.ok())
      return Fail(std::move(status).WithContext(fmt::format("tensor {}", tensor.name)));
    json::Array shape;
    for (const int64_t dim : tensor.view.shape.dims()) shape.emplace_back(dim);
    const uint64_t end = offset + tensor.view.bytes.size();
    json::Object row;
    row.emplace("dtype", tensor::Info(tensor.view.dtype).safetensors);
    row.emplace("shape", std::move(shape));
    row.emplace("data_offsets", json::Array{offset, end});
    if (!header.emplace(tensor.name, std::move(row)).second)
      return Fail(InvalidArgument(fmt::format("tensor {} is given twice", tensor.name)));
    offset = end;
  }
  std::string text = json::Serialize(header);
  text.append((kHeaderAlignment - text.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  ByteWriter out;
  out.Write(static_cast<uint64_t>(text.size()));
  out.WriteText(text);
  return std::move(out).Take();
}

}  // namespace

Result<std::string> Make(const TextPairs& metadata, std::span<const WriteTensor> tensors) {
  TESSERA_ASSIGN_OR_RETURN(std::string file, MakeHead(metadata, tensors));
  for (const WriteTensor& tensor : tensors) file.append(AsText(tensor.view.bytes));
  return file;
}

Status Write(const std::filesystem::path& path, const TextPairs& metadata,
             std::span<const WriteTensor> tensors) {
  TESSERA_ASSIGN_OR_RETURN(const std::string head, MakeHead(metadata, tensors));
  TESSERA_ASSIGN_OR_RETURN(auto file, FileWriter::Create(path));
  TESSERA_RETURN_IF_ERROR(file->Append(AsBytes(head)));
  for (const WriteTensor& tensor : tensors)
    TESSERA_RETURN_IF_ERROR(file->Append(tensor.view.bytes));
  return file->Finish();
}

std::string MakeShardIndex(const TextPairs& weight_map, uint64_t total_bytes) {
  json::Object index;
  index.emplace("metadata", json::Object{{"total_size", total_bytes}});
  index.emplace("weight_map", Texts(weight_map));
  return json::SerializePretty(index);
}

}  // namespace tessera::formats::safetensors
